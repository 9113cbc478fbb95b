//! Claiming what is due: one sender at a time for each row, and never faster than a group may be written to.

use std::collections::BTreeMap;
use std::time::Duration;

use gatepost_channel::Pace;

use super::{Errand, OutboxItem, escalate};
use crate::confirmation::{DeliveryState, Dossier, Status, set};
use crate::ids::{ChannelName, ConfirmationId, WorkerId};
use crate::storage::{Touches, Transaction, Workspace};

/// Takes due rows for one sender.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Who will send.
    pub worker: WorkerId,
    /// How long the claim is believed: longer than any platform call takes.
    pub lease: Duration,
    /// At most so many.
    pub limit: usize,
    /// How many messages each channel may take now, and how fast more become free. Rows beyond that are put off.
    pub room: BTreeMap<ChannelName, (u32, Pace)>,
}

/// A claimed row with the request as it stands.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The row; its fence is the claim's.
    pub item: OutboxItem,
    /// The request; a notice may be about none.
    pub dossier: Option<Dossier>,
    /// The whole set that the request is in, in its order; empty when it is alone.
    pub fellows: Vec<Dossier>,
}

impl Transaction for Claim {
    type Answer = Vec<Claimed>;
    const NAME: &'static str = "claim_outbox";

    fn touches(&self, touches: &mut Touches) {
        touches.due_outbox = touches.due_outbox.max(self.limit);
    }

    fn apply(&self, workspace: &mut Workspace) -> Vec<Claimed> {
        let now = workspace.now();
        let due: Vec<_> = workspace.due_outbox().iter().take(self.limit).cloned().collect();
        let mut taken: BTreeMap<ChannelName, u32> = BTreeMap::new();
        let mut claimed = Vec::new();
        for id in due {
            let Some(item) = workspace.outbox(&id).cloned() else {
                continue;
            };
            if item.not_before > now || item.lease.as_ref().is_some_and(|(_, until)| *until > now) {
                continue;
            }
            // A private notice is no message to the group: it neither takes a card's turn nor waits for one.
            let is_message = item.errand.is_message();
            if let Some((free, pace)) = self.room.get(&item.channel).filter(|_| is_message) {
                let before = taken.entry(item.channel.clone()).or_default();
                *before += 1;
                if *before > *free {
                    let wait = pace.every.saturating_mul(*before - *free);
                    workspace.put_outbox(OutboxItem {
                        not_before: now.plus(wait),
                        ..item
                    });
                    continue;
                }
            }
            let item = OutboxItem {
                lease: Some((self.worker.clone(), now.plus(self.lease))),
                fence: item.fence + 1,
                ..item
            };
            if let Some(item) = begin(workspace, item) {
                let request = item.confirmation.as_ref();
                claimed.push(Claimed {
                    dossier: request.and_then(|id| workspace.dossier(id)),
                    fellows: request.map_or_else(Vec::new, |id| set::fellows(workspace, id)),
                    item,
                });
            }
        }
        claimed
    }
}

/// Marks what is about to happen, before it happens. `None` when nothing needs to be sent any more.
fn begin(workspace: &mut Workspace, mut item: OutboxItem) -> Option<OutboxItem> {
    if let Errand::Card { delivery, posts } = &mut item.errand {
        // The cards that stand in the message: several where like requests share it.
        let cards = item
            .confirmation
            .as_ref()
            .map_or_else(Vec::new, |id| set::sharing(workspace, id, delivery));
        let rows = cards.iter().filter_map(|(id, _)| workspace.confirmation(id));
        let mut open = rows
            .filter(|row| row.state.status() == Status::Pending)
            .peekable();
        let settled = open.peek().is_none();
        let late = open.all(|row| workspace.now() >= row.expires_at);
        let card = workspace.delivery(delivery)?;
        if !card.stands() {
            if late && !settled {
                // Nobody could answer it any more. The expiry, which is due, judges by what stood before.
                workspace.remove_outbox(&item.id);
                return None;
            }
            if settled {
                // Never stood: nothing to show. A post with an unknown outcome keeps its state, so that a late press on it
                // is still recognised.
                for (_, card) in &cards {
                    workspace.change_delivery(card, |card| {
                        if card.state != DeliveryState::Sending {
                            card.state = DeliveryState::Settled;
                        }
                    });
                }
                workspace.remove_outbox(&item.id);
                return None;
            }
            *posts += 1;
            for (_, card) in &cards {
                workspace.change_delivery(card, |card| {
                    // Somebody began to post it and never told what came of it: that message may stand beside the next one.
                    card.unheard |= card.state == DeliveryState::Sending;
                    card.state = DeliveryState::Sending;
                });
            }
        }
        for (request, _) in &cards {
            lapse(workspace, request);
        }
    }
    let row = item
        .confirmation
        .as_ref()
        .and_then(|id| workspace.confirmation(id));
    let now = workspace.now();
    let wanted = match &mut item.errand {
        Errand::Card { .. } | Errand::Notice { .. } | Errand::Whisper { .. } | Errand::View { .. } => true,
        Errand::Escalate { step } => row.is_some_and(|row| escalate::is_wanted(row, *step, now)),
        Errand::Line { line, begun, .. } => {
            *begun = begun.saturating_add(1);
            row.is_some_and(|row| line.is_wanted(row))
        }
    };
    if !wanted {
        workspace.remove_outbox(&item.id);
        return None;
    }
    workspace.put_outbox(item.clone());
    Some(item)
}

/// A permit that nobody used in time: the row of a card waited for that, so that the card can say it.
fn lapse(workspace: &mut Workspace, request: &ConfirmationId) {
    let now = workspace.now();
    let lapsed = workspace.confirmation(request).is_some_and(|row| {
        let unused = row.state.consumed().is_none() && !row.progress.lapsed;
        unused && row.permit_until().is_some_and(|until| until <= now)
    });
    if lapsed {
        workspace.change_confirmation(request, |row| {
            row.progress.lapsed = true;
            row.edition += 1;
        });
    }
}
