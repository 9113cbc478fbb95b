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

/// The absences of several people, by operator id: those that are configured, and those that people set themselves, each for one
/// organisation. What is configured holds first; of each sort a person's own do not overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Absences {
    configured: BTreeMap<String, Vec<Absence>>,
    /// By organisation and person.
    own: BTreeMap<(String, String), Vec<Absence>>,
    /// Whom a person may name when they set an absence themselves.
    may_name: BTreeMap<String, Vec<String>>,
}

/// Who acts for somebody who is away, and who said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Named<'a> {
    substitute: &'a str,
    /// Whether the absent person named them, and not the configuration.
    own: bool,
}

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
    /// These absences, as the configuration has them.
    pub fn new(absences: impl IntoIterator<Item = (String, Vec<Absence>)>) -> Self {
        Self {
            configured: absences
                .into_iter()
                .filter(|(_, spans)| !spans.is_empty())
                .collect(),
            ..Self::default()
        }
    }

    /// The same, where each of these people may name one of those when they set an absence themselves.
    #[must_use]
    pub fn naming(mut self, may_name: impl IntoIterator<Item = (String, Vec<String>)>) -> Self {
        self.may_name = may_name
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .collect();
        self
    }

    /// The same, with what people set themselves, by organisation and person, instead of what they had set before.
    #[must_use]
    pub fn with_own(mut self, own: impl IntoIterator<Item = ((String, String), Vec<Absence>)>) -> Self {
        self.own = own.into_iter().filter(|(_, spans)| !spans.is_empty()).collect();
        self
    }

    /// Whether anybody may set an absence themselves.
    pub fn may_be_set(&self) -> bool {
        !self.may_name.is_empty()
    }

    /// Whom this person may name, in the order of the configuration.
    pub fn may_name(&self, person: &str) -> &[String] {
        self.may_name.get(person).map_or(&[], Vec::as_slice)
    }

    /// The absences that the configuration has of this person.
    pub fn configured(&self, person: &str) -> &[Absence] {
        self.configured.get(person).map_or(&[], Vec::as_slice)
    }

    /// Who acts for this person at this instant, if they are away. Whom they named themselves counts only while the configuration
    /// lets them.
    fn substitute(&self, org: &str, person: &str, at: UtcMillis) -> Option<Named<'_>> {
        if let Some(span) = self.configured(person).iter().find(|span| span.holds(at)) {
            return Some(Named {
                substitute: &span.substitute,
                own: false,
            });
        }
        let spans = self.own.get(&(org.to_owned(), person.to_owned()))?;
        let span = spans.iter().find(|span| span.holds(at))?;
        self.may_name(person).contains(&span.substitute).then_some(Named {
            substitute: &span.substitute,
            own: true,
        })
    }

    /// Everybody who is away at some time, by what holds in this organisation.
    fn absent(&self, org: &str) -> BTreeSet<&str> {
        let own = self.own.keys().filter(|(of, _)| of == org);
        self.configured
            .keys()
            .chain(own.map(|(_, person)| person))
            .map(String::as_str)
            .collect()
    }

    /// In whose place this person acts at this instant in this organisation: of those who named them, and of those who named
    /// somebody who is away and named them. It goes no further. Where one of the two named somebody themselves, it must be somebody
    /// whom the first may name as well: nobody's right goes by a way that only others were allowed.
    pub fn steads(&self, org: &str, person: &str, at: UtcMillis) -> BTreeSet<Stead<'_>> {
        let mut steads = BTreeSet::new();
        let others = self.absent(org).into_iter().filter(|absent| *absent != person);
        for absent in others {
            let Some(first) = self.substitute(org, absent, at) else {
                continue;
            };
            if first.substitute == person {
                steads.insert(Stead {
                    absent,
                    through: None,
                });
                continue;
            }
            let second = self.substitute(org, first.substitute, at);
            let passes = |second: &Named<'_>| {
                let set = first.own || second.own;
                second.substitute == person
                    && (!set || self.may_name(absent).iter().any(|named| named == person))
            };
            if second.is_some_and(|second| passes(&second)) {
                steads.insert(Stead {
                    absent,
                    through: Some(first.substitute),
                });
            }
        }
        steads
    }

    /// Whether somebody names this person as who acts for them, or may.
    pub fn names(&self, person: &str) -> bool {
        let mut configured = self.configured.values().flatten();
        configured.any(|span| span.substitute == person)
            || self.may_name.values().flatten().any(|named| named == person)
    }

    /// People who would stand in for each other in a circle at some instant in this organisation: the first one found, in order.
    pub fn circle(&self, org: &str) -> Option<Vec<&str>> {
        // Who is away changes only where a span begins or ends, and a circle needs spans: the last of them to begin.
        let own = self.own.iter().filter(|((of, _), _)| of == org);
        let starts: BTreeSet<UtcMillis> = self
            .configured
            .values()
            .chain(own.map(|(_, spans)| spans))
            .flatten()
            .map(|span| span.from)
            .collect();
        let people = self.absent(org);
        for at in starts {
            for first in &people {
                let mut way = vec![*first];
                while let Some(next) = way.last().and_then(|last| self.substitute(org, last, at)) {
                    if next.substitute == *first {
                        return Some(way);
                    }
                    if way.contains(&next.substitute) {
                        break;
                    }
                    way.push(next.substitute);
                }
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "duty_tests.rs"]
mod tests;
