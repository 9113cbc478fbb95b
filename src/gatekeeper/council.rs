//! The council: whoever has a say on a call beside policy, and looks on. Jobs ask their hooks themselves, in the middle of a
//! run; for calls that come over the API or from agent hosts the gatekeeper asks the council, always before policy, so that
//! policy judges last.
//!
//! A council can only make a verdict stricter. It must not know what a verdict leads to; the gatekeeper must not know hooks.

use std::time::Duration;

use async_trait::async_trait;

use super::{Answer, Caller, Gatekeeper, Question};
use crate::confirmation::decide::{Decided, Ruling};
use crate::confirmation::{Asked, Dossier, OutcomeStatus, Status};
use crate::gate::json::ReadLimits;
use crate::gate::policy::Effect;
use crate::gate::{Arguments, DenyReason, Digest, Json, ToolName};
use crate::ids::{ChannelName, ConfirmationId, Org, TokenName};
use crate::storage::StoreError;

/// Through what a call comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Via {
    /// A run of ours.
    Job,
    /// `POST /api/confirmations`.
    Api,
    /// An agent host: `/api/hooks/{host}`, `gatepost gate`.
    Host,
}

impl Via {
    /// Through what a stored call came, as far as can be told: only a host says of itself which it is.
    fn of(asked: &Asked) -> Self {
        let says_host = || {
            let text = asked.metadata.as_deref()?;
            let json = Json::read(text.as_bytes(), ReadLimits::bytes(text.len())).ok()?;
            json.get("host").map(|_| ())
        };
        match &asked.job {
            Some(_) => Self::Job,
            None if says_host().is_some() => Self::Host,
            None => Self::Api,
        }
    }

    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Api => "api",
            Self::Host => "host",
        }
    }
}

/// What the council says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counsel {
    /// Policy judges; this voice can make it stricter.
    Judge(Option<Effect>),
    /// The call must not run.
    Deny {
        /// Who says so.
        hook: String,
        /// Why, for the model.
        why: String,
    },
}

/// What happened to a call that no run of ours makes.
#[derive(Debug)]
pub struct News<'a> {
    /// Through what it came.
    pub via: Via,
    /// Whose it is.
    pub org: &'a Org,
    /// Who makes it.
    pub token: &'a TokenName,
    /// The tool.
    pub tool: &'a ToolName,
    /// Asserted by the agent.
    pub agent_id: Option<&'a str>,
    /// Asserted by the agent.
    pub session_id: Option<&'a str>,
    /// Asserted by the agent.
    pub tool_call_id: Option<&'a str>,
    /// Asserted by the agent.
    pub requester: Option<&'a str>,
    /// What happened.
    pub what: What<'a>,
}

