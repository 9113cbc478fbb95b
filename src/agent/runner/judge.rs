//! Asking the gate about a call: it may begin, people are asked, or it must not run.

use super::{Halt, Session, Stored, Then, denial, denied, read};
use crate::agent::control::Control;
use crate::agent::engine::Event;
use crate::audit::{Actor, Draft};
use crate::confirmation::Dossier;
use crate::gate::policy::{Effect as Verdict, Voices};
use crate::gate::{DenyReason, Digest, ToolName};
use crate::gatekeeper::{Answer, Question, Via};
use crate::hook::Judged;
use crate::ids::PermitId;
use crate::job::begin_call::Right;

impl Session<'_> {
    pub(super) async fn judge(&mut self, at: usize) -> Result<Then, Halt> {
        self.recognise(at);
        // The reply must be on record before anybody is asked about a call of it.
        self.save().await?;
        let must_confirm = |tool: &str| {
            // Asking for a tool is a question to people, whatever policy says of other calls.
            (Control::named(tool) == Some(Control::RequestTool))
                .then_some(true)
                .or_else(|| {
                    let tool = self.shelf.get(tool)?;
                    Some(tool.requires_confirmation)
                })
        };
        let Some((call, tool_requires_confirmation)) = self
            .memory
            .call(at)
            .and_then(|call| Some((call, must_confirm(&call.tool)?)))
        else {
            let told = "error: there is no such tool".to_owned();
            return Ok(denied(at, DenyReason::DeniedByRule, told));
        };
        let (Ok(name), Ok(args)) = (call.tool.parse::<ToolName>(), read(&call.args)) else {
            let reason = DenyReason::InvalidArguments;
            return Ok(denied(at, reason, denial(reason, "")));
        };
        let id = call.id.clone();
        let judged = match self
            .ask_hooks(at, &id, name, args, tool_requires_confirmation)
            .await?
        {
            Ok(judged) => judged,
            Err(then) => return Ok(then),
        };
        // Nobody is asked about a call that its tool could not take. Hooks may have mended it, so it is looked at now.
        let tool = self.shelf.get(judged.call.tool.as_str());
        if let Some(misfit) = tool.and_then(|tool| tool.misfit(&judged.call.args)) {
            let told = format!(
                "error: {misfit}; the call was not carried out. Make it again with arguments that fit"
            );
            return Ok(denied(at, DenyReason::InvalidArguments, told));
        }
        let question = Question {
            via: Via::Job,
            tool: judged.call.tool.clone(),
            args: judged.call.args.clone(),
            agent_id: self.job.agent_id.clone(),
            session_id: Some(
                self.job
                    .session_id
                    .clone()
                    .unwrap_or_else(|| self.job.id.to_string()),
            ),
            // Jobs of one session count their calls alike.
            tool_call_id: Some(format!("{}:{}", self.job.id, id)),
            requester: self.job.requester.clone(),
            metadata: None,
            job: Some(self.job.id.clone()),
            lineage: self.job.persons.clone(),
            voices: Voices {
                tool_requires_confirmation,
                hooks: judged.voice,
            },
            // Who asks for a tool is given that one or none.
            carries_edits: Control::named(judged.call.tool.as_str()).is_none(),
            join_twin: false,
        };
        let gatekeeper = &self.runner.gatekeeper;
        if self.runner.evaluations.contains(&self.job.token)
            && let Some(event) = gatekeeper.bypass(&self.caller, &question)
        {
            return self.bypass(at, &id, &judged, event).await;
        }
        if self.memory.cards >= self.limits.cards
            && gatekeeper.foresee(&self.caller, &question) == Verdict::Confirm
        {
            self.note_refusal(at, DenyReason::DeniedByRule, "card_limit");
            let why = "this job has asked people as often as a job may";
            return Ok(denied(
                at,
                DenyReason::DeniedByRule,
                denial(DenyReason::DeniedByRule, why),
            ));
        }
        Ok(match gatekeeper.ask(&self.caller, question).await? {
            Answer::Allow { .. } => match judged.response.clone() {
                Some(output) => self.respond(at, &id, &judged, output).await,
                None => self.permit(at, None).await?,
            },
            Answer::Deny { reason, message, .. } => denied(at, reason, denial(reason, &message)),
            Answer::Asked(dossier) if dossier.confirmation.asked.job.as_ref() == Some(&self.job.id) => {
                let request = dossier.confirmation.id.clone();
                Then::Event(Event::Asked { at, request })
            }
            // Somebody used the job's call id for a request of their own.
            Answer::Asked(_) | Answer::Conflict(_) => denied(
                at,
                DenyReason::GateError,
                denial(DenyReason::GateError, "the id of the call is taken"),
            ),
        })
    }

    /// Remembers what the tool of a call is like, the first time that anybody is asked about it.
    fn recognise(&mut self, at: usize) {
        let known = self.memory.call(at).and_then(|call| {
            let tool = self.shelf.get(&call.tool)?;
            tool.fingerprint()
                .filter(|_| call.fingerprint.is_none())
                .map(str::to_owned)
        });
        if let Some(known) = known {
            self.memory.recognise(at, known);
            self.dirty = true;
        }
    }

    /// Whether the tool of a call is another one now than when the gate was asked about it. A tool that is not there has not
    /// changed: it cannot be called either.
    pub(super) fn has_changed(&self, at: usize) -> bool {
        self.memory.call(at).is_some_and(|call| {
            let tool = self.shelf.get(&call.tool);
            tool.is_some_and(|tool| tool.fingerprint() != call.fingerprint.as_deref())
        })
    }

    /// The call may begin, by the approval of a request or by policy.
    pub(super) async fn permit(
        &mut self,
        at: usize,
        approved: Option<(&Dossier, Stored)>,
    ) -> Result<Then, Halt> {
        let permit = match approved {
            None => {
                let permit = PermitId::fresh(&**self.runner.gatekeeper.ids());
                self.stored = None;
                self.right = Some(Right::Allowed(permit.clone()));
                permit
            }
            Some((dossier, stored)) => {
                let digest = read(&stored.args).map_or(stored.digest, |args| Digest::of(&stored.tool, &args));
                let consume = self.runner.gatekeeper.consumption(dossier, digest).await?;
                let permit = consume.permit.clone();
                self.stored = Some(stored);
                self.right = Some(Right::Approved(Box::new(consume)));
                permit
            }
        };
        Ok(Then::Event(Event::Permitted { at, permit }))
    }

    /// The call may begin without the person whom policy wants asked, since the job is an evaluation. What a hook answers in
    /// place of the tool is not sent, least of all without a person.
    async fn bypass(&mut self, at: usize, id: &str, judged: &Judged, event: Draft) -> Result<Then, Halt> {
        if let Some(output) = judged.response.clone() {
            let hook = judged.answered_by.clone().unwrap_or_default();
            let journal = self.runner.gatekeeper.journal();
            journal.insist(event.with("answered_by", hook))?;
            return Ok(self.respond(at, id, judged, output).await);
        }
        let permit = PermitId::fresh(&**self.runner.gatekeeper.ids());
        self.stored = None;
        self.right = Some(Right::Bypassed {
            permit: permit.clone(),
            event: Box::new(event),
        });
        Ok(Then::Event(Event::Permitted { at, permit }))
    }

    pub(super) fn note_refusal(&self, at: usize, reason: DenyReason, why: &str) {
        let tool = self
            .memory
            .call(at)
            .map(|call| call.tool.clone())
            .unwrap_or_default();
        self.runner.gatekeeper.journal().write(
            self.draft("call.denied")
                .with("tool_name", tool)
                .with("reason_code", reason.code())
                .with("why", why),
        );
    }

    pub(super) fn draft(&self, kind: &'static str) -> Draft {
        let token = Actor::Token(self.caller.token.0.clone());
        Draft::new(&self.caller.org, kind, token).of_job(&self.job.id)
    }
}
