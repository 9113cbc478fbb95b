//! The points at which a run meets its hooks: what is handed to them, and what their answers lead to.

use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};

use super::{Halt, Session, Then, denial, denied};
use crate::agent::engine::{self, Event};
use crate::agent::memory::{Entry, Past};
use crate::agent::model::{Listener, ModelError, Question, RawCall, Reply, ToolOffer, Usage};
use crate::agent::tool::Carried;
use crate::gate::{Arguments, DenyReason, Digest, ToolName};
use crate::gatekeeper::Via;
use crate::hook::{
    self, Before, HookContext, HookError, Judged, Message, ModelReply, ModelRequest, NotRun, PastCall, Point,
    SessionContext, ToolCall, ToolOutput, WantedCall,
};
use crate::job::Job;
use crate::job::finish::Ending;

/// What follows a question to the model.
pub(super) enum Asked {
    Reply(Reply),
    Failed(ModelError),
    Halt(hook::Halt),
}

/// The context of all points of a run.
pub(super) fn context(job: &Job) -> HookContext {
    let mut metadata = Map::new();
    metadata.insert("piece".to_owned(), Value::from(job.piece.as_str()));
    metadata.insert("movement".to_owned(), Value::from(job.movement.as_str()));
    metadata.insert("org_id".to_owned(), Value::from(job.org.as_str()));
    if let Some(session) = &job.session_id {
        metadata.insert("session_id".to_owned(), Value::from(session.as_str()));
    }
    metadata.insert("surface".to_owned(), Value::from(Via::Job.word()));
    HookContext {
        via: Via::Job,
        org: job.org.clone(),
        token: job.token.clone(),
        agent_id: job.agent_id.clone(),
        user_id: job.requester.clone(),
        session_id: job.id.to_string(),
        job: Some(job.id.clone()),
        parent: job.parent.clone(),
        turn: 0,
        tool_call_id: None,
        metadata,
    }
}

