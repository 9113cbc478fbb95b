//! Giving up: a job that was claimed often enough without any progress is ended, so that it kills no further worker.

use crate::audit::Actor;
use crate::storage::{Touches, Transaction, Workspace};

use super::JobState;
use super::claim::{MAX_ATTEMPTS, Spent, is_runnable};
use super::end::end;

/// Ends what [`Claim`](super::claim::Claim) found spent.
#[derive(Debug, Clone)]
pub struct GiveUp(pub Spent);

impl Transaction for GiveUp {
    /// Whether it was ended; not when it moved on meanwhile.
    type Answer = bool;
    const NAME: &'static str = "give_up_job";

    fn touches(&self, touches: &mut Touches) {
        touches.jobs.insert(self.0.id.clone());
        touches.jobs.extend(self.0.parent.clone());
        // Their own sub-tasks end when a worker takes them.
        touches.jobs.extend(self.0.children.iter().cloned());
        touches.confirmations.extend(self.0.confirmations.iter().cloned());
    }

    fn apply(&self, workspace: &mut Workspace) -> bool {
        let now = workspace.now();
        let still = workspace
            .job(&self.0.id)
            .is_some_and(|job| is_runnable(job, now) && job.attempts >= MAX_ATTEMPTS);
        let state = JobState::Error {
            error: "worker died".to_owned(),
        };
        still
            && end(
                workspace,
                &self.0.id,
                state,
                &Actor::System,
                &self.0.confirmations,
                None,
            )
    }
}
