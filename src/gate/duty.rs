//! Who answers when: lists of people on call, and absences with a substitute. Everything here is asked for one instant; nothing
//! is remembered.
//!
//! It must not know who anybody is, nor what they may do.

use std::collections::{BTreeMap, BTreeSet};

use gatepost_channel::UtcMillis;

/// A list of people who are on call, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rota {
    /// Who is on call in named spans. While one of them holds, it stands instead of the rotation.
    pub shifts: Vec<Shift>,
    /// Who is on call in turns.
    pub rotation: Option<Rotation>,
}

/// A named span of a [`Rota`]: `from` counts, `until` does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shift {
    /// Its first instant.
    pub from: UtcMillis,
    /// The first instant after it.
    pub until: UtcMillis,
    /// Who, by operator id.
    pub operator: String,
}

/// Turns of equal length, without end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// When the first person's first turn begins.
    pub start: UtcMillis,
    /// How long a turn is, in milliseconds; at least 1.
    pub every_ms: i64,
    /// Who, in order, by operator id; never empty.
    pub operators: Vec<String>,
}

impl Rota {
    /// Who is on call at this instant. Nobody where no shift holds and no rotation has begun.
    pub fn on_call(&self, at: UtcMillis) -> Vec<&str> {
        let shifts = self
            .shifts
            .iter()
            .filter(|shift| holds(shift.from, shift.until, at));
        let named: BTreeSet<&str> = shifts.map(|shift| shift.operator.as_str()).collect();
        if !named.is_empty() {
            return named.into_iter().collect();
        }
        self.rotation
            .as_ref()
            .and_then(|rotation| rotation.turn(at))
            .into_iter()
            .collect()
    }

    /// Everybody who is ever on call.
    pub fn everybody(&self) -> BTreeSet<&str> {
        let shifts = self.shifts.iter().map(|shift| &shift.operator);
        let turns = self.rotation.iter().flat_map(|rotation| &rotation.operators);
        shifts.chain(turns).map(String::as_str).collect()
    }

    /// Instants at which everybody who is ever on call together is: one for each such group at least.
    pub fn moments(&self) -> BTreeSet<UtcMillis> {
        let mut moments: BTreeSet<UtcMillis> = self
            .shifts
            .iter()
            .flat_map(|shift| [shift.from, shift.until])
            .collect();
        if let Some(rotation) = &self.rotation {
            // A whole round behind the last shift: before that one could stand instead of a turn.
            let last = moments.last().map_or(rotation.start.0, |last| last.0);
            let people = i64::try_from(rotation.operators.len()).unwrap_or(i64::MAX);
            let round = rotation.every_ms.saturating_mul(people).max(1);
            let rounds = last.saturating_sub(rotation.start.0).max(0) / round + 1;
            let begin = rotation.start.0.saturating_add(rounds.saturating_mul(round));
            moments.extend((0..people).map(|turn| {
                let passed = turn.saturating_mul(rotation.every_ms);
                UtcMillis(begin.saturating_add(passed))
            }));
        }
        moments
    }
}

impl Rotation {
    fn turn(&self, at: UtcMillis) -> Option<&str> {
        let passed = at.0.checked_sub(self.start.0).filter(|passed| *passed >= 0)?;
        let people = i64::try_from(self.operators.len()).ok()?;
        let turn = passed.checked_div(self.every_ms)?.checked_rem(people)?;
        let place = usize::try_from(turn).ok()?;
        self.operators.get(place).map(String::as_str)
    }
}

/// A span in which somebody is away: `from` counts, `until` does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    /// Its first instant.
    pub from: UtcMillis,
    /// The first instant after it.
    pub until: UtcMillis,
    /// Who acts meanwhile, by operator id.
    pub substitute: String,
}

impl Absence {
    /// Whether the person is away at this instant.
    pub fn holds(&self, at: UtcMillis) -> bool {
        holds(self.from, self.until, at)
    }

    /// Whether the two have an instant in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.from < other.until && other.from < self.until
    }
}

fn holds(from: UtcMillis, until: UtcMillis, at: UtcMillis) -> bool {
    from <= at && at < until
}

/// The absences of several people, by operator id. A person's own do not overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Absences(BTreeMap<String, Vec<Absence>>);

/// In whose place somebody acts, and through whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stead<'a> {
    /// The absent person.
    pub absent: &'a str,
    /// Whom they had named, when that person is away as well.
    pub through: Option<&'a str>,
}

impl Stead<'_> {
    /// Whether the absent person, or whom they had named, is this one.
    pub fn concerns(&self, person: &str) -> bool {
        self.absent == person || self.through == Some(person)
    }
}

impl Absences {
    /// These absences.
    pub fn new(absences: impl IntoIterator<Item = (String, Vec<Absence>)>) -> Self {
        Self(
            absences
                .into_iter()
                .filter(|(_, spans)| !spans.is_empty())
                .collect(),
        )
    }

    /// Who acts for this person at this instant, if they are away.
    fn substitute(&self, person: &str, at: UtcMillis) -> Option<&str> {
        let spans = self.0.get(person)?;
        let span = spans.iter().find(|span| span.holds(at))?;
        Some(&span.substitute)
    }

    /// In whose place this person acts at this instant: of those who named them, and of those who named somebody who is away
    /// and named them. It goes no further.
    pub fn steads(&self, person: &str, at: UtcMillis) -> BTreeSet<Stead<'_>> {
        let mut steads = BTreeSet::new();
        for absent in self
            .0
            .keys()
            .map(String::as_str)
            .filter(|absent| *absent != person)
        {
            let Some(first) = self.substitute(absent, at) else {
                continue;
            };
            if first == person {
                steads.insert(Stead {
                    absent,
                    through: None,
                });
            } else if self.substitute(first, at) == Some(person) {
                steads.insert(Stead {
                    absent,
                    through: Some(first),
                });
            }
        }
        steads
    }

    /// Whether somebody ever names this person as who acts for them.
    pub fn names(&self, person: &str) -> bool {
        self.0.values().flatten().any(|span| span.substitute == person)
    }

    /// People who would stand in for each other in a circle at some instant: the first one found, in order.
    pub fn circle(&self) -> Option<Vec<&str>> {
        // Who is away changes only where a span begins or ends, and a circle needs spans: the last of them to begin.
        let starts: BTreeSet<UtcMillis> = self.0.values().flatten().map(|span| span.from).collect();
        for at in starts {
            for first in self.0.keys().map(String::as_str) {
                let mut way = vec![first];
                while let Some(next) = way.last().and_then(|last| self.substitute(last, at)) {
                    if next == first {
                        return Some(way);
                    }
                    if way.contains(&next) {
                        break;
                    }
                    way.push(next);
                }
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "duty_tests.rs"]
mod tests;
