//! Probes and metrics. They need no token and name no person, argument or organisation.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::Api;
use super::problem::{Code, Problem};

/// `GET /healthz`: the process answers.
pub async fn alive() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// `GET /readyz`: the process takes work: it is not stopping, and its store answers with the schema it knows.
pub async fn ready(State(api): State<Api>) -> Result<Json<Value>, Problem> {
    if api.tasks().is_stopping() {
        return Err(Problem::new(Code::Unavailable).because("the server is stopping"));
    }
    api.gatekeeper().store().read().ready().await.map_err(|error| {
        tracing::warn!(%error, "the store is not ready");
        Problem::new(Code::Unavailable).because("the store is not ready")
    })?;
    Ok(Json(json!({ "status": "ready" })))
}

/// `GET /metrics`: the Prometheus text format; the gauges are read from the store when they are asked for.
pub async fn metrics(State(api): State<Api>) -> Result<Response, Problem> {
    let Some(handle) = api.metrics() else {
        return Err(Problem::new(Code::NotInstalled));
    };
    let store = api.gatekeeper().store();
    match store.read().counts().await {
        Ok(counts) => {
            let now = store.read().now().await.unwrap_or_else(|_| api.clock().now());
            crate::telemetry::metrics::set(&counts, now);
        }
        // The counters of this process are true all the same.
        Err(error) => tracing::warn!(%error, "the gauges could not be read"),
    }
    match api.sender().troubles().await {
        Ok(troubles) => {
            let names = api.gatekeeper().registry().all().map(|listed| &listed.name);
            let refusing = names.map(|name| (name.as_str(), troubles.contains_key(name)));
            crate::telemetry::metrics::set_channels(refusing);
        }
        Err(error) => tracing::warn!(%error, "the health of the channels could not be read"),
    }
    let mut response = handle.render().into_response();
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"),
    );
    Ok(response)
}
