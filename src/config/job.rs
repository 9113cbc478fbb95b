//! The `job` section: how many jobs run at once and how long a worker may be silent.

use std::time::Duration;

use super::node::Reader;

/// The `job` section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobConfig {
    /// Jobs that run at the same time in this process.
    pub workers: u32,
    /// How long a worker keeps a job without a sign of life before another may take it.
    pub lease: Duration,
    /// Jobs of one agent that run at the same time in this process at most; as many as there are workers, when `None`.
    pub per_agent: Option<u32>,
}

impl Default for JobConfig {
    fn default() -> Self {
        Self {
            workers: 4,
            lease: Duration::from_secs(30),
            per_agent: None,
        }
    }
}

impl JobConfig {
    pub(super) fn decode(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let workers = map.optional("workers").map(|workers| workers.integer(1, 1024));
        let lease = map
            .optional("lease")
            .map(|lease| lease.span(Duration::from_millis(100), Duration::from_hours(1)));
        let per_agent = map
            .optional("per_agent")
            .map_or(Some(None), |number| number.integer(1, 1024).map(Some));
        map.finish();
        let default = Self::default();
        Some(Self {
            workers: workers.unwrap_or(Some(default.workers))?,
            lease: lease.unwrap_or(Some(default.lease))?,
            per_agent: per_agent?,
        })
    }
}
