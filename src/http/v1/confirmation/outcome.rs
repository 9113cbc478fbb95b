//! `POST /api/confirmations/{id}/outcome`: who executed the call says what it led to.

use axum::Json;
use axum::extract::State;

use super::{Eyes, View, view};
use crate::confirmation::outcome::Reported;
use crate::confirmation::{Outcome, OutcomeStatus};
use crate::gatekeeper::Via;
use crate::http::Api;
use crate::http::auth::Agent;
use crate::http::body::{self, Members};
use crate::http::problem::{Code, Problem};
use crate::http::v1::RequestId;

/// Puts it on record. The same report a second time is fine, another one is not.
pub async fn handle(
    State(api): State<Api>,
    agent: Agent,
    RequestId(id): RequestId,
    mut members: Members,
) -> Result<Json<View>, Problem> {
    let status = match members.required("status")?.as_str() {
        "succeeded" => OutcomeStatus::Succeeded,
        "failed" => OutcomeStatus::Failed,
        _ => return Err(body::wrong("status", "succeeded or failed")),
    };
    let detail = members.text("detail")?;
    members.finish()?;
    let outcome = Outcome { status, detail };
    let reported = api.gatekeeper().report(Via::Api, &agent.caller, &id, outcome);
    match reported.await? {
        Reported::Done(dossier) => view(dossier, Eyes::Full).map(Json),
        Reported::Contradicts(_) => Err(Problem::new(Code::OutcomeContradicts)),
        Reported::NotConsumed(_) => Err(Problem::new(Code::NotConsumed)),
        Reported::NotFound => Err(Problem::not_found()),
    }
}
