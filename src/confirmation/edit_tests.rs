//! Edited arguments: who votes on what, what runs, and that nobody approves what they have not seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use gatepost_channel::Decision::{self, Approve, Reject};
use proptest::prelude::*;

use super::consume::{Consume, Granted, NotGranted};
use super::create::{Create, Created};
use super::decide::{Backing, Ballot, Decide, Insight, Refusal, Ruling, Surface, Target};
use super::edit::{EditRefusal, MAX_EDITS, Revised, in_words};
use super::fixture::{ORG, World, terms};
use super::{Status, edit};
use crate::audit::Opening;
use crate::gate::grant::{GrantArguments, GrantScope, GrantTerms};
use crate::gate::json::ReadLimits;
use crate::gate::policy::Approvers;
use crate::gate::{Arguments, Digest, EditScope, EditTerms, Stage, Terms};
use crate::ids::{ConfirmationId, GrantId, OperatorId, Org, PermitId, TokenName};

pub(super) const PROPOSED: &str = r#"{"amount":60000}"#;

pub(super) fn editable(quorum: u32) -> Terms {
    let mut terms = terms(quorum);
    terms.decision.edits = Some(EditTerms {
        scope: EditScope::Any,
        carried: true,
    });
    terms
}

fn digest(args: &str) -> Digest {
    let args = Arguments::read(args.as_bytes(), ReadLimits::bytes(1000)).unwrap();
    Digest::of(&"pay".parse().unwrap(), &args)
}

