//! Who is woken after a commit. A wake-up is a hint; the slow poll of who waits is the guarantee.
//!
//! Order matters for who waits: subscribe, then read the row, then wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, futures::OwnedNotified};

use crate::ids::{ConfirmationId, JobId};

/// What changed in a commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Wake {
    /// A request changed.
    Confirmation(ConfirmationId),
    /// A job changed, for those who watch it.
    Job(JobId),
    /// A job became runnable.
    Queue,
    /// The outbox has something due.
    Outbox,
    /// Anything may have changed: a hint from another process.
    Everything,
}

/// The wake-ups of one process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Wakes(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    watched: Mutex<HashMap<String, Arc<Notify>>>,
    queue: Arc<Notify>,
    outbox: Arc<Notify>,
    committed: Arc<Notify>,
}

impl Wakes {
    /// Nobody waits yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells everybody concerned. Called by writers after the commit, and by the listener of another process's hints.
    pub fn publish<'a>(&self, wakes: impl IntoIterator<Item = &'a Wake>) {
        for wake in wakes {
            match wake {
                Wake::Confirmation(id) => self.ring(id.as_str()),
                Wake::Job(id) => self.ring(id.as_str()),
                Wake::Queue => self.0.queue.notify_waiters(),
                Wake::Outbox => self.0.outbox.notify_waiters(),
                Wake::Everything => {
                    for bell in self.watched().values() {
                        bell.notify_waiters();
                    }
                    self.0.queue.notify_waiters();
                    self.0.outbox.notify_waiters();
                }
            }
        }
        self.0.committed.notify_waiters();
    }

    /// Resolves at the next change of the request. Subscribe before reading the row.
    pub fn confirmation(&self, id: &ConfirmationId) -> Watch {
        self.watch(id.as_str())
    }

    /// Resolves at the next change of the job. Subscribe before reading the row.
    pub fn job(&self, id: &JobId) -> Watch {
        self.watch(id.as_str())
    }

    /// Resolves when a job became runnable.
    pub fn queue(&self) -> OwnedNotified {
        Arc::clone(&self.0.queue).notified_owned()
    }

    /// Resolves when the outbox has something due.
    pub fn outbox(&self) -> OwnedNotified {
        Arc::clone(&self.0.outbox).notified_owned()
    }

    /// Resolves at the next commit of this process, whatever it changed.
    pub fn committed(&self) -> OwnedNotified {
        Arc::clone(&self.0.committed).notified_owned()
    }

    fn watch(&self, key: &str) -> Watch {
        let bell = Arc::clone(self.watched().entry(key.to_owned()).or_default());
        let next = Box::pin(Arc::clone(&bell).notified_owned());
        Watch {
            next,
            bell: Some(bell),
            key: key.to_owned(),
            wakes: self.clone(),
        }
    }

    fn ring(&self, key: &str) {
        if let Some(bell) = self.watched().get(key) {
            bell.notify_waiters();
        }
    }

    fn watched(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.0.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscription to the changes of one row. Dropping it forgets the row when nobody else watches it.
pub struct Watch {
    next: std::pin::Pin<Box<OwnedNotified>>,
    bell: Option<Arc<Notify>>,
    key: String,
    wakes: Wakes,
}

impl Watch {
    /// Waits for a change after the subscription (or after the last one that was waited for).
    pub async fn changed(&mut self) {
        self.next.as_mut().await;
        if let Some(bell) = &self.bell {
            self.next.set(Arc::clone(bell).notified_owned());
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut watched = self.wakes.watched();
        self.bell = None;
        // The map holds one reference and the pending `next` another; more than that is another watcher.
        if watched
            .get(&self.key)
            .is_some_and(|bell| Arc::strong_count(bell) <= 2)
        {
            watched.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Ids as _, SeededIds};

    #[tokio::test]
    async fn a_change_between_subscribing_and_waiting_is_not_lost() {
        let wakes = Wakes::new();
        let ids = SeededIds::default();
        let id = ConfirmationId::fresh(&ids);
        let mut watch = wakes.confirmation(&id);
        wakes.publish(&[Wake::Confirmation(id.clone())]);
        watch.changed().await;
        wakes.publish(&[Wake::Everything]);
        watch.changed().await;
        drop(watch);
        assert!(
            wakes.watched().is_empty(),
            "a dropped watch leaves nothing behind"
        );
        let _ = ids.fresh();
    }

    #[tokio::test]
    async fn another_watcher_keeps_the_bell() {
        let wakes = Wakes::new();
        let id = ConfirmationId::fresh(&SeededIds::default());
        let first = wakes.confirmation(&id);
        let mut second = wakes.confirmation(&id);
        drop(first);
        wakes.publish(&[Wake::Confirmation(id)]);
        second.changed().await;
    }
}
