//! The engine: from what a run remembers and what just happened to what it remembers now and what is to be done next. Pure:
//! it does nothing itself, so every path through it can be tried, crashes included.
//!
//! [`step`] is a function of the memory alone. A run that dies starts again with [`Event::Resumed`] from what was saved, and
//! what was not saved had no effect yet: whoever does an [`Effect`] with consequences saves the memory first, or with it.

use super::compact;
use super::control::{Control, Steer};
use super::memory::{Call, CallState, Child, Entry, Memory, Past};
use super::model::Reply;
use super::scene::Scene;
use super::sentinel::Sentinel;
use super::turn::{self, Taken};
use crate::gate::json::ReadLimits;
use crate::gate::{Arguments, DenyReason, Digest, ToolName};
use crate::ids::{ConfirmationId, JobId, PermitId};
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
    /// Questions to people.
    pub questions: u32,
    /// Calls in one reply.
    pub calls_per_reply: usize,
    /// How often a movement may be entered again, where the piece does not say.
    pub revisits: u32,
    /// How deep sub-tasks of sub-tasks go.
    pub subtask_depth: u32,
    /// Sub-tasks of one job.
    pub subtasks: usize,
    /// Tokens of the conversation, by our own estimate; more of it is compacted.
    pub context: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_iterations: 50,
            text_only: 3,
            cards: 20,
            questions: 20,
            calls_per_reply: 32,
            revisits: 10,
            subtask_depth: 3,
            subtasks: 16,
            context: 100_000,
        }
    }
}

/// What the engine knows beside the memory: the limits, and what the run may do at this moment.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// What the run may spend.
    pub limits: Limits,
    /// What it may do.
    pub scene: &'a Scene<'a>,
}

impl Setting<'_> {
    pub(super) fn may_call(&self, tool: &str) -> bool {
        self.scene.tools.contains_key(tool)
    }

    pub(super) fn callable(&self) -> impl Iterator<Item = &str> {
        self.scene.tools.keys().copied()
    }

    /// A grant only writes the memory, so it may be given as often as one likes.
    fn may_repeat(&self, tool: &str) -> bool {
        Control::named(tool).is_some() || self.scene.tools.get(tool).copied().unwrap_or(false)
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
    /// People granted the tool that the call asked for.
    Granted {
        /// Which call.
        at: usize,
        /// The tool, as it stands in the request that they saw.
        tool: String,
    },
    /// A sub-task is about to begin.
    Spawned {
        /// Which call.
        at: usize,
        /// Its job.
        child: JobId,
        /// Its piece.
        piece: String,
    },
    /// All sub-tasks that were waited for ended.
    SubtasksEnded {
        /// Which call.
        at: usize,
        /// What the model is told.
        told: String,
    },
    /// The run is in the movement that it was sent to.
    Entered,
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
        /// As what the run parks.
        sentinel: Sentinel,
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
    /// Park until somebody answers, as this sentinel says.
    Park(Sentinel),
    /// Go on in another movement.
    Enter {
        /// Which.
        movement: String,
    },
    /// Begin a sub-task and save the memory that holds it, in one transaction.
    Spawn {
        /// Which call.
        at: usize,
        /// Its piece.
        piece: String,
        /// What it is given.
        input: String,
    },
    /// Look at the sub-tasks, and park when one has not ended.
    AwaitSubtasks {
        /// Which call.
        at: usize,
        /// Where the run goes on; where it is, when `None`.
        resume: Option<String>,
    },
    /// End the run.
    Finish(Ending),
}

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
            if let Some(effect) = subtasks_ended(&mut memory, at, told, setting) {
                return (memory, effect);
            }
        }
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
            memory.idle = 0;
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

/// Does what a planned control-flow call leads to; `None` when the call is over and the run looks on.
fn steer(memory: &mut Memory, at: usize, tool: Control, setting: &Setting<'_>) -> Option<Effect> {
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

fn subtasks_ended(memory: &mut Memory, at: usize, told: String, setting: &Setting<'_>) -> Option<Effect> {
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

/// A call that the gate is asked about, unless a person rejected exactly this call before.
fn ask(memory: &Memory, at: usize) -> Effect {
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
    } else if memory.replies >= setting.limits.max_iterations {
        over("max_iterations", memory.replies)
    } else {
        if compact::compact(&mut memory.history, setting.limits.context) {
            memory.compactions = memory.compactions.saturating_add(1);
        }
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
