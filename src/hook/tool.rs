//! The points of a tool: the chain before it, the approvers, and the chain after it.
//!
//! The strictest answer wins whatever the order: one denial denies, else one wish for a person asks, else the gate judges alone.
//! After a denial no hook is asked any more, so nothing is rewritten after it.

use super::chain::{Asked, Failed};
use super::payload::ToolOutput;
use super::{Decision, Halt, HookContext, Hooks, Point, ToolCall};
use crate::gate::policy::Effect;

/// What the hooks say of a call before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Before {
    /// It goes to the confirmation gate.
    Judge(Judged),
    /// It must not run.
    Deny {
        /// The hook that says so.
        hook: String,
        /// Why, for the model.
        why: String,
    },
    /// The turn or the run ends.
    Halt(Halt),
}

/// A call that no hook denied. Only the confirmation gate can let it run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The call with its final arguments: what the gate must be asked about.
    pub call: ToolCall,
    /// The voice of the hooks for the gate: `Some(Confirm)` when one wants a person.
    pub voice: Option<Effect>,
    /// The hooks that want a person, with their reasons.
    pub asks: Vec<String>,
    /// A hook's own result. It counts only when the gate allows the call at once; where a person decides, it is void and the
    /// approved call itself runs.
    pub response: Option<ToolOutput>,
    /// The hook that rewrote the arguments last.
    pub rewritten_by: Option<String>,
    /// The hook whose result it is.
    pub answered_by: Option<String>,
}

impl Hooks {
    /// Asks the interceptors of `pre_tool_use` and then all approvers. Nothing has run yet, and nobody was asked.
    pub async fn pre_tool_use(&self, context: &HookContext, call: ToolCall) -> Before {
        let tool = call.tool.as_str().to_owned();
        let mut judged = Judged {
            call,
            voice: self.confirm_all.contains(&context.via).then_some(Effect::Confirm),
            asks: Vec::new(),
            response: None,
            rewritten_by: None,
            answered_by: None,
        };
        let point = Point::PreToolUse;
        for entry in self
            .interceptors
            .iter()
            .filter(|e| e.is_asked(context.via, point, Some(&tool)))
        {
            let answer = entry.hook.pre_tool_use(context, &judged.call);
            let result = match self.ask(entry, point, context, Some(&tool), answer).await {
                Asked::Said(result) => result,
                Asked::Failed(failed) => return deny_failed(&failed),
            };
            match result.decision {
                Decision::Silent | Decision::Continue => {}
                Decision::Modify(call) => judged.rewrite(&entry.name, call),
                Decision::Respond(output) => judged.respond(&entry.name, output),
                Decision::Ask { reason, changed } => {
                    if let Some(call) = changed {
                        judged.rewrite(&entry.name, call);
                    }
                    judged.ask(&entry.name, reason.as_deref());
                }
                Decision::Deny { reason } => return deny(&entry.name, reason),
                Decision::AbortTurn { reason } => return Before::Halt(Halt::turn(&entry.name, reason)),
                Decision::HardAbort { reason } => return Before::Halt(Halt::run(&entry.name, reason)),
            }
        }
        let point = Point::ApproveTool;
        for entry in self
            .approvers
            .iter()
            .filter(|e| e.is_asked(context.via, point, Some(&tool)))
        {
            let answer = entry.hook.approve_tool(context, &judged.call);
            let result = match self.ask(entry, point, context, Some(&tool), answer).await {
                Asked::Said(result) => result,
                Asked::Failed(failed) => return deny_failed(&failed),
            };
            match result.decision {
                Decision::Ask { reason, .. } => judged.ask(&entry.name, reason.as_deref()),
                Decision::Deny { reason } => return deny(&entry.name, reason),
                // The others cannot be: the table of actions rules them out.
                _ => {}
            }
        }
        Before::Judge(judged)
    }

    /// Asks the interceptors of `post_tool_use`: the result as the model shall see it, and whether the run goes on. The call has
    /// run, so nothing here undoes it; a hook that fails withholds the result.
    pub async fn post_tool_use(
        &self,
        context: &HookContext,
        call: &ToolCall,
        output: ToolOutput,
    ) -> (ToolOutput, Option<Halt>) {
        let mut output = output;
        let point = Point::PostToolUse;
        let tool = call.tool.as_str();
        for entry in self
            .interceptors
            .iter()
            .filter(|e| e.is_asked(context.via, point, Some(tool)))
        {
            let answer = entry.hook.post_tool_use(context, call, &output);
            let result = match self.ask(entry, point, context, Some(tool), answer).await {
                Asked::Said(result) => result,
                Asked::Failed(failed) => return (withheld(&failed, output.is_error), None),
            };
            match result.decision {
                Decision::Modify(changed) => output = changed,
                Decision::AbortTurn { reason } => return (output, Some(Halt::turn(&entry.name, reason))),
                Decision::HardAbort { reason } => return (output, Some(Halt::run(&entry.name, reason))),
                _ => {}
            }
        }
        (output, None)
    }
}

impl Judged {
    /// A rewritten call is another call: a response that was meant for the one before is void.
    fn rewrite(&mut self, hook: &str, call: ToolCall) {
        if call != self.call {
            self.response = None;
            self.answered_by = None;
            self.call = call;
            self.rewritten_by = Some(hook.to_owned());
        }
    }

    /// The first result counts.
    fn respond(&mut self, hook: &str, output: ToolOutput) {
        if self.response.is_none() {
            self.response = Some(output);
            self.answered_by = Some(hook.to_owned());
        }
    }

    fn ask(&mut self, hook: &str, reason: Option<&str>) {
        self.voice = Some(Effect::Confirm);
        self.asks.push(match reason {
            Some(reason) => format!("{hook}: {reason}"),
            None => hook.to_owned(),
        });
    }
}

fn deny(hook: &str, reason: Option<String>) -> Before {
    Before::Deny {
        hook: hook.to_owned(),
        why: reason.unwrap_or_else(|| format!("the hook `{hook}` denies this call")),
    }
}

fn deny_failed(failed: &Failed) -> Before {
    Before::Deny {
        hook: failed.hook.clone(),
        why: failed.told(),
    }
}

fn withheld(failed: &Failed, is_error: bool) -> ToolOutput {
    ToolOutput {
        text: format!(
            "The call was carried out. Its result is withheld: {}. Do not make the call again to see it.",
            failed.told()
        ),
        is_error,
    }
}
