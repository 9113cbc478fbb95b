//! A worker's hold on a job: what it shows with every write, and is refused without.

use crate::ids::JobId;
use crate::storage::Workspace;

use super::{Job, JobState};

/// The right to write a job, as long as nobody else claimed or ended it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The job.
    pub job: JobId,
    /// The fence of the claim.
    pub fence: i64,
}

/// The job is no longer this worker's: it was claimed anew, cancelled or ended. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[error("the job is no longer this worker's")]
pub struct LostLease;

impl Hold {
    /// The hold of the worker that just claimed this job.
    pub fn on(job: &Job) -> Self {
        Self {
            job: job.id.clone(),
            fence: job.fence,
        }
    }

    /// The job, if it is still held. A lease that ran out but was taken by nobody still holds: the fence decides, not the time.
    pub(super) fn of<'w>(&self, workspace: &'w Workspace) -> Result<&'w Job, LostLease> {
        workspace
            .job(&self.job)
            .filter(|job| {
                matches!(&job.state, JobState::Running(lease) if lease.fence == self.fence && job.fence == self.fence)
            })
            .ok_or(LostLease)
    }
}
