//! Cancelling: its owner or an operator no longer wants the run. Its open requests go with it, and its worker loses the fence.

use crate::audit::Actor;
use crate::ids::{ConfirmationId, JobId, OperatorId, Org, TokenName};
use crate::storage::{Touches, Transaction, Workspace};

use super::end::end;
use super::family::Family;
use super::{Job, JobState, JobStatus};

/// Who acts on a job from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// The token that submitted it.
    Token(TokenName),
    /// An operator of its organisation.
    Operator(OperatorId),
}

impl By {
    pub(super) fn actor(&self) -> Actor {
        match self {
            Self::Token(token) => Actor::Token(token.0.clone()),
            Self::Operator(operator) => Actor::Operator(operator.0.clone()),
        }
    }

    /// Whether this caller may know of the job: a token sees its own, an operator all of the organisation.
    pub fn sees(&self, org: &Org, job: &Job) -> bool {
        job.org == *org
            && match self {
                Self::Token(token) => job.token == *token,
                Self::Operator(_) => true,
            }
    }
}

/// Cancels a job.
#[derive(Debug, Clone)]
pub struct Cancel {
    /// The job.
    pub job: JobId,
    /// The caller's organisation.
    pub org: Org,
    /// Who cancels.
    pub by: By,
    /// The job's requests as it was read before.
    pub confirmations: Vec<ConfirmationId>,
    /// The job's parent as it was read before.
    pub parent: Option<JobId>,
    /// What is below it, as it was read before; it is cancelled too.
    pub family: Family,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// It is cancelled now, or was before.
    Done(Box<Job>),
    /// It ended before.
    TooLate(Box<Job>),
    /// It asked other requests since it was read: read it again.
    Moved,
    /// There is no such job for this caller.
    NotFound,
}

impl Transaction for Cancel {
    type Answer = Cancelled;
    const NAME: &'static str = "cancel_job";

    fn touches(&self, touches: &mut Touches) {
        touches.jobs.insert(self.job.clone());
        touches.jobs.extend(self.parent.clone());
        self.family.touches(touches);
        touches.confirmations.extend(self.confirmations.iter().cloned());
    }

    fn apply(&self, workspace: &mut Workspace) -> Cancelled {
        let Some(job) = workspace
            .job(&self.job)
            .filter(|job| self.by.sees(&self.org, job))
        else {
            return Cancelled::NotFound;
        };
        match job.state.status() {
            JobStatus::Cancelled => return Cancelled::Done(Box::new(job.clone())),
            status if status.is_final() => return Cancelled::TooLate(Box::new(job.clone())),
            _ => {}
        }
        if job
            .confirmations
            .iter()
            .any(|id| !self.confirmations.contains(id))
            || !self.family.is_whole(workspace, job)
        {
            return Cancelled::Moved;
        }
        end(
            workspace,
            &self.job,
            JobState::Cancelled,
            &self.by.actor(),
            &self.confirmations,
            None,
        );
        workspace
            .job(&self.job)
            .map_or(Cancelled::NotFound, |job| Cancelled::Done(Box::new(job.clone())))
    }
}
