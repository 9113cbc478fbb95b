//! A message of several requests whose channel refuses it, whose message is deleted, or whose permits run out: none of its requests
//! is forgotten, and each goes its own way from there.

use gatepost_channel::Decision::Approve;

use super::fixture::*;
use super::record::Sent;
use crate::confirmation::create::Created;
use crate::confirmation::decide::Ruling;
use crate::confirmation::fixture::World;
use crate::confirmation::{Delivery, DeliveryState, Status};
use crate::gate::Terms;
use crate::ids::ConfirmationId;

/// Another like request.
fn join(world: &mut World, terms: Terms, amount: u32) -> ConfirmationId {
    let create = world.alike(terms, amount, 4);
    match world.memory.run(&create) {
        Created::Fresh(dossier) => dossier.confirmation.id,
        other => panic!("{other:?}"),
    }
}

fn three(world: &mut World, terms: &Terms) -> Vec<ConfirmationId> {
    (0..3).map(|amount| join(world, terms.clone(), amount)).collect()
}

fn on<'a>(world: &'a World, ids: &'a [ConfirmationId], channel: &'a str) -> Vec<Delivery> {
    ids.iter().map(|id| card_of(world, id, channel)).collect()
}

/// The message on this channel is edited next, and is not there any more.
fn deleted(world: &mut World, channel: &str) {
    // The answer to a press is left alone for a while.
    world.memory.now.0 += 10_000;
    let due = claim(world);
    let one = due_on(&due, channel);
    let host = one.dossier.as_ref().expect("a request").confirmation.id.clone();
    let at = card_of(world, &host, channel).standing[0].at.clone();
    let failed = vec![(at, gone())];
    let edition = one
        .dossier
        .as_ref()
        .map_or(0, |dossier| dossier.confirmation.edition);
    let sent = Sent::Edited {
        edition,
        done: vec![],
        failed,
    };
    record(world, one, sent);
}

#[test]
fn what_a_channel_refuses_for_good_goes_on_for_each_request() {
    let mut world = World::default();
    let ids = three(&mut world, &falling_back());
    let due = claim(&mut world);
    assert_eq!(due.len(), 2, "one message on each channel");
    // It came while the message was under way, so it is in none that was refused.
    let late = join(&mut world, falling_back(), 9);
    record(&mut world, due_on(&due, "chat-a"), Sent::PostFailed(refused()));
    for id in &ids {
        assert_eq!(cards(&world, id)["chat-a"], DeliveryState::Failed);
        assert_eq!(cards(&world, id)["chat-c"], DeliveryState::Queued);
    }
    let card = card_of(&world, &late, "chat-a");
    assert_eq!((card.state, card.host), (DeliveryState::Queued, None));
    assert_eq!(count(&world, "delivery.rerouted"), 3);
    settle_down(&mut world);
    for id in ids.iter().chain([&late]) {
        assert_eq!(vote(&mut world, id, "dana", Approve), Ruling::Settled);
    }
}

#[test]
fn a_message_that_nobody_can_have_ends_each_of_its_requests() {
    let mut world = World::default();
    let ids = three(&mut world, &crate::confirmation::fixture::terms(1));
    let due = claim(&mut world);
    for channel in ["chat-a", "chat-b"] {
        let one = due_on(&due, channel).clone();
        let (item, sent) = (one.item, Sent::PostFailed(refused()));
        let beside = one.fellows.iter().flat_map(|dossier| &dossier.deliveries);
        let beside = beside.filter(|card| card.channel.as_str() == channel && card.host.is_some());
        world.memory.run(&super::record::Record {
            item,
            sent,
            beside: beside.map(|card| (card.id.clone(), 1)).collect(),
            spares: super::plan::Spares::new(),
        });
    }
    assert!(ids.iter().all(|id| status(&world, id) == Status::Undeliverable));
}

#[test]
fn a_deleted_message_is_posted_once_more_with_all_that_stood_in_it() {
    let mut world = World::default();
    let terms = Terms {
        quorum: 2,
        approvers: approvers(&["dana", "ines"]),
        ..falling_back()
    };
    let ids = three(&mut world, &terms);
    settle_down(&mut world);
    let before = on(&world, &ids, "chat-a");
    assert_eq!(vote(&mut world, &ids[1], "dana", Approve), Ruling::Counted);
    deleted(&mut world, "chat-a");
    settle_down(&mut world);
    let after = on(&world, &ids, "chat-a");
    for (after, before) in after.iter().zip(&before) {
        assert_eq!(after.state, DeliveryState::Posted);
        assert_eq!(after.standing.len(), 1);
        assert_ne!(after.standing[0].at, before.standing[0].at, "a new message");
        assert_eq!(
            after.standing[0].at,
            on(&world, &ids[..1], "chat-a")[0].standing[0].at
        );
    }
    // Deleted again: each is asked where the chain goes on.
    assert_eq!(vote(&mut world, &ids[1], "ines", Approve), Ruling::Settled);
    assert_eq!(vote(&mut world, &ids[2], "dana", Approve), Ruling::Counted);
    deleted(&mut world, "chat-a");
    settle_down(&mut world);
    assert_eq!(cards(&world, &ids[1])["chat-a"], DeliveryState::Settled);
    assert!(!cards(&world, &ids[1]).contains_key("chat-c"), "it was decided");
    for id in [&ids[0], &ids[2]] {
        assert_eq!(cards(&world, id)["chat-a"], DeliveryState::Failed);
        assert_eq!(cards(&world, id)["chat-c"], DeliveryState::Posted);
    }
}

#[test]
fn a_message_tells_of_each_permit_that_ran_out() {
    let mut world = World::default();
    let ids = three(&mut world, &crate::confirmation::fixture::terms(1));
    settle_down(&mut world);
    for id in &ids {
        assert_eq!(vote(&mut world, id, "dana", Approve), Ruling::Settled);
    }
    settle_down(&mut world);
    consume(&mut world, &ids[2]).expect("it is used in time");
    settle_down(&mut world);
    let until = world.row(&ids[0]).confirmation.permit_until().expect("a permit");
    world.memory.now = until;
    settle_down(&mut world);
    let lapsed = |world: &World, id| world.row(id).confirmation.progress.lapsed;
    assert_eq!(
        ids.iter().map(|id| lapsed(&world, id)).collect::<Vec<_>>(),
        [true, true, false]
    );
    for id in &ids {
        let (edition, card) = (world.row(id).confirmation.edition, card_of(&world, id, "chat-a"));
        assert!(card.standing.iter().all(|place| place.edition == edition));
    }
    assert!(world.memory.outbox.is_empty(), "nothing is left to be said");
}

#[test]
fn a_card_that_only_tells_is_never_shared() {
    let mut world = World::default();
    let mut ids = Vec::new();
    for amount in 0..2 {
        let mut create = world.alike(crate::confirmation::fixture::terms(1), amount, 4);
        create.deliveries.push(told(&world, "chat-d"));
        let Created::Fresh(dossier) = world.memory.run(&create) else {
            panic!("it is new")
        };
        ids.push(dossier.confirmation.id);
    }
    assert!(on(&world, &ids, "chat-a")[1].host.is_some());
    assert!(on(&world, &ids, "chat-d").iter().all(|card| card.host.is_none()));
}
