//! What happens to the servers of tools, as observers are told it. Must not know how a server is kept.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::hook::{EventKind, Hooks, Severity};
use crate::mcp::{Moment, Watcher};

/// Tells the hooks for every agent.
pub(super) struct Told(pub(super) Arc<Hooks>);

impl Watcher for Told {
    fn told(&self, server: &str, moment: Moment<'_>) {
        let (kind, severity, fact) = match moment {
            Moment::Connecting => (EventKind::McpConnecting, Severity::Info, None),
            Moment::Connected { tools } => (
                EventKind::McpConnected,
                Severity::Info,
                Some(("ToolCount", Value::from(tools))),
            ),
            Moment::Failed { why } => (
                EventKind::McpFailed,
                Severity::Warn,
                Some(("Error", Value::from(why))),
            ),
            Moment::Discovered { tool } => (
                EventKind::McpDiscovered,
                Severity::Info,
                Some(("Tool", Value::from(tool))),
            ),
        };
        self.0.server(kind, severity, || {
            let named = [("Server", Value::from(server))].into_iter().chain(fact);
            named
                .map(|(name, fact)| (name.to_owned(), fact))
                .collect::<Map<_, _>>()
        });
    }
}
