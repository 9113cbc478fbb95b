//! A family: everything below a job that ends with it. It is read before the job ends, so that the transaction knows what to
//! touch. A sub-task that began meanwhile ends when a worker takes it and finds its parent ended.

use std::collections::BTreeSet;

use crate::ids::{ConfirmationId, JobId};
use crate::storage::{Read, StoreError, Touches, Workspace};

use super::Job;

/// The most jobs that are looked at; deeper or wider families end by and by.
const MOST: usize = 1_000;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Family {
    /// The jobs below that had not ended.
    pub jobs: BTreeSet<JobId>,
    /// Those that had.
    pub ended: BTreeSet<JobId>,
    /// The requests of those that had not.
    pub confirmations: BTreeSet<ConfirmationId>,
}

impl Family {
    /// Reads what is below a job.
    pub async fn of(read: &dyn Read, job: &Job) -> Result<Self, StoreError> {
        let mut family = Self::default();
        let mut next: Vec<JobId> = job.children.clone();
        let mut seen = BTreeSet::new();
        while let Some(id) = next.pop() {
            if seen.len() >= MOST || !seen.insert(id.clone()) {
                continue;
            }
            let Some(child) = read.job(&id).await? else {
                continue;
            };
            next.extend(child.children.iter().cloned());
            if child.state.status().is_final() {
                family.ended.insert(id);
            } else {
                family.confirmations.extend(child.confirmations.iter().cloned());
                family.jobs.insert(id);
            }
        }
        Ok(family)
    }

    /// Whether nothing that must end with the job came to it since the family was read.
    pub(super) fn is_whole(&self, workspace: &Workspace, job: &Job) -> bool {
        let is_known = |job: &Job| {
            let fresh = |id: &ConfirmationId| !self.confirmations.contains(id);
            job.state.status().is_final() || !job.confirmations.iter().any(fresh)
        };
        let mut next: Vec<&JobId> = job.children.iter().collect();
        let mut looked = 0;
        while let Some(id) = next.pop() {
            looked += 1;
            // A job that ended before is not among those that were touched.
            let Some(child) = workspace.job(id) else {
                if self.ended.contains(id) || looked > MOST {
                    continue;
                }
                return false;
            };
            if !is_known(child) {
                return false;
            }
            next.extend(&child.children);
        }
        true
    }

    pub(super) fn touches(&self, touches: &mut Touches) {
        touches.jobs.extend(self.jobs.iter().cloned());
        touches.confirmations.extend(self.confirmations.iter().cloned());
    }
}
