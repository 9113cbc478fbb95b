//! Recording what came of sending, under the claim's fence. A card that is refused everywhere for good ends its request at once.
//!
//! A message shows one card, or those of a set of like requests: what came of the message is recorded for each of them.

use std::time::Duration;

use gatepost_channel::{CardForm, Failure, MessageRef};

use super::{Errand, OutboxItem};
use crate::audit::{Actor, Draft};
use crate::confirmation::settle::{refresh_cards, settle};
use crate::confirmation::{Delivery, DeliveryState, Standing, State, Status, set};
use crate::ids::{ConfirmationId, DeliveryId};
use crate::storage::{Touches, Transaction, Workspace};

/// Failed attempts after which an edit or a notice is given up. A post is tried until its request ends.
const PATIENCE: u32 = 20;
/// Posts with an unknown outcome after which no further card is risked.
const UNKNOWN_POSTS: u32 = 2;
/// The pause before a post with an unknown outcome is repeated.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// What came of one claimed row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// The card stands.
    Posted {
        /// Where.
        at: MessageRef,
        /// In which form.
        form: CardForm,
        /// What it shows.
        edition: u32,
        /// The platform promises that no earlier try with the same key left another message.
        alone: bool,
    },
    /// A post left and no clear answer came.
    PostUnknown(String),
    /// The card was certainly not posted.
    PostFailed(Failure),
    /// These messages were edited to this edition; these others could not be.
    Edited {
        /// What they show now.
        edition: u32,
        /// Where it worked, and in which form the card stands there now.
        done: Vec<(MessageRef, CardForm)>,
        /// Where it did not.
        failed: Vec<(MessageRef, Failure)>,
    },
    /// The notice was delivered.
    Told,
    /// The notice was not delivered.
    TellFailed(Failure),
}

/// Records it.
#[derive(Debug, Clone)]
pub struct Record {
    /// The row as it was claimed: its fence tells whether something new was wanted since, its lease whose turn it is.
    pub item: OutboxItem,
    /// What happened.
    pub sent: Sent,
    /// Which editions the message showed of the other cards that stand in it.
    pub beside: Vec<(DeliveryId, u32)>,
}

impl Transaction for Record {
    type Answer = ();
    const NAME: &'static str = "record_outbox";

    fn touches(&self, touches: &mut Touches) {
        touches.outbox.insert(self.item.id.clone());
        // The row may be gone, and what happened to its card must be told all the same.
        touches.confirmations.extend(self.item.confirmation.clone());
    }

    fn apply(&self, workspace: &mut Workspace) {
        let row = workspace.outbox(&self.item.id).cloned();
        // A claim is known by its lease: whoever takes over gets a lease of their own, and a press that told where the card
        // stands takes it away.
        let Some(item) = row.filter(|row| row.lease == self.item.lease) else {
            if let (Errand::Card { delivery, .. }, Some(request)) =
                (&self.item.errand, &self.item.confirmation)
            {
                let message = Message::of(workspace, request, delivery, &self.beside);
                too_late(workspace, &message, &self.sent);
            }
            return;
        };
        // Something new was wanted meanwhile (the fence rose): what happened is recorded, and the row stays.
        let current = item.fence == self.item.fence;
        match (&item.errand, &self.sent) {
            (Errand::Card { delivery, posts }, sent) => {
                let next = match item.confirmation.clone() {
                    Some(request) => {
                        let message = Message::of(workspace, &request, delivery, &self.beside);
                        card(workspace, &item, &message, *posts, sent)
                    }
                    None => Next::GiveUp,
                };
                finish(workspace, item, next, current);
            }
            (Errand::Notice { .. } | Errand::Whisper { .. }, Sent::TellFailed(failure))
                if failure.is_temporary() && item.attempts < 2 =>
            {
                let next = Next::Retry(pause(item.attempts, failure));
                finish(workspace, item, next, current);
            }
            (Errand::Notice { .. } | Errand::Whisper { .. }, _) => workspace.remove_outbox(&item.id),
        }
    }
}

