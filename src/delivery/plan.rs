//! Planning the cards of a new request: one for each channel of its rule that belongs to its organisation.

use gatepost_channel::UtcMillis;

use super::button::token_hash;
use super::card::CardMaker;
use super::registry::Registry;
use crate::confirmation::{Asked, Confirmation, Delivery, DeliveryState, Dossier, Ledger, Progress, State};
use crate::gate::Terms;
use crate::gate::policy::PartialView;
use crate::ids::{ConfirmationId, DeliveryId, Ids, Org};

/// Whether a card of a request, as it would stand now, may carry Approve: it shows all of the arguments, or the rule says that it need
/// not. A channel that is not there any more shows nothing.
pub fn approvable(registry: &Registry, maker: &CardMaker, dossier: &Dossier, delivery: &Delivery) -> bool {
    let Some(listed) = registry.get(delivery.channel.as_str()) else {
        return false;
    };
    dossier.confirmation.terms.partial_view == PartialView::Approve
        || listed
            .channel
            .shows_all(&maker.card(dossier, delivery, &listed.voice, UtcMillis(0)))
}

/// The cards of a request that is about to be stored. Empty when no channel of the organisation is named: undeliverable.
pub fn plan(
    registry: &Registry,
    maker: &CardMaker,
    ids: &dyn Ids,
    request: (&ConfirmationId, &Org, &Asked),
    terms: &Terms,
    reason: Option<&str>,
) -> Vec<Delivery> {
    let (id, org, asked) = request;
    // The card as it will be, but for its times: whether everything fits does not depend on them.
    let mut dossier = Dossier {
        confirmation: Confirmation {
            id: id.clone(),
            org: org.clone(),
            asked: asked.clone(),
            rule: None,
            reason: reason.map(str::to_owned),
            terms: terms.clone(),
            set: None,
            created_at: UtcMillis(0),
            expires_at: UtcMillis(0),
            state: State::Pending,
            ledger: Ledger::default(),
            progress: Progress::default(),
            revision: 1,
            edition: 1,
            version: 0,
        },
        votes: Vec::new(),
        deliveries: Vec::new(),
    };
    let mut cards = Vec::new();
    for listed in registry.of_org(org, &terms.channels) {
        let card = DeliveryId::fresh(ids);
        let mut nonce = [0_u8; 16];
        ids.random(&mut nonce);
        let mut delivery = Delivery {
            token_hash: token_hash(&maker.key().button(&card, &nonce)),
            id: card,
            channel: listed.name.clone(),
            host: None,
            state: DeliveryState::Queued,
            nonce,
            approvable: true,
            unheard: false,
            standing: Vec::new(),
            error: None,
        };
        delivery.approvable = approvable(registry, maker, &dossier, &delivery);
        cards.push(delivery);
    }
    dossier.deliveries.clear();
    cards
}