/// See [`News`].
#[derive(Debug, Clone, Copy)]
pub enum What<'a> {
    /// It must not run.
    Denied(DenyReason),
    /// People are asked.
    Asked(&'a ConfirmationId),
    /// People decided, or nobody did in time.
    Decided(&'a ConfirmationId, Status),
    /// It may run, and is taken to.
    Begun,
    /// It ran, as whoever ran it says.
    Ended {
        /// With these arguments.
        args: &'a Arguments,
        /// How it ended.
        status: OutcomeStatus,
        /// What came of it, as far as that was told.
        output: &'a str,
    },
}

/// See the module.
#[async_trait]
pub trait Council: Send + Sync {
    /// What it says of a call, before policy is asked.
    async fn hear(&self, caller: &Caller, question: &Question) -> Counsel;

    /// Tells it what happened. It does not wait, and changes nothing.
    fn tell(&self, news: News<'_>);

    /// A card is on its way to a channel.
    fn queued(&self, channel: &ChannelName, request: &ConfirmationId);
}

/// A council of nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

#[async_trait]
impl Council for Nobody {
    async fn hear(&self, _: &Caller, _: &Question) -> Counsel {
        Counsel::Judge(None)
    }

    fn tell(&self, _: News<'_>) {}

    fn queued(&self, _: &ChannelName, _: &ConfirmationId) {}
}

impl<'a> News<'a> {
    /// Of a call that is asked about.
    pub fn of_question(caller: &'a Caller, question: &'a Question, what: What<'a>) -> Self {
        Self {
            via: question.via,
            org: &caller.org,
            token: &caller.token,
            tool: &question.tool,
            agent_id: question.agent_id.as_deref(),
            session_id: question.session_id.as_deref(),
            tool_call_id: question.tool_call_id.as_deref(),
            requester: question.requester.as_deref(),
            what,
        }
    }

    /// Of a call that people were asked about.
    pub(super) fn of_asked(via: Via, org: &'a Org, asked: &'a Asked, what: What<'a>) -> Self {
        Self {
            via,
            org,
            token: &asked.token,
            tool: &asked.tool,
            agent_id: asked.agent_id.as_deref(),
            session_id: asked.session_id.as_deref(),
            tool_call_id: asked.tool_call_id.as_deref(),
            requester: asked.requester.as_deref(),
            what,
        }
    }
}

impl Gatekeeper {
    /// Asks the council, then policy: the way of every call that no run of ours makes. The council has `within` to speak;
    /// what it does not say in time is a denial.
    pub async fn ask_council(
        &self,
        caller: &Caller,
        mut question: Question,
        within: Duration,
    ) -> Result<Answer, StoreError> {
        let heard = tokio::time::timeout(within, self.council().hear(caller, &question)).await;
        match heard {
            Ok(Counsel::Judge(voice)) => {
                question.voices.hooks = question
                    .voices
                    .hooks
                    .into_iter()
                    .chain(voice)
                    .max_by_key(|effect| strictness(*effect));
                self.ask(caller, question).await
            }
            Ok(Counsel::Deny { hook, why }) => Ok(self.refused(caller, &question, &hook, why)),
            Err(_) => {
                let why = format!("the hooks did not answer within {} ms", within.as_millis());
                Ok(self.refused(caller, &question, "", why))
            }
        }
    }

    /// A denial before policy was asked.
    fn refused(&self, caller: &Caller, question: &Question, hook: &str, message: String) -> Answer {
        let digest = Digest::of(&question.tool, &question.args);
        let reason = DenyReason::DeniedByRule;
        let known_person = !self.persons(caller, question).is_empty();
        let judgement = self.judge(caller, question, known_person);
        let mut event = self
            .told(caller, question, &judgement, "call.denied")
            .with("reason_code", reason.code())
            .with("why", "hook");
        if !hook.is_empty() {
            event = event.with("hook", hook);
        }
        self.journal().write(event);
        self.news(News::of_question(caller, question, What::Denied(reason)));
        Answer::Deny {
            reason,
            message,
            rule: None,
            digest,
        }
    }

    /// Tells the council of a call; runs of ours tell their own hooks.
    pub fn news(&self, news: News<'_>) {
        if news.via != Via::Job {
            self.council().tell(news);
        }
    }

    /// Tells the council that a request is decided; runs of ours find out themselves.
    pub fn tell_decided(&self, dossier: &Dossier) {
        let row = &dossier.confirmation;
        let status = row.state.status();
        if row.asked.job.is_none() && status != Status::Pending {
            let what = What::Decided(&row.id, status);
            self.news(News::of_asked(Via::of(&row.asked), &row.org, &row.asked, what));
        }
    }

    /// Tells the council what came of a vote, once the request is settled by it.
    pub fn tell_vote(&self, decided: &Decided) {
        if let (Ruling::Settled, Some(dossier)) = (&decided.ruling, &decided.dossier) {
            self.tell_decided(dossier);
        }
    }

    /// Tells the council what a call led to whose request is known.
    pub(super) fn tell_reported(&self, via: Via, dossier: &Dossier) {
        let row = &dossier.confirmation;
        let (Some(outcome), Ok(args)) = (
            &row.ledger.outcome,
            Arguments::read(
                row.call().args.as_bytes(),
                ReadLimits::bytes(row.call().args.len()),
            ),
        ) else {
            return;
        };
        let what = What::Ended {
            args: &args,
            status: outcome.status,
            output: outcome.detail.as_deref().unwrap_or_default(),
        };
        self.news(News::of_asked(via, &row.org, &row.asked, what));
    }
}

fn strictness(effect: Effect) -> u8 {
    match effect {
        Effect::Allow => 0,
        Effect::Confirm => 1,
        Effect::Deny => 2,
    }
}
