use std::collections::BTreeMap;
use std::time::Duration;

use gatepost_channel::Decision::Approve;
use gatepost_channel::{CardForm, Failure, MessageRef};

use super::claim::{Claim, Claimed};
use super::plan::Spares;
use super::record::{Record, Sent};
use crate::confirmation::create::Created;
use crate::confirmation::fixture::{World, terms};
use crate::confirmation::{DeliveryState, Status};
use crate::ids::{ConfirmationId, OutboxId, WorkerId};

fn fresh(world: &mut World) -> ConfirmationId {
    let create = world.pay(terms(1), &[]);
    match world.memory.run(&create) {
        Created::Fresh(dossier) => dossier.confirmation.id,
        other => panic!("{other:?}"),
    }
}

fn claim(world: &mut World) -> Vec<Claimed> {
    let claim = Claim {
        worker: WorkerId::fresh(&world.ids),
        lease: Duration::from_secs(45),
        limit: 10,
        room: BTreeMap::new(),
    };
    world.memory.run(&claim)
}

fn record(world: &mut World, claimed: &Claimed, sent: Sent) {
    world.memory.run(&Record {
        item: claimed.item.clone(),
        sent,
        beside: Vec::new(),
        spares: Spares::new(),
    });
}

fn posted(at: MessageRef) -> Sent {
    Sent::Posted {
        at,
        form: CardForm::LaidOut,
        edition: 1,
        alone: false,
    }
}

fn place(name: &str) -> MessageRef {
    MessageRef {
        chat: "chat".into(),
        message: name.into(),
    }
}

fn gone() -> Failure {
    Failure::Target {
        why: "channel_not_found".into(),
    }
}

fn states(world: &World, id: &ConfirmationId) -> Vec<DeliveryState> {
    world.row(id).deliveries.iter().map(|card| card.state).collect()
}

#[test]
fn a_card_is_claimed_by_one_sender_and_stands_where_it_was_posted() {
    let mut world = World::default();
    let id = fresh(&mut world);
    let claimed = claim(&mut world);
    assert_eq!(claimed.len(), 2);
    assert!(
        claim(&mut world).is_empty(),
        "what is leased is not claimed again"
    );
    assert_eq!(
        states(&world, &id),
        [DeliveryState::Sending; 2],
        "a post that begins is on record before it is made"
    );
    for (n, one) in claimed.iter().enumerate() {
        record(&mut world, one, posted(place(&n.to_string())));
    }
    assert_eq!(states(&world, &id), [DeliveryState::Posted; 2]);
    assert!(world.memory.outbox.is_empty());
}

#[test]
fn a_decision_during_a_post_is_shown_by_an_edit() {
    let mut world = World::default();
    let id = fresh(&mut world);
    let claimed = claim(&mut world);
    world.click(&id, 0, "dana", Approve);
    assert_eq!(
        world.row(&id).confirmation.state.status(),
        Status::Approved,
        "the click came before the post's answer"
    );
    record(&mut world, &claimed[1], posted(place("b")));
    world.memory.now.0 += 60_000;
    let again = claim(&mut world);
    let edit = again
        .iter()
        .find(|one| one.item.id == claimed[1].item.id)
        .expect("the card is brought up to date");
    let edition = world.row(&id).confirmation.edition;
    record(
        &mut world,
        edit,
        Sent::Edited {
            edition,
            done: vec![(place("b"), CardForm::LaidOut)],
            failed: vec![],
        },
    );
    let card = world
        .row(&id)
        .deliveries
        .iter()
        .find(|card| OutboxId::of_card(&card.id) == edit.item.id)
        .expect("there");
    assert_eq!(card.state, DeliveryState::Settled);
    assert_eq!(
        Some(world.memory.outbox[&edit.item.id].not_before),
        world.row(&id).confirmation.permit_until(),
        "it waits for nothing but the end of the permit"
    );
}

#[test]
fn refused_everywhere_ends_the_request_at_once_and_refused_somewhere_does_not() {
    let mut world = World::default();
    let id = fresh(&mut world);
    let claimed = claim(&mut world);
    record(&mut world, &claimed[0], Sent::PostFailed(gone()));
    assert_eq!(world.row(&id).confirmation.state.status(), Status::Pending);
    record(
        &mut world,
        &claimed[1],
        Sent::PostFailed(Failure::Setup {
            why: "invalid_auth".into(),
        }),
    );
    assert_eq!(world.row(&id).confirmation.state.status(), Status::Undeliverable);
    assert_eq!(
        world
            .memory
            .kinds()
            .iter()
            .filter(|kind| **kind == "delivery.failed")
            .count(),
        2
    );
    assert!(world.memory.outbox.is_empty(), "nothing is left to send");
}

