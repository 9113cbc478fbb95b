//! Sentinels: the ends of a movement that need no rule, and what each leads to. They are the engine's own; the model meets
//! them as tools of their own, never as a choice of `transition`, but for [`Sentinel::WaitSubtasks`] where a rule names it.
//!
//! An end that cannot be told from what the run remembers (no sentinel and no movement) is a fault: the job ends in `error`.

use super::control::Steer;
use crate::job::WaitReason;
use crate::job::finish::Ending;

/// The sentinels there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sentinel {
    /// The agent handed over its result.
    Complete,
    /// The agent gave up, a guard ended the run, or somebody cancelled it.
    Abort,
    /// The user is asked.
    Ask,
    /// The run waits until its sub-tasks ended.
    WaitSubtasks,
    /// Calls of the turn wait for people.
    WaitingHumanApproval,
    /// Somebody must log in.
    WaitingHumanBrowser,
    /// The run asked for a tool that its movement does not have.
    WaitingHumanToolRequest,
    /// A call was sent and nobody knows what became of it.
    WaitingHumanOutcome,
}

/// What a sentinel leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeadsTo {
    /// The job ends: `completed`, or `aborted` (`cancelled`, when a person ended it).
    End,
    /// The job parks in `waiting_human` and goes on in the movement where it is.
    People(WaitReason),
    /// The job parks in `waiting_subtasks`.
    Subtasks,
}

impl Sentinel {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Complete,
        Self::Abort,
        Self::Ask,
        Self::WaitSubtasks,
        Self::WaitingHumanApproval,
        Self::WaitingHumanBrowser,
        Self::WaitingHumanToolRequest,
        Self::WaitingHumanOutcome,
    ];

    /// The word, as pieces and documents spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "COMPLETE",
            Self::Abort => "ABORT",
            Self::Ask => "ASK",
            Self::WaitSubtasks => "WAIT_SUBTASKS",
            Self::WaitingHumanApproval => "WAITING_HUMAN_APPROVAL",
            Self::WaitingHumanBrowser => "WAITING_HUMAN_BROWSER",
            Self::WaitingHumanToolRequest => "WAITING_HUMAN_TOOL_REQUEST",
            Self::WaitingHumanOutcome => "WAITING_HUMAN_OUTCOME",
        }
    }

    /// Reads the word. Whatever begins like one of the family is kept for the engine too.
    pub fn is_reserved(word: &str) -> bool {
        word.starts_with("WAITING_") || Self::ALL.into_iter().any(|sentinel| sentinel.as_str() == word)
    }

    /// Whether a rule may name it.
    pub const fn may_stand_in_a_rule(self) -> bool {
        matches!(self, Self::WaitSubtasks)
    }

    /// What it leads to.
    pub const fn leads_to(self) -> LeadsTo {
        match self {
            Self::Complete | Self::Abort => LeadsTo::End,
            Self::Ask => LeadsTo::People(WaitReason::UserInput),
            Self::WaitSubtasks => LeadsTo::Subtasks,
            Self::WaitingHumanApproval => LeadsTo::People(WaitReason::ToolApproval),
            Self::WaitingHumanBrowser => LeadsTo::People(WaitReason::BrowserLogin),
            Self::WaitingHumanToolRequest => LeadsTo::People(WaitReason::ToolRequest),
            Self::WaitingHumanOutcome => LeadsTo::People(WaitReason::OutcomeUnknown),
        }
    }

    /// The sentinel of a wait that words end.
    pub const fn asking(wait: WaitReason) -> Self {
        match wait {
            WaitReason::BrowserLogin => Self::WaitingHumanBrowser,
            WaitReason::OutcomeUnknown => Self::WaitingHumanOutcome,
            WaitReason::ToolRequest => Self::WaitingHumanToolRequest,
            WaitReason::ToolApproval => Self::WaitingHumanApproval,
            WaitReason::UserInput => Self::Ask,
        }
    }

    /// The sentinel that a sound control-flow call raises; none for those that go on working.
    pub const fn of(steer: &Steer) -> Option<Self> {
        match steer {
            Steer::End(Ending::Completed { .. }) => Some(Self::Complete),
            Steer::End(_) => Some(Self::Abort),
            Steer::Ask { wait, .. } => Some(Self::asking(*wait)),
            Steer::WaitSubtasks { .. } => Some(Self::WaitSubtasks),
            Steer::Request { .. } => Some(Self::WaitingHumanToolRequest),
            Steer::Enter { .. } | Steer::Spawn { .. } => None,
        }
    }
}
