//! Cards that fall back, are posted anew, or only tell.

use gatepost_channel::CardForm;
use gatepost_channel::Decision::{Approve, Reject};
use gatepost_channel::Failure;

use super::Errand;
use super::record::{Record, Sent};
use crate::confirmation::decide::{Ballot, Refusal, Ruling};
use crate::confirmation::fixture::{World, terms};
use crate::confirmation::{DeliveryState, Status};
use crate::gate::Terms;
use crate::ids::OperatorId;

use super::fixture::*;
use super::plan::Spares;

#[test]
fn a_refused_card_goes_to_the_next_channel_of_the_chain() {
    let mut world = World::default();
    let id = fresh(&mut world, falling_back());
    let due = claim(&mut world);
    record(&mut world, due_on(&due, "chat-a"), Sent::PostFailed(refused()));
    assert_eq!(
        cards(&world, &id)["chat-c"],
        DeliveryState::Queued,
        "in the transaction that records the failure"
    );
    let setup = Failure::Setup {
        why: "token_revoked".into(),
    };
    record(&mut world, due_on(&due, "chat-b"), Sent::PostFailed(setup));
    assert_eq!(count(&world, "delivery.rerouted"), 2);
    assert_eq!(status(&world, &id), Status::Pending);
    let due = claim(&mut world);
    let content = Failure::Content {
        why: "invalid_blocks".into(),
    };
    record(&mut world, due_on(&due, "chat-c"), Sent::PostFailed(content));
    assert_eq!(
        status(&world, &id),
        Status::Pending,
        "the last one has not answered"
    );
    record(&mut world, due_on(&due, "chat-d"), Sent::PostFailed(refused()));
    assert_eq!(status(&world, &id), Status::Undeliverable, "nobody can be asked");
    assert!(
        cards(&world, &id)
            .values()
            .all(|state| *state == DeliveryState::Failed)
    );
}

#[test]
fn a_card_that_fell_back_can_be_answered() {
    let mut world = World::default();
    let id = fresh(&mut world, falling_back());
    let due = claim(&mut world);
    record(&mut world, due_on(&due, "chat-a"), Sent::PostFailed(refused()));
    record(&mut world, due_on(&due, "chat-b"), Sent::PostFailed(refused()));
    settle_down(&mut world);
    let cards = world.row(&id).deliveries.iter();
    let at = cards
        .into_iter()
        .position(|card| card.channel.as_str() == "chat-d")
        .expect("there");
    assert_eq!(world.click(&id, at, "dana", Approve).ruling, Ruling::Settled);
    settle_down(&mut world);
    assert_eq!(card_of(&world, &id, "chat-c").state, DeliveryState::Settled);
}

#[test]
fn what_is_temporary_or_settled_calls_for_no_other_channel() {
    let mut world = World::default();
    let id = fresh(&mut world, falling_back());
    let due = claim(&mut world);
    let limited = Failure::Retry {
        after: None,
        why: "ratelimited".into(),
    };
    vote(&mut world, &id, "dana", Reject);
    record(&mut world, due_on(&due, "chat-a"), Sent::PostFailed(limited));
    record(&mut world, due_on(&due, "chat-b"), Sent::PostFailed(refused()));
    assert_eq!(cards(&world, &id).len(), 2);
    assert_eq!(status(&world, &id), Status::Rejected);
}

#[test]
fn a_post_that_nobody_knows_of_gets_a_second_surface_and_stays_pressable() {
    let mut world = World::default();
    let id = fresh(&mut world, falling_back());
    for _ in 0..2 {
        let due = claim(&mut world);
        record(
            &mut world,
            due_on(&due, "chat-a"),
            Sent::PostUnknown("timeout".into()),
        );
        world.memory.now.0 += 5_000;
    }
    assert_eq!(cards(&world, &id)["chat-c"], DeliveryState::Queued);
    assert!(card_of(&world, &id, "chat-a").unheard);
    assert_eq!(vote(&mut world, &id, "dana", Approve), Ruling::Settled);
}

/// The message of a card, edited by a vote that another one must follow, is not there any more.
fn edit_fails(world: &mut World, channel: &str, failure: &Failure) {
    let due = claim(world);
    let one = due_on(&due, channel).clone();
    let Errand::Card { delivery, .. } = &one.item.errand else {
        unreachable!("a card")
    };
    let dossier = one.dossier.clone().expect("a request");
    let mut cards = dossier.deliveries.into_iter();
    let card = cards.find(|card| card.id == *delivery).expect("there");
    let failed = card
        .standing
        .into_iter()
        .map(|message| (message.at, failure.clone()));
    let sent = Sent::Edited {
        edition: dossier.confirmation.edition,
        done: vec![],
        failed: failed.collect(),
    };
    record(world, &one, sent);
    for other in due.iter().filter(|other| other.item.id != one.item.id) {
        carry_out(world, other);
    }
}

