//! Absences that people set themselves: one note for each person and organisation, changed by whole transactions. Who may be named as
//! a substitute stands in the configuration, and is asked for again whenever an absence is looked at.

use std::collections::BTreeMap;
use std::time::Duration;

use gatepost_channel::UtcMillis;
use serde::{Deserialize, Serialize};

use super::roll::Roll;
use crate::audit::{Actor, Draft};
use crate::clock::rfc3339;
use crate::gate::duty::Absence;
use crate::ids::{OperatorId, Org};
use crate::storage::{Note, NoteKey, NoteKind, Touches, Transaction, Workspace};

/// The longest absence that a person sets themselves, and how far ahead one may begin.
pub const LONGEST: Duration = Duration::from_hours(92 * 24);
/// The most absences of one person that are not over.
const MOST_OPEN: usize = 8;
/// The most absences of one person that are remembered. Votes that were cast in their place are asked about again when the call runs,
/// so what is over stays for a while.
const MOST: usize = 64;

/// One absence that a person set themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Its first instant.
    pub from: UtcMillis,
    /// The first instant after it.
    pub until: UtcMillis,
    /// Who acts meanwhile.
    pub substitute: OperatorId,
}

impl Span {
    fn as_absence(&self) -> Absence {
        Absence {
            from: self.from,
            until: self.until,
            substitute: self.substitute.0.clone(),
        }
    }
}

/// What a person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// To be away.
    Leave {
        /// From when on; left out, from now.
        from: Option<UtcMillis>,
        /// Until when.
        until: UtcMillis,
        /// Who acts meanwhile; left out, the first whom the configuration allows.
        substitute: Option<OperatorId>,
    },
    /// To be there again: the absence that holds ends now.
    Return {
        /// Whether the next one is taken back where none holds. What may be said twice by a platform never asks for it.
        planned: bool,
    },
}

/// Why nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AwayRefusal {
    /// No operator of the organisation.
    Unknown,
    /// The configuration names nobody who could act for this person.
    NoSubstitute,
    /// The substitute is not among those whom the configuration names for this person.
    NotASubstitute,
    /// It would be over before it begins.
    Past,
    /// It is too long, or begins too far ahead.
    TooLong,
    /// The configuration has an absence of this person in that time.
    Configured,
    /// People would stand in for each other in a circle.
    Circle,
    /// The person has set too many that are not over.
    TooMany,
    /// There is nothing to come back from.
    NotAway,
}

impl AwayRefusal {
    /// The stable word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown_operator",
            Self::NoSubstitute => "no_substitute",
            Self::NotASubstitute => "not_a_substitute",
            Self::Past => "in_the_past",
            Self::TooLong => "too_long",
            Self::Configured => "configured",
            Self::Circle => "circle",
            Self::TooMany => "too_many",
            Self::NotAway => "not_away",
        }
    }
}

/// Sets or ends an absence of one person.
#[derive(Debug, Clone)]
pub struct SetAway {
    /// The organisation in which it holds.
    pub org: Org,
    /// Whose.
    pub person: OperatorId,
    /// Who does it: the person themselves, or an admin.
    pub by: Actor,
    /// What.
    pub wish: Wish,
    /// The operators, as the configuration has them.
    pub roll: std::sync::Arc<Roll>,
}

impl SetAway {
    fn key(&self) -> NoteKey {
        NoteKey {
            org: self.org.clone(),
            kind: NoteKind::Absence,
        }
    }

    fn is_of_org(&self, person: &OperatorId) -> bool {
        self.roll
            .voter(person)
            .is_some_and(|voter| voter.id == *person && voter.orgs.contains(&self.org))
    }