#[test]
fn a_temporary_failure_waits_as_told_and_tries_again() {
    let mut world = World::default();
    let id = fresh(&mut world);
    let claimed = claim(&mut world);
    let after = Some(Duration::from_secs(7));
    record(
        &mut world,
        &claimed[0],
        Sent::PostFailed(Failure::Retry {
            after,
            why: "ratelimited".into(),
        }),
    );
    assert_eq!(states(&world, &id)[0], DeliveryState::Queued);
    assert!(claim(&mut world).is_empty());
    world.memory.now.0 += 7_000;
    assert_eq!(claim(&mut world).len(), 1);
}

#[test]
fn an_unknown_post_is_repeated_once_and_stays_recognisable() {
    let mut world = World::default();
    let id = fresh(&mut world);
    for _ in 0..2 {
        let claimed = claim(&mut world);
        let first = claimed
            .iter()
            .find(|one| one.item.id == OutboxId::of_card(&world.row(&id).deliveries[0].id))
            .expect("due")
            .clone();
        record(&mut world, &first, Sent::PostUnknown("timeout".into()));
        world.memory.now.0 += 5_000;
    }
    let row = OutboxId::of_card(&world.row(&id).deliveries[0].id);
    assert!(!world.memory.outbox.contains_key(&row), "no third card is risked");
    assert_eq!(states(&world, &id)[0], DeliveryState::Sending);
    world.click(&id, 0, "dana", Approve);
    assert_eq!(
        world.row(&id).confirmation.state.status(),
        Status::Approved,
        "a card that stands all the same can be answered"
    );
}

/// Slack gives no key to a post: after a lost answer two cards may stand, and both lead to the request.
#[test]
fn a_card_that_was_posted_twice_is_heard_of_by_a_press() {
    let mut world = World::default();
    let id = fresh(&mut world);
    let claimed = claim(&mut world);
    record(&mut world, &claimed[0], Sent::PostUnknown("timeout".into()));
    world.memory.now.0 += 5_000;
    let again = claim(&mut world);
    record(&mut world, &again[0], posted(place("second")));
    let card = |world: &World| {
        let cards = world.row(&id).deliveries.clone();
        let mut cards = cards.into_iter();
        cards
            .find(|card| OutboxId::of_card(&card.id) == claimed[0].item.id)
            .expect("there")
    };
    assert!(card(&world).unheard && card(&world).state == DeliveryState::Posted);
    // A platform that lets no second message arise under one key leaves nothing open.
    world.memory.now.0 += 5_000;
    let other = fresh(&mut world);
    let claimed = claim(&mut world);
    for one in &claimed {
        record(&mut world, one, Sent::PostUnknown("timeout".into()));
    }
    world.memory.now.0 += 5_000;
    for one in &claim(&mut world) {
        let known = Sent::Posted {
            at: place("one"),
            form: CardForm::LaidOut,
            edition: 1,
            alone: true,
        };
        record(&mut world, one, known);
    }
    assert!(world.row(&other).deliveries.iter().all(|card| !card.unheard));
}

#[test]
fn a_card_is_not_posted_once_its_time_is_over() {
    let mut world = World::default();
    let id = fresh(&mut world);
    world.memory.now = world.row(&id).confirmation.expires_at;
    assert!(claim(&mut world).is_empty());
    assert!(
        states(&world, &id)
            .iter()
            .all(|state| *state == DeliveryState::Queued)
    );
}

#[test]
fn a_sender_that_died_leaves_its_rows_to_the_next() {
    let mut world = World::default();
    let id = fresh(&mut world);
    let dead = claim(&mut world);
    world.memory.now.0 += 45_000;
    let alive = claim(&mut world);
    assert_eq!(alive.len(), 2);
    record(&mut world, &alive[0], posted(place("new")));
    let card = |world: &World| {
        let mut cards = world.row(&id).deliveries.clone().into_iter();
        cards
            .find(|card| OutboxId::of_card(&card.id) == alive[0].item.id)
            .expect("there")
    };
    assert!(
        card(&world).unheard,
        "the card that the dead one may have left can still be pressed"
    );
    record(&mut world, &dead[0], posted(place("old")));
    assert!(!card(&world).unheard, "it was only slow");
    assert_eq!(
        card(&world).standing.len(),
        2,
        "both messages lead to the same request"
    );
}

