//! Command hooks: a program that is started for each event. It reads the JSON of Claude Code's hook of that event on its
//! standard input and answers in its shapes: exit code 2 with the reason on standard error, or one JSON object on standard
//! output with exit code 0. Nothing at all with exit code 0 is no opinion. Everything else is a failure.

use std::time::Duration;

use async_trait::async_trait;

use super::registry::{Answer, Approver, Interceptor, Unchangeable};
use super::{HookContext, HookError, Point, SessionContext, ToolCall, ToolOutput};
use crate::child::Sampler;
use crate::child::{How, Keep, Overflow, Request, run};
use crate::config::child::ChildConfig;
use answer::Said;
use input::Input;

mod answer;
mod input;

#[cfg(test)]
mod command_tests;

/// The most bytes of an answer. A command that writes more is ended, and the call denied.
pub const MAX_ANSWER: usize = 1024 * 1024;
/// What is kept of standard error: its end, which is where a reason stands.
const KEPT_STDERR: usize = 8 * 1024;

/// See the module.
pub struct CommandHook {
    child: ChildConfig,
    limit: Duration,
    grace: Duration,
    sampler: Sampler,
}

impl CommandHook {
    /// The hook that starts this child, which has `limit` to answer and `grace` to end after that.
    pub fn new(child: ChildConfig, limit: Duration, grace: Duration) -> Self {
        Self {
            sampler: Sampler::new(&child),
            child,
            limit,
            grace,
        }
    }

    /// Starts the child on an input; what it said.
    async fn ask(&self, input: &Input<'_>) -> Result<Said, HookError> {
        let text = input.text(&self.child.dir)?;
        let request = Request {
            input: text.as_bytes(),
            limit: self.limit,
            grace: self.grace,
            out: Keep::Head(MAX_ANSWER),
            err: Keep::Tail(KEPT_STDERR),
            overflow: Overflow::End,
        };
        let ended = run(&self.child, request).await?;
        let complaint = self.sampler.tail(&ended.err);
        let answer = || answer::read(ended.out.bytes(), input.point(), &self.sampler);
        match ended.how {
            How::TimedOut(limit) => Err(HookError::TimedOut(limit)),
            How::Exited(0) => answer(),
            How::Exited(2) => Ok(Said::refused(complaint)),
            how => match answer() {
                // It failed, but what it said before is stricter than that.
                Ok(said) if said.is_refusal() => Ok(said),
                _ if complaint.is_empty() => Err(HookError::Ended(how.to_string())),
                _ => Err(HookError::Ended(format!("{how}: {complaint}"))),
            },
        }
    }
}

#[async_trait]
impl Interceptor for CommandHook {
    async fn session_start(&self, context: &HookContext) -> Answer<SessionContext> {
        Ok(self.ask(&Input::session(context)).await?.at_session_start())
    }

    async fn pre_tool_use(&self, context: &HookContext, call: &ToolCall) -> Answer<ToolCall> {
        let input = Input::call(Point::PreToolUse, context, call, None);
        self.ask(&input).await?.at_pre_tool_use(call)
    }

    async fn post_tool_use(
        &self,
        context: &HookContext,
        call: &ToolCall,
        output: &ToolOutput,
    ) -> Answer<ToolOutput> {
        let input = Input::call(Point::PostToolUse, context, call, Some(output));
        self.ask(&input).await?.at_post_tool_use(output)
    }
}

#[async_trait]
impl Approver for CommandHook {
    async fn approve_tool(&self, context: &HookContext, call: &ToolCall) -> Answer<Unchangeable> {
        let input = Input::call(Point::ApproveTool, context, call, None);
        self.ask(&input).await?.at_approve_tool()
    }
}
