use std::sync::Arc;

use gatepost_channel::Decision::{Approve, Reject};
use gatepost_channel::{Decision, MessageRef};
use proptest::prelude::*;

use super::cancel::{Cancel, Cancelled};
use super::consume::{Consume, NotGranted};
use super::decide::{Ballot, Decide, Refusal, Ruling, Surface, Target};
use super::expire::Expire;
use super::fixture::{ORG, TIMEOUT, World, terms};
use super::outcome::{Report, Reported};
use super::roll::Roll;
use super::{DeliveryState, Outcome, OutcomeStatus, Status};
use crate::gate::Digest;
use crate::ids::{ConfirmationId, OperatorId, Org, PermitId, TokenName};

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

fn status(world: &World, id: &ConfirmationId) -> Status {
    world.row(id).confirmation.state.status()
}

#[test]
fn a_vote_settles_every_card_and_leaves_its_events() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    assert_eq!(world.click(&id, 0, "dana", Approve).ruling, Ruling::Settled);
    assert_eq!(status(&world, &id), Status::Approved);
    assert_eq!(
        world.memory.outbox.len(),
        2,
        "both cards are to be edited, whichever was clicked"
    );
    assert_eq!(
        world.memory.kinds(),
        ["confirmation.created", "vote.cast", "confirmation.approved"]
    );
    world.memory.assert_chains_hold();
}

#[test]
fn a_quorum_counts_persons_who_may_decide() {
    let mut world = World::default();
    let id = world.asked(terms(2), &["ines"]);
    assert_eq!(world.click(&id, 0, "mira", Approve).ruling, Ruling::Counted);
    assert_eq!(
        world.click(&id, 0, "mira", Approve).ruling,
        Ruling::Refused(Refusal::AlreadyVoted)
    );
    assert_eq!(
        world.click(&id, 1, "mira", Reject).ruling,
        Ruling::Refused(Refusal::AlreadyVoted)
    );
    assert_eq!(
        world.click(&id, 1, "ines", Approve).ruling,
        Ruling::Refused(Refusal::NotAuthorised)
    );
    assert_eq!(status(&world, &id), Status::Pending);
    assert_eq!(world.click(&id, 1, "tomas", Approve).ruling, Ruling::Settled);
    assert_eq!(world.row(&id).votes.len(), 2);
}

#[test]
fn one_rejection_settles_unless_a_rule_asks_for_more() {
    let mut world = World::default();
    let id = world.asked(terms(2), &[]);
    assert_eq!(world.click(&id, 0, "mira", Approve).ruling, Ruling::Counted);
    assert_eq!(world.click(&id, 0, "tomas", Reject).ruling, Ruling::Settled);
    assert_eq!(status(&world, &id), Status::Rejected);
    let mut vetoes = terms(1);
    vetoes.deny_threshold = 2;
    let id = world.asked(vetoes, &[]);
    assert_eq!(world.click(&id, 0, "tomas", Reject).ruling, Ruling::Counted);
    assert_eq!(world.click(&id, 0, "dana", Reject).ruling, Ruling::Settled);
}

#[test]
fn every_surface_ends_in_the_same_refusals() {
    for surface in Surface::ALL {
        for (person, persons, late, expected) in [
            ("ines", &[][..], false, Refusal::NotAuthorised),
            ("nobody", &[], false, Refusal::NotAuthorised),
            ("dana", &["dana"], false, Refusal::SelfApproval),
            ("dana", &[], true, Refusal::Expired),
        ] {
            let mut world = World::default();
            let id = world.asked(terms(1), persons);
            if late {
                world.memory.now.0 += TIMEOUT;
            }
            let mut decide = world.press(&id, 0, Ballot::Person(OperatorId::from(person)), Approve);
            if !matches!(surface, Surface::Card | Surface::FullView) {
                decide.target = Target::Request {
                    id: id.clone(),
                    org: Org::from(ORG),
                };
            }
            decide.surface = surface;
            assert_eq!(
                world.memory.run(&decide).ruling,
                Ruling::Refused(expected),
                "{surface:?} {person}"
            );
            assert_eq!(world.last_refusal().as_deref(), Some(expected.as_str()));
            assert!(world.row(&id).votes.is_empty(), "a refused answer casts no vote");
        }
    }
}

#[test]
fn a_person_behind_the_call_may_still_refuse_it_and_a_rule_may_let_them_approve() {
    let mut world = World::default();
    let id = world.asked(terms(1), &["dana"]);
    assert_eq!(world.click(&id, 0, "dana", Reject).ruling, Ruling::Settled);
    let mut own = terms(1);
    own.self_approval = true;
    let id = world.asked(own, &["dana"]);
    assert_eq!(world.click(&id, 0, "dana", Approve).ruling, Ruling::Settled);
}

