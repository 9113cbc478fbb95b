//! Start and stop: every task is tracked, a stop is asked for once and waited for.

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tasks of one server. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// No tasks yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs a task until it ends; loops watch [`Tasks::stopping`].
    pub fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tracker.spawn(task);
    }

    /// Resolves when the server is asked to stop.
    pub async fn stopping(&self) {
        self.stop.cancelled().await;
    }

    /// Whether the server was asked to stop.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Asks every task to finish what it accepted.
    pub fn ask_to_stop(&self) {
        self.stop.cancel();
        self.tracker.close();
    }

    /// Waits until all tasks ended, at most `patience`; tells whether they did.
    pub async fn drain(&self, patience: Duration) -> bool {
        self.tracker.close();
        tokio::time::timeout(patience, self.tracker.wait()).await.is_ok()
    }
}
