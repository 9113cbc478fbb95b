//! Steps of an escalation: when, once, and what they lift.

use gatepost_channel::Decision::{Approve, Reject};

use super::claim::Claimed;
use super::escalate::{self, Escalate};
use super::{Errand, Line};
use crate::confirmation::DeliveryState;
use crate::confirmation::consume::NotGranted;
use crate::confirmation::decide::{Refusal, Ruling};
use crate::confirmation::expire::Expire;
use crate::confirmation::fixture::World;
use crate::gate::{Stage, Terms};
use crate::ids::{DeliveryId, OutboxId};

use super::fixture::*;
use super::plan::Planned;

#[test]
fn steps_are_taken_at_their_time_and_once() {
    let mut world = World::default();
    let id = fresh(&mut world, escalating());
    settle_down(&mut world);
    let begun = world.memory.now;
    world.memory.now.0 += MINUTE / 2 - 1;
    assert!(claim(&mut world).is_empty(), "not a millisecond too early");
    world.memory.now.0 += 1;
    let due = claim(&mut world);
    assert_eq!(due.len(), 1);
    // A second server whose clock of leases says that the first one died.
    world.memory.now.0 += 45_000;
    let other = claim(&mut world);
    let take = |one: &Claimed| Escalate {
        item: one.item.clone(),
        planned: Planned::default(),
    };
    assert!(!world.memory.run(&take(&due[0])), "its claim is over");
    assert!(world.memory.run(&take(&other[0])));
    assert!(!world.memory.run(&take(&other[0])));
    assert_eq!(count(&world, "confirmation.reminded"), 1);
    assert_eq!(world.row(&id).confirmation.progress.escalated, 1);
    assert_eq!(
        world.row(&id).confirmation.revision,
        1,
        "the question is the same, so its buttons go on working"
    );
    let reminders = claim(&mut world);
    let line = Line::Reminder {
        step: 0,
        mention: true,
    };
    let expected = ["chat-a", "chat-b"].map(|channel| (channel.to_owned(), line));
    assert_eq!(lines(&reminders), expected);
    for one in &reminders {
        carry_out(&mut world, one);
    }
    assert!(world.memory.now.0 > begun.0 + MINUTE);
    settle_down(&mut world);
    assert_eq!(count(&world, "confirmation.escalated"), 1);
    assert_eq!(cards(&world, &id)["chat-c"], DeliveryState::Posted);
    assert!(world.memory.outbox.is_empty(), "no step is left");
    assert_eq!(vote(&mut world, &id, "dana", Approve), Ruling::Settled);
}

#[test]
fn whoever_a_step_adds_decides_from_then_on() {
    for stages in [false, true] {
        let mut world = World::default();
        let mut terms = escalating();
        if stages {
            terms.decision.stages = vec![Stage {
                name: "one".into(),
                approvers: approvers(&["dana"]),
                quorum: 1,
            }];
        }
        let id = fresh(&mut world, terms);
        settle_down(&mut world);
        let refused = |refusal| Ruling::Refused(refusal);
        assert_eq!(
            vote(&mut world, &id, "ines", Approve),
            refused(Refusal::NotAuthorised)
        );
        world.memory.now.0 += MINUTE;
        // Both steps are due at once: each is taken in its turn.
        settle_down(&mut world);
        assert_eq!(world.row(&id).confirmation.progress.escalated, 2);
        assert_eq!(
            vote(&mut world, &id, "mira", Approve),
            refused(Refusal::NotAuthorised)
        );
        assert_eq!(vote(&mut world, &id, "ines", Approve), Ruling::Settled);
        assert_eq!(
            consume(&mut world, &id),
            Ok(()),
            "whoever decided is asked about again"
        );
    }
}

#[test]
fn a_step_lifts_nothing_but_the_list() {
    // Whoever stands behind the call, and whoever is not among what else is asked, decides as little as before.
    let mut world = World::default();
    let create = world.pay(escalating(), &["ines"]);
    let own = create.id.clone();
    world.memory.run(&create);
    let also = Terms {
        also: vec![approvers(&["dana", "mira"])],
        ..escalating()
    };
    let create = world.pay(also, &[]);
    let both = create.id.clone();
    world.memory.run(&create);
    settle_down(&mut world);
    world.memory.now.0 += MINUTE;
    settle_down(&mut world);
    assert_eq!(
        vote(&mut world, &own, "ines", Approve),
        Ruling::Refused(Refusal::SelfApproval)
    );
    assert_eq!(
        vote(&mut world, &both, "ines", Approve),
        Ruling::Refused(Refusal::NotAuthorised)
    );
    // A vote of a person whom only the step let in does not count without the step.
    assert_eq!(vote(&mut world, &own, "dana", Approve), Ruling::Settled);
    let third = fresh(&mut world, escalating());
    settle_down(&mut world);
    world.memory.now.0 += MINUTE;
    settle_down(&mut world);
    assert_eq!(vote(&mut world, &third, "ines", Approve), Ruling::Settled);
    let stored = world.memory.dossiers.get_mut(&third).expect("stored");
    stored.confirmation.progress.escalated = 0;
    assert_eq!(consume(&mut world, &third), Err(NotGranted::NotAuthorised));
}

