//! The question: may this call run? Allow and deny are answered at once; a call that needs a person becomes a request.

use std::sync::Arc;

use super::council::{News, Via, What};
use super::directory::AT_LEISURE;
use super::directory::requester::For;
use super::{Caller, Gatekeeper};
use crate::audit::{Actor, Draft, Opening};
use crate::confirmation::create::{Create, Created, shown_args};
use crate::confirmation::roll::Roll;
use crate::confirmation::set::{self, Alike, Joining};
use crate::confirmation::{Asked, Dossier, Status};
use crate::delivery::plan::plan;
use crate::delivery::shared::Fitting;
use crate::gate::policy::CallFacts;
use crate::gate::policy::{Effect, Judgement, Unevaluated, Voices};
use crate::gate::{Arguments, DenyReason, Digest, Json, Terms, ToolName, redact};
use crate::ids::{ConfirmationId, JobId, OperatorId, Org};
use crate::storage::StoreError;

/// A call that somebody wants to make.
#[derive(Debug, Clone)]
pub struct Question {
    /// Through what it comes.
    pub via: Via,
    /// The tool.
    pub tool: ToolName,
    /// Its arguments.
    pub args: Arguments,
    /// Asserted by the agent.
    pub agent_id: Option<String>,
    /// Asserted by the agent.
    pub session_id: Option<String>,
    /// Asserted by the agent; makes asking idempotent within its session.
    pub tool_call_id: Option<String>,
    /// Asserted by the agent.
    pub requester: Option<String>,
    /// Asserted by the agent.
    pub metadata: Option<Json>,
    /// The job that will park on the answer.
    pub job: Option<JobId>,
    /// Persons behind the call beside the named requester and the token's owner: requesters up the lineage.
    pub lineage: Vec<OperatorId>,
    /// What the tool and the hooks say.
    pub voices: Voices,
    /// Whether whoever asks runs the call as people changed it: else nobody is offered to change it.
    pub carries_edits: bool,
    /// Joins an open request of the same session, tool and arguments: for hosts whose call ids change when they ask again.
    pub join_twin: bool,
}

/// The answer.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The call may run.
    Allow {
        /// The rule that said so.
        rule: Option<String>,
        /// Over the call.
        digest: Digest,
    },
    /// The call must not run.
    Deny {
        /// Why, as a code.
        reason: DenyReason,
        /// Why, in words.
        message: String,
        /// The rule that said so.
        rule: Option<String>,
        /// Over the call.
        digest: Digest,
    },
    /// People are asked, or were asked before: the request, wherever it stands.
    Asked(Box<Dossier>),
    /// The same call id was used with other arguments, requester or agent.
    Conflict(ConfirmationId),
}

