//! `POST /api/absences`: an operator is away, and somebody whom the configuration allows acts for them meanwhile.

use axum::Json;
use axum::extract::State;

use super::{View, just_set, refused, whose};
use crate::clock::{UtcMillis, parse_rfc3339};
use crate::confirmation::away::{AwayRefusal, Wish};
use crate::http::Api;
use crate::http::auth::Planner;
use crate::http::body::{self, Members};
use crate::http::problem::Problem;

/// Sets it. Where it meets an earlier one that was set so, it takes its place from its first instant on.
pub async fn handle(
    State(api): State<Api>,
    setter: Planner,
    mut members: Members,
) -> Result<Json<View>, Problem> {
    let named = members.text("operator")?;
    let until = instant("until", Some(members.required("until")?))?;
    let from = instant("from", members.text("from")?)?;
    let substitute = members.text("substitute")?;
    members.finish()?;
    let gatekeeper = api.gatekeeper();
    let (org, person, by) = whose(gatekeeper, setter, named.as_deref())?;
    let substitute = substitute
        .map(|named| {
            gatekeeper
                .meant(&org, &named)
                .ok_or_else(|| refused(AwayRefusal::NotASubstitute))
        })
        .transpose()?;
    let wish = Wish::Leave {
        from,
        until: until.ok_or_else(|| body::missing("until"))?,
        substitute,
    };
    let set = gatekeeper.set_away(&org, &person, by, wish).await?;
    set.map(|span| Json(just_set(&person, span))).map_err(refused)
}

fn instant(name: &'static str, text: Option<String>) -> Result<Option<UtcMillis>, Problem> {
    text.map(|text| {
        parse_rfc3339(&text)
            .ok_or_else(|| body::wrong(name, "a time in RFC 3339, such as 2026-12-24T18:00:00+01:00"))
    })
    .transpose()
}
