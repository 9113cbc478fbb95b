//! `GET /api/channels`: the channels of the organisation, each asked whether it works.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use futures_util::future::join_all;
use gatepost_channel::Health;
use serde::Serialize;
use tokio::time::timeout;

use crate::clock::rfc3339;
use crate::delivery::registry::Listed;
use crate::http::Api;
use crate::http::auth::Admin;
use crate::http::problem::Problem;
use crate::http::query::Params;
use crate::http::v1::List;

/// A platform that does not answer within this time is unhealthy.
const CHECK_WITHIN: Duration = Duration::from_secs(8);

/// A channel.
#[derive(Debug, Serialize)]
pub struct View {
    name: String,
    kind: &'static str,
    healthy: bool,
    detail: String,
    last_post_at: Option<String>,
    last_click_at: Option<String>,
}

/// Lists them.
pub async fn handle(
    State(api): State<Api>,
    admin: Admin,
    params: Params,
) -> Result<Json<List<View>>, Problem> {
    params.finish()?;
    let channels = api
        .gatekeeper()
        .registry()
        .all()
        .filter(|listed| listed.org == admin.org);
    let items = join_all(channels.map(|listed| check(&api, listed))).await;
    Ok(Json(List {
        items,
        next_cursor: None,
    }))
}

async fn check(api: &Api, listed: &Listed) -> View {
    let health = timeout(CHECK_WITHIN, listed.channel.check())
        .await
        .unwrap_or_else(|_| Health {
            healthy: false,
            detail: "the platform does not answer".to_owned(),
        });
    let missing = api.gatekeeper().directories().missing(listed);
    let detail = match missing {
        Some(missing) => format!("{}; {missing}", health.detail),
        None => health.detail,
    };
    // The platform may say that all is well and refuse cards all the same: what became of the last one counts.
    let trouble = api.sender().trouble(&listed.name);
    View {
        name: listed.name.0.clone(),
        kind: listed.channel.kind(),
        healthy: health.healthy && trouble.is_none(),
        detail: match trouble {
            Some(why) => format!("the last card was refused ({why}); {detail}"),
            None => detail,
        },
        last_post_at: api.sender().last_post(&listed.name).map(rfc3339),
        last_click_at: api.intake().last_click(&listed.name).map(rfc3339),
    }
}
