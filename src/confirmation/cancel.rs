//! Withdrawing: who asked no longer wants an answer.

use crate::audit::Actor;
use crate::ids::{ConfirmationId, Org, TokenName};
use crate::storage::{Touches, Transaction, Workspace};

use super::settle::settle;
use super::{Dossier, State, Status, expire};

/// Withdraws a request of this token.
#[derive(Debug, Clone)]
pub struct Cancel {
    /// The request.
    pub id: ConfirmationId,
    /// The caller's organisation: a token of the same name may have been another's.
    pub org: Org,
    /// Who withdraws it: only the token that asked.
    pub token: TokenName,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// It is withdrawn now, or was before.
    Done(Dossier),
    /// It was settled before.
    TooLate(Dossier),
    /// There is no such request of this token.
    NotFound,
}

impl Transaction for Cancel {
    type Answer = Cancelled;
    const NAME: &'static str = "cancel";

    fn touches(&self, touches: &mut Touches) {
        touches.confirmations.insert(self.id.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> Cancelled {
        let at = workspace.now();
        let owned = workspace
            .confirmation(&self.id)
            .is_some_and(|row| row.org == self.org && row.asked.token == self.token);
        if !owned {
            return Cancelled::NotFound;
        }
        // A deadline that passed comes first: what is late expired.
        let _ = expire::expire(workspace, &self.id)
            || settle(
                workspace,
                &self.id,
                State::Cancelled { at },
                Actor::Token(self.token.0.clone()),
            );
        match workspace.dossier(&self.id) {
            Some(dossier) if dossier.confirmation.state.status() == Status::Cancelled => {
                Cancelled::Done(dossier)
            }
            Some(dossier) => Cancelled::TooLate(dossier),
            None => Cancelled::NotFound,
        }
    }
}
