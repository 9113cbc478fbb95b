use proptest::prelude::*;

use super::*;

fn shift(from: i64, until: i64, operator: &str) -> Shift {
    Shift {
        from: UtcMillis(from),
        until: UtcMillis(until),
        operator: operator.to_owned(),
    }
}

fn away(from: i64, until: i64, substitute: &str) -> Absence {
    Absence {
        from: UtcMillis(from),
        until: UtcMillis(until),
        substitute: substitute.to_owned(),
    }
}

/// A person and the spans in which they are away, each with a substitute.
type Away<'a> = (&'a str, &'a [(i64, i64, &'a str)]);

fn absences(list: &[Away<'_>]) -> Absences {
    Absences::new(list.iter().map(|(person, spans)| {
        let spans = spans
            .iter()
            .map(|(from, until, substitute)| away(*from, *until, substitute));
        ((*person).to_owned(), spans.collect())
    }))
}

#[test]
fn turns_follow_each_other_and_a_shift_stands_instead() {
    let rota = Rota {
        shifts: vec![shift(250, 260, "ines")],
        rotation: Some(Rotation {
            start: UtcMillis(100),
            every_ms: 100,
            operators: vec!["dana".into(), "mira".into()],
        }),
    };
    for (at, expected) in [
        (i64::MIN, None),
        (99, None),
        (100, Some("dana")),
        (199, Some("dana")),
        (200, Some("mira")),
        (249, Some("mira")),
        (250, Some("ines")),
        (259, Some("ines")),
        (260, Some("mira")),
        (300, Some("dana")),
        (i64::MAX, Some("mira")),
    ] {
        let people = rota.on_call(UtcMillis(at));
        assert_eq!(people.first().copied(), expected, "{at}");
        assert!(people.len() <= 1);
    }
    assert_eq!(rota.everybody(), BTreeSet::from(["dana", "mira", "ines"]));
    assert_eq!(Rota::default().on_call(UtcMillis(0)), [""; 0]);
}

#[test]
fn several_shifts_may_hold_at_once() {
    let rota = Rota {
        shifts: vec![shift(0, 10, "mira"), shift(5, 15, "dana"), shift(5, 15, "dana")],
        rotation: None,
    };
    assert_eq!(rota.on_call(UtcMillis(4)), ["mira"]);
    assert_eq!(rota.on_call(UtcMillis(5)), ["dana", "mira"]);
    assert_eq!(rota.on_call(UtcMillis(10)), ["dana"]);
    assert_eq!(rota.on_call(UtcMillis(15)), [""; 0]);
}

#[test]
fn a_substitute_acts_from_the_first_instant_to_the_last_and_two_steps_far() {
    let absences = absences(&[
        ("dana", &[(100, 200, "mira")]),
        ("mira", &[(150, 300, "tomas")]),
        ("tomas", &[(150, 300, "ines")]),
    ]);
    let steads = |person: &str, at: i64| -> Vec<(String, Option<String>)> {
        let steads = absences.steads("acme", person, UtcMillis(at));
        let named = steads.into_iter();
        named
            .map(|stead| (stead.absent.to_owned(), stead.through.map(str::to_owned)))
            .collect()
    };
    let dana = || ("dana".to_owned(), None);
    assert_eq!(steads("mira", 99), []);
    assert_eq!(steads("mira", 100), [dana()]);
    assert_eq!(steads("mira", 199), [dana()], "who is away may still act");
    assert_eq!(steads("mira", 200), []);
    assert_eq!(
        steads("tomas", 150),
        [
            ("dana".to_owned(), Some("mira".to_owned())),
            ("mira".to_owned(), None)
        ]
    );
    assert_eq!(
        steads("ines", 160),
        [
            ("mira".to_owned(), Some("tomas".to_owned())),
            ("tomas".to_owned(), None)
        ],
        "three steps are too far: nothing of dana's"
    );
    assert_eq!(absences.circle("acme"), None);
}

#[test]
fn a_circle_is_one_only_where_its_spans_meet() {
    for (list, expected) in [
        (
            &[("a", &[(0, 10, "b")][..]), ("b", &[(5, 15, "a")])][..],
            Some(vec!["a", "b"]),
        ),
        (&[("a", &[(0, 10, "b")]), ("b", &[(10, 15, "a")])], None),
        (&[("a", &[(0, 10, "a")])], Some(vec!["a"])),
        (
            &[
                ("a", &[(0, 10, "b")]),
                ("b", &[(9, 20, "c")]),
                ("c", &[(0, 10, "a")]),
            ],
            Some(vec!["a", "b", "c"]),
        ),
        (
            &[
                ("a", &[(0, 10, "b")]),
                ("b", &[(0, 10, "c")]),
                ("c", &[(10, 20, "a")]),
            ],
            None,
        ),
        // A way that leads into a circle that it is no part of.
        (
            &[
                ("a", &[(0, 10, "b")]),
                ("b", &[(0, 10, "c")]),
                ("c", &[(0, 10, "b")]),
            ],
            Some(vec!["b", "c"]),
        ),
    ] {
        assert_eq!(absences(list).circle("acme"), expected, "{list:?}");
    }
}

/// Dana may name Mira or Tomas, Mira may name Ines or Tomas.
fn set(own: &[Away<'_>]) -> Absences {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let own = own.iter().map(|(person, spans)| {
        let spans = spans
            .iter()
            .map(|(from, until, substitute)| away(*from, *until, substitute));
        (("acme".to_owned(), (*person).to_owned()), spans.collect())
    });
    absences(&[("mira", &[(500, 600, "kai")])])
        .naming([
            ("dana".to_owned(), list(&["mira", "tomas"])),
            ("mira".to_owned(), list(&["ines", "tomas"])),
        ])
        .with_own(own)
}