#[test]
fn a_deleted_card_is_posted_anew_once_and_then_goes_elsewhere() {
    let mut world = World::default();
    let pairs = Terms {
        quorum: 3,
        ..falling_back()
    };
    let id = fresh(&mut world, pairs);
    settle_down(&mut world);
    vote(&mut world, &id, "dana", Approve);
    world.memory.now.0 += 1_000;
    edit_fails(&mut world, "chat-a", &gone());
    let card = card_of(&world, &id, "chat-a");
    assert_eq!(
        (card.state, card.lost, card.standing.len()),
        (DeliveryState::Queued, 1, 0)
    );
    settle_down(&mut world);
    let card = card_of(&world, &id, "chat-a");
    assert_eq!(card.state, DeliveryState::Posted);
    assert_eq!(card.standing[0].edition, world.row(&id).confirmation.edition);
    assert_eq!(cards(&world, &id).len(), 2, "no other channel is needed yet");
    // It is deleted again.
    vote(&mut world, &id, "mira", Approve);
    world.memory.now.0 += 1_000;
    edit_fails(&mut world, "chat-a", &gone());
    assert_eq!(cards(&world, &id)["chat-a"], DeliveryState::Failed);
    settle_down(&mut world);
    assert_eq!(cards(&world, &id)["chat-c"], DeliveryState::Posted);
    assert_eq!(vote(&mut world, &id, "tomas", Approve), Ruling::Settled);
}

#[test]
fn a_card_that_is_deleted_everywhere_ends_the_request_at_once() {
    let mut world = World::default();
    let alone = Terms {
        channels: vec!["chat-a".into()],
        quorum: 3,
        ..terms(3)
    };
    let create = world.pay(alone, &[]);
    let id = create.id.clone();
    world.memory.run(&create);
    settle_down(&mut world);
    for person in ["dana", "mira"] {
        vote(&mut world, &id, person, Approve);
        world.memory.now.0 += 1_000;
        let due = claim(&mut world);
        let one = due_on(&due, "chat-a").clone();
        let at = card_of(&world, &id, "chat-a").standing[0].at.clone();
        let sent = Sent::Edited {
            edition: 9,
            done: vec![],
            failed: vec![(at, gone())],
        };
        world.memory.run(&Record {
            item: one.item,
            sent,
            beside: Vec::new(),
            spares: Spares::new(),
        });
        if person == "dana" {
            settle_down(&mut world);
        }
    }
    assert_eq!(status(&world, &id), Status::Undeliverable);
}

#[test]
fn a_message_that_cannot_be_edited_can_still_be_pressed() {
    let mut world = World::default();
    let pairs = Terms {
        quorum: 2,
        ..falling_back()
    };
    let id = fresh(&mut world, pairs);
    settle_down(&mut world);
    vote(&mut world, &id, "dana", Approve);
    world.memory.now.0 += 1_000;
    edit_fails(&mut world, "chat-a", &refused());
    let card = card_of(&world, &id, "chat-a");
    assert_eq!((card.state, card.standing.len()), (DeliveryState::Posted, 1));
    assert!(card.error.is_some());
    settle_down(&mut world);
    assert_eq!(cards(&world, &id)["chat-c"], DeliveryState::Posted);
    let before = world.memory.outbox.len();
    world.memory.now.0 += 10 * 1_000;
    assert!(
        claim(&mut world).is_empty() && before == 0,
        "it is left alone until something changes"
    );
    assert_eq!(vote(&mut world, &id, "mira", Approve), Ruling::Settled);
}

#[test]
fn who_is_only_told_decides_nothing_and_saves_nothing() {
    let mut world = World::default();
    let mut create = world.pay(terms(1), &[]);
    create.deliveries.push(told(&world, "chat-e"));
    let id = create.id.clone();
    world.memory.run(&create);
    settle_down(&mut world);
    let cards = world.row(&id).deliveries.clone();
    let at = cards.iter().position(|card| card.told).expect("there");
    let press = world.press(&id, at, Ballot::Person(OperatorId::from("dana")), Approve);
    assert_eq!(
        world.memory.run(&press).ruling,
        Ruling::Refused(Refusal::UnknownCard)
    );
    assert_eq!(vote(&mut world, &id, "dana", Approve), Ruling::Settled);
    settle_down(&mut world);
    assert_eq!(
        card_of(&world, &id, "chat-e").state,
        DeliveryState::Settled,
        "it is kept up to date"
    );

    // That somebody was told does not make a request one that people could answer.
    let mut create = world.pay(terms(1), &[]);
    create.deliveries.push(told(&world, "chat-e"));
    let id = create.id.clone();
    world.memory.run(&create);
    for one in claim(&mut world) {
        let sent = if one.item.channel.as_str() == "chat-e" {
            Sent::Posted {
                at: place("told"),
                form: CardForm::LaidOut,
                edition: 1,
                alone: true,
            }
        } else {
            Sent::PostFailed(refused())
        };
        world.memory.run(&Record {
            item: one.item.clone(),
            sent,
            beside: Vec::new(),
            spares: Spares::new(),
        });
    }
    assert_eq!(status(&world, &id), Status::Undeliverable);
}