/// The amount, as arguments.
pub(super) fn amount(amount: u32) -> String {
    format!(r#"{{"amount":{amount}}}"#)
}

pub(super) fn revised(world: &World, id: &ConfirmationId, args: &str) -> Revised {
    Revised {
        args: args.to_owned(),
        digest: digest(args),
        shown: Opening::new(args, &world.ids),
        shown_before: Opening::new(PROPOSED, &world.ids),
        approvable: world
            .row(id)
            .deliveries
            .iter()
            .map(|card| (card.id.clone(), true))
            .collect(),
    }
}

/// An answer by name, as over the API.
pub(super) fn answer(world: &World, id: &ConfirmationId, person: &str, decision: Decision) -> Decide {
    Decide {
        target: Target::Request {
            id: id.clone(),
            org: Org::from(ORG),
        },
        ballot: Ballot::Person(OperatorId::from(person)),
        decision,
        reason: None,
        grant: None,
        edit: None,
        seen: None,
        surface: Surface::Api,
        roll: Arc::clone(&world.roll),
        backing: Backing::default(),
        insight: Insight::default(),
    }
}

fn edits(world: &mut World, id: &ConfirmationId, person: &str, args: &str) -> Ruling {
    let decide = Decide {
        edit: Some(Ok(revised(world, id, args))),
        ..answer(world, id, person, Approve)
    };
    world.memory.run(&decide).ruling
}

fn approves(world: &mut World, id: &ConfirmationId, person: &str, seen: Option<u32>) -> Ruling {
    let decide = Decide {
        seen,
        ..answer(world, id, person, Approve)
    };
    world.memory.run(&decide).ruling
}

pub(super) fn consume(world: &mut World, id: &ConfirmationId, args: &str) -> Result<Granted, NotGranted> {
    let row = &world.row(id).confirmation;
    let consume = Consume {
        id: id.clone(),
        token: TokenName::from("agent"),
        digest: digest(args),
        judged: row.call().digest,
        permit: PermitId::fresh(&world.ids),
        roll: Arc::clone(&world.roll),
        denied_by: None,
        grant: None,
        offered: None,
    };
    world.memory.run(&consume)
}

fn status(world: &World, id: &ConfirmationId) -> Status {
    world.row(id).confirmation.state.status()
}

#[test]
fn one_person_edits_and_approves_and_only_the_edited_call_runs() {
    for asked_with in [PROPOSED.to_owned(), amount(4000)] {
        let mut world = World::default();
        let id = world.asked(editable(1), &[]);
        assert_eq!(edits(&mut world, &id, "dana", &amount(4000)), Ruling::Settled);
        let row = &world.row(&id).confirmation;
        assert_eq!(
            (row.asked.args.as_str(), row.call().args),
            (PROPOSED, amount(4000).as_str())
        );
        assert_eq!(
            in_words(row, &world.roll).unwrap(),
            "DANA changed /amount from 60000 to 4000"
        );
        assert_eq!(consume(&mut world, &id, &amount(1)), Err(NotGranted::ArgsChanged));
        // Who asked does not know of the edit, or has heard of it: the answer is the same.
        let granted = consume(&mut world, &id, &asked_with).unwrap();
        assert_eq!(
            (granted.args, granted.digest, granted.edit),
            (amount(4000), digest(&amount(4000)), 1)
        );
        for again in [PROPOSED.to_owned(), amount(4000)] {
            assert_eq!(consume(&mut world, &id, &again), Err(NotGranted::AlreadyConsumed));
        }
        assert_eq!(
            world.memory.kinds(),
            [
                "confirmation.created",
                "confirmation.edited",
                "vote.cast",
                "confirmation.approved",
                "permit.refused",
                "permit.consumed",
                "permit.refused",
                "permit.refused"
            ]
        );
        let edited = &world.memory.events[1];
        assert!(edited.commitments.contains("proposed_args") && edited.commitments.contains("edited_args"));
        assert!(
            !edited.data.contains("4000"),
            "arguments enter the chain as commitments alone"
        );
        world.memory.assert_chains_hold();
    }
}

#[test]
fn an_edit_under_a_quorum_is_voted_on_anew_and_seen_by_who_approves_it() {
    let mut world = World::default();
    let id = world.asked(editable(2), &[]);
    assert_eq!(approves(&mut world, &id, "dana", None), Ruling::Counted);
    let old_card = world.press(&id, 0, Ballot::Person(OperatorId::from("tomas")), Approve);
    assert_eq!(edits(&mut world, &id, "mira", &amount(4000)), Ruling::Counted);
    let row = world.row(&id);
    assert_eq!(
        row.standing_votes().len(),
        1,
        "who approved before has not seen this"
    );
    assert_eq!(row.votes.len(), 2, "what they said stays on record");
    // The old card, and an answer that knows of no edit, approve nothing.
    assert_eq!(
        world.memory.run(&old_card).ruling,
        Ruling::Refused(Refusal::OutdatedCard)
    );
    for seen in [None, Some(0), Some(2)] {
        assert_eq!(
            approves(&mut world, &id, "dana", seen),
            Ruling::Refused(Refusal::EditUnseen),
            "{seen:?}"
        );
    }
    assert_eq!(world.last_refusal().as_deref(), Some("edit_unseen"));
    assert_eq!(
        approves(&mut world, &id, "mira", Some(1)),
        Ruling::Refused(Refusal::AlreadyVoted)
    );
    // The new card shows it; who approved before may say it again.
    assert_eq!(world.click(&id, 0, "dana", Approve).ruling, Ruling::Settled);
    assert_eq!(consume(&mut world, &id, PROPOSED).unwrap().args, amount(4000));
    world.memory.assert_chains_hold();
}

#[test]
fn the_last_of_two_edits_is_what_counts_and_an_edit_back_is_one_too() {
    let mut world = World::default();
    let id = world.asked(editable(2), &[]);
    assert_eq!(edits(&mut world, &id, "dana", &amount(1)), Ruling::Counted);
    assert_eq!(edits(&mut world, &id, "mira", &amount(2)), Ruling::Counted);
    // The same arguments again are a vote for what stands, not another edit.
    assert_eq!(
        edits(&mut world, &id, "mira", &amount(2)),
        Ruling::Refused(Refusal::AlreadyVoted)
    );
    assert_eq!(edits(&mut world, &id, "dana", PROPOSED), Ruling::Counted);
    let row = &world.row(&id).confirmation;
    assert_eq!((row.call().edit, row.call().args), (3, PROPOSED));
    assert_eq!(in_words(row, &world.roll), None, "nothing is different");
    assert_eq!(approves(&mut world, &id, "mira", Some(3)), Ruling::Settled);
    assert_eq!(consume(&mut world, &id, PROPOSED).unwrap().args, PROPOSED);
    assert_eq!(world.row(&id).votes.len(), 4);
}

#[test]
fn a_lost_update_is_noticed() {
    let mut world = World::default();
    let id = world.asked(editable(2), &[]);
    assert_eq!(edits(&mut world, &id, "dana", &amount(1)), Ruling::Counted);
    let late = Decide {
        edit: Some(Ok(revised(&world, &id, &amount(2)))),
        seen: Some(0),
        ..answer(&world, &id, "mira", Approve)
    };
    assert_eq!(
        world.memory.run(&late).ruling,
        Ruling::Refused(Refusal::EditUnseen)
    );
}

#[test]
fn who_may_not_approve_may_not_edit_and_hears_nothing_about_the_edit() {
    for (person, persons, terms, expected) in [
        ("ines", &[][..], editable(1), Refusal::NotAuthorised),
        ("dana", &["dana"][..], editable(1), Refusal::SelfApproval),
        ("dana", &[][..], terms(1), Refusal::Edit(EditRefusal::NotOffered)),
    ] {
        let mut world = World::default();
        let id = world.asked(terms, persons);
        assert_eq!(
            edits(&mut world, &id, person, &amount(1)),
            Ruling::Refused(expected)
        );
        // Whatever else is wrong with the edit.
        let unfit = Decide {
            edit: Some(Err(EditRefusal::Misfit)),
            ..answer(&world, &id, person, Approve)
        };
        let expected = match expected {
            Refusal::Edit(_) => Refusal::Edit(EditRefusal::Misfit),
            other => other,
        };
        assert_eq!(world.memory.run(&unfit).ruling, Ruling::Refused(expected));
        assert!(world.row(&id).votes.is_empty() && world.row(&id).confirmation.progress.edit.is_none());
    }
}

#[test]
fn a_rejection_carries_no_arguments() {
    let mut world = World::default();
    let id = world.asked(editable(1), &[]);
    let odd = Decide {
        edit: Some(Ok(revised(&world, &id, &amount(1)))),
        ..answer(&world, &id, "dana", Reject)
    };
    assert_eq!(
        world.memory.run(&odd).ruling,
        Ruling::Refused(Refusal::Edit(EditRefusal::NotOffered))
    );
    assert_eq!(status(&world, &id), Status::Pending);
}

#[test]
fn stages_are_asked_again_and_the_editor_has_answered_in_theirs() {
    let of = |name: &str, person: &str| Stage {
        name: name.to_owned(),
        approvers: Approvers {
            operators: vec![person.to_owned()],
            ..Approvers::default()
        },
        quorum: 1,
    };
    let mut staged = editable(2);
    staged.decision.stages = vec![of("finance", "dana"), of("director", "mira")];
    staged.approvers = crate::gate::decision::everybody(&staged.decision.stages);
    let mut world = World::default();
    let id = world.asked(staged, &[]);
    // Nobody edits before their turn.
    assert_eq!(
        edits(&mut world, &id, "mira", &amount(9)),
        Ruling::Refused(Refusal::NotThisStage)
    );
    assert_eq!(approves(&mut world, &id, "dana", None), Ruling::Counted);
    assert_eq!(edits(&mut world, &id, "mira", &amount(4000)), Ruling::Counted);
    assert_eq!(
        world.row(&id).confirmation.progress.stage,
        0,
        "finance has not seen it"
    );
    assert_eq!(approves(&mut world, &id, "dana", Some(1)), Ruling::Settled);
    let passed = world
        .memory
        .kinds()
        .iter()
        .filter(|kind| **kind == "stage.passed")
        .count();
    assert_eq!(passed, 2);
    assert!(
        consume(&mut world, &id, PROPOSED).is_ok(),
        "every stage approved the same call"
    );
    world.memory.assert_chains_hold();
}

#[test]
fn an_edit_washes_no_rejection_away() {
    let mut world = World::default();
    let mut terms = editable(2);
    terms.deny_threshold = 2;
    let id = world.asked(terms, &[]);
    let rejects = |world: &mut World, person: &str| {
        let decide = answer(world, &id, person, Reject);
        world.memory.run(&decide).ruling
    };
    assert_eq!(rejects(&mut world, "dana"), Ruling::Counted);
    assert_eq!(edits(&mut world, &id, "mira", &amount(1)), Ruling::Counted);
    assert_eq!(
        rejects(&mut world, "tomas"),
        Ruling::Settled,
        "the first rejection still stands"
    );
    assert_eq!(status(&world, &id), Status::Rejected);

    // Who rejected the call as it was may approve what was made of it.
    let mut world = World::default();
    let mut terms = editable(2);
    terms.deny_threshold = 2;
    let id = world.asked(terms, &[]);
    let decide = answer(&world, &id, "dana", Reject);
    assert_eq!(world.memory.run(&decide).ruling, Ruling::Counted);
    assert_eq!(edits(&mut world, &id, "mira", &amount(1)), Ruling::Counted);
    assert_eq!(approves(&mut world, &id, "dana", Some(1)), Ruling::Settled);
    assert_eq!(status(&world, &id), Status::Approved);
}

#[test]
fn grants_and_edits_do_not_come_together() {
    let mut world = World::default();
    let mut terms = editable(2);
    terms.decision.grants = Some(GrantTerms {
        scopes: vec![GrantScope::Span(3_600_000)],
        max_uses: None,
        arguments: GrantArguments::Any,
    });
    let id = world.asked(terms, &[]);
    let wish = |world: &World| {
        Some(super::grant::Wish {
            scope: "1h".to_owned(),
            id: GrantId::fresh(&world.ids),
        })
    };
    let first = Decide {
        grant: wish(&world),
        ..answer(&world, &id, "dana", Approve)
    };
    assert_eq!(world.memory.run(&first).ruling, Ruling::Counted);
    let both = Decide {
        grant: wish(&world),
        edit: Some(Ok(revised(&world, &id, &amount(1)))),
        ..answer(&world, &id, "mira", Approve)
    };
    assert_eq!(
        world.memory.run(&both).ruling,
        Ruling::Refused(Refusal::GrantNotOffered)
    );
    assert_eq!(edits(&mut world, &id, "mira", &amount(1)), Ruling::Counted);
    assert!(super::grant::offers(&world.row(&id).confirmation).is_empty());
    let late = Decide {
        grant: wish(&world),
        seen: Some(1),
        ..answer(&world, &id, "dana", Approve)
    };
    assert_eq!(
        world.memory.run(&late).ruling,
        Ruling::Refused(Refusal::GrantNotOffered)
    );
    assert_eq!(approves(&mut world, &id, "dana", Some(1)), Ruling::Settled);
    assert!(world.row(&id).confirmation.progress.granted.is_none());
}

#[test]
fn a_card_that_cannot_show_the_edited_call_loses_its_approve() {
    let mut world = World::default();
    let id = world.asked(editable(2), &[]);
    let first = world.row(&id).deliveries[0].id.clone();
    let decide = Decide {
        edit: Some(Ok(Revised {
            // Of the other card nobody knows.
            approvable: BTreeMap::from([(first, false)]),
            ..revised(&world, &id, &amount(1))
        })),
        ..answer(&world, &id, "dana", Approve)
    };
    assert_eq!(world.memory.run(&decide).ruling, Ruling::Counted);
    for card in [0, 1] {
        assert_eq!(
            world.click(&id, card, "mira", Approve).ruling,
            Ruling::Refused(Refusal::PartialView)
        );
    }
    assert_eq!(world.click(&id, 0, "mira", Reject).ruling, Ruling::Settled);
}

#[test]
fn nobody_edits_for_ever() {
    let mut world = World::default();
    let id = world.asked(editable(2), &[]);
    for number in 1..=MAX_EDITS {
        assert_eq!(edits(&mut world, &id, "dana", &amount(number)), Ruling::Counted);
    }
    assert_eq!(
        edits(&mut world, &id, "dana", &amount(0)),
        Ruling::Refused(Refusal::Edit(EditRefusal::TooMany))
    );
    assert_eq!(
        approves(&mut world, &id, "mira", Some(MAX_EDITS)),
        Ruling::Settled
    );
}

#[test]
fn asking_again_finds_the_request_as_it_was_asked_and_as_it_ran() {
    let mut world = World::default();
    let mut create = world.pay(editable(1), &[]);
    create.asked.tool_call_id = Some("c1".to_owned());
    let Created::Fresh(dossier) = world.memory.run(&create) else {
        panic!("new")
    };
    let id = dossier.confirmation.id;
    let again = |world: &mut World, args: &str| {
        let mut again = Create {
            id: ConfirmationId::fresh(&world.ids),
            ..create.clone()
        };
        again.asked.args = args.to_owned();
        again.asked.digest = digest(args);
        world.memory.run(&again)
    };
    assert!(
        matches!(again(&mut world, &amount(1)), Created::Conflict(_)),
        "nobody approved that yet"
    );
    assert_eq!(edits(&mut world, &id, "dana", &amount(1)), Ruling::Settled);
    for args in [PROPOSED.to_owned(), amount(1)] {
        assert!(
            matches!(again(&mut world, &args), Created::Same(same) if same.confirmation.id == id),
            "{args}"
        );
    }
    assert!(matches!(again(&mut world, &amount(2)), Created::Conflict(_)));
}

#[test]
fn policy_must_have_judged_what_runs() {
    let mut world = World::default();
    let id = world.asked(editable(1), &[]);
    assert_eq!(edits(&mut world, &id, "dana", &amount(1)), Ruling::Settled);
    let stale = Consume {
        id: id.clone(),
        token: TokenName::from("agent"),
        digest: digest(PROPOSED),
        judged: digest(PROPOSED),
        permit: PermitId::fresh(&world.ids),
        roll: Arc::clone(&world.roll),
        denied_by: None,
        grant: None,
        offered: None,
    };
    assert_eq!(
        world.memory.run(&stale),
        Err(NotGranted::NotApproved(Status::Pending))
    );
    assert!(
        consume(&mut world, &id, PROPOSED).is_ok(),
        "looked at again, it runs"
    );
}

#[test]
fn what_was_changed_is_told_in_one_harmless_line() {
    let mut world = World::default();
    let id = world.asked(editable(1), &[]);
    let nasty = format!(
        r#"{{"amount":"{}\n\u202e*bold* <!channel>","more":1}}"#,
        "x".repeat(500)
    );
    assert_eq!(edits(&mut world, &id, "dana", &nasty), Ruling::Settled);
    let told = in_words(&world.row(&id).confirmation, &world.roll).unwrap();
    assert!(
        !told.contains(['\n', '\u{202e}']) && told.chars().count() < 700,
        "{told}"
    );
    assert!(told.contains("/more from nothing to 1"), "{told}");
}

/// One thing that may happen to an editable request.
#[derive(Debug, Clone)]
enum Event {
    Approve(&'static str, Option<u32>),
    Click(&'static str, bool),
    Reject(&'static str),
    Edit(&'static str, u32),
    Consume(u32),
}

fn event() -> impl Strategy<Value = Event> {
    let person = || prop::sample::select(vec!["dana", "mira", "tomas", "ines"]);
    let seen = prop_oneof![Just(None), (0_u32..4).prop_map(Some)];
    prop_oneof![
        3 => (person(), seen).prop_map(|(person, seen)| Event::Approve(person, seen)),
        3 => (person(), prop::bool::weighted(0.9)).prop_map(|(person, yes)| Event::Click(person, yes)),
        1 => person().prop_map(Event::Reject),
        3 => (person(), 0_u32..3).prop_map(|(person, to)| Event::Edit(person, to)),
        3 => (0_u32..3).prop_map(Event::Consume),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever people do in whatever order: what runs is exactly what the quorum approved, by people who each said so to these very
    /// arguments, and it runs once.
    #[test]
    fn every_order_of_edits_votes_and_consumptions_runs_what_was_approved(
        quorum in 1_u32..4,
        deny in 1_u32..3,
        events in prop::collection::vec(event(), 1..32),
    ) {
        let mut world = World::default();
        let mut terms = editable(quorum);
        terms.deny_threshold = deny;
        let id = world.asked(terms, &[]);
        let mut ran = Vec::new();
        for event in events {
            let before = world.row(&id).clone();
            match event {
                Event::Approve(person, seen) => { approves(&mut world, &id, person, seen); }
                Event::Click(person, yes) => { world.click(&id, 0, person, if yes { Approve } else { Reject }); }
                Event::Reject(person) => { let decide = answer(&world, &id, person, Reject); world.memory.run(&decide); }
                Event::Edit(person, to) => { edits(&mut world, &id, person, &amount(to)); }
                Event::Consume(args) => { ran.extend(consume(&mut world, &id, &if args == 0 { PROPOSED.to_owned() } else { amount(args) }).ok()); }
            }
            let after = world.row(&id);
            prop_assert!(after.votes.len() >= before.votes.len(), "no vote is lost");
            prop_assert_eq!(&after.confirmation.asked, &before.confirmation.asked, "what was proposed stays");
            let decided = before.confirmation.state.status() != Status::Pending;
            if decided {
                prop_assert_eq!(after.confirmation.call(), before.confirmation.call(), "what was decided stays");
            }
            if after.confirmation.call() != before.confirmation.call() {
                prop_assert!(after.confirmation.revision > before.confirmation.revision, "old buttons are dead");
            }
        }
        let row = world.row(&id);
        let votes = row.standing_votes();
        let approvals: Vec<_> = votes.iter().filter(|vote| vote.decision == Approve).collect();
        let number = row.confirmation.call().edit;
        prop_assert!(approvals.iter().all(|vote| vote.content.edit == number), "for these arguments");
        let mut people: Vec<_> = row.votes.iter().map(|vote| (&vote.person, vote.content.edit)).collect();
        people.sort();
        people.dedup();
        prop_assert_eq!(people.len(), row.votes.len(), "one answer of each to one form of the call");
        let enough = approvals.len() >= usize::try_from(quorum).unwrap();
        prop_assert_eq!(status(&world, &id) == Status::Approved, enough);
        prop_assert!(ran.len() <= 1);
        for granted in &ran {
            prop_assert!(status(&world, &id) == Status::Approved);
            prop_assert_eq!(granted.args.as_str(), row.confirmation.call().args);
            prop_assert_eq!(granted.digest, digest(&granted.args));
        }
        prop_assert!(edit::standing(&row.votes, &row.confirmation.progress).len() <= row.votes.len());
        world.memory.assert_chains_hold();
    }
}
