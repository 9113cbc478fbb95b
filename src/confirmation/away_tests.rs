//! Absences that people set themselves: what may be set, what it gives the substitute, and what stays of it.

use std::sync::Arc;

use gatepost_channel::Decision::Approve;
use gatepost_channel::UtcMillis;

use super::*;
use crate::confirmation::consume::{Consume, NotGranted};
use crate::confirmation::decide::{Refusal, Ruling};
use crate::confirmation::fixture::{ORG, World, terms};
use crate::confirmation::live::LiveRoll;
use crate::confirmation::roll::Voter;
use crate::gate::duty::Absences;
use crate::ids::{ConfirmationId, PermitId, TokenName};
use crate::storage::Note;

/// When the clock of a world starts.
const START: i64 = 1_000_000;
const HOUR: i64 = 3_600_000;

/// Dana and Mira decide; Dana may name Ines or Kai, Ines may name Dana. Rival is of another organisation, and Dana may name her too.
fn configured() -> Roll {
    let voter = |id: &str, role: &str, org: &str| Voter {
        id: OperatorId::from(id),
        name: id.to_uppercase(),
        orgs: vec![Org::from(org)],
        roles: vec![role.to_owned()],
    };
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    Roll::new([
        voter("dana", "finance", ORG),
        voter("mira", "finance", ORG),
        voter("ines", "sales", ORG),
        voter("kai", "sales", ORG),
        voter("rival", "sales", "rival"),
    ])
    .with_absences(
        Absences::new([(
            "dana".to_owned(),
            vec![Absence {
                from: UtcMillis(START + 100 * HOUR),
                until: UtcMillis(START + 110 * HOUR),
                substitute: "kai".into(),
            }],
        )])
        .naming([
            ("dana".to_owned(), list(&["ines", "kai", "rival"])),
            ("ines".to_owned(), list(&["dana"])),
        ]),
    )
}

fn world() -> (World, LiveRoll) {
    let live = LiveRoll::from(Arc::new(configured()));
    let mut world = World::default();
    world.memory.now = UtcMillis(START);
    world.roll = live.get();
    (world, live)
}

fn set(world: &mut World, live: &LiveRoll, person: &str, wish: Wish) -> Result<Span, AwayRefusal> {
    let done = world.memory.run(&SetAway {
        org: Org::from(ORG),
        person: OperatorId::from(person),
        by: Actor::Operator(person.to_owned()),
        wish,
        roll: live.get(),
    });
    world.roll = live.lay(notes(world));
    done
}

fn notes(world: &World) -> Vec<Note> {
    world.memory.notes.values().cloned().collect()
}

/// Away for so many hours, from so many hours after the start on.
fn leave(from: Option<i64>, until: i64, substitute: Option<&str>) -> Wish {
    Wish::Leave {
        from: from.map(|hours| UtcMillis(START + hours * HOUR)),
        until: UtcMillis(START + until * HOUR),
        substitute: substitute.map(OperatorId::from),
    }
}

fn consume(world: &World, id: &ConfirmationId) -> Consume {
    let row = &world.row(id).confirmation;
    Consume {
        id: id.clone(),
        token: TokenName::from("agent"),
        digest: row.asked.digest,
        judged: row.call().digest,
        permit: PermitId::fresh(&world.ids),
        roll: Arc::clone(&world.roll),
        denied_by: None,
        grant: None,
        offered: None,
    }
}

#[test]
fn the_substitute_acts_from_then_on_until_the_person_is_back_and_the_vote_stands() {
    let (mut world, live) = world();
    let id = world.asked(terms(1), &[]);
    let refused = Ruling::Refused(Refusal::NotAuthorised);
    assert_eq!(world.click(&id, 0, "ines", Approve).ruling, refused);
    let span = set(&mut world, &live, "dana", leave(None, 8, None)).expect("she may");
    assert_eq!(
        (span.substitute.as_str(), span.from),
        ("ines", UtcMillis(START)),
        "the first of the list"
    );
    assert_eq!(world.click(&id, 0, "kai", Approve).ruling, refused);
    assert_eq!(world.click(&id, 0, "ines", Approve).ruling, Ruling::Settled);
    let vote = &world.row(&id).votes[0];
    assert_eq!(vote.content.acting_for, Some(OperatorId::from("dana")));
    // Back: from this instant on nobody acts for her, and what was cast before stands.
    world.memory.now.0 += 1_000;
    let next = world.asked(terms(1), &[]);
    let ended = set(&mut world, &live, "dana", Wish::Return { planned: true }).expect("she was away");
    assert_eq!(ended.until, world.memory.now);
    assert_eq!(world.click(&next, 0, "ines", Approve).ruling, refused);
    let request = consume(&world, &id);
    assert!(world.memory.run(&request).is_ok());
    let kinds = world.memory.kinds();
    assert!(
        kinds.contains(&"operator.away") && kinds.contains(&"operator.back"),
        "{kinds:?}"
    );
    world.memory.assert_chains_hold();
}