impl Gatekeeper {
    /// Asks. A store that fails is an error; whoever asked must take it as a denial.
    pub async fn ask(&self, caller: &Caller, question: Question) -> Result<Answer, StoreError> {
        let digest = Digest::of(&question.tool, &question.args);
        let persons = self.persons_now(caller, &question).await;
        let judgement = self.judge(caller, &question, !persons.is_empty());
        for Unevaluated { rule, why } in &judgement.unevaluated {
            tracing::warn!(%rule, %why, tool = ?question.tool.as_str(), "the condition of a rule could not be evaluated");
            metrics::counter!("gatepost_conditions_unevaluated_total").increment(1);
        }
        let carried = |mut terms: Terms| {
            if let Some(edits) = &mut terms.decision.edits {
                edits.carried = question.carries_edits;
            }
            terms
        };
        match (judgement.effect, judgement.terms.clone().map(carried)) {
            (Effect::Allow, _) => {
                // Nobody would find a call that ran without its event.
                self.journal()
                    .insist(self.told(caller, &question, &judgement, "call.allowed"))?;
                self.news(News::of_question(caller, &question, What::Begun));
                Ok(Answer::Allow {
                    rule: judgement.rule,
                    digest,
                })
            }
            (Effect::Confirm, Some(terms)) => {
                let asked = asked(caller, &question, digest, persons);
                let ids = &**self.ids();
                let id = ConfirmationId::fresh(ids);
                let reason = Some(judgement.reason.clone());
                let deliveries = plan(
                    self.registry(),
                    self.maker(),
                    ids,
                    (&id, &caller.org, &asked),
                    &terms,
                    reason.as_deref(),
                );
                if deliveries.is_empty() {
                    let message =
                        "no channel of your organisation can ask a person about this call".to_owned();
                    return Ok(self.denial(
                        caller,
                        &question,
                        judgement,
                        DenyReason::Undeliverable,
                        message,
                        digest,
                    ));
                }
                let collapse = self.joining(&caller.org, &asked, &judgement, &terms);
                let hidden = (!judgement.redact.is_empty()).then(|| redacted(&question, &judgement));
                let shown_args = shown_args(&asked.args, hidden.as_deref(), ids);
                let create = Create {
                    id,
                    org: caller.org.clone(),
                    shown_args,
                    shown_requester: self.text(question.requester.as_deref()),
                    asked,
                    rule: judgement.rule,
                    reason,
                    terms,
                    deliveries,
                    grantors: self.who_grants(caller, &question).await?,
                    collapse,
                    join_twin: question.join_twin,
                };
                self.ask_people(caller, &question, create).await
            }
            (Effect::Confirm | Effect::Deny, _) => {
                let message = judgement.reason.clone();
                Ok(self.denial(
                    caller,
                    &question,
                    judgement,
                    DenyReason::DeniedByRule,
                    message,
                    digest,
                ))
            }
        }
    }

    /// What policy would say, without asking anybody and without a trace.
    pub fn foresee(&self, caller: &Caller, question: &Question) -> Effect {
        let known_person = !self.persons(caller, question).is_empty();
        self.judge(caller, question, known_person).effect
    }

    /// Stores the request, or finds the one of the same call.
    async fn ask_people(
        &self,
        caller: &Caller,
        question: &Question,
        create: Create,
    ) -> Result<Answer, StoreError> {
        Ok(match self.store().run(create).await? {
            Created::Fresh(dossier) => {
                // What a grant approved, nobody is asked about.
                if dossier.confirmation.state.status() == Status::Pending {
                    self.tell_asked(caller, question, &dossier);
                }
                Answer::Asked(Box::new(dossier))
            }
            Created::Same(dossier) => Answer::Asked(Box::new(dossier)),
            Created::Conflict(id) => Answer::Conflict(id),
        })
    }

    /// Who may let the call run under a grant; nobody where somebody asks for a person about this very call.
    async fn who_grants(
        &self,
        caller: &Caller,
        question: &Question,
    ) -> Result<Option<Arc<Roll>>, StoreError> {
        if asks_a_person(question) {
            return Ok(None);
        }
        let tool = question.tool.as_str();
        let behind = self.persons(caller, question);
        let roll = self
            .roll_of_grants(&caller.org, (&caller.token, tool), &behind)
            .await?;
        Ok(Some(roll))
    }

    /// What lets the request share a card with those like it, where its terms do.
    fn joining(&self, org: &Org, asked: &Asked, judgement: &Judgement, terms: &Terms) -> Option<Joining> {
        set::collapses(terms)?;
        let (rule, reason) = (judgement.rule.as_deref(), Some(judgement.reason.as_str()));
        Some(Joining {
            alike: Alike::of(org, asked, rule, reason, terms)?,
            fits: Arc::new(Fitting::new(self.registry().clone(), self.maker().clone())),
        })
    }

    /// People are asked, and the cards are on their way.
    fn tell_asked(&self, caller: &Caller, question: &Question, dossier: &Dossier) {
        let id = &dossier.confirmation.id;
        self.news(News::of_question(caller, question, What::Asked(id)));
        for delivery in &dossier.deliveries {
            self.council().queued(&delivery.channel, id);
        }
    }

