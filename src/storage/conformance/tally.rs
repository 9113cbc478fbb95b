//! Tallies: exact under concurrency, lasting, shared by all processes on one database, and forgotten in time.

use super::*;
use crate::storage::{Mark, Tally, TallyKey, Touches, Transaction, Workspace};

const WINDOW: i64 = 60_000;

/// A limit in its plainest form: so many calls, each a mark of its own, until the window of the first is over.
pub(super) struct Take {
    key: TallyKey,
    limit: usize,
}

impl Take {
    pub(super) fn of(person: &str, limit: usize) -> Self {
        let key = TallyKey {
            org: Org::from("acme"),
            counter: "shop".to_owned(),
            scope: String::new(),
            token: TokenName::from("build-agent"),
            person: person.to_owned(),
        };
        Self { key, limit }
    }
}

impl Transaction for Take {
    type Answer = bool;

    const NAME: &'static str = "take";

    fn touches(&self, touches: &mut Touches) {
        // Everybody meets on the first row, in another place of the order than their own.
        touches.tallies.insert(Self::of("", 0).key);
        touches.tallies.insert(self.key.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> bool {
        let now = workspace.now();
        let tally = workspace.tally(&self.key);
        let mut marks = tally.map(|tally| tally.marks.clone()).unwrap_or_default();
        marks.retain(|mark| now.0 - mark.last.0 < WINDOW);
        if marks.len() >= self.limit {
            return false;
        }
        marks.push(Mark {
            first: now,
            last: now,
            count: 1,
        });
        workspace.put_tally(Tally {
            key: self.key.clone(),
            marks,
            forget_at: UtcMillis(now.0 + WINDOW),
        });
        true
    }
}

pub(super) async fn of_sixteen_calls_as_many_as_the_limit_are_taken(place: &Place) {
    let racers = (0..16).map(|_| {
        let store = place.store.clone();
        async move { store.run(Take::of("dana", 5)).await.expect("counted") }
    });
    let taken = side_by_side(racers).await;
    assert_eq!(taken.iter().filter(|taken| **taken).count(), 5);
    let odd = "d\0an\u{1a}a \u{1f600}'";
    let mut turns = Vec::new();
    for _ in 0..3 {
        turns.push(place.store.run(Take::of(odd, 2)).await.expect("counted"));
    }
    assert_eq!(turns, [true, true, false]);
}

pub(super) async fn a_window_moves_on_and_what_is_past_is_forgotten(place: &Place) {
    let take = async || place.store.run(Take::of("dana", 2)).await.expect("counted");
    assert_eq!([take().await, take().await, take().await], [true, true, false]);
    place.advance(Duration::from_secs(61)).await;
    assert!(take().await, "the window moved on");
    place.advance(Duration::from_secs(61)).await;
    place.tidied_of("tally").await;
    assert!(take().await);
}
