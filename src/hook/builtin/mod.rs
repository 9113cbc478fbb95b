//! The hooks that Gatepost brings. Each reads its own settings strictly; an unknown or impossible one is a start-up error.
//!
//! The confirmation gate is not mounted like the others: it is what [`Hooks::pre_tool_use`](super::Hooks::pre_tool_use) leads
//! to, always last and on the final arguments. Its settings can only make it stricter.

pub mod audit_log;
pub mod connector_rate_limit;
pub mod read_only_guard;
pub mod result_truncate;
pub mod settings;

#[cfg(test)]
mod builtin_tests;
