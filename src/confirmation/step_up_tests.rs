//! Step-up: what an armed approval is worth, what completes it, and that nothing shorter does.

use std::sync::Arc;
use std::time::Duration;

use gatepost_channel::Decision::{self, Approve, Reject};
use gatepost_channel::UtcMillis;
use proptest::prelude::*;

use super::consume::{Consume, NotGranted};
use super::decide::{Backing, Ballot, Decide, Refusal, Ruling, Surface, Target};
use super::fixture::{ORG, World, terms};
use super::grant::Wish;
use super::roll::{Roll, Voter};
use super::step_up::{ARMED_FOR, Waiting};
use super::{Status, proof};
use crate::audit::Opening;
use crate::gate::authority::StepUp;
use crate::gate::code::{CodeKey, STEP_MS};
use crate::gate::grant::{GrantArguments, GrantScope, GrantTerms};
use crate::gate::{RequireReason, Terms};
use crate::ids::{ConfirmationId, GrantId, OperatorId, Org, PermitId, TokenName};

const CODE: StepUp = StepUp {
    code: true,
    second_person: false,
};
const SECOND: StepUp = StepUp {
    code: false,
    second_person: true,
};
const BOTH: StepUp = StepUp {
    code: true,
    second_person: true,
};

fn key(person: &str) -> CodeKey {
    let letter = person.to_uppercase().chars().next().expect("a name");
    CodeKey::from_base32(&letter.to_string().repeat(32)).expect("a secret")
}

/// Everybody of finance has a code, but kai.
fn world() -> World {
    let voter = |id: &str| Voter {
        id: OperatorId::from(id),
        name: id.to_uppercase(),
        orgs: vec![Org::from(ORG)],
        roles: vec!["finance".into()],
    };
    let mut world = World::default();
    let coded = ["dana", "mira", "tomas"].map(|id| (OperatorId::from(id), key(id)));
    world.roll = Arc::new(Roll::new(["dana", "mira", "tomas", "kai"].map(voter)).with_codes(coded));
    // Far enough from 1970 for steps before it.
    world.memory.now = UtcMillis(1_800_000_000_000);
    world
}

fn asking(step_up: StepUp, quorum: u32) -> Terms {
    let mut terms = terms(quorum);
    terms.decision.step_up = step_up;
    terms.timeout_ms = 3_600_000;
    terms
}

fn press(world: &mut World, id: &ConfirmationId, person: &str, decision: Decision) -> Ruling {
    world.click(id, 0, person, decision).ruling
}

/// An answer where a code can be given.
fn typed(world: &mut World, id: &ConfirmationId, person: &str, code: Option<&str>) -> Ruling {
    let decide = Decide {
        target: Target::Request {
            id: id.clone(),
            org: Org::from(ORG),
        },
        surface: Surface::Api,
        backing: Backing {
            code: code.map(str::to_owned),
            glass: None,
        },
        ..world.press(id, 0, Ballot::Person(OperatorId::from(person)), Approve)
    };
    world.memory.run(&decide).ruling
}

fn with_code(world: &mut World, id: &ConfirmationId, person: &str) -> Ruling {
    let code = key(person).shown_at(world.memory.now);
    typed(world, id, person, Some(&code))
}

fn consume(world: &World, id: &ConfirmationId) -> Consume {
    Consume {
        id: id.clone(),
        token: TokenName::from("agent"),
        digest: world.row(id).confirmation.asked.digest,
        judged: world.row(id).confirmation.call().digest,
        permit: PermitId::fresh(&world.ids),
        roll: Arc::clone(&world.roll),
        denied_by: None,
        grant: None,
        offered: None,
    }
}

fn refused(refusal: Refusal) -> Ruling {
    Ruling::Refused(refusal)
}

