//! The verbs against a scripted platform: what is sent, and what each answer comes to.

use gatepost_channel::{Inert, Opened, ReplyTone, Tone, Verified};
use serde_json::{Value, json};

use super::*;
use crate::card::BUDGET;
use crate::fake::{Answer, Fake, channel, coded, impatient_channel, ok, refusal, token};
use crate::fixture::{self, card, press, sealed, signed};

fn key() -> PostKey {
    PostKey("cr-vector-0001".into())
}

fn pending() -> Card {
    card(Tone::Pending, "{\"amount\": 51000}", true)
}

fn posted_message() -> Answer {
    ok(&json!({"message_id": "om_demo_0602", "chat_id": "oc_vector_chat_1"}))
}

fn there() -> MessageRef {
    MessageRef {
        chat: "oc_vector_chat_1".into(),
        message: "om_vector_message_1".into(),
    }
}

async fn post(script: impl IntoIterator<Item = Answer>) -> (Posted, Fake) {
    let fake = Fake::start(script).await;
    let posted = fake.channel().post(&pending(), &key()).await;
    (posted, fake)
}

async fn edit(script: impl IntoIterator<Item = Answer>) -> (Result<(), Failure>, Fake) {
    let fake = Fake::start(script).await;
    let edited = fake.channel().edit(&there(), &pending()).await;
    (edited, fake)
}

/// A short name for what came of a post.
fn name(posted: &Posted) -> &'static str {
    match posted {
        Posted::At(_) => "at",
        Posted::Unknown { .. } => "unknown",
        Posted::NotSent(failure) => class(failure),
    }
}

fn class(failure: &Failure) -> &'static str {
    match failure {
        Failure::Retry { .. } => "retry",
        Failure::Target { .. } => "target",
        Failure::Setup { .. } => "setup",
        Failure::Content { .. } => "content",
        Failure::Gone { .. } => "gone",
    }
}

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
    assert_eq!(channel.edit(&there(), &pending()).await, Ok(()));
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
async fn an_expired_token_is_replaced_and_the_card_posted_once() {
    for status in [200, 400, 401] {
        for code in [99_991_663, 99_991_664, 99_991_671] {
            let fake = Fake::start([refusal(status, code), posted_message()])
                .await
                .tokens([token("t-first"), token("t-second")]);
            let posted = fake.channel().post(&pending(), &key()).await;
            assert_eq!(
                posted,
                Posted::At(MessageRef {
                    chat: "oc_vector_chat_1".into(),
                    message: "om_demo_0602".into()
                })
            );
            let bearers: Vec<_> = fake
                .calls()
                .iter()
                .map(|c| c.header("authorization").unwrap().to_owned())
                .collect();
            assert_eq!(bearers, ["Bearer t-first", "Bearer t-second"]);
        }
    }
}

#[tokio::test]
async fn a_fresh_token_that_is_refused_ends_it() {
    let (posted, fake) = post([refusal(200, 99_991_663), refusal(200, 99_991_663)]).await;
    assert_eq!(name(&posted), "setup", "{posted:?}");
    assert_eq!(fake.asked().len(), 4, "two tokens, two tries, no more");
}

#[tokio::test]
async fn without_a_token_nothing_is_sent() {
    for (answers, expected) in [
        (vec![refusal(200, 10_003)], "setup"),
        (vec![refusal(400, 10_014)], "setup"),
        (vec![refusal(200, 10_015)], "setup"),
        (vec![coded(200, &json!({"code": 0}))], "retry"),
        (
            vec![coded(200, &json!({"code": 0, "tenant_access_token": ""}))],
            "retry",
        ),
        (
            vec![coded(
                200,
                &json!({"code": 0, "tenant_access_token": "t-a\r\nx: y"}),
            )],
            "retry",
        ),
        (vec![Answer::Drop], "retry"),
        (vec![refusal(429, 99_991_400)], "retry"),
        (vec![coded(500, &json!({}))], "retry"),
    ] {
        let fake = Fake::start([]).await.tokens(answers);
        let posted = fake.channel().post(&pending(), &key()).await;
        assert_eq!(name(&posted), expected, "{posted:?}");
        assert!(fake.calls().is_empty());
    }
}

