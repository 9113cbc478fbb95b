//! Sending a call that has begun, and putting on record what came of it.

use std::sync::Arc;

use tracing::{info, warn};

use super::{Halt, Record, Session, Stored, Then, read};
use crate::agent::control::{Control, wanted};
use crate::agent::engine::Event;
use crate::agent::memory::{Call, CallState};
use crate::agent::tool::mcp::CHANGED;
use crate::agent::tool::{Carried, Tool, told};
use crate::confirmation::{Outcome, OutcomeStatus};
use crate::gate::{Digest, ToolName};
use crate::gatekeeper::Via;
use crate::hook::{EventKind, Severity, ToolCall, ToolOutput};
use crate::ids::{ConfirmationId, PermitId};
use crate::job::LostLease;
use crate::job::finish_call::{self, FinishCall};
use crate::job::progress::Progress;
use crate::job::worker::Ran;

/// What came of sending a call.
struct Attempt {
    carried: Carried,
    /// The result as around hooks left it.
    shown: Option<ToolOutput>,
    /// The call, when it was sent.
    sent: Option<ToolCall>,
}

impl Attempt {
    fn not_made(why: &str) -> Self {
        Self {
            carried: Carried::Failed(why.to_owned()),
            shown: None,
            sent: None,
        }
    }
}

