//! Confirmation requests over HTTP: how one looks from outside, and for whom the arguments are whole.

use std::time::Duration;

use gatepost_channel::{Decision, Risk};
use serde::Serialize;
use serde_json::value::RawValue;

use super::super::Api;
use super::super::guard::{NoWait, Wait};
use super::super::problem::{Code, Problem};
use super::raw;
use crate::clock::rfc3339;
use crate::confirmation::{
    Asked, Confirmation, Delivery, DeliveryState, Dossier, Ledger, Outcome, Status, Vote, VoteContent,
};
use crate::gate::{Digest, ShortCode, shown_canonical};
use crate::ids::{ConfirmationId, TokenName};
use crate::storage::StoreError;

pub mod cancel;
pub mod consume;
pub mod create;
mod decision;
mod explain;
pub mod list;
pub mod outcome;
pub mod respond;
pub mod show;

use decision::{DecisionView, EditView};

#[cfg(test)]
mod confirmation_tests;
#[cfg(test)]
mod edit_tests;
#[cfg(test)]
mod explain_tests;

/// How much of the arguments somebody sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eyes {
    /// Whoever asked, and, as an audited act, who may decide: the canonical form as it was asked.
    Full,
    /// Everybody else: what rules hide is hidden.
    Redacted,
}

/// A request as the API shows it. Members that hold nothing are `null`.
#[derive(Debug, Serialize)]
pub struct View {
    id: String,
    org: String,
    status: Status,
    tool_name: String,
    tool_args: Box<RawValue>,
    /// Whether `tool_args` may hide something.
    tool_args_redacted: bool,
    args_digest: Digest,
    /// The code of the call, as cards show it; left out for who asked, whom it would help to guess codes.
    #[serde(skip_serializing_if = "Option::is_none")]
    short_code: Option<String>,
    token: String,
    agent_id: Option<String>,
    session_id: Option<String>,
    tool_call_id: Option<String>,
    requester: Option<String>,
    job_id: Option<String>,
    rule: Option<String>,
    reason: Option<String>,
    risk: Option<Risk>,
    /// The first of the like requests with which it shares its cards.
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<String>,
    quorum: u32,
    #[serde(flatten)]
    decision: DecisionView,
    /// The arguments as a person changed them, in place of `tool_args`.
    edit: Option<EditView>,
    created_at: String,
    expires_at: String,
    decided_at: Option<String>,
    consumed_at: Option<String>,
    resumed_at: Option<String>,
    executed_at: Option<String>,
    outcome: Option<Outcome>,
    votes: Vec<VoteView>,
    deliveries: Vec<DeliveryView>,
}

#[derive(Debug, Serialize)]
struct VoteView {
    operator: String,
    /// Who was away, where it was cast in somebody's place.
    acting_for: Option<String>,
    /// Whether a one-time code came with it.
    code: bool,
    /// Who confirmed it, where it took a second person.
    confirmed_by: Option<String>,
    channel: Option<String>,
    surface: String,
    decision: Decision,
    reason: Option<String>,
    /// The stage in which it was cast, from 1.
    stage: u32,
    /// The grant that was asked for with it.
    grant: Option<String>,
    /// The edit of the arguments on which it was cast; 0 is what was proposed.
    edit: u32,
    at: String,
}

#[derive(Debug, Serialize)]
struct DeliveryView {
    channel: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Whether the channel is only told; left out where it asks.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    told: bool,
}

impl View {
    /// The same, with the code of the call as it stands: by it people tell the request from others.
    #[must_use]
    fn with_code(mut self, key: &[u8; 32]) -> Self {
        let stands = self.edit.as_ref().map_or(&self.args_digest, EditView::digest);
        self.short_code = Some(ShortCode::of(key, stands).to_string());
        self
    }
}