#[test]
fn a_click_that_does_not_belong_to_its_card_changes_nothing() {
    type Twist = fn(&mut Decide);
    fn clicked(decide: &mut Decide) -> &mut super::decide::Clicked {
        match &mut decide.target {
            Target::Card(clicked) => clicked,
            Target::Request { .. } | Target::Command(_) => panic!("a card was clicked"),
        }
    }
    let cases: [(Refusal, Twist); 7] = [
        (Refusal::UnknownCard, |d| clicked(d).token = None),
        (Refusal::UnknownCard, |d| clicked(d).token = Some([9; 32])),
        (Refusal::OtherChannel, |d| clicked(d).channel = "chat-b".into()),
        (Refusal::OtherChannel, |d| clicked(d).org = Org::from("rival")),
        (Refusal::OtherMessage, |d| {
            clicked(d).at = MessageRef {
                chat: "chat-a".into(),
                message: "forged".into(),
            }
        }),
        (Refusal::OutdatedCard, |d| clicked(d).revision = 0),
        (Refusal::UnknownOperator, |d| {
            d.ballot = Ballot::Stranger("U999".into());
        }),
    ];
    for (expected, twist) in cases {
        let mut world = World::default();
        let id = world.asked(terms(1), &[]);
        let mut decide = world.press(&id, 0, Ballot::Person(OperatorId::from("dana")), Approve);
        twist(&mut decide);
        let decided = world.memory.run(&decide);
        assert_eq!(decided.ruling, Ruling::Refused(expected));
        assert_eq!(status(&world, &id), Status::Pending);
        assert_eq!(world.last_refusal().as_deref(), Some(expected.as_str()));
        let event = world.memory.events.last().expect("it is audited");
        if event.org != Org::from(ORG) {
            assert_eq!(
                event.confirmation, None,
                "another organisation does not learn of the request"
            );
            assert!(decided.dossier.is_none());
        }
    }
}

#[test]
fn a_card_that_does_not_show_everything_can_only_be_rejected() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    world.memory.dossiers.get_mut(&id).expect("stored").deliveries[0].approvable = false;
    assert_eq!(
        world.click(&id, 0, "dana", Approve).ruling,
        Ruling::Refused(Refusal::PartialView)
    );
    assert_eq!(world.click(&id, 0, "dana", Reject).ruling, Ruling::Settled);
}

#[test]
fn a_message_whose_content_was_refused_can_only_be_rejected() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    let minimal = |world: &mut World, minimal| {
        let card = &mut world.memory.dossiers.get_mut(&id).expect("stored").deliveries[0];
        card.standing[0].minimal = minimal;
    };
    minimal(&mut world, true);
    assert_eq!(
        world.click(&id, 0, "dana", Approve).ruling,
        Ruling::Refused(Refusal::PartialView)
    );
    minimal(&mut world, false);
    assert_eq!(world.click(&id, 0, "dana", Approve).ruling, Ruling::Settled);

    let id = world.asked(terms(1), &[]);
    let card = &mut world.memory.dossiers.get_mut(&id).expect("stored").deliveries[0];
    card.standing[0].minimal = true;
    assert_eq!(
        world.click(&id, 1, "dana", Approve).ruling,
        Ruling::Settled,
        "the other channel shows everything"
    );
}

#[test]
fn an_unlisted_message_counts_only_while_a_post_is_unknown_and_is_recorded() {
    for (state, unheard, counts) in [
        (DeliveryState::Sending, false, true),
        (DeliveryState::Queued, false, false),
        (DeliveryState::Posted, false, false),
        (DeliveryState::Queued, true, true),
        (DeliveryState::Posted, true, true),
    ] {
        let mut world = World::default();
        let id = world.asked(terms(1), &[]);
        let card = &mut world.memory.dossiers.get_mut(&id).expect("stored").deliveries[0];
        card.state = state;
        card.unheard = unheard;
        card.standing.clear();
        let ruling = world.click(&id, 0, "dana", Approve).ruling;
        assert_eq!(ruling == Ruling::Settled, counts, "{state:?} {unheard}");
        let card = &world.row(&id).deliveries[0];
        assert_eq!(card.standing.len(), usize::from(counts));
        assert!(!card.unheard, "one message, and not another one after it");
    }
}

