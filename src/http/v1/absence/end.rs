//! `POST /api/absences/end`: an operator is back. It is a POST without an id, since what it ends is whatever holds now.

use axum::Json;
use axum::extract::State;

use super::{View, just_set, refused, whose};
use crate::confirmation::away::Wish;
use crate::http::Api;
use crate::http::auth::Planner;
use crate::http::body::Members;
use crate::http::problem::Problem;

/// Ends the absence that holds now; with `planned: true` the next one is taken back where none holds.
pub async fn handle(
    State(api): State<Api>,
    setter: Planner,
    mut members: Members,
) -> Result<Json<View>, Problem> {
    let named = members.text("operator")?;
    let planned = members.flag("planned")?.unwrap_or(false);
    members.finish()?;
    let gatekeeper = api.gatekeeper();
    let (org, person, by) = whose(gatekeeper, setter, named.as_deref())?;
    let ended = gatekeeper
        .set_away(&org, &person, by, Wish::Return { planned })
        .await?;
    ended.map(|span| Json(just_set(&person, span))).map_err(refused)
}
