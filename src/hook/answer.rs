//! What a hook gives back: its decision, with data of the point's own type, and what it did beside.

use super::payload::ToolOutput;
use super::{Action, ToolCall};
use crate::gate::Arguments;

/// The answer of a hook at a point whose payload is a `T`.
#[derive(Debug, Clone, PartialEq)]
pub struct HookResult<T> {
    /// What follows.
    pub decision: Decision<T>,
    /// What the hook did beside answering, for the record.
    pub side_effects: Vec<String>,
}

/// What follows an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision<T> {
    /// It has no opinion.
    Silent,
    /// Go on.
    Continue,
    /// Go on with this instead.
    Modify(T),
    /// This is the result; the tool need not run.
    Respond(ToolOutput),
    /// A person shall decide, on this instead if there is one.
    Ask {
        /// Why.
        reason: Option<String>,
        /// Instead of what was shown.
        changed: Option<T>,
    },
    /// The call must not run.
    Deny {
        /// Why, for the model.
        reason: Option<String>,
    },
    /// The turn ends.
    AbortTurn {
        /// Why.
        reason: Option<String>,
    },
    /// The run ends at once.
    HardAbort {
        /// Why.
        reason: Option<String>,
    },
}

impl<T> Decision<T> {
    /// The action behind it; `None` when it has no opinion.
    pub const fn action(&self) -> Option<Action> {
        Some(match self {
            Self::Silent => return None,
            Self::Continue => Action::Continue,
            Self::Modify(_) => Action::Modify,
            Self::Respond(_) => Action::Respond,
            Self::Ask { .. } => Action::Ask,
            Self::Deny { .. } => Action::DenyTool,
            Self::AbortTurn { .. } => Action::AbortTurn,
            Self::HardAbort { .. } => Action::HardAbort,
        })
    }

    /// Why, in its own words.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Ask { reason, .. }
            | Self::Deny { reason }
            | Self::AbortTurn { reason }
            | Self::HardAbort { reason } => reason.as_deref(),
            Self::Silent | Self::Continue | Self::Modify(_) | Self::Respond(_) => None,
        }
    }
}

impl<T> From<Decision<T>> for HookResult<T> {
    fn from(decision: Decision<T>) -> Self {
        Self {
            decision,
            side_effects: Vec::new(),
        }
    }
}

impl<T> HookResult<T> {
    /// No opinion.
    pub fn silent() -> Self {
        Decision::Silent.into()
    }

    /// The call must not run; the model is told this.
    pub fn blocked(error: impl Into<String>) -> Self {
        Decision::Deny {
            reason: Some(error.into()),
        }
        .into()
    }

    /// The same answer, with something that the hook did.
    #[must_use]
    pub fn and_did(mut self, side_effect: impl Into<String>) -> Self {
        self.side_effects.push(side_effect.into());
        self
    }

    /// Whether the call may go on as far as this hook is concerned.
    pub const fn allow(&self) -> bool {
        !matches!(
            self.decision,
            Decision::Deny { .. } | Decision::AbortTurn { .. } | Decision::HardAbort { .. }
        )
    }

    /// Why it may not.
    pub fn error(&self) -> Option<&str> {
        if self.allow() {
            None
        } else {
            self.decision.reason()
        }
    }
}

impl HookResult<ToolCall> {
    /// The arguments that the call shall have instead.
    pub const fn modified_args(&self) -> Option<&Arguments> {
        match &self.decision {
            Decision::Modify(call)
            | Decision::Ask {
                changed: Some(call), ..
            } => Some(&call.args),
            _ => None,
        }
    }
}

impl HookResult<ToolOutput> {
    /// The result that the model shall see instead.
    pub const fn modified_result(&self) -> Option<&ToolOutput> {
        match &self.decision {
            Decision::Modify(output) => Some(output),
            _ => None,
        }
    }
}