impl Session<'_> {
    pub(super) fn context(&self) -> HookContext {
        HookContext {
            turn: self.memory.replies,
            ..context(&self.job)
        }
    }

    /// Adds what hooks have to say before the first question. Until the first reply is kept, a resumed run asks them again.
    pub(super) async fn begin_session(&mut self) -> Result<(), hook::Halt> {
        let is_fresh =
            self.memory.replies == 0 && self.memory.turn.is_none() && self.memory.history.len() == 1;
        if !is_fresh || !self.hooks.any_at(Via::Job, Point::SessionStart) {
            return Ok(());
        }
        let SessionContext(added) = self.hooks.session_start(&self.context()).await?;
        for text in added {
            self.memory.history.push(Entry::User(text));
            self.dirty = true;
        }
        Ok(())
    }

    /// Asks the model, with the chains before and after it and everything around it.
    pub(super) async fn ask_through_hooks(&self, question: Question<'_>) -> Asked {
        let hooks = self.hooks;
        let hear = |progress| self.tell_progress(progress);
        let listener = Listener::new(&hear);
        let question = Question { listener, ..question };
        let touched = [Point::BeforeModel, Point::AroundModel, Point::AfterModel];
        if !touched.into_iter().any(|point| hooks.any_at(Via::Job, point)) {
            return self
                .runner
                .model
                .ask(question)
                .await
                .map_or_else(Asked::Failed, Asked::Reply);
        }
        let context = self.context();
        let request = match hooks.before_model(&context, request(question)).await {
            Ok(request) => request,
            Err(halt) => return Asked::Halt(halt),
        };
        let failed = Mutex::new(None);
        // What hooks do not see: what the reply cost, and which of its calls cannot be told from another.
        let beside = Mutex::new((Usage::default(), Vec::new()));
        let asked = hooks
            .around_model(&context, request, |request| {
                Box::pin(async {
                    let history: Vec<Entry> = request.messages.into_iter().map(entry).collect();
                    let question = Question {
                        system: request.system,
                        history: &history,
                        tools: request.tools.into_iter().map(offer).collect(),
                        listener,
                    };
                    self.runner
                        .model
                        .ask(question)
                        .await
                        .map(|reply| {
                            let mut beside = beside.lock().unwrap_or_else(PoisonError::into_inner);
                            beside.0 = beside.0.plus(reply.usage);
                            beside
                                .1
                                .extend(reply.calls.iter().filter(|call| call.fault.is_some()).cloned());
                            model_reply(reply)
                        })
                        .map_err(|error| {
                            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                            HookError::Inner("the model did not answer".to_owned())
                        })
                })
            })
            .await;
        let reply = match asked {
            Ok(reply) => reply,
            Err(NotRun::Hook(failed)) => {
                return Asked::Halt(hook::Halt::Turn {
                    why: failed.told(),
                    hook: failed.hook,
                });
            }
            Err(NotRun::Inner(_)) => {
                let error = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
                return Asked::Failed(
                    error.unwrap_or_else(|| ModelError::Unreadable("no answer".to_owned())),
                );
            }
        };
        match hooks.after_model(&context, reply).await {
            Ok(changed) => {
                let (usage, void) = beside.into_inner().unwrap_or_else(PoisonError::into_inner);
                Asked::Reply(raw_reply(changed, usage, &void))
            }
            Err(halt) => Asked::Halt(halt),
        }
    }

    /// Asks the hooks about a call before the gate is asked; `Err` when that is the end of the matter. Arguments that they
    /// rewrote are in the memory then, to be kept together with what becomes of the call.
    pub(super) async fn ask_hooks(
        &mut self,
        at: usize,
        call: &str,
        tool: ToolName,
        args: Arguments,
        requires_confirmation: bool,
    ) -> Result<Result<Judged, Then>, Halt> {
        let mut context = self.context().of_call(call);
        context.metadata.insert(
            "requires_confirmation".to_owned(),
            Value::Bool(requires_confirmation),
        );
        let before = args.clone();
        let judged = match self.hooks.pre_tool_use(&context, ToolCall { tool, args }).await {
            Before::Judge(judged) => judged,
            Before::Deny { why, .. } => {
                self.note_refusal(at, DenyReason::DeniedByRule, "hook");
                let told = denial(DenyReason::DeniedByRule, &why);
                return Ok(Err(denied(at, DenyReason::DeniedByRule, told)));
            }
            Before::Halt(halt) => return Ok(Err(self.halt(halt).await?)),
        };
        if judged.call.args != before {
            self.memory.rewrite(at, judged.call.args.canonical());
            self.dirty = true;
            let again = self
                .memory
                .call(at)
                .and_then(engine::digest)
                .is_some_and(|digest| self.memory.rejected.contains(&digest));
            if again {
                return Ok(Err(self.refuse_again(at)));
            }
        }
        Ok(Ok(judged))
    }

    /// A hook's own result of a call that the gate allowed.
    pub(super) async fn respond(
        &mut self,
        at: usize,
        call: &str,
        judged: &Judged,
        output: ToolOutput,
    ) -> Then {
        let context = self.context().of_call(call);
        let (output, halt) = self.hooks.post_tool_use(&context, &judged.call, output).await;
        self.halted = halt;
        let told = if output.is_error {
            format!("error: {}", output.text)
        } else {
            output.text
        };
        Then::Event(Event::Ran {
            at,
            told: crate::agent::tool::told(&told),
        })
    }

    /// Carries a call out inside everything around it. Only the very call that was permitted is sent.
    pub(super) async fn carry_out_through_hooks(
        &self,
        call: &str,
        tool: ToolName,
        args: Arguments,
        send: impl Future<Output = Carried> + Send,
    ) -> (Carried, Option<ToolOutput>) {
        let context = self.context().of_call(call);
        let permitted = Digest::of(&tool, &args);
        // A hook may drop what it wraps half-way: from the first byte on, only the tool itself knows what happened.
        let carried = Mutex::new(None);
        let kept = &carried;
        let output = self
            .hooks
            .around_tool(&context, ToolCall { tool, args }, |call| {
                Box::pin(async move {
                    if Digest::of(&call.tool, &call.args) != permitted {
                        return Err(HookError::Rule(
                            "args_changed: a hook changed the call that was permitted",
                        ));
                    }
                    let unknown = Carried::Unknown(
                        "a hook broke the call off; it may have been carried out".to_owned(),
                    );
                    *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(unknown);
                    let carried = send.await;
                    let output = match &carried {
                        Carried::Done(text) => ToolOutput::done(text.as_str()),
                        Carried::Failed(text) | Carried::Unknown(text) => ToolOutput {
                            text: text.clone(),
                            is_error: true,
                        },
                    };
                    *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(carried);
                    Ok(output)
                })
            })
            .await;
        let carried = carried.into_inner().unwrap_or_else(PoisonError::into_inner);
        match (carried, output) {
            (Some(carried), output) => (carried, output.ok()),
            (None, Err(NotRun::Hook(failed))) => {
                let why = format!("{}; the call was not made", failed.told());
                (Carried::Failed(why), None)
            }
            (None, Err(NotRun::Inner(error))) => (Carried::Failed(format!("{error}; it was not made")), None),
            (None, Ok(_)) => (Carried::Failed("the call was not made".to_owned()), None),
        }
    }

    /// The end that a hook brings about.
    pub(super) async fn halt(&mut self, halt: hook::Halt) -> Result<Then, Halt> {
        let ending = match halt {
            hook::Halt::Turn { hook, why } => Ending::Aborted {
                result: format!("hook_abort: {hook}: {why}"),
            },
            hook::Halt::Run { hook, why } => Ending::Failed {
                error: format!("the hook {hook} stopped the run: {why}"),
            },
        };
        self.finish(ending).await
    }
}

