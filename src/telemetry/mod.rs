//! What the server tells its operator: log lines and metrics. Neither holds a secret, a raw argument or a query string.

pub mod logging;
pub mod metrics;
