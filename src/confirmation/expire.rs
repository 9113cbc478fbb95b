//! Expiry: what the sweeper does to requests whose deadline passed, by the store's clock.

use crate::audit::Actor;
use crate::ids::ConfirmationId;
use crate::storage::{Touches, Transaction, Workspace};

use super::settle::settle;
use super::{DeliveryState, State};

/// Settles what is due, oldest first.
#[derive(Debug, Clone, Copy)]
pub struct Expire {
    /// At most so many in one transaction.
    pub limit: usize,
}

impl Transaction for Expire {
    /// How many were settled.
    type Answer = usize;
    const NAME: &'static str = "expire";

    fn touches(&self, touches: &mut Touches) {
        touches.due_confirmations = touches.due_confirmations.max(self.limit);
    }

    fn apply(&self, workspace: &mut Workspace) -> usize {
        let due: Vec<_> = workspace
            .due_confirmations()
            .iter()
            .take(self.limit)
            .cloned()
            .collect();
        due.iter().filter(|id| expire(workspace, id)).count()
    }
}

/// Settles one request whose deadline passed: `expired` when a card stood anywhere or may have, else `undeliverable`.
pub fn expire(workspace: &mut Workspace, id: &ConfirmationId) -> bool {
    let Some(row) = workspace.confirmation(id) else {
        return false;
    };
    let at = row.expires_at;
    if workspace.now() < at {
        return false;
    }
    let reached_somebody = workspace
        .deliveries(id)
        .filter(|card| card.asks())
        .any(|card| !card.standing.is_empty() || card.unheard || card.state == DeliveryState::Sending);
    let state = if reached_somebody {
        State::Expired { at }
    } else {
        State::Undeliverable { at }
    };
    settle(workspace, id, state, Actor::System)
}
