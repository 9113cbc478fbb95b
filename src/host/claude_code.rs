//! The dialect of Claude Code: `PreToolUse` and `PermissionRequest` hooks, over standard input or HTTP alike.
//!
//! Source: the hooks reference of Claude Code and `sdk.d.ts` of its Agent SDK, seen live with 2.1.197 and 2.1.332. An answer
//! in any other form, an empty one included, is no opinion there, and then the call may run.

use serde::{Deserialize, Serialize};

use super::{
    Asking, Changed, Dialect, HookCall, HookEvent, HookReport, HookVerdict, HostRan, MAX_BODY, Unreadable,
};
use crate::confirmation::OutcomeStatus;
use crate::gate::json::{Object, ReadLimits};
use crate::gate::{Arguments, Json, ToolName};

/// Who asks, unless it is a sub-agent.
const AGENT: &str = "claude-code";
/// Ids longer than this many characters are not Claude Code's.
const MAX_ID: usize = 256;
/// Asserted words that go into the metadata are cut to this many characters.
const MAX_WORD: usize = 1_024;

/// The largest answer of ours that is read: arguments are no larger than a hook's body, and what stands around them is short.
const MAX_ANSWER: usize = MAX_BODY + 64 * 1024;

/// Events that wait for no verdict on a call. An event that is neither here nor asks is refused: it may be a new way to ask.
const OBSERVED: [&str; 27] = [
    "ConfigChange",
    "CwdChanged",
    "Elicitation",
    "ElicitationResult",
    "FileChanged",
    "InstructionsLoaded",
    "Notification",
    "PermissionDenied",
    "PostCompact",
    "PostToolBatch",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "SessionEnd",
    "SessionStart",
    "Setup",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "TaskCompleted",
    "TaskCreated",
    "TeammateIdle",
    "UserPromptExpansion",
    "UserPromptSubmit",
    "WorktreeCreate",
    "WorktreeRemove",
];

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct ClaudeCode;

impl Dialect for ClaudeCode {
    fn read(&self, body: &[u8]) -> Result<HookEvent, Unreadable> {
        let json = Json::read(body, ReadLimits::message(MAX_BODY))?;
        let message = json.as_object().ok_or(Unreadable::Event)?;
        match message.get("hook_event_name").and_then(Json::as_str) {
            Some("PreToolUse") => call(message, Asking::BeforeTool),
            Some("PermissionRequest") => call(message, Asking::Permission),
            Some("PostToolUse") => Ok(report(message, OutcomeStatus::Succeeded)),
            Some("PostToolUseFailure") => Ok(report(message, OutcomeStatus::Failed)),
            Some(event) if OBSERVED.contains(&event) => Ok(HookEvent::Observed),
            _ => Err(Unreadable::Event),
        }
    }

    fn asking(&self, body: &[u8]) -> Option<Asking> {
        #[derive(Deserialize)]
        struct Peek {
            hook_event_name: String,
        }
        let event = serde_json::from_slice::<Peek>(body).map(|peek| peek.hook_event_name);
        match event.as_deref() {
            Ok("PermissionRequest") => Some(Asking::Permission),
            Ok(event) if OBSERVED.contains(&event) => None,
            _ => Some(Asking::BeforeTool),
        }
    }

    fn speak(&self, asking: Asking, verdict: &HookVerdict) -> String {
        let said = Said {
            output: match asking {
                Asking::BeforeTool => Output::before_tool(verdict),
                Asking::Permission => Output::permission(verdict),
            },
        };
        // Strings and nothing else: it cannot fail, and if it did, this is still a denial.
        serde_json::to_string(&said).unwrap_or_else(|_| LAST_RESORT.to_owned())
    }

    /// Both events take `updatedInput`, and it replaces the input as a whole (seen live with 2.1.197 and 2.1.332).
    fn carries_edits(&self, _: Asking) -> bool {
        true
    }

    fn silence(&self) -> String {
        "{}".to_owned()
    }

