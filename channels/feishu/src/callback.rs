//! What an authentic card action says, and what its sender gets back.
//!
//! Who clicked and where comes from the platform's own fields; what the button carries is looked at only to find the decision
//! and the delivery. Nothing here judges whether the click counts.

use gatepost_channel::{
    Ask, ButtonValue, Click, Decision, HttpAnswer, Inbound, PlatformUser, Reply, ReplyTone, Rewritten, Seen,
    Vantage, Wants,
};
use serde_json::{Map, Value, json};

use crate::card;
use crate::document::{Object, text};
use crate::elements::{ARGUMENTS, EVERYTHING, REASON_TO_EDIT, reason_of, unspelled};

/// Longest id that is taken from a callback, in bytes.
const LONGEST_ID: usize = 256;
/// Longest reason that is taken, in characters; the platform's own input holds 1,000.
const LONGEST_REASON: usize = 2_000;
/// Longest name of a button that is read, and longest scope that is passed on, in bytes; ours are far shorter.
const LONGEST_NAME: usize = 128;
/// Longest toast that is sent, in characters.
const LONGEST_TOAST: usize = 300;

/// Reads a `card.action.trigger`. One that names no decision of ours is authentic but without effect: the clicker is told.
pub(crate) fn read(event: &Object) -> Inbound {
    match press(event) {
        Ok(inbound) => inbound,
        Err(why) => Inbound::Ignored {
            answer: without_effect(),
            why,
        },
    }
}

/// The answer to an event that is of no use here; the platform wants an object.
pub(crate) fn nothing() -> HttpAnswer {
    HttpAnswer::json(&json!({}))
}

/// The answer to a probe of the address.
pub(crate) fn challenge(text: &str) -> HttpAnswer {
    HttpAnswer::json(&json!({ "challenge": text }))
}

/// The answer to a click: a toast, and the card as the request stands now.
pub(crate) fn answer(reply: &Reply) -> HttpAnswer {
    let kind = match reply.tone {
        ReplyTone::Success => "success",
        ReplyTone::Info => "info",
        ReplyTone::Warning => "warning",
        ReplyTone::Error => "error",
    };
    let words: String = reply.text.as_str().chars().take(LONGEST_TOAST).collect();
    let mut answer = json!({ "toast": { "type": kind, "content": words } });
    if let Some(shown) = &reply.card {
        answer["card"] = json!({ "type": "raw", "data": card::lay_out(shown).card });
    }
    HttpAnswer::json(&answer)
}

/// The ids of a person, the most specific first.
pub(crate) fn person(ids: &Object) -> Option<Vec<String>> {
    let open_id = id(ids, &["open_id"])?;
    // A tenant chooses its user ids freely: one that is spelled like an open or union id must not pass for it.
    let spelled_as = |id: &String| ["ou_", "on_"].into_iter().find(|prefix| id.starts_with(prefix));
    let mut known = vec![open_id];
    known.extend(id(ids, &["union_id"]).filter(|id| spelled_as(id) == Some("on_")));
    known.extend(id(ids, &["user_id"]).filter(|id| spelled_as(id).is_none()));
    Some(known)
}

fn press(event: &Object) -> Result<Inbound, &'static str> {
    let replay_key = id(event, &["header", "event_id"]).ok_or("event_id_missing")?;
    let operator = object(event, "event").and_then(|event| object(event, "operator"));
    let ids = operator.and_then(person).ok_or("operator_missing")?;
    let tenant = id(event, &["event", "operator", "tenant_key"]);
    if tenant != id(event, &["header", "tenant_key"]) {
        return Err("tenant_disagrees");
    }
    let chat = id(event, &["event", "context", "open_chat_id"]).ok_or("chat_missing")?;
    let message = id(event, &["event", "context", "open_message_id"]).ok_or("message_missing")?;
    let action = object(event, "event").and_then(|event| object(event, "action"));
    let pressed = pressed(action.ok_or("value_missing")?)?;
    let app = id(event, &["header", "app_id"]);
    let user = PlatformUser {
        ids,
        tenant,
        // The event is of one tenant; one that names another for the person is refused.
        from_elsewhere: false,
    };
    Ok(match pressed {
        Pressed::Shows(button) => Inbound::Ask(Ask {
            app,
            chat,
            message,
            user,
            button,
            wants: Wants::Everything,
            opener: None,
            replay_key,
        }),
        Pressed::Votes(vote) => Inbound::Click(Click {
            app,
            chat,
            message,
            user,
            decision: vote.decision,
            button: vote.button,
            reason: action.and_then(|action| reason(action, &vote)),
            edited: action.filter(|_| vote.edited).map(arguments).transpose()?,
            grant: vote.grant,
            vantage: match vote.seen {
                None => Vantage::Card,
                seen => Vantage::Alone { seen },
            },
            opener: None,
            replay_key,
        }),
    })
}

