//! Recording what came of sending, under the claim's fence. A card that is refused everywhere for good ends its request at once.

use std::time::Duration;

use gatepost_channel::{CardForm, Failure, MessageRef, UtcMillis};

use super::plan::Planned;
use super::{Errand, OutboxItem, reroute};
use crate::audit::{Actor, Draft};
use crate::confirmation::settle::{queue_card, refresh_cards};
use crate::confirmation::{Delivery, DeliveryState, Standing, Status};
use crate::ids::{ConfirmationId, DeliveryId};
use crate::storage::{Touches, Transaction, Workspace};

/// Failed attempts after which an edit or a notice is given up. A post is tried until its request ends.
const PATIENCE: u32 = 20;
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
    /// Cards for the rest of the fallback chain, in order; the first that is needed and free is taken.
    pub spares: Planned,
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
                too_late(workspace, request, delivery, &self.sent);
            }
            return;
        };
        // Something new was wanted meanwhile (the fence rose): what happened is recorded, and the row stays.
        let current = item.fence == self.item.fence;
        match (&item.errand, &self.sent) {
            (Errand::Card { delivery, posts }, sent) => {
                let next = match item.confirmation.clone() {
                    Some(request) => {
                        let about = About {
                            item: &item,
                            request: &request,
                            delivery,
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
                    let about = About {
                        item: &item,
                        request,
                        delivery,
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
fn too_late(workspace: &mut Workspace, request: &ConfirmationId, delivery: &DeliveryId, sent: &Sent) {
    match sent {
        Sent::Posted {
            at, form, edition, ..
        } => {
            let known = workspace
                .delivery(delivery)
                .is_none_or(|card| card.standing.iter().any(|message| message.at == *at));
            if known {
                return;
            }
            workspace.change_delivery(delivery, |card| {
                card.standing.push(Standing {
                    at: at.clone(),
                    edition: *edition,
                    minimal: *form == CardForm::Minimal,
                    reader: None,
                });
                card.state = DeliveryState::Posted;
                // This is the message that nobody had told of.
                card.unheard = false;
            });
            refresh_cards(workspace, request);
        }
        Sent::PostUnknown(_) => workspace.change_delivery(delivery, |card| {
            card.unheard |= !card.stands();
        }),
        Sent::Edited { edition, done, .. } => shown(workspace, delivery, *edition, done),
        Sent::PostFailed(_)
        | Sent::Page { .. }
        | Sent::Told
        | Sent::TellFailed(_)
        | Sent::MessageGone { .. } => {}
    }
}

/// The card that an errand is about.
#[derive(Clone, Copy)]
struct About<'a> {
    item: &'a OutboxItem,
    request: &'a ConfirmationId,
    delivery: &'a DeliveryId,
    spares: &'a Planned,
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

/// A message turned out to be deleted. While people are asked, the card is posted again, once; after that, the next channel of
/// the chain has its turn.
fn message_gone(workspace: &mut Workspace, about: About<'_>, at: &MessageRef, failure: &Failure) {
    let About {
        item,
        request,
        delivery,
        spares,
    } = about;
    workspace.change_delivery(delivery, |card| {
        card.standing.retain(|message| message.at != *at);
        card.error = Some(failure.to_string());
    });
    audit_failure(workspace, item, request, failure);
    let pending = workspace
        .confirmation(request)
        .is_some_and(|row| row.state.status() == Status::Pending);
    let nowhere = workspace.delivery(delivery).is_some_and(|card| !card.stands());
    if !pending || !nowhere {
        return;
    }
    if reroute::post_anew(workspace, delivery) {
        queue_card(workspace, request, delivery.clone(), item.channel.clone());
    } else {
        reroute::fall_back(workspace, item, request, delivery, spares);
        reroute::end_if_nowhere(workspace, request);
    }
}

/// These messages show this edition.
fn shown(workspace: &mut Workspace, delivery: &DeliveryId, edition: u32, done: &[(MessageRef, CardForm)]) {
    workspace.change_delivery(delivery, |card| {
        for message in &mut card.standing {
            let shown = done.iter().find(|(at, _)| *at == message.at);
            // An edit that is told late says nothing about what stands there now.
            if let Some((_, form)) = shown.filter(|_| edition >= message.edition) {
                message.edition = edition;
                message.minimal = *form == CardForm::Minimal;
            }
        }
    });
}

#[derive(Clone, Copy)]
enum Next {
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
    let About {
        item,
        request,
        delivery,
        spares,
    } = about;
    let (edition, status) = match workspace.confirmation(request) {
        Some(row) => (row.edition, row.state.status()),
        None => return Next::GiveUp,
    };
    match sent {
        Sent::Posted {
            at,
            form,
            edition: shows,
            alone,
        } => {
            workspace.change_delivery(delivery, |card| {
                if !card.standing.iter().any(|message| message.at == *at) {
                    card.standing.push(Standing {
                        at: at.clone(),
                        edition: *shows,
                        minimal: *form == CardForm::Minimal,
                        reader: None,
                    });
                }
                card.state = DeliveryState::Posted;
                card.error = None;
                card.unheard &= !alone;
            });
            up_to_date(workspace, (request, delivery), edition, status)
        }
        Sent::PostUnknown(why) => {
            workspace.change_delivery(delivery, |card| {
                card.error = Some(why.clone());
                // A press that came before this may have told us where the card stands.
                card.unheard = !card.stands();
            });
            if posts >= UNKNOWN_POSTS {
                // Whether a card stands is not known, and may never be: somebody else should be able to see one.
                reroute::fall_back(workspace, item, request, delivery, spares);
                Next::GiveUp
            } else {
                Next::Retry(UNKNOWN_PAUSE)
            }
        }
        Sent::PostFailed(failure) if failure.is_temporary() => {
            workspace.change_delivery(delivery, |card| {
                card.state = if card.stands() {
                    DeliveryState::Posted
                } else {
                    DeliveryState::Queued
                };
                card.error = Some(failure.to_string());
            });
            let wait = pause(item.attempts, failure);
            reroute::lend(workspace, (item, wait), request, delivery, spares);
            Next::Retry(wait)
        }
        Sent::PostFailed(failure) => {
            fail(workspace, item, request, delivery, failure);
            reroute::fall_back(workspace, item, request, delivery, spares);
            reroute::end_if_nowhere(workspace, request);
            Next::GiveUp
        }
        Sent::Edited {
            edition: shows,
            done,
            failed,
        } => {
            shown(workspace, delivery, *shows, done);
            edited(workspace, about, failed, (edition, status))
        }
        Sent::Page { .. } | Sent::Told | Sent::TellFailed(_) | Sent::MessageGone { .. } => Next::GiveUp,
    }
}

fn edited(
    workspace: &mut Workspace,
    about: About<'_>,
    failed: &[(MessageRef, Failure)],
    wanted: (u32, Status),
) -> Next {
    let About {
        item,
        request,
        delivery,
        spares,
    } = about;
    let asked = wanted.1 == Status::Pending && workspace.delivery(delivery).is_some_and(Delivery::asks);
    let (mut pauses, mut stays_stale) = (Vec::new(), false);
    for (at, failure) in failed {
        if failure.is_temporary() && item.attempts < PATIENCE {
            pauses.push(pause(item.attempts, failure));
            continue;
        }
        audit_failure(workspace, item, request, failure);
        let gone = matches!(failure, Failure::Gone { .. });
        workspace.change_delivery(delivery, |card| {
            card.error = Some(failure.to_string());
            // While people are asked, a message that stands can be pressed, whether we can edit it or not. Afterwards the
            // decision stands in the store, and a message that can no longer be edited is let go.
            if gone || !asked {
                card.standing.retain(|message| message.at != *at);
            }
        });
        stays_stale |= asked && !gone;
    }
    if let Some(longest) = pauses.into_iter().max() {
        return Next::Retry(longest);
    }
    if stays_stale {
        // The channel takes nothing any more: those who look elsewhere should see the card too.
        reroute::fall_back(workspace, item, request, delivery, spares);
        return Next::Done;
    }
    if workspace.delivery(delivery).is_some_and(|card| !card.stands()) {
        if asked && reroute::post_anew(workspace, delivery) {
            return Next::Retry(Duration::ZERO);
        }
        if asked {
            reroute::fall_back(workspace, item, request, delivery, spares);
            reroute::end_if_nowhere(workspace, request);
            return Next::GiveUp;
        }
        let state = if wanted.1 == Status::Pending {
            DeliveryState::Failed
        } else {
            DeliveryState::Settled
        };
        workspace.change_delivery(delivery, |card| card.state = state);
        return Next::GiveUp;
    }
    up_to_date(workspace, (request, delivery), wanted.0, wanted.1)
}

/// Whether every message of the card shows the request as it stands.
fn up_to_date(
    workspace: &mut Workspace,
    (request, delivery): (&ConfirmationId, &DeliveryId),
    edition: u32,
    status: Status,
) -> Next {
    let true_everywhere = workspace
        .delivery(delivery)
        .is_some_and(|card| card.standing.iter().all(|message| message.edition >= edition));
    if !true_everywhere {
        return Next::Retry(Duration::ZERO);
    }
    if status != Status::Pending {
        workspace.change_delivery(delivery, |card| card.state = DeliveryState::Settled);
    }
    // Should the permit run out unused, the card will say so.
    let unused = workspace.confirmation(request).and_then(|row| {
        let waits = row.state.consumed().is_none() && !row.progress.lapsed;
        row.permit_until().filter(|_| waits)
    });
    unused.map_or(Next::Done, Next::At)
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

fn pause(attempts: u32, failure: &Failure) -> Duration {
    let backoff = Duration::from_secs(1_u64 << attempts.min(6)).min(LONGEST_PAUSE);
    match failure {
        Failure::Retry {
            after: Some(after), ..
        } => (*after).clamp(Duration::from_millis(200), Duration::from_mins(10)),
        _ => backoff,
    }
}
