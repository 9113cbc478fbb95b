//! Cards that a request gets after it was made.

use super::{Held, Workspace};
use crate::confirmation::Delivery;
use crate::ids::ConfirmationId;

impl Workspace {
    /// Adds a card to a request that is there.
    pub fn insert_delivery(&mut self, request: &ConfirmationId, card: Delivery) {
        self.tokens
            .insert(card.token_hash, (request.clone(), card.id.clone()));
        self.cards_of
            .entry(request.clone())
            .or_default()
            .push(card.id.clone());
        let held = Held {
            value: card,
            stored: None,
            was_pending: false,
            dirty: true,
        };
        self.deliveries.insert(held.value.id.clone(), held);
    }
}
