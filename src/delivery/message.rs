//! The message that an outbox row keeps true: one card, or those of a set of like requests that share it. What is known of the
//! message is written down for each of the cards that were in it. Knows the store's workspace; sends nothing.

use gatepost_channel::{CardForm, MessageRef, UtcMillis};

use crate::confirmation::settle::refresh_cards;
use crate::confirmation::{Delivery, DeliveryState, Standing, Status, set};
use crate::ids::{ConfirmationId, DeliveryId};
use crate::storage::Workspace;

/// Which cards stand in a message, and which were in what was sent.
pub(super) struct Message {
    /// The card whose row it is.
    pub(super) host: (ConfirmationId, DeliveryId),
    /// All cards that stand in it now, the host's among them, in order.
    pub(super) cards: Vec<(ConfirmationId, DeliveryId)>,
    /// The other cards that were in what was sent, each with the edition that it showed.
    beside: Vec<(DeliveryId, u32)>,
}

impl Message {
    /// The message in which this card stands.
    pub(super) fn of(
        workspace: &Workspace,
        request: &ConfirmationId,
        delivery: &DeliveryId,
        beside: &[(DeliveryId, u32)],
    ) -> Self {
        let cards = set::sharing(workspace, request, delivery);
        let host = workspace.delivery(delivery).and_then(|card| card.host.clone());
        let host = host.unwrap_or_else(|| delivery.clone());
        let found = cards.iter().find(|(_, card)| *card == host).cloned();
        Self {
            host: found.unwrap_or_else(|| (request.clone(), delivery.clone())),
            cards,
            beside: beside.to_vec(),
        }
    }

    /// Whether several cards stand in it.
    pub(super) const fn is_shared(&self) -> bool {
        self.cards.len() > 1
    }

    /// The cards that were in what was sent, with the edition that each showed. `edition` is the host's.
    pub(super) fn sent(&self, edition: u32) -> impl Iterator<Item = (&DeliveryId, u32)> {
        let beside = self.beside.iter().map(|(card, edition)| (card, *edition));
        std::iter::once((&self.host.1, edition)).chain(beside)
    }

    /// Changes every card that was in what was sent.
    pub(super) fn change(&self, workspace: &mut Workspace, change: impl Fn(&mut Delivery)) {
        for (card, _) in self.sent(0) {
            workspace.change_delivery(card, &change);
        }
    }

    /// Whether a card came to it too late to be in what was sent.
    pub(super) fn came_late(&self, card: &DeliveryId) -> bool {
        self.sent(0).all(|(other, _)| other != card)
    }

    /// Whether people are still asked on it.
    pub(super) fn asks(&self, workspace: &Workspace) -> bool {
        self.cards.iter().any(|(request, card)| {
            is_pending(workspace, request) && workspace.delivery(card).is_some_and(Delivery::asks)
        })
    }

    /// Whether it stands anywhere.
    pub(super) fn stands(&self, workspace: &Workspace) -> bool {
        workspace.delivery(&self.host.1).is_some_and(Delivery::stands)
    }

    /// Whether it stands in the group at this place; what stands there for one person alone is not it.
    pub(super) fn is_at(&self, workspace: &Workspace, at: &MessageRef) -> bool {
        workspace
            .delivery(&self.host.1)
            .is_some_and(|host| in_group(host).any(|place| place == at))
    }

    /// It stands there now, in this form.
    pub(super) fn posted(&self, workspace: &mut Workspace, at: &MessageRef, form: CardForm, edition: u32) {
        for (card, edition) in self.sent(edition) {
            workspace.change_delivery(card, |card| stands(card, at, form, edition));
        }
    }

    /// It stands there now in this form, as an earlier try sent it: what it shows is not known, so all of it is stale.
    pub(super) fn posted_before(&self, workspace: &mut Workspace, at: &MessageRef, form: CardForm) {
        for (card, _) in self.sent(0) {
            workspace.change_delivery(card, |card| stands(card, at, form, 0));
        }
    }

    /// Whether an earlier try may have left a message, or is known to have left this one.
    pub(super) fn may_be_of_an_earlier_try(&self, workspace: &Workspace, at: &MessageRef) -> bool {
        self.is_at(workspace, at) || workspace.delivery(&self.host.1).is_some_and(|host| host.unheard)
    }

