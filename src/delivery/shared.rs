//! Cards that several like requests share: which of them stand in one message, how it looks, and whether all of them fit.

use std::fmt;

use gatepost_channel::{
    Actions, All, Body, ButtonValue, Card, CardSet, Fact, Inert, MessageRef, Tone, UtcMillis,
};

use super::card::{CardMaker, Voice};
use super::phrase::Phrases;
use super::registry::Registry;
use crate::confirmation::set::{self, Fits};
use crate::confirmation::{Delivery, Dossier};
use crate::ids::DeliveryId;

/// One request of a message with its card there.
type Shown<'a> = (&'a Dossier, &'a Delivery);

/// The requests that stand in one message with this card, in order; itself alone where no other does. `fellows` is the whole set of
/// its request.
pub fn in_message<'a>(of: Shown<'a>, fellows: &'a [Dossier]) -> Vec<Shown<'a>> {
    let host = of.1.host.as_ref().unwrap_or(&of.1.id);
    let here = |other: &&Delivery| other.id == *host || other.host.as_ref() == Some(host);
    let together: Vec<_> = fellows
        .iter()
        .filter_map(|dossier| Some((dossier, dossier.deliveries.iter().find(here)?)))
        .collect();
    if together.is_empty() { vec![of] } else { together }
}

/// What the message of a card shows once it is sent as things stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shows {
    /// The other cards in it, each with the edition that it shows.
    pub beside: Vec<(DeliveryId, u32)>,
    /// The messages that do not show all of that yet.
    pub stale: Vec<MessageRef>,
}

impl Shows {
    /// Of the card of a request; `fellows` is the whole set of the request.
    pub fn of(dossier: &Dossier, fellows: &[Dossier], card: &Delivery) -> Self {
        let mut together = in_message((dossier, card), fellows);
        together.retain(|(_, other)| other.id != card.id);
        let old = |(dossier, card): (&Dossier, &Delivery), at: &MessageRef| {
            let shown = card.standing.iter().find(|message| message.at == *at);
            shown.is_none_or(|message| message.edition < dossier.confirmation.edition)
        };
        let group = card.standing.iter().filter(|message| message.reader.is_none());
        let places = group.map(|message| &message.at);
        let stale =
            places.filter(|at| old((dossier, card), at) || together.iter().any(|other| old(*other, at)));
        Self {
            stale: stale.cloned().collect(),
            beside: together
                .iter()
                .map(|(dossier, card)| (card.id.clone(), dossier.confirmation.edition))
                .collect(),
        }
    }
}

impl CardMaker {
    /// What the message of a card shows: the request as it stands, and all that share the message with it. `fellows` is the
    /// whole set of the request, empty when it is alone.
    pub fn message(
        &self,
        dossier: &Dossier,
        fellows: &[Dossier],
        delivery: &Delivery,
        voice: &Voice,
        now: UtcMillis,
    ) -> Card {
        match in_message((dossier, delivery), fellows).as_slice() {
            [] | [_] => self.card(dossier, delivery, voice, now),
            together => self.shared(together, voice, now),
        }
    }

    /// One card for several requests.
    fn shared(&self, together: &[Shown<'_>], voice: &Voice, now: UtcMillis) -> Card {
        let phrases = self.phrases(voice.language);
        let mut items: Vec<Card> = together
            .iter()
            .map(|(dossier, delivery)| self.card(dossier, delivery, voice, now))
            .collect();
        let facts = common(&items);
        for item in &mut items {
            item.facts.retain(|fact| !facts.contains(fact));
        }
        let rows = together.iter().map(|(dossier, _)| &dossier.confirmation);
        let open = items.iter().filter(|item| item.tone == Tone::Pending).count();
        let (tone, title) = headline(&items, open, phrases);
        let (first, host) = (&together[0].0.confirmation, together[0].1);
        let all = (open > 1).then(|| {
            let code = set::code(self.key(), rows);
            let words = phrases.all(open);
            All {
                value: ButtonValue::all(self.key().button(&host.id, &host.nonce), code),
                approve: words.approve,
                reject: words.reject,
                once_more: first.terms.decision.confirm_step.then(|| phrases.once_more()),
            }
        });
        Card {
            request_id: first.id.to_string(),
            tone,
            preview: format!("{title} · {}", first.id),
            title,
            tool: Inert::new(first.asked.tool.as_str()).one_line(),
            facts,
            arguments: Body::from(Inert::default()),
            risk: first.terms.risk,
            actions: Actions::None,
            words: phrases.words(),
            set: Some(CardSet { items, all }),
        }
    }
}

/// What all items say alike, in the order of the first.
fn common(items: &[Card]) -> Vec<Fact> {
    let Some((first, others)) = items.split_first() else {
        return Vec::new();
    };
    let everywhere = |fact: &&Fact| others.iter().all(|item| item.facts.contains(fact));
    first.facts.iter().filter(everywhere).cloned().collect()
}

/// How the whole stands, at first glance.
fn headline(items: &[Card], open: usize, phrases: &Phrases) -> (Tone, String) {
    if open > 0 {
        return (Tone::Pending, phrases.set_pending(open, items.len()));
    }
    let count = |tone| items.iter().filter(|item| item.tone == tone).count();
    let (approved, rejected) = (count(Tone::Approved), count(Tone::Rejected));
    let tone = match (approved, rejected) {
        (all, _) if all == items.len() => Tone::Approved,
        (_, all) if all == items.len() => Tone::Rejected,
        _ => Tone::Closed,
    };
    (tone, phrases.set_settled(items.len(), approved, rejected))
}

/// Asks the adapters whether requests fit into one card.
#[derive(Clone)]
pub struct Fitting {
    registry: Registry,
    maker: CardMaker,
}

impl Fitting {
    /// For these channels and words.
    pub const fn new(registry: Registry, maker: CardMaker) -> Self {
        Self { registry, maker }
    }
}

impl fmt::Debug for Fitting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fitting")
    }
}

impl Fits for Fitting {
    /// Every channel shows every argument of every one of them; a channel that is not there shows nothing.
    fn fit(&self, members: &[Dossier]) -> bool {
        let Some(newest) = members.last() else {
            return false;
        };
        newest.deliveries.iter().filter(|card| card.asks()).all(|card| {
            self.registry.get(card.channel.as_str()).is_some_and(|listed| {
                let looks = self
                    .maker
                    .message(newest, members, card, &listed.voice, UtcMillis(0));
                let whole = looks
                    .set
                    .as_ref()
                    .is_some_and(|set| set.items.len() == members.len());
                whole && listed.channel.shows_all(&looks)
            })
        })
    }
}
