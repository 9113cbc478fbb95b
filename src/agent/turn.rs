//! From a reply of the model to the calls of a turn, strictly: what cannot be told for certain becomes an error to the model,
//! never a call. Nothing is guessed, mended or completed.

use std::collections::BTreeMap;

use super::control::{self, Control};
use super::engine::{Setting, room};
use super::memory::{Call, CallState, Turn};
use super::model::{RawCall, Reply};
use super::size;
use crate::gate::Arguments;
use crate::gate::json::ReadLimits;

/// The most bytes of one call's arguments.
pub const MAX_ARGS: usize = 256 * 1024;
/// The most characters kept of the model's words.
const MAX_TEXT: usize = 32_000;
/// Stands for a tool's name that no endpoint would take back.
const NO_NAME: &str = "invalid_name";

/// What a reply is.
pub(super) enum Taken {
    /// Calls; at least one.
    Turn(Turn),
    /// Words, and nothing to do.
    Words(String),
    /// It cannot be acted upon: the note for the model.
    Unusable {
        /// The words that came with it.
        text: Option<String>,
        /// What is wrong with it.
        note: String,
    },
}

/// Reads a reply. `number` counts the replies of the run; with the place it makes the ids of the calls.
pub(super) fn take(reply: Reply, number: u32, setting: &Setting<'_>) -> Taken {
    let text = reply
        .text
        .map(|text| text.chars().take(MAX_TEXT).collect::<String>())
        .filter(|text| !text.trim().is_empty());
    if !reply.complete {
        let note = "Your last reply was cut off before its end, so nothing of it was carried out. Make it shorter: \
                    one call at a time, with shorter arguments.";
        return Taken::Unusable {
            text,
            note: note.to_owned(),
        };
    }
    if reply.calls.is_empty() {
        return text.map_or_else(
            || Taken::Unusable {
                text: None,
                note: "Your last reply was empty. Call a tool, or call `complete`.".to_owned(),
            },
            Taken::Words,
        );
    }
    let room = room::for_reply(setting.limits.memory);
    if weight(text.as_deref(), &reply.calls) > room {
        return Taken::Unusable {
            text: text.map(|text| size::bounded(text, room / 2)),
            note: "Your last reply was too large, so nothing of it was carried out. Make it shorter: one call at a time, with \
                   shorter arguments."
                .to_owned(),
        };
    }
    if reply.calls.len() > setting.limits.calls_per_reply {
        return Taken::Unusable {
            text,
            note: format!(
                "Your last reply held {} calls, so none was carried out. Make at most {} at a time.",
                reply.calls.len(),
                setting.limits.calls_per_reply
            ),
        };
    }
    let mut uses = BTreeMap::<&str, usize>::new();
    for call in &reply.calls {
        if let Some(id) = call.id.as_deref().filter(|id| !id.trim().is_empty()) {
            *uses.entry(id).or_default() += 1;
        }
    }
    let twice = |call: &RawCall| {
        call.id
            .as_deref()
            .is_some_and(|id| uses.get(id).is_some_and(|n| *n > 1))
    };
    let alone = reply.calls.len() == 1;
    let calls = reply
        .calls
        .iter()
        .enumerate()
        .map(|(at, raw)| read_call(raw, call_id(number, at), twice(raw), alone, setting))
        .collect();
    Taken::Turn(Turn { text, calls })
}

/// The bytes of a reply as they would be stored. What cannot be read is not stored, and counts all the same.
fn weight(text: Option<&str>, calls: &[RawCall]) -> usize {
    let call = |call: &RawCall| {
        let parts = [call.name.as_deref(), call.arguments.as_deref()];
        // What stands around the parts of a call.
        256 + parts.into_iter().flatten().map(size::stored).sum::<usize>()
    };
    text.map_or(0, size::stored) + calls.iter().map(call).sum::<usize>()
}

/// Nine letters and digits, which is what the pickiest endpoints take, for the first 10,000 replies.
fn call_id(number: u32, at: usize) -> String {
    format!("t{number:04}c{at:03}")
}

fn read_call(raw: &RawCall, id: String, twice: bool, alone: bool, setting: &Setting<'_>) -> Call {
    let named = raw.name.as_deref().filter(|name| is_sendable(name));
    let mut call = Call {
        id,
        tool: named.unwrap_or(NO_NAME).to_owned(),
        args: "{}".to_owned(),
        fingerprint: None,
        state: CallState::Planned,
    };
    let args = read_args(raw);
    if let Ok(args) = &args {
        args.canonical().clone_into(&mut call.args);
    }
    let refused = |why: String| CallState::Done {
        result: format!("error: {why}"),
    };
    let control = Control::named(&call.tool).filter(|tool| tool.offer(setting.scene).is_some());
    call.state = if twice {
        refused(
            "two calls of your reply had the same id, so they cannot be told apart and neither was carried out"
                .to_owned(),
        )
    } else if let Some(fault) = raw.fault {
        refused(format!("{fault}; the call was not carried out"))
    } else if named.is_none() {
        refused(format!("that is not the name of a tool. {}", available(setting)))
    } else {
        match args {
            Err(why) => refused(why),
            Ok(args) => match control {
                Some(tool) if tool.alone() && !alone => refused(format!(
                    "`{}` must be the only call of a reply; make it when you have seen the results of the others",
                    call.tool
                )),
                Some(tool) => control::judge(tool, &args, setting.scene),
                None if setting.may_call(&call.tool) => CallState::Planned,
                None => refused(format!(
                    "there is no tool `{}` here. {}",
                    call.tool,
                    available(setting)
                )),
            },
        }
    };
    call
}

/// One rule: missing, empty and blank arguments are `{}`; everything else must be the text of one JSON object.
fn read_args(raw: &RawCall) -> Result<Arguments, String> {
    match raw.arguments.as_deref() {
        None => Ok(Arguments::none()),
        Some(text) if text.trim().is_empty() => Ok(Arguments::none()),
        Some(text) => Arguments::read(text.as_bytes(), ReadLimits::bytes(MAX_ARGS)).map_err(|fault| {
            format!("{fault}; the call was not carried out. Send the arguments as one JSON object")
        }),
    }
}

/// Whether endpoints take the name back in the history.
fn is_sendable(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

fn available(setting: &Setting<'_>) -> String {
    let control = Control::ALL
        .iter()
        .filter(|tool| tool.offer(setting.scene).is_some())
        .map(|tool| tool.name());
    let names: Vec<&str> = setting.callable().chain(control).collect();
    format!("The tools here are: {}", names.join(", "))
}
