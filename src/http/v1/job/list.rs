//! `GET /api/jobs`: jobs, newest first; an agent's own, or those of the organisation.

use axum::Json;
use axum::extract::State;

use super::view;
use crate::http::Api;
use crate::http::auth::Reader;
use crate::http::problem::Problem;
use crate::http::query::Params;
use crate::http::v1::List;
use crate::job::JobStatus;
use crate::job::view::JobView;
use crate::storage::JobFilter;

/// Lists them.
pub async fn handle(
    State(api): State<Api>,
    reader: Reader,
    mut params: Params,
) -> Result<Json<List<JobView>>, Problem> {
    let filter = JobFilter {
        orgs: vec![reader.org().clone()],
        token: match &reader {
            Reader::Agent(agent) => Some(agent.caller.token.clone()),
            Reader::Operator(_) | Reader::Auditor(_) => None,
        },
        status: params.words("status", JobStatus::parse)?,
        limit: params.limit(50, 200)?,
        cursor: params.cursor(),
    };
    params.finish()?;
    let page = api.gatekeeper().store().read().jobs(&filter).await?;
    Ok(Json(List {
        items: page.items.iter().map(|job| view(&api, job)).collect(),
        next_cursor: page.next_cursor,
    }))
}
