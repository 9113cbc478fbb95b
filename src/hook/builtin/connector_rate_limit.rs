//! `connector_rate_limit`: bounds the calls of one connector in a span of time, for each user and for each token.
//!
//! A connector is what stands before the last `__` of a tool's name (`mcp__files` of `mcp__files__read`). Whoever the agent
//! names as its user has a bound of their own, but that name is only asserted, so the token has one too: a new name each call
//! gains nothing. The counts live in memory: each replica counts for itself, and a restart forgets.
//!
//! Settings: `limit` calls of one user (10), `token_limit` calls of one token (as `limit`), `window_s` seconds (60), `tools` globs (`*__*`).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use gatepost_channel::UtcMillis;
use serde_json::{Map, Value};

use super::settings::{BadSetting, Settings};
use crate::clock::Clock;
use crate::hook::registry::{Answer, Interceptor};
use crate::hook::{HookContext, HookError, HookResult, Mount, Point, ToolCall};

/// Its name.
pub const NAME: &str = "connector_rate_limit";
const PRIORITY: i32 = 0;
/// Counts kept at once. When all of them are in use, calls that would need another are denied.
const MOST_COUNTS: usize = 10_000;

/// See the module.
pub struct ConnectorRateLimit {
    user_limit: usize,
    token_limit: usize,
    window: Duration,
    clock: Arc<dyn Clock>,
    counts: Arc<Counts>,
}

/// The calls of the last while. All agents share those of the general block.
#[derive(Default)]
pub struct Counts(Mutex<HashMap<Key, VecDeque<UtcMillis>>>);

/// Whose calls are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    org: String,
    connector: String,
    token: String,
    user: Option<String>,
}

impl ConnectorRateLimit {
    /// The hook, and how it is mounted.
    pub fn new(
        config: Map<String, Value>,
        priority: Option<i32>,
        clock: Arc<dyn Clock>,
        counts: Arc<Counts>,
    ) -> Result<(Mount, Self), BadSetting> {
        let mut settings = Settings::new(config);
        let user_limit = settings.number("limit", 10, 1)?;
        let token_limit = settings.number("token_limit", user_limit, 1)?;
        let window = settings.number("window_s", 60, 1)?;
        let tools = settings.texts("tools")?;
        settings.finish()?;
        let mut mount = Mount::in_process(NAME, priority.unwrap_or(PRIORITY), &[Point::PreToolUse]);
        mount.tools = tools.unwrap_or_else(|| vec!["*__*".to_owned()]);
        let hook = Self {
            user_limit: usize::try_from(user_limit).unwrap_or(usize::MAX),
            token_limit: usize::try_from(token_limit).unwrap_or(usize::MAX),
            window: Duration::from_secs(window),
            clock,
            counts,
        };
        Ok((mount, hook))
    }

    /// Counts a call, if every count that it falls under has room.
    fn take(&self, keys: &[(Key, usize)]) -> Result<bool, HookError> {
        let now = self.clock.now();
        let mut counts = self.counts.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_past = |at: &UtcMillis| *at <= now && now.since(*at) >= self.window;
        for (key, limit) in keys {
            if let Some(calls) = counts.get_mut(key) {
                while calls.front().is_some_and(is_past) {
                    calls.pop_front();
                }
                if calls.len() >= *limit {
                    return Ok(false);
                }
            }
        }
        if counts.len() + keys.len() > MOST_COUNTS {
            counts.retain(|_, calls| calls.back().is_some_and(|at| !is_past(at)));
            if counts.len() + keys.len() > MOST_COUNTS {
                return Err(HookError::Rule("it counts for as many users as it can"));
            }
        }
        for (key, _) in keys {
            counts.entry(key.clone()).or_default().push_back(now);
        }
        Ok(true)
    }
}

#[async_trait]
impl Interceptor for ConnectorRateLimit {
    async fn pre_tool_use(&self, context: &HookContext, call: &ToolCall) -> Answer<ToolCall> {
        let tool = call.tool.as_str();
        let connector = tool.rsplit_once("__").map_or(tool, |(connector, _)| connector);
        let key = |user: Option<&String>| Key {
            org: context.org.as_str().to_owned(),
            connector: connector.to_owned(),
            token: context.token.as_str().to_owned(),
            user: user.cloned(),
        };
        let mut keys = vec![(key(None), self.token_limit)];
        if let Some(user) = &context.user_id {
            keys.push((key(Some(user)), self.user_limit));
        }
        Ok(if self.take(&keys)? {
            HookResult::silent()
        } else {
            HookResult::blocked(format!(
                "too many calls of this connector within {} s; wait before the next one",
                self.window.as_secs()
            ))
        })
    }
}
