//! The chat completions format, as far as it is used (OpenAI API reference, "Create chat completion").

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Question, RawCall, Reply, ToolOffer, Usage};
use crate::agent::memory::Entry;

/// A request.
#[derive(Serialize)]
pub(super) struct Request<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Offer<'a>,
}

#[derive(Serialize)]
struct Offer<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> Request<'a> {
    pub(super) fn of(model: &'a str, question: &'a Question<'a>, stream: bool) -> Self {
        let mut messages = vec![Message::System {
            content: &question.system,
        }];
        for entry in question.history {
            match entry {
                Entry::User(content) => messages.push(Message::User { content }),
                Entry::Model { text, calls } => {
                    messages.push(Message::Assistant {
                        content: text.as_deref(),
                        tool_calls: calls
                            .iter()
                            .map(|call| Call {
                                id: &call.id,
                                kind: "function",
                                function: Function {
                                    name: &call.tool,
                                    arguments: &call.args,
                                },
                            })
                            .collect(),
                    });
                    messages.extend(calls.iter().map(|call| Message::Tool {
                        tool_call_id: &call.id,
                        content: &call.result,
                    }));
                }
            }
        }
        let tool = |offer: &'a ToolOffer| Tool {
            kind: "function",
            function: Offer {
                name: &offer.name,
                description: &offer.description,
                parameters: &offer.parameters,
            },
        };
        Self {
            model,
            messages,
            tools: question.tools.iter().map(tool).collect(),
            stream,
            stream_options: stream.then_some(StreamOptions { include_usage: true }),
        }
    }
}

/// An answer. Unknown fields are others' business; everything that is read may be missing.
#[derive(Deserialize)]
pub(super) struct Response {
    choices: Vec<Choice>,
    usage: Option<Spent>,
}

/// What an endpoint says that it cost.
#[derive(Deserialize)]
pub(super) struct Spent {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<SpentDetails>,
    cost: Option<f64>,
}

#[derive(Deserialize)]
struct SpentDetails {
    cached_tokens: Option<u64>,
}

impl Spent {
    pub(super) fn into_usage(self) -> Usage {
        Usage {
            input_tokens: self.prompt_tokens.unwrap_or(0),
            cached_tokens: self
                .prompt_tokens_details
                .and_then(|details| details.cached_tokens)
                .unwrap_or(0),
            output_tokens: self.completion_tokens.unwrap_or(0),
            cost_micros: self.cost.map_or(0, micros),
        }
    }
}

/// An amount in millionths; senseless ones are none.
fn micros(amount: f64) -> u64 {
    let micros = (amount * 1e6).round();
    if !(0.0..1e15).contains(&micros) {
        return 0;
    }
    format!("{micros:.0}").parse().unwrap_or(0)
}

#[derive(Deserialize)]
struct Choice {
    message: Option<Answer>,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct Answer {
    content: Option<Value>,
    tool_calls: Option<Vec<Wanted>>,
}

#[derive(Deserialize)]
struct Wanted {
    id: Option<Value>,
    function: Option<WantedFunction>,
}

#[derive(Deserialize, Default)]
struct WantedFunction {
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

impl Response {
    /// The first choice; others are not asked for.
    pub(super) fn into_reply(self) -> Option<Reply> {
        let usage = self.usage.map(Spent::into_usage).unwrap_or_default();
        let Choice {
            message,
            finish_reason,
        } = self.choices.into_iter().next()?;
        let message = message?;
        Some(Reply {
            text: message.content.and_then(words),
            calls: message
                .tool_calls
                .unwrap_or_default()
                .into_iter()
                .map(Wanted::into_call)
                .collect(),
            complete: is_proper_end(finish_reason.as_deref()),
            usage,
        })
    }
}

/// `length`, `content_filter` and whatever else is no proper end: what came may be half of what was meant.
pub(super) fn is_proper_end(reason: Option<&str>) -> bool {
    matches!(reason, Some("stop" | "tool_calls" | "function_call"))
}

/// A call's id, however it is spelled.
pub(super) fn call_id(id: Option<Value>) -> Option<String> {
    match id {
        Some(Value::String(id)) => Some(id),
        Some(Value::Number(id)) => Some(id.to_string()),
        _ => None,
    }
}

impl Wanted {
    fn into_call(self) -> RawCall {
        let function = self.function.unwrap_or_default();
        RawCall {
            id: call_id(self.id),
            name: function.name,
            // Arguments are the text of an object, as a string. What is no such string (the object itself, a string with half
            // of a surrogate pair) stays as it was spelled, to be read or refused by the same rule as any other.
            arguments: function
                .arguments
                .map(|raw| raw.get().to_owned())
                .filter(|raw| raw != "null")
                .map(|raw| serde_json::from_str::<String>(&raw).unwrap_or(raw)),
            fault: None,
        }
    }
}

/// Text, or the text parts of a list of parts.
pub(super) fn words(content: Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text),
        Value::Array(parts) => Some(
            parts
                .iter()
                .filter_map(|part| part.get("text").and_then(Value::as_str))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        _ => None,
    }
}