    /// The absence to be, if it may be. `spans` are the person's others, `notes` everybody's.
    fn leave(
        &self,
        (from, until, substitute): (Option<UtcMillis>, UtcMillis, Option<&OperatorId>),
        spans: &[Span],
        notes: &[Note],
        now: UtcMillis,
    ) -> Result<Vec<Span>, AwayRefusal> {
        let from = from.unwrap_or(now).max(now);
        if until <= from {
            return Err(AwayRefusal::Past);
        }
        if until.since(from) > LONGEST || from.since(now) > LONGEST {
            return Err(AwayRefusal::TooLong);
        }
        let absences = self.roll.absences();
        let allowed = absences.may_name(self.person.as_str());
        let substitute = match substitute {
            None => OperatorId(allowed.first().ok_or(AwayRefusal::NoSubstitute)?.clone()),
            Some(named) => named.clone(),
        };
        if allowed.is_empty() {
            return Err(AwayRefusal::NoSubstitute);
        }
        if !allowed.contains(&substitute.0) || !self.is_of_org(&substitute) {
            return Err(AwayRefusal::NotASubstitute);
        }
        let span = Span {
            from,
            until,
            substitute,
        };
        let absence = span.as_absence();
        let configured = absences.configured(self.person.as_str());
        if configured.iter().any(|other| other.overlaps(&absence)) {
            return Err(AwayRefusal::Configured);
        }
        let mut kept = Vec::new();
        for other in spans {
            if !other.as_absence().overlaps(&absence) {
                kept.push(other.clone());
            } else if other.from < from {
                // What held until then stays on record: votes were cast by it.
                kept.push(Span {
                    until: from,
                    ..other.clone()
                });
            }
        }
        kept.push(span);
        kept.sort_by_key(|span| span.from);
        if kept.iter().filter(|span| span.until > now).count() > MOST_OPEN {
            return Err(AwayRefusal::TooMany);
        }
        let notes: Vec<Note> = notes
            .iter()
            .filter(|note| note.name != self.person.0)
            .cloned()
            .chain([self.note(&kept)])
            .collect();
        if laid(&self.roll, &notes)
            .absences()
            .circle(self.org.as_str())
            .is_some()
        {
            return Err(AwayRefusal::Circle);
        }
        Ok(kept)
    }

    fn note(&self, spans: &[Span]) -> Note {
        let old = spans.len().saturating_sub(MOST);
        Note {
            key: self.key(),
            name: self.person.0.clone(),
            body: serde_json::to_string(spans.get(old..).unwrap_or_default()).unwrap_or_default(),
        }
    }
}

impl Transaction for SetAway {
    /// The absence that was set, ended or taken back.
    type Answer = Result<Span, AwayRefusal>;
    const NAME: &'static str = "set_away";

    fn touches(&self, touches: &mut Touches) {
        touches.orgs.insert(self.org.clone());
        touches.notes.insert(self.key());
    }

    fn apply(&self, workspace: &mut Workspace) -> Self::Answer {
        let now = workspace.now();
        if !self.is_of_org(&self.person) {
            return Err(AwayRefusal::Unknown);
        }
        let key = self.key();
        let notes: Vec<Note> = workspace.notes(&key).cloned().collect();
        let own = notes.iter().find(|note| note.name == self.person.0);
        let mut spans = own.map(spans_of).unwrap_or_default();
        let (kind, told) = match &self.wish {
            Wish::Leave {
                from,
                until,
                substitute,
            } => {
                spans = self.leave((*from, *until, substitute.as_ref()), &spans, &notes, now)?;
                let set = spans.iter().find(|span| span.until == *until);
                ("operator.away", set.cloned().ok_or(AwayRefusal::Past)?)
            }
            Wish::Return { planned } => ("operator.back", back(&mut spans, now, *planned)?),
        };
        workspace.put_note(self.note(&spans));
        workspace.audit(
            Draft::new(&self.org, kind, self.by.clone())
                .with("operator", self.person.as_str())
                .with("substitute", told.substitute.as_str())
                .with("from", rfc3339(told.from))
                .with("until", rfc3339(told.until)),
        );
        Ok(told)
    }
}

/// Ends the absence that holds, or takes the next one back.
fn back(spans: &mut Vec<Span>, now: UtcMillis, planned: bool) -> Result<Span, AwayRefusal> {
    let holding = spans.iter_mut().find(|span| span.from <= now && now < span.until);
    if let Some(span) = holding {
        span.until = now;
        return Ok(span.clone());
    }
    let next = spans.iter().position(|span| planned && span.from > now);
    Ok(spans.remove(next.ok_or(AwayRefusal::NotAway)?))
}

/// The absences in a note. One that makes no sense gives nobody a right.
pub fn spans_of(note: &Note) -> Vec<Span> {
    serde_json::from_str(&note.body).unwrap_or_else(|error| {
        tracing::error!(%error, "the absences of an operator make no sense and are passed over");
        Vec::new()
    })
}

/// The roll with these notes laid over it, of all organisations, instead of others.
pub fn laid(roll: &Roll, notes: &[Note]) -> Roll {
    let mut own: BTreeMap<(String, String), Vec<Absence>> = BTreeMap::new();
    for note in notes.iter().filter(|note| note.key.kind == NoteKind::Absence) {
        let spans = spans_of(note);
        let key = (note.key.org.0.clone(), note.name.clone());
        own.insert(key, spans.iter().map(Span::as_absence).collect());
    }
    let absences = roll.absences().clone().with_own(own);
    roll.clone().with_absences(absences)
}

#[cfg(test)]
#[path = "away_tests.rs"]
mod tests;
