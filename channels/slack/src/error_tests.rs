//! Slack's refusals: each code, each rate limit, and what a refusal may say.

use gatepost_channel::{Failure, Posted};
use serde_json::{Value, json};

use crate::error::CallError;
use crate::fake_api::{Scripted, edit, post, refuses, retry, says, settled_card};

/// Slack's documented codes, and what each is for a post and for an edit.
#[test]
fn the_table_of_codes_holds() {
    type Class = fn(String) -> Failure;
    let later: Class = |why| Failure::Retry { after: None, why };
    let target: Class = |why| Failure::Target { why };
    let setup: Class = |why| Failure::Setup { why };
    let content: Class = |why| Failure::Content { why };
    let gone: Class = |why| Failure::Gone { why };
    for (codes, class, certain) in [
        (
            "internal_error fatal_error service_unavailable request_timeout",
            later,
            false,
        ),
        (
            "ratelimited rate_limited external_channel_migrating team_added_to_org org_login_required",
            later,
            true,
        ),
        (
            "channel_not_found not_in_channel is_archived is_inactive restricted_action restricted_action_read_only_channel \
             ekm_access_denied no_permission messages_tab_disabled user_not_in_channel message_limit_exceeded",
            target,
            true,
        ),
        (
            "invalid_auth not_authed account_inactive token_revoked token_expired missing_scope not_allowed_token_type \
             app_access_restricted accesslimited access_denied some_new_error",
            setup,
            true,
        ),
        (
            "invalid_blocks invalid_blocks_format msg_blocks_too_long msg_too_long no_text invalid_arguments \
             metadata_too_large invalid_metadata_format markdown_text_conflict block_mismatch invalid_charset",
            content,
            true,
        ),
        (
            "message_not_found cant_update_message edit_window_closed streaming_state_conflict",
            gone,
            true,
        ),
    ] {
        for code in codes.split_whitespace() {
            let body = json!({ "ok": false, "error": code });
            let error = CallError::refused(body.as_object().unwrap(), None);
            assert_eq!(error.clone().of_edit(), class(code.into()), "{code}");
            let expected = if certain {
                Posted::NotSent(class(code.into()))
            } else {
                Posted::Unknown { why: code.into() }
            };
            assert_eq!(error.of_post(), expected, "{code}");
        }
    }
}

#[tokio::test]
async fn rh_304_refusals_under_200_are_failures() {
    for (code, expected) in [
        (
            "channel_not_found",
            Failure::Target {
                why: "channel_not_found".into(),
            },
        ),
        (
            "not_in_channel",
            Failure::Target {
                why: "not_in_channel".into(),
            },
        ),
        (
            "is_archived",
            Failure::Target {
                why: "is_archived".into(),
            },
        ),
        (
            "account_inactive",
            Failure::Setup {
                why: "account_inactive".into(),
            },
        ),
    ] {
        assert_eq!(post(vec![refuses(code)]).await.0, Posted::NotSent(expected));
    }
    for code in ["message_not_found", "cant_update_message"] {
        let (outcome, _) = edit(vec![refuses(code)], &settled_card()).await;
        assert_eq!(outcome, Err(Failure::Gone { why: code.into() }));
    }
}

#[tokio::test]
async fn rh_602_a_dead_token_is_named_and_not_hammered() {
    for status in [200, 400, 401] {
        let answer = says(status, json!({ "ok": false, "error": "token_expired" }));
        let (outcome, seen) = post(vec![answer]).await;
        assert_eq!(
            outcome,
            Posted::NotSent(Failure::Setup {
                why: "token_expired".into()
            })
        );
        assert_eq!(seen.len(), 1);
    }
}

#[tokio::test]
async fn rh_603_a_rate_limit_is_passed_on_with_its_wait() {
    let limited = json!({ "ok": false, "error": "ratelimited" });
    let with_header = |value: &str, body: &Value| Scripted {
        status: 429,
        headers: vec![
            ("retry-after", value.to_owned()),
            ("date", "Sun, 29 Nov 2026 12:00:00 GMT".to_owned()),
        ],
        body: body.to_string(),
    };
    for (answer, seconds) in [
        (with_header("2", &limited), Some(2)),
        (
            says(
                429,
                json!({ "retry_after": 1, "ok": false, "error": "rate_limited" }),
            ),
            Some(1),
        ),
        (with_header("0", &Value::Null), Some(1)),
        (
            with_header("Sun, 29 Nov 2026 12:00:05 GMT", &Value::Null),
            Some(5),
        ),
        (with_header("99999999", &Value::Null), Some(300)),
        (with_header("soon", &Value::Null), None),
    ] {
        let (outcome, seen) = post(vec![answer]).await;
        assert_eq!(outcome, Posted::NotSent(retry(seconds, "ratelimited")));
        assert_eq!(seen.len(), 1, "the outbox repeats, not the adapter");
    }
}

#[tokio::test]
async fn refusals_name_scope_and_place_and_quote_nothing() {
    let scope = says(
        200,
        json!({ "ok": false, "error": "missing_scope", "needed": "chat:write" }),
    );
    assert_eq!(
        post(vec![scope]).await.0,
        Posted::NotSent(Failure::Setup {
            why: "missing_scope (chat:write)".into()
        })
    );
    let line = "[ERROR] bad text canary-arg [json-pointer:/blocks/0/text/text]";
    let blocks = says(
        200,
        json!({ "ok": false, "error": "invalid_blocks", "response_metadata": { "messages": [line] } }),
    );
    assert_eq!(
        post(vec![blocks.clone(), blocks]).await.0,
        Posted::NotSent(Failure::Content {
            why: "invalid_blocks at /blocks/0/text/text".into()
        })
    );
}