    fn hear(&self, asking: Asking, answer: &[u8]) -> Option<HookVerdict> {
        let said: Said = serde_json::from_slice(answer).ok()?;
        Some(match (asking, said.output) {
            (
                Asking::BeforeTool,
                Output::PreToolUse {
                    decision: Permission::Allow,
                    reason,
                    input,
                    context,
                },
            ) if input.is_some() == context.is_some() => HookVerdict::Allow {
                reason,
                changed: changed(answer, &["updatedInput"], input.is_some(), context)?,
            },
            (
                Asking::BeforeTool,
                Output::PreToolUse {
                    decision: Permission::Deny,
                    reason,
                    input: None,
                    context: None,
                },
            ) => HookVerdict::Deny { reason },
            (Asking::Permission, Output::PermissionRequest { decision }) => match decision {
                Behavior::Allow { input } => HookVerdict::Allow {
                    reason: String::new(),
                    changed: changed(answer, &["decision", "updatedInput"], input.is_some(), None)?,
                },
                Behavior::Deny { message, .. } => HookVerdict::Deny { reason: message },
            },
            _ => return None,
        })
    }
}

/// A denial without anything that must be spelled.
const LAST_RESORT: &str = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"gate_error"}}"#;

/// The whole answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    #[serde(rename = "hookSpecificOutput")]
    output: Output,
}

/// The part of the answer that names its event.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "hookEventName", deny_unknown_fields)]
enum Output {
    PreToolUse {
        #[serde(rename = "permissionDecision")]
        decision: Permission,
        #[serde(rename = "permissionDecisionReason")]
        reason: String,
        /// What runs in place of the call's input.
        #[serde(rename = "updatedInput", default, skip_serializing_if = "Option::is_none")]
        input: Option<Input>,
        /// The model reads it beside the result; the reason of an allowance it does not see.
        #[serde(
            rename = "additionalContext",
            default,
            skip_serializing_if = "Option::is_none"
        )]
        context: Option<String>,
    },
    PermissionRequest {
        decision: Behavior,
    },
}

/// The words that `PreToolUse` takes from us. `ask` and `defer` hand the question to somebody else; we never say them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Permission {
    Allow,
    Deny,
}

/// What `PermissionRequest` takes. It has no room for the reason of an approval.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "behavior", rename_all = "lowercase", deny_unknown_fields)]
enum Behavior {
    Allow {
        #[serde(rename = "updatedInput", default, skip_serializing_if = "Option::is_none")]
        input: Option<Input>,
    },
    Deny {
        message: String,
        interrupt: bool,
    },
}

/// Arguments in an answer. They are written exactly; what is read here only tells that some are there, since the buffers between would
/// round their numbers.
#[derive(Debug)]
enum Input {
    Exact(Arguments),
    Present,
}

impl Serialize for Input {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Exact(args) => args.serialize(serializer),
            Self::Present => Err(serde::ser::Error::custom("the arguments were only looked at")),
        }
    }
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self::Present)
    }
}

/// The arguments that stand at this place of an answer, where `present` says that there are some; nothing at all where they cannot be
/// read in only one way.
#[expect(
    clippy::option_option,
    reason = "an answer that cannot be read is not one without arguments"
)]
fn changed(answer: &[u8], place: &[&str], present: bool, told: Option<String>) -> Option<Option<Changed>> {
    if !present {
        return told.is_none().then_some(None);
    }
    let json = Json::read(answer, ReadLimits::message(MAX_ANSWER)).ok()?;
    let mut input = json.get("hookSpecificOutput")?;
    for key in place {
        input = input.get(key)?;
    }
    Some(Some(Changed {
        args: Arguments::try_from(input.clone()).ok()?,
        told: told.unwrap_or_default(),
    }))
}

impl Output {
    fn before_tool(verdict: &HookVerdict) -> Self {
        let (decision, reason, changed) = match verdict {
            HookVerdict::Allow { reason, changed } => (Permission::Allow, reason, changed.as_ref()),
            HookVerdict::Deny { reason } => (Permission::Deny, reason, None),
        };
        Self::PreToolUse {
            decision,
            reason: reason.clone(),
            input: changed.map(|changed| Input::Exact(changed.args.clone())),
            context: changed.map(|changed| changed.told.clone()),
        }
    }