#[test]
fn a_substitute_whom_the_configuration_no_longer_names_has_no_right_left() {
    let (mut world, live) = world();
    let id = world.asked(terms(1), &[]);
    set(&mut world, &live, "dana", leave(None, 8, Some("kai"))).expect("she may");
    assert_eq!(world.click(&id, 0, "kai", Approve).ruling, Ruling::Settled);
    let narrowed = configured()
        .absences()
        .clone()
        .naming([("dana".to_owned(), vec!["ines".to_owned()])]);
    let narrowed = LiveRoll::from(Arc::new(configured().with_absences(narrowed)));
    world.roll = narrowed.lay(notes(&world));
    let next = world.asked(terms(1), &[]);
    let refused = Ruling::Refused(Refusal::NotAuthorised);
    assert_eq!(world.click(&next, 0, "kai", Approve).ruling, refused);
    let request = consume(&world, &id);
    assert_eq!(world.memory.run(&request), Err(NotGranted::NotAuthorised));
}

#[test]
fn only_what_the_configuration_allows_can_be_set_and_nothing_is_changed_otherwise() {
    let days = |days: i64| days * 24;
    for (person, wish, expected) in [
        ("dana", leave(None, 8, Some("mira")), AwayRefusal::NotASubstitute),
        ("dana", leave(None, 8, Some("dana")), AwayRefusal::NotASubstitute),
        ("dana", leave(None, 8, Some("rival")), AwayRefusal::NotASubstitute),
        (
            "dana",
            leave(None, 8, Some("nobody")),
            AwayRefusal::NotASubstitute,
        ),
        ("mira", leave(None, 8, None), AwayRefusal::NoSubstitute),
        ("mira", leave(None, 8, Some("dana")), AwayRefusal::NoSubstitute),
        ("nobody", leave(None, 8, None), AwayRefusal::Unknown),
        ("rival", leave(None, 8, None), AwayRefusal::Unknown),
        ("dana", leave(None, 0, None), AwayRefusal::Past),
        ("dana", leave(Some(9), 8, None), AwayRefusal::Past),
        ("dana", leave(Some(-9), -8, None), AwayRefusal::Past),
        ("dana", leave(None, days(92) + 1, None), AwayRefusal::TooLong),
        (
            "dana",
            leave(Some(days(93)), days(94), None),
            AwayRefusal::TooLong,
        ),
        ("dana", leave(Some(105), 106, None), AwayRefusal::Configured),
        ("dana", Wish::Return { planned: true }, AwayRefusal::NotAway),
    ] {
        let (mut world, live) = world();
        let told = format!("{person} {wish:?}");
        assert_eq!(set(&mut world, &live, person, wish), Err(expected), "{told}");
        assert!(
            world.memory.notes.is_empty() && world.memory.events.is_empty(),
            "{told}"
        );
    }
}

#[test]
fn nobody_stands_in_for_each_other_in_a_circle() {
    let (mut world, live) = world();
    set(&mut world, &live, "dana", leave(None, 8, Some("ines"))).expect("she may");
    assert_eq!(
        set(&mut world, &live, "ines", leave(Some(4), 12, None)),
        Err(AwayRefusal::Circle)
    );
    assert!(
        set(&mut world, &live, "ines", leave(Some(8), 12, None)).is_ok(),
        "one after the other"
    );
}

#[test]
fn one_absence_takes_the_place_of_another_where_they_meet() {
    let (mut world, live) = world();
    let spans = |world: &World| -> Vec<(i64, i64)> {
        let note = world.memory.notes.values().next().expect("a note");
        let hours = |at: UtcMillis| (at.0 - START) / HOUR;
        spans_of(note)
            .iter()
            .map(|span| (hours(span.from), hours(span.until)))
            .collect()
    };
    set(&mut world, &live, "dana", leave(None, 8, None)).expect("she may");
    set(&mut world, &live, "dana", leave(Some(40), 50, None)).expect("she may");
    set(&mut world, &live, "dana", leave(Some(6), 12, Some("kai"))).expect("she may");
    assert_eq!(spans(&world), [(0, 6), (6, 12), (40, 50)]);
    // Coming back ends what holds and leaves what is planned; then that is taken back.
    world.memory.now.0 += 7 * HOUR;
    assert!(set(&mut world, &live, "dana", Wish::Return { planned: true }).is_ok());
    assert_eq!(spans(&world), [(0, 6), (6, 7), (40, 50)]);
    let again = Wish::Return { planned: false };
    assert_eq!(
        set(&mut world, &live, "dana", again),
        Err(AwayRefusal::NotAway),
        "said twice"
    );
    assert!(set(&mut world, &live, "dana", Wish::Return { planned: true }).is_ok());
    assert_eq!(spans(&world), [(0, 6), (6, 7)]);
    assert_eq!(
        set(&mut world, &live, "dana", Wish::Return { planned: true }),
        Err(AwayRefusal::NotAway)
    );
    for n in 0..8 {
        let span = leave(Some(200 + n * 10), 205 + n * 10, None);
        set(&mut world, &live, "dana", span).expect("so many");
    }
    assert_eq!(
        set(&mut world, &live, "dana", leave(Some(400), 405, None)),
        Err(AwayRefusal::TooMany)
    );
}

#[test]
fn a_note_that_makes_no_sense_gives_nobody_a_right() {
    let (mut world, live) = world();
    let id = world.asked(terms(1), &[]);
    set(&mut world, &live, "dana", leave(None, 8, None)).expect("she may");
    let spoilt = notes(&world).into_iter().map(|note| Note {
        body: note.body.replace("ines", "\"]}"),
        ..note
    });
    world.roll = live.lay(spoilt.collect());
    let refused = Ruling::Refused(Refusal::NotAuthorised);
    assert_eq!(world.click(&id, 0, "ines", Approve).ruling, refused);
}
