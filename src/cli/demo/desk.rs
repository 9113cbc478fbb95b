//! The page on which the person of the demo decides: one address with 128 random bits in it, on loopback, for one decision.
//!
//! The page knows no store and no gate. It shows the card, and hands the decision to the API with Dana's own token; so what it
//! may do is what she may do, and an address that leaks is worth one decision on one request.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Form, Router};
use gatepost_channel::{Actions, Card};
use minijinja::{Environment, context};
use serde::Deserialize;
use serde_json::json;
use subtle::ConstantTimeEq as _;

use super::play::Cards;
use crate::cli::api::Api;
use crate::ids::ConfirmationId;

const PAGE: &str = include_str!("../../../templates/demo/decide.html");
/// Nothing is loaded, framed or sent elsewhere; the address is told to nobody.
const HEADERS: [(header::HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::CACHE_CONTROL, "no-store"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
];

/// What the page needs.
pub struct Desk {
    /// The random part of the address.
    pub secret: String,
    /// Where it is served.
    pub at: SocketAddr,
    /// The request that it is about.
    pub request: ConfirmationId,
    /// How the request looks now.
    pub cards: Cards,
    /// The API, as the person who decides.
    pub person: Api,
}

#[derive(Debug, Deserialize)]
struct Pressed {
    decision: String,
    #[serde(default)]
    reason: String,
}

impl Desk {
    /// The one address.
    pub fn address(&self) -> String {
        format!("http://{}/decide/{}", self.at, self.secret)
    }

    /// The router.
    pub fn router(self: Arc<Self>) -> Router {
        Router::new()
            .route("/decide/{secret}", get(show).post(decide))
            .with_state(self)
    }

    /// Whether this is the address, asked under the name that was printed: another name is another site's trick.
    fn admits(&self, secret: &str, headers: &HeaderMap) -> bool {
        let known = bool::from(secret.as_bytes().ct_eq(self.secret.as_bytes()));
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        known && host == Some(&self.at.to_string())
    }

    async fn page(&self, notice: Option<&str>) -> Response {
        match self
            .cards
            .card(&self.request)
            .await
            .and_then(|card| render(&card, notice))
        {
            Some(page) => (HEADERS, Html(page)).into_response(),
            None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

async fn show(State(desk): State<Arc<Desk>>, Path(secret): Path<String>, headers: HeaderMap) -> Response {
    if desk.admits(&secret, &headers) {
        desk.page(None).await
    } else {
        StatusCode::NOT_FOUND.into_response()
    }
}

async fn decide(
    State(desk): State<Arc<Desk>>,
    Path(secret): Path<String>,
    headers: HeaderMap,
    Form(pressed): Form<Pressed>,
) -> Response {
    if !desk.admits(&secret, &headers) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let reason = pressed.reason.trim();
    if pressed.decision == "reject" && reason.is_empty() {
        return desk.page(Some("Say why you reject it: the agent is told.")).await;
    }
    let body = json!({"decision": pressed.decision, "reason": (!reason.is_empty()).then_some(reason)});
    let path = format!("/api/confirmations/{}/respond", desk.request);
    match desk.person.post(&path, &body).await {
        Ok(_) => desk.page(None).await,
        Err(error) => desk.page(Some(&error.to_string())).await,
    }
}

fn render(card: &Card, notice: Option<&str>) -> Option<String> {
    let mut pages = Environment::new();
    pages.add_template("decide.html", PAGE).ok()?;
    let facts: Vec<_> = card
        .facts
        .iter()
        .map(|fact| context! { label => fact.label.as_str(), value => fact.value.as_str() })
        .collect();
    let shown = context! {
        title => card.title.as_str(),
        notice,
        tool => card.tool.as_str(),
        arguments => card.arguments.as_str(),
        facts,
        open => matches!(card.actions, Actions::Decide { .. }),
    };
    pages.get_template("decide.html").ok()?.render(shown).ok()
}
