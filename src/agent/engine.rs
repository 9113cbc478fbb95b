//! The engine: from what a run remembers and what just happened to what it remembers now and what is to be done next. Pure:
//! it does nothing itself, so every path through it can be tried, crashes included.
//!
//! [`step`] is a function of the memory alone. A run that dies starts again with [`Event::Resumed`] from what was saved, and
//! what was not saved had no effect yet: whoever does an [`Effect`] with consequences saves the memory first, or with it.

use std::collections::BTreeMap;

use super::control::{Control, Steer};
use super::memory::{Call, CallState, Entry, Memory, Past};
use super::model::Reply;
use super::turn::{self, Taken};
use crate::gate::json::ReadLimits;
use crate::gate::{Arguments, DenyReason, Digest, ToolName};
use crate::ids::{ConfirmationId, PermitId};
use crate::job::finish::Ending;

/// What a run may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Replies of the model.
    pub max_iterations: u32,
    /// Replies in a row without a call that can be acted upon.
    pub text_only: u32,
    /// Requests to people.
    pub cards: u32,
    /// Questions to the user.
    pub questions: u32,
    /// Calls in one reply.
    pub calls_per_reply: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_iterations: 50,
            text_only: 3,
            cards: 20,
            questions: 20,
            calls_per_reply: 32,
        }
    }
}

/// What the engine knows beside the memory: the limits, and the tools of the movement with whether each may be sent twice.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// What the run may spend.
    pub limits: Limits,
    /// The tools that the movement may call, and whether each is idempotent.
    pub tools: &'a BTreeMap<String, bool>,
}

impl Setting<'_> {
    pub(super) fn may_call(&self, tool: &str) -> bool {
        self.tools.contains_key(tool)
    }

    pub(super) fn callable(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    fn may_repeat(&self, tool: &str) -> bool {
        self.tools.get(tool).copied().unwrap_or(false)
    }
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// A worker took the job.
    Resumed,
    /// The model answered.
    Replied(Reply),
    /// The call may run under this permit, by policy or by an approval.
    Permitted {
        /// Which call.
        at: usize,
        /// The permit drawn for it.
        permit: PermitId,
    },
    /// The permit was consumed and the memory saved: the call may be sent.
    Begun {
        /// Which call.
        at: usize,
    },
    /// People are asked about the call.
    Asked {
        /// Which call.
        at: usize,
        /// The request.
        request: ConfirmationId,
    },
    /// The call must not run.
    Denied {
        /// Which call.
        at: usize,
        /// Why.
        reason: DenyReason,
        /// What the model is told.
        told: String,
    },
    /// The call ran, or an operator says that it did.
    Ran {
        /// Which call.
        at: usize,
        /// What the model is told.
        told: String,
    },
    /// The call was sent and nobody knows what became of it.
    Vanished {
        /// Which call.
        at: usize,
    },
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Ask the model.
    AskModel,
    /// Ask the gate about a call.
    Judge {
        /// Which call.
        at: usize,
    },
    /// Refuse a call that a person rejected before in this job; nobody is asked again.
    RefuseAgain {
        /// Which call.
        at: usize,
    },
    /// Look at the decisions on the waiting calls, and park when one is still open.
    Await {
        /// The calls and their requests, in order.
        waiting: Vec<(usize, ConfirmationId)>,
    },
    /// Consume the permit and save the memory, in one transaction.
    Begin {
        /// Which call.
        at: usize,
    },
    /// Send a call that is saved as running.
    Send {
        /// Which call.
        at: usize,
    },
    /// Put on record that a call was carried out, as an operator said.
    Settle {
        /// Which call.
        at: usize,
    },
    /// Park until the user answers.
    ParkForWords,
    /// Park until an operator says whether the call was carried out.
    ParkForOutcome,
    /// End the run.
    Finish(Ending),
}

