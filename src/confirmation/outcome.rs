//! What the executed call led to, as reported by who executed it. The first report stands.

use crate::audit::{Actor, Draft, Opening};
use crate::delivery::thread::{self, Line};
use crate::ids::{ConfirmationId, Org, TokenName};
use crate::storage::{Touches, Transaction, Workspace};

use super::settle::refresh_cards;
use super::{Dossier, Outcome};

/// Reports an outcome.
#[derive(Debug, Clone)]
pub struct Report {
    /// The request.
    pub id: ConfirmationId,
    /// The caller's organisation: a token of the same name may have been another's.
    pub org: Org,
    /// Who reports: only the token that asked.
    pub token: TokenName,
    /// What happened.
    pub outcome: Outcome,
    /// The detail, for the audit log.
    pub detail: Option<Opening>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reported {
    /// It is on record now, or the same was before.
    Done(Dossier),
    /// Another outcome was reported before.
    Contradicts(Dossier),
    /// No permit was consumed, so nothing can have been executed.
    NotConsumed(Dossier),
    /// There is no such request of this token.
    NotFound,
}

impl Transaction for Report {
    type Answer = Reported;
    const NAME: &'static str = "outcome";

    fn touches(&self, touches: &mut Touches) {
        touches.confirmations.insert(self.id.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> Reported {
        let Some(dossier) = workspace
            .dossier(&self.id)
            .filter(|d| d.confirmation.org == self.org && d.confirmation.asked.token == self.token)
        else {
            return Reported::NotFound;
        };
        if dossier.confirmation.state.consumed().is_none() {
            return Reported::NotConsumed(dossier);
        }
        match &dossier.confirmation.ledger.outcome {
            Some(before) if before.status == self.outcome.status => return Reported::Done(dossier),
            Some(_) => return Reported::Contradicts(dossier),
            None => {}
        }
        record(
            workspace,
            &self.id,
            &self.outcome,
            self.detail.clone(),
            Actor::Token(self.token.0.clone()),
        );
        workspace
            .dossier(&self.id)
            .map_or(Reported::NotFound, Reported::Done)
    }
}

/// Puts the outcome of an executed call on record.
pub fn record(
    workspace: &mut Workspace,
    id: &ConfirmationId,
    outcome: &Outcome,
    detail: Option<Opening>,
    actor: Actor,
) {
    let now = workspace.now();
    let Some(row) = workspace.confirmation(id) else {
        return;
    };
    let status = match outcome.status {
        super::OutcomeStatus::Succeeded => "succeeded",
        super::OutcomeStatus::Failed => "failed",
    };
    let mut draft = Draft::new(&row.org, "tool.executed", actor)
        .about(id)
        .with("tool_name", row.asked.tool.as_str())
        .with("status", status)
        .with_private("detail", detail);
    draft.job.clone_from(&row.asked.job);
    workspace.audit(draft);
    workspace.change_confirmation(id, |row| {
        row.ledger.executed_at = Some(now);
        row.ledger.outcome = Some(outcome.clone());
        row.edition += 1;
    });
    refresh_cards(workspace, id);
    thread::queue_notes(workspace, id, Line::Outcome);
}
