//! A host says that a call ran: the outcome goes to the request that permitted it, if there is one.

use crate::audit::Actor;
use crate::confirmation::Outcome;
use crate::confirmation::outcome::record;
use crate::storage::{CallKey, Touches, Transaction, TwinKey, Workspace};

/// Reports the outcome of a call by the key under which it was asked. The first report stands.
#[derive(Debug, Clone)]
pub struct Executed {
    /// The call; the key holds the token, so nobody reports for others.
    pub key: CallKey,
    /// The same call by what it is, where the host says that: a call that joined an open request has an id that no request knows.
    pub twin: Option<TwinKey>,
    /// What it led to.
    pub outcome: Outcome,
}

impl Transaction for Executed {
    /// Whether this report is now on record.
    type Answer = bool;
    const NAME: &'static str = "executed";

    fn touches(&self, touches: &mut Touches) {
        touches.calls.insert(self.key.clone());
        touches.twins.extend(self.twin.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> bool {
        let by_call = workspace.by_call(&self.key);
        let by_twin = || self.twin.as_ref().and_then(|twin| workspace.executing_twin(twin));
        let Some(id) = by_call.or_else(by_twin).cloned() else {
            return false;
        };
        let unreported = workspace
            .confirmation(&id)
            .is_some_and(|row| row.state.consumed().is_some() && row.ledger.outcome.is_none());
        if unreported {
            record(
                workspace,
                &id,
                &self.outcome,
                None,
                Actor::Token(self.key.token.0.clone()),
            );
        }
        unreported
    }
}
