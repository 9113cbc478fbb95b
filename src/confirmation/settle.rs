//! The one way out of `pending`. Approve, reject, expire, cancel and undeliverable all pass through here, and with the state go
//! its audit event, the outbox rows of its cards and the wake-up of its job.

use crate::audit::{Actor, Draft};
use crate::delivery::{Errand, OutboxItem};
use crate::ids::{ConfirmationId, OutboxId};
use crate::job::wake;
use crate::storage::Workspace;

use super::{Basis, DeliveryState, State, Status, set};

/// Settles a pending request; tells whether it did. A request that is no longer pending stays as it is.
pub fn settle(workspace: &mut Workspace, id: &ConfirmationId, state: State, actor: Actor) -> bool {
    let Some(row) = workspace.confirmation(id) else {
        return false;
    };
    if row.state.status() != Status::Pending || state.status() == Status::Pending {
        return false;
    }
    let (org, job) = (row.org.clone(), row.asked.job.clone());
    let kind = match state.status() {
        Status::Pending => return false,
        Status::Approved => "confirmation.approved",
        Status::Rejected => "confirmation.rejected",
        Status::Expired => "confirmation.expired",
        Status::Cancelled => "confirmation.cancelled",
        Status::Undeliverable => "confirmation.undeliverable",
    };
    let now = workspace.now();
    let mut draft = Draft::new(&org, kind, actor).about(id);
    if let Some(Basis::Grant(grant)) = &row.progress.basis {
        draft = draft.with("grant", grant.as_str());
    }
    if status_is_of_the_call(&state) && row.call().edit > 0 {
        draft = draft.with("edit", row.call().edit);
    }
    draft.job.clone_from(&job);
    workspace.audit(draft);
    let woken = job
        .as_ref()
        .is_some_and(|job| wake::request_settled(workspace, job, id));
    workspace.change_confirmation(id, |row| {
        row.state = state;
        row.revision += 1;
        row.edition += 1;
        if woken {
            row.ledger.woken_at = Some(now);
        }
    });
    refresh_cards(workspace, id);
    true
}

/// Whether people said yes or no to the call, in the form that stood then.
const fn status_is_of_the_call(state: &State) -> bool {
    matches!(state, State::Approved { .. } | State::Rejected { .. })
}

/// Queues every card of the request to be brought up to date.
pub fn refresh_cards(workspace: &mut Workspace, id: &ConfirmationId) {
    let now = workspace.now();
    let cards: Vec<_> = workspace
        .deliveries(id)
        .filter(|card| card.state != DeliveryState::Failed)
        .map(|card| (card.id.clone(), card.host.clone(), card.channel.clone()))
        .collect();
    for (card, host, channel) in cards {
        // The row of the message: that of the card in whose message this one stands.
        let delivery = host.unwrap_or_else(|| card.clone());
        let owner = set::sharing(workspace, id, &card);
        let owner = owner.into_iter().find(|(_, card)| *card == delivery);
        let owner = owner.map_or_else(|| id.clone(), |(owner, _)| owner);
        let row = OutboxId::of_card(&delivery);
        let item = match workspace.outbox(&row) {
            // A sender is at work or waits for its turn: raise the fence so that what it records does not end the row.
            Some(item) => OutboxItem {
                fence: item.fence + 1,
                not_before: if item.lease.is_some() {
                    item.not_before
                } else {
                    now
                },
                ..item.clone()
            },
            None => OutboxItem {
                id: row,
                confirmation: Some(owner),
                channel,
                errand: Errand::Card { delivery, posts: 0 },
                attempts: 0,
                not_before: now,
                lease: None,
                fence: 0,
                created_at: now,
            },
        };
        workspace.put_outbox(item);
    }
}
