//! The dialect of PicoClaw's documentation page: `name` and `args`, `decision: {action}`, `allow`. Where the page's own example
//! leaves the decision out and only hands the arguments back, that is `continue` with these arguments.

use serde::Serialize;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::code::{arguments, model_request};
use super::dialect::{Params, Question};
use super::wire::{
    ToolResult, action, decision, flag, messages, object, optional_text, read_reply, reply, text,
    tool_output, tools, unreadable,
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
struct Asked<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'a Arguments>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<ToolResult<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Value>,
    agent_id: Option<&'a str>,
    user_id: Option<&'a str>,
    session_id: &'a str,
    metadata: &'a serde_json::Map<String, Value>,
}

impl<'a> Asked<'a> {
    fn of(context: &'a HookContext) -> Self {
        Self {
            name: None,
            args: None,
            tool_call_id: None,
            result: None,
            messages: None,
            tools: None,
            response: None,
            agent_id: context.agent_id.as_deref(),
            user_id: context.user_id.as_deref(),
            session_id: &context.session_id,
            metadata: &context.metadata,
        }
    }

    fn of_call(context: &'a HookContext, call: &'a ToolCall) -> Self {
        Self {
            name: Some(call.tool.as_str()),
            args: Some(&call.args),
            tool_call_id: context.tool_call_id.as_deref(),
            ..Self::of(context)
        }
    }
}

pub(super) fn params(question: &Question<'_>) -> Result<Params, serde_json::Error> {
    to_raw_value(&match question {
        Question::BeforeModel(context, request) => Asked {
            messages: Some(messages(request)),
            tools: Some(tools(request)),
            ..Asked::of(context)
        },
        Question::AfterModel(context, answer) => Asked {
            response: Some(reply(answer)),
            ..Asked::of(context)
        },
        Question::BeforeTool(context, call) | Question::ApproveTool(context, call) => {
            Asked::of_call(context, call)
        }
        Question::AfterTool(context, call, output) => Asked {
            result: Some(ToolResult::of(output)),
            ..Asked::of_call(context, call)
        },
    })
}

pub(super) fn event(event: &Event, dropped: u64) -> Value {
    let scope = event.scope.as_ref();
    json!({
        "type": event.kind.older_name(),
        "data": {
            "id": event.id,
            "time": rfc3339(event.at),
            "agent_id": scope.and_then(|scope| scope.agent_id.as_deref()),
            "session_id": scope.map(|scope| scope.session_id.as_str()),
            "turn": scope.map(|scope| scope.turn),
            "surface": scope.map(|scope| scope.via.word()),
            "severity": event.severity.word(),
            "payload": event.payload,
            "dropped_before": dropped,
        },
    })
}

/// The decision, if there is one.
fn decided(answer: &Object) -> Result<Option<(Action, Option<&str>)>, HookError> {
    let Some(json) = answer.get("decision") else {
        return Ok(None);
    };
    let decision = object(json, "decision", &["action", "reason"])?;
    let action = action(text(decision, "action")?)?;
    Ok(Some((action, optional_text(decision, "reason")?)))
}

/// Puts an answer together. One with neither a decision nor a change says nothing, and nothing is no answer.
fn answered<T>(answer: &Object, changed: Option<T>, response: Option<ToolOutput>) -> Answer<T> {
    match decided(answer)? {
        Some((action, reason)) => decision(action, reason, changed, response),
        None if changed.is_some() => decision(Action::Continue, None, changed, response),
        None => Err(unreadable("`decision` is missing")),
    }
}

pub(super) fn before_tool(result: &Json, call: &ToolCall) -> Answer<ToolCall> {
    let answer = object(result, "result", &["decision", "args", "hook_result"])?;
    let changed = answer.get("args").map(arguments).transpose()?;
    let response = answer.get("hook_result").map(tool_output).transpose()?;
    answered(answer, changed.map(|args| call.with_args(args)), response)
}

pub(super) fn after_tool(result: &Json) -> Answer<ToolOutput> {
    let answer = object(result, "result", &["decision", "result"])?;
    let changed = answer.get("result").map(tool_output).transpose()?;
    answered(answer, changed, None)
}

pub(super) fn before_model(result: &Json, request: &ModelRequest) -> Answer<ModelRequest> {
    let answer = object(result, "result", &["decision", "request"])?;
    let changed = match answer.get("request") {
        None => None,
        Some(json) => Some(model_request(
            object(json, "request", &["messages", "tools"])?,
            request,
        )?),
    };
    answered(answer, changed, None)
}

pub(super) fn after_model(result: &Json, before: &ModelReply) -> Answer<ModelReply> {
    let answer = object(result, "result", &["decision", "response"])?;
    let changed = answer
        .get("response")
        .map(|json| read_reply(json, before))
        .transpose()?;
    answered(answer, changed, None)
}

pub(super) fn approve(result: &Json) -> Answer<Unchangeable> {
    let answer = object(result, "result", &["allow", "reason"])?;
    if answer.get("allow").is_none() {
        return Err(unreadable("`allow` is missing"));
    }
    let reason = optional_text(answer, "reason")?.map(str::to_owned);
    Ok(HookResult::from(if flag(answer, "allow")? {
        Decision::Continue
    } else {
        Decision::Deny { reason }
    }))
}