/// Takes what happened into the memory and says what is next.
pub fn step(mut memory: Memory, event: Event, setting: &Setting<'_>) -> (Memory, Effect) {
    match event {
        Event::Resumed => resume(&mut memory, setting),
        Event::Replied(reply) => {
            if let Some(ending) = hear_model(&mut memory, reply, setting) {
                return (memory, Effect::Finish(ending));
            }
        }
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
            if reason == DenyReason::RejectedByOperator
                && let Some(digest) = memory.call(at).and_then(digest)
                && !memory.rejected.contains(&digest)
            {
                memory.rejected.push(digest);
            }
            memory.set(at, CallState::Denied { reason, result: told });
        }
        Event::Ran { at, told } => memory.set(at, CallState::Done { result: told }),
        Event::Vanished { at } => lose(&mut memory, at),
    }
    let effect = next(&mut memory, setting);
    (memory, effect)
}

/// The digest of a call, when its stored form can be read.
pub fn digest(call: &Call) -> Option<Digest> {
    let tool: ToolName = call.tool.parse().ok()?;
    let args = Arguments::read(call.args.as_bytes(), ReadLimits::bytes(call.args.len())).ok()?;
    Some(Digest::of(&tool, &args))
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
        memory.set(
            at,
            CallState::Unsure {
                permit,
                request,
                happened: None,
            },
        );
    }
}

/// Takes a reply; an ending when the model ended the run.
fn hear_model(memory: &mut Memory, reply: Reply, setting: &Setting<'_>) -> Option<Ending> {
    let number = memory.replies;
    memory.replies = memory.replies.saturating_add(1);
    let said = |text| Entry::Model {
        text,
        calls: Vec::new(),
    };
    match turn::take(reply, number, setting) {
        Taken::Turn(turn) => {
            memory.idle = 0;
            memory.turn = Some(turn);
            return steer(memory, setting);
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
    None
}

/// A control-flow call is alone in its turn.
fn steer(memory: &mut Memory, setting: &Setting<'_>) -> Option<Ending> {
    let at = memory.find(|state| *state == CallState::Planned)?;
    let call = memory.call(at)?;
    let tool = Control::named(&call.tool)?;
    let args = Arguments::read(call.args.as_bytes(), ReadLimits::bytes(call.args.len())).ok()?;
    match tool.steer(&args).ok()? {
        Steer::End(ending) => {
            let result = "accepted".to_owned();
            memory.set(at, CallState::Done { result });
            close(memory);
            Some(ending)
        }
        Steer::Ask(_) if memory.questions >= setting.limits.questions => Some(Ending::Aborted {
            result: format!("ask_limit: the user was asked {} times", memory.questions),
        }),
        Steer::Ask(question) => {
            memory.questions = memory.questions.saturating_add(1);
            memory.set(at, CallState::Asking { question });
            None
        }
    }
}

/// What is next, from the memory alone.
fn next(memory: &mut Memory, setting: &Setting<'_>) -> Effect {
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
            }) => {
                memory.set(at, CallState::Running { permit, request });
                Effect::Send { at }
            }
            _ => Effect::ParkForOutcome,
        };
    }
    if memory
        .find(|state| matches!(state, CallState::Asking { .. }))
        .is_some()
    {
        return Effect::ParkForWords;
    }
    if let Some(at) = memory.find(|state| *state == CallState::Planned) {
        let again = memory
            .call(at)
            .and_then(digest)
            .is_some_and(|digest| memory.rejected.contains(&digest));
        return if again {
            Effect::RefuseAgain { at }
        } else {
            Effect::Judge { at }
        };
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
        return Effect::Await { waiting };
    }
    close(memory);
    let over = |word: &str, count: u32| {
        Effect::Finish(Ending::Aborted {
            result: format!("{word}: the run was ended after {count} replies"),
        })
    };
    if memory.idle >= setting.limits.text_only {
        over("text_only_limit", memory.idle)
    } else if memory.replies >= setting.limits.max_iterations {
        over("max_iterations", memory.replies)
    } else {
        Effect::AskModel
    }
}

/// Every call of the turn is over: call and result enter the history together.
fn close(memory: &mut Memory) {
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
