//! The `on_call` section: lists of people who are on call, by shifts or in turns. Rules name them among their approvers.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use gatepost_channel::UtcMillis;

use crate::clock::parse_rfc3339;
use crate::gate::duty::{Absence, Rota, Rotation, Shift};

use super::context::Complaint;
use super::node::Reader;
use super::problem::ProblemKind;

/// The shortest and the longest turn.
const TURN: (Duration, Duration) = (Duration::from_mins(1), Duration::from_hours(366 * 24));
/// How an instant is written.
const INSTANT: &str = "a time with its offset, such as 2026-12-24T09:00:00Z or 2026-12-24T09:00:00+01:00";

/// A list of people on call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnCall {
    /// Its name, unique.
    pub name: String,
    /// Who is on call when.
    pub rota: Rota,
}

/// An instant as RFC 3339 writes it, with its offset.
struct Instant(UtcMillis);

/// The text is no instant.
struct NotAnInstant;

impl fmt::Display for NotAnInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is no time with an offset")
    }
}

impl FromStr for Instant {
    type Err = NotAnInstant;

    fn from_str(text: &str) -> Result<Self, NotAnInstant> {
        parse_rfc3339(text).map(Self).ok_or(NotAnInstant)
    }
}

/// An instant.
fn instant(reader: &Reader<'_>) -> Option<UtcMillis> {
    reader.parsed::<Instant>(INSTANT).map(|instant| instant.0)
}

/// `from` and `until` of a mapping: the second is later.
fn span(
    reader: &Reader<'_>,
    from: Option<Reader<'_>>,
    until: Option<Reader<'_>>,
) -> Option<(UtcMillis, UtcMillis)> {
    let from = from.and_then(|from| instant(&from));
    let until = until.and_then(|until| instant(&until));
    let (from, until) = (from?, until?);
    if from >= until {
        reader.complain(
            Complaint::new(ProblemKind::BadValue, "ends before it begins")
                .accepted("an `until` that is later than `from`")
                .remedy("exchange the two, or correct one of them"),
        );
        return None;
    }
    Some((from, until))
}

/// The lists, in the order of the file; `None` for one that could not be read.
pub(super) fn decode(reader: &Reader<'_>) -> Option<Vec<Option<OnCall>>> {
    Some(reader.list()?.iter().map(decode_one).collect())
}

fn decode_one(reader: &Reader<'_>) -> Option<OnCall> {
    let before = reader.context().count();
    let mut map = reader.map()?;
    let name = map.required("name").and_then(|name| name.name());
    let shifts = map.optional("shifts").and_then(|shifts| {
        shifts
            .list()?
            .iter()
            .map(decode_shift)
            .collect::<Option<Vec<_>>>()
    });
    let rotation = map
        .optional("rotation")
        .and_then(|rotation| decode_rotation(&rotation));
    map.finish();
    if reader.context().count() != before {
        return None;
    }
    let rota = Rota {
        shifts: shifts.unwrap_or_default(),
        rotation,
    };
    if rota.everybody().is_empty() {
        reader.complain(
            Complaint::new(ProblemKind::NobodyDecides, "nobody is ever on call")
                .accepted("`shifts`, `rotation`, or both")
                .remedy("name who is on call when"),
        );
        return None;
    }
    Some(OnCall { name: name?, rota })
}

fn decode_shift(reader: &Reader<'_>) -> Option<Shift> {
    let mut map = reader.map()?;
    let (from, until) = (map.required("from"), map.required("until"));
    let span = span(reader, from, until);
    let operator = map.required("operator").and_then(|operator| operator.line(128));
    map.finish();
    let (from, until) = span?;
    Some(Shift {
        from,
        until,
        operator: operator?,
    })
}

fn decode_rotation(reader: &Reader<'_>) -> Option<Rotation> {
    let mut map = reader.map()?;
    let start = map.required("start").and_then(|start| instant(&start));
    let every = map.required("every").and_then(|every| every.span(TURN.0, TURN.1));
    let operators = map.required("operators").and_then(|operators| operators.texts());
    map.finish();
    Some(Rotation {
        start: start?,
        every_ms: i64::try_from(every?.as_millis()).ok()?,
        operators: operators?,
    })
}

/// The absences of one operator, `operators[].away`.
pub(super) fn decode_away(reader: &Reader<'_>) -> Option<Vec<Absence>> {
    let mut absences: Vec<Absence> = Vec::new();
    for item in reader.list()? {
        let mut map = item.map()?;
        let (from, until) = (map.required("from"), map.required("until"));
        let span = span(&item, from, until);
        let substitute = map.required("substitute").and_then(|id| id.line(128));
        map.finish();
        let (from, until) = span?;
        let absence = Absence {
            from,
            until,
            substitute: substitute?,
        };
        if absences.iter().any(|before| before.overlaps(&absence)) {
            item.complain(
                Complaint::new(
                    ProblemKind::Conflict,
                    "overlaps an earlier absence of the same person",
                )
                .remedy("let one end before the other begins: at any time there is one substitute"),
            );
            return None;
        }
        absences.push(absence);
    }
    Some(absences)
}