    /// For an evaluation, which asks nobody: the event that says that this call went past the people whom policy wants asked.
    /// `None` where policy wants nobody asked, or denies: then it is a question like any other.
    pub fn bypass(&self, caller: &Caller, question: &Question) -> Option<Draft> {
        let known_person = !self.persons(caller, question).is_empty();
        let judgement = self.judge(caller, question, known_person);
        let asks = judgement.effect == Effect::Confirm && judgement.terms.is_some();
        asks.then(|| {
            self.news(News::of_question(caller, question, What::Begun));
            self.told(caller, question, &judgement, "gate.bypassed")
        })
    }

    fn denial(
        &self,
        caller: &Caller,
        question: &Question,
        judgement: Judgement,
        reason: DenyReason,
        message: String,
        digest: Digest,
    ) -> Answer {
        self.journal().write(
            self.told(caller, question, &judgement, "call.denied")
                .with("reason_code", reason.code()),
        );
        self.news(News::of_question(caller, question, What::Denied(reason)));
        Answer::Deny {
            reason,
            message,
            rule: judgement.rule,
            digest,
        }
    }

    pub(super) fn judge(&self, caller: &Caller, question: &Question, known_person: bool) -> Judgement {
        let facts = CallFacts {
            tool: &question.tool,
            args: question.args.json(),
            token: caller.token.as_str(),
            agent: question.agent_id.as_deref(),
            requester: question.requester.as_deref(),
            org: caller.org.as_str(),
            metadata: question.metadata.as_ref(),
            known_person,
        };
        self.0.policy.judge(&facts, &question.voices)
    }

    /// Everybody behind the call: nobody of them may approve it unless the rule says so.
    pub(super) fn persons(&self, caller: &Caller, question: &Question) -> Vec<OperatorId> {
        let named = question
            .requester
            .as_deref()
            .map_or(&[][..], |requester| self.people().named(&caller.org, requester));
        let mut persons: Vec<_> = named
            .iter()
            .chain(caller.owner.as_ref())
            .chain(&question.lineage)
            .cloned()
            .collect();
        persons.sort();
        persons.dedup();
        persons
    }

    /// The same, with persons whom only a platform knows.
    async fn persons_now(&self, caller: &Caller, question: &Question) -> Vec<OperatorId> {
        let mut persons = self.persons(caller, question);
        if let Some(requester) = &question.requester {
            let stated = self
                .directories()
                .requester(&caller.org, requester, For::Agent, AT_LEISURE);
            persons.extend(stated.await.persons);
            persons.sort();
            persons.dedup();
        }
        persons
    }

    /// A verdict without a request, for the journal.
    pub(super) fn told(
        &self,
        caller: &Caller,
        question: &Question,
        judgement: &Judgement,
        kind: &'static str,
    ) -> Draft {
        let mut draft = Draft::new(&caller.org, kind, Actor::Token(caller.token.0.clone()))
            .with("tool_name", question.tool.as_str())
            .with_private(
                "tool_args",
                Some(Opening::new(&redacted(question, judgement), &**self.ids())),
            );
        if let Some(rule) = &judgement.rule {
            draft = draft.with("rule", rule.as_str());
        }
        draft.job.clone_from(&question.job);
        draft
    }
}

/// The call as it is stored.
fn asked(caller: &Caller, question: &Question, digest: Digest, persons: Vec<OperatorId>) -> Asked {
    Asked {
        token: caller.token.clone(),
        tool: question.tool.clone(),
        args: question.args.canonical().to_owned(),
        digest,
        agent_id: question.agent_id.clone(),
        session_id: question.session_id.clone(),
        tool_call_id: question.tool_call_id.clone(),
        requester: question.requester.clone(),
        metadata: question.metadata.as_ref().map(Json::canonical),
        persons,
        job: question.job.clone(),
    }
}

/// Whether a hook, or whoever makes the call, asks for a person about this very call: then no grant speaks for one.
fn asks_a_person(question: &Question) -> bool {
    let stated = question
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.get("requires_confirmation"));
    question.voices.hooks == Some(Effect::Confirm) || stated == Some(&Json::Bool(true))
}

/// The arguments for the audit log: redacted; where no redacted form exists, nothing of them.
fn redacted(question: &Question, judgement: &Judgement) -> String {
    redact(question.args.json(), &judgement.redact).map_or_else(|_| "{}".to_owned(), |json| json.canonical())
}
