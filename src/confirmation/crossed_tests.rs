//! Answers that crossed each other: two people whom only look-ups know, each judged without the other.

use std::sync::Arc;

use gatepost_channel::Decision::{self, Approve, Reject};

use crate::confirmation::Status;
use crate::confirmation::decide::{Ballot, Refusal, Ruling};
use crate::confirmation::fixture::{ORG, World, terms};
use crate::confirmation::roll::{Roll, Voter};
use crate::gate::Terms;
use crate::ids::{ConfirmationId, OperatorId, Org};

/// What a press comes to when only these people are known to it.
fn press(world: &mut World, id: &ConfirmationId, person: &str, decision: Decision, known: &[&str]) -> Ruling {
    let mut press = world.press(id, 0, Ballot::Person(OperatorId::from(person)), decision);
    let people = known.iter().map(|id| Voter {
        id: OperatorId::from(*id),
        name: (*id).to_owned(),
        orgs: vec![Org::from(ORG)],
        roles: vec!["finance".to_owned()],
    });
    press.roll = Arc::new(Roll::new(people));
    world.memory.run(&press).ruling
}

fn status(world: &World, id: &ConfirmationId) -> Status {
    world.row(id).confirmation.state.status()
}

#[test]
fn whoever_presses_again_finds_both() {
    for (decision, settled) in [(Approve, Status::Approved), (Reject, Status::Rejected)] {
        let mut world = World::default();
        let crossing = Terms {
            deny_threshold: 2,
            ..terms(2)
        };
        let id = world.asked(crossing, &[]);
        assert_eq!(
            press(&mut world, &id, "dana", decision, &["dana"]),
            Ruling::Counted
        );
        assert_eq!(
            press(&mut world, &id, "mira", decision, &["mira"]),
            Ruling::Counted
        );
        assert_eq!(status(&world, &id), Status::Pending);
        // Judged without the other once more, nothing changes; nor does a change of mind.
        let voted = Ruling::Refused(Refusal::AlreadyVoted);
        assert_eq!(press(&mut world, &id, "mira", decision, &["mira"]), voted);
        let other = if decision == Approve { Reject } else { Approve };
        assert_eq!(press(&mut world, &id, "mira", other, &["dana", "mira"]), voted);
        assert_eq!(status(&world, &id), Status::Pending);
        assert_eq!(
            press(&mut world, &id, "mira", decision, &["dana", "mira"]),
            Ruling::Settled
        );
        assert_eq!(status(&world, &id), settled);
        assert_eq!(world.row(&id).votes.len(), 2, "nobody voted twice");
        world.memory.assert_chains_hold();
    }
}

#[test]
fn pressing_again_is_no_second_vote() {
    let mut world = World::default();
    let id = world.asked(terms(2), &[]);
    let known = ["dana", "mira"];
    assert_eq!(press(&mut world, &id, "dana", Approve, &known), Ruling::Counted);
    for _ in 0..3 {
        assert_eq!(
            press(&mut world, &id, "dana", Approve, &known),
            Ruling::Refused(Refusal::AlreadyVoted)
        );
    }
    assert_eq!(status(&world, &id), Status::Pending);
}