#[test]
fn an_exact_repeat_changes_nothing_and_hears_the_first_answer() {
    let mut world = World::default();
    let id = world.asked(terms(2), &[]);
    let decide = world.press(&id, 0, Ballot::Person(OperatorId::from("dana")), Approve);
    assert_eq!(world.memory.run(&decide).ruling, Ruling::Counted);
    let events = world.memory.events.len();
    assert_eq!(
        world.memory.run(&decide).ruling,
        Ruling::Replayed("counted".into())
    );
    assert_eq!(world.memory.events.len(), events + 1);
    assert_eq!(world.last_refusal().as_deref(), Some("replayed"));
    assert!(
        world.memory.replays[0].forget_at > world.row(&id).confirmation.expires_at,
        "it is remembered as long as the request can live"
    );
}

#[test]
fn the_deadline_is_exact_and_a_late_click_ends_the_request_as_expired() {
    for (offset, expected) in [(-1, Status::Approved), (0, Status::Expired), (1, Status::Expired)] {
        let mut world = World::default();
        let id = world.asked(terms(1), &[]);
        world.memory.now.0 += TIMEOUT + offset;
        world.click(&id, 0, "dana", Approve);
        assert_eq!(status(&world, &id), expected, "{offset} ms");
        let kinds = world.memory.kinds();
        assert_eq!(
            kinds.contains(&"confirmation.approved"),
            expected == Status::Approved
        );
        let decided_at = world
            .row(&id)
            .confirmation
            .state
            .decided_at()
            .expect("it is decided");
        assert!(decided_at <= world.row(&id).confirmation.expires_at);
    }
}

#[test]
fn a_request_that_reached_nobody_ends_undeliverable_at_its_deadline() {
    for (state, standing, expected) in [
        (DeliveryState::Queued, false, Status::Undeliverable),
        (DeliveryState::Sending, false, Status::Expired),
        (DeliveryState::Posted, true, Status::Expired),
    ] {
        let mut world = World::default();
        let id = world.asked(terms(1), &[]);
        for card in &mut world.memory.dossiers.get_mut(&id).expect("stored").deliveries {
            card.state = state;
            if !standing {
                card.standing.clear();
            }
        }
        world.memory.now.0 += TIMEOUT;
        assert_eq!(world.memory.run(&Expire { limit: 10 }), 1);
        assert_eq!(status(&world, &id), expected);
    }
}

#[test]
fn a_permit_is_for_the_asker_the_call_and_once() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    let early = consume(&world, &id);
    assert_eq!(
        world.memory.run(&early),
        Err(NotGranted::NotApproved(Status::Pending))
    );
    world.click(&id, 0, "dana", Approve);
    let other = Consume {
        token: TokenName::from("other"),
        ..consume(&world, &id)
    };
    assert_eq!(world.memory.run(&other), Err(NotGranted::NotFound));
    let tool = "pay".parse().expect("a name");
    let args = crate::gate::Arguments::read(br#"{"amount":60001}"#, crate::gate::json::ReadLimits::bytes(99))
        .expect("arguments");
    let changed = Consume {
        digest: Digest::of(&tool, &args),
        ..consume(&world, &id)
    };
    assert_eq!(world.memory.run(&changed), Err(NotGranted::ArgsChanged));
    let denied = Consume {
        denied_by: Some("freeze".into()),
        ..consume(&world, &id)
    };
    assert_eq!(world.memory.run(&denied), Err(NotGranted::DeniedByRule));
    let nobody = Consume {
        roll: Arc::new(Roll::default()),
        ..consume(&world, &id)
    };
    assert_eq!(world.memory.run(&nobody), Err(NotGranted::NotAuthorised));
    let first = consume(&world, &id);
    let granted = world.memory.run(&first).expect("none of that used it up");
    assert_eq!(granted.args, r#"{"amount":60000}"#);
    let second = consume(&world, &id);
    assert_eq!(world.memory.run(&second), Err(NotGranted::AlreadyConsumed));
    let refused = world
        .memory
        .kinds()
        .iter()
        .filter(|kind| **kind == "permit.refused")
        .count();
    assert_eq!(
        refused, 5,
        "every refusal is on record, but not what a stranger asks about"
    );
}

#[test]
fn a_permit_grows_old() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    world.click(&id, 0, "dana", Approve);
    world.memory.now.0 += 3_600_000;
    let late = consume(&world, &id);
    assert_eq!(world.memory.run(&late), Err(NotGranted::PermitExpired));
}

