//! Process hooks: a program that lives as long as we do and is asked over JSON-RPC 2.0 on its standard streams, one object a
//! line (docs/HOOK-PROTOCOL.md).
//!
//! [`envelope`] is JSON-RPC, [`dialect`] the two ways of saying the rest ([`code`] is PicoClaw's
//! code, [`page`] its documentation), [`connection`] one process and its streams, [`keeper`] starts it, again after a failure.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::event::Event;
use super::observe::Observer;
use super::registry::{Answer, Approver, Interceptor, Unchangeable};
use super::{HookContext, HookError, ModelReply, ModelRequest, Point, SessionContext, ToolCall, ToolOutput};
use dialect::Question;
pub use keeper::{Backoff, Keeper, Limits};

mod code;
mod connection;
mod dialect;
mod envelope;
mod keeper;
mod page;
mod wire;

#[cfg(test)]
mod dialect_tests;
#[cfg(test)]
mod process_tests;

/// The longest line that is read, in bytes. A longer one ends the process.
pub const MAX_LINE: usize = 1024 * 1024;

/// A program in the registry. Clones share the process.
#[derive(Clone)]
pub struct ProcessHook {
    keeper: Arc<Keeper>,
    limits: Limits,
}

impl ProcessHook {
    /// The hook that this keeper's process is.
    pub const fn new(keeper: Arc<Keeper>, limits: Limits) -> Self {
        Self { keeper, limits }
    }

    async fn ask<T>(&self, limit: Duration, question: &Question<'_>) -> Answer<T>
    where
        T: dialect::Decoded,
    {
        let (dialect, result) = self.keeper.ask(limit, question).await?;
        T::decode(dialect, &result, question)
    }
}

#[async_trait]
impl Interceptor for ProcessHook {
    async fn session_start(&self, _: &HookContext) -> Answer<SessionContext> {
        // The protocol has no such point, and the configuration does not offer it.
        Ok(super::HookResult::silent())
    }

    async fn before_model(&self, context: &HookContext, request: &ModelRequest) -> Answer<ModelRequest> {
        let question = Question::BeforeModel(context, request);
        self.ask(self.limits.interceptor, &question).await
    }

    async fn after_model(&self, context: &HookContext, reply: &ModelReply) -> Answer<ModelReply> {
        let question = Question::AfterModel(context, reply);
        self.ask(self.limits.interceptor, &question).await
    }

    async fn pre_tool_use(&self, context: &HookContext, call: &ToolCall) -> Answer<ToolCall> {
        let question = Question::BeforeTool(context, call);
        self.ask(self.limits.interceptor, &question).await
    }

    async fn post_tool_use(
        &self,
        context: &HookContext,
        call: &ToolCall,
        output: &ToolOutput,
    ) -> Answer<ToolOutput> {
        let question = Question::AfterTool(context, call, output);
        self.ask(self.limits.interceptor, &question).await
    }
}

#[async_trait]
impl Approver for ProcessHook {
    async fn approve_tool(&self, context: &HookContext, call: &ToolCall) -> Answer<Unchangeable> {
        let question = Question::ApproveTool(context, call);
        self.ask(self.limits.approval, &question).await
    }
}

#[async_trait]
impl Observer for ProcessHook {
    async fn observe(&self, event: &Event, dropped: u64) -> Result<(), HookError> {
        self.keeper.tell(self.limits.observer, event, dropped).await
    }
}

/// What a hook is good for, as it is told in the greeting.
fn modes(points: &[Point], observes: bool) -> Vec<&'static str> {
    let has = |wanted: &[Point]| points.iter().any(|point| wanted.contains(point));
    [
        (observes, "observe"),
        (has(&[Point::BeforeModel, Point::AfterModel]), "llm"),
        (has(&[Point::PreToolUse, Point::PostToolUse]), "tool"),
        (has(&[Point::ApproveTool]), "approve"),
    ]
    .into_iter()
    .filter_map(|(on, mode)| on.then_some(mode))
    .collect()
}
