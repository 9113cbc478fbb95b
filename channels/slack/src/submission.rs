//! From an answer in a modal to a click. Who answered is what Slack says; what the modal was opened with comes back in
//! `private_metadata`, which only the app can write; what was chosen and typed stands in `state`.

use gatepost_channel::{Click, Inbound, Refusal, Rewritten, Vantage};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::blocks::REASON;
use crate::callback::{AppId, answer_of, first, id, ignored, person, typed};
use crate::edit::ARGUMENTS;
use crate::modal::{ANSWER, Baggage, CALLBACK, WHY};

/// Longest `private_metadata`, in bytes; Slack keeps 3,000 characters.
const LONGEST_BAGGAGE: usize = 12_000;

/// Reads a `view_submission`.
pub(crate) fn read(payload: &Value, app: &AppId) -> Result<Inbound, Refusal> {
    let incomplete = Refusal::unreadable("payload_incomplete");
    let user = id(payload, "/user/id")?.ok_or(incomplete)?;
    let view = payload
        .get("view")
        .filter(|view| view.is_object())
        .ok_or(incomplete)?;
    if view.get("callback_id").and_then(Value::as_str) != Some(CALLBACK) {
        return Ok(ignored("other_view"));
    }
    let claimed = id(payload, "/api_app_id")?;
    let Some(baggage) = baggage(view) else {
        return Ok(ignored("view_without_answer"));
    };
    let chosen = baggage.answer.as_deref().or_else(|| {
        view.pointer(&format!("/state/values/{ANSWER}/{ANSWER}/selected_option/value"))
            .and_then(Value::as_str)
    });
    let Some((decision, grant)) = chosen.and_then(answer_of) else {
        return Ok(ignored("view_without_answer"));
    };
    let tenants = ["/user/team_id", "/team/id", "/view/team_id", "/enterprise/id"];
    Ok(Inbound::Click(Click {
        app: app.of(claimed)?,
        user: person(payload, user, &tenants)?,
        decision,
        button: baggage.button.parse().ok(),
        reason: typed(view.pointer(&format!("/state/values/{WHY}/{REASON}/value"))),
        grant,
        edited: edited(view),
        vantage: Vantage::Alone {
            seen: baggage.seen.as_deref().and_then(|seen| seen.parse().ok()),
        },
        opener: None,
        replay_key: replay_key(payload, view, user, &baggage.message)?,
        chat: baggage.chat,
        message: baggage.message,
    }))
}

/// What stands in the field for changed arguments, as it came; one that was emptied is an empty text. Nothing where there is no such
/// field.
fn edited(view: &Value) -> Option<Rewritten> {
    let field = view.pointer(&format!("/state/values/{ARGUMENTS}/{ARGUMENTS}"))?;
    let text = field.get("value").and_then(Value::as_str);
    Some(Rewritten::new(text.unwrap_or_default()))
}

/// What the modal was opened with, as far as it can be ours.
fn baggage(view: &Value) -> Option<Baggage> {
    let text = view.get("private_metadata")?.as_str()?;
    let plain =
        |text: &str| (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    let baggage: Baggage = (text.len() <= LONGEST_BAGGAGE)
        .then(|| serde_json::from_str(text).ok())
        .flatten()?;
    (plain(&baggage.chat) && plain(&baggage.message)).then_some(baggage)
}

/// Equal for an exact repeat, different for the next press: Slack gives each submission a trigger of its own. Where it does not,
/// what was chosen and typed tells them apart.
fn replay_key(payload: &Value, view: &Value, user: &str, message: &str) -> Result<String, Refusal> {
    let team = first(payload, &["/team/id", "/user/team_id", "/enterprise/id"])?.unwrap_or_default();
    let view_id = id(view, "/id")?.unwrap_or_default();
    let trigger = id(payload, "/trigger_id")?.unwrap_or_default();
    let state = view
        .pointer("/state/values")
        .map(ToString::to_string)
        .unwrap_or_default();
    let named = [team, user, view_id, trigger, &state].join("|");
    Ok(format!("{message}|{}", hex::encode(Sha256::digest(named))))
}