/// Whatever a sender tells after its claim is over, the row belongs to whoever took over.
#[test]
fn a_late_sender_takes_nothing_from_the_one_that_took_over() {
    let temporary = Failure::Retry {
        after: None,
        why: "ratelimited".into(),
    };
    for late in [
        Sent::PostFailed(gone()),
        Sent::PostFailed(temporary.clone()),
        Sent::PostUnknown("timeout".into()),
        Sent::Edited {
            edition: 1,
            done: vec![],
            failed: vec![(place("x"), gone())],
        },
        Sent::TellFailed(gone()),
        Sent::Told,
    ] {
        let mut world = World::default();
        let id = fresh(&mut world);
        let slow = claim(&mut world);
        world.memory.now.0 += 45_000;
        let swift = claim(&mut world);
        for one in &slow {
            record(&mut world, one, late.clone());
        }
        assert_eq!(world.memory.outbox.len(), 2, "{late:?} ended a row");
        for one in &swift {
            let row = &world.memory.outbox[&one.item.id];
            assert_eq!(row.lease, one.item.lease, "{late:?} let a third one in");
        }
        assert_eq!(states(&world, &id), [DeliveryState::Sending; 2], "{late:?}");
        assert_eq!(
            world.row(&id).confirmation.state.status(),
            Status::Pending,
            "{late:?}"
        );
        assert!(!world.memory.kinds().contains(&"delivery.failed"), "{late:?}");
        for (n, one) in swift.iter().enumerate() {
            record(&mut world, one, posted(place(&n.to_string())));
        }
        assert_eq!(states(&world, &id), [DeliveryState::Posted; 2], "{late:?}");
        assert!(world.memory.outbox.is_empty(), "{late:?}");
    }
}

#[test]
fn a_message_that_a_late_sender_posted_is_known_and_kept_true() {
    for gone in [false, true] {
        let mut world = World::default();
        let id = fresh(&mut world);
        let slow = claim(&mut world);
        world.memory.now.0 += 45_000;
        let swift = claim(&mut world);
        if gone {
            record(&mut world, &swift[0], posted(place("new")));
            assert!(!world.memory.outbox.contains_key(&swift[0].item.id));
        }
        record(&mut world, &slow[0], posted(place("old")));
        if !gone {
            record(&mut world, &swift[0], posted(place("new")));
        }
        let card = |world: &World| {
            let cards = world.row(&id).deliveries.clone();
            let mut cards = cards.into_iter();
            cards
                .find(|card| OutboxId::of_card(&card.id) == swift[0].item.id)
                .expect("there")
        };
        let at: std::collections::BTreeSet<_> = card(&world)
            .standing
            .into_iter()
            .map(|message| message.at.message)
            .collect();
        assert_eq!(at, ["new".to_owned(), "old".to_owned()].into());
        // The decision reaches both.
        world.click(&id, 0, "dana", Approve);
        world.memory.now.0 += 60_000;
        let edit = claim(&mut world);
        let edit = edit
            .iter()
            .find(|one| one.item.id == swift[0].item.id)
            .expect("queued");
        let edition = world.row(&id).confirmation.edition;
        let stale = edit.dossier.as_ref().expect("there").deliveries.clone();
        let stale = stale
            .into_iter()
            .find(|c| c.id == card(&world).id)
            .expect("there")
            .standing;
        assert_eq!(
            stale.iter().filter(|message| message.edition < edition).count(),
            2
        );
    }
}

