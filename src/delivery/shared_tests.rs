//! One message for several requests, under every order of asking, sending, pressing and ending, against a platform that answers
//! as it likes.

use std::collections::BTreeMap;
use std::time::Duration;

use gatepost_channel::Decision::{Approve, Reject};
use gatepost_channel::{CardForm, Failure, MessageRef, SetCode};
use proptest::prelude::*;

use super::Errand;
use super::button::ServerKey;
use super::claim::{Claim, Claimed};
use super::plan::Spares;
use super::record::{Record, Sent};
use super::shared::{Shows, in_message};
use crate::confirmation::create::Created;
use crate::confirmation::decide::{Ballot, Refusal, Ruling, Target};
use crate::confirmation::decide_all::{AllRuling, DecideAll};
use crate::confirmation::expire::Expire;
use crate::confirmation::fixture::{World, terms};
use crate::confirmation::{DeliveryState, Dossier, Status, set};
use crate::ids::{ConfirmationId, DeliveryId, WorkerId};

const KEY: [u8; 32] = [7; 32];

/// What a platform shows.
#[derive(Debug, Clone)]
struct Seen {
    /// Each request with its card and revision.
    rows: Vec<(ConfirmationId, DeliveryId, u32)>,
    /// What the button for all carries.
    set: SetCode,
}

/// How the platform takes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Fine,
    Busy,
    LostAnswer,
    Lost,
    RefusesContent,
    NotThere,
    /// The process dies before it can say what came of it.
    Dies,
}

#[derive(Debug, Clone)]
enum Move {
    Ask,
    Send(Mood),
    Press(usize, usize, bool),
    All(usize, bool),
    Pass(u16),
    Sweep,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let mood = prop_oneof![
        8 => Just(Mood::Fine),
        1 => Just(Mood::Busy),
        1 => Just(Mood::LostAnswer),
        1 => Just(Mood::Lost),
        1 => Just(Mood::RefusesContent),
        1 => Just(Mood::NotThere),
        1 => Just(Mood::Dies),
    ];
    let one = prop_oneof![
        4 => Just(Move::Ask),
        5 => mood.prop_map(Move::Send),
        2 => (0_usize..8, 0_usize..8, any::<bool>()).prop_map(|(at, row, yes)| Move::Press(at, row, yes)),
        2 => (0_usize..8, any::<bool>()).prop_map(|(at, yes)| Move::All(at, yes)),
        2 => (0_u16..50_000).prop_map(Move::Pass),
        1 => Just(Move::Sweep),
    ];
    prop::collection::vec(one, 0..60)
}

struct Play {
    world: World,
    asked: Vec<ConfirmationId>,
    messages: BTreeMap<String, Seen>,
    posted: usize,
    /// Whether the platform makes one message of all tries under one key: the one that the first of them sent.
    one_a_key: bool,
}

impl Play {
    fn claim(&mut self) -> Vec<Claimed> {
        let claim = Claim {
            worker: WorkerId::fresh(&self.world.ids),
            lease: Duration::from_secs(45),
            limit: 64,
            room: BTreeMap::new(),
        };
        self.world.memory.run(&claim)
    }

    /// What the sender would show for a claimed row.
    fn seen(dossier: &Dossier, fellows: &[Dossier], delivery: &DeliveryId) -> Seen {
        let card = dossier
            .deliveries
            .iter()
            .find(|card| card.id == *delivery)
            .expect("its card");
        let together = in_message((dossier, card), fellows);
        let row = |(dossier, card): &(&Dossier, &crate::confirmation::Delivery)| {
            (
                dossier.confirmation.id.clone(),
                card.id.clone(),
                dossier.confirmation.revision,
            )
        };
        Seen {
            rows: together.iter().map(row).collect(),
            set: set::code(
                &ServerKey::new(KEY),
                together.iter().map(|(dossier, _)| &dossier.confirmation),
            ),
        }
    }

