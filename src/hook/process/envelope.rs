//! JSON-RPC 2.0 as it is read from a hook: strictly, for one awaited id.

use super::MAX_LINE;
use crate::child::Sampler;
use crate::gate::json::{Json, ReadLimits};
use crate::hook::HookError;

/// A line from a hook.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    /// A result, with its id.
    Result(u64, Json),
    /// An error, with its id; the message is for operators.
    Error(u64, String),
    /// A request or a notification of the hook's own: it is not listened to.
    Own,
}

/// Reads a line. Whatever is no message makes the stream unusable.
pub(super) fn read(line: &[u8], sampler: &Sampler) -> Result<Incoming, HookError> {
    let noise = |why: &str| HookError::Unreadable(format!("{why}; the line begins: {}", sampler.head(line)));
    let json = Json::read(line.trim_ascii(), ReadLimits::message(MAX_LINE))
        .map_err(|error| noise(&error.to_string()))?;
    let object = json.as_object().ok_or_else(|| noise("it is no JSON object"))?;
    if object.get("method").is_some() {
        return Ok(Incoming::Own);
    }
    let known = ["jsonrpc", "id", "result", "error"];
    if let Some((key, _)) = object.iter().find(|(key, _)| !known.contains(key)) {
        return Err(noise(&format!("unknown key `{key}` beside the result")));
    }
    if object.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
        return Err(noise("it is no JSON-RPC 2.0"));
    }
    let id = match object.get("id") {
        Some(Json::Number(number)) => number.as_str().parse::<u64>().ok(),
        _ => None,
    };
    let id = id.ok_or_else(|| noise("its id is not a number of ours"))?;
    match (object.get("result"), object.get("error")) {
        (Some(result), None) => Ok(Incoming::Result(id, result.clone())),
        (None, Some(error)) => {
            let message = error
                .get("message")
                .and_then(Json::as_str)
                .unwrap_or("no message");
            Ok(Incoming::Error(id, sampler.head(message.as_bytes())))
        }
        (Some(_), Some(_)) => Err(noise("it holds a result together with an error")),
        (None, None) => Err(noise("it holds neither a result nor an error")),
    }
}
