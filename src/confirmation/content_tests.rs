//! Answers with content: reasons that a rule asks for, and stages.

use gatepost_channel::Decision::{self, Approve, Reject};
use proptest::prelude::*;

use super::consume::{Consume, NotGranted};
use super::decide::{Ballot, Decide, Refusal, Ruling, Surface, Target};
use super::fixture::{ORG, World, terms};
use super::roll::{Roll, Voter};
use super::{Status, stage};
use crate::audit::Opening;
use crate::gate::decision::{everybody, persons_needed};
use crate::gate::policy::Approvers;
use crate::gate::{RequireReason, Stage, Terms};
use crate::ids::{ConfirmationId, OperatorId, Org, PermitId, TokenName};

fn status(world: &World, id: &ConfirmationId) -> Status {
    world.row(id).confirmation.state.status()
}

fn answer(
    world: &mut World,
    id: &ConfirmationId,
    person: &str,
    decision: Decision,
    reason: Option<&str>,
) -> Ruling {
    let reason = reason.map(|reason| Opening::new(reason, &world.ids));
    let press = world.press(id, 0, Ballot::Person(OperatorId::from(person)), decision);
    world.memory.run(&Decide { reason, ..press }).ruling
}

fn consume(world: &World, id: &ConfirmationId) -> Consume {
    Consume {
        id: id.clone(),
        token: TokenName::from("agent"),
        digest: world.row(id).confirmation.asked.digest,
        judged: world.row(id).confirmation.call().digest,
        permit: PermitId::fresh(&world.ids),
        roll: std::sync::Arc::clone(&world.roll),
        denied_by: None,
        grant: None,
        offered: None,
    }
}

#[test]
fn an_answer_without_the_reason_that_the_rule_asks_for_changes_nothing() {
    use RequireReason::{Both, Never};
    for (needs, decision, reason, counts) in [
        (Never, Approve, None, true),
        (Never, Reject, None, true),
        (RequireReason::Reject, Approve, None, true),
        (RequireReason::Reject, Reject, None, false),
        (RequireReason::Reject, Reject, Some("wrong account"), true),
        (RequireReason::Approve, Approve, None, false),
        (RequireReason::Approve, Reject, None, true),
        (Both, Approve, Some("\u{200B} …"), false),
        (Both, Approve, Some("已核对"), true),
        (Both, Reject, None, false),
    ] {
        for surface in Surface::ALL {
            let mut world = World::default();
            let mut strict = terms(1);
            strict.decision.require_reason = needs;
            let id = world.asked(strict, &[]);
            let mut decide = world.press(&id, 0, Ballot::Person(OperatorId::from("dana")), decision);
            decide.reason = reason.map(|reason| Opening::new(reason, &world.ids));
            decide.surface = surface;
            if !matches!(surface, Surface::Card | Surface::FullView) {
                decide.target = Target::Request {
                    id: id.clone(),
                    org: Org::from(ORG),
                };
            }
            let ruling = world.memory.run(&decide).ruling;
            let at = format!("{needs:?} {decision:?} {reason:?} {surface:?}");
            if counts {
                assert_eq!(ruling, Ruling::Settled, "{at}");
            } else {
                assert_eq!(ruling, Ruling::Refused(Refusal::ReasonRequired), "{at}");
                assert_eq!(world.last_refusal().as_deref(), Some("reason_required"), "{at}");
                assert!(world.row(&id).votes.is_empty(), "{at}");
                assert_eq!(status(&world, &id), Status::Pending, "{at}");
            }
        }
    }
}

#[test]
fn who_may_not_decide_is_not_asked_for_a_reason() {
    let mut world = World::default();
    let mut strict = terms(1);
    strict.decision.require_reason = RequireReason::Both;
    let id = world.asked(strict, &["dana"]);
    for (person, expected) in [("ines", Refusal::NotAuthorised), ("dana", Refusal::SelfApproval)] {
        assert_eq!(
            answer(&mut world, &id, person, Approve, None),
            Ruling::Refused(expected)
        );
    }
}

fn staged(stages: Vec<Stage>) -> Terms {
    let mut terms = terms(1);
    terms.approvers = everybody(&stages);
    terms.quorum = persons_needed(&stages);
    terms.decision.stages = stages;
    terms
}

fn of(name: &str, operators: &[&str], quorum: u32) -> Stage {
    Stage {
        name: name.into(),
        approvers: Approvers {
            roles: vec![],
            operators: operators.iter().map(|id| (*id).to_owned()).collect(),
            ..Approvers::default()
        },
        quorum,
    }
}

/// Finance first (two of three), then the director.
fn finance_then_director() -> Terms {
    staged(vec![
        of("finance", &["dana", "mira", "tomas"], 2),
        of("director", &["ines", "dana"], 1),
    ])
}

