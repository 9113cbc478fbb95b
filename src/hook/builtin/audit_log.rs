//! `audit_log`: one event for each call that ran, with its tool and the size of its result, never its arguments.
//!
//! Settings: `tools`, globs; all when left out.

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::settings::{BadSetting, Settings};
use crate::hook::record::{Recorder, draft};
use crate::hook::registry::{Answer, Interceptor};
use crate::hook::{HookContext, HookResult, Mount, Point, ToolCall, ToolOutput};

/// Its name.
pub const NAME: &str = "audit_log";
const PRIORITY: i32 = 0;

/// See the module.
pub struct AuditLog {
    recorder: Recorder,
}

impl AuditLog {
    /// The hook, and how it is mounted.
    pub fn new(
        config: Map<String, Value>,
        priority: Option<i32>,
        recorder: Recorder,
    ) -> Result<(Mount, Self), BadSetting> {
        let mut settings = Settings::new(config);
        let tools = settings.texts("tools")?;
        settings.finish()?;
        let mut mount = Mount::in_process(NAME, priority.unwrap_or(PRIORITY), &[Point::PostToolUse]);
        mount.tools = tools.unwrap_or(mount.tools);
        Ok((mount, Self { recorder }))
    }
}

#[async_trait]
impl Interceptor for AuditLog {
    async fn post_tool_use(
        &self,
        context: &HookContext,
        call: &ToolCall,
        output: &ToolOutput,
    ) -> Answer<ToolOutput> {
        let event = draft(
            context,
            "tool.called",
            Point::PostToolUse,
            NAME,
            Some(call.tool.as_str()),
        )
        .with("session", context.session_id.as_str())
        .with("turn", context.turn)
        .with("is_error", output.is_error)
        .with("result_bytes", output.text.len());
        self.recorder.write(event);
        Ok(HookResult::silent())
    }
}
