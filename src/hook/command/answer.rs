//! What a command answers, read strictly: an unknown key, word or kind of value is no answer, and a contradiction is read as
//! its stricter half.

use crate::child::Sampler;
use crate::gate::Arguments;
use crate::gate::json::{Json, ReadLimits};
use crate::hook::registry::{Answer, Unchangeable};
use crate::hook::{Decision, HookError, HookResult, Point, SessionContext, ToolCall, ToolOutput};

use super::MAX_ANSWER;
use super::input::event_name;

/// What was said, of whatever event.
#[derive(Default)]
pub(super) struct Said {
    verdict: Option<Verdict>,
    reason: Option<String>,
    /// `continue: false`.
    stop: Option<Stop>,
    changed: Option<Json>,
    added: Option<String>,
    remarks: Vec<String>,
}

/// The turn shall end.
struct Stop {
    reason: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Allow,
    Ask,
    Deny,
}

impl Said {
    /// Exit code 2.
    pub(super) fn refused(reason: String) -> Self {
        Self {
            verdict: Some(Verdict::Deny),
            reason: (!reason.is_empty()).then_some(reason),
            ..Self::default()
        }
    }

    pub(super) const fn is_refusal(&self) -> bool {
        matches!(self.verdict, Some(Verdict::Deny)) || self.stop.is_some()
    }

    fn judge(&mut self, verdict: Verdict, reason: Option<String>) {
        if self.verdict < Some(verdict) {
            self.verdict = Some(verdict);
            self.reason = reason;
        }
    }

    fn result<T>(self, decision: Decision<T>) -> HookResult<T> {
        HookResult {
            decision,
            side_effects: self.remarks,
        }
    }

    pub(super) fn at_session_start(mut self) -> HookResult<SessionContext> {
        let decision = if let Some(Stop { reason }) = self.stop.take() {
            Decision::AbortTurn { reason }
        } else if self.verdict == Some(Verdict::Deny) {
            Decision::AbortTurn {
                reason: self.reason.take(),
            }
        } else {
            match self.added.take() {
                Some(text) => Decision::Modify(SessionContext(vec![text])),
                None => Decision::Silent,
            }
        };
        self.result(decision)
    }

    pub(super) fn at_pre_tool_use(mut self, call: &ToolCall) -> Answer<ToolCall> {
        let changed = match self.changed.take() {
            None => None,
            Some(json) => Some(
                Arguments::try_from(json)
                    .map(|args| call.with_args(args))
                    .map_err(|_| HookError::Unreadable("`updatedInput` is no object".to_owned()))?,
            ),
        };
        self.remarks
            .extend(self.added.take().map(|text| format!("context: {text}")));
        let reason = self.reason.take();
        let decision = if let Some(Stop { reason }) = self.stop.take() {
            Decision::AbortTurn { reason }
        } else {
            match (self.verdict, changed) {
                (Some(Verdict::Deny), _) => Decision::Deny { reason },
                (Some(Verdict::Ask), changed) => Decision::Ask { reason, changed },
                (_, Some(changed)) => Decision::Modify(changed),
                (Some(Verdict::Allow), None) => Decision::Continue,
                (None, None) => Decision::Silent,
            }
        };
        Ok(self.result(decision))
    }

    pub(super) fn at_approve_tool(mut self) -> Answer<Unchangeable> {
        if self.changed.is_some() {
            return Err(HookError::Rule("an approver may not change the call"));
        }
        let reason = self.reason.take();
        let decision = match (self.stop.take(), self.verdict) {
            (Some(Stop { reason }), _) => Decision::Deny { reason },
            (None, Some(Verdict::Deny)) => Decision::Deny { reason },
            (None, Some(Verdict::Ask)) => Decision::Ask {
                reason,
                changed: None,
            },
            (None, Some(Verdict::Allow)) => Decision::Continue,
            (None, None) => Decision::Silent,
        };
        Ok(self.result(decision))
    }

    pub(super) fn at_post_tool_use(mut self, output: &ToolOutput) -> Answer<ToolOutput> {
        if let Some(Stop { reason }) = self.stop.take() {
            return Ok(self.result(Decision::AbortTurn { reason }));
        }
        let mut text = match self.changed.take() {
            None => output.text.clone(),
            Some(json) => text_of(&json).ok_or_else(|| unreadable("the updated output is no text"))?,
        };
        if self.verdict == Some(Verdict::Deny) {
            let reason = self.reason.take();
            text.push_str("\n[a hook objects] ");
            text.push_str(reason.as_deref().unwrap_or("it gave no reason"));
        }
        if let Some(added) = self.added.take() {
            text.push_str("\n[a hook adds] ");
            text.push_str(&added);
        }
        let decision = if text == output.text {
            Decision::Silent
        } else {
            Decision::Modify(output.with_text(text))
        };
        Ok(self.result(decision))
    }
}

