//! How much may be sent on a channel at a time: its pace, as a token bucket. Knows no channel and no clock.

use std::time::Duration;

use gatepost_channel::{Pace, UtcMillis};

/// A token bucket for one channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    pub(super) pace: Pace,
    pub(super) free: u32,
    pub(super) filled_at: UtcMillis,
}

impl Bucket {
    /// What may be sent at this time.
    pub(super) fn refill(&mut self, now: UtcMillis) {
        let every = self.pace.every.max(Duration::from_millis(1));
        let passed = now.since(self.filled_at).as_millis() / every.as_millis();
        // A clock that went back restarts the count instead of stopping it.
        if now < self.filled_at {
            self.filled_at = now;
        } else if passed > 0 {
            self.free = self
                .free
                .saturating_add(u32::try_from(passed).unwrap_or(u32::MAX))
                .min(self.pace.burst.max(1));
            self.filled_at = now;
        }
    }

    /// How long nothing more may be sent.
    pub(super) fn full(&self, now: UtcMillis) -> Duration {
        if self.free > 0 {
            return Duration::ZERO;
        }
        self.pace.every.saturating_sub(now.since(self.filled_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_without_room_tells_when_it_will_have_some() {
        let pace = Pace {
            burst: 2,
            every: Duration::from_millis(500),
        };
        let bucket = |free| Bucket {
            pace,
            free,
            filled_at: UtcMillis(1_000),
        };
        assert_eq!(bucket(1).full(UtcMillis(1_000)), Duration::ZERO);
        assert_eq!(bucket(0).full(UtcMillis(1_100)), Duration::from_millis(400));
        assert_eq!(bucket(0).full(UtcMillis(1_700)), Duration::ZERO);
        // A clock that went back must not make anybody wait longer than a card takes.
        assert_eq!(bucket(0).full(UtcMillis(0)), Duration::from_millis(500));
    }
}
