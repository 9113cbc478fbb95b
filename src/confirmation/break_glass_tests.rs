//! Break-glass: what it goes past, what it does not, how often, and who hears of it.

use std::sync::Arc;

use gatepost_channel::Decision::{self, Approve, Reject};
use gatepost_channel::UtcMillis;

use super::break_glass::{Glass, GlassNotice};
use super::consume::{Consume, NotGranted};
use super::decide::{Backing, Ballot, Decide, Refusal, Ruling, Surface, Target};
use super::fixture::{ORG, TIMEOUT, World, terms};
use super::roll::{Found, Roll, Standing, Voter};
use super::{Basis, Status};
use crate::audit::Opening;
use crate::delivery::Errand;
use crate::gate::Terms;
use crate::gate::authority::{BreakGlass, StepUp};
use crate::gate::code::CodeKey;
use crate::gate::duty::{Absence, Absences};
use crate::gate::policy::Approvers;
use crate::ids::{ChannelName, ConfirmationId, OperatorId, Org, OutboxId, PermitId, TokenName};

/// A window in which one use counts, in milliseconds.
const WINDOW: i64 = 600_000;

fn glass() -> BreakGlass {
    BreakGlass {
        lists: vec![Approvers {
            roles: vec!["sales".into()],
            ..Approvers::default()
        }],
        uses: 1,
        per_ms: WINDOW,
    }
}

/// Two of finance must approve; sales may break the glass.
fn guarded() -> Terms {
    let mut terms = terms(2);
    terms.decision.break_glass = Some(glass());
    terms
}

fn breaks(world: &mut World, id: &ConfirmationId, person: &str, reason: &str) -> Decide {
    let notices = ["dana", "mira", "tomas"].map(|person| GlassNotice {
        id: OutboxId::fresh(&world.ids),
        person: OperatorId::from(person),
        channel: ChannelName::from("chat-a"),
        errand: Errand::Notice {
            user: format!("U-{person}"),
            chat: "chat-a".into(),
            text: "passed over".into(),
        },
    });
    Decide {
        target: Target::Request {
            id: id.clone(),
            org: Org::from(ORG),
        },
        reason: Some(Opening::new(reason, &world.ids)),
        surface: Surface::Api,
        backing: Backing {
            code: None,
            glass: Some(Glass {
                rule: Some("big".into()),
                notices: notices.to_vec(),
            }),
        },
        ..world.press(id, 0, Ballot::Person(OperatorId::from(person)), Approve)
    }
}

fn broken(world: &mut World, id: &ConfirmationId, person: &str) -> Ruling {
    let decide = breaks(world, id, person, "the plant stands still");
    world.memory.run(&decide).ruling
}

