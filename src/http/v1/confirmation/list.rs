//! `GET /api/confirmations`: the requests of the organisation, newest first.

use std::time::Duration;

use axum::Json;
use axum::extract::State;

use super::{Eyes, View, view};
use crate::confirmation::Status;
use crate::http::Api;
use crate::http::auth::Staff;
use crate::http::problem::Problem;
use crate::http::query::Params;
use crate::http::v1::List;
use crate::ids::{ChannelName, JobId};
use crate::storage::ConfirmationFilter;

/// A decided request whose job did not go on within this time is stuck.
pub const STUCK_AFTER: Duration = Duration::from_mins(1);

/// Lists them.
pub async fn handle(
    State(api): State<Api>,
    staff: Staff,
    mut params: Params,
) -> Result<Json<List<View>>, Problem> {
    let read = api.gatekeeper().store().read();
    let stuck_since = if params.flag("stuck")? {
        Some(read.now().await?.minus(STUCK_AFTER))
    } else {
        None
    };
    let filter = ConfirmationFilter {
        orgs: vec![staff.org],
        status: params.words("status", Status::parse)?,
        tool: params.text("tool"),
        agent: params.text("agent"),
        token: None,
        requester: params.text("requester"),
        operator: params.text("operator"),
        channel: params.text("channel").map(ChannelName),
        job: params.parsed("job", "the id of a job", |text| JobId::parse(text).ok())?,
        since: params.instant("since")?,
        until: params.instant("until")?,
        id_prefix: None,
        q: params.text("q"),
        stuck_since,
        break_glass: params.flag("break_glass")?,
        limit: params.limit(50, 200)?,
        cursor: params.cursor(),
    };
    params.finish()?;
    let page = read.confirmations(&filter).await?;
    let key = api.gatekeeper().maker().key().as_bytes();
    let items = page
        .items
        .into_iter()
        .map(|dossier| view(dossier, Eyes::Redacted).map(|view| view.with_code(key)))
        .collect::<Result<_, _>>()?;
    Ok(Json(List {
        items,
        next_cursor: page.next_cursor,
    }))
}