#[test]
fn a_press_arms_and_the_code_completes_it() {
    let mut world = world();
    let id = world.asked(asking(CODE, 1), &[]);
    assert_eq!(
        press(&mut world, &id, "dana", Approve),
        Ruling::Armed(Waiting::Code)
    );
    let row = world.row(&id);
    assert!(row.votes.is_empty(), "it counts nothing");
    assert_eq!(row.confirmation.progress.armed[0].person.as_str(), "dana");
    assert_eq!(
        press(&mut world, &id, "dana", Approve),
        refused(Refusal::AlreadyArmed)
    );
    assert_eq!(
        typed(&mut world, &id, "dana", None),
        refused(Refusal::CodeRequired)
    );
    assert_eq!(with_code(&mut world, &id, "dana"), Ruling::Settled);
    let row = world.row(&id);
    assert!(row.votes[0].content.code && row.confirmation.progress.armed.is_empty());
    assert_eq!(
        world.memory.kinds(),
        [
            "confirmation.created",
            "vote.armed",
            "callback.refused",
            "vote.refused",
            "vote.cast",
            "confirmation.approved"
        ]
    );
    let request = consume(&world, &id);
    assert!(world.memory.run(&request).is_ok());
    world.memory.assert_chains_hold();
}

#[test]
fn a_code_may_come_without_a_press_and_a_rejection_takes_none() {
    let mut world = world();
    let id = world.asked(asking(CODE, 1), &[]);
    assert_eq!(with_code(&mut world, &id, "dana"), Ruling::Settled);
    let id = world.asked(asking(BOTH, 2), &[]);
    assert_eq!(
        press(&mut world, &id, "dana", Approve),
        Ruling::Armed(Waiting::Code)
    );
    assert_eq!(
        press(&mut world, &id, "dana", Reject),
        Ruling::Settled,
        "who has armed may think again"
    );
    assert_eq!(world.row(&id).confirmation.state.status(), Status::Rejected);
    let id = world.asked(asking(CODE, 1), &[]);
    assert_eq!(
        press(&mut world, &id, "kai", Reject),
        Ruling::Settled,
        "also who has no code"
    );
}

#[test]
fn who_has_no_code_is_told_so() {
    let mut world = world();
    let id = world.asked(asking(CODE, 1), &[]);
    assert_eq!(
        press(&mut world, &id, "kai", Approve),
        refused(Refusal::CodeNotSetUp)
    );
    assert_eq!(
        typed(&mut world, &id, "kai", Some("000000")),
        refused(Refusal::CodeNotSetUp)
    );
    assert!(world.row(&id).confirmation.progress.armed.is_empty());
}

#[test]
fn an_armed_approval_lapses_by_the_clock_of_the_store() {
    let armed_for = i64::try_from(ARMED_FOR.as_millis()).expect("short");
    for (after, waits) in [(armed_for - 1, true), (armed_for, false)] {
        let mut world = world();
        let id = world.asked(asking(SECOND, 1), &[]);
        assert_eq!(
            press(&mut world, &id, "dana", Approve),
            Ruling::Armed(Waiting::SecondPerson)
        );
        world.memory.now.0 += after;
        let expected = if waits {
            Ruling::Settled
        } else {
            Ruling::Armed(Waiting::SecondPerson)
        };
        assert_eq!(press(&mut world, &id, "mira", Approve), expected, "{after}");
        assert_eq!(world.memory.kinds().contains(&"vote.lapsed"), !waits);
        let armed = &world.row(&id).confirmation.progress.armed;
        let armed: Vec<&str> = armed.iter().map(|arm| arm.person.as_str()).collect();
        assert_eq!(armed, if waits { vec![] } else { vec!["mira"] });
    }
}

