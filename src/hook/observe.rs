//! Observers: each has a queue and a task of its own, so a slow one delays nobody. A queue is bounded; what does not fit is
//! dropped, counted, and told to the observer with the next event that fits. Nothing that must not be lost may rest on an
//! observer: that is what the audit log is for.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use super::{Event, EventKind, HookError, Mount};
use crate::gatekeeper::Via;
use crate::lifecycle::Tasks;

/// Events waiting for one observer.
pub const QUEUE: usize = 64;

/// How long observers are still told of what happens while the server stops.
const LINGER: Duration = Duration::from_secs(3);
/// When nothing more came for so long meanwhile, nothing more comes.
const IDLE: Duration = Duration::from_millis(250);

/// Looks on.
#[async_trait]
pub trait Observer: Send + Sync {
    /// Sees an event. `dropped` counts the events that were lost before it since the last one.
    async fn observe(&self, event: &Event, dropped: u64) -> Result<(), HookError>;
}

/// The events that an observer is told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// All.
    All,
    /// These.
    Only(BTreeSet<EventKind>),
}

impl Wanted {
    fn has(&self, kind: EventKind) -> bool {
        match self {
            Self::All => true,
            Self::Only(kinds) => kinds.contains(&kind),
        }
    }
}

/// An observer with its queue.
pub(super) struct Watch {
    name: String,
    surfaces: Vec<Via>,
    wanted: Wanted,
    queue: mpsc::Sender<(Arc<Event>, u64)>,
    /// Dropped since the last event that fitted.
    missing: AtomicU64,
    /// Dropped in all.
    dropped: AtomicU64,
}

impl Watch {
    pub(super) fn start(
        mount: &Mount,
        wanted: Wanted,
        limit: Duration,
        observer: Arc<dyn Observer>,
        tasks: &Tasks,
    ) -> Self {
        let (queue, events) = mpsc::channel(QUEUE);
        tasks.spawn(look_on(
            mount.name.clone(),
            observer,
            events,
            limit,
            tasks.clone(),
        ));
        Self {
            name: mount.name.clone(),
            surfaces: mount.surfaces.clone(),
            wanted,
            queue,
            missing: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// Hands an event in. It does not wait.
    pub(super) fn tell(&self, event: &Arc<Event>) {
        let elsewhere = event
            .scope
            .as_ref()
            .is_some_and(|scope| !self.surfaces.contains(&scope.via));
        if elsewhere || !self.wanted.has(event.kind) {
            return;
        }
        let missing = self.missing.swap(0, Ordering::Relaxed);
        if self.queue.try_send((Arc::clone(event), missing)).is_err() {
            self.missing.fetch_add(missing + 1, Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
            metrics::counter!("gatepost_hook_events_dropped_total", "hook" => self.name.clone()).increment(1);
            if missing == 0 {
                warn!(hook = %self.name, kind = event.kind.name(), "an observer is too slow: events are dropped");
            }
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

async fn look_on(
    name: String,
    observer: Arc<dyn Observer>,
    mut events: mpsc::Receiver<(Arc<Event>, u64)>,
    limit: Duration,
    tasks: Tasks,
) {
    let mut end = None;
    loop {
        let next = match end {
            None => tokio::select! {
                next = events.recv() => next,
                () = tasks.stopping() => {
                    end = Some(Instant::now() + LINGER);
                    continue;
                }
            },
            Some(end) => timeout_at(end.min(Instant::now() + IDLE), events.recv())
                .await
                .unwrap_or_default(),
        };
        let Some((event, missing)) = next else { return };
        let seen = AssertUnwindSafe(observer.observe(&event, missing)).catch_unwind();
        let limit = end.map_or(limit, |end| {
            limit.min(end.saturating_duration_since(Instant::now()))
        });
        let error = match tokio::time::timeout(limit, seen).await {
            Ok(Ok(Ok(()))) => continue,
            Ok(Ok(Err(error))) => error,
            Ok(Err(_)) => HookError::Panicked,
            Err(_) => HookError::TimedOut(limit),
        };
        warn!(hook = %name, kind = event.kind.name(), %error, "an observer failed");
    }
}
