//! The two dialects. The greeting carries the keys of both; whoever answers it with `protocol_version` speaks the one of
//! PicoClaw's documentation page, whoever does not speaks the one of its code. From then on only that one is spoken and
//! understood: an answer in the other is no answer.

use serde_json::Value;

use super::{code, page};
use crate::gate::Json;
use crate::hook::event::Event;
use crate::hook::registry::{Answer, Unchangeable};
use crate::hook::{HookContext, HookError, ModelReply, ModelRequest, ToolCall, ToolOutput};

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// PicoClaw's code.
    Code,
    /// PicoClaw's documentation page.
    Page,
}

/// A question to a hook.
pub(super) enum Question<'a> {
    BeforeModel(&'a HookContext, &'a ModelRequest),
    AfterModel(&'a HookContext, &'a ModelReply),
    BeforeTool(&'a HookContext, &'a ToolCall),
    AfterTool(&'a HookContext, &'a ToolCall, &'a ToolOutput),
    ApproveTool(&'a HookContext, &'a ToolCall),
}

impl Question<'_> {
    const fn method(&self) -> &'static str {
        match self {
            Self::BeforeModel(..) => "hook.before_llm",
            Self::AfterModel(..) => "hook.after_llm",
            Self::BeforeTool(..) => "hook.before_tool",
            Self::AfterTool(..) => "hook.after_tool",
            Self::ApproveTool(..) => "hook.approve_tool",
        }
    }
}

/// Parameters: an object whose arguments stand in it exactly as they were canonicalised.
pub(super) type Params = Box<serde_json::value::RawValue>;

impl Dialect {
    /// The dialect of whoever gives this answer to the greeting.
    pub(super) fn selected(answer: &Json) -> Result<Self, HookError> {
        let unreadable = |why: &str| HookError::Unreadable(format!("the answer to the greeting {why}"));
        let object = answer.as_object().ok_or_else(|| unreadable("is no object"))?;
        match object.get("protocol_version") {
            None => Ok(Self::Code),
            Some(Json::Number(version)) if version.as_str() == "1" => Ok(Self::Page),
            Some(_) => Err(unreadable(
                "names a version of the protocol that is not spoken here",
            )),
        }
    }

    pub(super) fn question(self, question: &Question<'_>) -> Result<(&'static str, Params), HookError> {
        let params = match self {
            Self::Code => code::params(question),
            Self::Page => page::params(question),
        };
        let params = params.map_err(|_| HookError::Rule("the question cannot be spelled as JSON"))?;
        Ok((question.method(), params))
    }

    pub(super) fn event(self, event: &Event, dropped: u64) -> (&'static str, Value) {
        match self {
            Self::Code => ("hook.runtime_event", code::event(event, dropped)),
            Self::Page => ("hook.event", page::event(event, dropped)),
        }
    }
}

/// What can be read from an answer.
pub(super) trait Decoded: Sized {
    fn decode(dialect: Dialect, result: &Json, question: &Question<'_>) -> Answer<Self>;
}

/// The answer to a question of another kind: it cannot be, since each point asks its own.
const OTHER: HookError = HookError::Rule("the answer does not belong to the question");

impl Decoded for ModelRequest {
    fn decode(dialect: Dialect, result: &Json, question: &Question<'_>) -> Answer<Self> {
        match (question, dialect) {
            (Question::BeforeModel(_, request), Dialect::Code) => code::before_model(result, request),
            (Question::BeforeModel(_, request), Dialect::Page) => page::before_model(result, request),
            _ => Err(OTHER),
        }
    }
}

impl Decoded for ModelReply {
    fn decode(dialect: Dialect, result: &Json, question: &Question<'_>) -> Answer<Self> {
        match (question, dialect) {
            (Question::AfterModel(_, reply), Dialect::Code) => code::after_model(result, reply),
            (Question::AfterModel(_, reply), Dialect::Page) => page::after_model(result, reply),
            _ => Err(OTHER),
        }
    }
}

impl Decoded for ToolCall {
    fn decode(dialect: Dialect, result: &Json, question: &Question<'_>) -> Answer<Self> {
        match (question, dialect) {
            (Question::BeforeTool(_, call), Dialect::Code) => code::before_tool(result, call),
            (Question::BeforeTool(_, call), Dialect::Page) => page::before_tool(result, call),
            _ => Err(OTHER),
        }
    }
}

impl Decoded for ToolOutput {
    fn decode(dialect: Dialect, result: &Json, question: &Question<'_>) -> Answer<Self> {
        match (question, dialect) {
            (Question::AfterTool(_, call, _), Dialect::Code) => code::after_tool(result, call),
            (Question::AfterTool(..), Dialect::Page) => page::after_tool(result),
            _ => Err(OTHER),
        }
    }
}

impl Decoded for Unchangeable {
    fn decode(dialect: Dialect, result: &Json, _: &Question<'_>) -> Answer<Self> {
        match dialect {
            Dialect::Code => code::approve(result),
            Dialect::Page => page::approve(result),
        }
    }
}
