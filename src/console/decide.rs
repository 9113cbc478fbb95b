//! `POST /console/requests/{id}/respond`: the logged-in operator decides. A rejection needs a reason, as on the command line.

use axum::extract::State;
use axum::response::Response;
use gatepost_channel::Decision;

use super::form::Form;
use super::{Visitor, refusal, request, see};
use crate::callback::reply;
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
        "approve" => Decision::Approve,
        "reject" => Decision::Reject,
        _ => return Err(refusal(&api, Problem::invalid("Nothing was decided."))),
    };
    let gatekeeper = api.gatekeeper();
    let dossier = gatekeeper
        .dossier(&session.operator.org, &id)
        .await
        .map_err(|error| refusal(&api, error.into()))?;
    let asks_once_more = dossier.is_some_and(|dossier| dossier.confirmation.terms.decision.confirm_step);
    if asks_once_more && decision == Decision::Approve && form.field("sure") != "yes" {
        let said = "Tick the box that says that you have looked at the arguments. Nothing was changed.";
        return Err(refusal(&api, Problem::invalid(said)));
    }
    // As `gatepost reject` does: whoever writes at a keyboard can say why, and the agent learns from it.
    if decision == Decision::Reject && form.field("reason").trim().is_empty() {
        let said = "A rejection needs a reason: say why, the agent is told. Go back and write it in the field; nothing was changed.";
        return Err(refusal(&api, Problem::new(Code::ReasonRequired).because(said)));
    }
    let decided = gatekeeper
        .answer(
            &session.operator.id,
            &session.operator.org,
            &id,
            Saying {
                decision,
                reason: Some(form.field("reason")),
                grant: Some(form.field("grant"))
                    .filter(|grant| !grant.is_empty() && decision == Decision::Approve),
            },
            session.surface,
        )
        .await
        .map_err(|error| refusal(&api, error.into()))?;
    if decided.dossier.is_none() {
        return Err(refusal(&api, Problem::not_found()));
    }
    Ok(see(&request::after(id.as_str(), &reply::of(&decided, decision))))
}
