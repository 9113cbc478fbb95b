//! The card that was clicked: how the request behind a press is found, and what must match before anything else is asked.

use gatepost_channel::{MessageRef, SetCode};

use super::decide::Refusal;
use super::settle::refresh_cards;
use super::{DeliveryState, Standing, set};
use crate::delivery::OutboxItem;
use crate::ids::{ChannelName, ConfirmationId, DeliveryId, Org};
use crate::storage::{ReplayKey, TokenHash, Workspace};

/// The card that was clicked, all of it from the verified callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clicked {
    /// The channel found from the verified app, tenant and chat.
    pub channel: ChannelName,
    /// That channel's organisation.
    pub org: Org,
    /// The message that was clicked.
    pub at: MessageRef,
    /// SHA-256 of the button's token; `None` when the button was not ours.
    pub token: Option<TokenHash>,
    /// The revision on the button.
    pub revision: u32,
    /// Names the press.
    pub replay: ReplayKey,
    /// Whether a form for words opens where the answer lacks them: then asking for them is no refusal.
    pub asks_back: bool,
    /// Whether it came from something opened for the person alone. That never tells us where a card stands.
    pub alone: bool,
    /// The set that was answered at once, if it was.
    pub set: Option<SetCode>,
}

impl Clicked {
    /// The request and its card. Channel, organisation, message and request must match; what is wrong names the request only where
    /// the organisation may know of it.
    pub(super) fn find(
        &self,
        workspace: &mut Workspace,
    ) -> Result<(ConfirmationId, DeliveryId), (Option<ConfirmationId>, Refusal)> {
        let Some((id, card)) = self.token.as_ref().and_then(|hash| workspace.by_token(hash)) else {
            return Err((None, Refusal::UnknownCard));
        };
        let (id, card) = (id.clone(), card.clone());
        let Some((row, delivery)) = workspace.confirmation(&id).zip(workspace.delivery(&card)) else {
            return Err((None, Refusal::UnknownCard));
        };
        if row.org != self.org || delivery.channel != self.channel {
            // Another organisation's chain does not name this one's request.
            let known = (row.org == self.org).then_some(id);
            return Err((known, Refusal::OtherChannel));
        }
        if !delivery.asks() {
            // It has no button; whoever made one up made up the press.
            return Err((Some(id), Refusal::UnknownCard));
        }
        if !delivery.standing.iter().any(|message| message.at == self.at) {
            // Only while a post has an unknown outcome may a card stand that we have not heard of; it is recorded. Nor may it be
            // the message of another card that was once shared with this one.
            let doubtful = delivery.state == DeliveryState::Sending || delivery.unheard;
            if self.alone || !doubtful || set::is_of_another(workspace, &id, &card, &self.at) {
                return Err((Some(id), Refusal::OtherMessage));
            }
            // All cards that were in that post are heard of.
            for (_, card) in set::sharing(workspace, &id, &card) {
                let standing = Standing {
                    at: self.at.clone(),
                    edition: 0,
                    minimal: false,
                    reader: None,
                };
                workspace.change_delivery(&card, |delivery| {
                    if delivery.unheard || delivery.state == DeliveryState::Sending {
                        delivery.standing.push(standing);
                        delivery.state = DeliveryState::Posted;
                        delivery.unheard = false;
                    }
                });
            }
            refresh_cards(workspace, &id);
            // The press told what the sender still waits for, or died waiting for.
            let row = set::outbox_row(workspace, &card);
            if let Some(item) = workspace.outbox(&row).cloned() {
                let not_before = workspace.now();
                workspace.put_outbox(OutboxItem {
                    lease: None,
                    not_before,
                    ..item
                });
            }
        }
        Ok((id, card))
    }
}
