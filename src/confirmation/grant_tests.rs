//! Grants: made only as everybody asked, used only for what they cover, asked again when the permit is consumed.

use std::sync::Arc;

use gatepost_channel::Decision::{self, Approve, Reject};
use proptest::prelude::*;

use super::consume::{Consume, NotGranted};
use super::create::{Create, Created};
use super::decide::{Ballot, Decide, Refusal, Ruling};
use super::fixture::{ORG, World, terms};
use super::grant::{ExpireGrants, Grant, Revoke, Revoked, Wish};
use super::roll::{Roll, Voter};
use super::{Basis, Status};
use crate::gate::after::Escalation;
use crate::gate::grant::{GrantArguments, GrantScope, GrantTerms, SESSION_MS};
use crate::gate::json::ReadLimits;
use crate::gate::policy::Approvers;
use crate::gate::{Arguments, Digest, Terms};
use crate::ids::{ConfirmationId, GrantId, OperatorId, Org, PermitId, TokenName};

const HOUR: i64 = 3_600_000;

fn offering(scopes: &[GrantScope], max_uses: Option<u32>, arguments: GrantArguments) -> GrantTerms {
    GrantTerms {
        scopes: scopes.to_vec(),
        max_uses,
        arguments,
    }
}

fn with(quorum: u32, grants: GrantTerms) -> Terms {
    let mut terms = terms(quorum);
    terms.decision.grants = Some(grants);
    terms
}

fn hourly() -> GrantTerms {
    offering(
        &[GrantScope::Session, GrantScope::Span(HOUR)],
        None,
        GrantArguments::Same,
    )
}

fn answer(
    world: &mut World,
    id: &ConfirmationId,
    person: &str,
    decision: Decision,
    scope: Option<&str>,
) -> Ruling {
    let grant = scope.map(|scope| Wish {
        scope: scope.to_owned(),
        id: GrantId::fresh(&world.ids),
    });
    let press = world.press(id, 0, Ballot::Person(OperatorId::from(person)), decision);
    world.memory.run(&Decide { grant, ..press }).ruling
}

/// Asks for a call; `twist` says how it differs from the usual one.
fn ask(world: &mut World, terms: &Terms, twist: impl FnOnce(&mut Create)) -> ConfirmationId {
    let mut create = world.pay(terms.clone(), &[]);
    twist(&mut create);
    match world.memory.run(&create) {
        Created::Fresh(dossier) => dossier.confirmation.id,
        other => panic!("asked before: {other:?}"),
    }
}

fn same(_: &mut Create) {}

fn status(world: &World, id: &ConfirmationId) -> Status {
    world.row(id).confirmation.state.status()
}

/// A request approved with this scope, and the grant that came of it.
fn granted(world: &mut World, terms: &Terms, scope: &str) -> Grant {
    let id = world.asked(terms.clone(), &[]);
    assert_eq!(answer(world, &id, "dana", Approve, Some(scope)), Ruling::Settled);
    let grant = world
        .row(&id)
        .confirmation
        .progress
        .granted
        .clone()
        .expect("a grant");
    world.memory.grants[&grant].clone()
}

fn consume(world: &World, id: &ConfirmationId) -> Consume {
    let row = &world.row(id).confirmation;
    Consume {
        id: id.clone(),
        token: TokenName::from("agent"),
        digest: row.asked.digest,
        judged: row.asked.digest,
        permit: PermitId::fresh(&world.ids),
        roll: Arc::clone(&world.roll),
        denied_by: None,
        grant: row.progress.basis.as_ref().and_then(Basis::grant).cloned(),
        offered: row.terms.decision.grants.clone(),
    }
}

