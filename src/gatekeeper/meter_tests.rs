use std::time::Duration;

use gatepost_channel::UtcMillis;
use proptest::prelude::*;

use super::{TakeTurn, Turn};
use crate::ids::{Org, TokenName};
use crate::storage::TallyKey;
use crate::storage::memory::Memory;

fn key(person: &str) -> TallyKey {
    TallyKey {
        org: Org::from("acme"),
        counter: "shop".to_owned(),
        scope: String::new(),
        token: TokenName::from("build-agent"),
        person: person.to_owned(),
    }
}

fn turn(limits: &[(&str, u64)], window: i64) -> TakeTurn {
    TakeTurn {
        counts: limits
            .iter()
            .map(|(person, limit)| (key(person), *limit))
            .collect(),
        window,
    }
}

#[test]
fn a_small_limit_slides_to_the_millisecond() {
    let mut store = Memory::at(1_000);
    let two = turn(&[("", 2)], 100);
    assert_eq!(store.run(&two), Turn::Taken);
    store.now = UtcMillis(1_040);
    assert_eq!(store.run(&two), Turn::Taken);
    store.now = UtcMillis(1_099);
    assert_eq!(store.run(&two), Turn::Full(Duration::from_millis(1)));
    store.now = UtcMillis(1_100);
    assert_eq!(store.run(&two), Turn::Taken);
    assert_eq!(store.run(&two), Turn::Full(Duration::from_millis(40)));
}

#[test]
fn a_call_counts_under_all_of_its_keys_or_under_none() {
    let mut store = Memory::at(1_000);
    let of = |person| turn(&[("", 3), (person, 2)], 100);
    assert_eq!(store.run(&of("dana")), Turn::Taken);
    assert_eq!(store.run(&of("dana")), Turn::Taken);
    assert!(matches!(store.run(&of("dana")), Turn::Full(_)));
    assert_eq!(
        store.run(&of("noor")),
        Turn::Taken,
        "what was refused took no room"
    );
    assert!(
        matches!(store.run(&of("mira")), Turn::Full(_)),
        "the token is full"
    );
}

#[test]
fn a_clock_that_is_set_back_locks_nobody_out_for_longer_than_a_window() {
    let mut store = Memory::at(1_000_000);
    let one = turn(&[("", 1)], 100);
    assert_eq!(store.run(&one), Turn::Taken);
    store.now = UtcMillis(1_000);
    assert_eq!(store.run(&one), Turn::Full(Duration::from_millis(100)));
    assert!(matches!(store.run(&turn(&[("", 0)], 100)), Turn::Full(_)));
}

proptest! {
    /// Whatever the limit: no window holds more, what is remembered is bounded, and nobody waits much longer than needed.
    #[test]
    fn no_window_holds_more_than_the_limit(
        limit in 1_u64..300, window in 64_i64..10_000, gaps in proptest::collection::vec(0_i64..200, 1..400)
    ) {
        let mut store = Memory::at(1_000);
        let turn = turn(&[("", limit)], window);
        let mut taken: Vec<i64> = Vec::new();
        for gap in gaps {
            store.now = UtcMillis(store.now.0 + gap);
            let now = store.now.0;
            match store.run(&turn) {
                Turn::Taken => taken.push(now),
                Turn::Full(wait) => {
                    let late = if limit <= 64 { 0 } else { window / 64 };
                    let held = taken.iter().filter(|at| now - **at < window + late).count();
                    prop_assert!(held as u64 >= limit, "refused with {held} of {limit}");
                    prop_assert!(i64::try_from(wait.as_millis()).unwrap() <= window);
                }
            }
            let within = taken.iter().filter(|at| now - **at < window).count();
            prop_assert!(within as u64 <= limit, "{within} of {limit}");
        }
        let marks = store.tallies.values().next().map_or(0, |tally| tally.marks.len());
        prop_assert!(marks <= 66, "{marks} marks");
    }
}
