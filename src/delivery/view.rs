//! Showing one person everything there is of a request, in messages of the bot to them alone: one outbox row that goes from message
//! to message. The last one carries the answers, and counts as a message of the card from then on: a press on it is known by where
//! it stands, and it is edited as the card is.

use std::time::Duration;

use gatepost_channel::{Failure, Listener, MessageRef, ReplyTone};

use super::record::Sent;
use super::{Errand, OutboxItem};
use crate::audit::{Actor, Draft};
use crate::confirmation::settle::refresh_cards;
use crate::confirmation::{Delivery, Reader, Standing};
use crate::ids::{ChannelName, ConfirmationId, DeliveryId, OutboxId};
use crate::storage::{Touches, Transaction, Workspace};

/// Between two messages to one person; the platform takes five a second.
const APART: Duration = Duration::from_millis(300);
/// Attempts at one message. Later the person would no longer know why it comes.
const PATIENCE: u32 = 4;
/// Messages with answers that one person may have of one request; beyond, the oldest loses its answers and is left to itself.
const MOST_VIEWS: usize = 4;
/// Messages that may wait to lose their answers: where none can be edited, the oldest are left to themselves as they are.
const MOST_LEAVING: usize = 4;

/// Queues the messages.
#[derive(Debug, Clone)]
pub struct QueueView {
    /// The row's id.
    pub id: OutboxId,
    /// Of which request.
    pub confirmation: ConfirmationId,
    /// Through which channel.
    pub channel: ChannelName,
    /// From which card it was asked.
    pub delivery: DeliveryId,
    /// The platform's id of the person.
    pub user: String,
    /// The revision that they are shown.
    pub revision: u32,
    /// What they are told if it cannot be sent: own words.
    pub otherwise: String,
}

impl Transaction for QueueView {
    type Answer = ();
    const NAME: &'static str = "queue_view";

    fn touches(&self, touches: &mut Touches) {
        touches.confirmations.insert(self.confirmation.clone());
    }

    fn apply(&self, workspace: &mut Workspace) {
        let now = workspace.now();
        workspace.put_outbox(OutboxItem {
            id: self.id.clone(),
            confirmation: Some(self.confirmation.clone()),
            channel: self.channel.clone(),
            errand: Errand::View {
                delivery: self.delivery.clone(),
                user: self.user.clone(),
                revision: self.revision,
                page: 0,
                otherwise: self.otherwise.clone(),
            },
            attempts: 0,
            not_before: now,
            lease: None,
            fence: 0,
            created_at: now,
        });
    }
}

/// Whether an earlier try may have left this message: each message takes one claim, unless something went wrong with it or with one
/// before it, or a sender died.
pub(super) fn may_stand(item: &OutboxItem, page: u32) -> bool {
    item.fence > i64::from(page).saturating_add(1)
}

/// What came of one of the messages, under the claim's lease.
pub(super) fn record(workspace: &mut Workspace, item: OutboxItem, sent: &Sent) {
    let now = workspace.now();
    let Errand::View {
        delivery,
        user,
        revision,
        page,
        otherwise,
    } = item.errand.clone()
    else {
        return;
    };
    match sent {
        Sent::Page { last: None } => {
            workspace.put_outbox(OutboxItem {
                errand: Errand::View {
                    delivery,
                    user,
                    revision,
                    page: page.saturating_add(1),
                    otherwise,
                },
                lease: None,
                not_before: now.plus(APART),
                attempts: 0,
                ..item
            });
        }
        Sent::Page {
            last: Some((at, edition)),
        } => {
            workspace.remove_outbox(&item.id);
            stands(
                workspace,
                &item,
                &delivery,
                Reader { user, revision },
                (at, *edition),
            );
        }
        Sent::PostUnknown(_) if item.attempts + 1 < PATIENCE => again(workspace, item, APART),
        Sent::PostFailed(Failure::Retry { after, .. }) if item.attempts + 1 < PATIENCE => {
            let wait = after.unwrap_or(APART).clamp(APART, Duration::from_secs(30));
            again(workspace, item, wait);
        }
        Sent::PostFailed(failure) => failed(workspace, item, &failure.to_string()),
        Sent::PostUnknown(why) => failed(workspace, item, why),
        _ => workspace.remove_outbox(&item.id),
    }
}

fn again(workspace: &mut Workspace, item: OutboxItem, wait: Duration) {
    let not_before = workspace.now().plus(wait);
    workspace.put_outbox(OutboxItem {
        lease: None,
        not_before,
        attempts: item.attempts + 1,
        ..item
    });
}

fn stands(
    workspace: &mut Workspace,
    item: &OutboxItem,
    delivery: &DeliveryId,
    reader: Reader,
    shows: (&MessageRef, u32),
) {
    let Some(request) = &item.confirmation else {
        return;
    };
    let (at, edition) = shows;
    let mut leaves = false;
    workspace.change_delivery(delivery, |card| {
        // One message, of which two tries were told.
        if card.standing.iter().any(|message| message.at == *at) {
            return;
        }
        let theirs = |message: &Standing, leaving: bool| {
            let reads = message.reader.as_ref();
            reads.is_some_and(|other| other.user == reader.user) && message.is_leaving() == leaving
        };
        let count = |card: &Delivery, leaving| {
            let all = card.standing.iter();
            all.filter(|message| theirs(message, leaving)).count()
        };
        if count(card, false) >= MOST_VIEWS
            && let Some(oldest) = card.standing.iter_mut().find(|message| theirs(message, false))
        {
            oldest.leave();
            leaves = true;
        }
        if count(card, true) > MOST_LEAVING
            && let Some(oldest) = card.standing.iter().position(|message| theirs(message, true))
        {
            card.standing.remove(oldest);
        }
        card.standing.push(Standing {
            at: at.clone(),
            edition,
            minimal: false,
            reader: Some(reader),
        });
    });
    let behind = workspace
        .confirmation(request)
        .is_some_and(|row| row.edition > edition);
    if behind || leaves {
        refresh_cards(workspace, request);
    }
}

/// It is put on record, and the person is told where else everything can be seen: in a plain message to them, which holds nothing that a
/// platform could object to. Where they cannot be written to at all, the channel says below the card that it cannot ([`Whisper`]).
///
/// [`Whisper`]: gatepost_channel::Whisper
fn failed(workspace: &mut Workspace, item: OutboxItem, why: &str) {
    workspace.remove_outbox(&item.id);
    let Some(request) = &item.confirmation else {
        return;
    };
    let Some(org) = workspace.confirmation(request).map(|row| row.org.clone()) else {
        return;
    };
    let draft = Draft::new(&org, "view.failed", Actor::System)
        .about(request)
        .on(item.channel.as_str())
        .with("error", why);
    workspace.audit(draft);
    tell(workspace, item);
}

/// Goes on as an answer to the person in words.
fn tell(workspace: &mut Workspace, item: OutboxItem) {
    let Errand::View {
        delivery,
        user,
        otherwise,
        ..
    } = item.errand
    else {
        return;
    };
    let card = workspace.delivery(&delivery).and_then(Delivery::in_group);
    let Some(card) = card
        .map(|message| message.at.clone())
        .filter(|_| !otherwise.is_empty())
    else {
        return;
    };
    let now = workspace.now();
    workspace.put_outbox(OutboxItem {
        errand: Errand::Whisper {
            to: Listener {
                user,
                chat: card.chat,
                message: Some(card.message),
            },
            tone: ReplyTone::Warning,
            text: otherwise,
            shows: None,
        },
        attempts: 0,
        not_before: now,
        lease: None,
        fence: item.fence,
        ..item
    });
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
