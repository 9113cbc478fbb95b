//! `POST /api/confirmations`: the gate. Whatever the verdict, the answer is 200.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use gatepost_channel::Decision;
use serde::Serialize;

use crate::clock::{UtcMillis, rfc3339};
use crate::confirmation::roll::Roll;
use crate::confirmation::{Dossier, Permit, State as Stands, Status};
use crate::gate::policy::Voices;
use crate::gate::{DenyReason, Digest, ToolName};
use crate::gatekeeper::{Answer, Question, Via};
use crate::http::Api;
use crate::http::auth::Agent;
use crate::http::body::Members;
use crate::http::problem::{Code, Problem};
use crate::http::v1::confirmation::{decided, place};

/// How long the hooks of a call may take together.
const HOOKS_WITHIN: Duration = Duration::from_mins(1);

/// The verdict and where the request stands. Members that hold nothing are `null`.
#[derive(Debug, Serialize)]
pub struct GateAnswer {
    verdict: &'static str,
    confirmation_id: Option<String>,
    status: Option<Status>,
    reason: Option<String>,
    reason_code: Option<&'static str>,
    rule: Option<String>,
    args_digest: Digest,
    expires_at: Option<String>,
    /// Whether people changed the arguments: `consume` answers with those that may run.
    edited: bool,
}

/// Asks.
pub async fn handle(
    State(api): State<Api>,
    agent: Agent,
    members: Members,
) -> Result<Json<GateAnswer>, Problem> {
    let (question, wait) = question(members)?;
    // Before anything is asked: who is refused must not find out later that there is a request.
    let place = place(&api, &agent.caller.token, wait)?;
    let gatekeeper = api.gatekeeper();
    let mut dossier = match gatekeeper
        .ask_council(&agent.caller, question, HOOKS_WITHIN)
        .await?
    {
        Answer::Allow { rule, digest } => return Ok(Json(plain("allow", None, rule, digest))),
        Answer::Deny {
            reason,
            message,
            rule,
            digest,
        } => {
            return Ok(Json(plain("deny", Some((reason, message)), rule, digest)));
        }
        Answer::Conflict(id) => {
            return Err(Problem::new(Code::CallIdConflict)
                .because("ask with a call id of its own, or with the same arguments, requester and agent")
                .with("confirmation_id", id.as_str()));
        }
        Answer::Asked(dossier) => *dossier,
    };
    if !wait.is_zero() && dossier.confirmation.state.status() == Status::Pending {
        let id = dossier.confirmation.id.clone();
        dossier = decided(&api, &id, wait, place).await?.unwrap_or(dossier);
    }
    let now = match dossier.confirmation.state {
        Stands::Approved { .. } => gatekeeper.store().read().now().await?,
        _ => UtcMillis(0),
    };
    Ok(Json(standing(&dossier, &gatekeeper.roll(), now)))
}

fn question(mut members: Members) -> Result<(Question, Duration), Problem> {
    let tool: ToolName = members.required("tool_name")?.parse()?;
    let args = members.arguments("tool_args")?;
    let question = Question {
        via: Via::Api,
        tool,
        args,
        agent_id: members.name("agent_id")?,
        session_id: members.name("session_id")?,
        tool_call_id: members.name("tool_call_id")?,
        requester: members.name("requester")?,
        metadata: members.object("metadata")?,
        job: None,
        lineage: Vec::new(),
        voices: Voices::default(),
        carries_edits: members.flag("accepts_edits")?.unwrap_or(false),
        join_twin: false,
    };
    let wait = members.wait("wait")?.unwrap_or_default();
    members.finish()?;
    Ok((question, wait))
}

/// A verdict that needed nobody.
fn plain(
    verdict: &'static str,
    denial: Option<(DenyReason, String)>,
    rule: Option<String>,
    args_digest: Digest,
) -> GateAnswer {
    let (code, reason) = denial.map_or((None, None), |(code, message)| {
        (Some(code.code()), Some(sentence(message) + code.advice()))
    });
    GateAnswer {
        verdict,
        confirmation_id: None,
        status: None,
        reason,
        reason_code: code,
        rule,
        args_digest,
        expires_at: None,
        edited: false,
    }
}

/// The verdict of a request, wherever it stands.
pub fn standing(dossier: &Dossier, roll: &Roll, now: UtcMillis) -> GateAnswer {
    let row = &dossier.confirmation;
    let denial = denial(dossier, now);
    let verdict = match (row.state.status(), denial) {
        (_, Some(_)) => "deny",
        (Status::Approved, None) => "allow",
        (_, None) => "pending",
    };
    GateAnswer {
        verdict,
        confirmation_id: Some(row.id.to_string()),
        status: Some(row.state.status()),
        reason: match denial {
            Some(reason) => Some(in_words(dossier, reason, roll)),
            None => row.reason.clone(),
        },
        reason_code: denial.map(DenyReason::code),
        rule: row.rule.clone(),
        args_digest: row.asked.digest,
        expires_at: Some(rfc3339(row.expires_at)),
        edited: row.state.status() == Status::Approved && row.call().edit > 0,
    }
}

/// Why the call must not run, if it must not.
fn denial(dossier: &Dossier, now: UtcMillis) -> Option<DenyReason> {
    let row = &dossier.confirmation;
    match &row.state {
        Stands::Pending => None,
        Stands::Approved {
            permit: Permit::Consumed { .. },
            ..
        } => Some(DenyReason::AlreadyConsumed),
        Stands::Approved { at, .. } => {
            let lapsed = now >= UtcMillis(at.0.saturating_add(row.terms.permit_ttl_ms));
            lapsed.then_some(DenyReason::PermitExpired)
        }
        Stands::Rejected { .. } => Some(DenyReason::RejectedByOperator),
        Stands::Expired { .. } => Some(DenyReason::Expired),
        Stands::Cancelled { .. } => Some(DenyReason::Cancelled),
        Stands::Undeliverable { .. } => Some(DenyReason::Undeliverable),
    }
}

/// The text with its end, so that another sentence can follow.
fn sentence(mut text: String) -> String {
    text.push_str(if text.ends_with(['.', '!', '?']) {
        " "
    } else {
        ". "
    });
    text
}

/// Who said no and why, then whether trying again makes sense.
fn in_words(dossier: &Dossier, reason: DenyReason, roll: &Roll) -> String {
    let mut said = String::new();
    if reason == DenyReason::RejectedByOperator {
        for vote in &*dossier.standing_votes() {
            if vote.decision == Decision::Reject {
                said.push_str("Rejected by ");
                said.push_str(&vote.voter(roll));
                if let Some(why) = &vote.reason {
                    said.push_str(": ");
                    said.push_str(why);
                }
                said = sentence(said);
            }
        }
    }
    said + reason.advice()
}
