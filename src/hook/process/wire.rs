//! What both dialects share: conversations in the form of the OpenAI-compatible chat API, results of tools, and reading
//! objects of which every key is known.

use serde::Serialize;
use serde_json::{Value, json};

use crate::gate::json::{Json, Object};
use crate::hook::payload::{Message, ModelReply, ModelRequest, PastCall, ToolOffer, ToolOutput, WantedCall};
use crate::hook::{Action, Decision, HookError, HookResult};

pub(super) fn unreadable(why: impl Into<String>) -> HookError {
    HookError::Unreadable(why.into())
}

/// An object with only these keys.
pub(super) fn object<'a>(json: &'a Json, what: &str, keys: &[&str]) -> Result<&'a Object, HookError> {
    let object = json
        .as_object()
        .ok_or_else(|| unreadable(format!("`{what}` is no object")))?;
    match object.iter().find(|(key, _)| !keys.contains(key)) {
        None => Ok(object),
        Some((key, _)) => {
            let key: String = key.chars().filter(|c| !c.is_control()).take(40).collect();
            Err(unreadable(format!("`{what}` has an unknown key `{key}`")))
        }
    }
}

/// A text that must be there.
pub(super) fn text<'a>(object: &'a Object, key: &str) -> Result<&'a str, HookError> {
    optional_text(object, key)?.ok_or_else(|| unreadable(format!("`{key}` is missing")))
}

/// A text, if it is there; null is as if it were not.
pub(super) fn optional_text<'a>(object: &'a Object, key: &str) -> Result<Option<&'a str>, HookError> {
    match object.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(_) => Err(unreadable(format!("`{key}` is no text"))),
    }
}

/// True or false; false when it is not there.
pub(super) fn flag(object: &Object, key: &str) -> Result<bool, HookError> {
    match object.get(key) {
        None | Some(Json::Null) => Ok(false),
        Some(Json::Bool(value)) => Ok(*value),
        Some(_) => Err(unreadable(format!("`{key}` is neither true nor false"))),
    }
}

/// The action of this word.
pub(super) fn action(word: &str) -> Result<Action, HookError> {
    Action::of_process(word).ok_or_else(|| {
        let word: String = word.chars().filter(|c| !c.is_control()).take(40).collect();
        unreadable(format!("unknown action `{word}`"))
    })
}

/// The decision of an action whose parts were read: a part without which the action makes no sense must be there, and one that
/// the action has no use for must not.
pub(super) fn decision<T>(
    action: Action,
    reason: Option<&str>,
    changed: Option<T>,
    response: Option<ToolOutput>,
) -> Result<HookResult<T>, HookError> {
    let reason = reason.map(str::to_owned);
    if response.is_some() && action != Action::Respond {
        return Err(unreadable(format!(
            "a result does not belong to `{}`",
            action.word()
        )));
    }
    if changed.is_some() && !matches!(action, Action::Continue | Action::Modify) {
        return Err(unreadable(format!(
            "a change does not belong to `{}`",
            action.word()
        )));
    }
    let missing = |what: &str| unreadable(format!("`{}` without {what}", action.word()));
    Ok(HookResult::from(match action {
        Action::Continue => changed.map_or(Decision::Continue, Decision::Modify),
        Action::Modify => Decision::Modify(changed.ok_or_else(|| missing("what is to be changed"))?),
        Action::Respond => Decision::Respond(response.ok_or_else(|| missing("a result"))?),
        Action::DenyTool => Decision::Deny { reason },
        Action::AbortTurn => Decision::AbortTurn { reason },
        Action::HardAbort => Decision::HardAbort { reason },
        Action::Ask => return Err(missing("a meaning in this protocol")),
    }))
}

/// A tool's result as PicoClaw spells it.
#[derive(Serialize)]
pub(super) struct ToolResult<'a> {
    for_llm: &'a str,
    for_user: &'a str,
    silent: bool,
    is_error: bool,
    r#async: bool,
}

impl<'a> ToolResult<'a> {
    pub(super) fn of(output: &'a ToolOutput) -> Self {
        Self {
            for_llm: &output.text,
            for_user: "",
            silent: false,
            is_error: output.is_error,
            r#async: false,
        }
    }
}

/// Reads a tool's result.
pub(super) fn tool_output(json: &Json) -> Result<ToolOutput, HookError> {
    let keys = [
        "for_llm",
        "for_user",
        "silent",
        "is_error",
        "async",
        "media",
        "artifact_tags",
        "response_handled",
    ];
    let object = object(json, "result", &keys)?;
    if flag(object, "async")? {
        return Err(unreadable("a result that comes later is no result"));
    }
    flag(object, "silent")?;
    optional_text(object, "for_user")?;
    Ok(ToolOutput {
        text: text(object, "for_llm")?.to_owned(),
        is_error: flag(object, "is_error")?,
    })
}