#[test]
fn a_request_that_has_ended_is_not_escalated() {
    for end in 0..3 {
        let mut world = World::default();
        let id = fresh(&mut world, escalating());
        settle_down(&mut world);
        world.memory.now.0 += MINUTE / 2;
        let due = claim(&mut world);
        match end {
            0 => drop(vote(&mut world, &id, "dana", Reject)),
            1 => {
                world.memory.now.0 += 2 * MINUTE;
                world.memory.run(&Expire { limit: 10 });
            }
            _ => {}
        }
        let Some(one) = due.first() else {
            panic!("a step is due")
        };
        let item = one.item.clone();
        let taken = world.memory.run(&Escalate {
            item,
            planned: Planned::default(),
        });
        assert_eq!(taken, end == 2);
        world.memory.now.0 += MINUTE;
        settle_down(&mut world);
        let escalated = count(&world, "confirmation.escalated");
        assert_eq!(escalated, usize::from(end == 2));
        assert!(
            !world.memory.outbox.contains_key(&OutboxId::of_escalation(&id)),
            "its row went with it"
        );
    }
}

#[test]
fn one_reminder_is_enough_after_a_pause() {
    let mut world = World::default();
    let mut terms = escalating();
    terms.after.escalate[1].remind = true;
    let id = fresh(&mut world, terms);
    settle_down(&mut world);
    world.memory.now.0 += MINUTE + 1;
    for one in claim(&mut world) {
        carry_out(&mut world, &one);
    }
    for one in claim(&mut world) {
        carry_out(&mut world, &one);
    }
    assert_eq!(world.row(&id).confirmation.progress.escalated, 2);
    assert_eq!(count(&world, "confirmation.reminded"), 1);
}

#[test]
fn a_step_after_the_end_never_happens() {
    let mut world = World::default();
    let mut terms = escalating();
    terms.timeout_ms = MINUTE;
    fresh(&mut world, terms);
    settle_down(&mut world);
    world.memory.now.0 += MINUTE / 2;
    settle_down(&mut world);
    assert!(
        world.memory.outbox.is_empty(),
        "the second step would come too late"
    );
}

#[test]
fn a_step_names_the_cards_to_plan() {
    let mut world = World::default();
    let id = fresh(&mut world, escalating());
    let row = &world.row(&id).confirmation;
    let step = escalate::step_of(row, &Errand::Escalate { step: 1 }).expect("there");
    assert_eq!(step.channels, ["chat-c"]);
    assert!(escalate::step_of(row, &Errand::Escalate { step: 2 }).is_none());
    let card = Errand::Card {
        delivery: DeliveryId::fresh(&world.ids),
        posts: 0,
    };
    assert!(escalate::step_of(row, &card).is_none());
}

/// Asks for one more like request.
fn join(world: &mut World, amount: u32) {
    let create = world.alike(escalating(), amount, 4);
    world.memory.run(&create);
    settle_down(world);
}

/// The lines that are said from then on.
fn said(world: &mut World, at: i64) -> Vec<(String, Line)> {
    world.memory.now.0 = at;
    let mut found = Vec::new();
    for _ in 0..10 {
        let due = claim(world);
        found.extend(lines(&due));
        for one in &due {
            carry_out(world, one);
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

#[test]
fn one_reminder_names_all_that_share_a_card_and_leaves_out_none() {
    let mut world = World::default();
    let begun = world.memory.now.0;
    join(&mut world, 1);
    join(&mut world, 2);
    world.memory.now.0 = begun + 10_000;
    join(&mut world, 3);
    let reminder = Line::Reminder {
        step: 0,
        mention: true,
    };
    let once = ["chat-a", "chat-b"].map(|channel| (channel.to_owned(), reminder));
    let first = said(&mut world, begun + MINUTE / 2);
    assert_eq!(first, once, "the first two are due at once");
    world.memory.now.0 = begun + 35_000;
    join(&mut world, 4);
    let third = said(&mut world, begun + MINUTE / 2 + 10_000);
    assert_eq!(third, [], "the third was named with them");
    let fourth = said(&mut world, begun + MINUTE / 2 + 35_000);
    assert_eq!(fourth, once, "the fourth was not there yet");
    assert_eq!(count(&world, "confirmation.reminded"), 4);
}
