//! How often one thing may be done.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::UtcMillis;

/// Remembers when each thing was last done. Only names that exist may be asked about, so that it does not grow.
#[derive(Debug, Default)]
pub struct Throttle(Mutex<HashMap<String, UtcMillis>>);

impl Throttle {
    /// Takes the right to do it now, or tells how long it is not due yet.
    pub fn take(&self, name: &str, every: Duration, now: UtcMillis) -> Result<(), Duration> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match last.get(name) {
            // A clock that went back must not lock it for ever.
            Some(then) if *then <= now && now.since(*then) < every => {
                Err(every.saturating_sub(now.since(*then)))
            }
            _ => {
                last.insert(name.to_owned(), now);
                Ok(())
            }
        }
    }
}
