//! `POST /console/requests/{id}/respond`: the logged-in operator decides. A rejection needs a reason, as on the command line.

use axum::extract::State;
use axum::response::Response;
use gatepost_channel::Decision;

use super::form::Form;
use super::{Visitor, refusal, request, see};
use crate::callback::reply;
use crate::gate::Arguments;
use crate::gate::json::ReadLimits;
use crate::gatekeeper::Saying;
use crate::http::Api;
use crate::http::problem::{Code, Problem};
use crate::http::v1::RequestId;

/// Decides, then shows the request as it stands.
pub async fn act(
    State(api): State<Api>,
    Visitor(session): Visitor,
    id: Result<RequestId, Problem>,
    form: Form,
) -> Result<Response, Response> {
    form.check(&session).map_err(|problem| refusal(&api, problem))?;
    let RequestId(id) = id.map_err(|problem| refusal(&api, problem))?;
    let decision = match form.field("decision") {
        "approve" | "approve_edited" | "preview" => Decision::Approve,
        "reject" => Decision::Reject,
        _ => return Err(refusal(&api, Problem::invalid("Nothing was decided."))),
    };
    let gatekeeper = api.gatekeeper();
    let dossier = gatekeeper
        .dossier(&session.operator.org, &id)
        .await
        .map_err(|error| refusal(&api, error.into()))?;
    let edited = matches!(form.field("decision"), "approve_edited" | "preview");
    let edited_args = match edited.then(|| edited_args(form.field("edited_args"))).transpose() {
        Ok(args) => args,
        Err(why) => return request::again(&api, &session, &id, form.field("edited_args"), Err(why)).await,
    };
    if let (Some(args), Some(dossier), "preview") = (&edited_args, &dossier, form.field("decision")) {
        let (row, operator) = (&dossier.confirmation, &session.operator);
        let asked = gatekeeper.roll_for(&operator.org, &operator.id, None).await;
        let (roll, _) = asked.map_err(|error| refusal(&api, error.into()))?;
        if !roll.may_decide(&operator.id, &row.org, &row.in_force(), api.clock().now()) {
            let said = "This operator may not decide the request.";
            return Err(refusal(&api, Problem::forbidden("not_a_decider", said)));
        }
        let shown = gatekeeper.preview(dossier, &session.operator.id, args);
        let shown = shown.map_err(|unfit| unfit.detail);
        return request::again(&api, &session, &id, form.field("edited_args"), shown).await;
    }
    let break_glass = form.field("glass") == "yes";
    if break_glass && form.field("reason").trim().is_empty() {
        let said = "Breaking the glass needs a reason: say why, everybody who is passed over is told. Nothing was changed.";
        return Err(refusal(&api, Problem::new(Code::ReasonRequired).because(said)));
    }
    if break_glass && form.field("alone") != "yes" {
        let said =
            "Tick the box that says that you go past everybody who would be asked. Nothing was changed.";
        return Err(refusal(&api, Problem::invalid(said)));
    }
    let asks_once_more =
        !break_glass && dossier.is_some_and(|dossier| dossier.confirmation.terms.decision.confirm_step);
    if asks_once_more && decision == Decision::Approve && form.field("sure") != "yes" {
        let said = "Tick the box that says that you have looked at the arguments. Nothing was changed.";
        return Err(refusal(&api, Problem::invalid(said)));
    }
    // As `gatepost reject` does: whoever writes at a keyboard can say why, and the agent learns from it.
    if decision == Decision::Reject && form.field("reason").trim().is_empty() {
        let said = "A rejection needs a reason: say why, the agent is told. Go back and write it in the field; nothing was changed.";
        return Err(refusal(&api, Problem::new(Code::ReasonRequired).because(said)));
    }
    let ruled = gatekeeper
        .answer(
            &session.operator.id,
            &session.operator.org,
            &id,
            Saying {
                decision,
                reason: Some(form.field("reason")),
                grant: Some(form.field("grant"))
                    .filter(|grant| !grant.is_empty() && decision == Decision::Approve && !edited),
                edited_args: edited_args.as_ref(),
                edit: form.field("edit").parse().ok(),
                code: Some(form.field("code")).filter(|code| !code.trim().is_empty()),
                break_glass,
            },
            session.surface,
        )
        .await
        .map_err(|error| refusal(&api, error.into()))?;
    if let Some(unfit) = ruled.unfit() {
        let why = Err(unfit.detail.clone());
        return request::again(&api, &session, &id, form.field("edited_args"), why).await;
    }
    let decided = ruled.decided;
    if decided.dossier.is_none() {
        return Err(refusal(&api, Problem::not_found()));
    }
    Ok(see(&request::after(id.as_str(), &reply::of(&decided, decision))))
}

/// The arguments as they were written into the form; the words say why they are none, and nothing of them.
fn edited_args(text: &str) -> Result<Arguments, String> {
    Arguments::read(text.as_bytes(), ReadLimits::bytes(text.len())).map_err(|problem| problem.to_string())
}
