//! An answer in words to the bot, and what is judged of it beside the rules of every answer: it is given without a card on the
//! screen.

use super::Confirmation;
use super::decide::Refusal;
use crate::gate::policy::PartialView;
use crate::ids::{ChannelName, ConfirmationId, Org};
use crate::storage::ReplayKey;

/// A request that a verified person named in words to the bot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spoken {
    /// The request.
    pub id: ConfirmationId,
    /// The channel found from the verified app, tenant and chat.
    pub channel: ChannelName,
    /// That channel's organisation.
    pub org: Org,
    /// Whether the person can be shown all of its arguments there: what cannot be seen is not approved.
    pub whole: bool,
    /// Whether the request was named by the code of its call beside its id, which is how words say "I am sure".
    pub sure: bool,
    /// Names the command.
    pub replay: ReplayKey,
}

impl Spoken {
    /// Whether the request may be approved like this. Its rule's terms never change, and arguments that a person changed since are told by
    /// [`Decide::seen`](super::decide::Decide::seen), so what was found before the transaction holds in it.
    pub(super) fn may_approve(&self, row: &Confirmation) -> Result<(), Refusal> {
        if !self.whole && row.terms.partial_view != PartialView::Approve {
            return Err(Refusal::PartialView);
        }
        if row.terms.decision.confirm_step && !self.sure {
            return Err(Refusal::NotConfirmed);
        }
        Ok(())
    }
}