#[test]
fn a_told_channel_that_refuses_brings_nobody_else_in() {
    let mut world = World::default();
    let mut create = world.pay(falling_back(), &[]);
    create.deliveries.push(told(&world, "chat-e"));
    let id = create.id.clone();
    world.memory.run(&create);
    let due = claim(&mut world);
    record(&mut world, due_on(&due, "chat-e"), Sent::PostFailed(refused()));
    assert_eq!(cards(&world, &id).len(), 3);
    assert_eq!(status(&world, &id), Status::Pending);
}

/// What was judged of other arguments is not judged of these.
#[test]
fn a_card_that_was_planned_before_the_question_changed_cannot_be_approved() {
    let mut world = World::default();
    let id = fresh(&mut world, falling_back());
    let due = claim(&mut world);
    let stored = world.memory.dossiers.get_mut(&id).expect("stored");
    stored.confirmation.revision += 1;
    record(&mut world, due_on(&due, "chat-a"), Sent::PostFailed(refused()));
    assert!(!card_of(&world, &id, "chat-c").approvable);
    record(&mut world, due_on(&due, "chat-b"), Sent::PostFailed(refused()));
    let due = claim(&mut world);
    record(&mut world, due_on(&due, "chat-c"), Sent::PostFailed(refused()));
    assert_eq!(status(&world, &id), Status::Pending);
}

/// The channel says once more that it is busy; `after` is how long it asks to be left alone.
fn busy(world: &mut World, channel: &str, after: Option<u64>) {
    let due = claim(world);
    let limited = Failure::Retry {
        after: after.map(std::time::Duration::from_secs),
        why: "ratelimited".into(),
    };
    for one in &due {
        if one.item.channel.as_str() == channel {
            record(world, one, Sent::PostFailed(limited.clone()));
        } else {
            carry_out(world, one);
        }
    }
}

#[test]
fn a_channel_that_fails_for_a_while_has_the_next_one_ask_too_within_the_bound() {
    let mut world = World::default();
    let mut terms = falling_back();
    terms.after.fallback_after_ms = Some(20_000);
    let id = fresh(&mut world, terms);
    let begun = world.memory.now.0;
    while cards(&world, &id).len() == 2 {
        busy(&mut world, "chat-a", None);
        world.memory.now.0 += 1_000;
        assert!(world.memory.now.0 - begun <= 20_000, "not later than the bound");
    }
    assert!(world.memory.now.0 - begun >= 10_000, "nor much earlier");
    assert_eq!(count(&world, "delivery.rerouted"), 1);
    // Only once for the card, however long it goes on.
    for _ in 0..20 {
        busy(&mut world, "chat-a", None);
        world.memory.now.0 += 1_000;
    }
    let seen = cards(&world, &id);
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["chat-a", "chat-b", "chat-c"]);
    assert_eq!(
        (seen["chat-a"], seen["chat-c"]),
        (DeliveryState::Queued, DeliveryState::Posted),
        "the first one is not given up"
    );
    // It works again: both ask, and whichever is answered first settles both.
    settle_down(&mut world);
    world.memory.now.0 += MINUTE / 2;
    settle_down(&mut world);
    assert_eq!(cards(&world, &id)["chat-a"], DeliveryState::Posted);
    let at = world
        .row(&id)
        .deliveries
        .iter()
        .position(|card| card.channel.as_str() == "chat-c");
    assert_eq!(
        world.click(&id, at.expect("there"), "dana", Approve).ruling,
        Ruling::Settled
    );
    world.memory.now.0 += 1_000;
    settle_down(&mut world);
    assert!(
        cards(&world, &id)
            .values()
            .all(|state| *state == DeliveryState::Settled)
    );
    world.memory.assert_chains_hold();
}

#[test]
fn who_asks_to_be_left_alone_for_longer_than_the_rule_bears_is_not_waited_for() {
    let mut world = World::default();
    let id = fresh(&mut world, falling_back());
    busy(&mut world, "chat-a", Some(30));
    assert_eq!(
        cards(&world, &id).len(),
        2,
        "half of the request's time is more than that"
    );
    world.memory.now.0 += 30_000;
    busy(&mut world, "chat-a", Some(30));
    assert_eq!(cards(&world, &id)["chat-c"], DeliveryState::Queued);
    // The one that took over has its own time, and where the chain ends nothing more is tried.
    busy(&mut world, "chat-c", Some(500));
    assert_eq!(cards(&world, &id)["chat-d"], DeliveryState::Queued);
    busy(&mut world, "chat-d", Some(500));
    assert_eq!(cards(&world, &id).len(), 4);
    assert_eq!(status(&world, &id), Status::Pending);
}

#[test]
fn what_stands_is_not_lent_and_without_a_chain_nothing_is() {
    let mut world = World::default();
    let id = fresh(&mut world, terms(1));
    let due = claim(&mut world);
    let limited = Failure::Retry {
        after: Some(std::time::Duration::from_mins(10)),
        why: "ratelimited".into(),
    };
    let record = Record {
        item: due_on(&due, "chat-a").item.clone(),
        sent: Sent::PostFailed(limited),
        beside: Vec::new(),
        spares: crate::delivery::plan::Spares::new(),
    };
    world.memory.run(&record);
    assert_eq!(cards(&world, &id).len(), 2);
    assert!(world.row(&id).confirmation.progress.lent.is_empty());
}
