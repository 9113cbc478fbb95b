use std::sync::Arc;

use gatepost_channel::Decision::{Approve, Reject};
use gatepost_channel::Wants;

use super::Status;
use super::decide::{Ballot, Decide, Refusal, Ruling, Surface, Target};
use super::fixture::{ORG, World, terms};
use super::look::{Look, Looked};
use super::roll::{Found, Roll, Standing, Voter};
use crate::gate::RequireReason;
use crate::gate::after::Escalation;
use crate::gate::policy::Approvers;
use crate::ids::ConfirmationId;

fn person(id: &str) -> Ballot {
    Ballot::Person(id.into())
}

/// An ask of this person from the first card.
fn ask(world: &mut World, id: &ConfirmationId, ballot: Ballot, wants: Wants) -> Look {
    let Target::Card(clicked) = world.press(id, 0, ballot.clone(), Reject).target else {
        panic!("a press is on a card")
    };
    Look {
        clicked,
        ballot,
        wants,
        roll: Arc::clone(&world.roll),
    }
}

fn viewed(world: &World) -> usize {
    let events = world.memory.events.iter();
    events.filter(|event| event.kind == "confirmation.viewed").count()
}

#[test]
fn who_may_decide_sees_everything_and_it_is_on_record() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    let look = ask(&mut world, &id, person("dana"), Wants::Everything);
    let Looked::At(dossier, card) = world.memory.run(&look) else {
        panic!("she may")
    };
    assert_eq!(
        (dossier.confirmation.id, card),
        (id.clone(), world.row(&id).deliveries[0].id.clone())
    );
    assert_eq!(viewed(&world), 1);
    assert_eq!(
        world.row(&id).confirmation.state.status(),
        Status::Pending,
        "looking decides nothing"
    );
    assert_eq!(
        world.memory.run(&look),
        Looked::Repeated,
        "an exact repeat shows nothing again"
    );
    assert_eq!(viewed(&world), 1);
    assert_eq!(world.last_refusal().as_deref(), Some("replayed"));

    let form = ask(&mut world, &id, person("mira"), Wants::Reason(Reject));
    assert!(matches!(world.memory.run(&form), Looked::At(..)));
    assert_eq!(viewed(&world), 1, "a form for words shows no arguments");
}

#[test]
fn who_may_not_decide_sees_nothing() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    for (ballot, refusal) in [
        (person("ines"), Refusal::NotAuthorised),
        (Ballot::Stranger("U9".into()), Refusal::UnknownOperator),
        (Ballot::Foreigner("U9".into()), Refusal::ForeignTenant),
    ] {
        for wants in [Wants::Everything, Wants::Reason(Reject)] {
            let look = ask(&mut world, &id, ballot.clone(), wants);
            assert_eq!(world.memory.run(&look), Looked::Refused(refusal));
            assert_eq!(world.last_refusal().as_deref(), Some(refusal.as_str()));
        }
    }
    let mut elsewhere = ask(&mut world, &id, person("dana"), Wants::Everything);
    elsewhere.clicked.at.message = "another".into();
    assert_eq!(
        world.memory.run(&elsewhere),
        Looked::Refused(Refusal::OtherMessage)
    );
    let mut foreign = ask(&mut world, &id, person("dana"), Wants::Everything);
    foreign.clicked.org = "globex".into();
    assert_eq!(world.memory.run(&foreign), Looked::Refused(Refusal::OtherChannel));
    assert_eq!(viewed(&world), 0);
}

#[test]
fn what_is_over_is_shown_as_over() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    world.memory.now.0 += super::fixture::TIMEOUT;
    let look = ask(&mut world, &id, person("dana"), Wants::Everything);
    let Looked::At(dossier, _) = world.memory.run(&look) else {
        panic!("she may")
    };
    assert_eq!(dossier.confirmation.state.status(), Status::Expired);
}

/// The press as if it came from where this person saw everything.
fn from_full_view(world: &mut World, id: &ConfirmationId, decision: gatepost_channel::Decision) -> Decide {
    let mut decide = world.press(id, 0, person("dana"), decision);
    decide.surface = Surface::FullView;
    if let Target::Card(clicked) = &mut decide.target {
        clicked.alone = true;
    }
    decide
}

