//! The hooks as the gatekeeper's council: calls that come over the API and from agent hosts are judged by the same chain as
//! those of jobs, with one difference. The call is somebody else's, so nothing of it can be changed here: a hook that wants
//! other arguments, or answers in place of the tool, denies it.
//!
//! What such a call led to is told by whoever ran it, later and perhaps never. `post_tool_use` hooks see it behind the answer,
//! one report after the other; what they say of it is put on record and changes nothing.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tracing::warn;

use super::{Before, EventKind, HookContext, Hooks, Judged, Point, Severity, ToolCall, ToolOutput};
use crate::confirmation::OutcomeStatus;
use crate::gate::{Arguments, Json};
use crate::gatekeeper::council::{Council, Counsel, News, What};
use crate::gatekeeper::{Caller, Question};
use crate::ids::{ChannelName, ConfirmationId};
use crate::lifecycle::Tasks;

/// Reports that wait for the hooks to look at them. What does not fit is not shown to them.
const QUEUE: usize = 64;

/// See the module. Clones share the queue.
#[derive(Clone)]
pub struct Chamber {
    hooks: Arc<Hooks>,
    reports: mpsc::Sender<Report>,
}

/// A call that ran, as whoever ran it says.
struct Report {
    context: HookContext,
    call: ToolCall,
    output: ToolOutput,
}

impl Chamber {
    /// These hooks as a council; reports are shown to them in a task of `tasks`.
    pub fn open(hooks: Arc<Hooks>, tasks: &Tasks) -> Self {
        let (reports, taken) = mpsc::channel(QUEUE);
        tasks.spawn(show(Arc::clone(&hooks), taken, tasks.clone()));
        Self { hooks, reports }
    }
}

/// Shows reports until the server stops.
async fn show(hooks: Arc<Hooks>, mut reports: mpsc::Receiver<Report>, tasks: Tasks) {
    loop {
        let report = tokio::select! {
            report = reports.recv() => report,
            () = tasks.stopping() => return,
        };
        let Some(Report {
            context,
            call,
            output,
        }) = report
        else {
            return;
        };
        // What they would make of the result changes nothing: it is with whoever ran the call.
        drop(hooks.post_tool_use(&context, &call, output).await);
    }
}

#[async_trait]
impl Council for Chamber {
    async fn hear(&self, caller: &Caller, question: &Question) -> Counsel {
        let call = ToolCall {
            tool: question.tool.clone(),
            args: question.args.clone(),
        };
        let context = context(caller, question);
        match self.hooks.pre_tool_use(&context, call).await {
            Before::Deny { hook, why } => Counsel::Deny { hook, why },
            Before::Halt(halt) => {
                let (super::Halt::Turn { hook, why } | super::Halt::Run { hook, why }) = halt;
                Counsel::Deny { hook, why }
            }
            Before::Judge(judged) => counsel(judged, question),
        }
    }

    fn tell(&self, news: News<'_>) {
        let context = told(&news);
        let (kind, more) = match news.what {
            What::Denied(reason) => (
                EventKind::ToolExecSkipped,
                vec![("Reason", Value::from(reason.code()))],
            ),
            What::Asked(request) => (
                EventKind::ApprovalAsked,
                vec![("Request", request.as_str().into())],
            ),
            What::Decided(request, status) => (
                EventKind::ApprovalDecided,
                vec![
                    ("Request", request.as_str().into()),
                    ("Status", status.as_str().into()),
                ],
            ),
            What::Begun => (EventKind::ToolExecStart, Vec::new()),
            What::Ended { args, status, output } => {
                let is_error = status == OutcomeStatus::Failed;
                let length = output.len();
                self.report(&news, context.clone(), args, output, is_error);
                (
                    EventKind::ToolExecEnd,
                    vec![("IsError", is_error.into()), ("ForLLMLen", length.into())],
                )
            }
        };
        self.hooks.happened(kind, Severity::Info, &context, || {
            let tool = ("Tool", Value::from(news.tool.as_str()));
            std::iter::once(tool)
                .chain(more)
                .map(|(name, value)| (name.to_owned(), value))
                .collect()
        });
    }

    fn queued(&self, channel: &ChannelName, request: &ConfirmationId) {
        self.hooks.server(EventKind::OutboundQueued, Severity::Debug, || {
            Map::from_iter([
                ("Channel".to_owned(), channel.as_str().into()),
                ("Request".to_owned(), request.as_str().into()),
            ])
        });
    }
}

impl Chamber {
    /// Hands a report to whoever looks at results on its surface.
    fn report(&self, news: &News<'_>, context: HookContext, args: &Arguments, output: &str, is_error: bool) {
        if !self.hooks.any_at(context.via, Point::PostToolUse) {
            return;
        }
        let report = Report {
            context,
            call: ToolCall {
                tool: news.tool.clone(),
                args: args.clone(),
            },
            output: ToolOutput {
                text: output.to_owned(),
                is_error,
            },
        };
        if self.reports.try_send(report).is_err() {
            metrics::counter!("gatepost_hook_reports_dropped_total").increment(1);
            warn!("the hooks are too slow: what a call led to is not shown to them");
        }
    }
}

/// What the chain comes to, where nothing of the call can be changed.
fn counsel(judged: Judged, question: &Question) -> Counsel {
    let Judged {
        call,
        voice,
        response,
        rewritten_by,
        answered_by,
        ..
    } = judged;
    let deny = |hook: Option<String>, why: fn(&str) -> String| {
        let hook = hook.unwrap_or_default();
        Counsel::Deny {
            why: why(&hook),
            hook,
        }
    };
    if call.args != question.args {
        return deny(rewritten_by, |hook| {
            format!("a hook wants other arguments: `{hook}`; it cannot change a call that is made elsewhere")
        });
    }
    if response.is_some() {
        return deny(answered_by, |hook| {
            format!(
                "a hook answers in place of the tool: `{hook}`; it cannot do so for a call that is made elsewhere"
            )
        });
    }
    Counsel::Judge(voice)
}

/// The context of a call that is asked about. What the caller asserts cannot stand in for what is known.
fn context(caller: &Caller, question: &Question) -> HookContext {
    let metadata = question
        .metadata
        .as_ref()
        .and_then(|json: &Json| serde_json::from_str::<Map<String, Value>>(&json.canonical()).ok());
    let mut context = HookContext {
        via: question.via,
        org: caller.org.clone(),
        token: caller.token.clone(),
        agent_id: question.agent_id.clone(),
        user_id: question.requester.clone(),
        session_id: question.session_id.clone().unwrap_or_default(),
        job: None,
        parent: None,
        turn: 0,
        tool_call_id: question.tool_call_id.clone(),
        metadata: metadata.unwrap_or_default(),
    };
    known(&mut context);
    context
}

/// The context of what happened to a call.
fn told(news: &News<'_>) -> HookContext {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let mut context = HookContext {
        via: news.via,
        org: news.org.clone(),
        token: news.token.clone(),
        agent_id: owned(news.agent_id),
        user_id: owned(news.requester),
        session_id: news.session_id.unwrap_or_default().to_owned(),
        job: None,
        parent: None,
        turn: 0,
        tool_call_id: owned(news.tool_call_id),
        metadata: Map::new(),
    };
    known(&mut context);
    context
}

fn known(context: &mut HookContext) {
    let facts = [("org_id", context.org.as_str()), ("surface", context.via.word())];
    let facts = facts.map(|(name, fact)| (name.to_owned(), Value::from(fact)));
    context.metadata.extend(facts);
}
