//! `GET /api/audit`: the events of the organisation, oldest first.

use axum::Json;
use axum::extract::State;

use super::{View, filter, view};
use crate::http::Api;
use crate::http::auth::Auditor;
use crate::http::problem::Problem;
use crate::http::query::Params;
use crate::http::v1::List;

/// Lists them.
pub async fn handle(
    State(api): State<Api>,
    auditor: Auditor,
    mut params: Params,
) -> Result<Json<List<View>>, Problem> {
    let filter = filter(auditor.org, &mut params)?;
    params.finish()?;
    let page = api.gatekeeper().store().read().audit(&filter).await?;
    let items = page
        .items
        .into_iter()
        .map(|event| view(event, false))
        .collect::<Result<_, _>>()?;
    Ok(Json(List {
        items,
        next_cursor: page.next_cursor,
    }))
}
