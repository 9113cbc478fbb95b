//! The step: what happened enters the memory.

use super::next::next;
use super::room;
use super::steer::subtasks_ended;
use super::{Effect, Event, Setting, digest};
use crate::agent::memory::{CallState, Child, Entry, Memory};
use crate::agent::model::Reply;
use crate::agent::turn::{self, Taken};
use crate::gate::DenyReason;

/// Takes what happened into the memory and says what is next.
pub fn step(mut memory: Memory, event: Event, setting: &Setting<'_>) -> (Memory, Effect) {
    match event {
        Event::Resumed => resume(&mut memory, setting),
        Event::Entered => {}
        Event::Replied(reply) => hear_model(&mut memory, reply, setting),
        Event::Permitted { at, permit } => {
            let request = memory.call(at).and_then(|call| call.state.request().cloned());
            memory.set(at, CallState::Running { permit, request });
            return (memory, Effect::Begin { at });
        }
        Event::Begun { at } => return (memory, Effect::Send { at }),
        Event::Asked { at, request } => {
            memory.note_request(&request);
            memory.set(at, CallState::Waiting { request });
        }
        Event::Denied { at, reason, told } => {
            let told = room::result(told, &memory, setting);
            if reason == DenyReason::RejectedByOperator
                && let Some(digest) = memory.call(at).and_then(digest)
                && !memory.rejected.contains(&digest)
            {
                memory.rejected.push(digest);
            }
            memory.set(at, CallState::Denied { reason, result: told });
        }
        Event::Ran { at, told } => {
            let result = room::result(told, &memory, setting);
            memory.set(at, CallState::Done { result });
        }
        Event::Vanished { at } => lose(&mut memory, at),
        Event::Granted { at, tool } => {
            let result = format!("granted: `{tool}` is yours in this movement; call it");
            let here = setting.scene.movement.name.clone();
            memory.granted.entry(here).or_default().insert(tool);
            memory.set(at, CallState::Done { result });
        }
        Event::Spawned { at, child, piece } => {
            let result = format!("begun as {child}; its result comes from `wait_subtasks`");
            memory.children.push(Child {
                job: child,
                piece,
                told: false,
            });
            memory.set(at, CallState::Done { result });
        }
        Event::SubtasksEnded { at, told } => {
            let told = room::result(told, &memory, setting);
            if let Some(effect) = subtasks_ended(&mut memory, at, told, setting) {
                return (memory, effect);
            }
        }
    }
    let effect = next(&mut memory, setting);
    (memory, effect)
}

/// A call found running was begun by a worker that did not say how it ended.
fn resume(memory: &mut Memory, setting: &Setting<'_>) {
    for at in 0..memory.calls().len() {
        let lost = memory.call(at).is_some_and(|call| {
            matches!(call.state, CallState::Running { .. }) && !setting.may_repeat(&call.tool)
        });
        if lost {
            lose(memory, at);
        }
    }
}

fn lose(memory: &mut Memory, at: usize) {
    if let Some(CallState::Running { permit, request }) = memory.call(at).map(|call| call.state.clone()) {
        let number = memory.put_question();
        memory.set(
            at,
            CallState::Unsure {
                permit,
                request,
                happened: None,
                number,
            },
        );
    }
}

/// Takes a reply.
fn hear_model(memory: &mut Memory, reply: Reply, setting: &Setting<'_>) {
    let number = memory.replies;
    memory.replies = memory.replies.saturating_add(1);
    memory.usage = memory.usage.plus(reply.usage);
    let said = |text| Entry::Model {
        text,
        calls: Vec::new(),
    };
    match turn::take(reply, number, setting) {
        Taken::Turn(turn) => {
            // Calls that were refused as they stand are no way on, however many there are.
            if turn
                .calls
                .iter()
                .all(|call| matches!(call.state, CallState::Done { .. }))
            {
                memory.mistakes = memory.mistakes.saturating_add(1);
            } else {
                (memory.idle, memory.mistakes) = (0, 0);
            }
            memory.turn = Some(turn);
        }
        Taken::Words(text) => {
            memory.idle = memory.idle.saturating_add(1);
            memory.history.push(said(Some(text)));
            memory.history.push(Entry::User(
                "Nobody reads what you write beside your calls. Go on with a call; when you are done, or need \
                 something from the user, call `complete`."
                    .to_owned(),
            ));
        }
        Taken::Unusable { text, note } => {
            memory.idle = memory.idle.saturating_add(1);
            memory
                .history
                .push(said(Some(text.unwrap_or_else(|| "(nothing)".to_owned()))));
            memory.history.push(Entry::User(note));
        }
    }
}