/// The conversation, the system text first.
pub(super) fn messages(request: &ModelRequest) -> Vec<Value> {
    let mut list = vec![json!({"role": "system", "content": request.system})];
    for message in &request.messages {
        match message {
            Message::User(text) => list.push(json!({"role": "user", "content": text})),
            Message::Model { text, calls } if calls.is_empty() => {
                list.push(json!({"role": "assistant", "content": text}));
            }
            Message::Model { text, calls } => {
                let wanted: Vec<_> = calls
                    .iter()
                    .map(|call| tool_call(&call.id, &call.tool, &call.args))
                    .collect();
                list.push(json!({"role": "assistant", "content": text, "tool_calls": wanted}));
                list.extend(
                    calls
                        .iter()
                        .map(|call| json!({"role": "tool", "tool_call_id": call.id, "content": call.result})),
                );
            }
        }
    }
    list
}

fn tool_call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// The tools on offer.
pub(super) fn tools(request: &ModelRequest) -> Vec<Value> {
    let offer = |tool: &ToolOffer| {
        json!({"type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": tool.parameters}})
    };
    request.tools.iter().map(offer).collect()
}

/// Reads a conversation. Every call must have its result and every result its call.
pub(super) fn read_messages(json: &Json) -> Result<(String, Vec<Message>), HookError> {
    let items = json
        .as_array()
        .ok_or_else(|| unreadable("`messages` is no list"))?;
    let mut system = Vec::new();
    let mut messages: Vec<Message> = Vec::new();
    for item in items {
        let message = object(
            item,
            "message",
            &["role", "content", "tool_calls", "tool_call_id", "name"],
        )?;
        let content = optional_text(message, "content")?;
        match text(message, "role")? {
            "system" => system.push(content.unwrap_or_default().to_owned()),
            "user" => messages.push(Message::User(content.unwrap_or_default().to_owned())),
            "assistant" => messages.push(Message::Model {
                text: content.map(str::to_owned),
                calls: read_calls(message.get("tool_calls"))?
                    .into_iter()
                    .map(|call| {
                        let missing = || unreadable("a call without id, name or arguments");
                        Ok(PastCall {
                            id: call.id.ok_or_else(missing)?,
                            tool: call.name.ok_or_else(missing)?,
                            args: call.arguments.ok_or_else(missing)?,
                            result: String::new(),
                        })
                    })
                    .collect::<Result<_, HookError>>()?,
            }),
            "tool" => {
                let id = text(message, "tool_call_id")?;
                let Some(Message::Model { calls, .. }) = messages.last_mut() else {
                    return Err(unreadable("a tool's message follows no call"));
                };
                let call = calls
                    .iter_mut()
                    .find(|call| call.id == id)
                    .ok_or_else(|| unreadable("a tool's message belongs to no call"))?;
                content.unwrap_or_default().clone_into(&mut call.result);
            }
            _ => return Err(unreadable("a message has an unknown role")),
        }
    }
    Ok((system.join("\n\n"), messages))
}

fn read_calls(json: Option<&Json>) -> Result<Vec<WantedCall>, HookError> {
    let items = match json {
        None | Some(Json::Null) => return Ok(Vec::new()),
        Some(json) => json
            .as_array()
            .ok_or_else(|| unreadable("`tool_calls` is no list"))?,
    };
    items
        .iter()
        .map(|item| {
            let call = object(item, "tool_call", &["id", "type", "function", "index"])?;
            let function = call
                .get("function")
                .ok_or_else(|| unreadable("a call without `function`"))?;
            let function = object(function, "function", &["name", "arguments"])?;
            let owned = |text: Option<&str>| text.map(str::to_owned);
            Ok(WantedCall {
                id: owned(optional_text(call, "id")?),
                name: owned(optional_text(function, "name")?),
                arguments: owned(optional_text(function, "arguments")?),
            })
        })
        .collect()
}

/// Reads which tools are left on offer, by name: a hook can only take away.
pub(super) fn read_tools(json: &Json, offered: &[ToolOffer]) -> Result<Vec<ToolOffer>, HookError> {
    let items = json.as_array().ok_or_else(|| unreadable("`tools` is no list"))?;
    items
        .iter()
        .map(|item| {
            let name = item
                .get("function")
                .and_then(|function| function.get("name"))
                .and_then(Json::as_str);
            offered
                .iter()
                .find(|tool| Some(tool.name.as_str()) == name)
                .cloned()
                .ok_or_else(|| unreadable("`tools` offers what was not offered"))
        })
        .collect()
}

/// A reply of the model.
pub(super) fn reply(reply: &ModelReply) -> Value {
    let calls: Vec<_> = reply
        .calls
        .iter()
        .map(|call| {
            json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
        })
        .collect();
    let reason = match (reply.complete, calls.is_empty()) {
        (false, _) => "length",
        (true, true) => "stop",
        (true, false) => "tool_calls",
    };
    json!({"content": reply.text, "tool_calls": calls, "finish_reason": reason})
}

/// Reads a reply. Whether it came to its own end is not for a hook to say.
pub(super) fn read_reply(json: &Json, before: &ModelReply) -> Result<ModelReply, HookError> {
    let keys = [
        "content",
        "tool_calls",
        "finish_reason",
        "usage",
        "reasoning_content",
    ];
    let object = object(json, "response", &keys)?;
    Ok(ModelReply {
        text: optional_text(object, "content")?.map(str::to_owned),
        calls: read_calls(object.get("tool_calls"))?,
        complete: before.complete,
    })
}
