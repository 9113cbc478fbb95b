//! A streamed answer: server-sent events (WHATWG HTML, "Server-sent events") with the pieces of one reply, put together
//! strictly. A reply is whole only when it said why it ended and `[DONE]` followed; what cannot be told apart is no call.
//!
//! A piece belongs to the call of its index and id. Two ids under one index are two calls; a piece without an id that then
//! comes under that index could be of either, so both are void. A name must come in one piece; a blank one counts as none.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::wire::{self, Spent};
use super::{RawCall, Reply, Usage};

/// The most calls that are kept of one reply; more is no answer.
const MAX_CALLS: usize = 256;
const TANGLED: &str = "the pieces of this call and another came under one index and cannot be told apart";
const NAME_IN_PIECES: &str = "the name of the tool came in pieces";
const ARGS_TANGLED: &str = "the arguments came in pieces that do not fit together";

/// One event's data.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Spent>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<Value>,
    tool_calls: Option<Vec<Piece>>,
}

#[derive(Deserialize)]
struct Piece {
    index: Option<u64>,
    id: Option<Value>,
    function: Option<PieceFunction>,
}

#[derive(Deserialize, Default)]
struct PieceFunction {
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

/// Why a stream is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agent) enum BadStream {
    /// An event is not in the expected form.
    Form,
    /// The endpoint says that it failed.
    Failed,
    /// There is no end of calls.
    TooMuch,
}

impl BadStream {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Form => "a piece of the answer is not in the expected form",
            Self::Failed => "the endpoint reported a failure in the middle of its answer",
            Self::TooMuch => "the answer holds too many calls",
        }
    }
}

/// Puts a reply together from what arrives.
#[derive(Default)]
pub(in crate::agent) struct Collector {
    /// Bytes of a line that has not ended.
    line: Vec<u8>,
    /// The data of an event that has not ended.
    data: Option<Vec<u8>>,
    text: String,
    calls: Vec<Collected>,
    finish: Option<String>,
    usage: Usage,
    done: bool,
}

#[derive(Default)]
struct Collected {
    index: Option<u64>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    fault: Option<&'static str>,
}

impl Collector {
    /// Takes the next bytes, however they are cut.
    pub(in crate::agent) fn take(&mut self, bytes: &[u8]) -> Result<(), BadStream> {
        for byte in bytes {
            match byte {
                b'\n' => {
                    let mut line = std::mem::take(&mut self.line);
                    if line.last() == Some(&b'\r') {
                        line.pop();
                    }
                    self.take_line(&line)?;
                }
                byte => self.line.push(*byte),
            }
        }
        Ok(())
    }

    fn take_line(&mut self, line: &[u8]) -> Result<(), BadStream> {
        if line.is_empty() {
            return match self.data.take() {
                Some(data) => self.take_event(&data),
                None => Ok(()),
            };
        }
        if let Some(more) = line.strip_prefix(b"data:") {
            let more = more.strip_prefix(b" ").unwrap_or(more);
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(more);
                }
                None => self.data = Some(more.to_vec()),
            }
        }
        Ok(())
    }

    fn take_event(&mut self, data: &[u8]) -> Result<(), BadStream> {
        if self.done {
            return Ok(());
        }
        if data.trim_ascii() == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        let chunk: Chunk = serde_json::from_slice(data).map_err(|_| BadStream::Form)?;
        if chunk.error.is_some_and(|error| !error.is_null()) {
            return Err(BadStream::Failed);
        }
        if let Some(spent) = chunk.usage {
            self.usage = spent.into_usage();
        }
        // Other choices are not asked for.
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            if let Some(delta) = choice.delta {
                if let Some(text) = delta.content.and_then(wire::words) {
                    self.text.push_str(&text);
                }
                for piece in delta.tool_calls.unwrap_or_default() {
                    self.take_piece(piece)?;
                }
            }
            if let Some(reason) = choice.finish_reason {
                self.finish = Some(reason);
            }
        }
        Ok(())
    }

    fn take_piece(&mut self, piece: Piece) -> Result<(), BadStream> {
        let function = piece.function.unwrap_or_default();
        let name = function.name.filter(|name| !name.trim().is_empty());
        let id = wire::call_id(piece.id).filter(|id| !id.trim().is_empty());
        let Some(at) = self.place(piece.index, id.as_deref(), name.is_some()) else {
            for call in self.calls.iter_mut().filter(|call| call.index == piece.index) {
                call.fault = Some(TANGLED);
            }
            return Ok(());
        };
        if at >= MAX_CALLS {
            return Err(BadStream::TooMuch);
        }
        if at == self.calls.len() {
            self.calls.push(Collected {
                index: piece.index,
                ..Collected::default()
            });
        }
        let Some(call) = self.calls.get_mut(at) else {
            return Ok(());
        };
        call.id = call.id.take().or(id);
        match (&call.name, name) {
            (_, None) => {}
            (None, Some(name)) => call.name = Some(name),
            (Some(before), Some(name)) if *before == name => {}
            (Some(_), Some(_)) => call.fault = Some(NAME_IN_PIECES),
        }
        let raw = function.arguments.map(|raw| raw.get().to_owned());
        if let Some(raw) = raw.filter(|raw| raw != "null") {
            match (serde_json::from_str::<String>(&raw), &mut call.arguments) {
                (Ok(more), Some(arguments)) => arguments.push_str(&more),
                (Ok(more), None) => call.arguments = Some(more),
                // The object itself instead of its text: whole, or nothing.
                (Err(_), None) => call.arguments = Some(raw),
                (Err(_), Some(_)) => call.fault = Some(ARGS_TANGLED),
            }
        }
        Ok(())
    }

    /// The call to which a piece belongs, or the place of a new one; `None` when it could be of several.
    fn place(&self, index: Option<u64>, id: Option<&str>, named: bool) -> Option<usize> {
        let under: Vec<usize> = (0..self.calls.len())
            .filter(|at| self.calls.get(*at).is_some_and(|call| call.index == index))
            .collect();
        let call = |at: &usize| self.calls.get(*at);
        match (id, under.as_slice()) {
            (_, []) => Some(self.calls.len()),
            (None, [only]) => Some(*only),
            (None, _) => None,
            (Some(id), under) => {
                let same = under
                    .iter()
                    .find(|at| call(at).is_some_and(|call| call.id.as_deref() == Some(id)));
                // The id may come after the first piece, but not with a second name.
                let unnamed = under.last().filter(|at| {
                    call(at).is_some_and(|call| call.id.is_none() && !(named && call.name.is_some()))
                });
                Some(same.or(unnamed).copied().unwrap_or(self.calls.len()))
            }
        }
    }

    /// The reply, as far as it came.
    pub(in crate::agent) fn into_reply(mut self) -> Reply {
        // The last event need not be followed by a blank line.
        let line = std::mem::take(&mut self.line);
        let ended = self.take_line(&line).and_then(|()| self.take_line(b""));
        Reply {
            complete: ended.is_ok() && self.done && wire::is_proper_end(self.finish.as_deref()),
            text: Some(self.text),
            calls: self
                .calls
                .into_iter()
                .map(|call| RawCall {
                    id: call.id,
                    name: call.name,
                    arguments: call.arguments,
                    fault: call.fault,
                })
                .collect(),
            usage: self.usage,
        }
    }
}
