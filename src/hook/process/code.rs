//! The dialect of PicoClaw's code: `tool` and `arguments`, a flat `action`, `approved`. An answer's `call`, `request` or
//! `response` stands in for the whole of what was asked about, as it does there; a key that PicoClaw does not know is refused.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::dialect::{Params, Question};
use super::wire::{
    ToolResult, action, decision, flag, messages, object, optional_text, read_messages, read_reply,
    read_tools, reply, text, tool_output, tools, unreadable,
};
use crate::clock::rfc3339;
use crate::gate::Arguments;
use crate::gate::json::{Json, Object};
use crate::hook::event::Event;
use crate::hook::registry::{Answer, Unchangeable};
use crate::hook::{
    Action, Decision, HookContext, HookError, HookResult, ModelReply, ModelRequest, ToolCall, ToolOutput,
};

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Meta<'a> {
    #[serde(rename = "AgentID")]
    agent_id: &'a str,
    #[serde(rename = "TurnID")]
    turn_id: String,
    #[serde(rename = "ParentTurnID")]
    parent_turn_id: &'a str,
    session_key: &'a str,
    iteration: u32,
    trace_path: &'a str,
    source: &'a str,
}

#[derive(Serialize)]
struct Scope<'a> {
    scope: Value,
    metadata: &'a serde_json::Map<String, Value>,
}

#[derive(Serialize)]
struct Asked<'a> {
    meta: Meta<'a>,
    context: Scope<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a Arguments>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<ToolResult<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Value>,
}

impl<'a> Asked<'a> {
    fn of(context: &'a HookContext) -> Self {
        Self {
            meta: Meta {
                agent_id: context.agent_id.as_deref().unwrap_or_default(),
                turn_id: format!("{}#{}", context.session_id, context.turn),
                parent_turn_id: context.parent.as_ref().map_or("", |parent| parent.as_str()),
                session_key: &context.session_id,
                iteration: context.turn,
                trace_path: "",
                source: "gatepost",
            },
            context: Scope {
                scope: json!({"org": context.org.as_str(), "token": context.token.as_str(), "sender_id": context.user_id}),
                metadata: &context.metadata,
            },
            tool: None,
            arguments: None,
            tool_call_id: None,
            result: None,
            duration: None,
            model: None,
            messages: None,
            tools: None,
            response: None,
        }
    }

    fn of_call(context: &'a HookContext, call: &'a ToolCall) -> Self {
        Self {
            tool: Some(call.tool.as_str()),
            arguments: Some(&call.args),
            tool_call_id: context.tool_call_id.as_deref(),
            ..Self::of(context)
        }
    }
}

pub(super) fn params(question: &Question<'_>) -> Result<Params, serde_json::Error> {
    let asked = match question {
        Question::BeforeModel(context, request) => Asked {
            model: Some(""),
            messages: Some(messages(request)),
            tools: Some(tools(request)),
            ..Asked::of(context)
        },
        Question::AfterModel(context, answer) => Asked {
            model: Some(""),
            response: Some(reply(answer)),
            ..Asked::of(context)
        },
        Question::BeforeTool(context, call) | Question::ApproveTool(context, call) => {
            Asked::of_call(context, call)
        }
        Question::AfterTool(context, call, output) => Asked {
            result: Some(ToolResult::of(output)),
            duration: Some(0),
            ..Asked::of_call(context, call)
        },
    };
    to_raw_value(&asked).map(|raw: Box<RawValue>| raw)
}

pub(super) fn event(event: &Event, dropped: u64) -> Value {
    json!({
        "id": event.id,
        "kind": event.kind.name(),
        "time": rfc3339(event.at),
        "source": {"component": "gatepost", "name": event.kind.source()},
        "scope": event.scope.as_ref().map_or_else(|| json!({}), |scope| json!({
            "agent_id": scope.agent_id, "session_key": scope.session_id,
            "turn_id": format!("{}#{}", scope.session_id, scope.turn), "surface": scope.via.word()})),
        "severity": event.severity.word(),
        "payload": event.payload,
        "attrs": {"dropped_before": dropped},
    })
}

/// The action and its reason. PicoClaw takes a missing action for `continue`; here a missing part is no answer.
fn decided<'a>(result: &'a Json, keys: &[&str]) -> Result<(&'a Object, Action, Option<&'a str>), HookError> {
    let object = object(result, "result", keys)?;
    Ok((
        object,
        action(text(object, "action")?)?,
        optional_text(object, "reason")?,
    ))
}

