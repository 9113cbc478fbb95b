//! The route table: every address, its method, who may call it, and the handler. The router is built from it, and tests hold
//! the API description and the roles against it.

use axum::routing::{MethodRouter, delete, get, post};

use super::Api;
use super::v1::{absence, audit, channel, confirmation, grant, job};
use super::{health, hooks, openapi};
use crate::console::{self, decide, inbox, login, once, request};

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Nobody needs a token.
    Anybody,
    /// Tokens of these roles.
    Roles(&'static [&'static str]),
    /// Somebody who is logged in to the console.
    Session,
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
const JOB_PERSON: Who = Who::Roles(&["agent", "operator"]);
const STAFF: Who = Who::Roles(&["operator", "auditor"]);
const PLANNER: Who = Who::Roles(&["operator", "admin"]);
const ROSTER: Who = Who::Roles(&["operator", "auditor", "admin"]);
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
    route("GET", "/api/grants", STAFF, || get(grant::list::handle)),
    route("DELETE", "/api/grants/{id}", OPERATOR, || delete(grant::revoke::handle)),
    route("GET", "/api/absences", ROSTER, || get(absence::list::handle)),
    route("POST", "/api/absences", PLANNER, || post(absence::set::handle)),
    route("POST", "/api/absences/end", PLANNER, || post(absence::end::handle)),
    route("GET", "/api/channels", ADMIN, || get(channel::list::handle)),
    route("POST", "/api/channels/{name}/test", ADMIN, || post(channel::test::handle)),
    route("POST", "/api/channels/{name}/callback", Who::Platform, || post(channel::callback::handle)),
    route("POST", "/api/channels/{name}/callback/", Who::Platform, || post(channel::callback::handle)),
    route("POST", "/api/hooks/{host}", Who::Hook, || post(hooks::handle)),
    route("POST", "/api/jobs", AGENT, || post(job::submit::handle)),
    route("GET", "/api/jobs", READER, || get(job::list::handle)),
    route("GET", "/api/jobs/{id}", READER, || get(job::show::handle)),
    route("GET", "/api/jobs/{id}/events", READER, || get(job::events::handle)),
    route("POST", "/api/jobs/{id}/answer", JOB_PERSON, || post(job::answer::handle)),
    route("POST", "/api/jobs/{id}/cancel", JOB_PERSON, || post(job::cancel::handle)),
    route("GET", "/api/audit", AUDITOR, || get(audit::list::handle)),
    route("GET", "/api/audit/verify", AUDITOR, || get(audit::verify::handle)),
    route("GET", "/api/audit/export", AUDITOR, || get(audit::export::handle)),
    route("GET", "/healthz", Who::Anybody, || get(health::alive)),
    route("GET", "/readyz", Who::Anybody, || get(health::ready)),
    route("GET", "/metrics", Who::Anybody, || get(health::metrics)),
    route("GET", "/openapi.json", Who::Anybody, || get(openapi::handle)),
    route("GET", "/", Who::Anybody, || get(console::root)),
    route("GET", "/console", Who::Anybody, || get(console::slash)),
    route("GET", "/console/", Who::Session, || get(inbox::page)),
    route("GET", "/console/style.css", Who::Anybody, || get(console::style)),
    route("GET", "/console/login", Who::Anybody, || get(login::page)),
    route("POST", "/console/login", Who::Anybody, || post(login::enter)),
    route("POST", "/console/logout", Who::Session, || post(login::leave)),
    route("GET", "/console/once/{secret}", Who::Anybody, || get(once::redeem)),
    route("GET", "/console/requests/{id}", Who::Session, || get(request::page)),
    route("POST", "/console/requests/{id}/respond", Who::Session, || post(decide::act)),
];