#[test]
fn a_code_counts_once_and_wrong_ones_are_bounded() {
    let mut world = world();
    let (one, two) = (
        world.asked(asking(CODE, 1), &[]),
        world.asked(asking(CODE, 1), &[]),
    );
    let code = key("dana").shown_at(world.memory.now);
    assert_eq!(typed(&mut world, &one, "dana", Some(&code)), Ruling::Settled);
    assert_eq!(
        typed(&mut world, &two, "dana", Some(&code)),
        refused(Refusal::WrongCode),
        "used before"
    );
    // Another person's code is none of dana's.
    let theirs = key("mira").shown_at(world.memory.now);
    assert_eq!(
        typed(&mut world, &two, "dana", Some(&theirs)),
        refused(Refusal::WrongCode)
    );
    for _ in 2..proof::TRIES {
        assert_eq!(
            typed(&mut world, &two, "dana", Some("12345")),
            refused(Refusal::WrongCode)
        );
    }
    world.memory.now.0 += STEP_MS;
    assert_eq!(
        with_code(&mut world, &two, "dana"),
        refused(Refusal::TooManyCodes),
        "even the right one"
    );
    assert_eq!(
        with_code(&mut world, &two, "mira"),
        Ruling::Settled,
        "others are not held up"
    );
    let three = world.asked(asking(CODE, 1), &[]);
    world.memory.now.0 += i64::try_from(proof::WINDOW.as_millis()).expect("short");
    assert_eq!(with_code(&mut world, &three, "dana"), Ruling::Settled);
}

#[test]
fn a_second_person_of_another_place_confirms() {
    let mut world = world();
    let id = world.asked(asking(SECOND, 1), &["tomas"]);
    assert_eq!(
        press(&mut world, &id, "dana", Approve),
        Ruling::Armed(Waiting::SecondPerson)
    );
    assert_eq!(
        press(&mut world, &id, "dana", Approve),
        refused(Refusal::AlreadyArmed)
    );
    assert_eq!(
        press(&mut world, &id, "tomas", Approve),
        refused(Refusal::SelfApproval)
    );
    assert_eq!(press(&mut world, &id, "mira", Approve), Ruling::Settled);
    let votes = &world.row(&id).votes;
    assert_eq!(votes.len(), 1);
    assert_eq!(votes[0].person.as_str(), "dana");
    assert_eq!(
        votes[0]
            .content
            .second
            .as_ref()
            .map(|second| second.person.as_str()),
        Some("mira")
    );
    assert!(world.memory.kinds().contains(&"vote.confirmed"));
    let request = consume(&world, &id);
    assert!(world.memory.run(&request).is_ok());
}

#[test]
fn with_a_quorum_each_approval_is_confirmed_and_two_may_confirm_each_other() {
    let mut world = world();
    let id = world.asked(asking(SECOND, 2), &[]);
    assert_eq!(
        press(&mut world, &id, "dana", Approve),
        Ruling::Armed(Waiting::SecondPerson)
    );
    assert_eq!(press(&mut world, &id, "mira", Approve), Ruling::Counted);
    assert_eq!(
        press(&mut world, &id, "dana", Approve),
        refused(Refusal::AlreadyVoted),
        "nobody waits for her"
    );
    assert_eq!(
        press(&mut world, &id, "mira", Approve),
        Ruling::Armed(Waiting::SecondPerson)
    );
    assert_eq!(press(&mut world, &id, "dana", Approve), Ruling::Settled);
    let request = consume(&world, &id);
    assert!(world.memory.run(&request).is_ok());
}

#[test]
fn both_take_the_code_of_both() {
    let mut world = world();
    let id = world.asked(asking(BOTH, 1), &[]);
    assert_eq!(
        press(&mut world, &id, "dana", Approve),
        Ruling::Armed(Waiting::Code)
    );
    assert_eq!(
        press(&mut world, &id, "mira", Approve),
        Ruling::Armed(Waiting::Code),
        "dana lacks her code"
    );
    assert_eq!(
        with_code(&mut world, &id, "dana"),
        Ruling::Armed(Waiting::SecondPerson)
    );
    assert_eq!(
        press(&mut world, &id, "mira", Approve),
        refused(Refusal::AlreadyArmed)
    );
    assert_eq!(with_code(&mut world, &id, "mira"), Ruling::Settled);
    let second = world.row(&id).votes[0].content.second.clone().expect("confirmed");
    assert!(second.code && second.person.as_str() == "mira");
}

