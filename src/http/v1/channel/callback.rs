//! `POST /api/channels/{name}/callback`: what a platform sends. The bytes reach the verifier as they came; nothing parses
//! them before. A wrong answer says nothing, so this endpoint has no problem documents for what is not authentic.

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use gatepost_channel::{HttpAnswer, RawRequest};

use crate::http::problem::{Code, Problem};
use crate::http::{Api, body};

/// Takes it in.
pub async fn handle(State(api): State<Api>, Path(name): Path<String>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    // A channel that is not there reads no body.
    if api.gatekeeper().registry().get(&name).is_none() {
        return Problem::not_found().into_response();
    }
    let held = match body::read(&api.budget().of_strangers(), &parts.headers, body, body::MAX_BODY).await {
        Ok(held) => held,
        Err(problem) if problem.code() == Code::BodyTooLarge => {
            return answer(api.intake().too_large(&name));
        }
        Err(problem) => return problem.into_response(),
    };
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
        .collect();
    let raw = RawRequest {
        headers,
        body: held.into_bytes(),
    };
    answer(api.intake().receive(&name, &raw).await)
}

fn answer(answer: HttpAnswer) -> Response {
    let HttpAnswer {
        status,
        content_type,
        body,
    } = answer;
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Body::from(body)).into_response();
    if let Some(kind) = content_type {
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    response
}
