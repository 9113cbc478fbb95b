//! Parking: the run gives its worker back and waits as a row. The requests are read again under their locks, so a decision that
//! came first is never lost.

use crate::audit::{Actor, Draft, Opening};
use crate::confirmation::Status;
use crate::ids::{ConfirmationId, JobId};
use crate::storage::{Touches, Transaction, Workspace};

use super::hold::{Hold, LostLease};
use super::save::Remembered;
use super::{JobState, WaitReason};

/// What the run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Until {
    /// These requests are decided.
    Decided {
        /// `tool_approval` or `tool_request`.
        reason: WaitReason,
        /// The requests.
        requests: Vec<ConfirmationId>,
    },
    /// Somebody answers.
    Answered(WaitReason),
    /// These jobs ended.
    SubtasksEnded(Vec<JobId>),
}

/// Parks a job.
#[derive(Debug, Clone)]
pub struct Park {
    /// By whom.
    pub hold: Hold,
    /// Until when.
    pub until: Until,
    /// Where it goes on.
    pub resume_movement: String,
    /// What it remembers.
    pub remembered: Remembered,
    /// What it asks, for the audit log.
    pub asks: Option<Opening>,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parked {
    /// It waits; the worker is free.
    Waiting,
    /// There is nothing left to wait for: the memory is saved, the worker still holds the job and goes on.
    Nothing,
}

impl Transaction for Park {
    type Answer = Result<Parked, LostLease>;
    const NAME: &'static str = "park_job";

    fn touches(&self, touches: &mut Touches) {
        self.remembered.touches(&self.hold, touches);
        match &self.until {
            Until::Decided { requests, .. } => touches.confirmations.extend(requests.iter().cloned()),
            Until::SubtasksEnded(children) => touches.jobs.extend(children.iter().cloned()),
            Until::Answered(_) => {}
        }
    }

    fn apply(&self, workspace: &mut Workspace) -> Self::Answer {
        let org = self.hold.of(workspace)?.org.clone();
        let open = self.still_open(workspace);
        self.remembered.write(workspace, &self.hold);
        let resume_movement = self.resume_movement.clone();
        let (state, word) = match &self.until {
            Until::Answered(reason) => (
                JobState::WaitingHuman {
                    reason: *reason,
                    resume_movement,
                },
                reason.as_str(),
            ),
            _ if open.is_empty() => return Ok(Parked::Nothing),
            Until::Decided { reason, .. } => (
                JobState::WaitingHuman {
                    reason: *reason,
                    resume_movement,
                },
                reason.as_str(),
            ),
            Until::SubtasksEnded(_) => (JobState::WaitingSubtasks { resume_movement }, "subtasks"),
        };
        workspace.audit(
            Draft::new(&org, "job.parked", Actor::System)
                .of_job(&self.hold.job)
                .with("reason", word)
                .with("waiting_on", open.clone())
                .with_private("asks", self.asks.clone()),
        );
        workspace.change_job(&self.hold.job, |job| {
            job.state = state;
            job.waiting_on = open;
        });
        Ok(Parked::Waiting)
    }
}

impl Park {
    fn still_open(&self, workspace: &Workspace) -> Vec<String> {
        let mut open: Vec<String> = match &self.until {
            Until::Answered(_) => Vec::new(),
            // A request that is not there will never be decided: waiting for it would be waiting for ever.
            Until::Decided { requests, .. } => requests
                .iter()
                .filter(|id| {
                    workspace
                        .confirmation(id)
                        .is_some_and(|row| row.state.status() == Status::Pending)
                })
                .map(|id| id.as_str().to_owned())
                .collect(),
            Until::SubtasksEnded(children) => children
                .iter()
                .filter(|id| {
                    workspace
                        .job(id)
                        .is_some_and(|child| !child.state.status().is_final())
                })
                .map(|id| id.as_str().to_owned())
                .collect(),
        };
        open.sort();
        open.dedup();
        open
    }
}