fn told(world: &World) -> Vec<&str> {
    let mut told: Vec<&str> = world
        .memory
        .outbox
        .values()
        .filter_map(|item| match &item.errand {
            Errand::Notice { user, .. } => Some(user.as_str()),
            _ => None,
        })
        .collect();
    told.sort_unstable();
    told
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
fn one_person_approves_alone_and_all_five_things_follow() {
    let mut world = World::default();
    let id = world.asked(guarded(), &[]);
    assert_eq!(world.click(&id, 0, "mira", Approve).ruling, Ruling::Counted);
    assert_eq!(broken(&mut world, &id, "ines"), Ruling::Settled);
    let row = &world.row(&id).confirmation;
    assert_eq!(row.state.status(), Status::Approved);
    // On record with the reason and with whom it went past; a badge is made of it.
    let Some(Basis::BreakGlass(stored)) = &row.progress.basis else {
        panic!("{:?}", row.progress)
    };
    assert_eq!(
        (stored.person.as_str(), stored.reason.as_str()),
        ("ines", "the plant stands still")
    );
    let passed: Vec<&str> = stored.passed_over.iter().map(OperatorId::as_str).collect();
    assert_eq!(passed, ["dana", "tomas"], "mira has approved");
    assert_eq!(told(&world), ["U-dana", "U-tomas"], "in the same transaction");
    let kinds = world.memory.kinds();
    assert_eq!(
        kinds[kinds.len() - 2..],
        ["confirmation.break_glass", "confirmation.approved"]
    );
    let event = world.memory.events.last().expect("an event");
    assert!(event.data.contains(r#""break_glass":"ines""#), "{}", event.data);
    assert_eq!(world.row(&id).votes.len(), 1, "it is no vote");
    let request = consume(&world, &id);
    assert!(world.memory.run(&request).is_ok());
    assert_eq!(world.memory.run(&request), Err(NotGranted::AlreadyConsumed));
    world.memory.assert_chains_hold();
}

#[test]
fn it_lifts_neither_the_ban_on_self_approval_nor_a_deadline_nor_a_deny_rule_nor_the_digest() {
    let mut own = World::default();
    let id = own.asked(guarded(), &["ines"]);
    assert_eq!(broken(&mut own, &id, "ines"), refused(Refusal::SelfApproval));
    let mut late = World::default();
    let id = late.asked(guarded(), &[]);
    late.memory.now.0 += TIMEOUT;
    assert_eq!(broken(&mut late, &id, "ines"), refused(Refusal::Expired));
    let mut rejected = World::default();
    let id = rejected.asked(guarded(), &[]);
    assert_eq!(rejected.click(&id, 0, "dana", Reject).ruling, Ruling::Settled);
    assert_eq!(
        broken(&mut rejected, &id, "ines"),
        refused(Refusal::AlreadySettled)
    );

    let mut denied = World::default();
    let id = denied.asked(guarded(), &[]);
    assert_eq!(broken(&mut denied, &id, "ines"), Ruling::Settled);
    let request = Consume {
        denied_by: Some("no-payments".into()),
        ..consume(&denied, &id)
    };
    assert_eq!(denied.memory.run(&request), Err(NotGranted::DeniedByRule));
    let other =
        crate::gate::Arguments::read(b"{\"amount\":1}", crate::gate::json::ReadLimits::bytes(100)).unwrap();
    let request = Consume {
        digest: crate::gate::Digest::of(&"pay".parse().unwrap(), &other),
        ..consume(&denied, &id)
    };
    assert_eq!(denied.memory.run(&request), Err(NotGranted::ArgsChanged));
}

#[test]
fn only_those_named_for_it_may_with_words_and_where_the_rule_offers_it() {
    for (person, reason, expected) in [
        ("dana", "because", Refusal::NotAuthorised),
        ("nobody", "because", Refusal::NotAuthorised),
        ("ines", "", Refusal::ReasonRequired),
        ("ines", " ... ", Refusal::ReasonRequired),
    ] {
        let mut world = World::default();
        let id = world.asked(guarded(), &[]);
        let decide = breaks(&mut world, &id, person, reason);
        assert_eq!(world.memory.run(&decide).ruling, refused(expected), "{person}");
        assert_eq!(world.row(&id).confirmation.state.status(), Status::Pending);
        assert_eq!(world.last_refusal().as_deref(), Some(expected.as_str()));
        assert_eq!(told(&world), [""; 0]);
    }
    let mut plain = World::default();
    let id = plain.asked(terms(2), &[]);
    assert_eq!(
        broken(&mut plain, &id, "ines"),
        refused(Refusal::BreakGlassNotOffered)
    );
    // A press is never one: only who names the request by id can say it.
    let mut pressed = World::default();
    let id = pressed.asked(guarded(), &[]);
    let press = pressed.press(&id, 0, Ballot::Person(OperatorId::from("ines")), Approve);
    let act = breaks(&mut pressed, &id, "ines", "because");
    let press = Decide {
        backing: act.backing,
        reason: act.reason,
        ..press
    };
    assert_eq!(
        pressed.memory.run(&press).ruling,
        refused(Refusal::BreakGlassNotOffered)
    );
    // Nor does a no become one.
    let mut no = World::default();
    let id = no.asked(guarded(), &[]);
    let decide = Decide {
        decision: Decision::Reject,
        ..breaks(&mut no, &id, "ines", "because")
    };
    assert_eq!(
        no.memory.run(&decide).ruling,
        refused(Refusal::BreakGlassNotOffered)
    );
}

#[test]
fn uses_are_counted_under_the_rule_and_in_time() {
    let mut world = World::default();
    let ids: Vec<_> = (0..3)
        .map(|_| {
            let mut terms = guarded();
            terms.timeout_ms = 10 * WINDOW;
            world.asked(terms, &[])
        })
        .collect();
    assert_eq!(broken(&mut world, &ids[0], "ines"), Ruling::Settled);
    world.memory.now.0 += WINDOW - 1;
    assert_eq!(
        broken(&mut world, &ids[1], "ines"),
        refused(Refusal::BreakGlassUsedUp)
    );
    world.memory.now.0 += 1;
    assert_eq!(broken(&mut world, &ids[1], "ines"), Ruling::Settled);
    assert_eq!(
        broken(&mut world, &ids[2], "ines"),
        refused(Refusal::BreakGlassUsedUp)
    );
}

#[test]
fn nobody_breaks_it_in_somebodys_place_or_against_their_own_no() {
    let span = Absence {
        from: UtcMillis(0),
        until: UtcMillis(i64::MAX),
        substitute: "dana".into(),
    };
    let voter = |id: &str, role: &str| Voter {
        id: OperatorId::from(id),
        name: id.into(),
        orgs: vec![Org::from(ORG)],
        roles: vec![role.into()],
    };
    let people = ["dana", "mira", "tomas"].map(|id| voter(id, "finance"));
    let roll = Roll::new(people.into_iter().chain([voter("ines", "sales")]))
        .with_absences(Absences::new([("ines".to_owned(), vec![span])]));
    let mut away = World::default();
    away.roll = Arc::new(roll);
    let id = away.asked(guarded(), &[]);
    assert_eq!(broken(&mut away, &id, "dana"), refused(Refusal::NotAuthorised));

    let mut terms = guarded();
    terms.deny_threshold = 2;
    terms.decision.break_glass = Some(BreakGlass {
        lists: vec![terms.approvers.clone()],
        ..glass()
    });
    let mut no = World::default();
    let id = no.asked(terms.clone(), &[]);
    assert_eq!(no.click(&id, 0, "dana", Reject).ruling, Ruling::Counted);
    assert_eq!(broken(&mut no, &id, "dana"), refused(Refusal::AlreadyVoted));
    // What they said by another account stands too: persons count, not ids.
    let found = |id: &str, also: &[&str]| Found {
        voter: voter(id, "finance"),
        also: also.iter().map(|id| OperatorId::from(*id)).collect(),
        standing: Standing::Good,
        perhaps: vec![],
    };
    let mut twice = World::default();
    let base = Arc::clone(&twice.roll);
    let id = twice.asked(terms.clone(), &[]);
    twice.roll = Arc::new(base.with([found("chat:U9", &[])]));
    assert_eq!(twice.click(&id, 0, "chat:U9", Reject).ruling, Ruling::Counted);
    twice.roll = Arc::new(base.with([found("dana", &["chat:U9"])]));
    assert_eq!(broken(&mut twice, &id, "dana"), refused(Refusal::AlreadyVoted));
    // Who approved already, and waits in vain for a second one, may.
    let mut yes = World::default();
    let id = yes.asked(terms, &[]);
    assert_eq!(yes.click(&id, 0, "dana", Approve).ruling, Ruling::Counted);
    assert_eq!(broken(&mut yes, &id, "dana"), Ruling::Settled);
}

#[test]
fn who_broke_it_is_asked_about_again_when_the_call_runs() {
    let mut world = World::default();
    let id = world.asked(guarded(), &[]);
    assert_eq!(broken(&mut world, &id, "ines"), Ruling::Settled);
    let voter = |roles: &[&str]| Voter {
        id: OperatorId::from("ines"),
        name: "ines".into(),
        orgs: vec![Org::from(ORG)],
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
    };
    for roll in [Roll::default(), Roll::new([voter(&["finance"])])] {
        let request = Consume {
            roll: Arc::new(roll),
            ..consume(&world, &id)
        };
        assert_eq!(world.memory.run(&request), Err(NotGranted::NotAuthorised));
    }
    let request = Consume {
        roll: Arc::new(Roll::new([voter(&["sales"])])),
        ..consume(&world, &id)
    };
    assert!(world.memory.run(&request).is_ok());
}

#[test]
fn a_rule_that_asks_for_codes_asks_here_too() {
    let key = CodeKey::from_base32(&"A".repeat(32)).unwrap();
    let mut terms = guarded();
    terms.decision.step_up = StepUp {
        code: true,
        second_person: true,
    };
    let mut world = World::default();
    world.memory.now = UtcMillis(1_800_000_000_000);
    let id = world.asked(terms, &[]);
    assert_eq!(broken(&mut world, &id, "ines"), refused(Refusal::CodeNotSetUp));
    world.roll = Arc::new(
        (*world.roll)
            .clone()
            .with_codes([(OperatorId::from("ines"), key.clone())]),
    );
    assert_eq!(broken(&mut world, &id, "ines"), refused(Refusal::CodeRequired));
    let mut decide = breaks(&mut world, &id, "ines", "because");
    decide.backing.code = Some("000".into());
    assert_eq!(world.memory.run(&decide).ruling, refused(Refusal::WrongCode));
    let mut decide = breaks(&mut world, &id, "ines", "because");
    decide.backing.code = Some(key.shown_at(world.memory.now));
    assert_eq!(
        world.memory.run(&decide).ruling,
        Ruling::Settled,
        "a second person is what it goes past"
    );
    let request = consume(&world, &id);
    assert!(world.memory.run(&request).is_ok());
}
