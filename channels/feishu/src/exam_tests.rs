//! What the close look says to do.

use gatepost_channel::{Channel, Finding, FindingState, Needs};
use serde_json::{Value, json};

use crate::fake::{Answer, Fake, ok, refusal};

const OURS: &str = "https://gate.example.com/api/channels/finance-feishu/callback";

fn scopes(granted: &[&str]) -> Answer {
    let listed: Vec<Value> = granted
        .iter()
        .map(|name| json!({ "scope_name": name, "grant_status": 1, "scope_type": "tenant" }))
        .chain([json!({ "scope_name": "contact:group:readonly", "grant_status": 2 })])
        .collect();
    ok(&json!({ "scopes": listed }))
}

fn record(change: Value) -> Answer {
    let mut app = json!({
        "online_version_id": "oav_1",
        "unaudit_version_id": "",
        "callback_info": { "callback_type": "webhook", "request_url": OURS, "subscribed_callbacks": ["card.action.trigger"] },
    });
    let (Some(app_fields), Value::Object(change)) = (app.as_object_mut(), change) else {
        panic!("objects");
    };
    app_fields.extend(change);
    ok(&json!({ "app": app }))
}

async fn examine(answers: Vec<Answer>, needs: &Needs) -> Vec<Finding> {
    Fake::start(answers).await.channel().examine(needs).await
}

fn needs() -> Needs {
    Needs {
        callback: Some(OURS.into()),
        ..Needs::default()
    }
}

fn one<'a>(found: &'a [Finding], about: &str) -> &'a Finding {
    found
        .iter()
        .find(|finding| finding.about == about)
        .expect("such a finding")
}

#[tokio::test]
async fn scopes_are_asked_for_by_what_is_configured() {
    let by_group = Needs {
        groups: true,
        ..needs()
    };
    for (granted, needs, state, told) in [
        (
            &["im:message"][..],
            needs(),
            FindingState::Note,
            "contact:group:readonly",
        ),
        (
            &["im:message"][..],
            by_group.clone(),
            FindingState::Ill,
            "contact:group:readonly",
        ),
        (
            &["contact:user.id:readonly"][..],
            needs(),
            FindingState::Ill,
            "im:message:send_as_bot",
        ),
    ] {
        let found = examine(vec![scopes(granted), record(json!({}))], &needs).await;
        let finding = one(&found, "scopes");
        assert_eq!(finding.state, state, "{finding:?}");
        assert!(
            finding.detail.contains(told) && finding.detail.contains("Permissions"),
            "{finding:?}"
        );
    }
}

#[tokio::test]
async fn the_subscription_and_the_version_are_looked_up() {
    let callback = |kind: &str, url: &str, names: &[&str]| json!({ "callback_info": { "callback_type": kind, "request_url": url, "subscribed_callbacks": names } });
    let click = "card.action.trigger";
    for (change, about, state, told) in [
        (json!({}), "callbacks", FindingState::Fine, OURS),
        (
            json!({ "callback_info": {} }),
            "callbacks",
            FindingState::Ill,
            "200340",
        ),
        (
            callback("websocket", OURS, &[click]),
            "callbacks",
            FindingState::Ill,
            "change mode",
        ),
        (
            callback("webhook", "https://old.example.com/", &[click]),
            "callbacks",
            FindingState::Ill,
            OURS,
        ),
        (
            callback("webhook", OURS, &[click, "card.action.trigger_v1"]),
            "callbacks",
            FindingState::Note,
            "legacy",
        ),
        (json!({}), "version", FindingState::Fine, "published"),
        (
            json!({ "online_version_id": "" }),
            "version",
            FindingState::Ill,
            "publish it",
        ),
        (
            json!({ "online_version_id": "", "unaudit_version_id": "oav_2" }),
            "version",
            FindingState::Ill,
            "admin",
        ),
        (
            json!({ "unaudit_version_id": "oav_2" }),
            "version",
            FindingState::Note,
            "does not hold yet",
        ),
    ] {
        let found = examine(vec![scopes(&["im:message"]), record(change.clone())], &needs()).await;
        let finding = one(&found, about);
        assert_eq!(finding.state, state, "{change} {finding:?}");
        assert!(finding.detail.contains(told), "{change} {finding:?}");
    }
}

#[tokio::test]
async fn what_may_not_be_asked_is_no_illness() {
    let found = examine(vec![refusal(404, 404), refusal(400, 99_991_672)], &needs()).await;
    assert!(
        found.iter().all(|finding| finding.state == FindingState::Note),
        "{found:?}"
    );
    assert!(
        one(&found, "callbacks")
            .detail
            .contains("admin:app.info:readonly")
            && one(&found, "callbacks").detail.contains(OURS)
    );
    let nowhere = examine(
        vec![scopes(&["im:message"]), record(json!({}))],
        &Needs::default(),
    )
    .await;
    assert!(
        one(&nowhere, "callbacks").state == FindingState::Ill
            && one(&nowhere, "callbacks").detail.contains("public_url"),
        "{nowhere:?}"
    );
    let empty = examine(vec![ok(&json!({})), ok(&json!({}))], &needs()).await;
    assert!(
        empty.iter().all(|finding| finding.state == FindingState::Note),
        "{empty:?}"
    );
    let refused = Fake::start([]).await.tokens([refusal(200, 10_014)]);
    assert_eq!(
        refused.channel().examine(&needs()).await,
        [],
        "the check has said it"
    );
}