#[test]
fn a_cut_card_is_approved_only_from_where_everything_was_seen() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    let dossier = world.memory.dossiers.get_mut(&id).unwrap();
    dossier
        .deliveries
        .iter_mut()
        .for_each(|card| card.approvable = false);
    let decided = world.click(&id, 0, "dana", Approve);
    assert_eq!(decided.ruling, Ruling::Refused(Refusal::PartialView));

    let mut elsewhere = from_full_view(&mut world, &id, Approve);
    if let Target::Card(clicked) = &mut elsewhere.target {
        clicked.at.message = "another".into();
    }
    // Even while a card may stand that nobody told of: what opens for one person is no such card.
    world.memory.dossiers.get_mut(&id).unwrap().deliveries[0].unheard = true;
    assert_eq!(
        world.memory.run(&elsewhere).ruling,
        Ruling::Refused(Refusal::OtherMessage)
    );
    assert_eq!(world.row(&id).deliveries[0].standing.len(), 1);

    let mut outdated = from_full_view(&mut world, &id, Approve);
    if let Target::Card(clicked) = &mut outdated.target {
        clicked.revision += 1;
    }
    assert_eq!(
        world.memory.run(&outdated).ruling,
        Ruling::Refused(Refusal::OutdatedCard)
    );

    let decide = from_full_view(&mut world, &id, Approve);
    assert_eq!(world.memory.run(&decide).ruling, Ruling::Settled);
    assert_eq!(world.row(&id).votes[0].surface, "full_view");
}

#[test]
fn asking_for_words_is_a_refusal_only_where_no_form_opens() {
    let mut world = World::default();
    let mut demanding = terms(1);
    demanding.decision.require_reason = RequireReason::Both;
    let id = world.asked(demanding, &[]);
    let refused = |world: &World| {
        let events = world.memory.events.iter();
        events.filter(|event| event.kind == "callback.refused").count()
    };
    let mut press = world.press(&id, 0, person("dana"), Reject);
    if let Target::Card(clicked) = &mut press.target {
        clicked.asks_back = true;
    }
    assert_eq!(
        world.memory.run(&press).ruling,
        Ruling::Refused(Refusal::ReasonRequired)
    );
    assert_eq!(refused(&world), 0);
    let decided = world.click(&id, 0, "dana", Reject);
    assert_eq!(decided.ruling, Ruling::Refused(Refusal::ReasonRequired));
    assert_eq!(refused(&world), 1);
}

/// Whoever a step of the escalation let in sees all that they may decide, and not before.
#[test]
fn who_is_let_in_by_a_step_may_look_from_then_on() {
    let mut world = World::default();
    let mut terms = terms(1);
    terms.after.escalate = vec![Escalation {
        after_ms: 60_000,
        approvers: Some(Approvers {
            operators: vec!["ines".to_owned()],
            ..Approvers::default()
        }),
        ..Escalation::default()
    }];
    let id = world.asked(terms, &[]);
    for wants in [Wants::Everything, Wants::Reason(Reject)] {
        let early = ask(&mut world, &id, person("ines"), wants);
        assert_eq!(world.memory.run(&early), Looked::Refused(Refusal::NotAuthorised));
    }
    let stored = world.memory.dossiers.get_mut(&id).unwrap();
    stored.confirmation.progress.escalated = 1;
    for wants in [Wants::Everything, Wants::Reason(Reject)] {
        let look = ask(&mut world, &id, person("ines"), wants);
        assert!(matches!(world.memory.run(&look), Looked::At(..)), "{wants:?}");
    }
}

/// A role that could not be asked about is neither held nor denied: the same press shows everything once the platform answers.
#[test]
fn a_look_up_that_fails_shows_nothing_and_is_tried_again() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    let look = ask(&mut world, &id, person("ines"), Wants::Everything);
    let with = |perhaps: &[&str], roles: &[&str]| {
        let words = |words: &[&str]| words.iter().copied().map(str::to_owned).collect();
        let voter = Voter {
            id: "ines".into(),
            name: "Ines".into(),
            orgs: vec![ORG.into()],
            roles: words(roles),
        };
        let found = Found {
            voter,
            also: vec![],
            standing: Standing::Good,
            perhaps: words(perhaps),
        };
        Arc::new(world.roll.with([found]))
    };
    let (unsure, elsewhere, member) = (
        with(&["finance"], &[]),
        with(&["legal"], &[]),
        with(&[], &["finance"]),
    );
    let asked = |roll: &Arc<Roll>| Look {
        roll: Arc::clone(roll),
        ..look.clone()
    };
    assert_eq!(
        world.memory.run(&asked(&unsure)),
        Looked::Refused(Refusal::LookUpFailed)
    );
    assert!(matches!(world.memory.run(&asked(&member)), Looked::At(..)));
    let mut other = ask(&mut world, &id, person("ines"), Wants::Everything);
    other.roll = elsewhere;
    assert_eq!(world.memory.run(&other), Looked::Refused(Refusal::NotAuthorised));
}
