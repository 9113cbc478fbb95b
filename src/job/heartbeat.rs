//! The heartbeat: a worker that lives keeps its lease.

use std::time::Duration;

use gatepost_channel::UtcMillis;

use crate::storage::{Touches, Transaction, Workspace};

use super::JobState;
use super::hold::{Hold, LostLease};

/// Extends the lease.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    /// Of what.
    pub hold: Hold,
    /// By how much from now.
    pub lease: Duration,
}

impl Transaction for Heartbeat {
    /// Until when the lease runs now.
    type Answer = Result<UtcMillis, LostLease>;
    const NAME: &'static str = "job_heartbeat";

    fn touches(&self, touches: &mut Touches) {
        touches.jobs.insert(self.hold.job.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> Self::Answer {
        self.hold.of(workspace)?;
        let until = workspace.now().plus(self.lease);
        workspace.change_job(&self.hold.job, |job| {
            if let JobState::Running(lease) = &mut job.state {
                lease.until = until;
            }
        });
        Ok(until)
    }
}
