//! What a hook may do, and at which points.

use super::Point;

/// What a hook does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Passes on.
    Continue,
    /// Passes on with changes.
    Modify,
    /// Answers in place of the tool; for a gated call the person decides all the same.
    Respond,
    /// Wants a person to decide.
    Ask,
    /// Denies the call.
    DenyTool,
    /// Ends the turn: the run ends as aborted.
    AbortTurn,
    /// Ends the run at once, as an error.
    HardAbort,
}

impl Action {
    /// All of them, from the mildest to the strictest.
    pub const ALL: [Self; 7] = [
        Self::Continue,
        Self::Modify,
        Self::Respond,
        Self::Ask,
        Self::DenyTool,
        Self::AbortTurn,
        Self::HardAbort,
    ];

    /// Its word on the wire and in the audit log.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Modify => "modify",
            Self::Respond => "respond",
            Self::Ask => "ask",
            Self::DenyTool => "deny_tool",
            Self::AbortTurn => "abort_turn",
            Self::HardAbort => "hard_abort",
        }
    }

    /// The action that a process hook spells so. `ask` is the word of command hooks only.
    pub fn of_process(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|action| *action != Self::Ask && action.word() == word)
    }

    /// Whether a hook may do this there. At the around points a hook only wraps, so nothing of this is a choice.
    pub const fn is_valid_at(self, point: Point) -> bool {
        match point {
            Point::AroundModel | Point::AroundTool => false,
            Point::ApproveTool => matches!(self, Self::Continue | Self::Ask | Self::DenyTool),
            Point::PreToolUse => true,
            Point::SessionStart | Point::BeforeModel | Point::AfterModel | Point::PostToolUse => matches!(
                self,
                Self::Continue | Self::Modify | Self::AbortTurn | Self::HardAbort
            ),
        }
    }
}
