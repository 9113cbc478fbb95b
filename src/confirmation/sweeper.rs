//! The sweeper: the task that lets deadlines pass. It wakes at the next deadline, and at least every second.
//!
//! Whether a deadline passed is judged by the store's clock when the transaction runs; the timer here is only a hint.

use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::expire::Expire;
use crate::clock::Clock;
use crate::lifecycle::Tasks;
use crate::storage::Store;

/// Requests settled in one transaction.
const BATCH: usize = 256;
/// The slow poll behind the timer.
const POLL: Duration = Duration::from_secs(1);
/// The shortest pause: a clock that stands still must not spin.
const SHORTEST: Duration = Duration::from_millis(10);

/// Sweeps until the server stops.
pub async fn run(store: Store, clock: Arc<dyn Clock>, tasks: Tasks) {
    loop {
        let pause = match store.run(Expire { limit: BATCH }).await {
            Ok(0) => until_next(&store, &*clock).await,
            Ok(settled) => {
                info!(settled, "requests ended at their deadline");
                SHORTEST
            }
            Err(error) => {
                warn!(%error, "deadlines could not be swept");
                POLL
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = tasks.stopping() => return,
        }
    }
}

async fn until_next(store: &Store, clock: &dyn Clock) -> Duration {
    match store.read().next_deadline().await {
        Ok(Some(at)) => at.since(clock.now()).clamp(SHORTEST, POLL),
        _ => POLL,
    }
}
