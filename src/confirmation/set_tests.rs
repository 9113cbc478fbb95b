use std::sync::Arc;

use gatepost_channel::Decision::{Approve, Reject};
use gatepost_channel::MessageRef;

use super::cancel::Cancel;
use super::create::{Create, Created};
use super::decide::{Ballot, Refusal, Ruling, Target};
use super::decide_all::{AllRuling, DecideAll, DecidedAll};
use super::fixture::{World, terms};
use super::set::{self, Fits, Joining};
use super::{DeliveryState, Dossier, Standing, Status};
use crate::delivery::Errand;
use crate::delivery::button::ServerKey;
use crate::ids::{ConfirmationId, OperatorId, OutboxId, TokenName};

const KEY: [u8; 32] = [7; 32];

fn stored(world: &mut World, create: &Create) -> ConfirmationId {
    match world.memory.run(create) {
        Created::Fresh(dossier) => dossier.confirmation.id,
        other => panic!("{other:?}"),
    }
}

fn first_of(world: &World, id: &ConfirmationId) -> ConfirmationId {
    world
        .row(id)
        .confirmation
        .set
        .clone()
        .expect("it is in a set")
        .first
}

/// So many like requests, all of them standing on the two messages of the first.
fn together(world: &mut World, count: u32, quorum: u32) -> Vec<ConfirmationId> {
    let mut ids = Vec::new();
    for amount in 0..count {
        let create = world.alike(terms(quorum), amount, 10);
        ids.push(stored(world, &create));
        world.memory.now.0 += 1;
    }
    stand(world);
    ids
}

/// Every card stands in its message as it is now.
fn stand(world: &mut World) {
    for dossier in world.memory.dossiers.values_mut() {
        for card in &mut dossier.deliveries {
            let host = card.host.as_ref().unwrap_or(&card.id);
            card.state = DeliveryState::Posted;
            card.standing = vec![Standing {
                at: MessageRef {
                    chat: card.channel.0.clone(),
                    message: format!("m-{host}"),
                },
                edition: dossier.confirmation.edition,
                reader: None,
                minimal: false,
            }];
        }
    }
    world.memory.outbox.clear();
}

fn rows<'a>(world: &'a World, ids: &'a [ConfirmationId]) -> impl Iterator<Item = &'a super::Confirmation> {
    ids.iter().map(|id| &world.row(id).confirmation)
}

/// A press on the button for all, as the card shows these requests now.
fn press_all(
    world: &mut World,
    ids: &[ConfirmationId],
    person: &str,
    decision: gatepost_channel::Decision,
) -> DecideAll {
    let set = set::code(&ServerKey::new(KEY), rows(world, ids));
    let press = world.press(&ids[0], 0, Ballot::Person(OperatorId::from(person)), decision);
    DecideAll::new(press, set, ServerKey::new(KEY))
}

fn all(
    world: &mut World,
    ids: &[ConfirmationId],
    person: &str,
    decision: gatepost_channel::Decision,
) -> DecidedAll {
    let press = press_all(world, ids, person, decision);
    world.memory.run(&press)
}

fn statuses(world: &World, ids: &[ConfirmationId]) -> Vec<Status> {
    rows(world, ids).map(|row| row.state.status()).collect()
}

#[test]
fn like_requests_stand_in_one_message_and_others_do_not() {
    type Twist = fn(&mut Create);
    let mut world = World::default();
    let ids = together(&mut world, 3, 1);
    assert!(ids.iter().all(|id| first_of(&world, id) == ids[0]));
    for id in &ids[1..] {
        let hosts: Vec<_> = world
            .row(id)
            .deliveries
            .iter()
            .map(|card| card.host.clone())
            .collect();
        let of_first: Vec<_> = world
            .row(&ids[0])
            .deliveries
            .iter()
            .map(|card| Some(card.id.clone()))
            .collect();
        assert_eq!(hosts, of_first, "each card has a host on its own channel");
    }
    let twists: [Twist; 5] = [
        |create| create.asked.token = "other-agent".into(),
        |create| create.asked.agent_id = Some("sub-agent".into()),
        |create| create.asked.session_id = Some("s2".into()),
        |create| create.asked.persons = vec!["dana".into()],
        |create| create.rule = Some("other".into()),
    ];
    for twist in twists {
        let mut create = world.alike(terms(1), 9, 10);
        twist(&mut create);
        let rule = create.rule.as_deref();
        let alike = set::Alike::of(&create.org, &create.asked, rule, None, &create.terms).expect("spelled");
        create.collapse.as_mut().expect("it may").alike = alike;
        let id = stored(&mut world, &create);
        assert_eq!(first_of(&world, &id), id, "{:?}", create.asked);
    }
    let plain = world.pay(terms(1), &[]);
    let id = stored(&mut world, &plain);
    assert!(
        world.row(&id).confirmation.set.is_none(),
        "off unless a rule says so"
    );
    world.memory.assert_chains_hold();
}