impl Session<'_> {
    pub(super) async fn send(&mut self, at: usize) -> Result<Then, Halt> {
        self.save().await?;
        let call = self.memory.call(at).cloned();
        let Some((call, (permit, request))) =
            call.and_then(
                |mut call| match std::mem::replace(&mut call.state, CallState::Planned) {
                    CallState::Running { permit, request } => Some((call, (permit, request))),
                    _ => None,
                },
            )
        else {
            return Ok(Then::Rest(Ran::Failed(
                "a call was sent that had not begun".to_owned(),
            )));
        };
        let (args, changed) = match &request {
            None => (Ok(call.args.clone()), None),
            Some(id) => match self.stored_args(id, &call.tool).await? {
                Ok(stored) => (Ok(stored.args), stored.changed),
                Err(why) => (Err(why), None),
            },
        };
        if let (Ok(args), Some(Control::RequestTool)) = (&args, Control::named(&call.tool)) {
            let tool = read(args).ok().and_then(|args| wanted(&args).map(str::to_owned));
            if let Some(tool) = tool {
                self.prepare_record(at, OutcomeStatus::Succeeded, "");
                return Ok(Then::Event(Event::Granted { at, tool }));
            }
        }
        self.runner.toolbox.present(&call.tool).await;
        self.shelf = self.runner.toolbox.shelf();
        let tool = self.shelf.get(&call.tool).cloned();
        let made = match (args, tool) {
            (Err(why), _) => Err(why),
            (Ok(_), None) => Err("the tool is not there any more; the call was not made"),
            (Ok(_), Some(_)) if self.has_changed(at) => Err(CHANGED),
            (Ok(text), Some(tool)) => Ok((text, tool)),
        };
        let Attempt { carried, shown, sent } = self.attempt(&call, made, &permit).await;
        let answered = !matches!(carried, Carried::Unknown(_));
        let (status, text) = match carried {
            Carried::Unknown(_) if request.is_some() => {
                warn!(job = %self.job.id, call = %call.id, "an approved call was sent and not answered");
                return Ok(Then::Event(Event::Vanished { at }));
            }
            Carried::Done(text) if text.trim().is_empty() => {
                (OutcomeStatus::Succeeded, "(no output)".to_owned())
            }
            Carried::Done(text) => (OutcomeStatus::Succeeded, text),
            Carried::Failed(text) | Carried::Unknown(text) => {
                (OutcomeStatus::Failed, format!("error: {text}"))
            }
        };
        let detail = match status {
            OutcomeStatus::Succeeded => "",
            OutcomeStatus::Failed => text.lines().next().unwrap_or_default(),
        };
        self.prepare_record(at, status, detail);
        if let Some(Record {
            ran: finish_call::Ran::Allowed { answered: known, .. },
            ..
        }) = &mut self.record
        {
            *known = answered;
        }
        let text = match sent {
            Some(sent) => self.after(&call.id, &sent, status, text, shown).await,
            None => text,
        };
        // What the model proposed stands in its history; what ran is another call.
        let text = match changed {
            Some(changed) => format!(
                "note: before this call was approved, {changed}. It was carried out with the changed arguments; take them as what \
                 is wanted.\n{text}"
            ),
            None => text,
        };
        let is_error = status == OutcomeStatus::Failed;
        let facts = [
            ("Tool", call.tool.as_str().into()),
            ("IsError", is_error.into()),
            ("ForLLMLen", text.len().into()),
        ];
        self.tell_mcp(EventKind::McpCallEnd, &call.tool);
        self.tell(EventKind::ToolExecEnd, Severity::Info, &facts);
        Ok(Then::Event(Event::Ran {
            at,
            told: told(&text),
        }))
    }

    /// Carries the call out inside everything around it, again under the same permit where that is safe.
    async fn attempt(
        &self,
        call: &Call,
        made: Result<(String, Arc<Tool>), &'static str>,
        permit: &PermitId,
    ) -> Attempt {
        self.tell(
            EventKind::ToolExecStart,
            Severity::Info,
            &[("Tool", call.tool.as_str().into())],
        );
        self.tell_mcp(EventKind::McpCallStart, &call.tool);
        self.progress(Progress::ToolStarted {
            call: call.id.clone(),
            tool: call.tool.clone(),
        });
        let attempt = match made {
            Err(why) => Attempt::not_made(why),
            Ok((text, tool)) => match (call.tool.parse::<ToolName>(), read(&text)) {
                (Ok(name), Ok(args)) => {
                    let send = self.send_until_answered(&tool, &text, permit);
                    let (carried, shown) = self
                        .carry_out_through_hooks(&call.id, name.clone(), args.clone(), send)
                        .await;
                    Attempt {
                        carried,
                        // What a hook kept from running has no result to look at.
                        sent: shown.is_some().then_some(ToolCall { tool: name, args }),
                        shown,
                    }
                }
                _ => Attempt::not_made("the stored call cannot be read; it was not made"),
            },
        };
        self.progress(Progress::ToolFinished {
            call: call.id.clone(),
            tool: call.tool.clone(),
            status: match attempt.carried {
                Carried::Done(_) => "succeeded",
                Carried::Failed(_) => "failed",
                Carried::Unknown(_) => "unknown",
            },
        });
        info!(job = %self.job.id, call = %call.id, ok = matches!(attempt.carried, Carried::Done(_)), "a call was carried out");
        attempt
    }

    async fn send_until_answered(&self, tool: &Tool, text: &str, permit: &PermitId) -> Carried {
        let mut carried = tool.carry_out(text, permit).await;
        let mut sends = 1;
        while tool.idempotent && sends < self.limits.sends && matches!(carried, Carried::Unknown(_)) {
            tokio::time::sleep(self.limits.resend_pause * sends).await;
            carried = tool.carry_out(text, permit).await;
            sends += 1;
        }
        carried
    }

    /// The result as hooks leave it. What is on record is what the tool said, whatever they make of it.
    async fn after(
        &mut self,
        call: &str,
        sent: &ToolCall,
        status: OutcomeStatus,
        text: String,
        shown: Option<ToolOutput>,
    ) -> String {
        let is_error = status == OutcomeStatus::Failed;
        let wrapped = match shown {
            Some(output) if output.is_error => format!("error: {}", output.text),
            Some(output) if !output.text.trim().is_empty() => output.text,
            _ => text,
        };
        let output = ToolOutput {
            text: wrapped,
            is_error,
        };
        let context = self.context().of_call(call);
        let (output, halt) = self.hooks.post_tool_use(&context, sent, output).await;
        self.halted = halt;
        output.text
    }

    /// The stored arguments of an approved call, if they are what was approved. This is the last look before they are sent.
    pub(super) async fn stored_args(
        &mut self,
        id: &ConfirmationId,
        tool: &str,
    ) -> Result<Result<Stored, &'static str>, Halt> {
        const CHANGED: &str = "the stored call is not the approved one; it was not made";
        let stored = match self.stored.take() {
            Some(stored) => stored,
            None => match self.store().read().dossier(id).await? {
                None => return Ok(Err(CHANGED)),
                Some(dossier) => Stored::of(&dossier.confirmation, &self.runner.gatekeeper.roll()),
            },
        };
        let same = stored.tool.as_str() == tool
            && read(&stored.args).is_ok_and(|args| {
                args.canonical() == stored.args && Digest::of(&stored.tool, &args) == stored.digest
            });
        Ok(if same { Ok(stored) } else { Err(CHANGED) })
    }

    pub(super) fn prepare_record(&mut self, at: usize, status: OutcomeStatus, detail: &str) {
        let Some(call) = self.memory.call(at) else { return };
        let (CallState::Running { permit, request } | CallState::Unsure { permit, request, .. }) =
            &call.state
        else {
            return;
        };
        let ran = match (request, call.tool.parse()) {
            (Some(request), _) => finish_call::Ran::Approved(request.clone()),
            (None, Ok(tool)) => finish_call::Ran::Allowed {
                tool,
                permit: permit.clone(),
                answered: true,
            },
            (None, Err(_)) => return,
        };
        self.record = Some(Record {
            ran,
            status,
            detail: self.runner.gatekeeper.text(Some(detail)),
        });
    }

    pub(super) async fn finish_call(&mut self, record: Record) -> Result<(), Halt> {
        let finish = FinishCall {
            hold: self.hold.clone(),
            ran: record.ran.clone(),
            status: record.status,
            detail: record.detail.clone(),
            remembered: self.remembered(),
        };
        if let Err(LostLease) = self.store().run(finish).await? {
            // The job is not ours to write any more, but that the call ran is true all the same.
            self.tell_anyway(record).await;
            return Err(Halt::Lost);
        }
        self.saved();
        Ok(())
    }

    pub(super) async fn tell_anyway(&self, record: Record) {
        let gatekeeper = &self.runner.gatekeeper;
        match record.ran {
            finish_call::Ran::Approved(request) => {
                let outcome = Outcome {
                    status: record.status,
                    detail: record.detail.map(|detail| detail.value),
                };
                if let Err(error) = gatekeeper.report(Via::Job, &self.caller, &request, outcome).await {
                    warn!(%request, %error, "the outcome of a call could not be put on record");
                }
            }
            finish_call::Ran::Allowed {
                tool,
                permit,
                answered,
            } => gatekeeper.journal().write(
                self.draft("tool.executed")
                    .with("tool_name", tool.as_str())
                    .with("permit", permit.as_str())
                    .with("status", finish_call::status(record.status, answered))
                    .with_private("detail", record.detail),
            ),
        }
    }
}
