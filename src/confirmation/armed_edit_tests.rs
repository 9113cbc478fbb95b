//! Arguments that are changed where an approval only arms: they are what is completed.

use std::sync::Arc;

use gatepost_channel::Decision::Approve;
use gatepost_channel::UtcMillis;

use super::decide::{Backing, Ballot, Decide, Refusal, Ruling, Surface};
use super::edit_tests::{PROPOSED, amount, answer, consume, editable, revised};
use super::fixture::World;
use super::step_up::Waiting;
use crate::gate::authority::StepUp;
use crate::gate::code::CodeKey;
use crate::ids::{ConfirmationId, OperatorId};

/// The one-time codes of everybody here, and a request that asks for more than a press.
fn stepped_up(step_up: StepUp) -> (World, ConfirmationId, CodeKey) {
    let mut world = World::default();
    world.memory.now = UtcMillis(1_800_000_000_000);
    let key = CodeKey::from_base32(&"D".repeat(32)).expect("a secret");
    let codes = ["dana", "mira"].map(|person| (OperatorId::from(person), key.clone()));
    world.roll = Arc::new((*world.roll).clone().with_codes(codes));
    let mut terms = editable(1);
    terms.decision.step_up = step_up;
    let id = world.asked(terms, &[]);
    (world, id, key)
}

/// What is approved in a chat is armed there, changed arguments with it: nothing else can be completed afterwards.
#[test]
fn arguments_that_are_changed_where_an_approval_is_only_armed_are_what_is_completed() {
    for (code, second_person) in [(true, false), (false, true), (true, true)] {
        let (mut world, id, key) = stepped_up(StepUp { code, second_person });
        let first = if code {
            Waiting::Code
        } else {
            Waiting::SecondPerson
        };
        assert_eq!(world.click(&id, 0, "dana", Approve).ruling, Ruling::Armed(first));
        // Armed already, but for something else.
        let changes = Decide {
            edit: Some(Ok(revised(&world, &id, &amount(4000)))),
            surface: Surface::FullView,
            ..world.press(&id, 0, Ballot::Person(OperatorId::from("dana")), Approve)
        };
        assert_eq!(world.memory.run(&changes).ruling, Ruling::Armed(first));
        let row = &world.row(&id).confirmation;
        assert_eq!(row.call().args, amount(4000));
        let armed: Vec<_> = row.progress.armed.iter().map(|arm| arm.edit).collect();
        assert_eq!(armed, [1], "what was armed before the edit lapsed");
        let completes = |world: &mut World, person: &str, seen: Option<u32>| {
            let decide = Decide {
                seen,
                backing: Backing {
                    code: code.then(|| key.shown_at(world.memory.now)),
                    glass: None,
                },
                ..answer(world, &id, person, Approve)
            };
            world.memory.run(&decide).ruling
        };
        for seen in [None, Some(0)] {
            assert_eq!(
                completes(&mut world, "dana", seen),
                Ruling::Refused(Refusal::EditUnseen)
            );
        }
        if code {
            let next = completes(&mut world, "dana", Some(1));
            let wanted = if second_person {
                Ruling::Armed(Waiting::SecondPerson)
            } else {
                Ruling::Settled
            };
            assert_eq!(next, wanted);
        }
        if second_person {
            assert_eq!(completes(&mut world, "mira", Some(1)), Ruling::Settled);
        }
        let vote = &world.row(&id).votes[0];
        assert_eq!((vote.person.as_str(), vote.content.edit), ("dana", 1));
        assert_eq!(consume(&mut world, &id, PROPOSED).unwrap().args, amount(4000));
        world.memory.assert_chains_hold();
    }
}
