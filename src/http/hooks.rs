//! The place where agent hosts ask in their own dialect. Hosts take any status but 200 as consent, so everything that is not
//! an answer becomes the host's own denial, answered with 200: a missing token, a bad or oversized body, overload, a panic.
//!
//! It knows no dialect: [`crate::host`] does.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::auth::Rights;
use super::problem::{Code, Problem};
use super::{Api, body, query};
use crate::gate::DenyReason;
use crate::gatekeeper::Caller;
use crate::host::serve::{self, AuthFailure, BodyFailure, HostAnswer, Incoming};
use crate::host::{CALL_HEADER, Host, MAX_BODY, PENDING_HEADER};

/// `POST /api/hooks/{host}`. The query `hold` says how long the host may be kept waiting, in seconds.
pub async fn handle(
    State(api): State<Api>,
    Path(host): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let host = Host::parse(&host)
        .map_err(|unknown| Problem::new(Code::NotInstalled).because(unknown.to_string()))?;
    let (parts, body) = request.into_parts();
    let caller = match api.tokens().of_request(&parts) {
        Err(_) => Err(AuthFailure::UnknownToken),
        Ok(identity) => match &identity.rights {
            Rights::Agent { owner, .. } => Ok(Caller {
                token: identity.token.clone(),
                org: identity.org.clone(),
                owner: owner.clone(),
            }),
            _ => Err(AuthFailure::NotAnAgent),
        },
    };
    let hold = query::Params::of(&parts.uri)
        .ok()
        .and_then(|mut query| query.text("hold"));
    let budget = match &caller {
        Ok(_) => api.budget().clone(),
        Err(_) => api.budget().of_strangers(),
    };
    let body = match body::read(&budget, &parts.headers, body, MAX_BODY).await {
        // Its share of the budget is free again: who waits for people for hours must not keep it.
        Ok(read) => Ok(read.into_bytes()),
        Err(problem) if problem.code() == Code::BodyTooLarge => Err(BodyFailure::TooLarge),
        Err(problem) if problem.code() == Code::Overloaded => return Err(problem),
        Err(_) => Err(BodyFailure::Broken),
    };
    // Too many wait already: the host hears what stands now, which is a denial while nobody has decided.
    let place = caller
        .as_ref()
        .ok()
        .and_then(|caller| api.crowd().may_wait(&caller.token).ok());
    let incoming = Incoming {
        caller,
        body,
        hold: place
            .as_ref()
            .map_or(Duration::ZERO, |_| serve::hold(hold.as_deref())),
        call: single(&parts.headers, CALL_HEADER),
        pending: single(&parts.headers, PENDING_HEADER),
    };
    Ok(respond(
        serve::answer(api.gatekeeper(), api.tasks(), host, incoming).await,
    ))
}

/// The host that a path names, when it is one of a hook.
pub fn host_of(path: &str) -> Option<&str> {
    let (_, rest) = path.split_once("/api/hooks/")?;
    rest.split('/').next()
}

/// The answer, or in place of a refusal the host's own denial. A host that is not known gets the form that most hosts share.
pub fn in_its_own_words(host: &str, response: Response) -> Response {
    if response.status() == StatusCode::OK {
        return response;
    }
    let (reason, message) = match response.status().as_u16() {
        401 | 403 => (DenyReason::NotAuthorised, "the gate does not know this token"),
        400..=499 => (
            DenyReason::InvalidArguments,
            "the gate could not read the question",
        ),
        _ => (DenyReason::GateError, "the gate could not answer"),
    };
    metrics::counter!("gatepost_hook_refusals_total", "status" => response.status().as_u16().to_string())
        .increment(1);
    match Host::parse(host) {
        Ok(host) => respond(serve::refuse(host, None, message, reason)),
        // Whoever asks in the form of a host that we do not know must not run the call for want of an answer.
        Err(unknown) => respond(serve::refuse(
            Host::ClaudeCode,
            None,
            &unknown.to_string(),
            DenyReason::GateError,
        )),
    }
}

fn respond(answer: HostAnswer) -> Response {
    let mut response = Body::from(answer.body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(id) = answer.pending
        && let Ok(value) = HeaderValue::from_str(id.as_str())
    {
        headers.insert(PENDING_HEADER, value);
    }
    response
}

/// A header that stands once.
fn single(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?.to_owned();
    values.next().is_none().then_some(value)
}
