//! What stands before every handler: names and tokens in addresses are checked, too much at once is refused, a panic becomes
//! an answer, and how long it took is counted.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::problem::{Code, Problem};
use super::{Api, hooks, query};

/// Requests that are answered at once, waits for people included. Each holds little: bodies have a budget of their own.
const AT_ONCE: usize = 8_192;

/// How much is answered at once. Clones share it.
#[derive(Debug, Clone)]
pub struct Crowd(Arc<Semaphore>);

impl Default for Crowd {
    fn default() -> Self {
        Self::of(AT_ONCE)
    }
}

impl Crowd {
    /// At most so many requests.
    pub fn of(requests: usize) -> Self {
        Self(Arc::new(Semaphore::new(requests)))
    }
}

/// Runs a request inside all guards. A host's hook is answered in the host's own words whatever a guard says.
pub async fn guard(State(api): State<Api>, request: Request, next: Next) -> Response {
    let host = hooks::host_of(request.uri().path()).map(str::to_owned);
    let response = guarded(&api, request, next).await;
    let mut response = match host {
        Some(host) => hooks::in_its_own_words(&host, response),
        None => response,
    };
    let headers = response.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

async fn guarded(api: &Api, request: Request, next: Next) -> Response {
    let Ok(_place) = api.crowd().0.try_acquire() else {
        return Problem::new(Code::Overloaded).retry_after(1).into_response();
    };
    let known = api
        .names()
        .check(request.uri(), request.headers())
        .and_then(|()| query::refuse_token(request.uri()));
    if let Err(problem) = known {
        return problem.into_response();
    }
    AssertUnwindSafe(next.run(request))
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Problem::internal("a handler panicked").into_response())
}

/// Counts how long an answer took, by the template of the route and never by what was in it.
pub async fn measure(route: &'static str, request: Request, next: Next) -> Response {
    let method = request.method().as_str().to_owned();
    let began = Instant::now();
    let response = next.run(request).await;
    let status = response.status().as_u16().to_string();
    metrics::histogram!(
        "gatepost_http_request_duration_seconds",
        "method" => method, "route" => route, "status" => status
    )
    .record(began.elapsed().as_secs_f64());
    response
}
