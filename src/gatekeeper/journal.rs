//! What is written behind the answer, within a second: verdicts that made no request, and callbacks that were refused before
//! they reached one. Everything else is written in the transaction that it tells about.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gatepost_channel::UtcMillis;
use tokio::sync::mpsc;
use tracing::warn;

use crate::audit::{Actor, Draft};
use crate::ids::Org;
use crate::lifecycle::Tasks;
use crate::storage::{Store, StoreError, Touches, Transaction, Workspace};

/// Events waiting to be written. More than this at once are dropped with a warning, so that a flood cannot take the memory.
const CAPACITY: usize = 10_000;
/// Refused callbacks written one by one, per channel and minute; the rest is summed.
const PER_MINUTE: u32 = 600;
/// A minute.
const MINUTE: Duration = Duration::from_mins(1);

/// Where events are handed in. Clones share it.
#[derive(Clone)]
pub struct Journal {
    queue: mpsc::Sender<Draft>,
    flood: Arc<Mutex<HashMap<String, Window>>>,
}

/// The refused callbacks of one channel in the current minute.
struct Window {
    org: Org,
    began: UtcMillis,
    written: u32,
    summed: u64,
}

/// The writing end, to be run as a task.
pub struct Scribe {
    queue: mpsc::Receiver<Draft>,
    journal: Journal,
}

impl Journal {
    /// A journal and the scribe that empties it.
    pub fn open() -> (Self, Scribe) {
        let (sender, queue) = mpsc::channel(CAPACITY);
        let journal = Self {
            queue: sender,
            flood: Arc::default(),
        };
        (journal.clone(), Scribe { queue, journal })
    }

    /// Hands in an event. It does not wait.
    pub fn write(&self, draft: Draft) {
        let kind = draft.kind;
        if self.queue.try_send(draft).is_err() {
            warn!(kind, "an audit event was dropped: the journal is full or closed");
            metrics::counter!("gatepost_audit_dropped_total").increment(1);
        }
    }

    /// Hands in a callback that was not authentic: one event each up to a bound per minute and channel, then a sum.
    pub fn refused_callback(&self, org: &Org, channel: &str, reason: &str, now: UtcMillis) {
        let mut flood = self.flood.lock().unwrap_or_else(PoisonError::into_inner);
        let window = flood.entry(channel.to_owned()).or_insert_with(|| Window {
            org: org.clone(),
            began: now,
            written: 0,
            summed: 0,
        });
        if now < window.began || now.since(window.began) >= MINUTE {
            let summed = std::mem::take(&mut window.summed);
            window.began = now;
            window.written = 0;
            if summed > 0 {
                self.write(sum(&window.org, channel, summed));
            }
        }
        if window.written < PER_MINUTE {
            window.written += 1;
            self.write(
                Draft::new(org, "callback.refused", Actor::Platform(channel.to_owned()))
                    .on(channel)
                    .with("reason", reason),
            );
        } else {
            window.summed += 1;
        }
    }

    /// Writes the sums of minutes that ended (all of them when the server stops).
    fn settle_floods(&self, now: Option<UtcMillis>) -> Vec<Draft> {
        let mut flood = self.flood.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sums = Vec::new();
        flood.retain(|channel, window| {
            let ended = now.is_none_or(|now| now.since(window.began) >= MINUTE);
            if ended && window.summed > 0 {
                sums.push(sum(&window.org, channel, window.summed));
            }
            !ended
        });
        sums
    }
}

fn sum(org: &Org, channel: &str, count: u64) -> Draft {
    Draft::new(org, "callback.refused", Actor::Platform(channel.to_owned()))
        .on(channel)
        .with("reason", "flood")
        .with("count", count)
}

#[cfg(test)]
impl Scribe {
    /// What waits to be written, taken out.
    pub(crate) fn waiting(&mut self) -> Vec<Draft> {
        std::iter::from_fn(|| self.queue.try_recv().ok()).collect()
    }
}

impl Scribe {
    /// Writes until the server stops, then what is left.
    pub async fn run(mut self, store: Store, clock: Arc<dyn crate::clock::Clock>, tasks: Tasks) {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                taken = self.queue.recv_many(&mut batch, 256) => if taken == 0 { return },
                () = tokio::time::sleep(MINUTE) => batch.extend(self.journal.settle_floods(Some(clock.now()))),
                () = tasks.stopping() => {
                    while let Ok(draft) = self.queue.try_recv() {
                        batch.push(draft);
                    }
                    batch.extend(self.journal.settle_floods(None));
                    write(&store, std::mem::take(&mut batch)).await;
                    return;
                }
            }
            write(&store, std::mem::take(&mut batch)).await;
        }
    }
}

async fn write(store: &Store, drafts: Vec<Draft>) {
    if drafts.is_empty() {
        return;
    }
    let append = Append(drafts);
    for pause in [50, 500, 2_000] {
        match store.run(append.clone()).await {
            Ok(()) => return,
            Err(StoreError::Closed) => break,
            Err(error) => warn!(%error, "audit events could not be written yet"),
        }
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    metrics::counter!("gatepost_audit_dropped_total").increment(append.0.len() as u64);
    warn!(
        count = append.0.len(),
        "audit events were lost: the store did not take them"
    );
}

/// Appends events that belong to no other transaction.
#[derive(Debug, Clone)]
pub struct Append(pub Vec<Draft>);

impl Transaction for Append {
    type Answer = ();
    const NAME: &'static str = "append_audit";

    fn touches(&self, touches: &mut Touches) {
        touches.orgs.extend(self.0.iter().map(|draft| draft.org.clone()));
    }

    fn apply(&self, workspace: &mut Workspace) {
        for draft in &self.0 {
            workspace.audit(draft.clone());
        }
    }
}
