//! The points of the model: the chain before a question and the chain after a reply.

use super::chain::{Asked, Failed};
use super::{Decision, Halt, HookContext, HookError, Hooks, ModelReply, ModelRequest, Point};
use crate::config::hook::OnFailure;

impl Hooks {
    /// Asks the interceptors of `before_model`: the question as it is to be asked.
    pub async fn before_model(
        &self,
        context: &HookContext,
        request: ModelRequest,
    ) -> Result<ModelRequest, Halt> {
        let mut request = request;
        let point = Point::BeforeModel;
        for entry in self
            .interceptors
            .iter()
            .filter(|e| e.is_asked(context.via, point, None))
        {
            let answer = entry.hook.before_model(context, &request);
            match self.ask(entry, point, context, None, answer).await {
                Asked::Failed(failed) => return Err(Halt::failed(&failed)),
                Asked::Said(result) => match result.decision {
                    Decision::Modify(changed) if widens(&request, &changed) => {
                        let error =
                            HookError::Rule("it offers a tool to the model that the question did not offer");
                        self.recorder
                            .failed(&entry.name, point, context, None, &error, entry.on_failure);
                        if entry.on_failure == OnFailure::Deny {
                            return Err(Halt::failed(&Failed {
                                hook: entry.name.clone(),
                                error,
                            }));
                        }
                    }
                    Decision::Modify(changed) => request = changed,
                    Decision::AbortTurn { reason } => return Err(Halt::turn(&entry.name, reason)),
                    Decision::HardAbort { reason } => return Err(Halt::run(&entry.name, reason)),
                    _ => {}
                },
            }
        }
        Ok(request)
    }

    /// Asks the interceptors of `after_model`: the reply as it is to be taken.
    pub async fn after_model(&self, context: &HookContext, reply: ModelReply) -> Result<ModelReply, Halt> {
        let mut reply = reply;
        let point = Point::AfterModel;
        for entry in self
            .interceptors
            .iter()
            .filter(|e| e.is_asked(context.via, point, None))
        {
            let answer = entry.hook.after_model(context, &reply);
            match self.ask(entry, point, context, None, answer).await {
                Asked::Failed(failed) => return Err(Halt::failed(&failed)),
                Asked::Said(result) => match result.decision {
                    Decision::Modify(changed) => reply = changed,
                    Decision::AbortTurn { reason } => return Err(Halt::turn(&entry.name, reason)),
                    Decision::HardAbort { reason } => return Err(Halt::run(&entry.name, reason)),
                    _ => {}
                },
            }
        }
        Ok(reply)
    }
}

/// Whether a tool is offered that was not, or in another form.
fn widens(before: &ModelRequest, after: &ModelRequest) -> bool {
    after.tools.iter().any(|tool| !before.tools.contains(tool))
}