#[test]
fn withdrawing_is_for_the_asker_and_not_for_what_is_settled() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    let cancel = |token: &str| Cancel {
        id: id.clone(),
        org: Org::from(ORG),
        token: TokenName::from(token),
    };
    let namesake = Org::from("elsewhere");
    assert_eq!(world.memory.run(&cancel("other")), Cancelled::NotFound);
    let elsewhere = Cancel {
        org: namesake.clone(),
        ..cancel("agent")
    };
    assert_eq!(
        world.memory.run(&elsewhere),
        Cancelled::NotFound,
        "a token of the same name in another organisation"
    );
    let report = Report {
        id: id.clone(),
        org: namesake,
        token: TokenName::from("agent"),
        outcome: Outcome {
            status: OutcomeStatus::Succeeded,
            detail: None,
        },
        detail: None,
    };
    assert_eq!(world.memory.run(&report), Reported::NotFound);
    let ours = Report {
        org: Org::from(ORG),
        ..report
    };
    assert!(matches!(world.memory.run(&ours), Reported::NotConsumed(_)));
    assert!(matches!(world.memory.run(&cancel("agent")), Cancelled::Done(_)));
    assert_eq!(
        world.click(&id, 0, "dana", Approve).ruling,
        Ruling::Refused(Refusal::AlreadySettled)
    );
    assert_eq!(status(&world, &id), Status::Cancelled);
}

/// One thing that may happen to a request.
#[derive(Debug, Clone)]
enum Event {
    Click(usize, &'static str, Decision),
    Cancel,
    Wait(i64),
    Expire,
    Consume,
}

fn event() -> impl Strategy<Value = Event> {
    let person = prop::sample::select(vec!["dana", "mira", "tomas", "ines"]);
    let decision = prop::sample::select(vec![Approve, Reject]);
    prop_oneof![
        4 => (0_usize..2, person, decision).prop_map(|(channel, person, decision)| Event::Click(channel, person, decision)),
        1 => Just(Event::Cancel),
        1 => (1_i64..TIMEOUT).prop_map(Event::Wait),
        1 => Just(Event::Expire),
        2 => Just(Event::Consume),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever happens in whatever order: one final state, reached as the votes say, at most one permit, a true chain.
    #[test]
    fn every_order_of_events_keeps_the_rules(quorum in 1_u32..4, events in prop::collection::vec(event(), 1..24)) {
        let mut world = World::default();
        let id = world.asked(terms(quorum), &[]);
        let mut granted = 0;
        for event in events {
            let before = status(&world, &id);
            match event {
                Event::Click(channel, person, decision) => { world.click(&id, channel, person, decision); }
                Event::Cancel => { let cancel = Cancel { id: id.clone(), org: Org::from(ORG), token: TokenName::from("agent") }; world.memory.run(&cancel); }
                Event::Wait(by) => world.memory.now.0 += by,
                Event::Expire => { world.memory.run(&Expire { limit: 8 }); }
                Event::Consume => { let consume = consume(&world, &id); granted += u32::from(world.memory.run(&consume).is_ok()); }
            }
            let after = status(&world, &id);
            prop_assert!(before == Status::Pending || before == after, "a final state is final");
        }
        let row = world.row(&id);
        let votes = |decision| u32::try_from(row.votes.iter().filter(|vote| vote.decision == decision).count()).unwrap();
        match status(&world, &id) {
            Status::Approved => prop_assert!(votes(Approve) == quorum && votes(Reject) == 0),
            Status::Rejected => prop_assert!(votes(Reject) == 1),
            _ => prop_assert!(votes(Approve) < quorum && votes(Reject) == 0),
        }
        prop_assert!(granted <= 1);
        prop_assert!(granted == 0 || status(&world, &id) == Status::Approved);
        let decided = world.memory.kinds().iter().filter(|kind| kind.starts_with("confirmation.") && **kind != "confirmation.created").count();
        prop_assert_eq!(decided, usize::from(status(&world, &id) != Status::Pending));
        world.memory.assert_chains_hold();
    }
}

/// Terms of two rules that hold together: who is an approver of one only, decides nothing.
#[test]
fn whoever_decides_is_an_approver_of_every_rule_that_holds() {
    let mut world = World::default();
    let mut both = terms(1);
    both.also = vec![crate::gate::policy::Approvers {
        roles: vec![],
        operators: vec!["mira".into()],
        ..crate::gate::policy::Approvers::default()
    }];
    let id = world.asked(both, &[]);
    for decision in [Approve, Reject] {
        let decided = world.click(&id, 0, "dana", decision);
        assert_eq!(decided.ruling, Ruling::Refused(Refusal::NotAuthorised));
    }
    assert_eq!(world.click(&id, 0, "mira", Approve).ruling, Ruling::Settled);
}
