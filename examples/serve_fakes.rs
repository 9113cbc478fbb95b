//! The fake Slack and the fake Feishu on their own, for official SDKs (`scripts/prove-fakes`) and for trying things out.
//!
//! Prints one JSON line with addresses and invented secrets, then reads commands from standard input, one JSON object
//! a line, and answers each with a line:
//!
//! - `{"do": "slack.click", "action": "approve", "user": "U…"}`: the signed request of a press on the newest message
//! - `{"do": "feishu.click", "decision": "approve", "user": "ou_…"}`: the sealed callback of a press on the newest card
//! - `{"do": "feishu.challenge", "challenge": "…"}`: the handshake of the developer console
//!
//! `"variant"` may be `forged` or `stale`. The answer is `{"headers": {…}, "body": "…"}`; post it to where you like.
//! It ends with its input.
#![expect(
    dead_code,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    unused_imports,
    reason = "a tool for developers made of the integration tests' fakes, of which it uses a part"
)]

#[path = "../tests/it/support/clock.rs"]
mod clock;
#[path = "../tests/it/support/fake_feishu/mod.rs"]
mod fake_feishu;
#[path = "../tests/it/support/fake_slack/mod.rs"]
mod fake_slack;
#[path = "../tests/it/support/fault.rs"]
mod fault;
#[path = "../tests/it/support/limiter.rs"]
mod limiter;
#[path = "../tests/it/support/loopback.rs"]
mod loopback;
#[path = "../tests/it/support/news.rs"]
mod news;
#[path = "../tests/it/support/platform_request.rs"]
mod platform_request;
#[path = "../tests/it/support/sockets.rs"]
mod sockets;
#[path = "../tests/it/support/temp_dir.rs"]
mod temp_dir;

use std::io::BufRead;
use std::time::Duration;

use serde_json::{Map, Value, json};

use fake_feishu::{FakeFeishu, Person};
use fake_slack::{FakeSlack, User};
use platform_request::PlatformRequest;

const STALE: Duration = Duration::from_secs(301);

#[tokio::main]
async fn main() {
    let (slack, feishu) = (FakeSlack::start().await, FakeFeishu::start().await);
    slack.add_user(User::new("U024BE7LH", "dana@example.com"));
    feishu.add_person(Person::new("ou_7d8a6e", "dana@example.com"));
    println!(
        "{}",
        json!({
            "slack": {
                "base_url": slack.base_url, "bot_token": fake_slack::BOT_TOKEN, "channel": fake_slack::CHANNEL,
                "signing_secret": fake_slack::SIGNING_SECRET, "user": "U024BE7LH",
            },
            "feishu": {
                "base_url": feishu.base_url, "app_id": fake_feishu::APP, "app_secret": fake_feishu::APP_SECRET,
                "encrypt_key": fake_feishu::ENCRYPT_KEY, "verification_token": fake_feishu::VERIFICATION_TOKEN,
                "chat_id": fake_feishu::CHAT, "user": "ou_7d8a6e",
            },
        })
    );
    let (send, mut commands) = tokio::sync::mpsc::channel(1);
    // Reading standard input blocks, so it has a thread; the servers go on beside it.
    let reader = tokio::task::spawn_blocking(move || {
        for line in std::io::stdin().lock().lines() {
            if send.blocking_send(line.expect("a line of UTF-8")).is_err() {
                break;
            }
        }
    });
    while let Some(line) = commands.recv().await {
        let command: Value = serde_json::from_str(&line).expect("a JSON command");
        println!("{}", shown(&carry_out(&slack, &feishu, &command)));
    }
    reader.await.expect("the end of standard input");
}

fn carry_out(slack: &FakeSlack, feishu: &FakeFeishu, command: &Value) -> PlatformRequest {
    let text = |name: &str| command[name].as_str().unwrap_or_default();
    match text("do") {
        "slack.click" => {
            let newest = slack
                .messages(fake_slack::CHANNEL)
                .pop()
                .expect("a posted message");
            let click = slack.click(&newest, text("action"), text("user"));
            match text("variant") {
                "forged" => click.forged().request(),
                "stale" => click.aged(STALE).request(),
                _ => click.request(),
            }
        }
        "feishu.click" => {
            let newest = feishu.messages(fake_feishu::CHAT).pop().expect("a sent card");
            let click = feishu.click(&newest, text("decision"), text("user"));
            match text("variant") {
                "forged" => click.forged().request(),
                "stale" => click.aged(STALE).request(),
                _ => click.request(),
            }
        }
        "feishu.challenge" => feishu.url_verification(text("challenge")).request(),
        other => panic!("unknown command {other}"),
    }
}

fn shown(request: &PlatformRequest) -> Value {
    let headers: Map<_, _> = request
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    json!({"headers": headers, "body": String::from_utf8_lossy(&request.body)})
}