/// Reads what stood on standard output.
pub(super) fn read(bytes: &[u8], point: Point, sampler: &Sampler) -> Result<Said, HookError> {
    if bytes.trim_ascii().is_empty() {
        return Ok(Said::default());
    }
    let json = Json::read(bytes.trim_ascii(), ReadLimits::message(MAX_ANSWER))
        .map_err(|error| HookError::Unreadable(format!("{error}; it begins: {}", sampler.head(bytes))))?;
    let object = json
        .as_object()
        .ok_or_else(|| unreadable("it is JSON, but no object"))?;
    let mut said = Said::default();
    let mut stop = false;
    let mut stop_reason = None;
    let mut decision = None;
    let mut reason = None;
    for (key, value) in object.iter() {
        match key {
            "continue" => stop = !flag(key, value)?,
            "stopReason" => stop_reason = Some(text(key, value)?),
            "suppressOutput" => {
                flag(key, value)?;
            }
            "systemMessage" => said.remarks.push(text(key, value)?),
            "terminalSequence" => {
                text(key, value)?;
            }
            "decision" => decision = Some(text(key, value)?),
            "reason" => reason = Some(text(key, value)?),
            "hookSpecificOutput" => specific(value, point, &mut said)?,
            _ => return Err(unknown("key", key)),
        }
    }
    match decision.as_deref() {
        None => {}
        Some("block") => said.judge(Verdict::Deny, reason),
        Some("approve") if point == Point::PreToolUse => said.judge(Verdict::Allow, reason),
        Some(word) => return Err(unknown("decision", word)),
    }
    if stop {
        said.stop = Some(Stop { reason: stop_reason });
    }
    Ok(said)
}

fn specific(value: &Json, point: Point, said: &mut Said) -> Result<(), HookError> {
    let object = value
        .as_object()
        .ok_or_else(|| unreadable("`hookSpecificOutput` is no object"))?;
    let mut verdict = None;
    let mut reason = None;
    let mut named = false;
    for (key, value) in object.iter() {
        match (point, key) {
            (_, "hookEventName") => {
                named = text(key, value)? == event_name(point);
            }
            (Point::PreToolUse, "permissionDecision") => {
                verdict = Some(match text(key, value)?.as_str() {
                    "allow" => Verdict::Allow,
                    // Put off is for a person to decide, as asking is.
                    "ask" | "defer" => Verdict::Ask,
                    "deny" => Verdict::Deny,
                    word => return Err(unknown("permissionDecision", word)),
                });
            }
            (Point::PreToolUse, "permissionDecisionReason") => reason = Some(text(key, value)?),
            (Point::PreToolUse, "updatedInput")
            | (Point::PostToolUse, "updatedMCPToolOutput" | "updatedToolOutput") => {
                said.changed = Some(value.clone());
            }
            (Point::ApproveTool, "decision") => {
                let (behaviour, message) = permission(value, said)?;
                (verdict, reason) = (Some(behaviour), message);
            }
            (Point::SessionStart | Point::PreToolUse | Point::PostToolUse, "additionalContext") => {
                said.added = Some(text(key, value)?);
            }
            _ => return Err(unknown("key of `hookSpecificOutput`", key)),
        }
    }
    if !named {
        return Err(unreadable("`hookEventName` does not name this event"));
    }
    if let Some(verdict) = verdict {
        said.judge(verdict, reason);
    }
    Ok(())
}

/// The decision of a permission request.
fn permission(value: &Json, said: &mut Said) -> Result<(Verdict, Option<String>), HookError> {
    let object = value
        .as_object()
        .ok_or_else(|| unreadable("`decision` is no object"))?;
    let mut behaviour = None;
    let mut message = None;
    for (key, value) in object.iter() {
        match key {
            "behavior" => {
                behaviour = Some(match text(key, value)?.as_str() {
                    "allow" => Verdict::Allow,
                    "deny" => Verdict::Deny,
                    word => return Err(unknown("behavior", word)),
                });
            }
            "message" => message = Some(text(key, value)?),
            "interrupt" => {
                flag(key, value)?;
            }
            "updatedInput" => said.changed = Some(value.clone()),
            _ => return Err(unknown("key of `decision`", key)),
        }
    }
    let behaviour = behaviour.ok_or_else(|| unreadable("`decision` has no `behavior`"))?;
    Ok((behaviour, message))
}

/// A result as text: a string, or the text blocks of MCP.
fn text_of(json: &Json) -> Option<String> {
    if let Some(text) = json.as_str() {
        return Some(text.to_owned());
    }
    let blocks = json.as_array().or_else(|| json.get("content")?.as_array())?;
    let texts: Option<Vec<&str>> = blocks
        .iter()
        .map(|block| {
            (block.get("type")?.as_str()? == "text")
                .then(|| block.get("text")?.as_str())
                .flatten()
        })
        .collect();
    Some(texts?.join("\n"))
}

fn text(key: &str, value: &Json) -> Result<String, HookError> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| HookError::Unreadable(format!("`{key}` is no text")))
}

fn flag(key: &str, value: &Json) -> Result<bool, HookError> {
    value
        .as_bool()
        .ok_or_else(|| HookError::Unreadable(format!("`{key}` is neither true nor false")))
}

fn unreadable(why: &str) -> HookError {
    HookError::Unreadable(why.to_owned())
}

fn unknown(what: &str, word: &str) -> HookError {
    let word: String = word.chars().filter(|c| !c.is_control()).take(40).collect();
    HookError::Unreadable(format!("unknown {what} `{word}`"))
}
