//! What opens for one person, over connections that the server opened: answers from a modal over Socket Mode, and from a private
//! message over the long connection. Arguments can be changed there as well.

use serde_json::{Value, json};

use super::connected::{Platforms, config};
use crate::support::fake_feishu;
use crate::support::fake_slack::{self, View};
use crate::support::people::DANA;
use crate::support::program::{Api, Place, Program};
use crate::support::world::{SOON, secret_of};

const RULES: &str = "  rules:
    - {name: reasoned, tools: [reasoned__pay], effect: confirm, require_reason: reject}
    - {name: edited, tools: [edited__pay], effect: confirm, redact: [/card], accepts_edits: true}
";

async fn ask(agent: &Api, tool: &str, args: &Value) -> String {
    let question = json!({"tool_name": tool, "tool_args": args, "accepts_edits": true});
    let (_, asked) = agent.post("/api/confirmations", &question).await;
    let id = asked["confirmation_id"].as_str();
    id.unwrap_or_else(|| panic!("{asked}")).to_owned()
}

async fn request(agent: &Api, id: &str) -> Value {
    let (_, shown) = agent.get(&format!("/api/confirmations/{id}")).await;
    shown
}

/// A press over the socket opens a modal; the press itself is acknowledged with nothing.
async fn opened(platforms: &Platforms, id: &str, action: &str, count: usize) -> View {
    let card = platforms
        .slack
        .wait_for_message(
            fake_slack::CHANNEL,
            |message| message.current().visible_text().contains(id),
            SOON,
        )
        .await;
    let press = platforms.slack.click(&card, action, DANA.slack);
    let acknowledged = platforms.slack.deliver(&platforms.slack_sockets, press).await;
    assert_eq!(acknowledged.as_object().map(serde_json::Map::len), Some(1));
    platforms
        .slack
        .wait_for("a modal", SOON, |slack| slack.views().into_iter().nth(count - 1))
        .await
}

/// What the acknowledgement of a submission says beside the envelope; null where the modal closes.
async fn send(
    platforms: &Platforms,
    view: &View,
    choice: Option<&str>,
    words: &str,
    edited: Option<&str>,
) -> Value {
    let sent = platforms.slack.fill_in(view, choice, words, edited);
    let answer = platforms.slack.deliver(&platforms.slack_sockets, sent).await;
    answer["payload"].clone()
}

#[tokio::test]
async fn modals_and_private_messages_answer_over_connections() {
    let platforms = Platforms::start().await;
    let place = Place::new();
    let text = config(&place, &platforms.slack.base_url, &platforms.feishu.base_url) + RULES;
    let program = Program::start(place.clone(), &text, &[]).await;
    platforms.connected().await;
    let agent = program.place.api(&secret_of("build-agent"));

    // A form for a reason: it stays open without one, and closes with one.
    let id = ask(&agent, "reasoned__pay", &json!({"amount": 1})).await;
    let form = opened(&platforms, &id, "reject", 1).await;
    let refused = send(&platforms, &form, None, " … ", None).await;
    assert_eq!(refused["response_action"], "errors", "{refused}");
    assert!(refused["errors"]["why"].is_string(), "{refused}");
    assert_eq!(request(&agent, &id).await["status"], "pending");
    assert_eq!(
        send(&platforms, &form, None, "not this one", None).await,
        Value::Null
    );
    let seen = request(&agent, &id).await;
    assert_eq!(
        (&seen["status"], &seen["votes"][0]["reason"]),
        (&json!("rejected"), &json!("not this one")),
        "{seen}"
    );

    // The full view with a field for the arguments.
    let proposed = json!({"amount": 60_000, "card": "4111", "note": "🚀"});
    let id = ask(&agent, "edited__pay", &proposed).await;
    let view = opened(&platforms, &id, "show_everything", 2).await;
    let refused = send(&platforms, &view, Some("approve"), "", Some("{\"amount\": 1}")).await;
    assert!(
        refused["errors"]["args"]
            .as_str()
            .is_some_and(|said| said.contains("hides cannot be changed")),
        "{refused}"
    );
    let edited = "{\"amount\": 5, \"card\": \"‹hidden: string, 4 characters›\", \"note\": \"n\"}";
    let sent = platforms.slack.fill_in(&view, Some("approve"), "", Some(edited));
    for _ in 0..2 {
        // Slack sends an envelope again whose acknowledgement it did not see: it changes nothing, and closes the modal as before.
        let answer = platforms
            .slack
            .deliver(&platforms.slack_sockets, sent.clone())
            .await;
        assert_eq!(answer["payload"], Value::Null, "{answer}");
    }
    let seen = request(&agent, &id).await;
    assert_eq!(
        (
            &seen["status"],
            &seen["edit"]["tool_args"]["amount"],
            seen["votes"].as_array().map(Vec::len)
        ),
        (&json!("approved"), &json!(5), Some(1)),
        "{seen}"
    );
    let consume = json!({"tool_name": "edited__pay", "tool_args": proposed});
    let path = format!("/api/confirmations/{id}/consume");
    let (_, granted) = agent.post(&path, &consume).await;
    assert_eq!(
        granted["tool_args"],
        json!({"amount": 5, "card": "4111", "note": "n"})
    );

    // The same from a private message of the Feishu bot.
    let id = ask(&agent, "edited__pay", &proposed).await;
    let card = platforms
        .feishu
        .wait_for_message(
            fake_feishu::CHAT,
            |message| message.visible_text().contains(&id),
            SOON,
        )
        .await;
    let show = platforms.feishu.click_show(&card, DANA.feishu);
    platforms.feishu.deliver(&platforms.feishu_sockets, show).await;
    let alone = format!("oc_p2p_{}", DANA.feishu);
    let page = platforms
        .feishu
        .wait_for_message(&alone, |message| !message.decisions().is_empty(), SOON)
        .await;
    let told = async |typed: &str| {
        let press = platforms.feishu.click_edited(&page, DANA.feishu);
        let press = press.with_input("arguments", typed);
        let answer = platforms.feishu.deliver(&platforms.feishu_sockets, press).await;
        answer["toast"].clone()
    };
    let known = async || {
        loop {
            let toast = told("no JSON").await;
            if !toast.to_string().contains("not the card of the request") {
                return toast;
            }
            // Polling is all there is: the message stands a moment before the server knows where.
            tokio::time::sleep(std::time::Duration::from_millis(15)).await;
        }
    };
    let toast = tokio::time::timeout(SOON, known()).await.expect("a known page");
    assert_eq!(toast["type"], "warning", "{toast}");
    let toast = told(edited).await;
    assert_eq!(toast["type"], "success", "{toast}");
    assert_eq!(request(&agent, &id).await["edit"]["tool_args"]["amount"], 5);
}
