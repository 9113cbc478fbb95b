//! `result_truncate`: shortens a long result before the model sees it, on a character boundary, and says so.
//!
//! Settings: `limit`, characters with the note included (8,000 when left out, at least 100).

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::settings::{BadSetting, Settings};
use crate::hook::registry::{Answer, Interceptor};
use crate::hook::{Decision, HookContext, HookResult, Mount, Point, ToolCall, ToolOutput};

/// Its name.
pub const NAME: &str = "result_truncate";
const PRIORITY: i32 = 100;
const LIMIT: u64 = 8_000;
const LEAST: u64 = 100;

/// See the module.
pub struct ResultTruncate {
    limit: usize,
}

impl ResultTruncate {
    /// The hook, and how it is mounted.
    pub fn new(config: Map<String, Value>, priority: Option<i32>) -> Result<(Mount, Self), BadSetting> {
        let mut settings = Settings::new(config);
        let limit = settings.number("limit", LIMIT, LEAST)?;
        settings.finish()?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mount = Mount::in_process(NAME, priority.unwrap_or(PRIORITY), &[Point::PostToolUse]);
        Ok((mount, Self { limit }))
    }
}

#[async_trait]
impl Interceptor for ResultTruncate {
    async fn post_tool_use(&self, _: &HookContext, _: &ToolCall, output: &ToolOutput) -> Answer<ToolOutput> {
        Ok(match truncated(&output.text, self.limit) {
            None => HookResult::silent(),
            Some(text) => HookResult::from(Decision::Modify(output.with_text(text))),
        })
    }
}

/// The text within the limit with a note at its end; `None` when it is short enough.
fn truncated(text: &str, limit: usize) -> Option<String> {
    text.char_indices().nth(limit)?;
    let whole = text.chars().count();
    let note = |kept: usize| format!("\n[cut: the first {kept} of {whole} characters]");
    // The note for more characters is no shorter, so what it leaves room for fits.
    let kept = limit.saturating_sub(note(limit).chars().count());
    let end = text.char_indices().nth(kept).map_or(text.len(), |(end, _)| end);
    Some(format!("{}{}", text.get(..end).unwrap_or_default(), note(kept)))
}
