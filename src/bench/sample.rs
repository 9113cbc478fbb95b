//! Numbers from what was timed: percentiles, medians, rates. Pure.

use std::time::Duration;

use serde::Serialize;

/// What one run of one thing gave.
#[derive(Debug, Clone)]
pub struct Sample {
    sorted: Vec<Duration>,
    /// From the first start to the last end.
    took: Duration,
}

/// A sample in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// How many were timed.
    pub count: usize,
    /// Per second.
    pub rate: f64,
    /// Milliseconds.
    pub p50_ms: f64,
    /// Milliseconds.
    pub p99_ms: f64,
    /// Milliseconds.
    pub max_ms: f64,
}

impl Sample {
    /// A sample of these times, in any order.
    pub fn new(mut times: Vec<Duration>, took: Duration) -> Self {
        times.sort_unstable();
        Self { sorted: times, took }
    }

    /// The time that so many thousandths do not exceed (nearest rank).
    pub fn permille(&self, permille: usize) -> Duration {
        let rank = (self.sorted.len() * permille).div_ceil(1000).max(1);
        self.sorted.get(rank - 1).copied().unwrap_or_default()
    }

    /// All of it in numbers.
    pub fn figures(&self) -> Figures {
        let seconds = self.took.as_secs_f64();
        Figures {
            count: self.sorted.len(),
            rate: if seconds > 0.0 {
                float(self.sorted.len()) / seconds
            } else {
                0.0
            },
            p50_ms: ms(self.permille(500)),
            p99_ms: ms(self.permille(990)),
            max_ms: ms(self.permille(1000)),
        }
    }
}

/// Milliseconds.
pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// A count as a number to divide by.
pub fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let times = (1..=200).rev().map(Duration::from_millis).collect();
        let sample = Sample::new(times, Duration::from_secs(2));
        let figures = sample.figures();
        assert_eq!(figures.count, 200);
        for (found, expected) in [
            (figures.p50_ms, 100.0),
            (figures.p99_ms, 198.0),
            (figures.max_ms, 200.0),
            (figures.rate, 100.0),
        ] {
            assert!((found - expected).abs() < 1e-9, "{found} for {expected}");
        }
    }

    #[test]
    fn nothing_timed_is_nothing_and_not_a_division() {
        let figures = Sample::new(Vec::new(), Duration::ZERO).figures();
        assert!(figures.rate.abs() < 1e-9 && figures.p99_ms.abs() < 1e-9);
    }
}