#[test]
fn stages_are_asked_one_after_the_other_and_old_buttons_cast_no_vote() {
    let mut world = World::default();
    let id = world.asked(finance_then_director(), &[]);
    let before = world.press(&id, 1, Ballot::Person(OperatorId::from("ines")), Approve);
    assert_eq!(
        answer(&mut world, &id, "ines", Approve, None),
        Ruling::Refused(Refusal::NotThisStage),
        "nobody votes early"
    );
    assert_eq!(answer(&mut world, &id, "dana", Approve, None), Ruling::Counted);
    let revision = world.row(&id).confirmation.revision;
    assert_eq!(answer(&mut world, &id, "mira", Approve, None), Ruling::Counted);
    let row = &world.row(&id).confirmation;
    assert_eq!((row.progress.stage, row.revision), (1, revision + 1));
    assert_eq!(
        world.memory.run(&before).ruling,
        Ruling::Refused(Refusal::OutdatedCard),
        "what was on the screen was for others"
    );
    for (person, expected) in [
        ("dana", Refusal::AlreadyVoted),
        ("mira", Refusal::AlreadyVoted),
        ("tomas", Refusal::NotThisStage),
    ] {
        assert_eq!(
            answer(&mut world, &id, person, Approve, None),
            Ruling::Refused(expected),
            "{person}"
        );
    }
    assert_eq!(answer(&mut world, &id, "ines", Approve, None), Ruling::Settled);
    assert_eq!(status(&world, &id), Status::Approved);
    assert_eq!(
        world
            .memory
            .kinds()
            .iter()
            .filter(|kind| **kind == "stage.passed")
            .count(),
        1
    );
    let consumed = consume(&world, &id);
    assert!(world.memory.run(&consumed).is_ok());
}

#[test]
fn a_rejection_settles_in_any_stage() {
    for passed in [false, true] {
        let mut world = World::default();
        let id = world.asked(finance_then_director(), &[]);
        if passed {
            answer(&mut world, &id, "tomas", Approve, None);
            answer(&mut world, &id, "mira", Approve, None);
        }
        let person = if passed { "ines" } else { "dana" };
        assert_eq!(answer(&mut world, &id, person, Reject, None), Ruling::Settled);
        assert_eq!(status(&world, &id), Status::Rejected);
    }
    let mut vetoes = finance_then_director();
    vetoes.deny_threshold = 2;
    let mut world = World::default();
    let id = world.asked(vetoes, &[]);
    assert_eq!(answer(&mut world, &id, "tomas", Reject, None), Ruling::Counted);
    answer(&mut world, &id, "dana", Approve, None);
    answer(&mut world, &id, "mira", Approve, None);
    assert_eq!(
        answer(&mut world, &id, "ines", Reject, None),
        Ruling::Settled,
        "a veto of an earlier stage stands"
    );
}

#[test]
fn consuming_asks_every_stage_again() {
    let mut world = World::default();
    let id = world.asked(finance_then_director(), &[]);
    for person in ["dana", "mira", "ines"] {
        answer(&mut world, &id, person, Approve, None);
    }
    let voter = |id: &str| Voter {
        id: OperatorId::from(id),
        name: id.into(),
        orgs: vec![Org::from(ORG)],
        roles: vec![],
    };
    // Mira left. The votes of the others are three again with Tomas, who never voted.
    let left = Consume {
        roll: std::sync::Arc::new(Roll::new(["dana", "tomas", "ines"].map(voter))),
        ..consume(&world, &id)
    };
    assert_eq!(world.memory.run(&left), Err(NotGranted::NotAuthorised));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whoever answers in whatever order: an approval stands on the quorum of each stage, cast in that stage by its own people,
    /// and nobody stands in two.
    #[test]
    fn every_order_of_answers_keeps_the_stages(
        quorums in prop::collection::vec(1_u32..3, 1..4),
        members in prop::collection::vec(prop::sample::subsequence(vec!["dana", "mira", "tomas", "ines"], 1..4), 3),
        answers in prop::collection::vec((prop::sample::select(vec!["dana", "mira", "tomas", "ines", "nobody"]), prop::bool::weighted(0.9)), 1..24),
    ) {
        let stages: Vec<_> = quorums
            .iter()
            .zip(&members)
            .enumerate()
            .map(|(at, (quorum, members))| of(&format!("s{at}"), members, *quorum))
            .collect();
        let terms = staged(stages.clone());
        let mut world = World::default();
        let id = world.asked(terms.clone(), &[]);
        for (person, approves) in answers {
            let before = world.row(&id).confirmation.clone();
            let decision = if approves { Approve } else { Reject };
            answer(&mut world, &id, person, decision, None);
            let after = &world.row(&id).confirmation;
            prop_assert!(after.progress.stage >= before.progress.stage && after.revision >= before.revision);
            prop_assert_eq!(after.progress.stage > before.progress.stage || after.state != before.state, after.revision > before.revision);
        }
        let row = world.row(&id);
        let mut persons: Vec<_> = row.votes.iter().map(|vote| vote.person.clone()).collect();
        persons.sort();
        persons.dedup();
        prop_assert_eq!(persons.len(), row.votes.len());
        for vote in &row.votes {
            let stage = &stages[usize::try_from(vote.content.stage).unwrap()];
            prop_assert!(stage.approvers.operators.contains(&vote.person.0), "everybody votes in a stage of theirs");
        }
        let full = stage::each(&terms).all(|stage| stage.approvals(&row.votes) >= usize::try_from(stage.quorum).unwrap());
        prop_assert_eq!(status(&world, &id) == Status::Approved, full && row.votes.iter().all(|vote| vote.decision == Approve));
        world.memory.assert_chains_hold();
    }
}