#[test]
fn what_backs_a_vote_is_asked_again_when_the_call_runs() {
    // The second person is no operator any more.
    let mut first = world();
    let id = first.asked(asking(SECOND, 1), &[]);
    press(&mut first, &id, "dana", Approve);
    assert_eq!(press(&mut first, &id, "mira", Approve), Ruling::Settled);
    let left = ["dana", "tomas"].map(|id| Voter {
        id: OperatorId::from(id),
        name: id.into(),
        orgs: vec![Org::from(ORG)],
        roles: vec!["finance".into()],
    });
    first.roll = Arc::new(Roll::new(left));
    let request = consume(&first, &id);
    assert_eq!(first.memory.run(&request), Err(NotGranted::NotAuthorised));
    // A vote without what the rule asks for backs nothing, however it came into the store.
    for (step, content) in [
        (CODE, super::VoteContent::default()),
        (SECOND, super::VoteContent::default()),
    ] {
        let mut other = world();
        let id = other.asked(asking(step, 1), &[]);
        if step.code {
            assert_eq!(with_code(&mut other, &id, "dana"), Ruling::Settled);
        } else {
            press(&mut other, &id, "dana", Approve);
            assert_eq!(press(&mut other, &id, "mira", Approve), Ruling::Settled);
        }
        other.memory.dossiers.get_mut(&id).expect("stored").votes[0].content = content;
        let request = consume(&other, &id);
        assert_eq!(other.memory.run(&request), Err(NotGranted::NotAuthorised));
    }
}

#[test]
fn a_reason_may_come_with_either_act() {
    let reason = |world: &World| Opening::new("checked", &world.ids);
    let mut terms = asking(CODE, 1);
    terms.decision.require_reason = RequireReason::Approve;
    let mut world = world();
    let id = world.asked(terms.clone(), &[]);
    assert_eq!(
        press(&mut world, &id, "dana", Approve),
        refused(Refusal::ReasonRequired)
    );
    let said = Decide {
        reason: Some(reason(&world)),
        ..world.press(&id, 0, Ballot::Person(OperatorId::from("dana")), Approve)
    };
    assert_eq!(world.memory.run(&said).ruling, Ruling::Armed(Waiting::Code));
    assert_eq!(with_code(&mut world, &id, "dana"), Ruling::Settled);
    assert_eq!(world.row(&id).votes[0].reason.as_deref(), Some("checked"));
    world.memory.assert_chains_hold();
}

/// A grant is asked for with the press; where the code is given there is nothing to press.
#[test]
fn a_grant_that_is_asked_for_with_the_press_is_made_when_the_approval_counts() {
    let wishing = |world: &mut World, id: &ConfirmationId, person: &str| {
        let decide = Decide {
            grant: Some(Wish {
                scope: "1h".to_owned(),
                id: GrantId::fresh(&world.ids),
            }),
            ..world.press(id, 0, Ballot::Person(OperatorId::from(person)), Approve)
        };
        world.memory.run(&decide).ruling
    };
    let granted = |world: &World, id: &ConfirmationId| {
        let granted = world.row(id).confirmation.progress.granted.clone();
        granted.map(|id| world.memory.grants[&id].scope)
    };
    let hour = GrantScope::Span(3_600_000);
    let offering = |step_up| {
        let mut terms = asking(step_up, 1);
        terms.decision.grants = Some(GrantTerms {
            scopes: vec![hour],
            max_uses: None,
            arguments: GrantArguments::Same,
        });
        terms
    };
    let mut alone = world();
    let id = alone.asked(offering(CODE), &[]);
    assert_eq!(wishing(&mut alone, &id, "dana"), Ruling::Armed(Waiting::Code));
    assert_eq!(with_code(&mut alone, &id, "dana"), Ruling::Settled);
    assert_eq!(granted(&alone, &id), Some(hour));
    // Of two people, both have to ask for it.
    for both in [true, false] {
        let mut world = world();
        let id = world.asked(offering(BOTH), &[]);
        assert_eq!(wishing(&mut world, &id, "dana"), Ruling::Armed(Waiting::Code));
        assert_eq!(
            with_code(&mut world, &id, "dana"),
            Ruling::Armed(Waiting::SecondPerson)
        );
        let pressed = if both {
            wishing(&mut world, &id, "mira")
        } else {
            press(&mut world, &id, "mira", Approve)
        };
        assert_eq!(pressed, Ruling::Armed(Waiting::Code));
        assert_eq!(with_code(&mut world, &id, "mira"), Ruling::Settled);
        assert_eq!(granted(&world, &id), both.then_some(hour));
        world.memory.assert_chains_hold();
    }
}

