//! What a command reads: one line of JSON in the form of Claude Code's hooks.

use std::path::Path;

use serde::Serialize;

use crate::gate::Arguments;
use crate::hook::{HookContext, HookError, Point, ToolCall, ToolOutput};

/// An event for a command.
pub(super) struct Input<'a> {
    point: Point,
    context: &'a HookContext,
    call: Option<&'a ToolCall>,
    output: Option<&'a ToolOutput>,
}

#[derive(Serialize)]
struct Wire<'a> {
    session_id: &'a str,
    transcript_path: &'a str,
    cwd: &'a str,
    permission_mode: &'a str,
    hook_event_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_input: Option<&'a Arguments>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_response: Option<Response<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'a str>,
}

/// A result in the form of MCP.
#[derive(Serialize)]
struct Response<'a> {
    content: [Text<'a>; 1],
    #[serde(rename = "isError")]
    is_error: bool,
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

impl<'a> Input<'a> {
    pub(super) const fn session(context: &'a HookContext) -> Self {
        Self {
            point: Point::SessionStart,
            context,
            call: None,
            output: None,
        }
    }

    pub(super) const fn call(
        point: Point,
        context: &'a HookContext,
        call: &'a ToolCall,
        output: Option<&'a ToolOutput>,
    ) -> Self {
        Self {
            point,
            context,
            call: Some(call),
            output,
        }
    }

    pub(super) const fn point(&self) -> Point {
        self.point
    }

    /// The line, with its end.
    pub(super) fn text(&self, dir: &Path) -> Result<String, HookError> {
        let wire = Wire {
            session_id: &self.context.session_id,
            // There is no transcript to read; hooks expect the key.
            transcript_path: "",
            cwd: &dir.to_string_lossy(),
            permission_mode: "default",
            hook_event_name: event_name(self.point),
            source: (self.point == Point::SessionStart).then_some("startup"),
            tool_name: self.call.map(|call| call.tool.as_str()),
            tool_input: self.call.map(|call| &call.args),
            tool_response: self.output.map(|output| Response {
                content: [Text {
                    r#type: "text",
                    text: &output.text,
                }],
                is_error: output.is_error,
            }),
            // A permission request carries none.
            tool_use_id: self
                .context
                .tool_call_id
                .as_deref()
                .filter(|_| matches!(self.point, Point::PreToolUse | Point::PostToolUse)),
            agent_id: self.context.agent_id.as_deref(),
        };
        let mut text = serde_json::to_string(&wire)
            .map_err(|_| HookError::Rule("the call cannot be spelled as JSON"))?;
        text.push('\n');
        Ok(text)
    }
}

/// What Claude Code calls the point.
pub(super) const fn event_name(point: Point) -> &'static str {
    match point {
        Point::SessionStart => "SessionStart",
        Point::ApproveTool => "PermissionRequest",
        Point::PostToolUse => "PostToolUse",
        _ => "PreToolUse",
    }
}
