//! Tokens, answers and errors, seen through posts and edits.

use std::time::Duration;

use gatepost_channel::{CardForm, Channel as _, Failure, MessageRef, Posted};
use serde_json::json;

use crate::fake::{Answer, Fake, channel, coded, impatient_channel, ok, refusal, token};
use crate::talk::{key, name, pending, post, posted_message, there};

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
            assert_eq!(channel.edit(&there(), &pending()).await, Ok(CardForm::LaidOut));
        }
        assert_eq!(fake.asked().len(), 4, "{expire}");
    }
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
    // Where another scope is missing, none is advised that would not help.
    let body =
        json!({"code": 99_991_672, "msg": "One of the following scopes is required: [im:chat:readonly]"});
    let (posted, _) = post([coded(400, &body)]).await;
    let Posted::NotSent(Failure::Setup { why }) = posted else {
        panic!("{posted:?}")
    };
    assert!(
        why.ends_with("(missing: im:chat:readonly)") && !why.contains("send_as_bot"),
        "{why}"
    );
}
