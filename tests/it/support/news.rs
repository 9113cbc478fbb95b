//! Waiting for something to become true without sleeping: the fake says when its state changed.

use std::time::Duration;

use tokio::sync::watch;

/// A bell rung at each change of a fake's state.
#[derive(Debug)]
pub struct News(watch::Sender<u64>);

impl Default for News {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl News {
    /// Tells all who wait to look again.
    pub fn ring(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// Looks now and at each change until `look` finds something.
    ///
    /// # Panics
    /// When nothing is found within `patience`; `what` says what was missing.
    pub async fn until<T>(&self, what: &str, patience: Duration, mut look: impl FnMut() -> Option<T>) -> T {
        let mut bell = self.0.subscribe();
        let search = async {
            loop {
                bell.mark_unchanged();
                if let Some(found) = look() {
                    return found;
                }
                bell.changed().await.expect("the fake lives as long as its test");
            }
        };
        let found = tokio::time::timeout(patience, search).await;
        found.unwrap_or_else(|_| panic!("{what}: nothing came within {patience:?}"))
    }
}
