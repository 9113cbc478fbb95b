//! Time is a parameter: the rooms read it from a [`Clock`], and tests set it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

pub use gatepost_channel::UtcMillis;
pub use zone::Zone;

mod zone;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The current instant, UTC.
    fn now(&self) -> UtcMillis;
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the machine's clock"
    )]
    fn now(&self) -> UtcMillis {
        UtcMillis(jiff::Timestamp::now().as_millisecond())
    }
}

/// A clock that stands still until it is set. Clones share the time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that shows `at`.
    pub fn at(at: UtcMillis) -> Self {
        Self(Arc::new(AtomicI64::new(at.0)))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }

    /// Sets the clock, backwards too.
    pub fn set(&self, at: UtcMillis) {
        self.0.store(at.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UtcMillis {
        UtcMillis(self.0.load(Ordering::SeqCst))
    }
}

/// RFC 3339 in UTC with milliseconds, as the API spells times. Instants outside jiff's range show their milliseconds.
pub fn rfc3339(at: UtcMillis) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| format!("{}ms", at.0), |t| format!("{t:.3}"))
}

/// Reads RFC 3339 with any offset.
pub fn parse_rfc3339(text: &str) -> Option<UtcMillis> {
    text.parse::<jiff::Timestamp>()
        .ok()
        .map(|t| UtcMillis(t.as_millisecond()))
}
