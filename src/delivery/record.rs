//! Recording what came of sending, under the claim's fence. A card that is refused everywhere for good ends its request at once.

use std::time::Duration;

use gatepost_channel::{CardForm, Failure, MessageRef};

use super::{Errand, OutboxItem};
use crate::audit::{Actor, Draft};
use crate::confirmation::settle::{refresh_cards, settle};
use crate::confirmation::{DeliveryState, Standing, State, Status};
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
                    Some(request) => card(workspace, &item, &request, (delivery, *posts), sent),
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
                });
                card.state = DeliveryState::Posted;
                // This is the message that nobody had told of.
                card.unheard = false;
            });
            refresh_cards(workspace, request);
        }
        Sent::PostUnknown(_) => workspace.change_delivery(delivery, |card| {
            card.unheard |= card.standing.is_empty();
        }),
        Sent::Edited { edition, done, .. } => shown(workspace, delivery, *edition, done),
        Sent::PostFailed(_) | Sent::Told | Sent::TellFailed(_) => {}
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

fn card(
    workspace: &mut Workspace,
    item: &OutboxItem,
    request: &ConfirmationId,
    card: (&DeliveryId, u32),
    sent: &Sent,
) -> Next {
    let (delivery, posts) = card;
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
                    });
                }
                card.state = DeliveryState::Posted;
                card.error = None;
                card.unheard &= !alone;
            });
            up_to_date(workspace, delivery, edition, status)
        }
        Sent::PostUnknown(why) => {
            workspace.change_delivery(delivery, |card| {
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
            workspace.change_delivery(delivery, |card| {
                card.state = if card.standing.is_empty() {
                    DeliveryState::Queued
                } else {
                    DeliveryState::Posted
                };
                card.error = Some(failure.to_string());
            });
            Next::Retry(pause(item.attempts, failure))
        }
        Sent::PostFailed(failure) => {
            fail(workspace, item, request, delivery, failure);
            undeliverable(workspace, request);
            Next::GiveUp
        }
        Sent::Edited {
            edition: shows,
            done,
            failed,
        } => {
            shown(workspace, delivery, *shows, done);
            edited(workspace, item, (request, delivery), failed, (edition, status))
        }
        Sent::Told | Sent::TellFailed(_) => Next::GiveUp,
    }
}

fn edited(
    workspace: &mut Workspace,
    item: &OutboxItem,
    card: (&ConfirmationId, &DeliveryId),
    failed: &[(MessageRef, Failure)],
    wanted: (u32, Status),
) -> Next {
    let (request, delivery) = card;
    let mut pauses = Vec::new();
    for (at, failure) in failed {
        if failure.is_temporary() && item.attempts < PATIENCE {
            pauses.push(pause(item.attempts, failure));
            continue;
        }
        // The decision stands in the store; a message that can no longer be edited is let go.
        workspace.change_delivery(delivery, |card| card.standing.retain(|message| message.at != *at));
        audit_failure(workspace, item, request, failure);
        workspace.change_delivery(delivery, |card| card.error = Some(failure.to_string()));
    }
    if let Some(longest) = pauses.into_iter().max() {
        return Next::Retry(longest);
    }
    if workspace
        .delivery(delivery)
        .is_some_and(|card| card.standing.is_empty())
    {
        let state = if wanted.1 == Status::Pending {
            DeliveryState::Failed
        } else {
            DeliveryState::Settled
        };
        workspace.change_delivery(delivery, |card| card.state = state);
        return Next::GiveUp;
    }
    up_to_date(workspace, delivery, wanted.0, wanted.1)
}

/// Whether every message of the card shows the request as it stands.
fn up_to_date(workspace: &mut Workspace, delivery: &DeliveryId, edition: u32, status: Status) -> Next {
    let true_everywhere = workspace
        .delivery(delivery)
        .is_some_and(|card| card.standing.iter().all(|message| message.edition >= edition));
    if !true_everywhere {
        return Next::Retry(Duration::ZERO);
    }
    if status != Status::Pending {
        workspace.change_delivery(delivery, |card| card.state = DeliveryState::Settled);
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
