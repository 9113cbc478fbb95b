//! `read_only_guard`: the switch of an organisation. While it is on, only tools that are named as reading run; every other call
//! is denied before anybody is asked.
//!
//! Settings: `reading`, globs of tools that only read (none when left out); `orgs`, for whom it is on (all when left out).

use async_trait::async_trait;
use globset::{Glob, GlobSet, GlobSetBuilder};
use serde_json::{Map, Value};

use super::settings::{BadSetting, Settings};
use crate::hook::registry::{Answer, Interceptor};
use crate::hook::{HookContext, HookResult, Mount, Point, ToolCall};

/// Its name.
pub const NAME: &str = "read_only_guard";
const PRIORITY: i32 = 5;

/// See the module.
pub struct ReadOnlyGuard {
    reading: GlobSet,
    orgs: Option<Vec<String>>,
}

impl ReadOnlyGuard {
    /// The hook, and how it is mounted.
    pub fn new(config: Map<String, Value>, priority: Option<i32>) -> Result<(Mount, Self), BadSetting> {
        const GLOBS: BadSetting =
            BadSetting::Value("reading", "a list of globs such as files_read or *_list");
        let mut settings = Settings::new(config);
        let reading = settings.texts("reading")?.unwrap_or_default();
        let orgs = settings.texts("orgs")?;
        settings.finish()?;
        let mut globs = GlobSetBuilder::new();
        for glob in &reading {
            globs.add(Glob::new(glob).map_err(|_| GLOBS)?);
        }
        let reading = globs.build().map_err(|_| GLOBS)?;
        let mount = Mount::in_process(NAME, priority.unwrap_or(PRIORITY), &[Point::PreToolUse]);
        Ok((mount, Self { reading, orgs }))
    }
}

#[async_trait]
impl Interceptor for ReadOnlyGuard {
    async fn pre_tool_use(&self, context: &HookContext, call: &ToolCall) -> Answer<ToolCall> {
        let is_on = self
            .orgs
            .as_ref()
            .is_none_or(|orgs| orgs.iter().any(|org| org == context.org.as_str()));
        if !is_on || self.reading.is_match(call.tool.as_str()) {
            return Ok(HookResult::silent());
        }
        Ok(HookResult::blocked(
            "the organisation is in read-only mode, and this tool is not one that only reads",
        )
        .and_did("a writing call was blocked"))
    }
}
