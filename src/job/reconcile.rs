//! Reconciling: a parked job whose every awaited request or sub-task is settled goes back into the queue. Nothing should need
//! it; it is there for what nobody thought of.

use crate::audit::{Actor, Draft};
use crate::confirmation::Status;
use crate::ids::{ConfirmationId, JobId};
use crate::storage::{Touches, Transaction, Workspace};

use super::{Job, JobState};

/// Redrives stranded jobs.
#[derive(Debug, Clone, Copy)]
pub struct Reconcile {
    /// At most so many in one transaction.
    pub limit: usize,
}

impl Transaction for Reconcile {
    /// How many were redriven.
    type Answer = usize;
    const NAME: &'static str = "reconcile_jobs";

    fn touches(&self, touches: &mut Touches) {
        touches.stranded_jobs = touches.stranded_jobs.max(self.limit);
    }

    fn apply(&self, workspace: &mut Workspace) -> usize {
        let now = workspace.now();
        let stranded: Vec<JobId> = workspace
            .stranded_jobs()
            .iter()
            .filter(|id| workspace.job(id).is_some_and(|job| is_stranded(workspace, job)))
            .take(self.limit)
            .cloned()
            .collect();
        for id in &stranded {
            let Some(job) = workspace.job(id) else { continue };
            let draft = Draft::new(&job.org, "job.resumed", Actor::System)
                .of_job(id)
                .with("by", "reconciler");
            workspace.audit(draft);
            workspace.change_job(id, |job| {
                if let Some(movement) = job.state.resume_movement() {
                    job.movement = movement.to_owned();
                }
                job.state = JobState::Queued;
                job.waiting_on.clear();
                job.run_at = now;
                job.attempts = 0;
                job.updated_at = now;
            });
        }
        stranded.len()
    }
}

/// What the store says is judged again as far as the rows are here: a wait that only an answer ends is never redriven.
fn is_stranded(workspace: &Workspace, job: &Job) -> bool {
    let by_others = match &job.state {
        JobState::WaitingHuman { reason, .. } => reason.is_decided_by_request(),
        JobState::WaitingSubtasks { .. } => true,
        _ => false,
    };
    by_others
        && job.waiting_on.iter().all(|thing| {
            let request = ConfirmationId::parse(thing)
                .ok()
                .and_then(|id| workspace.confirmation(&id));
            let child = JobId::parse(thing).ok().and_then(|id| workspace.job(&id));
            request.is_none_or(|row| row.state.status() != Status::Pending)
                && child.is_none_or(|row| row.state.status().is_final())
        })
}
