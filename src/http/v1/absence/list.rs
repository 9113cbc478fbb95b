//! `GET /api/absences`: who of the organisation is away now or later, and who acts meanwhile.

use axum::Json;
use axum::extract::State;

use super::{View, view};
use crate::http::Api;
use crate::http::auth::Roster;
use crate::http::problem::Problem;
use crate::http::query::Params;
use crate::http::v1::List;

/// Lists them, in order of person and time.
pub async fn handle(
    State(api): State<Api>,
    roster: Roster,
    params: Params,
) -> Result<Json<List<View>>, Problem> {
    params.finish()?;
    let absences = api.gatekeeper().absences(&roster.org).await?;
    Ok(Json(List {
        items: absences.into_iter().map(view).collect(),
        next_cursor: None,
    }))
}
