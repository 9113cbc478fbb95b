//! A platform's rate limit per key, on the fake's clock (the generic cell rate algorithm).

use std::collections::HashMap;

/// Allows one call each `interval_ms`, and `burst` of them at once after a rest.
#[derive(Debug)]
pub struct Limiter {
    interval_ms: i64,
    burst: i64,
    next_due_ms: HashMap<String, i64>,
}

impl Limiter {
    /// A limiter with nothing spent.
    pub fn new(interval_ms: i64, burst: i64) -> Self {
        Self {
            interval_ms,
            burst,
            next_due_ms: HashMap::new(),
        }
    }

    /// Takes one call of `key`, or says after how many milliseconds one would be allowed.
    pub fn take(&mut self, key: &str, now_ms: i64) -> Result<(), i64> {
        let due = self.next_due_ms.entry(key.to_owned()).or_insert(now_ms);
        let earliest = *due - (self.burst - 1) * self.interval_ms;
        if now_ms < earliest {
            return Err(earliest - now_ms);
        }
        *due = (*due).max(now_ms) + self.interval_ms;
        Ok(())
    }
}
