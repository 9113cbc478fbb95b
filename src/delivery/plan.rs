//! Planning cards: of a new request, one for each channel of its rule that belongs to its organisation, and one that only tells
//! for each channel that is to be told; later, cards for channels that come in.

use std::collections::BTreeMap;

use gatepost_channel::UtcMillis;

use super::button::token_hash;
use super::card::CardMaker;
use super::registry::{Listed, Registry};
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

/// The cards of a request that is about to be stored. Empty when nobody can be asked on any channel of the organisation:
/// undeliverable.
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
    let mut cards = asking(registry, maker, ids, &dossier, &terms.channels);
    if cards.is_empty() {
        // None of the rule's channels is of this organisation; the chain behind them may be.
        cards.extend(spares(registry, maker, ids, &dossier).into_iter().next());
    }
    if cards.is_empty() {
        return cards;
    }
    dossier.deliveries = cards;
    let told: Vec<_> = registry
        .of_org(org, &terms.after.notify)
        .filter(|listed| !asks_on(&dossier, listed))
        .map(|listed| telling(ids, listed))
        .collect();
    dossier.deliveries.extend(told);
    dossier.deliveries
}

/// Cards that were planned for a request as it stood at one revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Planned {
    /// The cards, in order.
    pub cards: Vec<Delivery>,
    /// The revision.
    pub revision: u32,
}

/// Cards that were planned for the requests of a message.
pub type Spares = BTreeMap<ConfirmationId, Planned>;

impl Planned {
    /// One of them as it may be added to the request as it stands now. Whether other arguments would show whole on it, nobody has
    /// looked: it cannot be approved there.
    pub fn fit_for(card: &Delivery, planned_for: u32, row: &Confirmation) -> Delivery {
        Delivery {
            approvable: card.approvable && planned_for == row.revision,
            ..card.clone()
        }
    }
}

/// Cards for those of these channels on which the request does not ask yet.
pub fn asking(
    registry: &Registry,
    maker: &CardMaker,
    ids: &dyn Ids,
    dossier: &Dossier,
    channels: &[String],
) -> Vec<Delivery> {
    registry
        .of_org(&dossier.confirmation.org, channels)
        .filter(|listed| !asks_on(dossier, listed))
        .map(|listed| card(registry, maker, ids, dossier, listed))
        .collect()
}

/// Cards for the channels of the fallback chain on which the request does not ask yet, in order: the first is needed when a
/// channel refuses its card.
pub fn spares(registry: &Registry, maker: &CardMaker, ids: &dyn Ids, dossier: &Dossier) -> Vec<Delivery> {
    let chain = &dossier.confirmation.terms.after.fallback;
    asking(registry, maker, ids, dossier, chain)
}

fn asks_on(dossier: &Dossier, listed: &Listed) -> bool {
    let mut cards = dossier.deliveries.iter();
    cards.any(|card| card.asks() && card.channel == listed.name)
}

fn card(
    registry: &Registry,
    maker: &CardMaker,
    ids: &dyn Ids,
    dossier: &Dossier,
    listed: &Listed,
) -> Delivery {
    let mut delivery = blank(ids, listed);
    ids.random(&mut delivery.nonce);
    delivery.token_hash = token_hash(&maker.key().button(&delivery.id, &delivery.nonce));
    delivery.approvable = approvable(registry, maker, dossier, &delivery);
    delivery
}

/// A card on which nothing can be pressed. It has no token: what stands in its place is drawn at random and is the hash of none.
fn telling(ids: &dyn Ids, listed: &Listed) -> Delivery {
    let mut delivery = Delivery {
        told: true,
        approvable: false,
        ..blank(ids, listed)
    };
    ids.random(&mut delivery.token_hash);
    delivery
}

fn blank(ids: &dyn Ids, listed: &Listed) -> Delivery {
    Delivery {
        id: DeliveryId::fresh(ids),
        channel: listed.name.clone(),
        host: None,
        state: DeliveryState::Queued,
        nonce: [0; 16],
        token_hash: [0; 32],
        approvable: true,
        unheard: false,
        standing: Vec::new(),
        error: None,
        told: false,
        lost: 0,
    }
}
