//! Substitutes and people on call: who may answer at the moment of the click, and what the votes of a place are worth.

use std::sync::Arc;

use gatepost_channel::Decision::{Approve, Reject};
use gatepost_channel::UtcMillis;
use proptest::prelude::*;

use super::Status;
use super::consume::{Consume, NotGranted};
use super::decide::{Refusal, Ruling};
use super::fixture::{ORG, World, terms};
use super::roll::{Roll, Voter};
use crate::gate::Terms;
use crate::gate::duty::{Absence, Absences, Rota, Rotation, Shift};
use crate::gate::policy::Approvers;
use crate::ids::{ConfirmationId, OperatorId, Org, PermitId, TokenName};

/// When the clock of a world starts.
const START: i64 = 1_000_000;

fn voter(id: &str, roles: &[&str], org: &str) -> Voter {
    Voter {
        id: OperatorId::from(id),
        name: id.to_uppercase(),
        orgs: vec![Org::from(org)],
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
    }
}

fn people() -> Roll {
    Roll::new([
        voter("dana", &["finance"], ORG),
        voter("mira", &["finance"], ORG),
        voter("tomas", &["finance"], ORG),
        voter("ines", &["sales"], ORG),
        voter("kai", &["sales"], ORG),
        voter("rival", &["finance"], "rival"),
    ])
}

/// These people, of whom the first of each pair is away in this span and the second stands in.
fn away(pairs: &[(&str, &str)], from: i64, until: i64) -> Roll {
    let absences = pairs.iter().map(|(absent, substitute)| {
        let span = Absence {
            from: UtcMillis(from),
            until: UtcMillis(until),
            substitute: (*substitute).to_owned(),
        };
        ((*absent).to_owned(), vec![span])
    });
    people().with_absences(Absences::new(absences))
}

