//! The console: pages for people in a browser. Rendered on the server, without scripts; what others wrote is made inert and
//! escaped; every form carries a token of the session.
//!
//! [`session`] says who is logged in, [`page`] renders, and each page or act is a file. It decides nothing: votes go through
//! the gatekeeper like everybody's.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::http::Api;
use crate::http::problem::Problem;

pub mod decide;
pub mod form;
pub mod inbox;
pub mod login;
pub mod once;
pub mod page;
pub mod request;
pub mod session;

#[cfg(test)]
mod console_tests;

pub use once::OneTime;
use page::Pages;
use session::{Session, Sessions};

/// The stylesheet.
const STYLE: &str = include_str!("../../templates/console/style.css");

/// The console of one server. Clones share it.
#[derive(Clone)]
pub struct Console(Arc<Inside>);

struct Inside {
    sessions: Sessions,
    pages: Pages,
    once: Option<OneTime>,
}

impl Console {
    /// A console; with a one-time address where there is one (the demo).
    ///
    /// # Errors
    /// When a template cannot be read.
    pub fn new(once: Option<OneTime>) -> Result<Self, minijinja::Error> {
        Ok(Self(Arc::new(Inside {
            sessions: Sessions::default(),
            pages: Pages::new()?,
            once,
        })))
    }

    /// Who is logged in.
    pub fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }

    /// The pages.
    pub fn pages(&self) -> &Pages {
        &self.0.pages
    }

    /// The one-time address.
    pub fn once(&self) -> Option<&OneTime> {
        self.0.once.as_ref()
    }
}

/// Somebody who is logged in. Nobody else gets further than the log-in page.
#[derive(Debug, Clone)]
pub struct Visitor(pub Session);

impl FromRequestParts<Api> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Response> {
        session::of_request(parts, api)
            .map(Self)
            .ok_or_else(|| to_login(api, parts.uri.path()))
    }
}

/// Leads to the log-in page, and from there back to the request that was asked for.
fn to_login(api: &Api, path: &str) -> Response {
    match path
        .rsplit_once("/requests/")
        .and_then(|(_, id)| crate::ids::ConfirmationId::parse(id).ok())
    {
        Some(id) => see(&format!("../login?next={id}")),
        None if path.ends_with("/console/") => see("login"),
        None => page::message(
            api,
            StatusCode::UNAUTHORIZED,
            "Not logged in",
            "The session has ended. Log in and do it again.",
        ),
    }
}

/// Leads to another page of the console; relative, so that a base path before it does not matter.
pub fn see(place: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(place) = HeaderValue::from_str(place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

/// `GET /console/style.css`.
pub async fn style() -> Response {
    let mut response = STYLE.into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/css; charset=utf-8"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// `GET /`: whoever types the server's name wants the console. The place is whole, with the base path of `public_url`: relative,
/// it would lose that path where the address does not end with a slash.
pub async fn root(State(api): State<Api>) -> Response {
    if api.console().is_none() {
        return Problem::not_found().into_response();
    }
    let base = api
        .public_url()
        .map_or("", crate::config::address::PublicUrl::base_path);
    see(&format!("{base}/console/"))
}

/// `GET /console`: the console's own address ends with a slash.
pub async fn slash() -> Response {
    see("console/")
}

/// A refusal as a page.
pub fn refusal(api: &Api, problem: Problem) -> Response {
    let code = problem.code();
    let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    page::message(
        api,
        status,
        code.title(),
        problem.into_detail().as_deref().unwrap_or("Nothing was changed."),
    )
}
