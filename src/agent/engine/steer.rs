//! Steering: what control-flow calls lead to.

use super::next::{ask, close};
use super::{Effect, Setting};
use crate::agent::control::{Control, Steer};
use crate::agent::memory::{CallState, Memory};
use crate::gate::Arguments;
use crate::gate::json::ReadLimits;
use crate::job::finish::Ending;

/// Does what a planned control-flow call leads to; `None` when the call is over and the run looks on.
pub(super) fn steer(memory: &mut Memory, at: usize, tool: Control, setting: &Setting<'_>) -> Option<Effect> {
    let steered = memory
        .call(at)
        .and_then(|call| Arguments::read(call.args.as_bytes(), ReadLimits::bytes(call.args.len())).ok())
        .ok_or_else(|| "its arguments cannot be read".to_owned())
        .and_then(|args| tool.steer(&args, setting.scene));
    let steer = match steered {
        Ok(steer) => steer,
        // It was sound when it was taken; what came between (a limit, say) made it void.
        Err(why) => {
            let result = format!("error: {why}");
            memory.set(at, CallState::Done { result });
            return None;
        }
    };
    match steer {
        // What is handed over stands until the sub-tasks ended: a job that ends takes its own with it.
        Steer::End(Ending::Completed { .. }) if memory.awaited().next().is_some() => {
            Some(Effect::AwaitSubtasks { at, resume: None })
        }
        Steer::End(ending) => {
            let result = "accepted".to_owned();
            memory.set(at, CallState::Done { result });
            close(memory);
            Some(Effect::Finish(ending))
        }
        Steer::Ask { .. } if memory.questions >= setting.limits.questions => {
            Some(Effect::Finish(Ending::Aborted {
                result: format!("ask_limit: the user was asked {} times", memory.questions),
            }))
        }
        Steer::Ask { wait, question } => {
            memory.questions = memory.questions.saturating_add(1);
            let number = memory.put_question();
            memory.set(
                at,
                CallState::Asking {
                    question,
                    wait,
                    number,
                },
            );
            None
        }
        Steer::Enter { movement } => Some(enter(memory, at, movement, "", setting)),
        Steer::WaitSubtasks { resume } => {
            const NONE: &str = "there are no sub-tasks to wait for";
            match resume {
                _ if memory.awaited().next().is_some() => {
                    memory.set(at, CallState::Subtasks { resume });
                    None
                }
                Some(movement) => Some(enter(memory, at, movement, NONE, setting)),
                None => {
                    let result = NONE.to_owned();
                    memory.set(at, CallState::Done { result });
                    None
                }
            }
        }
        // The scene is older than the sub-task that just began.
        Steer::Spawn { .. } if memory.children.len() >= setting.limits.subtasks => {
            let result = "error: this job may begin no further sub-task".to_owned();
            memory.set(at, CallState::Done { result });
            None
        }
        Steer::Spawn { piece, input } => Some(Effect::Spawn { at, piece, input }),
        Steer::Request { .. } => Some(ask(memory, at)),
    }
}

/// The run leaves its movement, unless that would be once too often.
fn enter(memory: &mut Memory, at: usize, movement: String, told: &str, setting: &Setting<'_>) -> Effect {
    let abort = |result: String| Effect::Finish(Ending::Aborted { result });
    let piece = setting.scene.piece;
    let Some(target) = piece.movement(&movement) else {
        // Neither a movement nor an end: the catalogue's `null`.
        return Effect::Finish(Ending::Failed {
            error: format!("undecided: the piece has no movement `{movement}` to go on in"),
        });
    };
    let gap = if told.is_empty() { "" } else { "\n" };
    let result = format!("{told}{gap}You are now in the movement `{movement}`.");
    memory.set(at, CallState::Done { result });
    close(memory);
    memory.moves = memory.moves.saturating_add(1);
    if memory.moves >= piece.max_movements {
        return abort(format!(
            "max_movements: the run went through {} movements",
            piece.max_movements
        ));
    }
    let visits = memory.visits.entry(movement.clone()).or_default();
    *visits = visits.saturating_add(1);
    // The first movement was entered once without being counted.
    let again = *visits - u32::from(movement != piece.initial_movement).min(*visits);
    let most = target.max_revisits.unwrap_or(setting.limits.revisits);
    if again > most {
        return abort(format!(
            "max_revisits: the movement `{movement}` was entered again {again} times"
        ));
    }
    Effect::Enter { movement }
}

pub(super) fn subtasks_ended(
    memory: &mut Memory,
    at: usize,
    told: String,
    setting: &Setting<'_>,
) -> Option<Effect> {
    for child in &mut memory.children {
        child.told = true;
    }
    match memory.call(at).map(|call| call.state.clone()) {
        Some(CallState::Subtasks {
            resume: Some(movement),
        }) => Some(enter(memory, at, movement, &told, setting)),
        Some(CallState::Subtasks { .. }) => {
            memory.set(at, CallState::Done { result: told });
            None
        }
        // The call that completes the job: it is looked at again, now that nothing is open.
        _ => None,
    }
}
