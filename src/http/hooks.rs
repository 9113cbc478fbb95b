//! The place where agent hosts ask in their own dialect. Hosts take any status but 200 as consent, so everything that is not
//! an answer becomes the host's own denial, answered with 200: a missing token, a bad or oversized body, overload, a panic.
//!
//! It knows no dialect: [`Dialects`] does.

use async_trait::async_trait;
use axum::body::Body;
use axum::extract::{FromRequestParts as _, Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::auth::Agent;
use super::problem::{Code, Problem};
use super::{Api, body};
use crate::gate::DenyReason;
use crate::gatekeeper::Caller;

/// The dialects of agent hosts, on top of the gate.
#[async_trait]
pub trait Dialects: Send + Sync {
    /// Answers a host's question with a JSON body. It must not fail: what goes wrong is a denial.
    async fn answer(&self, caller: &Caller, host: &str, body: &[u8]) -> String;

    /// The host's own denial, as a JSON body. A host that is not known gets the most widely understood one.
    fn denial(&self, host: &str, reason: DenyReason, message: &str) -> String;
}

/// `POST /api/hooks/{host}`.
pub async fn handle(
    State(api): State<Api>,
    Path(host): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let agent = Agent::from_request_parts(&mut parts, &api).await?;
    let held = body::read(api.budget(), &parts.headers, body).await?;
    let Some(dialects) = api.dialects() else {
        return Err(Problem::new(Code::NotInstalled));
    };
    Ok(answer(dialects.answer(&agent.caller, &host, held.bytes()).await))
}

/// The host that a path names, when it is one of a hook.
pub fn host_of(path: &str) -> Option<&str> {
    let (_, rest) = path.split_once("/api/hooks/")?;
    rest.split('/').next()
}

/// The answer, or in place of a refusal the host's own denial.
pub fn in_its_own_words(api: &Api, host: &str, response: Response) -> Response {
    if response.status() == StatusCode::OK {
        return response;
    }
    let (reason, message) = match response.status().as_u16() {
        401 => (
            DenyReason::NotAuthorised,
            "The call was not approved: the token of the hook is missing or not known to Gatepost.",
        ),
        403 => (
            DenyReason::NotAuthorised,
            "The call was not approved: the token of the hook is not an agent's.",
        ),
        400..=499 => (
            DenyReason::InvalidArguments,
            "The call was not approved: Gatepost could not read the question of the hook.",
        ),
        _ => (
            DenyReason::GateError,
            "The call was not approved: Gatepost could not answer the hook.",
        ),
    };
    metrics::counter!("gatepost_hook_refusals_total", "status" => response.status().as_u16().to_string())
        .increment(1);
    match api.dialects() {
        Some(dialects) => answer(dialects.denial(host, reason, message)),
        None => answer(bare_denial(message)),
    }
}

fn answer(json: String) -> Response {
    let mut response = Body::from(json).into_response();
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The denial of an installation without dialects, in the shape that most hosts share.
fn bare_denial(message: &str) -> String {
    serde_json::json!({
        "continue": true,
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": message,
        },
    })
    .to_string()
}
