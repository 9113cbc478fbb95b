//! `GET /api/grants`: the grants of the organisation, newest first.

use axum::Json;
use axum::extract::State;

use super::{View, view};
use crate::http::Api;
use crate::http::auth::Staff;
use crate::http::problem::Problem;
use crate::http::query::Params;
use crate::http::v1::List;
use crate::storage::GrantFilter;

/// Lists them; with `active=true` only those that have not ended.
pub async fn handle(
    State(api): State<Api>,
    staff: Staff,
    mut params: Params,
) -> Result<Json<List<View>>, Problem> {
    let filter = GrantFilter {
        orgs: vec![staff.org],
        live: params.flag("active")?,
        limit: params.limit(50, 200)?,
        cursor: params.cursor(),
        ..GrantFilter::default()
    };
    params.finish()?;
    let page = api.gatekeeper().store().read().grants(&filter).await?;
    Ok(Json(List {
        items: page.items.into_iter().map(view).collect(),
        next_cursor: page.next_cursor,
    }))
}