#[test]
fn a_later_call_is_its_own_request_with_its_own_permit_and_events() {
    let mut world = World::default();
    let terms = with(1, hourly());
    let grant = granted(&mut world, &terms, "1h");
    assert_eq!(grant.expires_at.0, world.memory.now.0 + HOUR);
    let before = world.memory.events.len();
    let id = ask(&mut world, &terms, same);
    let row = world.row(&id);
    assert_eq!(status(&world, &id), Status::Approved);
    assert_eq!(
        row.confirmation.progress.basis,
        Some(Basis::Grant(grant.id.clone()))
    );
    assert!(
        row.votes.is_empty() && row.deliveries.is_empty(),
        "nobody is asked"
    );
    let kinds: Vec<_> = world.memory.kinds().split_off(before);
    assert_eq!(
        kinds,
        ["confirmation.created", "grant.used", "confirmation.approved"]
    );
    let event = world.memory.events.last().expect("an event");
    assert_eq!(event.actor, format!("grant:{}", grant.id));
    let first = consume(&world, &id);
    assert!(world.memory.run(&first).is_ok());
    let second = consume(&world, &id);
    assert_eq!(world.memory.run(&second), Err(NotGranted::AlreadyConsumed));
    assert_eq!(world.memory.grants[&grant.id].uses, 1);
    world.memory.assert_chains_hold();
}

#[test]
fn a_grant_is_made_only_if_everybody_who_approves_asks_for_it() {
    for (wishes, made) in [
        ([Some("1h"), Some("1h")], true),
        ([Some("1h"), None], false),
        ([None, Some("1h")], false),
        ([Some("1h"), Some("session")], false),
        ([None, None], false),
    ] {
        let mut world = World::default();
        let id = world.asked(with(2, hourly()), &[]);
        answer(&mut world, &id, "dana", Approve, wishes[0]);
        assert_eq!(
            answer(&mut world, &id, "mira", Approve, wishes[1]),
            Ruling::Settled
        );
        assert_eq!(status(&world, &id), Status::Approved, "this call runs either way");
        assert_eq!(world.memory.grants.len(), usize::from(made), "{wishes:?}");
        let row = &world.row(&id).confirmation;
        assert_eq!(row.progress.granted.is_some(), made);
    }
}

#[test]
fn what_the_request_does_not_offer_is_refused_and_casts_no_vote() {
    let nothing = terms(1);
    for (terms, decision, scope) in [
        (nothing, Approve, "1h"),
        (with(1, hourly()), Approve, "2h"),
        (with(1, hourly()), Approve, "60m"),
        (with(1, hourly()), Approve, "always"),
        (with(1, hourly()), Reject, "1h"),
        (
            with(
                1,
                offering(
                    &[GrantScope::Span(HOUR)],
                    None,
                    GrantArguments::At(vec!["/payee".parse().unwrap()]),
                ),
            ),
            Approve,
            "1h",
        ),
    ] {
        let mut world = World::default();
        let id = world.asked(terms, &[]);
        assert_eq!(
            answer(&mut world, &id, "dana", decision, Some(scope)),
            Ruling::Refused(Refusal::GrantNotOffered),
            "{scope}"
        );
        assert!(world.row(&id).votes.is_empty());
    }
    let mut world = World::default();
    let mut create = world.pay(with(1, hourly()), &[]);
    create.asked.session_id = None;
    let Created::Fresh(dossier) = world.memory.run(&create) else {
        panic!("it is new")
    };
    let id = dossier.confirmation.id;
    assert_eq!(
        answer(&mut world, &id, "dana", Approve, Some("session")),
        Ruling::Refused(Refusal::OtherMessage),
        "no card stands yet"
    );
    assert_eq!(
        super::grant::offers(&world.row(&id).confirmation),
        [GrantScope::Span(HOUR)]
    );
}

