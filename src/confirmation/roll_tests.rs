//! One person under several ids, whoever was found first: in the roll, in votes and at the end of a call.

use std::sync::Arc;

use gatepost_channel::Decision::Approve;
use proptest::prelude::*;

use super::Status;
use super::consume::{Consume, NotGranted};
use super::decide::{Ballot, Decide, Refusal, Ruling};
use super::fixture::{ORG, World, terms};
use super::insight::Doubt;
use super::roll::{Found, Roll, Standing, Voter};
use crate::gate::authority::StepUp;
use crate::gate::decision::{everybody, persons_needed};
use crate::gate::policy::Approvers;
use crate::gate::{Stage, Terms};
use crate::ids::{ConfirmationId, OperatorId, Org, PermitId, TokenName};

fn found(id: &str, also: &[&str], roles: &[&str]) -> Found {
    Found {
        voter: Voter {
            id: OperatorId::from(id),
            name: id.to_owned(),
            orgs: vec![Org::from(ORG)],
            roles: roles.iter().copied().map(str::to_owned).collect(),
        },
        also: also.iter().copied().map(OperatorId::from).collect(),
        standing: Standing::Good,
        perhaps: vec![],
    }
}

/// Dana, who has an entry with an account on the one platform, and the account of the other one with the same address.
fn dana_twice() -> [Found; 2] {
    [
        found("dana", &["chat:U1", "dana@x.example"], &[]),
        found("dana@x.example", &["talk:ou_1", "dana@x.example"], &["finance"]),
    ]
}

fn is_one(roll: &Roll, ids: &[&str]) -> bool {
    let ids: Vec<OperatorId> = ids.iter().copied().map(OperatorId::from).collect();
    ids.iter().all(|id| roll.is_same(id, &ids[0]))
}

fn press(world: &mut World, id: &ConfirmationId, person: &str, roll: &Roll) -> Decide {
    let press = world.press(id, 0, Ballot::Person(OperatorId::from(person)), Approve);
    Decide {
        roll: Arc::new(roll.clone()),
        ..press
    }
}

fn approves(world: &mut World, id: &ConfirmationId, person: &str, roll: &Roll) -> Ruling {
    let press = press(world, id, person, roll);
    world.memory.run(&press).ruling
}

fn consume(world: &World, id: &ConfirmationId, roll: &Roll) -> Consume {
    Consume {
        id: id.clone(),
        token: TokenName::from("agent"),
        digest: world.row(id).confirmation.asked.digest,
        judged: world.row(id).confirmation.call().digest,
        permit: PermitId::fresh(&world.ids),
        roll: Arc::new(roll.clone()),
        denied_by: None,
        grant: None,
        offered: None,
    }
}

fn staged() -> Terms {
    let stage = |name: &str, roles: &[&str]| Stage {
        name: name.into(),
        approvers: Approvers {
            roles: roles.iter().copied().map(str::to_owned).collect(),
            ..Approvers::default()
        },
        quorum: 1,
    };
    let stages = vec![stage("finance", &["finance"]), stage("director", &["finance"])];
    let mut terms = terms(1);
    terms.approvers = everybody(&stages);
    terms.quorum = persons_needed(&stages);
    terms.decision.stages = stages;
    terms
}

/// Quorum, a second person and stages: whichever account answers first, and whichever is found first, one person is one.
#[test]
fn one_person_with_two_accounts_is_one_in_every_order() {
    let mut second = terms(1);
    second.decision.step_up = StepUp {
        second_person: true,
        ..StepUp::default()
    };
    for terms in [terms(2), second, staged()] {
        for presses in [["dana", "dana@x.example"], ["dana@x.example", "dana"]] {
            for turned in [false, true] {
                let mut world = World::default();
                let id = world.asked(terms.clone(), &[]);
                let mut both = dana_twice().to_vec();
                if turned {
                    both.reverse();
                }
                // The first press knows of one account only, as nobody else has answered.
                let alone = both.iter().filter(|found| found.voter.id.as_str() == presses[0]);
                let alone = world.roll.with(alone.cloned());
                let first = approves(&mut world, &id, presses[0], &alone);
                assert!(
                    !matches!(first, Ruling::Refused(_) | Ruling::Settled),
                    "{first:?}"
                );
                let roll = world.roll.with(both);
                let again = approves(&mut world, &id, presses[1], &roll);
                assert!(
                    matches!(again, Ruling::Refused(_)),
                    "{presses:?} {turned} {again:?}"
                );
                let status = world.row(&id).confirmation.state.status();
                assert_eq!(status, Status::Pending, "{presses:?} {turned}");
            }
        }
    }
}

/// Votes that turn out to be one person's when the permit is asked for, in one stage or in two.
#[test]
fn at_consume_nobody_stands_in_two_places() {
    for terms in [terms(2), staged()] {
        let mut world = World::default();
        let id = world.asked(terms, &[]);
        let apart = world.roll.with([found("noor@x.example", &[], &["finance"])]);
        assert_eq!(approves(&mut world, &id, "dana", &apart), Ruling::Counted);
        assert_eq!(
            approves(&mut world, &id, "noor@x.example", &apart),
            Ruling::Settled
        );
        let [mut dana, mut noor] = dana_twice();
        noor.voter.id = "noor@x.example".into();
        dana.also.push("noor@x.example".into());
        let one = world.roll.with([noor, dana]);
        assert_eq!(
            world.memory.run(&consume(&world, &id, &one)),
            Err(NotGranted::NotAuthorised)
        );
        assert!(world.memory.run(&consume(&world, &id, &apart)).is_ok());
    }
}

