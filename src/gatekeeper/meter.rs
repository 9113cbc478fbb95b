//! Counting calls against a limit, in the store: every replica counts together, a restart forgets nothing.
//!
//! A user is the known person whom a call names as its requester, else the owner of its token, else the token. The name of a
//! requester is only asserted, so that it never opens a new budget: the calls of a token are bounded as well, those of its owner
//! over all of the owner's tokens, and a named person's only within the token that names them.
//!
//! How exact: a window slides, judged by the store's clock. No window of that length ever holds more than the limit. A limit of
//! up to 64 calls is exact to the millisecond; a greater one remembers calls in groups of a 64th of the window, and may let a
//! new call in that much later than it could. A call is counted when it is asked about, whatever becomes of it; one that is
//! asked about again after a crash is counted again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gatepost_channel::UtcMillis;

use super::People;
use crate::ids::{OperatorId, Org, TokenName};
use crate::storage::{Mark, Store, StoreError, Tally, TallyKey, Touches, Transaction, Workspace};

/// Groups in which the calls of one window are remembered, at most and about.
const GROUPS: u32 = 64;
/// The key of calls behind which no person is known; no operator has such an id.
const NOBODY: &str = "*";

/// See the module. Clones share it.
#[derive(Clone)]
pub struct Meter(Option<Arc<Parts>>);

struct Parts {
    store: Store,
    people: Arc<People>,
    owners: HashMap<TokenName, OperatorId>,
}

/// A call that is to be counted.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    /// The organisation.
    pub org: &'a Org,
    /// The token.
    pub token: &'a TokenName,
    /// For whom, as the agent says.
    pub requester: Option<&'a str>,
    /// The connector, or the tool.
    pub counter: &'a str,
    /// The piece whose own limit it is; empty for the limit of everybody.
    pub scope: &'a str,
}

/// How many calls there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Of one user, within [`Self::window`].
    pub user: u64,
    /// Of one token.
    pub token: u64,
    /// In any span of this length.
    pub window: Duration,
}

/// What came of counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// There was room, and the call was counted.
    Taken,
    /// There is no room before this long; nothing was counted.
    Full(Duration),
}

impl Meter {
    /// Counts in this store. `owners` are the known persons behind tokens.
    pub fn new(store: Store, people: Arc<People>, owners: HashMap<TokenName, OperatorId>) -> Self {
        Self(Some(Arc::new(Parts {
            store,
            people,
            owners,
        })))
    }

    /// Counts nowhere: every question fails.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Counts a call, if every limit that it falls under has room.
    ///
    /// # Errors
    /// The store failed; the call was perhaps counted.
    pub async fn take(&self, call: Counted<'_>, limit: Limit) -> Result<Turn, StoreError> {
        let parts = self.0.as_ref().ok_or(StoreError::Closed)?;
        let window = i64::try_from(limit.window.as_millis()).unwrap_or(i64::MAX);
        parts
            .store
            .run(TakeTurn {
                counts: parts.counts(call, limit),
                window,
            })
            .await
    }
}

impl Parts {
    fn counts(&self, call: Counted<'_>, limit: Limit) -> Vec<(TallyKey, u64)> {
        let key = |token: &str, person: &str| TallyKey {
            org: call.org.clone(),
            counter: call.counter.to_owned(),
            scope: call.scope.to_owned(),
            token: TokenName(token.to_owned()),
            person: person.to_owned(),
        };
        let token = call.token.as_str();
        let owner = self.owners.get(call.token);
        let known = call
            .requester
            .map_or(&[][..], |name| self.people.named(call.org, name));
        let mut counts = vec![(key(token, ""), limit.token)];
        // A name that several persons share counts for each of them.
        let others = known.iter().filter(|person| Some(*person) != owner);
        counts.extend(others.map(|person| (key(token, person.as_str()), limit.user)));
        match owner {
            Some(owner) => counts.push((key("", owner.as_str()), limit.user)),
            None if known.is_empty() => counts.push((key(token, NOBODY), limit.user)),
            None => {}
        }
        counts
    }
}

/// Counts one call under all of its keys, or under none.
pub struct TakeTurn {
    /// What it falls under, and how many of each there may be.
    pub counts: Vec<(TallyKey, u64)>,
    /// The window, in milliseconds.
    pub window: i64,
}

impl Transaction for TakeTurn {
    type Answer = Turn;

    const NAME: &'static str = "take_turn";

    fn touches(&self, touches: &mut Touches) {
        touches
            .tallies
            .extend(self.counts.iter().map(|(key, _)| key.clone()));
    }

    fn apply(&self, workspace: &mut Workspace) -> Turn {
        let now = workspace.now();
        let mut tallies = Vec::new();
        let mut wait = 0;
        for (key, limit) in &self.counts {
            let marks = workspace.tally(key).map_or(&[][..], |tally| &tally.marks);
            let marks = standing(marks, now, self.window);
            wait = wait.max(until_room(&marks, *limit, now, self.window));
            tallies.push((key, *limit, marks));
        }
        if wait > 0 {
            return Turn::Full(Duration::from_millis(u64::try_from(wait).unwrap_or(u64::MAX)));
        }
        for (key, limit, mut marks) in tallies {
            count(&mut marks, limit, now, self.window);
            workspace.put_tally(Tally {
                key: key.clone(),
                marks,
                forget_at: UtcMillis(now.0.saturating_add(self.window)),
            });
        }
        Turn::Taken
    }
}

/// The marks that still count. A clock that was set back must not make calls count longer than a window from now.
fn standing(marks: &[Mark], now: UtcMillis, window: i64) -> Vec<Mark> {
    let clamped = marks.iter().map(|mark| Mark {
        first: mark.first.min(now),
        last: mark.last.min(now),
        count: mark.count,
    });
    let counts = |mark: &Mark| now.0.saturating_sub(mark.last.0) < window;
    clamped.filter(counts).collect()
}

/// How many milliseconds until one more call has room; 0 when it has.
fn until_room(marks: &[Mark], limit: u64, now: UtcMillis, window: i64) -> i64 {
    let total = marks
        .iter()
        .fold(0_u64, |sum, mark| sum.saturating_add(mark.count));
    let mut over = total.saturating_add(1).saturating_sub(limit);
    if over == 0 {
        return 0;
    }
    for mark in marks {
        over = over.saturating_sub(mark.count);
        if over == 0 {
            return mark.last.0.saturating_add(window).saturating_sub(now.0).max(1);
        }
    }
    window.max(1)
}

/// Adds a call: as a mark of its own, or to the last group while that one is young.
fn count(marks: &mut Vec<Mark>, limit: u64, now: UtcMillis, window: i64) {
    let few = limit <= u64::from(GROUPS);
    let span = if few { 0 } else { window / i64::from(GROUPS) };
    match marks.last_mut() {
        Some(mark) if now.0.saturating_sub(mark.first.0) < span => {
            mark.last = now;
            mark.count = mark.count.saturating_add(1);
        }
        _ => marks.push(Mark {
            first: now,
            last: now,
            count: 1,
        }),
    }
}

#[cfg(test)]
#[path = "meter_tests.rs"]
mod tests;
