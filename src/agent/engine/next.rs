//! What is next, found in the memory alone.

use super::steer::steer;
use super::{Effect, Setting, digest, room};
use crate::agent::control::Control;
use crate::agent::memory::{CallState, Entry, Memory, Past};
use crate::agent::sentinel::Sentinel;
use crate::ids::ConfirmationId;
use crate::job::finish::Ending;

/// A call that the gate is asked about, unless a person rejected exactly this call before.
pub(super) fn ask(memory: &Memory, at: usize) -> Effect {
    let again = memory
        .call(at)
        .and_then(digest)
        .is_some_and(|digest| memory.rejected.contains(&digest));
    if again {
        Effect::RefuseAgain { at }
    } else {
        Effect::Judge { at }
    }
}

/// What is next, from the memory alone.
pub(super) fn next(memory: &mut Memory, setting: &Setting<'_>) -> Effect {
    if let Some(at) = memory.find(|state| matches!(state, CallState::Running { .. })) {
        return Effect::Send { at };
    }
    if let Some(at) = memory.find(|state| matches!(state, CallState::Unsure { .. })) {
        return match memory.call(at).map(|call| call.state.clone()) {
            Some(CallState::Unsure {
                happened: Some(true), ..
            }) => Effect::Settle { at },
            Some(CallState::Unsure {
                permit,
                request,
                happened: Some(false),
                ..
            }) => {
                memory.set(at, CallState::Running { permit, request });
                Effect::Send { at }
            }
            _ => Effect::Park(Sentinel::WaitingHumanOutcome),
        };
    }
    while let Some(at) = memory.find(|state| *state == CallState::Planned) {
        let control = memory.call(at).and_then(|call| Control::named(&call.tool));
        match control {
            None => return ask(memory, at),
            Some(tool) => {
                if let Some(effect) = steer(memory, at, tool, setting) {
                    return effect;
                }
            }
        }
    }
    for (at, call) in memory.calls().iter().enumerate() {
        match &call.state {
            CallState::Asking { wait, .. } => return Effect::Park(Sentinel::asking(*wait)),
            CallState::Subtasks { resume } => {
                let resume = resume.clone();
                return Effect::AwaitSubtasks { at, resume };
            }
            _ => {}
        }
    }
    let waiting: Vec<_> = memory
        .calls()
        .iter()
        .enumerate()
        .filter_map(|(at, call)| match &call.state {
            CallState::Waiting { request } => Some((at, request.clone())),
            _ => None,
        })
        .collect();
    if !waiting.is_empty() {
        let asks_for_a_tool = |(at, _): &(usize, ConfirmationId)| {
            memory.call(*at).and_then(|call| Control::named(&call.tool)) == Some(Control::RequestTool)
        };
        let sentinel = if waiting.iter().all(asks_for_a_tool) {
            Sentinel::WaitingHumanToolRequest
        } else {
            Sentinel::WaitingHumanApproval
        };
        return Effect::Await { waiting, sentinel };
    }
    close(memory);
    let over = |word: &str, count: u32| {
        Effect::Finish(Ending::Aborted {
            result: format!("{word}: the run was ended after {count} replies"),
        })
    };
    if memory.idle >= setting.limits.text_only {
        over("text_only_limit", memory.idle)
    } else if memory.mistakes >= setting.limits.mistakes {
        over("mistake_limit", memory.mistakes)
    } else if memory.replies >= setting.limits.max_iterations {
        over("max_iterations", memory.replies)
    } else {
        match room::make(memory, setting) {
            Ok(()) => Effect::AskModel,
            Err(error) => Effect::Finish(Ending::Failed { error }),
        }
    }
}

/// Every call of the turn is over: call and result enter the history together.
pub(super) fn close(memory: &mut Memory) {
    let Some(turn) = memory.turn.take() else { return };
    let calls = turn
        .calls
        .into_iter()
        .map(|call| Past {
            result: call.state.result().unwrap_or_default().to_owned(),
            id: call.id,
            tool: call.tool,
            args: call.args,
        })
        .collect();
    memory.history.push(Entry::Model {
        text: turn.text,
        calls,
    });
}
