//! One hook asked once: in time, caught when it panics, its answer checked against its point, its say put on record.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use tracing::warn;

use super::registry::{Answer, Entry};
use super::{HookContext, HookError, HookResult, Hooks, Point};
use crate::config::hook::OnFailure;

/// What came of asking.
pub(super) enum Asked<T> {
    /// It answered, or it failed and may: then it is silent.
    Said(HookResult<T>),
    /// It failed, and that counts as a no.
    Failed(Failed),
}

/// A hook that failed where its answer was needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Which.
    pub hook: String,
    /// How.
    pub error: HookError,
}

impl Failed {
    /// For the model.
    pub fn told(&self) -> String {
        format!("the hook `{}` failed: {}", self.hook, self.error)
    }
}

impl Hooks {
    /// Asks one hook.
    pub(super) async fn ask<H: ?Sized, T>(
        &self,
        entry: &Entry<H>,
        point: Point,
        context: &HookContext,
        tool: Option<&str>,
        answer: impl Future<Output = Answer<T>> + Send,
    ) -> Asked<T> {
        let caught = AssertUnwindSafe(answer).catch_unwind();
        let answer = match tokio::time::timeout(entry.limit, caught).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(HookError::Panicked),
            Err(_) => Err(HookError::TimedOut(entry.limit)),
        };
        let answer = answer.and_then(|result| match result.decision.action() {
            Some(action) if !action.is_valid_at(point) => Err(HookError::Impossible(action, point)),
            _ => Ok(result),
        });
        let error = match answer {
            Ok(result) => {
                self.recorder.answered(&entry.name, point, context, tool, &result);
                return Asked::Said(result);
            }
            Err(error) => error,
        };
        warn!(hook = %entry.name, point = point.name(), %error, "a hook failed");
        metrics::counter!("gatepost_hook_failures_total", "hook" => entry.name.clone(), "cause" => error.code())
            .increment(1);
        self.recorder
            .failed(&entry.name, point, context, tool, &error, entry.on_failure);
        match entry.on_failure {
            OnFailure::Continue => Asked::Said(HookResult::silent()),
            OnFailure::Deny => Asked::Failed(Failed {
                hook: entry.name.clone(),
                error,
            }),
        }
    }
}
