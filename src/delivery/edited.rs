//! What came of bringing messages up to date: where it was refused, and where the message turned out to be gone. While people are
//! asked, a message that is gone is posted once more; after that, the next channel of the chain has its turn.

use std::time::Duration;

use gatepost_channel::{Failure, MessageRef};

use super::message::{Message, is_pending, leave};
use super::record::{About, Next, audit_failure, pause, up_to_date};
use super::reroute;
use crate::confirmation::settle::queue_card;
use crate::confirmation::{Delivery, DeliveryState};
use crate::ids::DeliveryId;
use crate::storage::Workspace;

/// Failed attempts after which an edit is given up.
const PATIENCE: u32 = 20;

/// What came of the edits that failed; those that were made are on record already.
pub(super) fn edited(workspace: &mut Workspace, about: About<'_>, failed: &[(MessageRef, Failure)]) -> Next {
    let About { item, message, .. } = about;
    let asked = message.asks(workspace);
    let (mut pauses, mut stays_stale) = (Vec::new(), false);
    for (at, failure) in failed {
        if failure.is_temporary() && item.attempts < PATIENCE {
            pauses.push(pause(item.attempts, failure));
            continue;
        }
        let in_group = message.is_at(workspace, at);
        if in_group && message.is_shared() && matches!(failure, Failure::Content { .. }) {
            message.take_apart(workspace);
            return Next::Retry(Duration::ZERO);
        }
        let gone = matches!(failure, Failure::Gone { .. });
        // While people are asked, a card that stands can be pressed, whether we can edit it or not. Afterwards the decision stands
        // in the store, and a message that can no longer be edited is let go; what one person was shown, at once.
        let let_go = gone || !asked || !in_group;
        failed_at(workspace, about, at, failure, let_go);
        stays_stale |= asked && !gone && in_group;
    }
    if let Some(longest) = pauses.into_iter().max() {
        return Next::Retry(longest);
    }
    if stays_stale {
        // The channel takes nothing any more: those who look elsewhere should see the card too.
        leave_if_never_shown(workspace, message);
        about.fall_back(workspace);
        return Next::Done;
    }
    if message.stands(workspace) {
        return up_to_date(workspace, message);
    }
    if asked {
        return if ask_anew(workspace, about) {
            Next::Retry(Duration::ZERO)
        } else {
            Next::GiveUp
        };
    }
    for (request, card) in &message.cards {
        // A card that only tells may be gone while people are asked elsewhere.
        let state = if is_pending(workspace, request) {
            DeliveryState::Failed
        } else {
            DeliveryState::Settled
        };
        workspace.change_delivery(card, |card| card.state = state);
    }
    Next::GiveUp
}

/// A message turned out to be deleted. While people are asked, it is posted again, once; after that, the next channel of the chain
/// has its turn.
pub(super) fn message_gone(workspace: &mut Workspace, about: About<'_>, at: &MessageRef, failure: &Failure) {
    let About { item, message, .. } = about;
    failed_at(workspace, about, at, failure, true);
    if message.asks(workspace) && !message.stands(workspace) && ask_anew(workspace, about) {
        let (request, card) = message.host.clone();
        queue_card(workspace, &request, card, item.channel.clone());
    }
}

/// Puts down for every card that stands there what went wrong with that place, and forgets the place if it is let go.
fn failed_at(workspace: &mut Workspace, about: About<'_>, at: &MessageRef, failure: &Failure, let_go: bool) {
    for (request, card) in &about.message.cards {
        let there = |card: &Delivery| card.standing.iter().any(|place| place.at == *at);
        if !workspace.delivery(card).is_some_and(there) {
            continue;
        }
        audit_failure(workspace, about.item, request, failure);
        workspace.change_delivery(card, |card| {
            card.error = Some(failure.to_string());
            if let_go {
                card.standing.retain(|place| place.at != *at);
            }
        });
    }
}

/// No message of it stands any more while people are asked. Tells whether it is to be posted once more; else each of its requests
/// is asked on the next channel of its chain, and ends where there is none.
fn ask_anew(workspace: &mut Workspace, about: About<'_>) -> bool {
    let message = about.message;
    let again = reroute::post_anew(workspace, &message.host.1);
    for (request, card) in &message.cards {
        if again {
            if *card != message.host.1 {
                workspace.change_delivery(card, |card| card.state = DeliveryState::Queued);
            }
            continue;
        }
        if !is_pending(workspace, request) {
            workspace.change_delivery(card, |card| card.state = DeliveryState::Settled);
            continue;
        }
        if never_shown(workspace, message, card) {
            leave(workspace, request, card);
            continue;
        }
        workspace.change_delivery(card, |card| card.state = DeliveryState::Failed);
        about.fall_back_for(workspace, request, card);
        reroute::end_if_nowhere(workspace, request);
    }
    again
}

/// Whether a card was to come to the message and nothing was ever sent that shows it.
fn never_shown(workspace: &Workspace, message: &Message, card: &DeliveryId) -> bool {
    let queued = |card: &DeliveryId| {
        workspace
            .delivery(card)
            .is_some_and(|card| card.state == DeliveryState::Queued)
    };
    *card != message.host.1 && message.came_late(card) && queued(card)
}

/// Cards that came to the message after it was sent stand in nothing: they are posted by themselves, and fare as they may.
pub(super) fn leave_if_never_shown(workspace: &mut Workspace, message: &Message) {
    for (request, card) in &message.cards {
        if never_shown(workspace, message, card) {
            leave(workspace, request, card);
        }
    }
}