    fn send(&mut self, mood: Mood) {
        for Claimed {
            item,
            dossier,
            fellows,
        } in self.claim()
        {
            let (Errand::Card { delivery, .. }, Some(dossier)) = (&item.errand, dossier) else {
                panic!("a card: {item:?}")
            };
            let card = dossier
                .deliveries
                .iter()
                .find(|card| card.id == *delivery)
                .expect("its card");
            let shows = Shows::of(&dossier, &fellows, card);
            let seen = Self::seen(&dossier, &fellows, delivery);
            let edition = dossier.confirmation.edition;
            let failure = match mood {
                Mood::Busy => Some(Failure::Retry {
                    after: None,
                    why: "busy".into(),
                }),
                Mood::RefusesContent if seen.rows.len() > 1 => Some(Failure::Content {
                    why: "content".into(),
                }),
                Mood::NotThere if !card.standing.is_empty() => Some(Failure::Gone { why: "gone".into() }),
                Mood::NotThere => Some(Failure::Target {
                    why: "no such group".into(),
                }),
                _ => None,
            };
            let arrives = failure.is_none() && mood != Mood::Lost;
            let sent = if card.standing.is_empty() {
                let name = if self.one_a_key {
                    format!("{} {}", card.id, card.lost)
                } else {
                    format!("m{}", self.posted)
                };
                let at = MessageRef {
                    chat: item.channel.to_string(),
                    message: name,
                };
                if arrives {
                    self.posted += 1;
                    self.messages.entry(at.message.clone()).or_insert(seen);
                }
                match (failure, mood) {
                    (Some(failure), _) => Sent::PostFailed(failure),
                    (None, Mood::Lost | Mood::LostAnswer) => Sent::PostUnknown("timeout".into()),
                    (None, _) => Sent::Posted {
                        at,
                        form: CardForm::LaidOut,
                        edition,
                        alone: self.one_a_key,
                    },
                }
            } else {
                let (mut done, mut failed) = (vec![], vec![]);
                for at in &shows.stale {
                    if arrives {
                        self.messages.insert(at.message.clone(), seen.clone());
                    }
                    if let Some(Failure::Gone { .. }) = &failure {
                        self.messages.remove(&at.message);
                    }
                    let lost = Failure::Retry {
                        after: None,
                        why: "timeout".into(),
                    };
                    match (&failure, mood) {
                        (Some(failure), _) => failed.push((at.clone(), failure.clone())),
                        (None, Mood::Lost | Mood::LostAnswer) => failed.push((at.clone(), lost)),
                        (None, _) => done.push((at.clone(), CardForm::LaidOut)),
                    }
                }
                Sent::Edited {
                    edition,
                    done,
                    failed,
                }
            };
            if mood != Mood::Dies {
                self.world.memory.run(&Record {
                    item,
                    sent,
                    beside: shows.beside,
                    spares: Spares::new(),
                });
            }
        }
    }

    fn message(&self, at: usize) -> Option<(String, Seen)> {
        let count = self.messages.len();
        let (name, seen) = self.messages.iter().nth(at.checked_rem(count)?)?;
        Some((name.clone(), seen.clone()))
    }

    /// A press on the card of a request as this message shows it.
    fn pressing(
        &mut self,
        name: &str,
        row: &(ConfirmationId, DeliveryId, u32),
        yes: bool,
    ) -> crate::confirmation::decide::Decide {
        let (id, card, revision) = row;
        let channel = self
            .world
            .row(id)
            .deliveries
            .iter()
            .position(|other| other.id == *card);
        let decision = if yes { Approve } else { Reject };
        let ballot = Ballot::Person("dana".into());
        let mut press = self.world.press(id, channel.expect("its card"), ballot, decision);
        if let Target::Card(clicked) = &mut press.target {
            clicked.at.message = name.to_owned();
            clicked.at.chat = clicked.channel.to_string();
            clicked.revision = *revision;
        }
        press
    }

    fn votes(&self) -> BTreeMap<ConfirmationId, usize> {
        let rows = self.world.memory.dossiers.iter();
        rows.map(|(id, dossier)| (id.clone(), dossier.votes.len()))
            .collect()
    }

