//! The route table: every address, its method, who may call it, and the handler. The router is built from it, and tests hold
//! the API description and the roles against it.

use axum::routing::{MethodRouter, get, post};

use super::Api;
use super::v1::{audit, channel, confirmation};
use super::{health, hooks, openapi};

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Nobody needs a token.
    Anybody,
    /// Tokens of these roles.
    Roles(&'static [&'static str]),
    /// Verified by the channel's own secrets.
    Platform,
    /// An agent's token, but every refusal is the host's own denial with status 200.
    Hook,
}

/// One method on one address.
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The address, with parameters in braces.
    pub path: &'static str,
    /// Who may call it.
    pub who: Who,
    /// The handler.
    pub serve: fn() -> MethodRouter<Api>,
}

const AGENT: Who = Who::Roles(&["agent"]);
const OPERATOR: Who = Who::Roles(&["operator"]);
const AUDITOR: Who = Who::Roles(&["auditor"]);
const ADMIN: Who = Who::Roles(&["admin"]);
const STAFF: Who = Who::Roles(&["operator", "auditor"]);
const READER: Who = Who::Roles(&["agent", "operator", "auditor"]);

const fn route(
    method: &'static str,
    path: &'static str,
    who: Who,
    serve: fn() -> MethodRouter<Api>,
) -> Route {
    Route {
        method,
        path,
        who,
        serve,
    }
}

/// All of them.
#[rustfmt::skip]
pub const ROUTES: &[Route] = &[
    route("POST", "/api/confirmations", AGENT, || post(confirmation::create::handle)),
    route("GET", "/api/confirmations", STAFF, || get(confirmation::list::handle)),
    route("GET", "/api/confirmations/{id}", READER, || get(confirmation::show::handle)),
    route("POST", "/api/confirmations/{id}/respond", OPERATOR, || post(confirmation::respond::handle)),
    route("POST", "/api/confirmations/{id}/cancel", AGENT, || post(confirmation::cancel::handle)),
    route("POST", "/api/confirmations/{id}/consume", AGENT, || post(confirmation::consume::handle)),
    route("POST", "/api/confirmations/{id}/outcome", AGENT, || post(confirmation::outcome::handle)),
    route("GET", "/api/channels", ADMIN, || get(channel::list::handle)),
    route("POST", "/api/channels/{name}/test", ADMIN, || post(channel::test::handle)),
    route("POST", "/api/channels/{name}/callback", Who::Platform, || post(channel::callback::handle)),
    route("POST", "/api/channels/{name}/callback/", Who::Platform, || post(channel::callback::handle)),
    route("POST", "/api/hooks/{host}", Who::Hook, || post(hooks::handle)),
    route("GET", "/api/audit", AUDITOR, || get(audit::list::handle)),
    route("GET", "/api/audit/verify", AUDITOR, || get(audit::verify::handle)),
    route("GET", "/api/audit/export", AUDITOR, || get(audit::export::handle)),
    route("GET", "/healthz", Who::Anybody, || get(health::alive)),
    route("GET", "/readyz", Who::Anybody, || get(health::ready)),
    route("GET", "/metrics", Who::Anybody, || get(health::metrics)),
    route("GET", "/openapi.json", Who::Anybody, || get(openapi::handle)),
];
