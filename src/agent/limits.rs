//! What a run may spend: the configuration sets it for all pieces, a piece for itself.

use std::time::Duration;

use crate::config::limits::LimitsConfig;

/// What a run may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Replies of the model.
    pub max_iterations: u32,
    /// Replies in a row without a call.
    pub text_only: u32,
    /// Replies in a row of which no call could be acted upon.
    pub mistakes: u32,
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
    /// Bytes of everything that the run remembers, as it is stored.
    pub memory: usize,
    /// How often an idempotent call whose answer is lost is sent at most, before an operator is asked.
    pub sends: u32,
    /// The pause before it is sent again.
    pub resend_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            context: 100_000,
            resend_pause: Duration::ZERO,
            ..Self::from(&LimitsConfig::default())
        }
    }
}

impl From<&LimitsConfig> for Limits {
    fn from(config: &LimitsConfig) -> Self {
        let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Self {
            max_iterations: config.max_iterations,
            text_only: config.text_only,
            mistakes: config.mistakes,
            cards: config.cards,
            questions: config.asks,
            calls_per_reply: size(config.calls_per_reply),
            revisits: config.revisits,
            subtask_depth: config.subtask_depth,
            subtasks: size(config.subtasks),
            context: usize::MAX,
            memory: size(config.memory),
            sends: config.sends,
            resend_pause: Duration::from_millis(500),
        }
    }
}

/// What a piece sets for its own runs; what it leaves out is the configuration's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnLimits {
    /// Replies of the model.
    pub max_iterations: Option<u32>,
    /// Replies in a row without a call.
    pub text_only: Option<u32>,
    /// Replies in a row of which no call could be acted upon.
    pub mistakes: Option<u32>,
    /// Requests to people.
    pub cards: Option<u32>,
    /// Questions to people.
    pub asks: Option<u32>,
    /// How deep sub-tasks of sub-tasks go.
    pub subtask_depth: Option<u32>,
    /// Sub-tasks of one job.
    pub subtasks: Option<u32>,
}

impl Limits {
    /// These, with what a piece sets for itself.
    #[must_use]
    pub fn with(self, own: &OwnLimits) -> Self {
        let subtasks = own.subtasks.and_then(|number| usize::try_from(number).ok());
        Self {
            max_iterations: own.max_iterations.unwrap_or(self.max_iterations),
            text_only: own.text_only.unwrap_or(self.text_only),
            mistakes: own.mistakes.unwrap_or(self.mistakes),
            cards: own.cards.unwrap_or(self.cards),
            questions: own.asks.unwrap_or(self.questions),
            subtask_depth: own.subtask_depth.unwrap_or(self.subtask_depth),
            subtasks: subtasks.unwrap_or(self.subtasks),
            ..self
        }
    }
}
