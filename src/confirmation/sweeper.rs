//! The sweeper: the task that lets deadlines pass. It wakes at the next deadline, and at least every second.
//!
//! Whether a deadline passed is judged by the store's clock when the transaction runs; the timer here is only a hint.

use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::expire::Expire;
use super::grant::{self, ExpireGrants};
use crate::clock::Clock;
use crate::lifecycle::Tasks;
use crate::storage::{GrantFilter, ReadError, Store};

/// Requests settled in one transaction.
const BATCH: usize = 256;
/// The slow poll behind the timer.
const POLL: Duration = Duration::from_secs(1);
/// The shortest pause: a clock that stands still must not spin.
const SHORTEST: Duration = Duration::from_millis(10);

/// Sweeps until the server stops.
pub async fn run(store: Store, clock: Arc<dyn Clock>, tasks: Tasks) {
    loop {
        end_grants(&store).await;
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

/// Ends the grants whose time passed. A grant that is past its time lets nothing run, ended or not.
async fn end_grants(store: &Store) {
    let due = async {
        let filter = GrantFilter {
            due_at: Some(store.read().now().await?),
            limit: grant::BATCH,
            ..GrantFilter::default()
        };
        let page = store.read().grants(&filter).await?;
        let due: Vec<_> = page
            .items
            .into_iter()
            .map(|grant| (grant.id, grant.org))
            .collect();
        if due.is_empty() {
            return Ok(0);
        }
        store.run(ExpireGrants { due }).await.map_err(ReadError::from)
    };
    match due.await {
        Ok(0) => {}
        Ok(ended) => info!(ended, "grants ended"),
        Err(error) => warn!(%error, "grants could not be swept"),
    }
}

async fn until_next(store: &Store, clock: &dyn Clock) -> Duration {
    match store.read().next_deadline().await {
        Ok(Some(at)) => at.since(clock.now()).clamp(SHORTEST, POLL),
        _ => POLL,
    }
}