/// The message that an outbox row keeps true.
struct Message {
    /// The card of the row itself.
    host: (ConfirmationId, DeliveryId),
    /// All cards that stand in it now, the host's among them, in order.
    cards: Vec<(ConfirmationId, DeliveryId)>,
    /// The other cards that were in what was sent, each with the edition that it showed.
    beside: Vec<(DeliveryId, u32)>,
}

impl Message {
    fn of(
        workspace: &Workspace,
        request: &ConfirmationId,
        delivery: &DeliveryId,
        beside: &[(DeliveryId, u32)],
    ) -> Self {
        Self {
            host: (request.clone(), delivery.clone()),
            cards: set::sharing(workspace, request, delivery),
            beside: beside.to_vec(),
        }
    }

    /// The cards that were in what was sent, with the edition that each showed. `edition` is the host's.
    fn sent(&self, edition: u32) -> impl Iterator<Item = (&DeliveryId, u32)> {
        let beside = self.beside.iter().map(|(card, edition)| (card, *edition));
        std::iter::once((&self.host.1, edition)).chain(beside)
    }

    /// Changes every card that was in what was sent.
    fn change(&self, workspace: &mut Workspace, change: impl Fn(&mut Delivery)) {
        for (card, _) in self.sent(0) {
            workspace.change_delivery(card, &change);
        }
    }

    /// The requests whose cards stand in it.
    fn requests(&self) -> impl Iterator<Item = &ConfirmationId> {
        self.cards.iter().map(|(request, _)| request)
    }
}

/// What a sender tells whose claim is over. The row is somebody else's or done, so it stays as it is, and a failure means
/// nothing: whoever took over tries again. But a message that stands, stands.
fn too_late(workspace: &mut Workspace, message: &Message, sent: &Sent) {
    match sent {
        Sent::Posted {
            at, form, edition, ..
        } => {
            let known = workspace
                .delivery(&message.host.1)
                .is_none_or(|card| card.standing.iter().any(|message| message.at == *at));
            if known {
                return;
            }
            for (card, edition) in message.sent(*edition) {
                workspace.change_delivery(card, |card| {
                    stands(card, at, *form, edition);
                    // This is the message that nobody had told of.
                    card.unheard = false;
                });
            }
            refresh_cards(workspace, &message.host.0);
        }
        Sent::PostUnknown(_) => message.change(workspace, |card| card.unheard |= card.standing.is_empty()),
        Sent::Edited { edition, done, .. } => shown(workspace, message, *edition, done),
        Sent::PostFailed(_) | Sent::Told | Sent::TellFailed(_) => {}
    }
}

/// The card stands there in this form and shows this edition at least.
fn stands(card: &mut Delivery, at: &MessageRef, form: CardForm, edition: u32) {
    let minimal = form == CardForm::Minimal;
    match card.standing.iter_mut().find(|message| message.at == *at) {
        // An edit that is told late says nothing about what stands there now.
        Some(message) if edition < message.edition => {}
        Some(message) => {
            message.edition = edition;
            message.minimal = minimal;
        }
        None => card.standing.push(Standing {
            at: at.clone(),
            edition,
            minimal,
        }),
    }
    if matches!(card.state, DeliveryState::Queued | DeliveryState::Sending) {
        card.state = DeliveryState::Posted;
    }
}

/// These messages show this edition, and what stood beside it.
fn shown(workspace: &mut Workspace, message: &Message, edition: u32, done: &[(MessageRef, CardForm)]) {
    // Where the host no longer stands, nothing does.
    let here = |(at, _): &&(MessageRef, CardForm)| {
        let host = workspace.delivery(&message.host.1);
        host.is_some_and(|host| host.standing.iter().any(|message| message.at == *at))
    };
    let done: Vec<_> = done.iter().filter(here).cloned().collect();
    for (card, edition) in message.sent(edition) {
        // A card that left the message since is posted by itself.
        if message.cards.iter().all(|(_, still)| still != card) {
            continue;
        }
        workspace.change_delivery(card, |card| {
            for (at, form) in &done {
                stands(card, at, *form, edition);
            }
        });
    }
}

#[derive(Clone, Copy)]
enum Next {
    /// Nothing is left to do, unless something new was wanted meanwhile.
    Done,
    /// Again after this pause.
    Retry(Duration),
    /// Given up for good.
    GiveUp,
}