/// What a button says.
enum Pressed {
    Votes(Voted),
    Shows(Option<ButtonValue>),
}

/// What a button says that votes.
struct Voted {
    decision: Decision,
    button: Option<ButtonValue>,
    grant: Option<String>,
    seen: Option<Seen>,
    /// That the arguments are those of the form.
    edited: bool,
}

/// Reads the button's value, or its name where a client sent a form without the value.
fn pressed(action: &Object) -> Result<Pressed, &'static str> {
    let Some(value) = object(action, "value").filter(|value| !value.is_empty()) else {
        let name = text(action, &["name"]).filter(|name| name.len() <= LONGEST_NAME);
        let named = name.and_then(unspelled).ok_or("value_missing")?;
        return Ok(Pressed::Votes(Voted {
            decision: named.decision,
            button: Some(named.button),
            grant: named.scope.map(str::to_owned),
            seen: named.seen,
            edited: named.edited,
        }));
    };
    let button = text(value, &["b"]).and_then(|text| text.parse().ok());
    let decision = match text(value, &["decision"]) {
        Some("approve") => Decision::Approve,
        Some("reject") => Decision::Reject,
        Some(_) => return Err("decision_unknown"),
        None if text(value, &["show"]) == Some(EVERYTHING) => return Ok(Pressed::Shows(button)),
        None => return Err("decision_missing"),
    };
    // What asks for more than this call, and cannot be read, is no approval of this call either.
    let grant = match value.get("grant") {
        None => None,
        Some(Value::String(scope)) if scope.len() <= LONGEST_NAME => Some(scope.clone()),
        Some(_) => return Err("grant_malformed"),
    };
    // Nor is what speaks of changed arguments an approval of those that stand.
    let edited = match (value.get("edited"), decision) {
        (None, _) => false,
        (Some(Value::Bool(true)), Decision::Approve) => true,
        (Some(_), _) => return Err("edit_malformed"),
    };
    Ok(Pressed::Votes(Voted {
        decision,
        edited,
        button,
        grant,
        seen: text(value, &["seen"]).and_then(|text| text.parse().ok()),
    }))
}

/// What stands in the field for changed arguments, as it came.
fn arguments(action: &Object) -> Result<Rewritten, &'static str> {
    let typed = text(action, &["form_value", ARGUMENTS]);
    typed.map(Rewritten::new).ok_or("arguments_missing")
}

/// A reason typed into the form of this answer; blank is none.
fn reason(action: &Object, vote: &Voted) -> Option<String> {
    let field = if vote.edited {
        REASON_TO_EDIT
    } else {
        reason_of(vote.decision)
    };
    let typed = text(action, &["form_value", field])?.trim();
    (!typed.is_empty()).then(|| typed.chars().take(LONGEST_REASON).collect())
}

fn object<'a>(parent: &'a Object, key: &str) -> Option<&'a Map<String, Value>> {
    parent.get(key)?.as_object()
}

pub(crate) fn id(event: &Object, path: &[&str]) -> Option<String> {
    text(event, path)
        .filter(|id| !id.is_empty() && id.len() <= LONGEST_ID)
        .map(str::to_owned)
}

/// The verifier knows no language, so the client picks one.
fn without_effect() -> HttpAnswer {
    HttpAnswer::json(&json!({ "toast": {
        "type": "error",
        "content": "This button has no effect.",
        "i18n": {
            "en_us": "This button has no effect.",
            "zh_cn": "此按钮无效。",
            "ja_jp": "このボタンは無効です。",
        },
    } }))
}

#[cfg(test)]
#[path = "callback_tests.rs"]
mod tests;
