//! Requests with what happens after their cards were posted, and a sender that does as it is told, for tests of this room.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gatepost_channel::{CardForm, Failure, MessageRef};

use super::claim::{Claim, Claimed};
use super::escalate::Escalate;
use super::plan::Planned;
use super::record::{Record, Sent};
use super::shared::Shows;
use super::{Errand, Line};
use crate::confirmation::consume::{Consume, NotGranted};
use crate::confirmation::create::Created;
use crate::confirmation::decide::Ruling;
use crate::confirmation::fixture::{World, terms};
use crate::confirmation::{Delivery, DeliveryState, Status};
use crate::gate::Terms;
use crate::gate::after::{AfterTerms, Escalation};
use crate::gate::policy::Approvers;
use crate::ids::{ConfirmationId, DeliveryId, PermitId, TokenName, WorkerId};

pub const MINUTE: i64 = 60_000;

pub fn approvers(operators: &[&str]) -> Approvers {
    Approvers {
        operators: operators.iter().map(|id| (*id).to_owned()).collect(),
        ..Approvers::default()
    }
}

/// Dana alone may decide; a reminder after half a minute, Ines and a third channel after a minute.
pub fn escalating() -> Terms {
    Terms {
        approvers: approvers(&["dana"]),
        after: AfterTerms {
            escalate: vec![
                Escalation {
                    after_ms: MINUTE / 2,
                    remind: true,
                    mention: true,
                    ..Escalation::default()
                },
                Escalation {
                    after_ms: MINUTE,
                    channels: vec!["chat-c".into()],
                    approvers: Some(approvers(&["ines"])),
                    ..Escalation::default()
                },
            ],
            ..AfterTerms::default()
        },
        ..terms(1)
    }
}

pub fn falling_back() -> Terms {
    Terms {
        after: AfterTerms {
            fallback: vec!["chat-c".into(), "chat-d".into()],
            ..AfterTerms::default()
        },
        ..terms(1)
    }
}

pub fn noting() -> Terms {
    Terms {
        after: AfterTerms {
            thread_notes: true,
            ..AfterTerms::default()
        },
        ..terms(1)
    }
}

/// A card for this channel, as the sender plans it.
pub fn spare(world: &World, channel: &str) -> Delivery {
    let create = world.pay(
        Terms {
            channels: vec![channel.to_owned()],
            ..terms(1)
        },
        &[],
    );
    create.deliveries.into_iter().next().expect("one channel")
}

pub fn told(world: &World, channel: &str) -> Delivery {
    Delivery {
        told: true,
        approvable: false,
        ..spare(world, channel)
    }
}

pub fn fresh(world: &mut World, terms: Terms) -> ConfirmationId {
    let create = world.pay(terms, &[]);
    match world.memory.run(&create) {
        Created::Fresh(dossier) => dossier.confirmation.id,
        other => panic!("{other:?}"),
    }
}

pub fn claim(world: &mut World) -> Vec<Claimed> {
    let claim = Claim {
        worker: WorkerId::fresh(&world.ids),
        lease: Duration::from_secs(45),
        limit: 50,
        room: BTreeMap::new(),
    };
    world.memory.run(&claim)
}

/// Records it, with a spare card on two further channels for each request of the message.
pub fn record(world: &mut World, claimed: &Claimed, sent: Sent) {
    let all: Vec<_> = claimed.dossier.iter().chain(&claimed.fellows).collect();
    let spares = all.iter().map(|dossier| {
        let cards = ["chat-c", "chat-d"].map(|channel| spare(world, channel)).to_vec();
        (dossier.confirmation.id.clone(), planned(claimed, cards))
    });
    let spares = spares.collect();
    world.memory.run(&Record {
        item: claimed.item.clone(),
        sent,
        beside: beside(claimed),
        spares,
    });
}

/// What the message of a card's row shows beside the card.
fn beside(claimed: &Claimed) -> Vec<(DeliveryId, u32)> {
    let (Some(dossier), Errand::Card { delivery, .. }) = (&claimed.dossier, &claimed.item.errand) else {
        return Vec::new();
    };
    let card = dossier.deliveries.iter().find(|card| card.id == *delivery);
    Shows::of(dossier, &claimed.fellows, card.expect("there")).beside
}

/// These cards, planned for the request as it was claimed.
pub fn planned(claimed: &Claimed, cards: Vec<Delivery>) -> Planned {
    let revision = claimed
        .dossier
        .as_ref()
        .map_or(0, |dossier| dossier.confirmation.revision);
    Planned { cards, revision }
}

