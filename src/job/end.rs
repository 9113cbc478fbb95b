//! The one way out: whatever ends a job passes through here, and with the state go its audit event, the withdrawal of its open
//! requests, the end of its sub-tasks and the wake-up of the job that waits for it.

use crate::audit::{Actor, Draft, Opening};
use crate::confirmation::{State, expire, settle::settle};
use crate::ids::{ConfirmationId, JobId};
use crate::storage::Workspace;

use super::{JobState, JobStatus, wake};

/// Ends a job that has not ended; tells whether it did. Its holder loses it with the same write.
pub(super) fn end(
    workspace: &mut Workspace,
    id: &JobId,
    state: JobState,
    actor: &Actor,
    requests: &[ConfirmationId],
    said: Option<Opening>,
) -> bool {
    let now = workspace.now();
    let kind = match state.status() {
        JobStatus::Completed => "job.completed",
        JobStatus::Aborted => "job.aborted",
        JobStatus::Cancelled => "job.cancelled",
        JobStatus::Error => "job.failed",
        _ => return false,
    };
    let Some(job) = workspace.job(id).filter(|job| !job.state.status().is_final()) else {
        return false;
    };
    let (org, parent, children) = (job.org.clone(), job.parent.clone(), job.children.clone());
    workspace.change_job(id, |job| {
        job.state = state;
        job.fence += 1;
        job.waiting_on.clear();
        job.updated_at = now;
    });
    workspace.audit(
        Draft::new(&org, kind, actor.clone())
            .of_job(id)
            .with_private("said", said),
    );
    for request in requests {
        let ours = workspace
            .confirmation(request)
            .is_some_and(|row| row.asked.job.as_ref() == Some(id));
        // A deadline that passed comes first: what is late expired.
        let _ = ours
            && (expire::expire(workspace, request)
                || settle(workspace, request, State::Cancelled { at: now }, actor.clone()));
    }
    if let Some(parent) = parent {
        wake::subtask_ended(workspace, &parent, id);
    }
    // Nobody is left whom a sub-task could report to. The depth of families is bounded where they are made.
    for child in children {
        let requests = workspace
            .job(&child)
            .map(|child| child.confirmations.clone())
            .unwrap_or_default();
        end(workspace, &child, JobState::Cancelled, actor, &requests, None);
    }
    true
}
