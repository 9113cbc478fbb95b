//! `connector_rate_limit`: bounds the calls of one connector in a span of time, for each user and for each token.
//!
//! A connector is what stands before the last `__` of a tool's name (`mcp__files` of `mcp__files__read`). The counts lie in the
//! store: all replicas count together, and a restart forgets nothing. Who counts as the user, and how exact a limit is, says
//! [`crate::gatekeeper::meter`]. A store that cannot count denies the call.
//!
//! Settings: `limit` calls of one user (10), `token_limit` calls of one token (as `limit`), `window_s` seconds (60, at most
//! 2,678,400), `per` `connector` or `tool`, `tools` globs (`*__*`).

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::settings::{BadSetting, Settings};
use crate::gatekeeper::meter::{Counted, Limit, Meter, Turn};
use crate::hook::registry::{Answer, Interceptor};
use crate::hook::{HookContext, HookError, HookResult, Mount, Point, ToolCall};

/// Its name.
pub const NAME: &str = "connector_rate_limit";
const PRIORITY: i32 = 0;
/// The longest window: a month of 31 days, in seconds.
const LONGEST_WINDOW: u64 = 2_678_400;
/// The greatest limit.
const GREATEST: u64 = 1_000_000_000;

/// See the module.
pub struct ConnectorRateLimit {
    limit: Limit,
    per_tool: bool,
    /// Whether it is the limit of a piece, which counts for itself.
    of_piece: bool,
    meter: Meter,
}

impl ConnectorRateLimit {
    /// The hook, and how it is mounted. The limit `of_piece` counts apart from that of everybody.
    pub fn new(
        config: Map<String, Value>,
        priority: Option<i32>,
        meter: Meter,
        of_piece: bool,
    ) -> Result<(Mount, Self), BadSetting> {
        const WINDOW: BadSetting =
            BadSetting::Value("window_s", "at most 2678400 seconds, which are 31 days");
        let mut settings = Settings::new(config);
        let user = settings.number("limit", 10, 1)?.min(GREATEST);
        let token = settings.number("token_limit", user, 1)?.min(GREATEST);
        let window = settings.number("window_s", 60, 1)?;
        let per_tool = settings.word("per", &["connector", "tool"], "connector or tool")? == Some("tool");
        let tools = settings.texts("tools")?;
        settings.finish()?;
        if window > LONGEST_WINDOW {
            return Err(WINDOW);
        }
        let mut mount = Mount::in_process(NAME, priority.unwrap_or(PRIORITY), &[Point::PreToolUse]);
        mount.tools = tools.unwrap_or_else(|| vec!["*__*".to_owned()]);
        let hook = Self {
            limit: Limit {
                user,
                token,
                window: Duration::from_secs(window),
            },
            per_tool,
            of_piece,
            meter,
        };
        Ok((mount, hook))
    }
}

#[async_trait]
impl Interceptor for ConnectorRateLimit {
    async fn pre_tool_use(&self, context: &HookContext, call: &ToolCall) -> Answer<ToolCall> {
        let tool = call.tool.as_str();
        let connector = tool.rsplit_once("__").map_or(tool, |(connector, _)| connector);
        // Set by whoever runs the piece, never by the agent: a call that no job makes has no piece.
        let piece = context.metadata.get("piece").and_then(Value::as_str);
        let scope = piece.filter(|_| self.of_piece && context.job.is_some());
        let counted = Counted {
            org: &context.org,
            token: &context.token,
            requester: context.user_id.as_deref(),
            counter: if self.per_tool { tool } else { connector },
            scope: scope.unwrap_or_default(),
        };
        let turn = self.meter.take(counted, self.limit).await;
        // The driver's words are for the log, not for the agent.
        let turn = turn.map_err(|error| {
            tracing::warn!(%error, hook = NAME, "a call could not be counted");
            HookError::Rule("it cannot count calls now")
        })?;
        Ok(match turn {
            Turn::Taken => HookResult::silent(),
            Turn::Full(wait) => HookResult::blocked(format!(
                "too many calls of this {} within {} s; wait {} s before the next one",
                if self.per_tool { "tool" } else { "connector" },
                self.limit.window.as_secs(),
                wait.as_millis().div_ceil(1_000),
            )),
        })
    }
}
