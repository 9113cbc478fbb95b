use gatepost_channel::{Bar, Channel as _, Group, Profile, Unfound};
use serde_json::{Value, json};

use crate::SlackChannel;
use crate::fake_api::{Scripted, Seen, refuses, retry, says, with_api};

const MIRA: &str = "U0AAAA1111";

fn user(with: &Value) -> Scripted {
    let mut user = json!({
        "id": MIRA, "team_id": "T0DEMO0001", "deleted": false, "is_bot": false,
        "is_restricted": false, "is_ultra_restricted": false,
        "profile": {"email": "Mira@Example.com", "display_name": " mira ", "real_name": "Mira Ode"},
    });
    user.as_object_mut()
        .unwrap()
        .extend(with.as_object().unwrap().clone());
    says(200, json!({"ok": true, "user": user}))
}

fn home() -> Scripted {
    says(
        200,
        json!({"ok": true, "team_id": "T0DEMO0001", "enterprise_id": "E0DEMO0001"}),
    )
}

async fn person(answers: Vec<Scripted>) -> (Result<Profile, Unfound>, Vec<Seen>) {
    with_api(answers, async |channel: SlackChannel| {
        channel.directory().unwrap().person(MIRA).await
    })
    .await
}

#[tokio::test]
async fn a_member_is_described_and_nothing_bars_them() {
    let (found, seen) = person(vec![user(&json!({})), home()]).await;
    assert_eq!(
        found,
        Ok(Profile {
            id: MIRA.into(),
            bar: None,
            email: Some("mira@example.com".into()),
            name: Some("mira".into()),
        })
    );
    assert_eq!(seen[0].path, "/api/users.info");
    assert_eq!(
        seen[0].body,
        json!("user=U0AAAA1111"),
        "most methods that read take forms only"
    );
}

/// Rule E of the peers (54): a dead or borrowed account decides nothing.
#[tokio::test]
async fn whoever_may_not_decide_is_named_by_kind() {
    for (with, bar) in [
        (json!({"deleted": true}), Some(Bar::Deactivated)),
        (
            json!({"deleted": true, "is_restricted": true}),
            Some(Bar::Deactivated),
        ),
        (json!({"is_bot": true}), Some(Bar::Bot)),
        (json!({"is_workflow_bot": true}), Some(Bar::Bot)),
        (json!({"is_restricted": true}), Some(Bar::Guest)),
        (json!({"is_ultra_restricted": true}), Some(Bar::Guest)),
        (json!({"is_invited_user": true}), Some(Bar::NotJoined)),
        (json!({"is_stranger": true}), Some(Bar::Foreign)),
        (json!({"team_id": "T0OTHER001"}), Some(Bar::Foreign)),
        (
            json!({"team_id": "T0OTHER001", "enterprise_user": {"teams": ["T0DEMO0001"]}}),
            None,
        ),
        (
            json!({"team_id": "T0OTHER001", "enterprise_user": {"enterprise_id": "E0DEMO0001"}}),
            None,
        ),
        (
            json!({"team_id": "T0OTHER001", "enterprise_user": {"enterprise_id": "E0OTHER001", "teams": []}}),
            Some(Bar::Foreign),
        ),
    ] {
        let (found, _) = person(vec![user(&with), home()]).await;
        assert_eq!(found.unwrap().bar, bar, "{with}");
    }
}

#[tokio::test]
async fn where_the_app_is_at_home_is_asked_once() {
    let answers = vec![user(&json!({})), home(), user(&json!({}))];
    let (found, seen) = with_api(answers, async |channel: SlackChannel| {
        let directory = channel.directory().unwrap();
        directory.person(MIRA).await.unwrap();
        directory.person(MIRA).await
    })
    .await;
    assert!(found.is_ok() && seen.len() == 3, "{seen:?}");
}

/// Three things that lead to three: nobody there, an app that may not ask, a platform that does not answer.
#[tokio::test]
async fn what_was_not_found_is_kept_apart() {
    for (answer, expected) in [
        (refuses("user_not_found"), "no_such"),
        (refuses("user_not_visible"), "hidden"),
        (refuses("invalid_arguments"), "hidden"),
        (refuses("something_new"), "hidden"),
        (refuses("no_permission"), "may_not"),
        (
            says(
                200,
                json!({"ok": false, "error": "missing_scope", "needed": "users:read"}),
            ),
            "may_not",
        ),
        (refuses("missing_scope"), "may_not"),
        (refuses("unknown_method"), "may_not"),
        (refuses("not_allowed_token_type"), "may_not"),
        (says(404, "<html>"), "may_not"),
        (says(405, ""), "may_not"),
        (says(501, "Unsupported method"), "may_not"),
        (says(200, json!({"ok": true})), "may_not"),
        (says(200, json!({})), "may_not"),
        (says(200, ""), "may_not"),
        (refuses("token_revoked"), "failed"),
        (refuses("invalid_auth"), "failed"),
        (refuses("internal_error"), "failed"),
        (refuses("ratelimited"), "failed"),
        (says(503, "upstream"), "failed"),
        (says(500, json!({"ok": false, "error": "fatal_error"})), "failed"),
        (
            says(200, json!({"ok": true, "user": {"id": "U0SOMEBODY"}})),
            "failed",
        ),
    ] {
        let body = answer.body.clone();
        let (found, _) = person(vec![answer]).await;
        let class = match found {
            Err(Unfound::NoSuch) => "no_such",
            Err(Unfound::Hidden { .. }) => "hidden",
            Err(Unfound::MayNotAsk { .. }) => "may_not",
            Err(Unfound::Failed(_)) => "failed",
            Ok(_) => "found",
        };
        assert_eq!(class, expected, "{body}");
    }
    let busy = Scripted {
        headers: vec![("retry-after", "7".into())],
        ..says(429, "")
    };
    let (found, _) = person(vec![busy]).await;
    assert_eq!(found, Err(Unfound::Failed(retry(Some(7), "ratelimited"))));
}