/// Everything that is due happens as it should, until nothing is due.
pub fn settle_down(world: &mut World) {
    for _ in 0..10 {
        let due = claim(world);
        if due.is_empty() {
            return;
        }
        for one in due {
            carry_out(world, &one);
        }
    }
    panic!("it does not come to rest");
}

pub fn carry_out(world: &mut World, one: &Claimed) {
    match &one.item.errand {
        Errand::Escalate { .. } => {
            let planned = planned(one, vec![spare(world, "chat-c")]);
            let item = one.item.clone();
            world.memory.run(&Escalate { item, planned });
        }
        Errand::Line { .. } | Errand::Notice { .. } | Errand::Whisper { .. } | Errand::View { .. } => {
            record(world, one, Sent::Told);
        }
        Errand::Card { delivery, .. } => {
            let dossier = one.dossier.as_ref().expect("a card has a request");
            let edition = dossier.confirmation.edition;
            let mut cards = dossier.deliveries.iter();
            let card = cards.find(|card| card.id == *delivery).expect("there");
            let sent = if card.standing.is_empty() {
                Sent::Posted {
                    at: place(&format!("m-{}-{}", card.id, card.lost)),
                    form: CardForm::LaidOut,
                    edition,
                    alone: true,
                }
            } else {
                Sent::Edited {
                    edition,
                    done: card
                        .standing
                        .iter()
                        .map(|message| (message.at.clone(), CardForm::LaidOut))
                        .collect(),
                    failed: vec![],
                }
            };
            record(world, one, sent);
        }
    }
}

pub fn place(name: &str) -> MessageRef {
    MessageRef {
        chat: "chat".into(),
        message: name.into(),
    }
}

pub fn refused() -> Failure {
    Failure::Target {
        why: "channel_not_found".into(),
    }
}

pub fn gone() -> Failure {
    Failure::Gone {
        why: "message_not_found".into(),
    }
}

pub fn status(world: &World, id: &ConfirmationId) -> Status {
    world.row(id).confirmation.state.status()
}

pub fn cards(world: &World, id: &ConfirmationId) -> BTreeMap<String, DeliveryState> {
    let cards = world.row(id).deliveries.iter();
    cards.map(|card| (card.channel.0.clone(), card.state)).collect()
}

pub fn card_of(world: &World, id: &ConfirmationId, channel: &str) -> Delivery {
    let mut cards = world.row(id).deliveries.iter();
    let card = cards.find(|card| card.channel.as_str() == channel);
    card.unwrap_or_else(|| panic!("no card on {channel}")).clone()
}

pub fn due_on<'a>(claimed: &'a [Claimed], channel: &str) -> &'a Claimed {
    let mut cards = claimed.iter();
    cards
        .find(|one| one.item.channel.as_str() == channel && matches!(one.item.errand, Errand::Card { .. }))
        .unwrap_or_else(|| panic!("nothing is due on {channel}"))
}

pub fn lines(claimed: &[Claimed]) -> Vec<(String, Line)> {
    let lines = claimed.iter().filter_map(|one| match one.item.errand {
        Errand::Line { line, .. } => Some((one.item.channel.0.clone(), line)),
        _ => None,
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort_by(|one, other| one.0.cmp(&other.0));
    lines
}

pub fn count(world: &World, kind: &str) -> usize {
    world
        .memory
        .kinds()
        .iter()
        .filter(|other| **other == kind)
        .count()
}

pub fn vote(
    world: &mut World,
    id: &ConfirmationId,
    person: &str,
    decision: gatepost_channel::Decision,
) -> Ruling {
    let mut cards = world.row(id).deliveries.iter();
    let stands = cards.position(|card| card.asks() && card.stands());
    world.click(id, stands.unwrap_or(0), person, decision).ruling
}

pub fn consume(world: &mut World, id: &ConfirmationId) -> Result<(), NotGranted> {
    let consume = Consume {
        id: id.clone(),
        token: TokenName::from("agent"),
        digest: world.row(id).confirmation.asked.digest,
        judged: world.row(id).confirmation.asked.digest,
        permit: PermitId::fresh(&world.ids),
        roll: Arc::clone(&world.roll),
        denied_by: None,
        grant: None,
        offered: None,
    };
    world.memory.run(&consume).map(drop)
}
