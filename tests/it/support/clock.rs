//! The clock of a fake platform: the machine's, or one that stands still, both moved by the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A clock shared by a fake and its test. Clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock {
    runs: bool,
    offset_ms: Arc<AtomicI64>,
}

impl Clock {
    /// The machine's clock, plus whatever the test adds. For tests against the real program.
    pub fn running() -> Self {
        Self {
            runs: true,
            offset_ms: Arc::default(),
        }
    }

    /// A clock that stands at `unix_seconds` until the test moves it.
    pub fn standing_at(unix_seconds: i64) -> Self {
        Self {
            runs: false,
            offset_ms: Arc::new(AtomicI64::new(unix_seconds * 1000)),
        }
    }

    /// Whether time passes by itself.
    pub const fn runs(&self) -> bool {
        self.runs
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        let base = if self.runs {
            let since = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .expect("a clock after 1970");
            i64::try_from(since.as_millis()).expect("a clock before the year 292 million")
        } else {
            0
        };
        base + self.offset_ms.load(Ordering::SeqCst)
    }

    /// Seconds since 1970.
    pub fn now_seconds(&self) -> i64 {
        self.now_ms().div_euclid(1000)
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).expect("a short way");
        self.offset_ms.fetch_add(by, Ordering::SeqCst);
    }
}
