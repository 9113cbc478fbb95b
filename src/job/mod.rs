//! The job: a durable agent run. Queued, running under a lease, parked as a row, or ended.
//!
//! This room is pure but for [`queue`] and [`worker`], which run what they claim. Each
//! moment is a file with one transaction: [`submit`], [`spawn`], [`claim`], [`heartbeat`], [`save`], [`begin_call`], [`finish_call`],
//! [`park`], [`release`], [`finish`], [`give_up`], [`cancel`], [`answer`], [`reconcile`]; [`wake`] is a part of others,
//! [`progress`] tells those who watch.
//! It must not know SQL, platforms or the web, nor read the memory of a run: that is the agent room's.

use gatepost_channel::UtcMillis;
use serde::{Deserialize, Serialize};

use crate::ids::{JobId, OperatorId, Org, TokenName, WorkerId};

pub mod answer;
pub mod begin_call;
pub mod cancel;
pub mod claim;
mod end;
pub mod family;
pub mod finish;
pub mod finish_call;
pub mod give_up;
pub mod heartbeat;
pub mod hold;
pub mod park;
pub mod progress;
pub mod queue;
pub mod reconcile;
pub mod release;
pub mod save;
pub mod spawn;
pub mod submit;
pub mod view;
pub mod wake;
pub mod worker;

pub use hold::{Hold, LostLease};

#[cfg(test)]
mod answer_tests;
#[cfg(test)]
mod claim_tests;
#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod job_tests;

/// What a parked job waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// Calls of the turn are confirmation requests.
    ToolApproval,
    /// A tool was asked for; itself a confirmation request.
    ToolRequest,
    /// The agent asked its user.
    UserInput,
    /// Somebody must log in.
    BrowserLogin,
    /// A call was sent and its answer was not recorded: an operator says whether it happened.
    OutcomeUnknown,
}

impl WaitReason {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::ToolApproval,
        Self::ToolRequest,
        Self::UserInput,
        Self::BrowserLogin,
        Self::OutcomeUnknown,
    ];

    /// The word of the API and the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ToolApproval => "tool_approval",
            Self::ToolRequest => "tool_request",
            Self::UserInput => "user_input",
            Self::BrowserLogin => "browser_login",
            Self::OutcomeUnknown => "outcome_unknown",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }

    /// Whether the wait ends through its confirmation request rather than by an answer.
    pub const fn is_decided_by_request(self) -> bool {
        matches!(self, Self::ToolApproval | Self::ToolRequest)
    }
}

/// The right to run a job for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Who holds it.
    pub worker: WorkerId,
    /// Until when, by the store's clock.
    pub until: UtcMillis,
    /// Rises with every claim; a worker whose fence is no longer the job's cannot write.
    pub fence: i64,
}

/// Where a job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// Waiting for a worker.
    Queued,
    /// A worker has it.
    Running(Lease),
    /// Parked: a row, nothing else.
    WaitingHuman {
        /// For what.
        reason: WaitReason,
        /// Where it goes on.
        resume_movement: String,
    },
    /// Parked until its sub-tasks ended.
    WaitingSubtasks {
        /// Where it goes on.
        resume_movement: String,
    },
    /// Ended well.
    Completed {
        /// What the agent handed over.
        result: String,
    },
    /// Ended by the agent or a guard.
    Aborted {
        /// Why.
        result: String,
    },
    /// Ended by a person or its owner.
    Cancelled,
    /// Ended by a fault.
    Error {
        /// Which.
        error: String,
    },
}

/// The stable word of a job's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// See [`JobState::Queued`].
    Queued,
    /// See [`JobState::Running`].
    Running,
    /// See [`JobState::WaitingHuman`].
    WaitingHuman,
    /// See [`JobState::WaitingSubtasks`].
    WaitingSubtasks,
    /// See [`JobState::Completed`].
    Completed,
    /// See [`JobState::Aborted`].
    Aborted,
    /// See [`JobState::Cancelled`].
    Cancelled,
    /// See [`JobState::Error`].
    Error,
}

impl JobStatus {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Running,
        Self::WaitingHuman,
        Self::WaitingSubtasks,
        Self::Completed,
        Self::Aborted,
        Self::Cancelled,
        Self::Error,
    ];

    /// The word of the API and the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::WaitingHuman => "waiting_human",
            Self::WaitingSubtasks => "waiting_subtasks",
            Self::Completed => "completed",
            Self::Aborted => "aborted",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether the job ended.
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Aborted | Self::Cancelled | Self::Error
        )
    }
}

impl JobState {
    /// The word.
    pub const fn status(&self) -> JobStatus {
        match self {
            Self::Queued => JobStatus::Queued,
            Self::Running(_) => JobStatus::Running,
            Self::WaitingHuman { .. } => JobStatus::WaitingHuman,
            Self::WaitingSubtasks { .. } => JobStatus::WaitingSubtasks,
            Self::Completed { .. } => JobStatus::Completed,
            Self::Aborted { .. } => JobStatus::Aborted,
            Self::Cancelled => JobStatus::Cancelled,
            Self::Error { .. } => JobStatus::Error,
        }
    }

    /// Whether a worker may take it now.
    pub const fn is_queued(&self) -> bool {
        matches!(self, Self::Queued)
    }

    /// Why it is parked.
    pub const fn wait_reason(&self) -> Option<WaitReason> {
        match self {
            Self::WaitingHuman { reason, .. } => Some(*reason),
            _ => None,
        }
    }

    /// Where it goes on after a park.
    pub fn resume_movement(&self) -> Option<&str> {
        match self {
            Self::WaitingHuman { resume_movement, .. } | Self::WaitingSubtasks { resume_movement } => {
                Some(resume_movement)
            }
            _ => None,
        }
    }
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Whose it is.
    pub org: Org,
    /// Who submitted it.
    pub token: TokenName,
    /// The piece it runs.
    pub piece: String,
    /// What it was given.
    pub input: String,
    /// Asserted by who submitted it.
    pub agent_id: Option<String>,
    /// Asserted by who submitted it.
    pub session_id: Option<String>,
    /// Asserted by who submitted it.
    pub requester: Option<String>,
    /// The persons behind it, up the lineage.
    pub persons: Vec<OperatorId>,
    /// The job that spawned it.
    pub parent: Option<JobId>,
    /// Where it stands.
    pub state: JobState,
    /// The movement it is in.
    pub movement: String,
    /// Requests and sub-tasks that it still waits for; empty unless parked.
    pub waiting_on: Vec<String>,
    /// The sub-tasks that it began, in order.
    pub children: Vec<JobId>,
    /// The requests of its current turn, for people who look.
    pub confirmations: Vec<crate::ids::ConfirmationId>,
    /// The engine's own memory (conversation, calls of the turn): JSON that only the agent room reads.
    pub memory: String,
    /// Higher first.
    pub priority: i32,
    /// Claims since the last progress; written when it is claimed, so that a job that kills its worker is counted.
    pub attempts: u32,
    /// Not to be claimed before.
    pub run_at: UtcMillis,
    /// Rises with every claim.
    pub fence: i64,
    /// When it was submitted.
    pub created_at: UtcMillis,
    /// When it last changed.
    pub updated_at: UtcMillis,
    /// Counts writes of the row.
    pub version: i64,
}
