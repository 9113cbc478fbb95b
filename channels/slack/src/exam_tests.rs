//! What the close look says to do.

use gatepost_channel::{Channel, Finding, FindingState, Needs};
use serde_json::json;

use crate::SlackChannel;
use crate::fake_api::{Scripted, refuses, says, with_api};

const OURS: &str = "https://gate.example.com/api/channels/ops-slack/callback";

async fn examine(answers: Vec<Scripted>, needs: Needs) -> Vec<Finding> {
    with_api(answers, async |channel: SlackChannel| {
        channel.examine(&needs).await
    })
    .await
    .0
}

fn needs() -> Needs {
    Needs {
        callback: Some(OURS.into()),
        ..Needs::default()
    }
}

fn who(scopes: &str) -> Scripted {
    Scripted {
        headers: vec![("x-oauth-scopes", scopes.to_owned())],
        ..says(
            200,
            json!({ "ok": true, "team_id": "T0DEMO0001", "bot_id": "B0DEMO0001" }),
        )
    }
}

fn bot(app: &str) -> Scripted {
    says(
        200,
        json!({ "ok": true, "bot": { "id": "B0DEMO0001", "app_id": app } }),
    )
}

#[tokio::test]
async fn scopes_are_asked_for_by_what_is_configured() {
    let by_email = Needs {
        emails: true,
        ..needs()
    };
    let all = "chat:write,users:read,users:read.email,usergroups:read,commands,channels:read,groups:read";
    for (given, needs, state, told) in [
        (
            "chat:write, users:read",
            needs(),
            FindingState::Note,
            "commands (/gatepost)",
        ),
        ("chat:write", by_email, FindingState::Ill, "users:read.email"),
        ("channels:read", needs(), FindingState::Ill, "chat:write"),
        (all, needs(), FindingState::Fine, "all"),
    ] {
        let found = examine(vec![who(given), refuses("missing_scope")], needs).await;
        let scopes = &found[0];
        assert_eq!((scopes.about, scopes.state), ("scopes", state), "{scopes:?}");
        assert!(scopes.detail.contains(told), "{scopes:?}");
    }
}

#[tokio::test]
async fn a_token_of_another_app_is_found_out() {
    let found = examine(vec![who("chat:write"), bot("A0OTHER001")], needs()).await;
    let app = found.iter().find(|finding| finding.about == "app").unwrap();
    assert!(
        app.state == FindingState::Ill && app.detail.contains("A0OTHER001"),
        "{app:?}"
    );
    let found = examine(vec![who("chat:write"), bot("A0DEMO0001")], needs()).await;
    assert!(
        found
            .iter()
            .any(|finding| finding.about == "app" && finding.state == FindingState::Fine)
    );
    let odd = examine(vec![who("chat:write"), bot("<!channel>")], needs()).await;
    assert!(odd.iter().all(|finding| finding.about != "app"), "{odd:?}");
}

#[tokio::test]
async fn the_address_to_set_is_named_or_missed() {
    let found = examine(vec![who("chat:write"), refuses("missing_scope")], needs()).await;
    let callbacks = found.iter().find(|finding| finding.about == "callbacks").unwrap();
    assert!(
        callbacks.state == FindingState::Note && callbacks.detail.contains(OURS),
        "{callbacks:?}"
    );
    let nowhere = examine(
        vec![who("chat:write"), refuses("missing_scope")],
        Needs::default(),
    )
    .await;
    assert!(
        nowhere
            .iter()
            .any(|finding| finding.state == FindingState::Ill && finding.detail.contains("public_url")),
        "{nowhere:?}"
    );
    assert_eq!(
        examine(vec![refuses("invalid_auth")], needs()).await,
        [],
        "the check has said it"
    );
}
