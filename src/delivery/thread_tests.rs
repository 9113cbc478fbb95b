//! Lines below cards, and what cards show of the call that follows.

use std::time::Duration;

use gatepost_channel::Decision::Approve;
use gatepost_channel::{Failure, UtcMillis};

use super::claim::Claimed;
use super::record::Sent;
use super::{Errand, Line};
use crate::confirmation::consume::NotGranted;
use crate::confirmation::fixture::{World, terms};
use crate::confirmation::outcome::Report;
use crate::confirmation::{DeliveryState, Outcome, OutcomeStatus, Status};
use crate::ids::{ConfirmationId, Org, OutboxId, TokenName};

use super::fixture::*;

/// Two lines wait below the cards of a request that was just settled.
fn noted(world: &mut World) -> (ConfirmationId, Vec<Claimed>) {
    let id = fresh(world, noting());
    settle_down(world);
    vote(world, &id, "dana", Approve);
    let due: Vec<_> = claim(world)
        .into_iter()
        .filter(|one| matches!(one.item.errand, Errand::Line { .. }))
        .collect();
    let expected = ["chat-a", "chat-b"].map(|channel| (channel.to_owned(), Line::Settled));
    assert_eq!(lines(&due), expected);
    (id, due)
}

fn begun(world: &World, row: &OutboxId) -> u32 {
    match world.memory.outbox[row].errand {
        Errand::Line { begun, .. } => begun,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_line_that_may_stand_is_not_said_again() {
    let mut world = World::default();
    let (_, due) = noted(&mut world);
    let row = due[0].item.id.clone();
    assert_eq!(begun(&world, &row), 1, "on record before it is said");
    // Whoever takes over from a sender that died sees that it was begun.
    world.memory.now.0 += 45_000;
    let again = claim(&mut world);
    assert!(again.iter().any(|one| one.item.id == row));
    assert_eq!(begun(&world, &row), 2);
    let one = again.iter().find(|one| one.item.id == row).expect("due").clone();
    record(&mut world, &one, Sent::PostUnknown("timeout".into()));
    assert!(!world.memory.outbox.contains_key(&row));
}

#[test]
fn a_line_that_was_certainly_not_said_is_said_later() {
    let mut world = World::default();
    let (_, due) = noted(&mut world);
    let row = due[0].item.id.clone();
    let limited = Failure::Retry {
        after: Some(Duration::from_secs(3)),
        why: "ratelimited".into(),
    };
    record(&mut world, &due[0], Sent::TellFailed(limited));
    assert_eq!(begun(&world, &row), 0);
    world.memory.now.0 += 3_000;
    let again = claim(&mut world);
    assert!(again.iter().any(|one| one.item.id == row));
    record(&mut world, &due[1], Sent::TellFailed(refused()));
    assert!(
        !world.memory.outbox.contains_key(&due[1].item.id),
        "a line is worth no more"
    );
}

#[test]
fn a_line_finds_out_that_its_card_was_deleted() {
    let mut world = World::default();
    let id = fresh(&mut world, escalating());
    settle_down(&mut world);
    world.memory.now.0 += MINUTE / 2;
    for one in claim(&mut world) {
        carry_out(&mut world, &one);
    }
    let due = claim(&mut world);
    let one = due
        .iter()
        .find(|one| matches!(one.item.errand, Errand::Line { .. }))
        .expect("a reminder");
    let channel = one.item.channel.0.clone();
    let sent = Sent::MessageGone {
        at: card_of(&world, &id, &channel).standing[0].at.clone(),
        failure: gone(),
    };
    record(&mut world, one, sent);
    assert_eq!(cards(&world, &id)[&channel], DeliveryState::Queued);
    world.memory.now.0 += 45_000;
    settle_down(&mut world);
    assert_eq!(
        cards(&world, &id)[&channel],
        DeliveryState::Posted,
        "people can press again"
    );
}

#[test]
fn a_reminder_of_what_was_settled_meanwhile_is_dropped() {
    let mut world = World::default();
    let id = fresh(&mut world, escalating());
    settle_down(&mut world);
    world.memory.now.0 += MINUTE / 2;
    for one in claim(&mut world) {
        carry_out(&mut world, &one);
    }
    vote(&mut world, &id, "dana", Approve);
    world.memory.now.0 += 1_000;
    assert_eq!(lines(&claim(&mut world)), []);
}

#[test]
fn what_came_of_the_call_is_noted_too() {
    let mut world = World::default();
    let (id, due) = noted(&mut world);
    for one in &due {
        carry_out(&mut world, one);
    }
    consume(&mut world, &id).expect("approved");
    let report = Report {
        id: id.clone(),
        org: Org::from("acme"),
        token: TokenName::from("agent"),
        outcome: Outcome {
            status: OutcomeStatus::Succeeded,
            detail: None,
        },
        detail: None,
    };
    world.memory.run(&report);
    world.memory.now.0 += 60_000;
    let said = lines(&claim(&mut world));
    assert_eq!(said.len(), 2);
    assert!(said.iter().all(|(_, line)| *line == Line::Outcome));
}

#[test]
fn cards_show_that_the_call_runs_and_how_it_ended() {
    let mut world = World::default();
    let id = fresh(&mut world, terms(1));
    settle_down(&mut world);
    vote(&mut world, &id, "dana", Approve);
    world.memory.now.0 += 1_000;
    settle_down(&mut world);
    let edition = |world: &World| world.row(&id).confirmation.edition;
    let shown = |world: &World| world.row(&id).deliveries[0].standing[0].edition;
    let approved = edition(&world);
    assert_eq!(shown(&world), approved);
    consume(&mut world, &id).expect("approved");
    assert_eq!(edition(&world), approved + 1);
    assert!(claim(&mut world).is_empty(), "the end of the call may be near");
    world.memory.now.0 += 2_000;
    settle_down(&mut world);
    assert_eq!(shown(&world), approved + 1);
    assert!(world.memory.outbox.is_empty(), "nothing is left to wait for");
}

#[test]
fn cards_show_that_a_permit_ran_out_unused() {
    let mut world = World::default();
    let id = fresh(&mut world, terms(1));
    settle_down(&mut world);
    vote(&mut world, &id, "dana", Approve);
    world.memory.now.0 += 1_000;
    settle_down(&mut world);
    let approved = world.row(&id).confirmation.edition;
    let until = world.row(&id).confirmation.permit_until().expect("approved");
    world.memory.now = UtcMillis(until.0 - 1);
    assert!(claim(&mut world).is_empty());
    world.memory.now = until;
    settle_down(&mut world);
    let row = world.row(&id);
    assert!(row.confirmation.progress.lapsed);
    assert_eq!(row.confirmation.edition, approved + 1);
    assert!(
        row.deliveries
            .iter()
            .all(|card| card.standing[0].edition == approved + 1)
    );
    assert_eq!(
        status(&world, &id),
        Status::Approved,
        "the decision stands; its time is over"
    );
    assert_eq!(consume(&mut world, &id), Err(NotGranted::PermitExpired));
    assert!(world.memory.outbox.is_empty());
}
