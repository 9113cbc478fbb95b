//! Waking a parked job: when the last thing it waits for is settled, in the transaction that settles it.

use crate::audit::{Actor, Draft};
use crate::ids::{ConfirmationId, JobId};
use crate::job::{JobState, JobStatus};
use crate::storage::Workspace;

/// A request of the job was settled. Puts the job back into the queue when it was the last one; tells whether it did.
///
/// A job that is still running has not parked yet: parking re-reads its requests under their locks, so nothing is lost.
pub fn request_settled(workspace: &mut Workspace, job: &JobId, request: &ConfirmationId) -> bool {
    thing_settled(workspace, job, request.as_str())
}

/// A sub-task of the job ended. Puts the job back into the queue when it was the last one; tells whether it did.
pub fn subtask_ended(workspace: &mut Workspace, job: &JobId, child: &JobId) -> bool {
    thing_settled(workspace, job, child.as_str())
}

fn thing_settled(workspace: &mut Workspace, job: &JobId, thing: &str) -> bool {
    let now = workspace.now();
    let Some(row) = workspace.job(job) else {
        return false;
    };
    if !matches!(
        row.state.status(),
        JobStatus::WaitingHuman | JobStatus::WaitingSubtasks
    ) {
        return false;
    }
    if !row.waiting_on.iter().any(|waited| waited == thing) {
        return false;
    }
    let org = row.org.clone();
    let last = row.waiting_on.len() == 1;
    workspace.change_job(job, |row| {
        row.waiting_on.retain(|waited| waited != thing);
        row.updated_at = now;
        if last {
            if let Some(movement) = row.state.resume_movement() {
                row.movement = movement.to_owned();
            }
            row.state = JobState::Queued;
            row.run_at = now;
            row.attempts = 0;
        }
    });
    if last {
        workspace.audit(Draft::new(&org, "job.resumed", Actor::System).of_job(job));
    }
    last
}