#[test]
fn a_card_takes_no_more_than_its_window_its_size_and_its_room() {
    #[derive(Debug)]
    struct AtMost(usize);
    impl Fits for AtMost {
        fn fit(&self, members: &[Dossier]) -> bool {
            members.len() <= self.0
        }
    }
    let mut world = World::default();
    let ask = |world: &mut World, most: u32, room: usize| {
        let mut create = world.alike(terms(1), 1, most);
        if let Some(joining) = &mut create.collapse {
            *joining = Joining {
                alike: joining.alike,
                fits: Arc::new(AtMost(room)),
            };
        }
        world.memory.now.0 += 1;
        stored(world, &create)
    };
    let ids: Vec<_> = (0..5).map(|_| ask(&mut world, 2, 9)).collect();
    let firsts: Vec<_> = ids.iter().map(|id| first_of(&world, id)).collect();
    assert_eq!(
        firsts,
        [0, 0, 2, 2, 4].map(|n: usize| ids[n].clone()),
        "two at most"
    );
    world.memory.now.0 += 60_000;
    let late = ask(&mut world, 2, 9);
    assert_eq!(
        first_of(&world, &late),
        late,
        "the window of the last card is over"
    );
    world.memory.now.0 += 60_000;
    let ids: Vec<_> = (0..4).map(|_| ask(&mut world, 9, 3)).collect();
    assert_eq!(first_of(&world, &ids[2]), ids[0]);
    assert_eq!(
        first_of(&world, &ids[3]),
        ids[3],
        "what does not fit begins a new card"
    );
    let one = world.alike(terms(1), 1, 1);
    assert!(one.collapse.is_none(), "one request a card is no set");
}

#[test]
fn a_settled_a_refused_and_a_doubtful_card_takes_nobody_in() {
    for spoil in 0..3 {
        let mut world = World::default();
        let ids = together(&mut world, 2, 1);
        match spoil {
            0 => assert!(matches!(
                all(&mut world, &ids, "dana", Reject).ruling,
                AllRuling::Judged(_)
            )),
            1 => {
                world.memory.dossiers.get_mut(&ids[0]).expect("there").deliveries[1].state =
                    DeliveryState::Failed;
            }
            _ => world.memory.dossiers.get_mut(&ids[0]).expect("there").deliveries[1].unheard = true,
        }
        let create = world.alike(terms(1), 7, 10);
        let id = stored(&mut world, &create);
        assert_eq!(first_of(&world, &id), id, "{spoil}");
    }
}

#[test]
fn a_change_of_any_request_queues_the_message_of_all() {
    let mut world = World::default();
    let ids = together(&mut world, 2, 2);
    assert_eq!(world.click(&ids[1], 0, "dana", Approve).ruling, Ruling::Counted);
    let hosts: Vec<_> = world
        .row(&ids[0])
        .deliveries
        .iter()
        .map(|card| card.id.clone())
        .collect();
    let queued: Vec<_> = world.memory.outbox.values().cloned().collect();
    assert_eq!(queued.len(), 2, "one errand for each message");
    for item in queued {
        let Errand::Card { delivery, .. } = &item.errand else {
            panic!("{item:?}")
        };
        assert!(hosts.contains(delivery) && item.id == OutboxId::of_card(delivery));
        assert_eq!(item.confirmation.as_ref(), Some(&ids[0]));
    }
}

