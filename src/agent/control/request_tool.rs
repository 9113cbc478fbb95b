//! `request_tool`: people are asked for a tool that the movement does not have (WAITING_HUMAN_TOOL_REQUEST). The call is a
//! confirmation request by itself, whatever policy says of other calls.

use serde_json::{Value, json};

use super::{Steer, Steers, text};
use crate::agent::scene::Scene;
use crate::gate::Arguments;

pub(super) struct RequestTool;

/// The tool that such a call asks for.
pub fn wanted(args: &Arguments) -> Option<&str> {
    text(args, "tool").ok()
}

impl Steers for RequestTool {
    fn offer(&self, scene: &Scene<'_>) -> Option<(String, Value)> {
        if scene.requestable.is_empty() {
            return None;
        }
        let description = "Ask people for a tool that you do not have here. The job waits for their decision; when they \
                           agree, the tool is yours in this movement. Make this call alone.";
        let parameters = json!({
            "type": "object",
            "required": ["tool", "reason"],
            "additionalProperties": false,
            "properties": {
                "tool": { "type": "string", "enum": scene.requestable },
                "reason": { "type": "string", "description": "What you need it for; people read this." }
            }
        });
        Some((description.to_owned(), parameters))
    }

    fn steer(&self, args: &Arguments, scene: &Scene<'_>) -> Result<Steer, String> {
        let tool = text(args, "tool")?;
        text(args, "reason")?;
        if scene.tools.contains_key(tool) {
            return Err(format!("`{tool}` is yours already; call it"));
        }
        if !scene.requestable.contains(tool) {
            return Err(format!("there is no tool `{tool}` that could be had"));
        }
        Ok(Steer::Request {
            tool: tool.to_owned(),
        })
    }
}
