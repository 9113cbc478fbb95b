//! Posting and editing against a scripted platform: what is sent, and what each refusal comes to.

use gatepost_channel::{CardForm, Channel as _, Failure, MessageRef, PostKey, Posted, Tone};
use serde_json::{Value, json};

use crate::card::BUDGET;
use crate::fake::{Answer, Fake, coded, ok, refusal, token};
use crate::fixture::card;
use crate::post::LONGEST_KEY;
use crate::talk::{class, edit, key, name, pending, post, posted_message, there};

fn vector(name: &str) -> Value {
    let file: Value = serde_json::from_str(include_str!("../tests/vectors/http_requests.json")).unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    let found = vectors.iter().find(|vector| vector["name"] == name).unwrap();
    found["request"].clone()
}

fn decoded(body: &Value) -> Value {
    match body {
        Value::String(text) if text.is_empty() => Value::Null,
        Value::String(text) => serde_json::from_str(text).unwrap(),
        other => other.clone(),
    }
}

#[tokio::test]
async fn requests_are_those_of_the_official_client() {
    let fake = Fake::start([posted_message(), ok(&json!({}))])
        .await
        .tokens([token("t-vector-token-1")]);
    let channel = fake.channel();
    assert!(matches!(channel.post(&pending(), &key()).await, Posted::At(_)));
    assert_eq!(channel.edit(&there(), &pending()).await, Ok(CardForm::LaidOut));
    let asked = fake.asked();
    for (asked, name) in asked
        .iter()
        .zip(["send_card_to_chat__pre0", "send_card_to_chat", "patch_card"])
    {
        let expected = vector(name);
        assert_eq!(asked.method, expected["method"].as_str().unwrap(), "{name}");
        assert_eq!(asked.path, expected["path"].as_str().unwrap(), "{name}");
        let query: Vec<String> = expected["query"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(k, v)| format!("{k}={}", v.as_str().unwrap()))
            .collect();
        assert_eq!(asked.query, query.join("&"), "{name}");
        for (header, value) in expected["headers"].as_object().unwrap() {
            assert_eq!(asked.header(&header.to_lowercase()), value.as_str(), "{name}");
        }
        let mut sent = asked.body.clone();
        let mut wanted = decoded(&expected["body"]);
        if name != "send_card_to_chat__pre0" {
            assert_eq!(asked.card()["schema"], "2.0");
            // The card is ours; the vector's is an example.
            sent["content"] = json!("");
            wanted["content"] = json!("");
        }
        assert_eq!(sent, wanted, "{name}");
    }
    assert_eq!(asked.len(), 3, "one token serves all");
}

#[tokio::test]
async fn refusals_of_a_post_are_told_apart() {
    for (code, expected) in [
        (230_002, "target"),
        (230_013, "target"),
        (230_034, "target"),
        (230_035, "target"),
        (232_009, "target"),
        (99_992_361, "target"),
        (230_006, "setup"),
        (230_027, "setup"),
        (99_991_672, "setup"),
        (99_991_401, "setup"),
        (99_991_403, "setup"),
        (123_456, "setup"),
        (230_020, "retry"),
        (11_232, "retry"),
        (230_049, "retry"),
        (18_121, "retry"),
        (2_200, "unknown"),
        (1_500, "unknown"),
    ] {
        for status in [200, 400] {
            let (posted, fake) = post([refusal(status, code)]).await;
            assert_eq!(name(&posted), expected, "{code}: {posted:?}");
            assert_eq!(fake.calls().len(), 1, "{code}: asked once");
        }
    }
}

#[tokio::test]
async fn reported_replies_of_a_bot_outside_the_group() {
    let file: Value =
        serde_json::from_str(include_str!("../tests/bugs/RH-304/platform_replies.json")).unwrap();
    let reply = file
        .as_array()
        .unwrap()
        .iter()
        .find(|reply| reply["on"] == "im/v1/messages")
        .unwrap();
    let (posted, _) = post([coded(400, &reply["body"])]).await;
    assert_eq!(
        posted,
        Posted::NotSent(Failure::Target {
            why: "code 230002: add the bot to the group".into()
        })
    );
}