#[tokio::test]
async fn an_address_leads_to_an_id() {
    let by_email = async |answer: Scripted| {
        with_api(vec![answer], async |channel: SlackChannel| {
            channel.directory().unwrap().by_email("mira@example.com").await
        })
        .await
    };
    let (found, seen) = by_email(user(&json!({}))).await;
    assert_eq!(found, Ok(MIRA.into()));
    assert_eq!(seen[0].path, "/api/users.lookupByEmail");
    assert_eq!(seen[0].body, json!("email=mira%40example.com"));
    assert_eq!(by_email(refuses("users_not_found")).await.0, Err(Unfound::NoSuch));
}

async fn members(group: Group, answers: Vec<Scripted>) -> (Result<Vec<String>, Unfound>, Vec<Seen>) {
    with_api(answers, async |channel: SlackChannel| {
        channel.directory().unwrap().members(&group).await
    })
    .await
}

#[tokio::test]
async fn a_user_group_is_listed() {
    let group = || Group::Named("S0614TZR7".into());
    let (found, seen) = members(
        group(),
        vec![says(200, json!({"ok": true, "users": [MIRA, "W012A3CDE"]}))],
    )
    .await;
    assert_eq!(found, Ok(vec![MIRA.into(), "W012A3CDE".into()]));
    assert_eq!(seen[0].path, "/api/usergroups.users.list");
    // An empty group is a group of nobody; an answer without a list is none.
    let (found, _) = members(group(), vec![says(200, json!({"ok": true, "users": []}))]).await;
    assert_eq!(found, Ok(vec![]));
    for (answer, expected) in [
        (refuses("no_such_subteam"), "no_such"),
        (refuses("plan_upgrade_required"), "may_not"),
        (says(200, json!({"ok": true})), "may_not"),
        (says(200, json!({"ok": true, "users": [7]})), "failed"),
    ] {
        let class = match members(group(), vec![answer]).await.0 {
            Err(Unfound::NoSuch) => "no_such",
            Err(Unfound::MayNotAsk { .. }) => "may_not",
            Err(Unfound::Failed(_)) => "failed",
            other => panic!("{other:?}"),
        };
        assert_eq!(class, expected);
    }
}

#[tokio::test]
async fn a_conversation_is_read_page_by_page_and_not_for_ever() {
    let page = |id: &str, next: &str| {
        says(
            200,
            json!({"ok": true, "members": [id], "response_metadata": {"next_cursor": next}}),
        )
    };
    let (found, seen) = members(Group::Chat, vec![page("U1", "bmV4dA=="), page("U2", "")]).await;
    assert_eq!(found, Ok(vec!["U1".into(), "U2".into()]));
    assert_eq!(seen[0].body, json!("channel=C0APPROVE1&limit=200"));
    assert_eq!(
        seen[1].body,
        json!("channel=C0APPROVE1&limit=200&cursor=bmV4dA%3D%3D")
    );
    let endless = (0..10).map(|_| page("U1", "again")).collect();
    let found = members(Group::Chat, endless).await.0;
    assert!(
        matches!(found, Err(Unfound::Hidden { .. })),
        "one list that is too long says nothing of others: {found:?}"
    );
}

#[tokio::test]
async fn what_holds_for_one_conversation_closes_no_other() {
    for (code, hidden) in [
        ("channel_not_found", true),
        ("not_in_channel", true),
        ("method_not_supported_for_channel_type", true),
        ("fetch_members_failed", false),
        ("invalid_cursor", false),
    ] {
        let found = members(Group::Chat, vec![refuses(code)]).await.0;
        let as_expected = match &found {
            Err(Unfound::Hidden { .. }) => hidden,
            Err(Unfound::Failed(_)) => !hidden,
            _ => false,
        };
        assert!(as_expected, "{code}: {found:?}");
    }
}

/// What the adapter was given stays out of what it tells.
#[tokio::test]
async fn a_failed_look_up_names_no_person() {
    for answer in [
        refuses("user_not_found"),
        says(500, "canary"),
        refuses("canary@example.com"),
    ] {
        let (found, _) = person(vec![answer]).await;
        let told = format!("{found:?}");
        assert!(!told.contains("canary") && !told.contains(MIRA), "{told}");
    }
}
