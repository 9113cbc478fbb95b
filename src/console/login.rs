//! Logging in with an operator's token, and out. The token is exchanged for a session and not kept.

use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use minijinja::context;

use super::form::Form;
use super::page::{inert_or, show};
use super::session::{self, clear_cookie, set_cookie};
use super::{Visitor, refusal, see};
use crate::confirmation::decide::Surface;
use crate::http::Api;
use crate::http::auth::{Operator, Rights};
use crate::http::problem::Problem;
use crate::http::query::Params;
use crate::ids::ConfirmationId;

/// `GET /console/login`.
pub async fn page(State(api): State<Api>, mut params: Params) -> Response {
    let next = params
        .text("next")
        .and_then(|next| ConfirmationId::parse(&next).ok());
    login(&api, StatusCode::OK, next.as_ref(), None)
}

fn login(api: &Api, status: StatusCode, next: Option<&ConfirmationId>, said: Option<&str>) -> Response {
    show(
        api,
        None,
        status,
        ("login.html", "./"),
        context! {
            next => inert_or(next.map(ConfirmationId::as_str)),
            said => inert_or(said),
        },
    )
}

/// `POST /console/login`.
pub async fn enter(State(api): State<Api>, form: Form) -> Response {
    let next = ConfirmationId::parse(form.field("next")).ok();
    let Some(identity) = api.tokens().recognise(form.field("token").trim().as_bytes()) else {
        return login(
            &api,
            StatusCode::UNAUTHORIZED,
            next.as_ref(),
            Some("This token is not known."),
        );
    };
    let Rights::Operator(id) = &identity.rights else {
        return login(
            &api,
            StatusCode::FORBIDDEN,
            next.as_ref(),
            Some("This token is not an operator's: it decides for nobody."),
        );
    };
    let operator = Operator {
        id: id.clone(),
        org: identity.org.clone(),
    };
    let place = next.map_or("./".to_owned(), |next| format!("requests/{next}"));
    begin(&api, operator, Surface::Console, &place)
}

/// Begins a session and leads on.
pub fn begin(api: &Api, operator: Operator, surface: Surface, place: &str) -> Response {
    let Some(console) = api.console() else {
        return refusal(api, Problem::not_found());
    };
    let ids = &**api.gatekeeper().ids();
    let value = console
        .sessions()
        .begin(operator, surface, ids, api.clock().now());
    let mut response = see(place);
    if let Ok(cookie) = HeaderValue::from_str(&set_cookie(api, &value)) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// `POST /console/logout`.
pub async fn leave(
    State(api): State<Api>,
    Visitor(session): Visitor,
    parts: Parts,
    form: Form,
) -> Result<Response, Response> {
    form.check(&session).map_err(|problem| refusal(&api, problem))?;
    if let (Some(console), Some(value)) = (api.console(), session::cookie(&parts, session::name(&api))) {
        console.sessions().end(value);
    }
    let mut response = see("login");
    if let Ok(cookie) = HeaderValue::from_str(&clear_cookie(&api)) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
