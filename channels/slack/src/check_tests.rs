//! What a channel says of itself, and which channels belong together.

use gatepost_channel::{Channel, PlatformUser};
use serde_json::json;

use crate::SlackChannel;
use crate::fake_api::{Scripted, refuses, says, with_api};
use crate::fixture;

async fn check(answers: Vec<Scripted>) -> gatepost_channel::Health {
    with_api(answers, async |channel: SlackChannel| channel.check().await)
        .await
        .0
}

#[tokio::test]
async fn the_check_says_what_to_do() {
    let who = |scopes: &str| Scripted {
        headers: vec![("x-oauth-scopes", scopes.to_owned())],
        ..says(200, json!({ "ok": true, "team_id": "T0DEMO0001" }))
    };
    let place = |member: bool, archived: bool| {
        says(
            200,
            json!({ "ok": true, "channel": { "is_member": member, "is_archived": archived } }),
        )
    };
    let good = check(vec![who("chat:write,channels:read"), place(true, false)]).await;
    assert!(good.healthy && good.detail.contains("T0DEMO0001"), "{good:?}");

    let blind = check(vec![who("chat:write"), refuses("missing_scope")]).await;
    assert!(
        blind.healthy && blind.detail.contains("channels:read"),
        "{blind:?}"
    );

    for unknown in [refuses("unknown_method"), says(404, json!({}))] {
        let blind = check(vec![who("chat:write"), unknown]).await;
        assert!(
            blind.healthy && blind.detail.contains("cannot be seen"),
            "{blind:?}"
        );
    }

    for (answers, todo) in [
        (vec![refuses("invalid_auth")], "bot_token"),
        (vec![who("channels:read")], "chat:write"),
        (vec![who("chat:write"), place(false, false)], "/invite"),
        (vec![who("chat:write"), place(true, true)], "archived"),
        (vec![who("chat:write"), refuses("channel_not_found")], "/invite"),
    ] {
        let health = check(answers).await;
        assert!(!health.healthy && health.detail.contains(todo), "{health:?}");
    }
}

#[tokio::test]
async fn channels_share_an_app_only_when_it_is_theirs() {
    let config = fixture::config("https://slack.com/api");
    let app = crate::SlackApp::new(&config, fixture::http(), &fixture::means()).unwrap();
    let second = crate::SlackConfig {
        name: "second".into(),
        channel: "C0SECOND01".into(),
        ..config.clone()
    };
    let channel = SlackChannel::of(app.clone(), &second).unwrap();
    assert_eq!(channel.app().id, "A0DEMO0001");
    let other = crate::SlackConfig {
        app_id: None,
        ..config
    };
    assert!(SlackChannel::of(app, &other).is_err());
    let unnamed = SlackChannel::new(&other, fixture::http(), &fixture::means())
        .unwrap()
        .app();
    assert_eq!(unnamed.id.len(), 16);
}

#[tokio::test]
async fn teams_limit_who_may_click() {
    let open = fixture::channel("https://slack.com/api");
    let of = |tenant: Option<&str>, from_elsewhere| PlatformUser {
        ids: vec!["U0AAAA1111".into()],
        tenant: tenant.map(str::to_owned),
        from_elsewhere,
    };
    assert!(open.admits(&of(None, false)) && open.admits(&of(Some("T0OTHER001"), false)));
    assert!(!open.admits(&of(Some("T0OTHER001"), true)), "unless it is named");
    let config = crate::SlackConfig {
        teams: vec!["T0DEMO0001".into()],
        ..fixture::config("https://slack.com/api")
    };
    let closed = SlackChannel::new(&config, fixture::http(), &fixture::means()).unwrap();
    assert!(closed.admits(&of(Some("T0DEMO0001"), false)) && closed.admits(&of(Some("T0DEMO0001"), true)));
    assert!(!closed.admits(&of(None, false)) && !closed.admits(&of(Some("T0DEMO000"), false)));
}