#[test]
fn a_failed_edit_never_undoes_a_decision() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    world.memory.outbox.clear();
    world.click(&id, 0, "dana", Approve);
    world.memory.now.0 += 1_000;
    for one in claim(&mut world) {
        let dossier = one.dossier.as_ref().expect("a card has a request");
        let card = dossier
            .deliveries
            .iter()
            .find(|card| OutboxId::of_card(&card.id) == one.item.id)
            .expect("there");
        let at = card.standing[0].at.clone();
        let failure = Failure::Gone {
            why: "message_not_found".into(),
        };
        record(
            &mut world,
            &one,
            Sent::Edited {
                edition: 2,
                done: vec![],
                failed: vec![(at, failure)],
            },
        );
    }
    assert_eq!(world.row(&id).confirmation.state.status(), Status::Approved);
    assert_eq!(states(&world, &id), [DeliveryState::Settled; 2]);
    assert!(world.memory.outbox.is_empty());
}

#[test]
fn no_channel_is_written_to_faster_than_it_takes() {
    let mut world = World::default();
    for _ in 0..5 {
        fresh(&mut world);
    }
    let pace = gatepost_channel::Pace {
        burst: 2,
        every: Duration::from_secs(1),
    };
    let room = |free| BTreeMap::from([("chat-a".into(), (free, pace)), ("chat-b".into(), (10, pace))]);
    let claim = |free, world: &mut World| {
        let claim = Claim {
            worker: WorkerId::fresh(&world.ids),
            lease: Duration::from_secs(45),
            limit: 100,
            room: room(free),
        };
        world.memory.run(&claim)
    };
    let first = claim(2, &mut world);
    let on = |claimed: &[Claimed], channel: &str| {
        claimed
            .iter()
            .filter(|one| one.item.channel.as_str() == channel)
            .count()
    };
    assert_eq!(
        (on(&first, "chat-a"), on(&first, "chat-b")),
        (2, 5),
        "a slow channel holds no other one up"
    );
    world.memory.now.0 += 1_000;
    assert_eq!(on(&claim(1, &mut world), "chat-a"), 1);
    world.memory.now.0 += 10_000;
    assert_eq!(
        on(&claim(2, &mut world), "chat-a"),
        2,
        "what was put off is not lost"
    );
}

#[test]
fn the_form_in_which_a_card_stands_is_remembered_for_each_message() {
    let mut world = World::default();
    let id = fresh(&mut world);
    let claimed = claim(&mut world);
    let minimal = |world: &World| {
        let cards = world.row(&id).deliveries.iter();
        cards
            .flat_map(|card| card.standing.iter().map(|message| message.minimal))
            .collect::<Vec<_>>()
    };
    for (one, form) in claimed.iter().zip([CardForm::Minimal, CardForm::LaidOut]) {
        let sent = Sent::Posted {
            at: place(one.item.channel.as_str()),
            form,
            edition: 1,
            alone: true,
        };
        record(&mut world, one, sent);
    }
    assert_eq!(minimal(&world), [true, false]);

    world.click(&id, 1, "dana", Approve);
    world.memory.now.0 += 5_000;
    let edition = world.row(&id).confirmation.edition;
    for one in &claim(&mut world) {
        let done = world
            .row(&id)
            .deliveries
            .iter()
            .find(|card| OutboxId::of_card(&card.id) == one.item.id);
        let done = done.expect("there").standing.iter().map(|message| {
            let form = if message.minimal {
                CardForm::LaidOut
            } else {
                CardForm::Minimal
            };
            (message.at.clone(), form)
        });
        let done = done.collect();
        record(
            &mut world,
            one,
            Sent::Edited {
                edition,
                done,
                failed: vec![],
            },
        );
    }
    assert_eq!(minimal(&world), [false, true], "what stands there now counts");
}

/// A sender that is told late of its post may have been answered with the message of an earlier try under the same key.
#[test]
fn a_post_that_is_told_late_is_taken_for_that_of_an_earlier_try() {
    let mut world = World::default();
    let id = fresh(&mut world);
    let slow = claim(&mut world).remove(0);
    world.memory.now.0 += 45_000;
    let row = slow.item.id.clone();
    let again = claim(&mut world);
    assert!(again.iter().any(|one| one.item.id == row), "its claim is over");
    let edition = world.row(&id).confirmation.edition;
    let told = Sent::Posted {
        at: place("first"),
        form: CardForm::LaidOut,
        edition,
        alone: true,
    };
    record(&mut world, &slow, told);
    let mut cards = world.row(&id).deliveries.iter();
    let card = cards
        .find(|card| OutboxId::of_card(&card.id) == row)
        .expect("there");
    assert_eq!(card.standing[0].edition, 0, "what it shows is not known");
}
