//! Finishing: the run is over, in the words of its engine.

use crate::audit::{Actor, Opening};
use crate::ids::{ConfirmationId, JobId};
use crate::storage::{Touches, Transaction, Workspace};

use super::end::end;
use super::family::Family;
use super::hold::{Hold, LostLease};
use super::save::Remembered;
use super::{JobState, JobStatus};

/// How a run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Well.
    Completed {
        /// What the agent hands over.
        result: String,
    },
    /// By the agent or a guard.
    Aborted {
        /// Why.
        result: String,
    },
    /// By a fault.
    Failed {
        /// Which.
        error: String,
    },
}

impl Ending {
    /// The status of a job that ended so.
    pub const fn status(&self) -> JobStatus {
        match self {
            Self::Completed { .. } => JobStatus::Completed,
            Self::Aborted { .. } => JobStatus::Aborted,
            Self::Failed { .. } => JobStatus::Error,
        }
    }
}

/// Ends a run.
#[derive(Debug, Clone)]
pub struct Finish {
    /// By whom.
    pub hold: Hold,
    /// How.
    pub ending: Ending,
    /// Its text, for the audit log.
    pub said: Option<Opening>,
    /// The last memory; `None` leaves it as it is (for a run whose memory cannot be read).
    pub remembered: Option<Remembered>,
    /// Its requests: those still open are withdrawn.
    pub confirmations: Vec<ConfirmationId>,
    /// The job that waits for it.
    pub parent: Option<JobId>,
    /// What is below it, and ends with it.
    pub family: Family,
}

impl Transaction for Finish {
    type Answer = Result<(), LostLease>;
    const NAME: &'static str = "finish_job";

    fn touches(&self, touches: &mut Touches) {
        touches.jobs.insert(self.hold.job.clone());
        touches.jobs.extend(self.parent.clone());
        self.family.touches(touches);
        if let Some(remembered) = &self.remembered {
            remembered.touches(&self.hold, touches);
        }
        touches.confirmations.extend(self.confirmations.iter().cloned());
    }

    fn apply(&self, workspace: &mut Workspace) -> Self::Answer {
        let actor = Actor::Token(self.hold.of(workspace)?.token.0.clone());
        let (state, actor) = match self.ending.clone() {
            Ending::Completed { result } => (JobState::Completed { result }, actor),
            Ending::Aborted { result } => (JobState::Aborted { result }, actor),
            Ending::Failed { error } => (JobState::Error { error }, Actor::System),
        };
        if let Some(remembered) = &self.remembered {
            remembered.write(workspace, &self.hold);
        }
        end(
            workspace,
            &self.hold.job,
            state,
            &actor,
            &self.confirmations,
            self.said.clone(),
        );
        Ok(())
    }
}
