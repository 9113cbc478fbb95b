//! Absences over HTTP: who is away, who acts meanwhile, and setting one's own.

use serde::Serialize;

use crate::audit::Actor;
use crate::clock::rfc3339;
use crate::confirmation::away::{AwayRefusal, Span};
use crate::gatekeeper::Gatekeeper;
use crate::gatekeeper::away::Listed;
use crate::http::auth::Planner;
use crate::http::problem::{Code, Problem};
use crate::ids::{OperatorId, Org};

#[cfg(test)]
mod absence_tests;
pub mod end;
pub mod list;
pub mod set;

/// An absence as the API shows it.
#[derive(Debug, Serialize)]
pub struct View {
    operator: String,
    from: String,
    until: String,
    substitute: String,
    /// `configuration`, or `operator` where the person or an admin set it.
    source: &'static str,
}

/// Shows one of a list.
pub fn view(absence: Listed) -> View {
    let Listed {
        person,
        from,
        until,
        substitute,
        configured,
    } = absence;
    View {
        operator: person.0,
        from: rfc3339(from),
        until: rfc3339(until),
        substitute: substitute.0,
        source: if configured { "configuration" } else { "operator" },
    }
}

fn just_set(person: &OperatorId, span: Span) -> View {
    view(Listed {
        person: person.clone(),
        from: span.from,
        until: span.until,
        substitute: span.substitute,
        configured: false,
    })
}

/// Whose absence it is, and who sets it. Operators set their own; an admin names somebody.
fn whose(
    gatekeeper: &Gatekeeper,
    planner: Planner,
    named: Option<&str>,
) -> Result<(Org, OperatorId, Actor), Problem> {
    match planner {
        Planner::Operator(operator) => {
            let other = named
                .is_some_and(|named| gatekeeper.meant(&operator.org, named).as_ref() != Some(&operator.id));
            if other {
                return Err(Problem::forbidden(
                    "not_oneself",
                    "an operator sets only their own absence; an admin sets that of others",
                ));
            }
            let actor = Actor::Operator(operator.id.0.clone());
            Ok((operator.org, operator.id, actor))
        }
        Planner::Admin(admin) => {
            let named = named.ok_or_else(|| crate::http::body::missing("operator"))?;
            let person = gatekeeper
                .meant(&admin.org, named)
                .ok_or_else(|| refused(AwayRefusal::Unknown))?;
            Ok((admin.org, person, Actor::Token(admin.token.0)))
        }
    }
}

/// Why nothing was changed, and what to do.
fn refused(refusal: AwayRefusal) -> Problem {
    let detail = match refusal {
        AwayRefusal::Unknown => "nobody of this organisation is called so; name an operator by their id",
        AwayRefusal::NoSubstitute => {
            "the configuration names nobody who may act for this person: an administrator adds `substitutes` to their entry under `operators`"
        }
        AwayRefusal::NotASubstitute => {
            "the substitute is not among the `substitutes` of this person's entry under `operators`; name one of these"
        }
        AwayRefusal::Past => {
            "the absence would be over before it begins; `until` must be later than `from` and than now"
        }
        AwayRefusal::TooLong => {
            "the absence is longer than 92 days, or begins later than in 92 days; a longer one stands in the configuration, as `operators[].away`"
        }
        AwayRefusal::Configured => {
            "the configuration has an absence of this person in that time; an administrator changes it there"
        }
        AwayRefusal::Circle => "people would stand in for each other in a circle; name somebody who is there",
        AwayRefusal::TooMany => "this person has eight absences that are not over; end one of them first",
        AwayRefusal::NotAway => {
            "this person has set no absence that holds now; `planned: true` takes the next one back"
        }
    };
    Problem::new(Code::AwayRefused)
        .because(detail)
        .with("refusal", refusal.as_str())
}