    fn permission(verdict: &HookVerdict) -> Self {
        let decision = match verdict {
            HookVerdict::Allow { changed, .. } => Behavior::Allow {
                input: changed.as_ref().map(|changed| Input::Exact(changed.args.clone())),
            },
            HookVerdict::Deny { reason } => Behavior::Deny {
                message: reason.clone(),
                interrupt: false,
            },
        };
        Self::PermissionRequest { decision }
    }
}

fn call(message: &Object, asking: Asking) -> Result<HookEvent, Unreadable> {
    let tool: ToolName = message
        .get("tool_name")
        .and_then(Json::as_str)
        .ok_or(Unreadable::Member("tool_name"))?
        .parse()?;
    let args = message
        .get("tool_input")
        .cloned()
        .ok_or(Unreadable::Member("tool_input"))?;
    Ok(HookEvent::Asks(Box::new(HookCall {
        asking,
        tool,
        args: Arguments::try_from(args)?,
        agent_id: agent(message)?,
        session_id: id(message, "session_id")?.ok_or(Unreadable::Member("session_id"))?,
        call_id: id(message, "tool_use_id")?,
        metadata: metadata(message, asking),
    })))
}

/// A call that ran. What does not name its call is merely observed.
fn report(message: &Object, status: OutcomeStatus) -> HookEvent {
    match (id(message, "session_id"), id(message, "tool_use_id")) {
        (Ok(Some(session_id)), Ok(Some(call_id))) => HookEvent::Ran(HookReport {
            session_id,
            call_id,
            status,
            told: told(message).map(Box::new),
        }),
        _ => HookEvent::Observed,
    }
}

/// The call that ran and its result: `tool_response`, or the `error` of one that failed.
fn told(message: &Object) -> Option<HostRan> {
    let result = message.get("tool_response").or_else(|| message.get("error"));
    Some(HostRan {
        tool: message.get("tool_name").and_then(Json::as_str)?.parse().ok()?,
        args: Arguments::try_from(message.get("tool_input")?.clone()).ok()?,
        agent_id: agent(message).ok()?,
        output: match result {
            None | Some(Json::Null) => String::new(),
            Some(Json::String(text)) => text.clone(),
            Some(other) => other.canonical(),
        },
    })
}

/// Only a sub-agent has an id and a type.
fn agent(message: &Object) -> Result<String, Unreadable> {
    let kind = id(message, "agent_type")?;
    Ok(match (id(message, "agent_id")?, kind) {
        (Some(_), Some(kind)) => format!("{AGENT}/{kind}"),
        (Some(_), None) => format!("{AGENT}/subagent"),
        (None, _) => AGENT.to_owned(),
    })
}

/// An id: absent, or one to [`MAX_ID`] characters of which none is a control character.
fn id(message: &Object, name: &'static str) -> Result<Option<String>, Unreadable> {
    let text = match message.get(name) {
        None | Some(Json::Null) => return Ok(None),
        Some(value) => value.as_str().ok_or(Unreadable::Member(name))?,
    };
    let acceptable =
        !text.is_empty() && text.chars().nth(MAX_ID).is_none() && !text.chars().any(char::is_control);
    if acceptable {
        Ok(Some(text.to_owned()))
    } else {
        Err(Unreadable::Member(name))
    }
}

/// What may help to judge the call. The transcript's place is nobody's business.
fn metadata(message: &Object, asking: Asking) -> Json {
    let event = match asking {
        Asking::BeforeTool => "PreToolUse",
        Asking::Permission => "PermissionRequest",
    };
    let server = message.get("mcp_server").and_then(Json::as_object);
    let words = [
        ("cwd", message.get("cwd")),
        ("permission_mode", message.get("permission_mode")),
        ("subagent_id", message.get("agent_id")),
        ("mcp_server", server.and_then(|server| server.get("name"))),
        ("mcp_source", server.and_then(|server| server.get("source"))),
    ];
    let said = words
        .into_iter()
        .filter_map(|(key, value)| Some((key, Json::from(word(value?.as_str()?)))));
    Json::object(
        [("host", Json::from(AGENT)), ("event", Json::from(event))]
            .into_iter()
            .chain(said),
    )
}

/// The word, without what would not be stored as it is.
fn word(text: &str) -> String {
    text.replace('\0', "\u{FFFD}").chars().take(MAX_WORD).collect()
}

#[cfg(test)]
#[path = "claude_code_tests.rs"]
mod tests;
