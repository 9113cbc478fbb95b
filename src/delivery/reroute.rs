//! When a card cannot stand where it should: the next channel of the rule's chain gets one, in the transaction that records the
//! failure, and when no channel is left on which people are asked, the request ends at once.

use std::time::Duration;

use super::OutboxItem;
use super::plan::Planned;
use crate::audit::{Actor, Draft};
use crate::confirmation::settle::{queue_card, settle};
use crate::confirmation::{Delivery, DeliveryState, State, Status};
use crate::ids::{ConfirmationId, DeliveryId};
use crate::storage::Workspace;

/// How often a card that somebody deleted is posted again on the same channel.
const POSTED_ANEW: u32 = 1;

/// Gives the card of `item` to the next channel of the chain: the first of the spares whose channel does not ask yet. A request
/// that has ended needs none, nor does a card that only tells.
pub(super) fn fall_back(
    workspace: &mut Workspace,
    item: &OutboxItem,
    request: &ConfirmationId,
    delivery: &DeliveryId,
    spares: &Planned,
) {
    let asks = workspace.delivery(delivery).is_some_and(Delivery::asks);
    let Some(org) = workspace
        .confirmation(request)
        .filter(|row| asks && row.state.status() == Status::Pending)
        .map(|row| row.org.clone())
    else {
        return;
    };
    let free = spares.cards.iter().find(|spare| {
        let mut there = workspace.deliveries(request);
        !there.any(|card| card.asks() && card.channel == spare.channel)
    });
    let fit = workspace
        .confirmation(request)
        .zip(free)
        .map(|(row, spare)| Planned::fit_for(spare, spares.revision, row));
    let Some(spare) = fit else { return };
    workspace.insert_delivery(request, spare.clone());
    workspace.audit(
        Draft::new(&org, "delivery.rerouted", Actor::System)
            .about(request)
            .on(spare.channel.as_str())
            .with("instead_of", item.channel.as_str()),
    );
    queue_card(workspace, request, spare.id.clone(), spare.channel.clone());
}

/// A channel fails for a while, and is tried again after `wait`. Where that is later than the rule bears, the next channel of the chain
/// asks as well, once for each card. The card that waits goes on waiting: whichever is answered first settles both.
pub(super) fn lend(
    workspace: &mut Workspace,
    (item, wait): (&OutboxItem, Duration),
    request: &ConfirmationId,
    delivery: &DeliveryId,
    spares: &Planned,
) {
    let again = workspace.now().plus(wait);
    let late = workspace.confirmation(request).is_some_and(|row| {
        let bears = row.terms.after.patience_ms(row.terms.timeout_ms);
        // A request may have joined a message that waits already.
        let since = item.created_at.max(row.created_at);
        !row.progress.lent.contains(delivery) && again.0.saturating_sub(since.0) >= bears
    });
    let waits = workspace.delivery(delivery).is_some_and(|card| !card.stands());
    if !late || !waits || spares.cards.is_empty() {
        return;
    }
    workspace.change_confirmation(request, |row| row.progress.lent.push(delivery.clone()));
    fall_back(workspace, item, request, delivery, spares);
}

/// The last message of a card is gone while people are asked. Tells whether the card is to be posted again on its channel; else
/// it failed there.
pub(super) fn post_anew(workspace: &mut Workspace, delivery: &DeliveryId) -> bool {
    let again = workspace
        .delivery(delivery)
        .is_some_and(|card| card.asks() && card.lost < POSTED_ANEW);
    workspace.change_delivery(delivery, |card| {
        card.lost = card.lost.saturating_add(1);
        card.state = if again {
            DeliveryState::Queued
        } else {
            DeliveryState::Failed
        };
    });
    again
}

/// Every channel refused the card for good and it can stand nowhere: nobody can be asked.
pub(super) fn end_if_nowhere(workspace: &mut Workspace, request: &ConfirmationId) {
    let nowhere = workspace
        .deliveries(request)
        .filter(|card| card.asks())
        .all(|card| card.state == DeliveryState::Failed && !card.stands() && !card.unheard);
    if nowhere {
        let at = workspace.now();
        let at = workspace
            .confirmation(request)
            .map_or(at, |row| at.min(row.expires_at));
        settle(workspace, request, State::Undeliverable { at }, Actor::System);
    }
}
