//! From what happens in the server to the events that observers are told: the server's own, and those of its channels. Only
//! the hooks for every agent hear them; a piece's own hear of its runs.

use std::sync::Arc;

use gatepost_channel::Failure;
use serde_json::{Map, Value};

use crate::delivery::record::Sent;
use crate::delivery::registry::Registry;
use crate::delivery::sender::{Onlooker, Sender};
use crate::hook::{EventKind, Hooks, Severity};
use crate::ids::{ChannelName, ConfirmationId};

/// The server begins, and its channels are built.
pub fn starting(hooks: &Hooks, registry: &Registry) {
    tell(hooks, EventKind::GatewayStart, &[]);
    of_channels(hooks, registry, EventKind::ChannelInitialized);
}

/// The server answers: callbacks are taken, cards are sent.
pub fn ready(hooks: &Hooks, registry: &Registry) {
    of_channels(hooks, registry, EventKind::ChannelStarted);
    for listed in registry.all().filter(|listed| listed.channel.webhook().is_some()) {
        tell(
            hooks,
            EventKind::WebhookRegistered,
            &[("Channel", listed.name.as_str())],
        );
    }
    tell(hooks, EventKind::GatewayReady, &[]);
}

/// The server stops.
pub fn stopping(hooks: &Hooks, registry: &Registry) {
    tell(hooks, EventKind::GatewayShutdown, &[]);
    of_channels(hooks, registry, EventKind::ChannelStopped);
}

/// Lets observers see what is sent.
pub fn watch(hooks: &Arc<Hooks>, sender: &Sender) {
    sender.look_on(Arc::new(Sending(Arc::clone(hooks))));
}

struct Sending(Arc<Hooks>);

impl Onlooker for Sending {
    fn sent(&self, channel: &ChannelName, request: Option<&ConfirmationId>, sent: &Sent) {
        let about = |kind, severity, what: &str| {
            let mut facts = vec![("Channel", channel.as_str()), ("What", what)];
            facts.extend(request.map(|id| ("Request", id.as_str())));
            tell_as(&self.0, kind, severity, &facts);
        };
        let went = |what| about(EventKind::OutboundSent, Severity::Info, what);
        let failed = |what, failure: Option<&Failure>| {
            if matches!(failure, Some(Failure::Retry { after: Some(_), .. })) {
                about(EventKind::RateLimited, Severity::Warn, what);
            }
            about(EventKind::OutboundFailed, Severity::Warn, what);
        };
        match sent {
            Sent::Posted { .. } => went("post"),
            Sent::PostUnknown(_) => failed("post", None),
            Sent::PostFailed(failure) => failed("post", Some(failure)),
            Sent::Edited {
                done, failed: not, ..
            } => {
                for _ in done {
                    went("edit");
                }
                for (_, failure) in not {
                    failed("edit", Some(failure));
                }
            }
            Sent::Page { .. } => went("view"),
            Sent::Told => went("notice"),
            Sent::TellFailed(failure) | Sent::MessageGone { failure, .. } => failed("notice", Some(failure)),
        }
    }
}

fn of_channels(hooks: &Hooks, registry: &Registry, kind: EventKind) {
    for listed in registry.all() {
        tell(hooks, kind, &[("Channel", listed.name.as_str())]);
    }
}

fn tell(hooks: &Hooks, kind: EventKind, facts: &[(&str, &str)]) {
    tell_as(hooks, kind, Severity::Info, facts);
}

fn tell_as(hooks: &Hooks, kind: EventKind, severity: Severity, facts: &[(&str, &str)]) {
    hooks.server(kind, severity, || {
        let facts = facts
            .iter()
            .map(|(name, fact)| ((*name).to_owned(), Value::from(*fact)));
        facts.collect::<Map<_, _>>()
    });
}
