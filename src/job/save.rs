//! Saving: what the run remembers is made durable. That is progress, so the attempts start anew.

use crate::ids::ConfirmationId;
use crate::storage::{Touches, Transaction, Workspace};

use super::hold::{Hold, LostLease};

/// What a run wants remembered; every write of a worker carries it whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// The engine's memory.
    pub memory: String,
    /// The movement it is in.
    pub movement: String,
    /// The requests of the current turn.
    pub confirmations: Vec<ConfirmationId>,
    /// Requests whose decision the run has taken into its memory: their ledger says so from now on.
    pub taken: Vec<ConfirmationId>,
}

/// Saves.
#[derive(Debug, Clone)]
pub struct Save {
    /// By whom.
    pub hold: Hold,
    /// What.
    pub remembered: Remembered,
}

impl Transaction for Save {
    type Answer = Result<(), LostLease>;
    const NAME: &'static str = "save_job";

    fn touches(&self, touches: &mut Touches) {
        self.remembered.touches(&self.hold, touches);
    }

    fn apply(&self, workspace: &mut Workspace) -> Self::Answer {
        self.hold.of(workspace)?;
        self.remembered.write(workspace, &self.hold);
        Ok(())
    }
}

impl Remembered {
    pub(super) fn touches(&self, hold: &Hold, touches: &mut Touches) {
        touches.jobs.insert(hold.job.clone());
        touches.confirmations.extend(self.taken.iter().cloned());
    }

    /// Writes it; the caller checked the hold.
    pub(super) fn write(&self, workspace: &mut Workspace, hold: &Hold) {
        let now = workspace.now();
        workspace.change_job(&hold.job, |job| {
            job.memory.clone_from(&self.memory);
            job.movement.clone_from(&self.movement);
            job.confirmations.clone_from(&self.confirmations);
            job.attempts = 0;
            job.updated_at = now;
        });
        for id in &self.taken {
            let decided_for_us = workspace.confirmation(id).is_some_and(|row| {
                row.asked.job.as_ref() == Some(&hold.job)
                    && row.state.decided_at().is_some()
                    && row.ledger.resumed_at.is_none()
            });
            if decided_for_us {
                workspace.change_confirmation(id, |row| row.ledger.resumed_at = Some(now));
            }
        }
    }
}
