//! What a failed call means: Slack's codes sorted into the port's classes, and nothing of the call itself in any text.

use std::time::Duration;

use gatepost_channel::{Failure, Posted};
use reqwest::StatusCode;
use serde_json::{Map, Value};

/// A call that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallError {
    /// It may or may not have been carried out.
    Unclear(String),
    /// It certainly was not.
    Refused(Failure),
}

impl CallError {
    /// Our own set-up keeps the call from being made.
    pub(crate) fn setup(why: &str) -> Self {
        Self::Refused(Failure::Setup { why: why.to_owned() })
    }

    /// The platform was busy and did nothing.
    pub(crate) fn throttled(after: Option<Duration>) -> Self {
        Self::Refused(Failure::Retry {
            after,
            why: "ratelimited".to_owned(),
        })
    }

    /// The transport failed. Its own text holds the address, so only its class is told.
    pub(crate) fn transport(error: &reqwest::Error) -> Self {
        if error.is_connect() {
            Self::Refused(Failure::Retry {
                after: None,
                why: "connect_failed".to_owned(),
            })
        } else if error.is_builder() {
            Self::setup("request_not_built")
        } else if error.is_timeout() {
            Self::Unclear("timeout".to_owned())
        } else {
            Self::Unclear("connection_lost".to_owned())
        }
    }

    /// An answer that Slack itself does not give: a proxy's page, half a document.
    pub(crate) fn unreadable(status: StatusCode) -> Self {
        let why = format!("http_{}", status.as_u16());
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => Self::Refused(Failure::Content { why }),
            StatusCode::REQUEST_TIMEOUT => Self::Unclear(why),
            _ if status.is_client_error() || status.is_redirection() => Self::Refused(Failure::Setup { why }),
            _ => Self::Unclear(why),
        }
    }

    /// `ok: false`, under whatever status.
    pub(crate) fn refused(body: &Map<String, Value>, after: Option<Duration>) -> Self {
        let code = body
            .get("error")
            .and_then(Value::as_str)
            .filter(|code| is_short_word(code))
            .unwrap_or("unnamed_error");
        let why = match code {
            "missing_scope" => with_scope(code, body),
            _ => code.to_owned(),
        };
        let class = if code == "invalid_arguments" && names_the_trigger(body) {
            Class::Gone
        } else {
            class(code)
        };
        match class {
            Class::Unclear => Self::Unclear(why),
            Class::Later => Self::Refused(Failure::Retry { after, why }),
            Class::Target => Self::Refused(Failure::Target { why }),
            Class::Setup => Self::Refused(Failure::Setup { why }),
            Class::Content => Self::Refused(Failure::Content {
                why: with_place(&why, body),
            }),
            Class::Gone => Self::Refused(Failure::Gone { why }),
        }
    }

    /// Whether the content was at fault, so that simpler content may pass.
    pub(crate) const fn is_content(&self) -> bool {
        matches!(self, Self::Refused(Failure::Content { .. }))
    }

    /// For a post: an open outcome is an outcome of its own, since Slack cannot recognise a repetition.
    pub(crate) fn of_post(self) -> Posted {
        match self {
            Self::Unclear(why) => Posted::Unknown { why },
            Self::Refused(failure) => Posted::NotSent(failure),
        }
    }

    /// For an edit or a notice: doing it twice does no harm, so an open outcome may be tried again.
    pub(crate) fn of_edit(self) -> Failure {
        match self {
            Self::Unclear(why) => Failure::Retry { after: None, why },
            Self::Refused(failure) => failure,
        }
    }
}

/// What a code asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Unclear,
    Later,
    Target,
    Setup,
    Content,
    Gone,
}

/// Slack's error codes (method reference of `chat.postMessage`, `chat.update`, `chat.postEphemeral`, `auth.test`). A code
/// that is not listed means that somebody has to look: it is never repeated blindly.
fn class(code: &str) -> Class {
    match code {
        "internal_error" | "fatal_error" | "service_unavailable" | "request_timeout" => Class::Unclear,
        "ratelimited"
        | "rate_limited"
        | "external_channel_migrating"
        | "team_added_to_org"
        | "org_login_required" => Class::Later,
        "channel_not_found"
        | "not_in_channel"
        | "is_archived"
        | "is_inactive"
        | "ekm_access_denied"
        | "no_permission"
        | "messages_tab_disabled"
        | "user_not_in_channel"
        | "message_limit_exceeded" => Class::Target,
        "invalid_blocks"
        | "invalid_blocks_format"
        | "msg_blocks_too_long"
        | "msg_too_long"
        | "no_text"
        | "invalid_arguments"
        | "metadata_too_large"
        | "markdown_text_conflict"
        | "view_too_large"
        | "block_mismatch"
        | "invalid_charset" => Class::Content,
        "message_not_found"
        | "thread_not_found"
        | "cannot_reply_to_message"
        | "cant_update_message"
        | "edit_window_closed"
        | "streaming_state_conflict"
        | "expired_trigger_id"
        | "exchanged_trigger_id"
        | "invalid_trigger_id"
        | "trigger_expired"
        | "trigger_exchanged"
        | "hash_conflict"
        | "not_found" => Class::Gone,
        _ if code.starts_with("restricted_action") => Class::Target,
        _ if code.starts_with("invalid_metadata_") => Class::Content,
        _ => Class::Setup,
    }
}

/// Whether a text from outside may stand in a message of ours: one of Slack's codes, ids or times, too plain to hold a token
/// (which has hyphens), an address or words.
pub(crate) fn is_short_word(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.')
}

/// The code and the scope that is missing.
fn with_scope(code: &str, body: &Map<String, Value>) -> String {
    let scope = |text: &&str| {
        text.len() <= 64
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || b":._".contains(&byte))
    };
    match body.get("needed").and_then(Value::as_str).filter(scope) {
        Some(needed) => format!("{code} ({needed})"),
        None => code.to_owned(),
    }
}

/// Whether a complaint about arguments is about the trigger of a modal: a late or used one is told that way too.
fn names_the_trigger(body: &Map<String, Value>) -> bool {
    let messages = body
        .get("response_metadata")
        .and_then(|data| data.get("messages"))
        .and_then(Value::as_array);
    messages
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .any(|line| line.contains("trigger_id"))
}

/// The code and the JSON pointer of the first complaint; its words may quote what was sent and are left out.
fn with_place(code: &str, body: &Map<String, Value>) -> String {
    let place = body
        .get("response_metadata")
        .and_then(|data| data.get("messages"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .find_map(|line| {
            let (_, rest) = line.split_once("[json-pointer:")?;
            let (pointer, _) = rest.split_once(']')?;
            let plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"/_".contains(&byte);
            (pointer.len() <= 64 && pointer.bytes().all(plain)).then_some(pointer)
        });
    match place {
        Some(pointer) => format!("{code} at {pointer}"),
        None => code.to_owned(),
    }
}
