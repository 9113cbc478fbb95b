//! Finishing a call: its result enters the memory and its outcome the record, in one transaction.

use crate::audit::{Actor, Draft, Opening};
use crate::confirmation::{Outcome, OutcomeStatus, outcome};
use crate::gate::ToolName;
use crate::ids::{ConfirmationId, PermitId};
use crate::storage::{Touches, Transaction, Workspace};

use super::hold::{Hold, LostLease};
use super::save::Remembered;

/// By what the call ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ran {
    /// An approved request.
    Approved(ConfirmationId),
    /// Policy allowed it.
    Allowed {
        /// The tool.
        tool: ToolName,
        /// The permit drawn for it.
        permit: PermitId,
        /// Whether the tool answered; else nobody knows what became of the call, and the model is told so.
        answered: bool,
    },
}

/// The word of the audit log.
pub const fn status(status: OutcomeStatus, answered: bool) -> &'static str {
    match (status, answered) {
        (_, false) => "unknown",
        (OutcomeStatus::Succeeded, true) => "succeeded",
        (OutcomeStatus::Failed, true) => "failed",
    }
}

/// Finishes a call.
#[derive(Debug, Clone)]
pub struct FinishCall {
    /// By whom.
    pub hold: Hold,
    /// Which call.
    pub ran: Ran,
    /// How it ended.
    pub status: OutcomeStatus,
    /// More about it, for the record and the audit log.
    pub detail: Option<Opening>,
    /// The memory with the result in it.
    pub remembered: Remembered,
}

impl Transaction for FinishCall {
    type Answer = Result<(), LostLease>;
    const NAME: &'static str = "finish_call";

    fn touches(&self, touches: &mut Touches) {
        self.remembered.touches(&self.hold, touches);
        if let Ran::Approved(request) = &self.ran {
            touches.confirmations.insert(request.clone());
        }
    }

    fn apply(&self, workspace: &mut Workspace) -> Self::Answer {
        let job = self.hold.of(workspace)?;
        let (org, actor) = (job.org.clone(), Actor::Token(job.token.0.clone()));
        match &self.ran {
            Ran::Approved(request) => {
                let unreported = workspace.confirmation(request).is_some_and(|row| {
                    row.asked.job.as_ref() == Some(&self.hold.job)
                        && row.state.consumed().is_some()
                        && row.ledger.outcome.is_none()
                });
                if unreported {
                    let ended = Outcome {
                        status: self.status,
                        detail: self.detail.as_ref().map(|detail| detail.value.clone()),
                    };
                    outcome::record(workspace, request, &ended, self.detail.clone(), actor);
                }
            }
            Ran::Allowed {
                tool,
                permit,
                answered,
            } => {
                let status = status(self.status, *answered);
                workspace.audit(
                    Draft::new(&org, "tool.executed", actor)
                        .of_job(&self.hold.job)
                        .with("tool_name", tool.as_str())
                        .with("permit", permit.as_str())
                        .with("status", status)
                        .with_private("detail", self.detail.clone()),
                );
            }
        }
        self.remembered.write(workspace, &self.hold);
        Ok(())
    }
}
