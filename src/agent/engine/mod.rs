//! The engine: from what a run remembers and what just happened to what it remembers now and what is to be done next. Pure:
//! it does nothing itself, so every path through it can be tried, crashes included.
//!
//! [`step`] is a function of the memory alone. A run that dies starts again with [`Event::Resumed`] from what was saved, and
//! what was not saved had no effect yet: whoever does an [`Effect`] with consequences saves the memory first, or with it.
//!
//! In reading order: `step` takes an event in, `next` finds what is open in the memory, `steer` does what control-flow calls lead
//! to, `room` keeps the memory within its bound.

use super::control::Control;
use super::limits::Limits;
use super::memory::Call;
use super::model::Reply;
use super::scene::Scene;
use super::sentinel::Sentinel;
use crate::gate::json::ReadLimits;
use crate::gate::{Arguments, DenyReason, Digest, ToolName};
use crate::ids::{ConfirmationId, JobId, PermitId};
use crate::job::finish::Ending;

mod next;
pub(super) mod room;
mod steer;
mod step;

pub use step::step;

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

/// The digest of a call, when its stored form can be read.
pub fn digest(call: &Call) -> Option<Digest> {
    let tool: ToolName = call.tool.parse().ok()?;
    let args = Arguments::read(call.args.as_bytes(), ReadLimits::bytes(call.args.len())).ok()?;
    Some(Digest::of(&tool, &args))
}