    /// These places show what was sent. A card that left the message since is posted by itself, and learns nothing from this one.
    pub(super) fn shown(&self, workspace: &mut Workspace, edition: u32, done: &[(MessageRef, CardForm)]) {
        for (at, form) in done {
            let shared = self.is_at(workspace, at);
            for (card, edition) in self.sent(edition) {
                if self.cards.iter().all(|(_, still)| still != card) {
                    continue;
                }
                workspace.change_delivery(card, |card| {
                    if shared || card.standing.iter().any(|message| message.at == *at) {
                        stands(card, at, *form, edition);
                        card.standing
                            .retain(|place| place.at != *at || !place.is_leaving());
                    }
                });
            }
        }
    }

    /// Every card but the host's leaves it and is posted by itself.
    pub(super) fn take_apart(&self, workspace: &mut Workspace) {
        for (request, card) in &self.cards {
            if *card != self.host.1 {
                leave(workspace, request, card);
                continue;
            }
            workspace.change_delivery(card, |card| {
                if !card.stands() {
                    card.state = DeliveryState::Queued;
                }
                // Whatever the message shows, it is not this card alone.
                let group = card.standing.iter_mut().filter(|place| place.reader.is_none());
                group.for_each(|place| place.edition = 0);
            });
        }
    }

    /// Whether every place shows every request as it stands. Cards of settled requests have no more to say then.
    pub(super) fn settle_what_is_shown(&self, workspace: &mut Workspace) -> bool {
        let places: Vec<_> = workspace
            .delivery(&self.host.1)
            .map_or_else(Vec::new, |host| in_group(host).cloned().collect());
        let is_true = |(request, card): &(ConfirmationId, DeliveryId)| {
            let known = workspace.confirmation(request).zip(workspace.delivery(card));
            known.is_some_and(|(row, card)| {
                let new = |at: &MessageRef| {
                    let mut there = card.standing.iter().filter(|place| place.at == *at);
                    there.any(|place| place.edition >= row.edition)
                };
                places.iter().all(new) && card.standing.iter().all(|place| new(&place.at))
            })
        };
        if !self.cards.iter().all(is_true) {
            return false;
        }
        for (request, card) in &self.cards {
            if !is_pending(workspace, request) {
                workspace.change_delivery(card, |card| card.state = DeliveryState::Settled);
            }
        }
        true
    }

    /// When the first of its permits runs out unused: the message will say so.
    pub(super) fn first_lapse(&self, workspace: &Workspace) -> Option<UtcMillis> {
        let rows = self.cards.iter().filter_map(|(id, _)| workspace.confirmation(id));
        rows.filter(|row| row.state.consumed().is_none() && !row.progress.lapsed)
            .filter_map(crate::confirmation::Confirmation::permit_until)
            .min()
    }
}

/// The card leaves the message in which it should have stood, and is posted by itself.
pub(super) fn leave(workspace: &mut Workspace, request: &ConfirmationId, card: &DeliveryId) {
    workspace.change_delivery(card, |card| {
        card.host = None;
        card.standing.retain(|place| place.reader.is_some());
        card.state = DeliveryState::Queued;
    });
    refresh_cards(workspace, request);
}

/// Whether the request waits for an answer.
pub(super) fn is_pending(workspace: &Workspace, request: &ConfirmationId) -> bool {
    workspace
        .confirmation(request)
        .is_some_and(|row| row.state.status() == Status::Pending)
}

fn in_group(card: &Delivery) -> impl Iterator<Item = &MessageRef> {
    let group = card.standing.iter().filter(|place| place.reader.is_none());
    group.map(|place| &place.at)
}

/// The card stands there in this form and shows this edition at least.
fn stands(card: &mut Delivery, at: &MessageRef, form: CardForm, edition: u32) {
    let minimal = form == CardForm::Minimal;
    match card.standing.iter_mut().find(|place| place.at == *at) {
        // An edit that is told late says nothing about what stands there now.
        Some(place) if edition < place.edition => {}
        Some(place) => {
            place.edition = edition;
            place.minimal = minimal;
        }
        None => card.standing.push(Standing {
            at: at.clone(),
            edition,
            minimal,
            reader: None,
        }),
    }
    if matches!(card.state, DeliveryState::Queued | DeliveryState::Sending) {
        card.state = DeliveryState::Posted;
    }
}
