//! `GET /api/jobs/{id}`: one job.

use axum::Json;
use axum::extract::State;

use super::{known, whole_view};
use crate::http::Api;
use crate::http::auth::Reader;
use crate::http::problem::Problem;
use crate::http::query::Params;
use crate::http::v1::WhichJob;
use crate::job::view::JobView;

/// Shows it.
pub async fn handle(
    State(api): State<Api>,
    reader: Reader,
    WhichJob(id): WhichJob,
    params: Params,
) -> Result<Json<JobView>, Problem> {
    params.finish()?;
    let job = known(&api, &reader, &id).await?;
    Ok(Json(whole_view(&api, &job)))
}
