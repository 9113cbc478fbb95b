//! The tenant token: fetched once for all, renewed ahead of its end, dropped when the platform does not take it.
//!
//! While 30 minutes or more are left the platform answers with the same token, below that with a new one, and both serve until
//! they end; so renewing starts when less than 30 minutes are left. Knows no HTTP: the fetch is a parameter.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gatepost_channel::{Secret, UtcMillis};
use tokio::sync::Mutex;

use crate::error::CallError;

/// A token is renewed when less than this is left.
const RENEW_BEFORE: Duration = Duration::from_mins(30);
/// A token is kept at least this long, however odd its stated life; it also spaces tries to renew.
const LEAST: Duration = Duration::from_mins(1);
/// The longest life that a token may have, by the platform's word.
const LONGEST: Duration = Duration::from_hours(2);

/// A token as the platform gave it.
#[derive(Debug, Clone)]
pub(crate) struct Fresh {
    /// The token.
    pub(crate) token: Secret,
    /// The stated life; `None` when it was missing or no sensible number.
    pub(crate) life: Option<Duration>,
}

#[derive(Debug, Clone)]
struct Held {
    token: Secret,
    renew_at: UtcMillis,
    dead_at: UtcMillis,
}

/// The one token of an app.
#[derive(Debug, Default)]
pub(crate) struct TokenCache {
    held: Mutex<State>,
    /// Counts finished fetches, so that who waited for a failed one shares its failure instead of repeating it.
    fetches: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    held: Option<Held>,
    failed: Option<CallError>,
}

impl TokenCache {
    /// The token to use now. At most one fetch runs; who comes meanwhile waits for it. A token that still lives serves on
    /// when it cannot be renewed.
    pub(crate) async fn get<F>(&self, now: UtcMillis, fetch: impl FnOnce() -> F) -> Result<Secret, CallError>
    where
        F: Future<Output = Result<Fresh, CallError>>,
    {
        let seen = self.fetches.load(Ordering::SeqCst);
        let mut state = self.held.lock().await;
        if let Some(held) = state.held.as_ref().filter(|held| now < held.renew_at) {
            return Ok(held.token.clone());
        }
        let waited = self.fetches.load(Ordering::SeqCst) != seen;
        if let Some(failed) = state.failed.as_ref().filter(|_| waited) {
            return Err(failed.clone());
        }
        let result = fetch().await;
        self.fetches.fetch_add(1, Ordering::SeqCst);
        match result {
            Ok(fresh) => {
                let life = fresh.life.unwrap_or(LEAST).clamp(LEAST, LONGEST);
                state.failed = None;
                state.held = Some(Held {
                    token: fresh.token.clone(),
                    renew_at: now.plus(life.saturating_sub(RENEW_BEFORE).max(LEAST)),
                    dead_at: now.plus(life),
                });
                Ok(fresh.token)
            }
            Err(error) => {
                if let Some(held) = state.held.as_mut().filter(|held| now < held.dead_at) {
                    held.renew_at = now.plus(LEAST);
                    return Ok(held.token.clone());
                }
                state.held = None;
                state.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Forgets a token that the platform did not take, unless another one is held by now.
    pub(crate) async fn drop_refused(&self, token: &Secret) {
        let mut state = self.held.lock().await;
        if state
            .held
            .as_ref()
            .is_some_and(|held| held.token.expose() == token.expose())
        {
            state.held = None;
        }
    }
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
