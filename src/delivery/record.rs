//! Recording what came of sending, under the claim's fence. A card that is refused everywhere for good ends its request at once.
//!
//! A message shows one card, or those of a set of like requests: what came of the message is recorded for each of them.

use std::time::Duration;

use gatepost_channel::{CardForm, Failure, MessageRef, UtcMillis};

use super::edited::{edited, leave_if_never_shown, message_gone};
use super::message::Message;
use super::plan::Spares;
use super::{Errand, OutboxItem, reroute};
use crate::audit::{Actor, Draft};
use crate::confirmation::DeliveryState;
use crate::confirmation::settle::refresh_cards;
use crate::ids::{ConfirmationId, DeliveryId};
use crate::storage::{Touches, Transaction, Workspace};

/// Failed attempts after which a line below a card is given up.
const LINE_PATIENCE: u32 = 5;
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
    /// One of the messages that show one person everything was sent.
    Page {
        /// Where it stands and which edition it shows, if it is the last of them.
        last: Option<(MessageRef, u32)>,
    },
    /// The notice was delivered.
    Told,
    /// The notice was not delivered.
    TellFailed(Failure),
    /// The card's message, below which something was to be said, is no longer there.
    MessageGone {
        /// Which.
        at: MessageRef,
        /// The platform's word for it.
        failure: Failure,
    },
}

impl Sent {
    /// Whether it may lead to a card on another channel.
    pub const fn needs_spares(&self) -> bool {
        match self {
            Self::PostUnknown(_) | Self::PostFailed(_) | Self::MessageGone { .. } => true,
            Self::Edited { failed, .. } => !failed.is_empty(),
            Self::Posted { .. } | Self::Page { .. } | Self::Told | Self::TellFailed(_) => false,
        }
    }
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
    /// Cards for the rest of the fallback chain of each request of the message, in order; the first that is needed and free is
    /// taken.
    pub spares: Spares,
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
                        let about = About {
                            item: &item,
                            message: &message,
                            spares: &self.spares,
                        };
                        card(workspace, about, *posts, sent)
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
            (Errand::Notice { .. } | Errand::Whisper { .. } | Errand::Escalate { .. }, _) => {
                workspace.remove_outbox(&item.id);
            }
            (Errand::View { .. }, sent) => super::view::record(workspace, item, sent),
            (Errand::Line { delivery, .. }, sent) => {
                if let (Some(request), Sent::MessageGone { at, failure }) = (&item.confirmation, sent) {
                    let message = Message::of(workspace, request, delivery, &[]);
                    let about = About {
                        item: &item,
                        message: &message,
                        spares: &self.spares,
                    };
                    message_gone(workspace, about, at, failure);
                }
                said(workspace, item, sent, current);
            }
        }
    }
}

/// What a sender tells whose claim is over. The row is somebody else's or done, so it stays as it is, and a failure means
/// nothing: whoever took over tries again. But a message that stands, stands.
fn too_late(workspace: &mut Workspace, message: &Message, sent: &Sent) {
    match sent {
        Sent::Posted {
            at,
            form,
            edition,
            alone,
        } => {
            let host = workspace.delivery(&message.host.1);
            if host.is_none_or(|host| host.standing.iter().any(|place| place.at == *at)) {
                return;
            }
            // Whoever took over may have tried again under the same key, or have been tried before: see `card`.
            if *alone {
                message.posted_before(workspace, at, *form);
            } else {
                message.posted(workspace, at, *form, *edition);
            }
            message.change(workspace, |card| {
                card.state = DeliveryState::Posted;
                // This is the message that nobody had told of.
                card.unheard = false;
            });
            refresh_cards(workspace, &message.host.0);
        }
        Sent::PostUnknown(_) => message.change(workspace, |card| card.unheard |= !card.stands()),
        Sent::Edited { edition, done, .. } => message.shown(workspace, *edition, done),
        Sent::PostFailed(_)
        | Sent::Page { .. }
        | Sent::Told
        | Sent::TellFailed(_)
        | Sent::MessageGone { .. } => {}
    }
}

/// The message that an errand is about.
#[derive(Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) item: &'a OutboxItem,
    pub(super) message: &'a Message,
    spares: &'a Spares,
}

impl About<'_> {
    /// Every request of the message that still asks gets a card on the next channel of its chain.
    pub(super) fn fall_back(&self, workspace: &mut Workspace) {
        for (request, card) in &self.message.cards {
            self.fall_back_for(workspace, request, card);
        }
    }

    /// The channel fails for a while and is tried again after `wait`: where a request bears that no longer, another channel asks too.
    fn lend(&self, workspace: &mut Workspace, wait: Duration) {
        for (request, card) in &self.message.cards {
            if let Some(spares) = self.spares.get(request) {
                reroute::lend(workspace, (self.item, wait), request, card, spares);
            }
        }
    }

    pub(super) fn fall_back_for(
        &self,
        workspace: &mut Workspace,
        request: &ConfirmationId,
        card: &DeliveryId,
    ) {
        if let Some(spares) = self.spares.get(request) {
            reroute::fall_back(workspace, self.item, request, card, spares);
        }
    }
}

