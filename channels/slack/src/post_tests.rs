//! Posting, editing and telling: what is sent, and what follows when the content is refused.

use gatepost_channel::{CardForm, Failure, Inert, Posted, PrivateNotice};
use serde_json::{Value, json};

use crate::SlackChannel;
use crate::fake_api::{at, edit, open_card, post, posted, refuses, says, settled_card, with_api};

#[tokio::test]
async fn a_post_says_where_it_stands_and_expands_nothing() {
    let (outcome, seen) = post(vec![posted()]).await;
    assert_eq!(outcome, Posted::At(at()));
    assert_eq!(seen[0].path, "/api/chat.postMessage");
    assert_eq!(seen[0].authorization, "Bearer xoxb-canary-slack-77aa");
    let body = &seen[0].body;
    assert_eq!(body["channel"], "C0APPROVE1");
    assert_eq!(body["text"], "Approval needed: cr_01hzy3v7k9");
    for switched_off in ["mrkdwn", "link_names", "unfurl_links", "unfurl_media"] {
        assert_eq!(body[switched_off], Value::Bool(false), "{switched_off}");
    }
    assert_eq!(body["parse"], "none");
    assert_eq!(
        body["metadata"]["event_payload"],
        json!({ "request": "cr_01hzy3v7k9", "attempt": "attempt-1" })
    );
}

#[tokio::test]
async fn ok_without_a_place_is_an_open_outcome() {
    let (outcome, _) = post(vec![says(200, json!({ "ok": true }))]).await;
    assert_eq!(
        outcome,
        Posted::Unknown {
            why: "answer_without_place".into()
        }
    );
}

#[tokio::test]
async fn refused_content_is_posted_once_more_in_its_least_form() {
    let (outcome, seen) = post(vec![refuses("invalid_blocks"), posted()]).await;
    assert_eq!(outcome, Posted::Minimal(at()));
    let minimal = seen[1].body.to_string();
    assert!(minimal.contains("cr_01hzy3v7k9") && minimal.contains("\"reject\""));
    assert!(!minimal.contains("\"approve\"") && !minimal.contains("50000"));

    let (outcome, _) = post(vec![refuses("msg_blocks_too_long"), refuses("invalid_blocks")]).await;
    assert_eq!(
        outcome,
        Posted::NotSent(Failure::Content {
            why: "invalid_blocks".into()
        })
    );

    let (outcome, _) = post(vec![refuses("invalid_blocks"), refuses("fatal_error")]).await;
    assert_eq!(
        outcome,
        Posted::Unknown {
            why: "fatal_error".into()
        }
    );
}

#[tokio::test]
async fn rh_202_a_settled_card_loses_its_buttons_in_any_case() {
    let ok = says(200, json!({ "ok": true }));
    let refusals = vec![refuses("msg_too_long"), refuses("invalid_blocks"), ok];
    let (outcome, seen) = edit(refusals, &settled_card()).await;
    assert_eq!(outcome, Ok(CardForm::Minimal));
    assert_eq!(seen[2].path, "/api/chat.update");
    assert_eq!(seen[2].body["blocks"], json!([]));
    assert_eq!(seen[2].body["text"], "Approval needed: cr_01hzy3v7k9");

    let (outcome, seen) = edit(
        vec![refuses("msg_too_long"), refuses("invalid_blocks")],
        &open_card(),
    )
    .await;
    assert_eq!(
        outcome,
        Err(Failure::Content {
            why: "invalid_blocks".into()
        })
    );
    assert_eq!(
        seen.len(),
        2,
        "an open card is not reduced to a line without buttons"
    );
}

#[tokio::test]
async fn a_notice_is_inert() {
    let text = Inert::new("<!channel> R&D: *already* approved");
    let ((), seen) = with_api(
        vec![says(200, json!({ "ok": true }))],
        async |channel: SlackChannel| {
            channel.tell("U0AAAA1111", "C0APPROVE1", &text).await.unwrap();
        },
    )
    .await;
    assert_eq!(seen[0].path, "/api/chat.postEphemeral");
    assert_eq!(seen[0].body["user"], "U0AAAA1111");
    assert_eq!(
        seen[0].body["text"],
        "&lt;!channel&gt; R&amp;D: *already* approved"
    );
    assert_eq!(
        seen[0].body["blocks"][0]["text"],
        json!({ "type": "plain_text", "text": text.as_str(), "emoji": false })
    );
}