fn finish(workspace: &mut Workspace, item: OutboxItem, next: Next, current: bool) {
    let now = workspace.now();
    match next {
        Next::GiveUp => workspace.remove_outbox(&item.id),
        Next::Done if current => workspace.remove_outbox(&item.id),
        Next::Done => workspace.put_outbox(OutboxItem {
            lease: None,
            not_before: now,
            attempts: 0,
            ..item
        }),
        Next::Retry(after) => {
            let attempts = item.attempts.saturating_add(1);
            workspace.put_outbox(OutboxItem {
                lease: None,
                not_before: now.plus(after),
                attempts,
                ..item
            });
        }
    }
}

fn card(workspace: &mut Workspace, item: &OutboxItem, message: &Message, posts: u32, sent: &Sent) -> Next {
    if workspace.confirmation(&message.host.0).is_none() {
        return Next::GiveUp;
    }
    match sent {
        Sent::Posted {
            at,
            form,
            edition: shows,
            alone,
        } => {
            for (card, shows) in message.sent(*shows) {
                workspace.change_delivery(card, |card| {
                    stands(card, at, *form, shows);
                    card.state = DeliveryState::Posted;
                    card.error = None;
                    card.unheard &= !alone;
                });
            }
            up_to_date(workspace, message)
        }
        Sent::PostUnknown(why) => {
            message.change(workspace, |card| {
                card.error = Some(why.clone());
                // A press that came before this may have told us where the card stands.
                card.unheard = card.standing.is_empty();
            });
            if posts >= UNKNOWN_POSTS {
                Next::GiveUp
            } else {
                Next::Retry(UNKNOWN_PAUSE)
            }
        }
        Sent::PostFailed(failure) if failure.is_temporary() => {
            message.change(workspace, |card| {
                card.state = if card.standing.is_empty() {
                    DeliveryState::Queued
                } else {
                    DeliveryState::Posted
                };
                card.error = Some(failure.to_string());
            });
            Next::Retry(pause(item.attempts, failure))
        }
        // What is refused together may be taken one by one, each with its own plainest form.
        Sent::PostFailed(Failure::Content { .. }) if message.cards.len() > 1 => {
            take_apart(workspace, message);
            Next::Retry(Duration::ZERO)
        }
        Sent::PostFailed(failure) => {
            for (request, delivery) in &message.cards {
                fail(workspace, item, request, delivery, failure);
            }
            for request in message.requests() {
                undeliverable(workspace, request);
            }
            Next::GiveUp
        }
        Sent::Edited {
            edition: shows,
            done,
            failed,
        } => {
            shown(workspace, message, *shows, done);
            edited(workspace, item, message, failed)
        }
        Sent::Told | Sent::TellFailed(_) => Next::GiveUp,
    }
}

/// Every card but the host's leaves the message and is posted by itself.
fn take_apart(workspace: &mut Workspace, message: &Message) {
    for (request, card) in &message.cards {
        if *card == message.host.1 {
            workspace.change_delivery(card, |card| {
                if card.standing.is_empty() {
                    card.state = DeliveryState::Queued;
                }
                // Whatever its message shows, it is not this card alone.
                card.standing.iter_mut().for_each(|message| message.edition = 0);
            });
            continue;
        }
        workspace.change_delivery(card, |card| {
            card.host = None;
            card.standing.clear();
            card.state = DeliveryState::Queued;
        });
        refresh_cards(workspace, request);
    }
}

fn edited(
    workspace: &mut Workspace,
    item: &OutboxItem,
    message: &Message,
    failed: &[(MessageRef, Failure)],
) -> Next {
    let mut pauses = Vec::new();
    for (at, failure) in failed {
        if failure.is_temporary() && item.attempts < PATIENCE {
            pauses.push(pause(item.attempts, failure));
            continue;
        }
        if matches!(failure, Failure::Content { .. }) && message.cards.len() > 1 {
            take_apart(workspace, message);
            return Next::Retry(Duration::ZERO);
        }
        // The decision stands in the store; a message that can no longer be edited is let go.
        for (request, card) in &message.cards {
            workspace.change_delivery(card, |card| {
                card.standing.retain(|message| message.at != *at);
                card.error = Some(failure.to_string());
            });
            audit_failure(workspace, item, request, failure);
        }
    }
    if let Some(longest) = pauses.into_iter().max() {
        return Next::Retry(longest);
    }
    if workspace
        .delivery(&message.host.1)
        .is_some_and(|card| card.standing.is_empty())
    {
        for (request, card) in &message.cards {
            lost(workspace, request, card, message);
        }
        return Next::GiveUp;
    }
    up_to_date(workspace, message)
}

