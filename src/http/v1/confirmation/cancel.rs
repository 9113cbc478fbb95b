//! `POST /api/confirmations/{id}/cancel`: who asked no longer wants an answer.

use axum::Json;
use axum::extract::State;

use super::{Eyes, View, already_settled, view};
use crate::confirmation::cancel::Cancelled;
use crate::http::Api;
use crate::http::auth::Agent;
use crate::http::body::Members;
use crate::http::problem::Problem;
use crate::http::v1::RequestId;

/// Withdraws it. A second time is fine.
pub async fn handle(
    State(api): State<Api>,
    agent: Agent,
    RequestId(id): RequestId,
    members: Members,
) -> Result<Json<View>, Problem> {
    members.finish()?;
    match api.gatekeeper().cancel(&agent.caller, &id).await? {
        Cancelled::Done(dossier) => view(dossier, Eyes::Full).map(Json),
        Cancelled::TooLate(dossier) => Err(already_settled(&dossier)),
        Cancelled::NotFound => Err(Problem::not_found()),
    }
}