#[tokio::test]
async fn refused_content_is_posted_again_as_a_minimal_card_under_the_same_key() {
    let table: Value =
        serde_json::from_str(include_str!("../tests/bugs/RH-204/feishu_refusal.json")).unwrap();
    let long: Value =
        serde_json::from_str(include_str!("../tests/bugs/RH-204/feishu_too_long.json")).unwrap();
    let coded_only = |code: i64| json!({"code": code, "msg": ""});
    for body in [
        table["body"].clone(),
        long["body"].clone(),
        coded_only(200_860),
        coded_only(230_022),
        coded_only(230_028),
        coded_only(230_001),
    ] {
        let (posted, fake) = post([coded(400, &body), posted_message()]).await;
        assert_eq!(name(&posted), "minimal", "{body}");
        let calls = fake.calls();
        assert_eq!(calls[0].body["uuid"], calls[1].body["uuid"]);
        assert!(calls[0].card().to_string().contains("51000"));
        assert!(
            !calls[1].card().to_string().contains("51000"),
            "the minimal card holds no argument"
        );
        assert!(!calls[1].card().to_string().contains("\"approve\""));

        let (posted, fake) = post([coded(400, &body), coded(400, &body)]).await;
        assert_eq!(name(&posted), "content", "{posted:?}");
        assert_eq!(fake.calls().len(), 2, "once, not for ever");
    }
}

#[tokio::test]
async fn edits_fall_back_too_and_know_when_the_message_is_gone() {
    for code in [230_011, 230_110, 230_031] {
        let (edited, fake) = edit([refusal(400, code)]).await;
        assert_eq!(class(&edited.unwrap_err()), "gone");
        assert_eq!(fake.calls().len(), 1);
    }
    let (edited, fake) = edit([refusal(400, 230_025), ok(&json!({}))]).await;
    assert_eq!(edited, Ok(CardForm::Minimal));
    assert!(!fake.calls()[1].card().to_string().contains("51000"));

    for answer in [Answer::Drop, coded(502, &json!({})), refusal(500, 2_200)] {
        let (edited, _) = edit([answer]).await;
        assert_eq!(class(&edited.unwrap_err()), "retry", "an edit may be repeated");
    }

    let lock = json!({"code": 230_099, "msg": "Failed, ext=ErrCode: 11310; ErrMsg: card action is lock; "});
    let (edited, fake) = edit([coded(400, &lock)]).await;
    assert_eq!(class(&edited.unwrap_err()), "retry", "a click is in flight");
    assert_eq!(fake.calls().len(), 1);

    let fake = Fake::start([]).await;
    let strange = MessageRef {
        chat: "oc".into(),
        message: "../../auth".into(),
    };
    assert_eq!(
        class(&fake.channel().edit(&strange, &pending()).await.unwrap_err()),
        "gone"
    );
    assert!(fake.asked().is_empty());
}

#[tokio::test]
async fn the_body_that_is_sent_keeps_the_budget() {
    let fake = Fake::start([posted_message(), ok(&json!({}))]).await;
    let channel = fake.channel();
    let long = card(Tone::Pending, &"\"\\\n审".repeat(20_000), true);
    assert!(!channel.shows_all(&long) && channel.shows_all(&pending()));
    assert!(matches!(
        channel.post(&long, &PostKey("k".repeat(80))).await,
        Posted::At(_)
    ));
    channel.edit(&there(), &long).await.unwrap();
    let calls = fake.calls();
    assert!(
        calls
            .iter()
            .all(|call| call.size <= BUDGET && call.size > BUDGET - 2_000),
        "{:?}",
        calls[0].size
    );
    assert!(calls[0].body["uuid"].as_str().unwrap().len() <= LONGEST_KEY);
}