/// One thing that happens to a request.
#[derive(Debug, Clone)]
enum Act {
    Press(usize, bool),
    Code(usize, bool),
    Wait(i64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..4_usize, prop::bool::weighted(0.9)).prop_map(|(person, yes)| Act::Press(person, yes)),
        (0..4_usize, prop::bool::weighted(0.8)).prop_map(|(person, right)| Act::Code(person, right)),
        (1..400_000_i64).prop_map(Act::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    /// In whatever order people arm, complete, reject and wait: an approval has its quorum, each vote of it what the rule asks
    /// for, nothing that lapsed counts, and the call that was approved may run.
    #[test]
    fn every_order_of_acts_keeps_the_rule(
        acts in proptest::collection::vec(act(), 1..14),
        (code, second_person) in any::<(bool, bool)>(),
        quorum in 1..3_u32,
    ) {
        let names = ["dana", "mira", "tomas", "kai"];
        let step = StepUp { code, second_person };
        let mut world = world();
        let id = world.asked(asking(step, quorum), &["tomas"]);
        let mut codes = std::collections::BTreeSet::new();
        for act in acts {
            let before = world.row(&id).clone();
            let ruling = match act {
                Act::Press(person, yes) => press(&mut world, &id, names[person], if yes { Approve } else { Reject }),
                Act::Code(person, right) => {
                    let at = world.memory.now;
                    let code = if right { key(names[person]).shown_at(at) } else { "x".to_owned() };
                    let fresh = codes.insert((person, at.0 / STEP_MS));
                    let ruling = typed(&mut world, &id, names[person], Some(&code));
                    let good = matches!(ruling, Ruling::Counted | Ruling::Settled | Ruling::Armed(_));
                    prop_assert!(!step.code || !good || (right && fresh), "a code that proves nothing was taken");
                    if !good || !right {
                        codes.remove(&(person, at.0 / STEP_MS));
                    }
                    ruling
                }
                Act::Wait(ms) => {
                    world.memory.now = world.memory.now.plus(Duration::from_millis(ms.unsigned_abs()));
                    continue;
                }
            };
            let after = world.row(&id);
            if matches!(ruling, Ruling::Refused(_) | Ruling::Armed(_)) {
                prop_assert_eq!(after.votes.len(), before.votes.len());
            }
            let people: Vec<_> = after.confirmation.progress.armed.iter().map(|arm| &arm.person).collect();
            let distinct: std::collections::BTreeSet<_> = people.iter().collect();
            prop_assert_eq!(distinct.len(), people.len(), "one armed approval each");
        }
        let dossier = world.row(&id).clone();
        for vote in dossier.votes.iter().filter(|vote| vote.decision == Approve) {
            prop_assert!(vote.person.as_str() != "tomas");
            prop_assert!(!code || (vote.content.code && vote.person.as_str() != "kai"));
            if second_person {
                let second = vote.content.second.as_ref().expect("a second person");
                prop_assert!(second.person != vote.person && second.person.as_str() != "tomas");
                prop_assert!(!code || second.code);
            }
        }
        if dossier.confirmation.state.status() == Status::Approved {
            let approvals = dossier.votes.iter().filter(|vote| vote.decision == Approve).count();
            prop_assert_eq!(approvals, usize::try_from(quorum).expect("small"));
            prop_assert!(dossier.confirmation.progress.armed.is_empty());
            let request = consume(&world, &id);
            prop_assert!(world.memory.run(&request).is_ok());
        }
        world.memory.assert_chains_hold();
    }
}