fn request(question: Question<'_>) -> ModelRequest {
    ModelRequest {
        system: question.system,
        messages: question.history.iter().map(message).collect(),
        tools: question
            .tools
            .into_iter()
            .map(|tool| hook::ToolOffer {
                name: tool.name,
                description: tool.description,
                parameters: tool.parameters,
            })
            .collect(),
    }
}

fn message(entry: &Entry) -> Message {
    match entry {
        Entry::User(text) => Message::User(text.clone()),
        Entry::Model { text, calls } => Message::Model {
            text: text.clone(),
            calls: calls
                .iter()
                .map(|call| PastCall {
                    id: call.id.clone(),
                    tool: call.tool.clone(),
                    args: call.args.clone(),
                    result: call.result.clone(),
                })
                .collect(),
        },
    }
}

fn entry(message: Message) -> Entry {
    match message {
        Message::User(text) => Entry::User(text),
        Message::Model { text, calls } => Entry::Model {
            text,
            calls: calls
                .into_iter()
                .map(|call| Past {
                    id: call.id,
                    tool: call.tool,
                    args: call.args,
                    result: call.result,
                })
                .collect(),
        },
    }
}

fn offer(tool: hook::ToolOffer) -> ToolOffer {
    ToolOffer {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
    }
}

fn model_reply(reply: Reply) -> ModelReply {
    ModelReply {
        text: reply.text,
        calls: reply
            .calls
            .into_iter()
            .map(|call| WantedCall {
                id: call.id,
                name: call.name,
                arguments: call.arguments,
            })
            .collect(),
        complete: reply.complete,
    }
}

/// What a hook made of a call that was void from the start stays void.
fn raw_reply(reply: ModelReply, usage: Usage, void: &[RawCall]) -> Reply {
    let fault = |call: &WantedCall| {
        void.iter()
            .find(|void| {
                (void.id.is_some() && void.id == call.id)
                    || (void.name == call.name && void.arguments == call.arguments)
            })
            .and_then(|void| void.fault)
    };
    Reply {
        text: reply.text,
        calls: reply
            .calls
            .into_iter()
            .map(|call| RawCall {
                fault: fault(&call),
                id: call.id,
                name: call.name,
                arguments: call.arguments,
            })
            .collect(),
        complete: reply.complete,
        usage,
    }
}