/// Shows a request. Every field of the row is named here, so that a new one cannot be forgotten or slip out.
pub fn view(dossier: Dossier, eyes: Eyes) -> Result<View, Problem> {
    let decision = decision::view(&dossier);
    let hidden = match eyes {
        Eyes::Full => &[][..],
        Eyes::Redacted => &dossier.confirmation.terms.redact,
    };
    let edit = decision::edit_view(&dossier.confirmation, hidden)?;
    let Dossier {
        confirmation,
        votes,
        deliveries,
    } = dossier;
    let Confirmation {
        id,
        org,
        asked,
        rule,
        reason,
        terms,
        set,
        created_at,
        expires_at,
        state,
        ledger,
        progress: _,
        revision: _,
        edition: _,
        version: _,
    } = confirmation;
    let Asked {
        token,
        tool,
        args,
        digest,
        agent_id,
        session_id,
        tool_call_id,
        requester,
        metadata: _,
        persons: _,
        job,
    } = asked;
    let Ledger {
        woken_at: _,
        resumed_at,
        executed_at,
        outcome,
    } = ledger;
    let tool_args = match eyes {
        Eyes::Full => args,
        Eyes::Redacted => shown_canonical(&args, &terms.redact),
    };
    Ok(View {
        id: id.to_string(),
        org: org.0,
        status: state.status(),
        tool_name: tool.to_string(),
        tool_args: raw(tool_args)?,
        tool_args_redacted: eyes == Eyes::Redacted && !terms.redact.is_empty(),
        args_digest: digest,
        short_code: None,
        token: token.0,
        agent_id,
        session_id,
        tool_call_id,
        requester,
        job_id: job.map(|job| job.to_string()),
        rule,
        reason,
        risk: terms.risk,
        set: set.map(|set| set.first.to_string()),
        quorum: terms.quorum,
        decision,
        edit,
        created_at: rfc3339(created_at),
        expires_at: rfc3339(expires_at),
        decided_at: state.decided_at().map(rfc3339),
        consumed_at: state.consumed().map(|(_, at)| rfc3339(at)),
        resumed_at: resumed_at.map(rfc3339),
        executed_at: executed_at.map(rfc3339),
        outcome,
        votes: votes.into_iter().map(vote).collect(),
        deliveries: deliveries.into_iter().map(delivery).collect(),
    })
}

fn vote(vote: Vote) -> VoteView {
    let Vote {
        person,
        decision,
        channel,
        surface,
        reason,
        at,
        content:
            VoteContent {
                stage,
                grant,
                acting_for,
                code,
                second,
                edit,
                account: _,
            },
    } = vote;
    VoteView {
        operator: person.0,
        acting_for: acting_for.map(|absent| absent.0),
        code,
        confirmed_by: second.map(|second| second.person.0),
        channel: channel.map(|channel| channel.0),
        surface,
        decision,
        reason,
        stage: stage + 1,
        grant: grant.map(|scope| scope.to_string()),
        edit,
        at: rfc3339(at),
    }
}

fn delivery(delivery: Delivery) -> DeliveryView {
    let Delivery {
        id: _,
        channel,
        host: _,
        state,
        nonce: _,
        token_hash: _,
        approvable: _,
        unheard: _,
        standing,
        error,
        told,
        lost: _,
    } = delivery;
    DeliveryView {
        channel: channel.0,
        state: match state {
            // A post under way is still queued for who looks from outside, unless a card is known to stand.
            DeliveryState::Sending if standing.is_empty() => "queued",
            DeliveryState::Sending => "posted",
            state => state.as_str(),
        },
        error,
        told,
    }
}

/// The right to wait, when somebody wants to. Where too many wait already, everybody is answered as things stand; a token that
/// takes more than its share is refused.
pub fn place(api: &Api, token: &TokenName, patience: Duration) -> Result<Option<Wait>, Problem> {
    if patience.is_zero() {
        return Ok(None);
    }
    match api.crowd().may_wait(token) {
        Ok(wait) => Ok(Some(wait)),
        Err(NoWait::OfAll) => Ok(None),
        Err(NoWait::OfToken) => Err(NoWait::OfToken.into()),
    }
}

/// The request once it is decided, or as it stands when the patience or the server ends, or without a right to wait.
pub async fn decided(
    api: &Api,
    id: &ConfirmationId,
    patience: Duration,
    place: Option<Wait>,
) -> Result<Option<Dossier>, StoreError> {
    let gatekeeper = api.gatekeeper();
    let Some(_place) = place else {
        return gatekeeper.store().read().dossier(id).await;
    };
    tokio::select! {
        decided = gatekeeper.decided(id, patience) => decided,
        () = api.tasks().stopping() => gatekeeper.store().read().dossier(id).await,
    }
}

/// The request is settled already: with the state that is stored.
pub fn already_settled(dossier: &Dossier) -> Problem {
    let state = &dossier.confirmation.state;
    let problem = Problem::new(Code::AlreadySettled)
        .because(format!("the request is {}", state.status().as_str()))
        .with("confirmation_status", state.status().as_str());
    match state.decided_at() {
        Some(at) => problem.with("decided_at", rfc3339(at)),
        None => problem,
    }
}
