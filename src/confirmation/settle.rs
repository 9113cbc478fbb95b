//! The one way out of `pending`. Approve, reject, expire, cancel and undeliverable all pass through here, and with the state go
//! its audit event, the outbox rows of its cards and the wake-up of its job.

use std::time::Duration;

use crate::audit::{Actor, Draft};
use crate::delivery::thread::{self, Line};
use crate::delivery::{Errand, OutboxItem};
use crate::ids::{ChannelName, ConfirmationId, DeliveryId, OutboxId};
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
    match &row.progress.basis {
        Some(Basis::Grant(grant)) => draft = draft.with("grant", grant.as_str()),
        Some(Basis::BreakGlass(broken)) => draft = draft.with("break_glass", broken.person.as_str()),
        None => {}
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
        row.progress.armed.clear();
        row.revision += 1;
        row.edition += 1;
        if woken {
            row.ledger.woken_at = Some(now);
        }
    });
    refresh_cards(workspace, id);
    thread::queue_notes(workspace, id, Line::Settled);
    true
}

/// Whether people said yes or no to the call, in the form that stood then.
const fn status_is_of_the_call(state: &State) -> bool {
    matches!(state, State::Approved { .. } | State::Rejected { .. })
}

/// Queues every card of the request to be brought up to date.
pub fn refresh_cards(workspace: &mut Workspace, id: &ConfirmationId) {
    let cards: Vec<_> = workspace
        .deliveries(id)
        .filter(|card| card.state != DeliveryState::Failed)
        .map(|card| (card.id.clone(), card.channel.clone()))
        .collect();
    for (delivery, channel) in cards {
        queue_card(workspace, id, delivery, channel);
    }
}

/// Queues every card of the request to be brought up to date within this time: what changes again meanwhile is shown with it.
pub fn refresh_cards_within(workspace: &mut Workspace, id: &ConfirmationId, span: Duration) {
    let now = workspace.now();
    let waiting: Vec<_> = workspace
        .deliveries(id)
        .map(|card| set::outbox_row(workspace, &card.id))
        .map(|row| {
            let before = workspace.outbox(&row).map(|item| item.not_before);
            (row, before.unwrap_or(now.plus(span)).min(now.plus(span)))
        })
        .collect();
    refresh_cards(workspace, id);
    for (row, not_before) in waiting {
        if let Some(item) = workspace
            .outbox(&row)
            .filter(|item| item.lease.is_none())
            .cloned()
        {
            workspace.put_outbox(OutboxItem { not_before, ..item });
        }
    }
}

/// Queues one card to be brought up to date: the row is that of the message in which it stands.
pub fn queue_card(
    workspace: &mut Workspace,
    request: &ConfirmationId,
    delivery: DeliveryId,
    channel: ChannelName,
) {
    let now = workspace.now();
    let (owner, delivery) = set::host(workspace, request, delivery);
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