#[tokio::test]
async fn odd_lives_of_a_token_cause_no_hot_loop() {
    for expire in [json!(0), json!(-1), json!("7200"), json!(null), json!(1e300)] {
        let odd = coded(
            200,
            &json!({"code": 0, "tenant_access_token": "t-odd", "expire": expire}),
        );
        let fake = Fake::start([ok(&json!({})), ok(&json!({})), ok(&json!({}))])
            .await
            .tokens([odd]);
        let channel = fake.channel();
        for _ in 0..3 {
            assert_eq!(channel.edit(&there(), &pending()).await, Ok(()));
        }
        assert_eq!(fake.asked().len(), 4, "{expire}");
    }
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
        coded_only(230_022),
        coded_only(230_028),
        coded_only(230_001),
    ] {
        let (posted, fake) = post([coded(400, &body), posted_message()]).await;
        assert_eq!(name(&posted), "at", "{body}");
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
    assert_eq!(edited, Ok(()));
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
async fn the_platforms_wish_to_wait_is_kept_within_reason() {
    let limited = |headers: Vec<(&'static str, &str)>, body: &str| {
        let headers = headers
            .into_iter()
            .map(|(name, value)| (name, value.to_owned()))
            .collect();
        Answer::Http(429, headers, body.to_owned())
    };
    let code = r#"{"code":99991400,"msg":"request trigger frequency limit"}"#;
    for (answer, seconds) in [
        (limited(vec![("x-ogw-ratelimit-reset", "7")], code), Some(7)),
        (
            limited(vec![("x-ogw-ratelimit-reset", "7"), ("retry-after", "2")], code),
            Some(7),
        ),
        (limited(vec![("retry-after", "2")], ""), Some(2)),
        (limited(vec![("retry-after", "0")], ""), Some(1)),
        (limited(vec![("retry-after", "99999999")], ""), Some(600)),
        (limited(vec![("retry-after", "soon")], ""), None),
        (
            limited(vec![("retry-after", "Sun, 29 Nov 2026 12:00:05 GMT")], ""),
            None,
        ),
        (limited(vec![], r#"{"retry_after":1}"#), None),
        (coded(400, &json!({"code": 230_020})), None),
        (Answer::Http(503, vec![], "upstream".into()), None),
    ] {
        let (posted, _) = post([answer]).await;
        let Posted::NotSent(Failure::Retry { after, .. }) = posted else {
            panic!("{posted:?}")
        };
        assert_eq!(after, seconds.map(Duration::from_secs));
    }
}

#[tokio::test]
async fn a_post_without_a_clear_answer_may_stand() {
    for answer in [
        Answer::Drop,
        Answer::Http(200, vec![], "<html>".into()),
        Answer::Http(200, vec![], String::new()),
        Answer::Http(200, vec![], "x".repeat(70_000)),
        Answer::Http(502, vec![], "bad gateway".into()),
        ok(&json!({})),
        ok(&json!({"message_id": "../x"})),
        coded(200, &json!({"code": "0", "data": {"message_id": "om_1"}})),
    ] {
        let (posted, _) = post([answer.clone()]).await;
        assert_eq!(name(&posted), "unknown", "{answer:?}: {posted:?}");
    }
}

#[tokio::test]
async fn a_platform_that_hangs_is_given_up_and_the_card_may_stand() {
    let fake = Fake::start([Answer::Hang]).await;
    let channel = impatient_channel(&fake.address, Duration::from_millis(200));
    let posted = channel.post(&pending(), &key()).await;
    assert_eq!(
        posted,
        Posted::Unknown {
            why: "timeout".into()
        }
    );
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (posted, fake) = post([Answer::Http(
        302,
        vec![("location", "/elsewhere".into())],
        String::new(),
    )])
    .await;
    assert_eq!(name(&posted), "setup", "{posted:?}");
    assert_eq!(fake.calls().len(), 1);
}

#[tokio::test]
async fn no_error_names_an_address_a_secret_or_a_message() {
    let mut texts = vec![format!(
        "{:?}",
        channel("http://127.0.0.1:1").post(&pending(), &key()).await
    )];
    texts.push(format!("{:?}", channel("http://127.0.0.1:1").check().await));
    for answer in [
        refusal(400, 230_002),
        refusal(400, 230_099),
        Answer::Drop,
        refusal(200, 99_991_672),
    ] {
        let (posted, fake) = post([answer.clone(), answer.clone()]).await;
        texts.push(format!("{posted:?}"));
        texts.push(format!("{:?}", fake.channel()));
    }
    for text in texts {
        for canary in [
            "secret-vector",
            "t-first",
            "canary",
            "127.0.0.1:",
            "51000",
            "http://",
        ] {
            assert!(!text.contains(canary), "{canary} in {text}");
        }
    }
}

#[tokio::test]
async fn a_closed_port_means_not_sent() {
    let posted = channel("http://127.0.0.1:1").post(&pending(), &key()).await;
    assert_eq!(name(&posted), "retry", "{posted:?}");
}

#[tokio::test]
async fn missing_scopes_are_named() {
    let body = json!({"code": 99_991_672, "msg": "Access denied. One of the following scopes is required: [im:message, im:message:send_as_bot]. See https://x.example/"});
    let (posted, _) = post([coded(400, &body)]).await;
    let Posted::NotSent(Failure::Setup { why }) = posted else {
        panic!("{posted:?}")
    };
    assert!(
        why.ends_with("(missing: im:message, im:message:send_as_bot)"),
        "{why}"
    );
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

#[tokio::test]
async fn health_says_what_to_do() {
    let bot = |status: u8| {
        coded(
            200,
            &json!({"code": 0, "msg": "ok", "bot": {"activate_status": status}}),
        )
    };
    let group = || ok(&json!({"name": "Approvals", "chat_status": "normal"}));
    for (answers, healthy, word) in [
        (vec![bot(2), ok(&json!({"is_in_chat": true}))], true, "fine"),
        (
            vec![bot(2), ok(&json!({"is_in_chat": false}))],
            false,
            "add the bot",
        ),
        (vec![bot(2), refusal(404, 404), group()], true, "fine"),
        (
            vec![bot(2), refusal(404, 404), refusal(400, 230_002)],
            false,
            "add the bot",
        ),
        (
            vec![bot(2), refusal(400, 99_991_672), refusal(400, 99_991_672)],
            true,
            "cannot be told",
        ),
        (vec![bot(3)], false, "publish"),
        (vec![refusal(200, 1_000_040_351)], false, "larksuite"),
        (vec![Answer::Drop], false, "temporary"),
    ] {
        let fake = Fake::start(answers).await;
        let health = fake.channel().check().await;
        assert_eq!(health.healthy, healthy, "{}", health.detail);
        assert!(health.detail.contains(word), "{}", health.detail);
    }
    let fake = Fake::start([]).await.tokens([refusal(200, 10_014)]);
    let health = fake.channel().check().await;
    assert!(
        !health.healthy && health.detail.contains("app_secret"),
        "{}",
        health.detail
    );
}

#[test]
fn tenants_admit_only_their_own_people() {
    let closed = channel("http://127.0.0.1:1");
    assert!(closed.admits(Some("tk_demo_0001")));
    assert!(!closed.admits(Some("tk_other")) && !closed.admits(None) && !closed.admits(Some("")));
}

#[test]
fn a_click_passes_from_bytes_to_answer() {
    let config = FeishuConfig {
        name: "finance-feishu".into(),
        chat_id: "oc_demo_approvals".into(),
        tenants: vec![],
        mode: Mode::Webhook(fixture::secrets()),
    };
    let app = |id: &str| {
        FeishuApp::new(
            reqwest::Client::builder().no_proxy().build().unwrap(),
            Arc::new(fixture::now),
            crate::FeishuAppConfig {
                base_url: "http://127.0.0.1:1".into(),
                app_id: id.into(),
                app_secret: fixture::secret("x"),
            },
        )
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    assert_eq!(app("").unwrap_err().key(), "app_id");
    let channel = FeishuChannel::new(app(fixture::APP).unwrap(), config.clone()).unwrap();
    let webhook = channel.webhook().unwrap();
    let request = signed(&sealed(
        press(&json!({"decision": "approve"})).to_string().as_bytes(),
    ));
    let opened = Verified::check(webhook, &request, fixture::now()).unwrap().open();
    let Opened::Click(click) = opened else {
        panic!("{opened:?}")
    };
    assert_eq!(click.get().app.as_deref(), Some(fixture::APP));
    let answer = webhook.answer(
        click.get(),
        &Reply {
            tone: ReplyTone::Info,
            text: Inert::new("already approved"),
            card: None,
        },
    );
    assert_eq!(answer.status, 200);

    let silent = FeishuConfig {
        mode: Mode::LongConnection {
            verification_token: None,
        },
        ..config
    };
    assert!(
        FeishuChannel::new(app(fixture::APP).unwrap(), silent)
            .unwrap()
            .webhook()
            .is_none()
    );
}

#[test]
fn other_events_are_answered_with_an_empty_object() {
    let mut event = press(&json!({}));
    event["header"]["event_type"] = json!("im.message.receive_v1");
    let request = signed(&sealed(event.to_string().as_bytes()));
    let webhook = FeishuWebhook {
        verifier: fixture::verifier(),
    };
    assert_eq!(
        webhook.verify(&request, fixture::now()),
        Ok(Inbound::Ignored {
            answer: HttpAnswer::json(&json!({})),
            why: "other_event"
        })
    );
}
