//! What the tests of the room share: hooks that say what they are told to.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::build::Outside;
use super::registry::{Answer, Unchangeable};
use super::{
    Approver, Decision, HookContext, HookError, HookResult, Hooks, Interceptor, ModelReply, ModelRequest,
    Mount, Point, Recorder, SessionContext, ToolCall, ToolOutput,
};
use crate::config::hook::HookDefaults;
use crate::gate::Arguments;
use crate::gate::json::ReadLimits;
use crate::gatekeeper::{Journal, Via};
use crate::ids::{Org, SeededIds, TokenName};

/// What a scripted hook answers.
#[derive(Debug, Clone)]
pub enum Say {
    Silent,
    Continue,
    Modify(&'static str),
    Respond(&'static str),
    Ask,
    Deny,
    AbortTurn,
    HardAbort,
    Fail,
    Panic,
    Hang,
}

/// A hook that follows a script and notes that it was asked.
pub struct Scripted {
    pub name: String,
    pub say: Say,
    pub seen: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    async fn answer<T>(&self, shown: String, make: impl FnOnce(&str) -> T) -> Answer<T> {
        self.seen.lock().unwrap().push(format!("{}({shown})", self.name));
        let reason = Some(format!("{} says so", self.name));
        Ok(HookResult::from(match &self.say {
            Say::Silent => Decision::Silent,
            Say::Continue => Decision::Continue,
            Say::Modify(text) => Decision::Modify(make(text)),
            Say::Respond(text) => Decision::Respond(ToolOutput::done(*text)),
            Say::Ask => Decision::Ask {
                reason,
                changed: None,
            },
            Say::Deny => Decision::Deny { reason },
            Say::AbortTurn => Decision::AbortTurn { reason },
            Say::HardAbort => Decision::HardAbort { reason },
            Say::Fail => return Err(HookError::Other("broken".to_owned())),
            Say::Panic => panic!("a hook panics"),
            Say::Hang => {
                std::future::pending::<()>().await;
                Decision::Silent
            }
        }))
    }
}

#[async_trait]
impl Interceptor for Scripted {
    async fn session_start(&self, _: &HookContext) -> Answer<SessionContext> {
        self.answer("session".to_owned(), |text| SessionContext(vec![text.to_owned()]))
            .await
    }

    async fn before_model(&self, _: &HookContext, request: &ModelRequest) -> Answer<ModelRequest> {
        self.answer(request.system.clone(), |text| ModelRequest {
            system: text.to_owned(),
            ..request.clone()
        })
        .await
    }

    async fn after_model(&self, _: &HookContext, reply: &ModelReply) -> Answer<ModelReply> {
        self.answer(reply.text.clone().unwrap_or_default(), |text| ModelReply {
            text: Some(text.to_owned()),
            ..reply.clone()
        })
        .await
    }

    async fn pre_tool_use(&self, _: &HookContext, call: &ToolCall) -> Answer<ToolCall> {
        self.answer(call.args.canonical().to_owned(), |text| {
            call.with_args(args(text))
        })
        .await
    }

    async fn post_tool_use(&self, _: &HookContext, _: &ToolCall, output: &ToolOutput) -> Answer<ToolOutput> {
        self.answer(output.text.clone(), |text| output.with_text(text))
            .await
    }
}

#[async_trait]
impl Approver for Scripted {
    async fn approve_tool(&self, _: &HookContext, call: &ToolCall) -> Answer<Unchangeable> {
        match self.say {
            Say::Modify(_) => Ok(HookResult::silent()),
            _ => {
                self.answer(call.args.canonical().to_owned(), |_| unreachable!("not a change"))
                    .await
            }
        }
    }
}

/// Arguments.
pub fn args(text: &str) -> Arguments {
    Arguments::read(text.as_bytes(), ReadLimits::bytes(16 * 1024 * 1024)).unwrap()
}

/// A call of `files_delete`.
pub fn call(text: &str) -> ToolCall {
    ToolCall {
        tool: "files_delete".parse().unwrap(),
        args: args(text),
    }
}

/// A context.
pub fn context() -> HookContext {
    HookContext {
        via: Via::Job,
        org: Org::from("acme"),
        token: TokenName::from("build-agent"),
        agent_id: Some("builder".to_owned()),
        user_id: Some("dana".to_owned()),
        session_id: "s-1".to_owned(),
        job: None,
        parent: None,
        turn: 3,
        tool_call_id: Some("t0003c000".to_owned()),
        metadata: serde_json::Map::new(),
    }
}

/// Hooks without entries, forgetting what they record.
pub fn hooks() -> Hooks {
    Hooks::new(
        HookDefaults::default(),
        &Outside::none(Arc::new(SeededIds::default())),
    )
}

/// Hooks without entries, and the journal's other end.
pub fn recorded() -> (Hooks, crate::gatekeeper::journal::Scribe) {
    let (journal, scribe) = Journal::open();
    let recorder = Recorder::new(journal, Arc::new(SeededIds::default()));
    let outside = Outside {
        recorder,
        ..Outside::none(Arc::new(SeededIds::default()))
    };
    (Hooks::new(HookDefaults::default(), &outside), scribe)
}

/// Mounts a scripted interceptor at every point.
pub fn mount(hooks: &mut Hooks, priority: i32, name: &str, say: Say, seen: &Arc<Mutex<Vec<String>>>) {
    let mount = Mount::in_process(name, priority, &Point::ALL);
    let hook = Scripted {
        name: name.to_owned(),
        say,
        seen: Arc::clone(seen),
    };
    hooks.intercept(mount, Arc::new(hook)).unwrap();
}