    fn play(&mut self, step: &Move) {
        match step {
            Move::Ask => {
                let amount = u32::try_from(self.asked.len()).unwrap_or(0);
                let create = self.world.alike(terms(1), amount, 4);
                let Created::Fresh(dossier) = self.world.memory.run(&create) else {
                    panic!("it is new")
                };
                self.asked.push(dossier.confirmation.id);
            }
            Move::Send(mood) => self.send(*mood),
            Move::Pass(ms) => self.world.memory.now.0 += i64::from(*ms),
            Move::Sweep => {
                self.world.memory.run(&Expire { limit: 100 });
            }
            Move::Press(at, row, yes) => {
                let Some((name, seen)) = self.message(*at) else {
                    return;
                };
                let row = seen.rows[row % seen.rows.len()].clone();
                let press = self.pressing(&name, &row, *yes);
                let before = self.votes();
                let decided = self.world.memory.run(&press);
                for (id, count) in self.votes() {
                    let counts = id == row.0 && matches!(decided.ruling, Ruling::Settled | Ruling::Counted);
                    assert_eq!(count, before[&id] + usize::from(counts), "only what was pressed");
                }
            }
            Move::All(at, yes) => {
                let Some((name, seen)) = self.message(*at) else {
                    return;
                };
                if seen.rows.len() < 2 {
                    return;
                }
                let press = self.pressing(&name, &seen.rows[0], *yes);
                let before = self.votes();
                let decided = self
                    .world
                    .memory
                    .run(&DecideAll::new(press, seen.set, ServerKey::new(KEY)));
                let judged = matches!(decided.ruling, AllRuling::Judged(_));
                for (id, count) in self.votes() {
                    let shown = seen.rows.iter().any(|(shown, _, _)| *shown == id);
                    assert!(
                        count == before[&id] || (judged && shown),
                        "only what was on the screen"
                    );
                }
                if judged {
                    for (id, _, _) in &seen.rows {
                        let row = &self.world.row(id).confirmation;
                        assert_ne!(row.state.status(), Status::Pending, "one vote settles each");
                    }
                } else {
                    let refused = [Refusal::OutdatedCard, Refusal::OtherMessage].map(AllRuling::Refused);
                    assert!(refused.contains(&decided.ruling), "{:?}", decided.ruling);
                }
            }
        }
        self.check();
    }

    /// Nothing that is open is forgotten: its message is queued, or shows it as it is.
    fn check(&self) {
        let rows = &self.world.memory.outbox;
        for dossier in self.world.memory.dossiers.values() {
            if dossier.confirmation.state.status() != Status::Pending {
                continue;
            }
            for card in &dossier.deliveries {
                let host = card.host.as_ref().unwrap_or(&card.id);
                let queued = rows.contains_key(&crate::ids::OutboxId::of_card(host));
                let edition = dossier.confirmation.edition;
                let true_everywhere = !card.standing.is_empty()
                    && card.standing.iter().all(|message| message.edition >= edition);
                // Refused for good; or nobody heard of two posts, and the deadline judges.
                let over = card.state == DeliveryState::Failed
                    || card.unheard
                    || self.world.memory.now >= dossier.confirmation.expires_at;
                assert!(
                    queued || true_everywhere || over,
                    "{:?} of {}",
                    card,
                    dossier.confirmation.id
                );
            }
        }
        self.world.memory.assert_chains_hold();
    }

    /// Everything that is queued is sent, and the platform takes it.
    fn come_to_rest(&mut self) {
        for _ in 0..40 {
            if self.world.memory.outbox.is_empty() {
                break;
            }
            let due = self
                .world
                .memory
                .outbox
                .values()
                .map(|item| item.not_before)
                .min();
            let soon = self.world.memory.now.plus(Duration::from_secs(61));
            // An approved card waits for its permit to run out.
            self.world.memory.now = due.map_or(soon, |due| due.max(soon));
            self.world.memory.run(&Expire { limit: 100 });
            self.send(Mood::Fine);
        }
        assert!(
            self.world.memory.outbox.is_empty(),
            "it comes to rest: {:?}",
            self.world.memory.outbox
        );
        for dossier in self.world.memory.dossiers.values() {
            for card in &dossier.deliveries {
                for message in &card.standing {
                    assert_eq!(message.edition, dossier.confirmation.edition);
                    let seen = self.messages.get(&message.at.message);
                    let shown =
                        seen.is_some_and(|seen| seen.rows.iter().any(|(_, shown, _)| *shown == card.id));
                    assert!(shown, "{card:?} stands where it is shown");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn whatever_happens_no_open_request_is_without_a_card_and_no_press_decides_more_than_was_seen(
        moves in moves(),
        one_a_key: bool,
    ) {
        let mut play = Play {
            world: World::default(),
            asked: Vec::new(),
            messages: BTreeMap::new(),
            posted: 0,
            one_a_key,
        };
        for step in &moves {
            play.play(step);
        }
        play.come_to_rest();
    }
}
