//! Messages as they stand on the wire: the SDK's types to text and back. The arguments of a call are written as the text that
//! is stored, never through the SDK's numbers.

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, JsonRpcMessage, JsonRpcRequest, NumberOrString, RequestMetaObject};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use serde::Serialize;
use serde_json::value::RawValue;

use super::call::{Fate, Parcel};

/// To a server.
pub(super) type Outgoing = TxJsonRpcMessage<RoleClient>;
/// From a server.
pub(super) type Incoming = RxJsonRpcMessage<RoleClient>;

/// Why a message did not leave. The texts hold nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotSent {
    /// It cannot be spelled.
    #[error("the message cannot be spelled as JSON")]
    Unspellable,
    /// Its caller does not want it any more.
    #[error("the caller gave the call up")]
    Withdrawn,
    /// The way out is closed.
    #[error("the connection is closed")]
    Closed,
}

#[derive(Serialize)]
struct Call<'a> {
    jsonrpc: &'static str,
    id: &'a NumberOrString,
    method: &'static str,
    params: CallParams<'a>,
}

#[derive(Serialize)]
struct CallParams<'a> {
    name: &'a str,
    arguments: &'a RawValue,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RequestMetaObject>,
}

/// The parcel of a call.
pub(super) fn parcel(message: &Outgoing) -> Option<&Parcel> {
    match message {
        JsonRpcMessage::Request(JsonRpcRequest {
            request: ClientRequest::CallToolRequest(call),
            ..
        }) => call.extensions.get(),
        _ => None,
    }
}

/// The text of a message, on one line.
pub(super) fn spell(message: &Outgoing) -> Result<String, NotSent> {
    let spelled = match (message, parcel(message)) {
        (
            JsonRpcMessage::Request(JsonRpcRequest {
                request: ClientRequest::CallToolRequest(call),
                id,
                ..
            }),
            Some(parcel),
        ) => {
            let arguments =
                RawValue::from_string(parcel.args.to_string()).map_err(|_| NotSent::Unspellable)?;
            let params = CallParams {
                name: &call.params.name,
                arguments: &arguments,
                meta: call.extensions.get(),
            };
            serde_json::to_string(&Call {
                jsonrpc: "2.0",
                id,
                method: "tools/call",
                params,
            })
        }
        _ => serde_json::to_string(message),
    };
    spelled.map_err(|_| NotSent::Unspellable)
}

/// Marks what is about to leave. A call that was given up meanwhile does not.
pub(super) fn depart(parcel: Option<&Parcel>) -> Result<(), NotSent> {
    match parcel {
        Some(parcel) if !parcel.turn(Fate::Unsent, Fate::Sent) => Err(NotSent::Withdrawn),
        _ => Ok(()),
    }
}

/// Reads a message; `None` for what is none.
pub(super) fn read(text: &[u8]) -> Option<Incoming> {
    serde_json::from_slice(text).ok()
}

/// Whether the server wants an answer.
pub(super) const fn wants_something(message: &Incoming) -> bool {
    matches!(message, JsonRpcMessage::Request(_))
}

/// The most messages that wait to be taken while the server asks for more.
pub(super) const MOST_WAITING: usize = 64;
/// Why a server that does so is given up.
pub(super) const GREEDY: &str = "it asks for more and more and takes no answer";
