//! How the writing connection has its statements planned: for keys, once, and anew as the tables grow.
//!
//! The writer looks rows up by key and by nothing else, so of all plans it wants the one that goes from key to key over an index.
//! Planning each time would cost more than most lookups do. A plan that is kept, though, can be one for empty tables, where every
//! index is as good as any other (`VACUUM` and `ANALYZE` of an empty table bring this about), and the server replaces it only when
//! it next gathers statistics. So plans are dropped here after as many rows as would make a wrong one felt.

/// What the connection is told once.
pub(super) const BY_KEY: &str =
    "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
  SET plan_cache_mode = force_generic_plan; SET jit = off; SET max_parallel_workers_per_gather = 0";

/// Rows after which plans are dropped: doubled from the first, up to the last.
const FIRST: u64 = 256;
const LAST: u64 = 4096;
/// What a pause counts for: other processes write too.
const PAUSE: u64 = 64;

/// How much was written since the plans were made.
#[derive(Debug)]
pub(super) struct Plans {
    written: u64,
    enough: u64,
}

impl Plans {
    pub(super) const fn fresh() -> Self {
        Self {
            written: 0,
            enough: FIRST,
        }
    }

    /// The order that begins a transaction.
    pub(super) fn begin(&mut self) -> &'static str {
        if self.written < self.enough {
            return "BEGIN";
        }
        self.written = 0;
        self.enough = (self.enough * 2).min(LAST);
        "BEGIN; DISCARD PLANS"
    }

    /// So many rows were written.
    pub(super) const fn wrote(&mut self, rows: u64) {
        self.written = self.written.saturating_add(rows);
    }

    /// Nothing was to be done for a while.
    pub(super) const fn paused(&mut self) {
        self.wrote(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_dropped_after_ever_more_rows_up_to_a_bound() {
        let mut plans = Plans::fresh();
        assert_eq!(plans.begin(), "BEGIN", "there is nothing to drop yet");
        let mut rows = Vec::new();
        for _ in 0..8 {
            let mut written = 0;
            while plans.begin() == "BEGIN" {
                plans.wrote(1);
                written += 1;
            }
            rows.push(written);
        }
        assert_eq!(rows, [256, 512, 1024, 2048, 4096, 4096, 4096, 4096]);
    }

    #[test]
    fn a_pause_counts_too() {
        let mut plans = Plans::fresh();
        for _ in 0..4 {
            assert_eq!(plans.begin(), "BEGIN");
            plans.paused();
        }
        assert_eq!(plans.begin(), "BEGIN; DISCARD PLANS");
    }
}