#[test]
fn a_press_in_a_row_answers_that_request_alone() {
    let mut world = World::default();
    let ids = together(&mut world, 3, 1);
    assert_eq!(world.click(&ids[1], 1, "dana", Approve).ruling, Ruling::Settled);
    assert_eq!(
        statuses(&world, &ids),
        [Status::Pending, Status::Approved, Status::Pending]
    );
    assert_eq!(world.row(&ids[0]).votes, []);
    // The token of one request on the message of another set says nothing.
    let mut press = world.press(&ids[2], 0, Ballot::Person("dana".into()), Approve);
    if let Target::Card(clicked) = &mut press.target {
        clicked.at.message = "m-other".into();
    }
    assert_eq!(
        world.memory.run(&press).ruling,
        Ruling::Refused(Refusal::OtherMessage)
    );
}

#[test]
fn all_at_once_is_one_vote_and_one_event_for_each() {
    for (decision, settled) in [(Approve, Status::Approved), (Reject, Status::Rejected)] {
        let mut world = World::default();
        let ids = together(&mut world, 3, 1);
        let press = press_all(&mut world, &ids, "dana", decision);
        let shown = set::code(&ServerKey::new(KEY), rows(&world, &ids));
        let decided = world.memory.run(&press);
        let AllRuling::Judged(tally) = &decided.ruling else {
            panic!("{decided:?}")
        };
        assert_eq!((tally.settled, tally.counted, tally.refused.len()), (3, 0, 0));
        assert_eq!(statuses(&world, &ids), [settled; 3]);
        assert_eq!(decided.settled, ids);
        let cast: Vec<_> = world
            .memory
            .events
            .iter()
            .filter(|event| event.kind == "vote.cast")
            .collect();
        assert_eq!(cast.len(), 3);
        for (event, id) in cast.iter().zip(&ids) {
            assert_eq!(event.confirmation.as_ref(), Some(id));
            let data: serde_json::Value = serde_json::from_str(&event.data).expect("JSON");
            assert_eq!(data["set"], shown.to_string());
        }
        world.memory.assert_chains_hold();
        // The same callback once more changes nothing and is told the same.
        let again = world.memory.run(&press);
        let AllRuling::Replayed(first) = &again.ruling else {
            panic!("{again:?}")
        };
        assert_eq!(
            serde_json::from_str::<super::decide_all::Tally>(first).expect("a tally"),
            *tally
        );
        assert_eq!(world.last_refusal().as_deref(), Some("replayed"));
    }
}

#[test]
fn one_that_refuses_stops_none_of_the_others() {
    let mut world = World::default();
    let ids = together(&mut world, 4, 1);
    // Settled, voted on before, expired, and one that stands open.
    world.click(&ids[0], 0, "mira", Reject);
    let press = press_all(&mut world, &ids, "dana", Approve);
    world
        .memory
        .dossiers
        .get_mut(&ids[1])
        .expect("there")
        .confirmation
        .expires_at = world.memory.now;
    world.memory.dossiers.get_mut(&ids[2]).expect("there").deliveries[0].approvable = false;
    let decided = world.memory.run(&press);
    let AllRuling::Judged(tally) = decided.ruling else {
        panic!("{decided:?}")
    };
    let refused = ["already_settled", "expired", "partial_view"];
    let told: Vec<_> = ids.iter().cloned().zip(refused.map(str::to_owned)).collect();
    assert_eq!((tally.settled, tally.refused), (1, told));
    assert_eq!(
        statuses(&world, &ids),
        [
            Status::Rejected,
            Status::Expired,
            Status::Pending,
            Status::Approved
        ]
    );
    world.memory.assert_chains_hold();
    // Whoever may decide nothing is told so of each, and nothing is decided.
    let mut world = World::default();
    let ids = together(&mut world, 2, 1);
    for (person, why) in [("ines", "not_authorised"), ("nobody", "not_authorised")] {
        let AllRuling::Judged(tally) = all(&mut world, &ids, person, Approve).ruling else {
            panic!("judged")
        };
        assert!(tally.settled == 0 && tally.refused.iter().all(|(_, word)| word == why));
    }
    assert_eq!(statuses(&world, &ids), [Status::Pending; 2]);
}

#[test]
fn a_person_behind_one_of_the_calls_approves_none_of_them() {
    let mut world = World::default();
    let mut ids = Vec::new();
    for amount in 0..2 {
        let mut create = world.alike(terms(1), amount, 10);
        create.asked.persons = vec!["dana".into()];
        ids.push(stored(&mut world, &create));
    }
    stand(&mut world);
    let AllRuling::Judged(tally) = all(&mut world, &ids, "dana", Approve).ruling else {
        panic!("judged")
    };
    assert!(tally.refused.iter().all(|(_, word)| word == "self_approval") && tally.refused.len() == 2);
}

