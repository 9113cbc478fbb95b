//! `POST /api/confirmations/{id}/respond`: an operator decides.

use axum::Json;
use axum::extract::State;
use gatepost_channel::Decision;

use super::{Eyes, View, already_settled, explain, view};
use crate::confirmation::Dossier;
use crate::confirmation::decide::{Decided, Refusal, Ruling, Surface};
use crate::confirmation::edit::EditRefusal;
use crate::gatekeeper::{Saying, Unfit};
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
    let edited_args = members.maybe_arguments("edited_args")?;
    let edit = members.whole("edit", 0, i32::MAX)?;
    let code = members.text("code")?;
    let break_glass = members.flag("break_glass")?.unwrap_or(false);
    members.finish()?;
    if decision == Decision::Reject && (edited_args.is_some() || edit.is_some()) {
        return Err(Problem::invalid(
            "only an Approve has arguments of its own; leave `edited_args` and `edit` out",
        ));
    }
    let saying = Saying {
        decision,
        reason: reason.as_deref(),
        grant: grant.as_deref(),
        edited_args: edited_args.as_ref(),
        edit: edit.and_then(|number| u32::try_from(number).ok()),
        code: code.as_deref(),
        break_glass,
    };
    let ruled_on = api
        .gatekeeper()
        .answer(&operator.id, &operator.org, &id, saying, Surface::Api)
        .await?;
    if let Some(unfit) = ruled_on.unfit() {
        return Err(unfit_edit(unfit));
    }
    let dossier = ruled(ruled_on.decided)?;
    let key = api.gatekeeper().maker().key().as_bytes();
    view(dossier, Eyes::Redacted).map(|view| Json(view.with_code(key)))
}

/// Why changed arguments were not taken.
pub fn unfit_edit(unfit: &Unfit) -> Problem {
    let code = match unfit.why {
        EditRefusal::NotOffered | EditRefusal::NotCarried => Code::EditNotAccepted,
        EditRefusal::NotShown
        | EditRefusal::OutOfScope
        | EditRefusal::Hidden
        | EditRefusal::Misfit
        | EditRefusal::DeniedByRule
        | EditRefusal::Stricter
        | EditRefusal::TooMany => Code::EditRefused,
    };
    Problem::new(code)
        .because(unfit.detail.clone())
        .with("reason_code", unfit.why.as_str())
}

/// The request after a vote that counts, or why it does not.
pub fn ruled(decided: Decided) -> Result<Dossier, Problem> {
    let Decided { ruling, dossier, .. } = decided;
    let refusal = match ruling {
        Ruling::Counted | Ruling::Settled | Ruling::Armed(_) => {
            return dossier.ok_or_else(Problem::not_found);
        }
        // Only cards have a replay memory.
        Ruling::Replayed(_) => return Err(Problem::not_found()),
        Ruling::Refused(refusal) => refusal,
    };
    let detail = match refusal {
        Refusal::SelfApproval => {
            "you stand behind this call yourself, as the owner of the token or as the requester; somebody else must approve it"
        }
        Refusal::PartialView => "the card does not show all of the arguments",
        _ => "this person may not decide the request",
    };
    Err(match refusal {
        Refusal::NotFound => Problem::not_found(),
        Refusal::AlreadySettled | Refusal::Expired => {
            dossier.as_ref().map_or_else(Problem::not_found, already_settled)
        }
        Refusal::CodeRequired => Problem::new(Code::CodeRequired)
            .because("answer again with `code`, a one-time code of the authenticator app; nothing was changed"),
        Refusal::CodeNotSetUp => Problem::forbidden(
            refusal.as_str(),
            "the rule asks for a one-time code, and the operator has none: an administrator adds `totp` to their entry under `operators`",
        ),
        Refusal::WrongCode => Problem::forbidden(
            refusal.as_str(),
            "the code is wrong, too old or was used before; wait for the next one",
        ),
        Refusal::TooManyCodes => Problem::new(Code::TooManyCodes)
            .because("too many wrong codes: none is read for a while; nothing was changed")
            .retry_after(900),
        Refusal::AlreadyArmed => Problem::new(Code::AlreadyArmed).because(explain::armed(dossier.as_ref())),
        Refusal::BreakGlassNotOffered => Problem::new(Code::BreakGlassNotOffered)
            .because("the rule lets nobody break the glass, or a rejection was sent; nothing was changed"),
        Refusal::BreakGlassUsedUp => Problem::new(Code::BreakGlassUsedUp)
            .because("the glass was broken as often as the rule allows; nothing was changed"),
        Refusal::AlreadyRepresented => Problem::new(Code::AlreadyRepresented)
            .because("a place counts once: somebody approved in this person's, or in that of everybody whom this person stands in for"),
        Refusal::AlreadyVoted => Problem::new(Code::AlreadyVoted).because("a person's first vote stands"),
        Refusal::LookUpFailed => Problem::new(Code::LookUpFailed)
            .because("answer again; nothing was changed")
            .retry_after(2),
        Refusal::GrantNotOffered => {
            Problem::new(Code::GrantNotOffered).because(explain::grants(dossier.as_ref()))
        }
        Refusal::NotAuthorised | Refusal::NotThisStage => {
            Problem::forbidden(refusal.as_str(), explain::who(refusal, dossier.as_ref()))
        }
        Refusal::Edit(why @ (EditRefusal::NotOffered | EditRefusal::NotCarried)) => {
            Problem::new(Code::EditNotAccepted).with("reason_code", why.as_str())
        }
        Refusal::Edit(why) => Problem::new(Code::EditRefused).with("reason_code", why.as_str()),
        Refusal::EditUnseen => edit_unseen(dossier.as_ref()),
        Refusal::ReasonRequired => {
            Problem::new(Code::ReasonRequired).because("answer again with `reason`; nothing was changed")
        }
        Refusal::SelfApproval
        | Refusal::UnknownOperator
        | Refusal::ForeignTenant
        | Refusal::Barred(_)
        | Refusal::NotToldApart
        | Refusal::UnknownCard
        | Refusal::OtherChannel
        | Refusal::OtherMessage
        | Refusal::OutdatedCard
        | Refusal::NotConfirmed
        | Refusal::PartialView => Problem::forbidden(refusal.as_str(), detail),
    })
}

/// The call is not the one that the answer is about.
fn edit_unseen(dossier: Option<&Dossier>) -> Problem {
    let stands = dossier.map_or(0, |dossier| dossier.confirmation.call().edit);
    let detail = match stands {
        0 => "the request holds no edit; look at it again, and answer without `edit`".to_owned(),
        number => format!(
            "a person changed the arguments; look at the request again, and approve with `edit: {number}` what stands there now"
        ),
    };
    Problem::new(Code::EditUnseen)
        .because(detail)
        .with("edit", stands)
}
