//! Releasing: a worker hands a job back without having finished it.

use std::time::Duration;

use crate::audit::{Actor, Draft};
use crate::storage::{Touches, Transaction, Workspace};

use super::JobState;
use super::hold::{Hold, LostLease};

/// Why it is handed back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// The server stops: the attempt does not count.
    Stopping,
    /// The attempt failed; another may go better after a pause.
    Failed {
        /// Not to be claimed before it is over.
        pause: Duration,
    },
    /// Something outside does not answer now: the attempt does not count, and the next one waits.
    Waiting {
        /// Not to be claimed before it is over.
        pause: Duration,
    },
}

/// Hands a job back.
#[derive(Debug, Clone)]
pub struct Release {
    /// By whom.
    pub hold: Hold,
    /// Why.
    pub because: Because,
}

impl Transaction for Release {
    type Answer = Result<(), LostLease>;
    const NAME: &'static str = "release_job";

    fn touches(&self, touches: &mut Touches) {
        touches.jobs.insert(self.hold.job.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> Self::Answer {
        let job = self.hold.of(workspace)?;
        let now = workspace.now();
        if matches!(self.because, Because::Failed { .. }) {
            let draft = Draft::new(&job.org, "job.retried", Actor::System)
                .of_job(&job.id)
                .with("attempts", job.attempts);
            workspace.audit(draft);
        }
        workspace.change_job(&self.hold.job, |job| {
            job.state = JobState::Queued;
            job.updated_at = now;
            match self.because {
                Because::Stopping => {
                    job.attempts = job.attempts.saturating_sub(1);
                    job.run_at = now;
                }
                Because::Failed { pause } => job.run_at = now.plus(pause),
                Because::Waiting { pause } => {
                    job.attempts = job.attempts.saturating_sub(1);
                    job.run_at = now.plus(pause);
                }
            }
        });
        Ok(())
    }
}