#[test]
fn a_set_that_changed_since_decides_nothing() {
    type Change = fn(&mut World, &[ConfirmationId]);
    let changes: [(bool, Change); 4] = [
        // Another request came to the card.
        (true, |world, _| {
            let create = world.alike(terms(1), 77, 10);
            stored(world, &create);
        }),
        // What is decided changed: a stage passed, or other arguments are voted on.
        (true, |world, ids| {
            world
                .memory
                .dossiers
                .get_mut(&ids[1])
                .expect("there")
                .confirmation
                .revision += 1;
        }),
        // Settled ones are what they were.
        (false, |world, ids| {
            world.click(&ids[1], 0, "mira", Approve);
        }),
        (false, |world, ids| {
            let cancel = Cancel {
                id: ids[0].clone(),
                org: "acme".into(),
                token: TokenName::from("agent"),
            };
            world.memory.run(&cancel);
        }),
    ];
    for (at, (outdated, change)) in changes.into_iter().enumerate() {
        let mut world = World::default();
        let ids = together(&mut world, 3, 1);
        let press = press_all(&mut world, &ids, "dana", Approve);
        change(&mut world, &ids);
        let before = statuses(&world, &ids);
        let decided = world.memory.run(&press);
        if outdated {
            assert_eq!(decided.ruling, AllRuling::Refused(Refusal::OutdatedCard), "{at}");
            assert_eq!(statuses(&world, &ids), before, "{at}");
            assert_eq!(world.last_refusal().as_deref(), Some("outdated_card"));
            assert!(decided.dossiers.len() >= 3, "the new card is the answer");
        } else {
            assert!(matches!(decided.ruling, AllRuling::Judged(_)), "{at}");
            assert!(
                statuses(&world, &ids)
                    .iter()
                    .all(|status| *status != Status::Pending),
                "{at}"
            );
        }
    }
}

#[test]
fn a_set_is_named_by_its_requests_their_calls_and_their_order_under_the_key() {
    let mut world = World::default();
    let ids = together(&mut world, 3, 1);
    let code = |key: [u8; 32], ids: &[ConfirmationId], world: &World| {
        set::code(&ServerKey::new(key), rows(world, ids))
    };
    let own = code(KEY, &ids, &world);
    let turned = [ids[1].clone(), ids[0].clone(), ids[2].clone()];
    let mut other = vec![
        code([8; 32], &ids, &world),
        code(KEY, &ids[..2], &world),
        code(KEY, &turned, &world),
    ];
    let first = &mut world
        .memory
        .dossiers
        .get_mut(&ids[0])
        .expect("there")
        .confirmation;
    first.asked.digest = crate::gate::Digest::of(
        &first.asked.tool,
        &crate::gate::Arguments::read(b"{}", crate::gate::json::ReadLimits::bytes(9)).expect("arguments"),
    );
    other.push(code(KEY, &ids, &world));
    assert!(other.iter().all(|other| *other != own));
}

#[test]
fn a_press_on_all_needs_a_card_of_ours_in_its_place() {
    type Twist = fn(&mut super::decide::Clicked);
    let twists: [(Refusal, Twist); 4] = [
        (Refusal::UnknownCard, |clicked| clicked.token = None),
        (Refusal::OtherChannel, |clicked| clicked.channel = "chat-b".into()),
        (Refusal::OtherChannel, |clicked| clicked.org = "rival".into()),
        (Refusal::OtherMessage, |clicked| {
            clicked.at.message = "forged".into();
        }),
    ];
    for (expected, twist) in twists {
        let mut world = World::default();
        let ids = together(&mut world, 2, 1);
        let mut press = press_all(&mut world, &ids, "dana", Approve);
        if let Target::Card(clicked) = &mut press.press.target {
            twist(clicked);
        }
        let decided = world.memory.run(&press);
        assert_eq!(decided.ruling, AllRuling::Refused(expected));
        assert_eq!(statuses(&world, &ids), [Status::Pending; 2]);
        assert!(decided.dossiers.is_empty(), "nothing is told of the requests");
    }
}
