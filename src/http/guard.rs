//! What stands before every handler: names and tokens in addresses are checked, too much at once is refused, a panic becomes
//! an answer, and how long it took is counted.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::problem::{Code, Problem};
use super::{Api, hooks, query, rest};
use crate::ids::TokenName;

/// Requests that are answered at once, waits for people included. Each holds little: bodies have a budget of their own.
const AT_ONCE: usize = 8_192;

/// How much is answered at once, and how much of it may wait for people. Clones share it.
#[derive(Debug, Clone)]
pub struct Crowd {
    places: Arc<Semaphore>,
    waits: Arc<Semaphore>,
    /// The waits of each token.
    of_token: Arc<Mutex<HashMap<TokenName, usize>>>,
    per_token: usize,
}

impl Default for Crowd {
    fn default() -> Self {
        Self::of(AT_ONCE)
    }
}

impl Crowd {
    /// At most so many requests, of which at most half wait for people: whoever waits must never keep out the click that
    /// they wait for. Of these waits at most half are of one token.
    pub fn of(requests: usize) -> Self {
        let waits = (requests / 2).max(1);
        Self {
            places: Arc::new(Semaphore::new(requests)),
            waits: Arc::new(Semaphore::new(waits)),
            of_token: Arc::default(),
            per_token: (waits / 2).max(1),
        }
    }

    /// The same with at most so many waits of one token.
    #[must_use]
    pub fn with_waits_per_token(self, most: usize) -> Self {
        Self {
            per_token: most.max(1),
            ..self
        }
    }

    /// The right to wait for people, as long as it is held.
    ///
    /// # Errors
    /// When the token waits too often already, or everybody together; then the request is refused, or answered as things stand.
    pub fn may_wait(&self, token: &TokenName) -> Result<Wait, NoWait> {
        let mut of_token = self.of_token.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Arc::clone(&self.waits)
            .try_acquire_owned()
            .map_err(|_| NoWait::OfAll)?;
        let waits = of_token.get(token).copied().unwrap_or(0);
        if waits >= self.per_token {
            return Err(NoWait::OfToken);
        }
        of_token.insert(token.clone(), waits + 1);
        Ok(Wait {
            token: token.clone(),
            of_token: Arc::clone(&self.of_token),
            _place: place,
        })
    }
}

/// The right to wait for people.
#[derive(Debug)]
pub struct Wait {
    token: TokenName,
    of_token: Arc<Mutex<HashMap<TokenName, usize>>>,
    _place: OwnedSemaphorePermit,
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut of_token = self.of_token.lock().unwrap_or_else(PoisonError::into_inner);
        match of_token.get_mut(&self.token) {
            Some(waits) if *waits > 1 => *waits -= 1,
            _ => drop(of_token.remove(&self.token)),
        }
    }
}

/// Why a request may not wait for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoWait {
    /// Its token waits as often as one may.
    OfToken,
    /// Everybody together does.
    OfAll,
}

impl From<NoWait> for Problem {
    fn from(why: NoWait) -> Self {
        match why {
            NoWait::OfToken => Self::new(Code::TooManyWaits)
                .because("this token waits for people as often as one may; ask without `wait`, or later")
                .retry_after(1),
            NoWait::OfAll => Self::new(Code::Overloaded).retry_after(1),
        }
    }
}

/// Runs a request inside all guards. A host's hook is answered in the host's own words whatever a guard says.
pub async fn guard(State(api): State<Api>, request: Request, next: Next) -> Response {
    let host = hooks::host_of(request.uri().path()).map(str::to_owned);
    let (request, rest) = rest::lend(request);
    let response = guarded(&api, request, next).await;
    rest.discard().await;
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
    let Ok(_place) = api.crowd().places.try_acquire() else {
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
    let method = label(request.method());
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

/// The method as a label. Anybody can make up methods, and each would be a series that is kept for ever.
fn label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_up_method_makes_no_series_of_its_own() {
        let labels: std::collections::BTreeSet<_> = (0..1_000)
            .map(|n| label(&format!("MADEUP{n}").parse().unwrap()))
            .chain([label(&Method::GET), label(&Method::POST)])
            .collect();
        assert_eq!(labels, ["GET", "POST", "other"].into());
    }

    #[test]
    fn some_places_are_never_waited_in() {
        let crowd = Crowd::of(16);
        let held =
            |token: &str| -> Vec<_> { std::iter::from_fn(|| crowd.may_wait(&token.into()).ok()).collect() };
        let greedy = held("greedy");
        assert_eq!(greedy.len(), 4, "one token leaves room for others");
        assert_eq!(crowd.may_wait(&"greedy".into()).err(), Some(NoWait::OfToken));
        let other = held("other");
        assert_eq!(other.len(), 4);
        assert_eq!(crowd.may_wait(&"third".into()).err(), Some(NoWait::OfAll));
        drop(greedy);
        assert!(crowd.may_wait(&"third".into()).is_ok());
        assert!(crowd.may_wait(&"greedy".into()).is_ok());
        assert_eq!(crowd.may_wait(&"other".into()).err(), Some(NoWait::OfToken));
    }
}
