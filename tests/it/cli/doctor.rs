//! `gatepost doctor` against fake platforms and a running server: what is fine, and what it says to click when it is not.

use serde_json::Value;

use super::{Ran, command};
use crate::support::fake_feishu::{self, FakeFeishu, Person};
use crate::support::fake_slack::{self, FakeSlack, User};
use crate::support::program::{Place, Program};

fn config(place: &Place, slack: &FakeSlack, feishu: &FakeFeishu) -> String {
    format!(
        "server: {{listen: '{}', public_url: '{}'}}
storage: {{url: 'sqlite://gatepost.db'}}
auth: {{tokens: [{{name: agent, secret: agent-token-of-a-test, role: agent}}]}}
operators:
  - {{id: dana, name: Dana Kim, roles: [finance], identities: {{slack: U024BE7LH, feishu: ou_7d8a6e}}}}
channels:
  - {{name: ops-slack, kind: slack, mode: webhook, base_url: '{}', bot_token: {}, signing_secret: {}, app_id: {}, channel: {}}}
  - {{name: finance-feishu, kind: feishu, mode: webhook, base_url: '{}', app_id: {}, app_secret: {}, encrypt_key: {}, verification_token: {}, chat_id: {}}}
policy:
  confirm: {{channels: [ops-slack, finance-feishu], approvers: {{roles: [finance]}}, timeout: 2m}}
",
        place.listen(),
        place.url(""),
        slack.base_url,
        fake_slack::BOT_TOKEN,
        fake_slack::SIGNING_SECRET,
        fake_slack::APP,
        fake_slack::CHANNEL,
        feishu.base_url,
        fake_feishu::APP,
        fake_feishu::APP_SECRET,
        fake_feishu::ENCRYPT_KEY,
        fake_feishu::VERIFICATION_TOKEN,
        fake_feishu::CHAT,
    )
}

/// The doctor's exit code and findings, asked off the runtime's threads.
async fn ask(place: &Place) -> (i32, Value) {
    let path = place.file("gatepost.yaml");
    let run = move || -> Ran {
        let mut command = command(&["doctor", "--json", "--config"]);
        command.arg(path).output().expect("a started program").into()
    };
    let ran = tokio::task::spawn_blocking(run).await.expect("a run");
    let told = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}{}", ran.out, ran.err));
    (ran.code, told)
}

fn state<'a>(told: &'a Value, name: &str) -> (&'a str, &'a str) {
    let checks = told["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["name"] == name);
    let check = check.unwrap_or_else(|| panic!("{name} in {told}"));
    (
        check["state"].as_str().expect("a state"),
        check["detail"].as_str().expect("a detail"),
    )
}

#[tokio::test]
async fn a_set_up_is_followed_from_end_to_end() {
    let (slack, feishu) = (FakeSlack::start().await, FakeFeishu::start().await);
    slack.add_user(User::new("U024BE7LH", "dana@example.com"));
    feishu.add_person(Person::new("ou_7d8a6e", "dana@example.com"));
    let place = Place::new();
    let config = config(&place, &slack, &feishu);
    let program = Program::start(place.clone(), &config, &[]).await;

    let (code, told) = ask(&place).await;
    assert_eq!((code, &told["healthy"]), (0, &Value::Bool(true)), "{told}");
    assert_eq!(state(&told, "public address").0, "ok");
    assert_eq!(state(&told, "clock at 127.0.0.1").0, "ok");
    assert_eq!(state(&told, "channel finance-feishu: callbacks").0, "ok");
    assert_eq!(state(&told, "channel finance-feishu: version").0, "ok");
    let (kind, advice) = state(&told, "channel ops-slack: callbacks");
    assert!(
        kind == "note" && advice.contains(&place.callback_url("ops-slack")),
        "{advice}"
    );
    assert!(
        slack.messages(fake_slack::CHANNEL).is_empty(),
        "nothing is posted"
    );

    slack.revoke_scope("chat:write");
    feishu.change_app(|app| app["callback_info"]["subscribed_callbacks"] = serde_json::json!([]));
    let (code, told) = ask(&place).await;
    assert_eq!(code, 1);
    let (kind, advice) = state(&told, "channel ops-slack: scopes");
    assert!(kind == "ill" && advice.contains("reinstall"), "{advice}");
    let (kind, advice) = state(&told, "channel finance-feishu: callbacks");
    assert!(kind == "ill" && advice.contains("200340"), "{advice}");

    // The address of a server that does not run is no illness: the doctor comes before the first start.
    drop(program);
    let (_, told) = ask(&place).await;
    let (kind, advice) = state(&told, "public address");
    assert!(kind == "note" && advice.contains("start the server"), "{advice}");
}

#[tokio::test]
async fn an_address_that_leads_elsewhere_is_ill() {
    let (slack, feishu) = (FakeSlack::start().await, FakeFeishu::start().await);
    let place = Place::new();
    // The fake Feishu answers there, and is no Gatepost.
    let elsewhere = config(&place, &slack, &feishu).replace(
        &format!("public_url: '{}'", place.url("")),
        &format!("public_url: '{}'", feishu.base_url),
    );
    place.write("gatepost.yaml", &elsewhere);
    let (code, told) = ask(&place).await;
    let (kind, advice) = state(&told, "public address");
    assert!(
        code == 1 && kind == "ill" && advice.contains("not as a Gatepost"),
        "{advice}"
    );
}