pub(super) fn before_tool(result: &Json, call: &ToolCall) -> Answer<ToolCall> {
    let (answer, action, reason) = decided(result, &["action", "reason", "call", "result"])?;
    let mut response = answer.get("result").map(tool_output).transpose()?;
    let changed = match answer.get("call") {
        None | Some(Json::Null) => None,
        Some(json) => {
            let keys = [
                "meta",
                "context",
                "tool",
                "arguments",
                "channel",
                "chat_id",
                "hook_result",
                "tool_call_id",
            ];
            let changed = object(json, "call", &keys)?;
            if text(changed, "tool")? != call.tool.as_str() {
                return Err(unreadable(
                    "a hook may not put another tool in place of the one called",
                ));
            }
            if let Some(inside) = changed.get("hook_result").filter(|inside| **inside != Json::Null) {
                response = Some(tool_output(inside)?);
            }
            match changed.get("arguments") {
                None if action == Action::Respond => None,
                None => return Err(unreadable("`call` without `arguments`")),
                Some(json) => Some(call.with_args(arguments(json)?)),
            }
        }
    };
    // With a response, `call` only carries it.
    let changed = changed.filter(|_| action != Action::Respond);
    decision(action, reason, changed, response)
}

pub(super) fn after_tool(result: &Json, call: &ToolCall) -> Answer<ToolOutput> {
    let (answer, action, reason) = decided(result, &["action", "reason", "result"])?;
    let changed = match answer.get("result") {
        None | Some(Json::Null) => None,
        Some(json) => {
            let keys = [
                "meta",
                "context",
                "tool",
                "arguments",
                "result",
                "duration",
                "channel",
                "chat_id",
                "tool_call_id",
            ];
            let whole = object(json, "result", &keys)?;
            if optional_text(whole, "tool")?.is_some_and(|tool| tool != call.tool.as_str()) {
                return Err(unreadable("the result is one of another tool"));
            }
            let inside = whole.get("result").ok_or_else(|| {
                unreadable("`result` must be the whole of what was asked, with the result in it")
            })?;
            Some(tool_output(inside)?)
        }
    };
    decision(action, reason, changed, None)
}

pub(super) fn before_model(result: &Json, request: &ModelRequest) -> Answer<ModelRequest> {
    let (answer, action, reason) = decided(result, &["action", "reason", "request"])?;
    let changed = match answer.get("request") {
        None | Some(Json::Null) => None,
        Some(json) => {
            let keys = [
                "meta",
                "context",
                "model",
                "messages",
                "tools",
                "options",
                "graceful_terminal",
            ];
            Some(model_request(object(json, "request", &keys)?, request)?)
        }
    };
    decision(action, reason, changed, None)
}

pub(super) fn after_model(result: &Json, before: &ModelReply) -> Answer<ModelReply> {
    let (answer, action, reason) = decided(result, &["action", "reason", "response"])?;
    let changed = match answer.get("response") {
        None | Some(Json::Null) => None,
        Some(json) => {
            let whole = object(json, "response", &["meta", "context", "model", "response"])?;
            let inside = whole.get("response").ok_or_else(|| {
                unreadable("`response` must be the whole of what was asked, with the reply in it")
            })?;
            Some(read_reply(inside, before)?)
        }
    };
    decision(action, reason, changed, None)
}

pub(super) fn approve(result: &Json) -> Answer<Unchangeable> {
    let answer = object(result, "result", &["approved", "reason"])?;
    if answer.get("approved").is_none() {
        return Err(unreadable("`approved` is missing"));
    }
    let reason = optional_text(answer, "reason")?.map(str::to_owned);
    Ok(HookResult::from(if flag(answer, "approved")? {
        Decision::Continue
    } else {
        Decision::Deny { reason }
    }))
}

/// Arguments of a call: an object, never a text that holds one.
pub(super) fn arguments(json: &Json) -> Result<Arguments, HookError> {
    Arguments::try_from(json.clone()).map_err(|_| unreadable("the arguments are no object"))
}

/// A question to the model: what it leaves out stays.
pub(super) fn model_request(changed: &Object, request: &ModelRequest) -> Result<ModelRequest, HookError> {
    let mut next = request.clone();
    if let Some(json) = changed.get("messages") {
        (next.system, next.messages) = read_messages(json)?;
    }
    if let Some(json) = changed.get("tools") {
        next.tools = read_tools(json, &request.tools)?;
    }
    Ok(next)
}