fn acts_for(absences: &Absences, person: &str, at: i64) -> Vec<String> {
    let steads = absences.steads("acme", person, UtcMillis(at)).into_iter();
    steads.map(|stead| stead.absent.to_owned()).collect()
}

#[test]
fn what_people_set_themselves_holds_in_one_organisation_and_only_for_whom_they_may_name() {
    let dana = set(&[("dana", &[(100, 200, "mira")])]);
    assert_eq!(acts_for(&dana, "mira", 100), ["dana"]);
    assert_eq!(acts_for(&dana, "mira", 200), [""; 0]);
    assert!(dana.steads("rival", "mira", UtcMillis(150)).is_empty());
    // Whom the configuration does not let her name, or no longer, acts for nobody.
    for stranger in ["ines", "kai", "eve"] {
        let named = set(&[("dana", &[(100, 200, stranger)])]);
        assert_eq!(acts_for(&named, stranger, 150), [""; 0], "{stranger}");
    }
    // What is configured holds first.
    let both = set(&[("mira", &[(500, 600, "ines")])]);
    assert_eq!(acts_for(&both, "kai", 550), ["mira"]);
    assert_eq!(acts_for(&both, "ines", 550), [""; 0]);
}

#[test]
fn no_right_goes_by_a_way_that_only_others_were_allowed() {
    // Mira may name Ines, but Dana may not: so Ines acts for Mira, and for Dana nobody does through her.
    let ines = set(&[("dana", &[(100, 200, "mira")]), ("mira", &[(100, 200, "ines")])]);
    assert_eq!(acts_for(&ines, "ines", 150), ["mira"]);
    // Tomas is whom both may name.
    let tomas = set(&[("dana", &[(100, 200, "mira")]), ("mira", &[(100, 200, "tomas")])]);
    assert_eq!(acts_for(&tomas, "tomas", 150), ["dana", "mira"]);
    // Nor behind a span of the configuration: Kai acts for Mira there, and Dana may not name Kai.
    let kai = set(&[("dana", &[(500, 600, "mira")])]);
    assert_eq!(acts_for(&kai, "kai", 550), ["mira"]);
}

#[test]
fn a_circle_of_what_is_set_is_found_too() {
    let circle = set(&[("dana", &[(100, 200, "tomas")])])
        .naming([
            ("dana".to_owned(), vec!["tomas".to_owned()]),
            ("tomas".to_owned(), vec!["dana".to_owned()]),
        ])
        .with_own([
            (
                ("acme".to_owned(), "dana".to_owned()),
                vec![away(100, 200, "tomas")],
            ),
            (
                ("acme".to_owned(), "tomas".to_owned()),
                vec![away(150, 300, "dana")],
            ),
        ]);
    assert_eq!(circle.circle("acme"), Some(vec!["dana", "tomas"]));
    assert_eq!(circle.circle("rival"), None);
}

proptest! {
    #[test]
    fn nobody_acts_for_themselves_nor_outside_of_a_span(
        spans in proptest::collection::vec((0..4_usize, -50..50_i64, 1..60_i64, 0..4_usize), 0..6),
        at in -60..120_i64,
    ) {
        let names = ["a", "b", "c", "d"];
        let mut list: BTreeMap<String, Vec<Absence>> = BTreeMap::new();
        for (person, from, length, substitute) in &spans {
            let span = away(*from, from + length, names[*substitute]);
            list.entry(names[*person].to_owned()).or_default().push(span);
        }
        let absences = Absences::new(list.clone());
        for person in names {
            for stead in absences.steads("acme", person, UtcMillis(at)) {
                prop_assert_ne!(stead.absent, person);
                prop_assert!(list[stead.absent].iter().any(|span| span.holds(UtcMillis(at))));
            }
        }
        // Where a circle is found, every span of it holds at one instant.
        if let Some(circle) = absences.circle("acme") {
            let all_at = |at: UtcMillis| circle.iter().all(|person| list[*person].iter().any(|span| span.holds(at)));
            let starts = list.values().flatten().map(|span| span.from);
            prop_assert!(starts.into_iter().any(all_at));
        }
    }

    #[test]
    fn moments_stand_for_every_group(start in -100..100_i64, every in 1..40_i64, at in -200..500_i64) {
        let rota = Rota {
            shifts: vec![shift(10, 30, "x"), shift(20, 50, "y")],
            rotation: Some(Rotation {
                start: UtcMillis(start),
                every_ms: every,
                operators: vec!["a".into(), "b".into(), "c".into()],
            }),
        };
        let people = rota.on_call(UtcMillis(at));
        let seen = rota.moments().into_iter().any(|moment| rota.on_call(moment) == people);
        prop_assert!(seen || people.is_empty(), "{people:?}");
    }
}