/// Whoever asks may not approve under another id, whichever of them is found first.
#[test]
fn nobody_approves_their_own_call_through_another_account() {
    for turned in [false, true] {
        let mut world = World::default();
        let id = world.asked(terms(1), &["dana"]);
        let mut both = dana_twice();
        if turned {
            both.reverse();
        }
        let roll = world.roll.with(both);
        assert_eq!(
            approves(&mut world, &id, "dana@x.example", &roll),
            Ruling::Refused(Refusal::SelfApproval)
        );
    }
}

/// Where it cannot be told whether somebody without an entry is one of those behind the call, they do not approve it; who has an
/// entry does, and everybody may reject.
#[test]
fn whoever_cannot_be_told_from_those_behind_the_call_does_not_approve_it() {
    for (doubt, refusal) in [
        (Doubt::NotToldApart, Refusal::NotToldApart),
        (Doubt::LookUpFailed, Refusal::LookUpFailed),
    ] {
        let mut world = World::default();
        let id = world.asked(terms(1), &["mira"]);
        let roll = world.roll.with(dana_twice());
        let noor = roll.with([found("noor@x.example", &[], &["finance"])]);
        let mut doubtful = press(&mut world, &id, "noor@x.example", &noor);
        doubtful.insight.doubt = Some(doubt);
        assert_eq!(world.memory.run(&doubtful).ruling, Ruling::Refused(refusal));
        let mut entered = press(&mut world, &id, "dana@x.example", &roll);
        entered.insight.doubt = Some(doubt);
        assert_eq!(
            world.memory.run(&entered).ruling,
            Ruling::Settled,
            "she has an entry"
        );
    }
    assert!(Doubt::LookUpFailed > Doubt::NotToldApart);
}

/// Two entries are two people, and an account that may be either's decides nothing.
#[test]
fn whoever_may_be_either_of_two_operators_is_neither() {
    let world = World::default();
    let shared = [
        found("dana", &["chat:U1", "team@x.example"], &[]),
        found("mira", &["chat:U2", "team@x.example"], &[]),
        found("team@x.example", &["talk:ou_1"], &["finance"]),
    ];
    let roll = world.roll.with(shared);
    assert!(!is_one(&roll, &["dana", "mira"]));
    let (org, at) = (Org::from(ORG), gatepost_channel::UtcMillis(0));
    let may = |id: &str| roll.may_decide(&id.into(), &org, &terms(1), at);
    assert!(may("dana") && may("mira") && !may("team@x.example"));
}

/// An account that is gone takes no hope from another look-up of the same person that failed.
#[test]
fn what_is_barred_for_certain_is_not_hoped_for() {
    let world = World::default();
    let mut barred = found("noor@x.example", &[], &["finance"]);
    barred.standing = Standing::Barred;
    let mut unsure = barred.clone();
    unsure.standing = Standing::Unsure;
    unsure.perhaps = vec!["finance".into()];
    for both in [[barred.clone(), unsure.clone()], [unsure, barred]] {
        let roll = world.roll.with(both);
        let (org, at) = (Org::from(ORG), gatepost_channel::UtcMillis(0));
        let hopeful = roll.hopeful().expect("a look-up failed");
        assert!(!hopeful.may_decide(&"noor@x.example".into(), &org, &terms(1), at));
    }
}

fn looked_up() -> Vec<Found> {
    let mut later = found("talk:ou_1", &["on_1", "dana@x.example"], &["platform"]);
    later.perhaps = vec!["finance".into()];
    let mut failed = found("on_1", &[], &[]);
    failed.standing = Standing::Unsure;
    vec![
        found("dana", &["chat:U1", "dana@x.example"], &[]),
        found("dana@x.example", &["talk:ou_1", "dana@x.example"], &["finance"]),
        later,
        failed,
        found("noor@x.example", &["chat:U5"], &["finance"]),
        found("chat:U5", &["noor@old.example"], &["finance"]),
    ]
}

proptest! {
    /// What was found about people leads to one roll, in whatever order and in however many portions it came.
    #[test]
    fn the_order_of_what_was_found_changes_nothing(
        order in Just(looked_up()).prop_shuffle(),
        cut in 0..=6_usize,
    ) {
        let world = World::default();
        let roll = world.roll.with(order.clone());
        prop_assert_eq!(&roll, &world.roll.with(looked_up()));
        let (first, rest) = order.split_at(cut);
        for roll in [roll, world.roll.with(first.to_vec()).with(rest.to_vec())] {
            prop_assert!(is_one(&roll, &["dana", "chat:U1", "dana@x.example", "talk:ou_1", "on_1"]));
            prop_assert!(is_one(&roll, &["noor@x.example", "chat:U5", "noor@old.example"]));
            prop_assert!(!is_one(&roll, &["dana", "noor@x.example"]));
            let dana = OperatorId::from("on_1");
            prop_assert_eq!(roll.person(&dana), &OperatorId::from("dana"));
            let voter = roll.voter(&dana).expect("she has an entry");
            prop_assert!(voter.roles.contains(&"platform".to_owned()));
            prop_assert_eq!(roll.voters().filter(|voter| roll.is_same(&voter.id, &dana)).count(), 1);
            let (org, at) = (Org::from(ORG), gatepost_channel::UtcMillis(0));
            prop_assert!(!roll.may_decide(&dana, &org, &terms(1), at), "a look-up failed");
            let hopeful = roll.hopeful().expect("a look-up failed");
            prop_assert!(hopeful.may_decide(&dana, &org, &terms(1), at));
        }
    }
}
