//! The one-time address of the demo: whoever opens it first, from this very machine, is the demo's operator. It is printed to
//! the terminal, kept as a hash, and works once.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{ConnectInfo, Path, State};
use axum::http::Extensions;
use axum::response::Response;
use gatepost_channel::same_bytes;
use sha2::{Digest as _, Sha256};

use super::login::begin;
use super::refusal;
use super::session::secret;
use crate::confirmation::decide::Surface;
use crate::http::Api;
use crate::http::auth::Operator;
use crate::http::problem::Problem;
use crate::ids::Ids;

/// A one-time address that was not used yet. Clones share it.
#[derive(Debug, Clone)]
pub struct OneTime(Arc<Mutex<Option<Waiting>>>);

/// Who waits behind it.
#[derive(Debug)]
struct Waiting {
    hash: [u8; 32],
    operator: Operator,
}

impl OneTime {
    /// An address for this operator; the second value is its last segment, to be shown once.
    pub fn new(operator: Operator, ids: &dyn Ids) -> (Self, String) {
        let value = secret(ids);
        let hash = Sha256::digest(&value).into();
        (
            Self(Arc::new(Mutex::new(Some(Waiting { hash, operator })))),
            value,
        )
    }

    /// Uses it up.
    fn redeem(&self, value: &str) -> Option<Operator> {
        let given: [u8; 32] = Sha256::digest(value).into();
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let right = place
            .as_ref()
            .is_some_and(|waiting| same_bytes(&waiting.hash, &given));
        if right {
            place.take().map(|waiting| waiting.operator)
        } else {
            None
        }
    }
}

/// `GET /console/once/{secret}`. Without a known peer, or from another machine, there is no such page.
pub async fn redeem(State(api): State<Api>, Path(value): Path<String>, extensions: Extensions) -> Response {
    let here = extensions
        .get::<ConnectInfo<SocketAddr>>()
        .is_some_and(|ConnectInfo(peer)| peer.ip().to_canonical().is_loopback());
    let operator = api
        .console()
        .and_then(super::Console::once)
        .filter(|_| here)
        .and_then(|once| once.redeem(&value));
    match operator {
        Some(operator) => begin(&api, operator, Surface::Terminal, "../"),
        None => refusal(
            &api,
            Problem::not_found().because("This address is not one of ours, or it was used before."),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Org, SeededIds};

    #[test]
    fn it_works_once_and_only_whole() {
        let operator = Operator {
            id: "dana".into(),
            org: Org::default(),
        };
        let (once, value) = OneTime::new(operator, &SeededIds::default());
        assert!(once.redeem(&value[1..]).is_none());
        assert!(once.redeem("").is_none());
        assert!(once.redeem(&value).is_some());
        assert!(once.redeem(&value).is_none());
    }
}
