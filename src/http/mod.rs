//! The HTTP side: one route table, one file for each endpoint, one kind of refusal.
//!
//! [`route`] is the table from which the router is built and against which the API description is tested; [`auth`] says who
//! calls; [`body`] and [`query`] read what was sent, strictly; [`problem`] is how everything is refused; [`guard`] stands
//! before all of it. The room knows axum and no SQL, and decides nothing: the [`Gatekeeper`] does.

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use metrics_exporter_prometheus::PrometheusHandle;

use crate::callback::Intake;
use crate::clock::{Clock, Zone};
use crate::config::address::PublicUrl;
use crate::console::Console;
use crate::delivery::sender::Sender;
use crate::gatekeeper::Gatekeeper;
use crate::lifecycle::Tasks;

pub mod auth;
pub mod body;
pub mod guard;
pub mod health;
pub mod hooks;
pub mod openapi;
pub mod origin;
pub mod problem;
pub mod query;
pub mod rest;
pub mod route;
pub mod serve;
pub mod v1;

#[cfg(test)]
mod described;
#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod http_tests;

pub use openapi::DOCUMENT as OPENAPI;

use auth::Tokens;
use body::BodyBudget;
use guard::Crowd;
use origin::Names;
use problem::{Code, Problem};
use v1::channel::throttle::Throttle;
use v1::job::Desk;

/// What the HTTP side is made of.
pub struct Parts {
    /// What callers may do.
    pub gatekeeper: Gatekeeper,
    /// Where callbacks go.
    pub intake: Intake,
    /// Who sends cards; tells when a channel last took one.
    pub sender: Arc<Sender>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The bearer tokens.
    pub tokens: Tokens,
    /// By which names the server is known.
    pub names: Names,
    /// How the outside names the server.
    pub public_url: Option<PublicUrl>,
    /// The zone of the times on pages for people.
    pub zone: Zone,
    /// Whoever runs jobs; `None` where there are no pieces.
    pub desk: Option<Arc<dyn Desk>>,
    /// The pages for people; `None` serves none.
    pub console: Option<Console>,
    /// What the metrics are read from.
    pub metrics: Option<PrometheusHandle>,
    /// The tasks of the server: a server that stops is not ready.
    pub tasks: Tasks,
    /// How much is answered at once.
    pub crowd: Crowd,
    /// Memory and time for bodies.
    pub bodies: BodyBudget,
}

struct Shared {
    parts: Parts,
    tests: Throttle,
}

/// The state of every handler. Clones share it.
#[derive(Clone)]
pub struct Api(Arc<Shared>);

impl Api {
    /// Puts the HTTP side together.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Shared {
            parts,
            tests: Throttle::default(),
        }))
    }

    /// What callers may do.
    pub fn gatekeeper(&self) -> &Gatekeeper {
        &self.0.parts.gatekeeper
    }

    /// Where callbacks go.
    pub fn intake(&self) -> &Intake {
        &self.0.parts.intake
    }

    /// Who sends cards.
    pub fn sender(&self) -> &Sender {
        &self.0.parts.sender
    }

    /// Time.
    pub fn clock(&self) -> &dyn Clock {
        &*self.0.parts.clock
    }

    /// The bearer tokens.
    pub fn tokens(&self) -> &Tokens {
        &self.0.parts.tokens
    }

    /// By which names the server is known.
    pub fn names(&self) -> &Names {
        &self.0.parts.names
    }

    /// How the outside names the server.
    pub fn public_url(&self) -> Option<&PublicUrl> {
        self.0.parts.public_url.as_ref()
    }

    /// The zone of the times on pages for people.
    pub fn zone(&self) -> &Zone {
        &self.0.parts.zone
    }

    /// Whoever runs jobs.
    pub fn desk(&self) -> Option<&dyn Desk> {
        self.0.parts.desk.as_deref()
    }

    /// The pages for people.
    pub fn console(&self) -> Option<&Console> {
        self.0.parts.console.as_ref()
    }

    /// What the metrics are read from.
    pub fn metrics(&self) -> Option<&PrometheusHandle> {
        self.0.parts.metrics.as_ref()
    }

    /// The tasks of the server.
    pub fn tasks(&self) -> &Tasks {
        &self.0.parts.tasks
    }

    /// How much is answered at once.
    pub fn crowd(&self) -> &Crowd {
        &self.0.parts.crowd
    }

    /// Memory and time for bodies.
    pub fn budget(&self) -> &BodyBudget {
        &self.0.parts.bodies
    }

    /// How often channels are tested.
    pub fn tests(&self) -> &Throttle {
        &self.0.tests
    }
}

/// The router over the table. A `public_url` with a path is served below it too, for proxies that do not cut it off.
pub fn router(api: Api) -> Router {
    let mut router = Router::new();
    for route in route::ROUTES {
        let template = route.path;
        let measured = from_fn(move |request, next| guard::measure(template, request, next));
        router = router.route(route.path, (route.serve)().layer(measured));
    }
    let router = router
        .fallback(|| async { Problem::not_found().because("there is nothing at this address") })
        .method_not_allowed_fallback(|| async { Problem::new(Code::MethodNotAllowed) });
    let base = api
        .public_url()
        .map(|url| url.base_path().to_owned())
        .filter(|base| !base.is_empty());
    let router = match base {
        Some(base) => Router::new().nest(&base, router.clone()).merge(router),
        None => router,
    };
    router
        .layer(from_fn_with_state(api.clone(), guard::guard))
        .with_state(api)
}
