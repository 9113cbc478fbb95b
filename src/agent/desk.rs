//! The desk: what those who take jobs in from outside need to know of the agents. They write the transactions of the job room
//! themselves; only this room knows pieces and reads memories.

use std::sync::Arc;

use super::memory::{self, Call, Memory};
use super::piece::Pieces;
use crate::job::Job;
use crate::job::answer::{Hear, Question};
use crate::job::progress::Feed;
use crate::job::view::{Activity, CallView};

/// See the module. Clones share it.
#[derive(Debug, Clone)]
pub struct Desk {
    pieces: Arc<Pieces>,
    feed: Option<Feed>,
}

impl Desk {
    /// A desk for jobs of these pieces.
    pub const fn new(pieces: Arc<Pieces>) -> Self {
        Self { pieces, feed: None }
    }

    /// The same desk, at which one can hear what goes on in the runs of this process.
    #[must_use]
    pub fn with_feed(self, feed: Feed) -> Self {
        Self {
            feed: Some(feed),
            ..self
        }
    }

    /// What goes on in the runs of this process.
    pub const fn feed(&self) -> Option<&Feed> {
        self.feed.as_ref()
    }

    /// The pieces there are.
    pub fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    /// The movement in which a piece starts; `None` when there is no such piece.
    pub fn entrance(&self, piece: &str) -> Option<&str> {
        Some(&self.pieces.get(piece)?.initial_movement)
    }

    /// Puts an answer into a memory: what [`Answer`](crate::job::answer::Answer) is handed.
    pub const fn hear(&self) -> Hear {
        memory::hear
    }

    /// What goes on in a run.
    pub fn activity(&self, job: &Job) -> Option<Activity> {
        let memory = Memory::read(&job.memory, &job.input).ok()?;
        let call = |call: &Call| CallView {
            id: call.id.clone(),
            tool: call.tool.clone(),
            state: call.state.word(),
            confirmation_id: call.state.request().map(ToString::to_string),
        };
        Some(Activity {
            replies: memory.replies,
            movements: memory.moves.saturating_add(1),
            requests: memory.cards,
            compactions: memory.compactions,
            input_tokens: memory.usage.input_tokens,
            cached_tokens: memory.usage.cached_tokens,
            output_tokens: memory.usage.output_tokens,
            cost_micros: memory.usage.cost_micros,
            calls: memory.calls().iter().map(call).collect(),
        })
    }

    /// What a parked run asks: the question to its user, or which call has an unknown outcome.
    pub fn question(&self, job: &Job) -> Option<Question> {
        Memory::read(&job.memory, &job.input).ok()?.question()
    }
}
