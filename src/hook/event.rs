//! Observed events: what happened in a run or around it. Observers see them and change nothing.
//!
//! The kinds are those of PicoClaw, so that a hook written for it finds its events, and a few of our own for what only we have:
//! approvals and parked runs. For some of PicoClaw's there is no such moment here; [`EventKind::absence`] says why.

use serde_json::{Map, Value};

use gatepost_channel::UtcMillis;

use crate::gatekeeper::Via;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $word:literal),* $(,)?) => {
        /// What happened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum EventKind { $($(#[$doc])* $kind),* }

        impl EventKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Its dotted name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $word),* }
            }
        }
    };
}

kinds! {
    /// A run, or a resumption of one, begins.
    TurnStart = "agent.turn.start",
    /// A run rests or ends.
    TurnEnd = "agent.turn.end",
    /// The model is asked.
    LlmRequest = "agent.llm.request",
    /// A part of a reply came.
    LlmDelta = "agent.llm.delta",
    /// The model answered.
    LlmResponse = "agent.llm.response",
    /// The model is asked again.
    LlmRetry = "agent.llm.retry",
    /// The conversation was shortened.
    ContextCompress = "agent.context.compress",
    /// A session was summarised.
    SessionSummarize = "agent.session.summarize",
    /// A tool starts.
    ToolExecStart = "agent.tool.exec_start",
    /// A tool ended.
    ToolExecEnd = "agent.tool.exec_end",
    /// A call was not carried out.
    ToolExecSkipped = "agent.tool.exec_skipped",
    /// A message of the user entered a run under way.
    SteeringInjected = "agent.steering.injected",
    /// A message of the user waits for the run to end.
    FollowUpQueued = "agent.follow_up.queued",
    /// A run was asked to stop.
    InterruptReceived = "agent.interrupt.received",
    /// A sub-task was started.
    SubturnSpawn = "agent.subturn.spawn",
    /// A sub-task ended.
    SubturnEnd = "agent.subturn.end",
    /// The result of a sub-task reached its parent.
    SubturnResultDelivered = "agent.subturn.result_delivered",
    /// The result of a sub-task has no parent any more.
    SubturnOrphan = "agent.subturn.orphan",
    /// A run failed.
    Error = "agent.error",
    /// People are asked about a call.
    ApprovalAsked = "agent.approval.asked",
    /// A request is decided, or nobody decided it in time.
    ApprovalDecided = "agent.approval.decided",
    /// A run waits, without a worker.
    RunParked = "agent.run.parked",
    /// A run that waited goes on.
    RunResumed = "agent.run.resumed",
    /// A channel was started.
    ChannelStarted = "channel.lifecycle.started",
    /// A channel is ready.
    ChannelInitialized = "channel.lifecycle.initialized",
    /// A channel could not be started.
    ChannelStartFailed = "channel.lifecycle.start_failed",
    /// A channel was stopped.
    ChannelStopped = "channel.lifecycle.stopped",
    /// A callback address was added.
    WebhookRegistered = "channel.webhook.registered",
    /// A callback address was removed.
    WebhookUnregistered = "channel.webhook.unregistered",
    /// A message waits to be sent.
    OutboundQueued = "channel.message.outbound_queued",
    /// A message was sent.
    OutboundSent = "channel.message.outbound_sent",
    /// A message could not be sent.
    OutboundFailed = "channel.message.outbound_failed",
    /// A platform asked for patience.
    RateLimited = "channel.rate_limited",
    /// Something could not be published.
    PublishFailed = "bus.publish.failed",
    /// Publishing is about to end.
    BusCloseStarted = "bus.close.started",
    /// Publishing ended.
    BusCloseCompleted = "bus.close.completed",
    /// What was published was taken by everybody.
    BusCloseDrained = "bus.close.drained",
    /// The server starts.
    GatewayStart = "gateway.start",
    /// The server answers.
    GatewayReady = "gateway.ready",
    /// The server stops.
    GatewayShutdown = "gateway.shutdown",
    /// The configuration is read again.
    ReloadStarted = "gateway.reload.started",
    /// The configuration was read again.
    ReloadCompleted = "gateway.reload.completed",
    /// The configuration could not be read again.
    ReloadFailed = "gateway.reload.failed",
    /// A server of tools is being connected.
    McpConnecting = "mcp.server.connecting",
    /// A server of tools is connected.
    McpConnected = "mcp.server.connected",
    /// A server of tools failed.
    McpFailed = "mcp.server.failed",
    /// A server of tools offers a tool.
    McpDiscovered = "mcp.tool.discovered",
    /// A tool of a server is called.
    McpCallStart = "mcp.tool.call.start",
    /// A call of a server's tool ended.
    McpCallEnd = "mcp.tool.call.end",
}

impl EventKind {
    /// Its older name: `tool_exec_start` for `agent.tool.exec_start`. The dots become underscores, `agent.` goes.
    pub fn older_name(self) -> String {
        let name = self.name();
        name.strip_prefix("agent.").unwrap_or(name).replace('.', "_")
    }

    /// Why there is no such moment here; `None` for what occurs.
    pub const fn absence(self) -> Option<&'static str> {
        Some(match self {
            Self::SessionSummarize => "a long conversation is shortened by leaving out, never by a summary",
            Self::FollowUpQueued => {
                "a job takes no message while it runs; the answer to its question is agent.steering.injected"
            }
            Self::ChannelStartFailed => {
                "a channel that cannot be built stops the server before any hook runs"
            }
            Self::WebhookUnregistered => "a callback address stands as long as the server runs",
            Self::PublishFailed => "an event that does not fit is told with the next one, as dropped_before",
            Self::BusCloseStarted | Self::BusCloseCompleted | Self::BusCloseDrained => {
                "messages go through the outbox in the database, which never closes; see gateway.shutdown"
            }
            Self::ReloadStarted | Self::ReloadCompleted | Self::ReloadFailed => {
                "the configuration is read once, at the start"
            }
            _ => return None,
        })
    }

    /// What it comes from: the first part of its name.
    pub fn source(self) -> &'static str {
        self.name().split('.').next().unwrap_or_default()
    }

    /// The kind of this name, old or new.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|kind| kind.name() == name || kind.older_name() == name)
    }
}

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// To those who look for a fault.
    Debug,
    /// To those who look on.
    Info,
    /// To those who run it.
    Warn,
    /// To those who must mend it.
    Error,
}

impl Severity {
    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// Something that happened. It holds no arguments and no results: observers are told sizes and names (invariant 10 in docs/ARCHITECTURE.md).
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its id.
    pub id: String,
    /// What happened.
    pub kind: EventKind,
    /// When.
    pub at: UtcMillis,
    /// How much it matters.
    pub severity: Severity,
    /// In whose doings; `None` for the server's own.
    pub scope: Option<EventScope>,
    /// More about it.
    pub payload: Map<String, Value>,
}

/// The run or the call to which an event belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventScope {
    /// Through what it came.
    pub via: Via,
    /// The agent, as it calls itself.
    pub agent_id: Option<String>,
    /// The job's id, or the session that a caller names; empty when it names none.
    pub session_id: String,
    /// The number of the turn, from 0.
    pub turn: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_older_names_lead_back() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::named(kind.name()), Some(*kind));
            assert_eq!(EventKind::named(&kind.older_name()), Some(*kind));
        }
        assert_eq!(
            EventKind::named("tool_exec_skipped"),
            Some(EventKind::ToolExecSkipped)
        );
        assert_eq!(EventKind::named("turn_end"), Some(EventKind::TurnEnd));
        assert_eq!(EventKind::named("tool_exec"), None);
    }
}
