//! What is written behind the answer, within a second: verdicts that made no request, and callbacks that were refused before
//! they reached one. Everything else is written in the transaction that it tells about.
//!
//! What was not written yet is tried again until the store takes it. Meanwhile nothing new is promised: an allowed call whose
//! event nobody would find is no allowed call ([`Journal::insist`]).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
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
/// Between two tries to write: doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Tries once the server stops.
const LAST_TRIES: u32 = 3;
/// A minute.
const MINUTE: Duration = Duration::from_mins(1);

/// Where events are handed in. Clones share it.
#[derive(Clone)]
pub struct Journal {
    queue: mpsc::Sender<Draft>,
    flood: Arc<Mutex<HashMap<String, Window>>>,
    /// The store does not take what was handed in.
    stuck: Arc<AtomicBool>,
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
            stuck: Arc::default(),
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

    /// Hands in an event without which what it tells about must not happen.
    ///
    /// # Errors
    /// When it will not be written within a second: the store does not take events at the moment, or too many wait already.
    pub fn insist(&self, draft: Draft) -> Result<(), StoreError> {
        if self.stuck.load(Ordering::SeqCst) {
            return Err(StoreError::Database("audit events cannot be written".to_owned()));
        }
        self.queue.try_send(draft).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => StoreError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => StoreError::Closed,
        })
    }

    /// Hands in a callback that was not authentic: one event each up to a bound per minute and channel, then a sum. Tells
    /// whether it is one of those that stand for themselves.
    pub fn refused_callback(&self, org: &Org, channel: &str, reason: &str, now: UtcMillis) -> bool {
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
            true
        } else {
            window.summed += 1;
            false
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
                    self.write(&store, &tasks, std::mem::take(&mut batch)).await;
                    return;
                }
            }
            self.write(&store, &tasks, std::mem::take(&mut batch)).await;
        }
    }

    /// Writes until the store has taken it; when the server stops, a few times more.
    async fn write(&self, store: &Store, tasks: &Tasks, drafts: Vec<Draft>) {
        if drafts.is_empty() {
            return;
        }
        let append = Append(drafts);
        let mut pause = FIRST_PAUSE;
        let mut left = LAST_TRIES;
        loop {
            match store.run(append.clone()).await {
                Ok(()) => {
                    self.journal.stuck.store(false, Ordering::SeqCst);
                    return;
                }
                Err(StoreError::Closed) => break,
                Err(error) => {
                    // A full queue says that the store works.
                    if !matches!(error, StoreError::Overloaded) {
                        self.journal.stuck.store(true, Ordering::SeqCst);
                    }
                    warn!(%error, "audit events could not be written yet");
                }
            }
            if tasks.is_stopping() {
                left -= 1;
                if left == 0 {
                    break;
                }
                tokio::time::sleep(FIRST_PAUSE).await;
            } else {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = tasks.stopping() => {}
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        metrics::counter!("gatepost_audit_dropped_total").increment(append.0.len() as u64);
        warn!(
            count = append.0.len(),
            "audit events were lost: the store did not take them"
        );
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::job::fixture::{World, org};
    use crate::storage::{Item, Refused, Wakes, Writer};

    /// A store whose disk is full as long as the flag is set.
    struct Full(World, Arc<AtomicBool>);

    impl Writer for Full {
        fn submit(&self, item: Box<dyn Item>) -> Result<(), Refused> {
            if self.1.load(Ordering::SeqCst) {
                let error = StoreError::Database("the disk is full".to_owned());
                return Err(Refused { item, error });
            }
            Writer::submit(&self.0, item)
        }
    }

    fn event() -> Draft {
        Draft::new(&org(), "call.allowed", Actor::System)
    }

    #[tokio::test]
    async fn while_the_store_takes_no_events_nothing_is_promised_and_nothing_is_lost() {
        let world = World::new();
        let (journal, scribe) = Journal::open();
        let tasks = Tasks::new();
        let clock = Arc::new(ManualClock::at(UtcMillis(0)));
        let full = Arc::new(AtomicBool::new(true));
        let writer = Full(world.clone(), Arc::clone(&full));
        let store = Store::new(Arc::new(writer), Arc::new(world.clone()), Wakes::new());
        tasks.spawn(scribe.run(store, clock, tasks.clone()));

        assert!(journal.insist(event()).is_ok(), "nobody knows yet");
        while !journal.stuck.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        assert!(matches!(journal.insist(event()), Err(StoreError::Database(_))));
        assert_eq!(world.count("call.allowed"), 0);

        full.store(false, Ordering::SeqCst);
        while journal.stuck.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        assert_eq!(world.count("call.allowed"), 1, "what was promised is on record");
        assert!(journal.insist(event()).is_ok());
        tasks.ask_to_stop();
        assert!(tasks.drain(Duration::from_secs(20)).await);
        assert_eq!(world.count("call.allowed"), 2);
        assert!(matches!(journal.insist(event()), Err(StoreError::Closed)));
    }

    #[test]
    fn a_full_journal_promises_nothing() {
        let (journal, _scribe) = Journal::open();
        let promised = std::iter::repeat_with(|| journal.insist(event())).take_while(Result::is_ok);
        assert_eq!(promised.count(), CAPACITY);
        assert!(matches!(journal.insist(event()), Err(StoreError::Overloaded)));
    }
}
