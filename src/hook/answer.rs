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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::fixture::{args, call};

    /// The members of the result in document 003, as views of the one decision: they cannot contradict each other.
    #[test]
    fn the_members_of_a_result_follow_its_decision() {
        let silent = HookResult::<ToolCall>::silent();
        assert!(silent.allow() && silent.error().is_none() && silent.modified_args().is_none());
        let blocked = HookResult::<ToolCall>::blocked("frozen").and_did("looked it up");
        assert!(!blocked.allow() && blocked.modified_args().is_none());
        assert_eq!(blocked.error(), Some("frozen"));
        assert_eq!(blocked.side_effects, ["looked it up"]);
        let changed: HookResult<ToolCall> =
            Decision::Modify(call("{}").with_args(args(r#"{"dry_run":true}"#))).into();
        assert!(changed.allow() && changed.error().is_none());
        assert_eq!(
            changed.modified_args().map(Arguments::canonical),
            Some(r#"{"dry_run":true}"#)
        );
        // Wanting a person is neither a denial nor an error.
        let asks: HookResult<ToolCall> = Decision::Ask {
            reason: Some("large".to_owned()),
            changed: None,
        }
        .into();
        assert!(asks.allow() && asks.error().is_none());
        let cut: HookResult<ToolOutput> = Decision::Modify(ToolOutput::done("short")).into();
        assert_eq!(
            cut.modified_result().map(|output| output.text.as_str()),
            Some("short")
        );
        for halt in [
            Decision::<ToolOutput>::AbortTurn { reason: None },
            Decision::HardAbort { reason: None },
        ] {
            assert!(!HookResult::from(halt).allow());
        }
    }
}