fn other_args(create: &mut Create) {
    let args = Arguments::read(br#"{"amount":7}"#, ReadLimits::bytes(99)).unwrap();
    create.asked.digest = Digest::of(&create.asked.tool, &args);
    create.asked.args = args.canonical().to_owned();
}

#[test]
fn a_grant_covers_nothing_but_its_token_tool_rule_agent_requester_and_arguments() {
    type Twist = fn(&mut Create);
    let cases: [(&str, Twist, bool); 10] = [
        ("the same", same, true),
        (
            "another session",
            |c| c.asked.session_id = Some("s2".into()),
            true,
        ),
        (
            "another token",
            |c| c.asked.token = TokenName::from("other"),
            false,
        ),
        ("another tool", |c| c.asked.tool = "pay2".parse().unwrap(), false),
        ("another rule", |c| c.rule = Some("small".into()), false),
        ("no rule", |c| c.rule = None, false),
        ("another agent", |c| c.asked.agent_id = Some("a2".into()), false),
        (
            "another requester",
            |c| c.asked.requester = Some("olga".into()),
            false,
        ),
        ("other arguments", other_args, false),
        ("a person is asked for", |c| c.grantors = None, false),
    ];
    for (name, twist, covered) in cases {
        let mut world = World::default();
        let terms = with(1, hourly());
        granted(&mut world, &terms, "1h");
        let id = ask(&mut world, &terms, twist);
        assert_eq!(status(&world, &id) == Status::Approved, covered, "{name}");
    }
}

#[test]
fn a_grant_for_a_session_ends_with_it_and_in_any_case_after_a_while() {
    let mut world = World::default();
    let terms = with(1, hourly());
    let grant = granted(&mut world, &terms, "session");
    assert_eq!(grant.expires_at.0, world.memory.now.0 + SESSION_MS);
    for (session, covered) in [(Some("s1"), true), (Some("s2"), false), (None, false)] {
        let id = ask(&mut world, &terms, |c| {
            c.asked.session_id = session.map(str::to_owned);
        });
        assert_eq!(status(&world, &id) == Status::Approved, covered, "{session:?}");
    }
    world.memory.now.0 += SESSION_MS;
    let id = ask(&mut world, &terms, same);
    assert_eq!(status(&world, &id), Status::Pending);
}

#[test]
fn time_and_uses_end_a_grant() {
    let mut world = World::default();
    let terms = with(
        1,
        offering(&[GrantScope::Span(HOUR)], Some(2), GrantArguments::Any),
    );
    let grant = granted(&mut world, &terms, "1h");
    for expected in [Status::Approved, Status::Approved, Status::Pending] {
        let id = ask(&mut world, &terms, other_args);
        assert_eq!(status(&world, &id), expected);
    }
    let due = vec![(grant.id.clone(), Org::from(ORG))];
    assert_eq!(world.memory.run(&ExpireGrants { due: due.clone() }), 0, "not yet");
    world.memory.now.0 += HOUR;
    assert_eq!(world.memory.run(&ExpireGrants { due: due.clone() }), 1);
    assert_eq!(world.memory.run(&ExpireGrants { due }), 0, "once");
    assert_eq!(world.memory.kinds().last(), Some(&"grant.expired"));
}

#[test]
fn nobody_grants_their_own_calls() {
    let mut world = World::default();
    let terms = with(1, hourly());
    granted(&mut world, &terms, "1h");
    let id = ask(&mut world, &terms, |c| {
        c.asked.persons = vec![OperatorId::from("dana")];
    });
    assert_eq!(
        status(&world, &id),
        Status::Pending,
        "Dana gave it and stands behind this call"
    );
    let id = ask(&mut world, &terms, |c| {
        c.asked.persons = vec![OperatorId::from("mira")];
    });
    assert_eq!(status(&world, &id), Status::Approved);
}

#[test]
fn a_permit_under_a_grant_is_asked_about_again() {
    type Twist = fn(&mut World, &Grant, &mut Consume);
    let voter = |id: &str| Voter {
        id: OperatorId::from(id),
        name: id.into(),
        orgs: vec![Org::from(ORG)],
        roles: vec!["finance".into()],
    };
    let without_dana = Arc::new(Roll::new([voter("mira"), voter("tomas")]));
    let revoke: Twist = |world, grant, _| {
        let revoke = Revoke {
            id: grant.id.clone(),
            org: Org::from(ORG),
            by: OperatorId::from("mira"),
        };
        assert!(matches!(world.memory.run(&revoke), Revoked::Done(_)));
    };
    let cases: [(&str, Twist); 6] = [
        ("revoked", revoke),
        ("its time passed", |world, _, _| world.memory.now.0 += HOUR - 1),
        ("the rule offers nothing", |_, _, consume| consume.offered = None),
        ("the rule offers less time", |_, _, consume| {
            consume.offered = Some(offering(&[GrantScope::Session], None, GrantArguments::Same));
        }),
        ("the rule wants other arguments equal", |_, _, consume| {
            consume.offered = Some(offering(&[GrantScope::Span(HOUR)], None, GrantArguments::Any));
        }),
        ("the rule limits the uses", |_, _, consume| {
            consume.offered = Some(offering(&[GrantScope::Span(HOUR)], Some(1), GrantArguments::Same));
        }),
    ];
    for (name, twist) in cases {
        let mut world = World::default();
        let terms = with(1, hourly());
        let grant = granted(&mut world, &terms, "1h");
        world.memory.now.0 += 1;
        let id = ask(&mut world, &terms, same);
        let mut late = consume(&world, &id);
        twist(&mut world, &grant, &mut late);
        assert_eq!(world.memory.run(&late), Err(NotGranted::NotAuthorised), "{name}");
    }
    let mut world = World::default();
    let terms = with(1, hourly());
    granted(&mut world, &terms, "1h");
    let id = ask(&mut world, &terms, same);
    let late = Consume {
        roll: without_dana,
        ..consume(&world, &id)
    };
    assert_eq!(
        world.memory.run(&late),
        Err(NotGranted::NotAuthorised),
        "who gave it left"
    );
}

#[test]
fn taking_a_grant_back_is_final_and_of_its_organisation() {
    let mut world = World::default();
    let terms = with(1, hourly());
    let grant = granted(&mut world, &terms, "1h");
    let revoke = |org: &str| Revoke {
        id: grant.id.clone(),
        org: Org::from(org),
        by: OperatorId::from("mira"),
    };
    assert_eq!(world.memory.run(&revoke("rival")), Revoked::NotFound);
    let Revoked::Done(first) = world.memory.run(&revoke(ORG)) else {
        panic!("it is taken back")
    };
    let again = world.memory.run(&revoke(ORG));
    assert!(
        matches!(again, Revoked::Done(second) if second.end == first.end),
        "a second time changes nothing"
    );
    assert_eq!(
        world
            .memory
            .kinds()
            .iter()
            .filter(|kind| **kind == "grant.revoked")
            .count(),
        1
    );
    let id = ask(&mut world, &terms, same);
    assert_eq!(status(&world, &id), Status::Pending);
}

fn among(id: &str) -> Approvers {
    Approvers {
        roles: vec![],
        operators: vec![id.to_owned()],
        ..Approvers::default()
    }
}

/// The rule that speaks may be the same while another one holds beside it (`Terms::also`).
#[test]
fn who_gave_a_grant_must_be_an_approver_of_every_rule_that_holds_beside() {
    for (beside, covered) in [(vec![among("dana")], true), (vec![among("mira")], false)] {
        let mut world = World::default();
        let terms = with(1, hourly());
        granted(&mut world, &terms, "1h");
        let also = Terms {
            also: beside.clone(),
            ..terms
        };
        let id = ask(&mut world, &also, same);
        assert_eq!(status(&world, &id) == Status::Approved, covered, "{beside:?}");
    }
}

#[test]
fn a_permit_by_a_grant_is_refused_when_who_gave_it_no_longer_approves_for_the_rule_beside() {
    let mut world = World::default();
    let terms = Terms {
        also: vec![Approvers {
            roles: vec!["audit".into()],
            operators: vec![],
            ..Approvers::default()
        }],
        ..with(1, hourly())
    };
    let voter = |roles: &[&str]| Voter {
        id: OperatorId::from("dana"),
        name: "Dana".into(),
        orgs: vec![Org::from(ORG)],
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
    };
    world.roll = Arc::new(Roll::new([voter(&["finance", "audit"])]));
    granted(&mut world, &terms, "1h");
    let id = ask(&mut world, &terms, same);
    assert_eq!(status(&world, &id), Status::Approved);
    let request = Consume {
        roll: Arc::new(Roll::new([voter(&["finance"])])),
        ..consume(&world, &id)
    };
    assert_eq!(world.memory.run(&request), Err(NotGranted::NotAuthorised));
    let request = consume(&world, &id);
    assert!(world.memory.run(&request).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever is asked, granted, revoked and however time passes: what a grant approved had a grant that held then, was
    /// covered by it, and never more often than it says.
    #[test]
    fn every_order_of_events_keeps_the_grants(steps in prop::collection::vec((0_u8..6, 0_u8..3), 1..40)) {
        let mut world = World::default();
        let offer = with(1, offering(&[GrantScope::Span(HOUR), GrantScope::Session], Some(3), GrantArguments::Same));
        for (step, which) in steps {
            match step {
                0 => {
                    let id = world.asked(offer.clone(), &[]);
                    let scope = [None, Some("1h"), Some("session")][usize::from(which)];
                    // A grant may have approved it before anybody could be asked.
                    if world.row(&id).deliveries.is_empty() {
                        continue;
                    }
                    answer(&mut world, &id, ["dana", "mira", "ines"][usize::from(which)], Approve, scope);
                }
                1 | 2 => {
                    let session = format!("s{which}");
                    let before = world.memory.grants.clone();
                    let id = ask(&mut world, &offer, |create| create.asked.session_id = Some(session.clone()));
                    let row = &world.row(&id).confirmation;
                    if let Some(Basis::Grant(grant)) = &row.progress.basis {
                        let grant = &before[grant];
                        prop_assert!(grant.holds(world.memory.now) && grant.uses < 3);
                        prop_assert!(grant.session_id.is_none() || grant.session_id == row.asked.session_id);
                        prop_assert_eq!(row.state.status(), Status::Approved);
                    } else {
                        prop_assert_eq!(row.state.status(), Status::Pending);
                    }
                }
                3 => world.memory.now.0 += HOUR / 2,
                4 => {
                    let due = world.memory.grants.keys().map(|id| (id.clone(), Org::from(ORG))).collect();
                    world.memory.run(&ExpireGrants { due });
                }
                _ => {
                    if let Some(id) = world.memory.grants.keys().nth(usize::from(which)).cloned() {
                        world.memory.run(&Revoke { id, org: Org::from(ORG), by: OperatorId::from("mira") });
                    }
                }
            }
        }
        for grant in world.memory.grants.values() {
            let used = world.memory.dossiers.values().filter(|dossier| dossier.confirmation.progress.basis == Some(Basis::Grant(grant.id.clone()))).count();
            prop_assert_eq!(u32::try_from(used).unwrap(), grant.uses);
            prop_assert!(grant.uses <= 3);
        }
        world.memory.assert_chains_hold();
    }
}

/// A later call is asked for by the rule alone: who was let in by a step could let none run, and is told so at once.
#[test]
fn who_was_let_in_by_a_step_grants_nothing_beyond_the_call() {
    let mut world = World::default();
    let mut terms = with(1, hourly());
    terms.after.escalate = vec![Escalation {
        after_ms: 60_000,
        approvers: Some(Approvers {
            operators: vec!["ines".to_owned()],
            ..Approvers::default()
        }),
        ..Escalation::default()
    }];
    for (person, scope, ruling) in [
        ("ines", Some("1h"), Ruling::Refused(Refusal::GrantNotOffered)),
        ("ines", None, Ruling::Settled),
        ("dana", Some("1h"), Ruling::Settled),
    ] {
        let id = world.asked(terms.clone(), &[]);
        let stored = world.memory.dossiers.get_mut(&id).expect("it is stored");
        stored.confirmation.progress.escalated = 1;
        assert_eq!(
            answer(&mut world, &id, person, Approve, scope),
            ruling,
            "{person}"
        );
        let granted = &world.row(&id).confirmation.progress.granted;
        assert_eq!(granted.is_some(), person == "dana");
    }
}