fn world(roll: Roll) -> World {
    let mut world = World::default();
    world.roll = Arc::new(roll);
    world
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
fn a_substitute_answers_from_the_first_instant_of_the_absence_to_the_last() {
    for (from, until, expected) in [
        (START, START + 1, Ruling::Settled),
        (START - 5, START + 5, Ruling::Settled),
        (START + 1, START + 9, refused(Refusal::NotAuthorised)),
        (START - 9, START, refused(Refusal::NotAuthorised)),
    ] {
        let mut world = world(away(&[("dana", "ines")], from, until));
        let id = world.asked(terms(1), &[]);
        assert_eq!(
            world.click(&id, 0, "ines", Approve).ruling,
            expected,
            "{from}..{until}"
        );
        if expected == Ruling::Settled {
            let vote = &world.row(&id).votes[0];
            assert_eq!(vote.content.acting_for, Some(OperatorId::from("dana")));
            let event = &world.memory.events[1];
            assert_eq!(event.kind, "vote.cast");
            assert!(event.data.contains(r#""acting_for":"dana""#), "{}", event.data);
            // The absence has passed by the time the call runs; the vote was rightful when it was cast.
            world.memory.now.0 += 60_000;
            let request = consume(&world, &id);
            assert!(world.memory.run(&request).is_ok());
        }
        world.memory.assert_chains_hold();
    }
}

#[test]
fn a_vote_in_somebodys_place_is_checked_again_when_the_call_runs() {
    let set_up = || {
        let mut world = world(away(&[("dana", "ines")], START, START + 10));
        let id = world.asked(terms(1), &[]);
        assert_eq!(world.click(&id, 0, "ines", Approve).ruling, Ruling::Settled);
        (world, id)
    };
    let without = |gone: &str| {
        let left = ["dana", "ines"].into_iter().filter(|id| *id != gone);
        let roles = |id: &str| if id == "dana" { vec!["finance"] } else { vec![] };
        let span = Absence {
            from: UtcMillis(START),
            until: UtcMillis(START + 10),
            substitute: "ines".into(),
        };
        Roll::new(left.map(|id| voter(id, &roles(id), ORG)))
            .with_absences(Absences::new([("dana".to_owned(), vec![span])]))
    };
    for (roll, why) in [
        (without("ines"), "the substitute is no operator any more"),
        (without("dana"), "the absent person is none any more"),
        (people(), "the absence was taken back as if it had never been"),
        (
            away(&[("dana", "kai")], START, START + 10),
            "somebody else stood in",
        ),
    ] {
        let (mut world, id) = set_up();
        world.roll = Arc::new(roll);
        let request = consume(&world, &id);
        assert_eq!(
            world.memory.run(&request),
            Err(NotGranted::NotAuthorised),
            "{why}"
        );
    }
}

#[test]
fn one_person_counts_once_and_so_does_one_place() {
    // Ines stands in for both, and is one person.
    let mut one = world(away(&[("dana", "ines"), ("mira", "ines")], START, START + 1_000));
    let id = one.asked(terms(2), &[]);
    assert_eq!(one.click(&id, 0, "ines", Approve).ruling, Ruling::Counted);
    assert_eq!(
        one.click(&id, 1, "ines", Approve).ruling,
        refused(Refusal::AlreadyVoted)
    );
    // Dana's place is taken; whoever else has one makes the quorum.
    assert_eq!(
        one.click(&id, 0, "dana", Approve).ruling,
        refused(Refusal::AlreadyRepresented)
    );
    assert_eq!(one.row(&id).confirmation.state.status(), Status::Pending);
    assert_eq!(one.click(&id, 0, "tomas", Approve).ruling, Ruling::Settled);
    let request = consume(&one, &id);
    assert!(one.memory.run(&request).is_ok());

    // The other way round: dana answered herself, so ines is left the place of mira.
    let mut two = world(away(&[("dana", "ines"), ("mira", "ines")], START, START + 1_000));
    let id = two.asked(terms(2), &[]);
    assert_eq!(two.click(&id, 0, "dana", Approve).ruling, Ruling::Counted);
    assert_eq!(two.click(&id, 0, "ines", Approve).ruling, Ruling::Settled);
    let seats: Vec<_> = two
        .row(&id)
        .votes
        .iter()
        .map(|vote| vote.seat().as_str().to_owned())
        .collect();
    assert_eq!(seats, ["dana", "mira"]);
}

#[test]
fn who_has_a_right_of_their_own_uses_that_one() {
    let mut world = world(away(&[("dana", "mira")], START, START + 1_000));
    let id = world.asked(terms(2), &[]);
    assert_eq!(world.click(&id, 0, "mira", Approve).ruling, Ruling::Counted);
    assert_eq!(world.row(&id).votes[0].content.acting_for, None);
    assert_eq!(world.click(&id, 0, "dana", Approve).ruling, Ruling::Settled);
}

#[test]
fn nobody_approves_their_own_request_through_somebody_else() {
    for (pairs, persons, person) in [
        // The substitute stands behind the call.
        (&[("dana", "ines")][..], &["ines"][..], "ines"),
        // The absent person does.
        (&[("dana", "ines")], &["dana"], "ines"),
        // Whom the absent person had named does, and named somebody else in turn.
        (&[("dana", "kai"), ("kai", "ines")], &["kai"], "ines"),
    ] {
        let mut strict = world(away(pairs, START, START + 1_000));
        let id = strict.asked(terms(1), persons);
        assert_eq!(
            strict.click(&id, 0, person, Approve).ruling,
            refused(Refusal::SelfApproval),
            "{pairs:?} {persons:?}"
        );
        assert_eq!(
            strict.click(&id, 0, person, Reject).ruling,
            Ruling::Settled,
            "to refuse is free"
        );

        let mut mild = world(away(pairs, START, START + 1_000));
        let mut own = terms(1);
        own.self_approval = true;
        let id = mild.asked(own, persons);
        assert_eq!(mild.click(&id, 0, person, Approve).ruling, Ruling::Settled);
    }
    // Who stands in for two, of whom one is behind the call, acts for the other.
    let mut other = world(away(&[("dana", "ines"), ("mira", "ines")], START, START + 1_000));
    let id = other.asked(terms(1), &["dana"]);
    assert_eq!(other.click(&id, 0, "ines", Approve).ruling, Ruling::Settled);
    assert_eq!(other.row(&id).votes[0].seat().as_str(), "mira");
}

#[test]
fn a_substitute_may_what_the_absent_may_and_no_more() {
    let among = |id: &str| Approvers {
        operators: vec![id.to_owned()],
        ..Approvers::default()
    };
    let finance_and = |id: &str| Terms {
        also: vec![among(id)],
        ..terms(1)
    };
    // Both lists must mean the absent person: one of them meaning the substitute is not enough.
    for (terms, expected) in [
        (finance_and("dana"), Ruling::Settled),
        (finance_and("ines"), refused(Refusal::NotAuthorised)),
        (finance_and("mira"), refused(Refusal::NotAuthorised)),
    ] {
        let mut world = world(away(&[("dana", "ines")], START, START + 1_000));
        let id = world.asked(terms, &[]);
        assert_eq!(world.click(&id, 0, "ines", Approve).ruling, expected);
    }
    // Nobody acts across organisations.
    let mut foreign = world(away(
        &[("rival", "ines"), ("dana", "rival")],
        START,
        START + 1_000,
    ));
    let id = foreign.asked(terms(1), &[]);
    for person in ["ines", "rival"] {
        assert_eq!(
            foreign.click(&id, 0, person, Approve).ruling,
            refused(Refusal::NotAuthorised),
            "{person}"
        );
    }
    // Two steps, and no third.
    let chain = [("dana", "kai"), ("kai", "ines"), ("ines", "guest")];
    let mut far = world(away(&chain, START, START + 1_000));
    let id = far.asked(terms(1), &[]);
    assert_eq!(
        far.click(&id, 0, "guest", Approve).ruling,
        refused(Refusal::NotAuthorised)
    );
    assert_eq!(far.click(&id, 0, "ines", Approve).ruling, Ruling::Settled);
}

#[test]
fn who_is_on_call_answers_during_the_turn_and_is_believed_afterwards() {
    let rota = Rota {
        shifts: vec![Shift {
            from: UtcMillis(START + 250),
            until: UtcMillis(START + 260),
            operator: "tomas".into(),
        }],
        rotation: Some(Rotation {
            start: UtcMillis(START),
            every_ms: 100,
            operators: vec!["ines".into(), "kai".into()],
        }),
    };
    let duty = || people().with_on_call([("payments".to_owned(), rota.clone())]);
    let on_call = || Terms {
        approvers: Approvers {
            on_call: vec!["payments".into()],
            ..Approvers::default()
        },
        ..terms(1)
    };
    for (after, person, allowed) in [
        (0, "ines", true),
        (99, "ines", true),
        (99, "kai", false),
        (100, "kai", true),
        (100, "ines", false),
        (250, "tomas", true),
        (250, "ines", false),
        (260, "ines", true),
        (0, "dana", false),
    ] {
        let mut world = world(duty());
        let id = world.asked(on_call(), &[]);
        world.memory.now.0 += after;
        let expected = if allowed {
            Ruling::Settled
        } else {
            refused(Refusal::NotAuthorised)
        };
        assert_eq!(
            world.click(&id, 0, person, Approve).ruling,
            expected,
            "{person} after {after}"
        );
        if allowed {
            // The next turn has begun.
            world.memory.now.0 += 100;
            let request = consume(&world, &id);
            assert!(world.memory.run(&request).is_ok());
        }
    }
    // A list that is not there means nobody.
    let mut world = world(people());
    let id = world.asked(on_call(), &[]);
    assert_eq!(
        world.click(&id, 0, "ines", Approve).ruling,
        refused(Refusal::NotAuthorised)
    );
}

#[test]
fn a_substitute_stands_in_for_who_is_on_call() {
    let rota = Rota {
        shifts: vec![],
        rotation: Some(Rotation {
            start: UtcMillis(START),
            every_ms: 100,
            operators: vec!["kai".into(), "tomas".into()],
        }),
    };
    let roll = away(&[("kai", "ines")], START, START + 150).with_on_call([("payments".to_owned(), rota)]);
    let mut world = world(roll);
    let on_call = Terms {
        approvers: Approvers {
            on_call: vec!["payments".into()],
            ..Approvers::default()
        },
        ..terms(1)
    };
    let id = world.asked(on_call, &[]);
    world.memory.now.0 += 100;
    assert_eq!(
        world.click(&id, 0, "ines", Approve).ruling,
        refused(Refusal::NotAuthorised),
        "kai's turn is over, and so is what ines may in kai's place"
    );
    world.memory.now.0 -= 1;
    assert_eq!(world.click(&id, 0, "ines", Approve).ruling, Ruling::Settled);
}

proptest! {
    /// Whatever absences there are and whoever answers when: an approved request has its quorum of distinct people in distinct
    /// places, none of them behind the call, each place that of somebody whom the rule names.
    #[test]
    fn no_substitution_is_wider_than_the_rule(
        spans in proptest::collection::vec((0..6_usize, 0..6_usize, 0..300_i64, 1..200_i64), 0..5),
        answers in proptest::collection::vec((0..6_usize, 0..60_i64, prop::bool::weighted(0.9)), 1..8),
        behind in 0..6_usize,
        quorum in 1..3_u32,
    ) {
        let names = ["dana", "mira", "tomas", "ines", "kai", "rival"];
        let mut list: std::collections::BTreeMap<String, Vec<Absence>> = std::collections::BTreeMap::new();
        for (absent, substitute, from, length) in spans {
            let span = Absence {
                from: UtcMillis(START + from),
                until: UtcMillis(START + from + length),
                substitute: names[substitute].to_owned(),
            };
            let own = list.entry(names[absent].to_owned()).or_default();
            if own.iter().all(|before| !before.overlaps(&span)) {
                own.push(span);
            }
        }
        let mut world = world(people().with_absences(Absences::new(list)));
        let id = world.asked(terms(quorum), &[names[behind]]);
        for (person, pause, yes) in answers {
            world.memory.now.0 += pause;
            let decision = if yes { Approve } else { Reject };
            world.click(&id, 0, names[person], decision);
        }
        let dossier = world.row(&id).clone();
        let approvals: Vec<_> = dossier.votes.iter().filter(|vote| vote.decision == Approve).collect();
        let seats: std::collections::BTreeSet<_> = approvals.iter().map(|vote| vote.seat()).collect();
        prop_assert_eq!(seats.len(), approvals.len());
        for vote in &approvals {
            prop_assert!(["dana", "mira", "tomas"].contains(&vote.seat().as_str()));
            prop_assert!(vote.person.as_str() != names[behind] && vote.seat().as_str() != names[behind]);
        }
        if dossier.confirmation.state.status() == Status::Approved {
            prop_assert_eq!(approvals.len(), usize::try_from(quorum).unwrap());
            let request = consume(&world, &id);
            prop_assert!(world.memory.run(&request).is_ok());
        }
        world.memory.assert_chains_hold();
    }
}