/// The message of this card is gone. A card that came to it too late to be shown is posted by itself.
fn lost(workspace: &mut Workspace, request: &ConfirmationId, card: &DeliveryId, message: &Message) {
    let pending = is_pending(workspace, request);
    let never_shown = *card != message.host.1
        && workspace
            .delivery(card)
            .is_some_and(|card| card.state == DeliveryState::Queued);
    workspace.change_delivery(card, |card| {
        (card.state, card.host) = match (pending, never_shown) {
            (true, true) => (DeliveryState::Queued, None),
            (true, false) => (DeliveryState::Failed, card.host.take()),
            (false, _) => (DeliveryState::Settled, card.host.take()),
        };
    });
    if pending && never_shown {
        refresh_cards(workspace, request);
    }
}

fn is_pending(workspace: &Workspace, request: &ConfirmationId) -> bool {
    workspace
        .confirmation(request)
        .is_some_and(|row| row.state.status() == Status::Pending)
}

/// Whether every message of the card shows its requests as they stand.
fn up_to_date(workspace: &mut Workspace, message: &Message) -> Next {
    let places: Vec<_> = workspace.delivery(&message.host.1).map_or_else(Vec::new, |host| {
        host.standing.iter().map(|message| message.at.clone()).collect()
    });
    let shows = |workspace: &Workspace, request, card| {
        let wanted = workspace.confirmation(request)?.edition;
        let standing = &workspace.delivery(card)?.standing;
        let shown = |at: &MessageRef| standing.iter().any(|m| m.at == *at && m.edition >= wanted);
        places.iter().all(shown).then_some(())
    };
    let true_everywhere = message
        .cards
        .iter()
        .all(|(request, card)| shows(workspace, request, card).is_some());
    if !true_everywhere {
        return Next::Retry(Duration::ZERO);
    }
    for (request, card) in &message.cards {
        if !is_pending(workspace, request) {
            workspace.change_delivery(card, |card| card.state = DeliveryState::Settled);
        }
    }
    Next::Done
}

fn fail(
    workspace: &mut Workspace,
    item: &OutboxItem,
    request: &ConfirmationId,
    delivery: &DeliveryId,
    failure: &Failure,
) {
    workspace.change_delivery(delivery, |card| {
        card.state = DeliveryState::Failed;
        card.error = Some(failure.to_string());
    });
    audit_failure(workspace, item, request, failure);
}

fn audit_failure(workspace: &mut Workspace, item: &OutboxItem, request: &ConfirmationId, failure: &Failure) {
    let Some(row) = workspace.confirmation(request) else {
        return;
    };
    let draft = Draft::new(&row.org, "delivery.failed", Actor::System)
        .about(request)
        .on(item.channel.as_str())
        .with("error", failure.to_string());
    workspace.audit(draft);
}

/// Every channel refused the card for good and it can stand nowhere: nobody can be asked.
fn undeliverable(workspace: &mut Workspace, request: &ConfirmationId) {
    let nowhere = workspace
        .deliveries(request)
        .all(|card| card.state == DeliveryState::Failed && card.standing.is_empty() && !card.unheard);
    if nowhere {
        let at = workspace.now();
        let at = workspace
            .confirmation(request)
            .map_or(at, |row| at.min(row.expires_at));
        settle(workspace, request, State::Undeliverable { at }, Actor::System);
    }
}

fn pause(attempts: u32, failure: &Failure) -> Duration {
    let backoff = Duration::from_secs(1_u64 << attempts.min(6)).min(LONGEST_PAUSE);
    match failure {
        Failure::Retry {
            after: Some(after), ..
        } => (*after).clamp(Duration::from_millis(200), Duration::from_mins(10)),
        _ => backoff,
    }
}