/// What came of a line below a card. One that was certainly not said may be said later; all else is over.
fn said(workspace: &mut Workspace, mut item: OutboxItem, sent: &Sent, current: bool) {
    match sent {
        Sent::TellFailed(failure) if failure.is_temporary() && item.attempts < LINE_PATIENCE => {
            if let Errand::Line { begun, .. } = &mut item.errand {
                *begun = 0;
            }
            let next = Next::Retry(pause(item.attempts, failure));
            finish(workspace, item, next, current);
        }
        _ => workspace.remove_outbox(&item.id),
    }
}

#[derive(Clone, Copy)]
pub(super) enum Next {
    /// Nothing is left to do, unless something new was wanted meanwhile.
    Done,
    /// Nothing is left to do before this time.
    At(UtcMillis),
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
        Next::At(not_before) if current => workspace.put_outbox(OutboxItem {
            lease: None,
            not_before,
            attempts: 0,
            ..item
        }),
        Next::Done | Next::At(_) => workspace.put_outbox(OutboxItem {
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

fn card(workspace: &mut Workspace, about: About<'_>, posts: u32, sent: &Sent) -> Next {
    let About { item, message, .. } = about;
    if workspace.confirmation(&message.host.0).is_none() {
        return Next::GiveUp;
    }
    match sent {
        Sent::Posted {
            at,
            form,
            edition,
            alone,
        } => {
            // Asked twice under one key, the platform answers with the message of the first try, whatever that showed.
            if *alone && message.may_be_of_an_earlier_try(workspace, at) {
                message.posted_before(workspace, at, *form);
            } else {
                message.posted(workspace, at, *form, *edition);
            }
            message.change(workspace, |card| {
                card.state = DeliveryState::Posted;
                card.error = None;
                card.unheard &= !alone;
            });
            up_to_date(workspace, message)
        }
        Sent::PostUnknown(why) => {
            message.change(workspace, |card| {
                card.error = Some(why.clone());
                // A press that came before this may have told us where the card stands.
                card.unheard = !card.stands();
            });
            if posts < UNKNOWN_POSTS {
                return Next::Retry(UNKNOWN_PAUSE);
            }
            // Whether a card stands is not known, and may never be: somebody else should be able to see one.
            leave_if_never_shown(workspace, message);
            about.fall_back(workspace);
            Next::GiveUp
        }
        Sent::PostFailed(failure) if failure.is_temporary() => {
            message.change(workspace, |card| {
                card.state = if card.stands() {
                    DeliveryState::Posted
                } else {
                    DeliveryState::Queued
                };
                card.error = Some(failure.to_string());
            });
            let wait = pause(item.attempts, failure);
            about.lend(workspace, wait);
            Next::Retry(wait)
        }
        // What is refused together may be taken one by one, each with its own plainest form.
        Sent::PostFailed(Failure::Content { .. }) if message.is_shared() => {
            message.take_apart(workspace);
            Next::Retry(Duration::ZERO)
        }
        Sent::PostFailed(failure) => {
            leave_if_never_shown(workspace, message);
            for (request, delivery) in message.cards.iter().filter(|(_, card)| !message.came_late(card)) {
                fail(workspace, item, request, delivery, failure);
                about.fall_back_for(workspace, request, delivery);
                reroute::end_if_nowhere(workspace, request);
            }
            Next::GiveUp
        }
        Sent::Edited {
            edition,
            done,
            failed,
        } => {
            message.shown(workspace, *edition, done);
            edited(workspace, about, failed)
        }
        Sent::Page { .. } | Sent::Told | Sent::TellFailed(_) | Sent::MessageGone { .. } => Next::GiveUp,
    }
}

/// What is left to do about a message of which every place was reached.
pub(super) fn up_to_date(workspace: &mut Workspace, message: &Message) -> Next {
    if !message.settle_what_is_shown(workspace) {
        return Next::Retry(Duration::ZERO);
    }
    // Should a permit run out unused, the message will say so.
    message.first_lapse(workspace).map_or(Next::Done, Next::At)
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

pub(super) fn audit_failure(
    workspace: &mut Workspace,
    item: &OutboxItem,
    request: &ConfirmationId,
    failure: &Failure,
) {
    let Some(row) = workspace.confirmation(request) else {
        return;
    };
    let draft = Draft::new(&row.org, "delivery.failed", Actor::System)
        .about(request)
        .on(item.channel.as_str())
        .with("error", failure.to_string());
    workspace.audit(draft);
}

pub(super) fn pause(attempts: u32, failure: &Failure) -> Duration {
    let backoff = Duration::from_secs(1_u64 << attempts.min(6)).min(LONGEST_PAUSE);
    match failure {
        Failure::Retry {
            after: Some(after), ..
        } => (*after).clamp(Duration::from_millis(200), Duration::from_mins(10)),
        _ => backoff,
    }
}
