//! `POST /api/confirmations/{id}/respond`: an operator decides.

use axum::Json;
use axum::extract::State;
use gatepost_channel::Decision;

use super::{Eyes, View, already_settled, view};
use crate::confirmation::Dossier;
use crate::confirmation::decide::{Decided, Refusal, Ruling, Surface};
use crate::gatekeeper::Saying;
use crate::http::Api;
use crate::http::auth::Operator;
use crate::http::body::{self, Members};
use crate::http::problem::{Code, Problem};
use crate::http::v1::RequestId;

/// Decides.
pub async fn handle(
    State(api): State<Api>,
    operator: Operator,
    RequestId(id): RequestId,
    mut members: Members,
) -> Result<Json<View>, Problem> {
    let decision = match members.required("decision")?.as_str() {
        "approve" => Decision::Approve,
        "reject" => Decision::Reject,
        _ => return Err(body::wrong("decision", "approve or reject")),
    };
    let reason = members.text("reason")?;
    let grant = members.text("grant")?;
    members.finish()?;
    let saying = Saying {
        decision,
        reason: reason.as_deref(),
        grant: grant.as_deref(),
    };
    let decided = api
        .gatekeeper()
        .answer(&operator.id, &operator.org, &id, saying, Surface::Api)
        .await?;
    let dossier = ruled(decided)?;
    view(dossier, Eyes::Redacted).map(Json)
}

/// The request after a vote that counts, or why it does not.
pub fn ruled(decided: Decided) -> Result<Dossier, Problem> {
    let Decided { ruling, dossier, .. } = decided;
    let refusal = match ruling {
        Ruling::Counted | Ruling::Settled => return dossier.ok_or_else(Problem::not_found),
        // Only cards have a replay memory.
        Ruling::Replayed(_) => return Err(Problem::not_found()),
        Ruling::Refused(refusal) => refusal,
    };
    let detail = match refusal {
        Refusal::SelfApproval => {
            "you stand behind this call yourself, as the owner of the token or as the requester; somebody else must approve it"
        }
        Refusal::NotAuthorised => "this operator may not decide the request",
        Refusal::NotThisStage => "other people are asked in this stage of the request",
        Refusal::PartialView => "the card does not show all of the arguments",
        _ => "this person may not decide the request",
    };
    Err(match refusal {
        Refusal::NotFound => Problem::not_found(),
        Refusal::AlreadySettled | Refusal::Expired => {
            dossier.as_ref().map_or_else(Problem::not_found, already_settled)
        }
        Refusal::AlreadyRepresented => Problem::new(Code::AlreadyRepresented)
            .because("a place counts once: somebody approved in this person's, or in that of everybody whom this person stands in for"),
        Refusal::AlreadyVoted => Problem::new(Code::AlreadyVoted).because("a person's first vote stands"),
        Refusal::GrantNotOffered => {
            Problem::new(Code::GrantNotOffered).because("answer without `grant`; nothing was changed")
        }
        Refusal::ReasonRequired => {
            Problem::new(Code::ReasonRequired).because("answer again with `reason`; nothing was changed")
        }
        Refusal::NotAuthorised
        | Refusal::NotThisStage
        | Refusal::SelfApproval
        | Refusal::UnknownOperator
        | Refusal::ForeignTenant
        | Refusal::UnknownCard
        | Refusal::OtherChannel
        | Refusal::OtherMessage
        | Refusal::OutdatedCard
        | Refusal::NotConfirmed
        | Refusal::PartialView => Problem::forbidden(refusal.as_str(), detail),
    })
}
