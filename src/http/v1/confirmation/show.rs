//! `GET /api/confirmations/{id}`: one request; with `wait`, as soon as it is decided; with `full=true`, for an operator who
//! may decide it, with all of its arguments, which is an act for the audit log.

use axum::Json;
use axum::extract::State;

use super::{Eyes, View, decided, place, view};
use crate::audit::{Actor, Draft};
use crate::confirmation::Dossier;
use crate::gatekeeper::journal::Append;
use crate::gatekeeper::may_see_all;
use crate::http::Api;
use crate::http::auth::{Operator, Reader};
use crate::http::problem::Problem;
use crate::http::query::Params;
use crate::http::v1::RequestId;

/// Shows it.
pub async fn handle(
    State(api): State<Api>,
    reader: Reader,
    RequestId(id): RequestId,
    mut params: Params,
) -> Result<Json<View>, Problem> {
    let wait = params.wait()?.unwrap_or_default();
    let full = params.flag("full")?;
    params.finish()?;
    let gatekeeper = api.gatekeeper();
    // Whether it may be known comes before any wait: a stranger's wait would tell that it exists.
    let dossier = gatekeeper
        .dossier(reader.org(), &id)
        .await?
        .filter(|dossier| may_know(&reader, dossier))
        .ok_or_else(Problem::not_found)?;
    let dossier = if wait.is_zero() {
        dossier
    } else {
        let place = place(&api, &reader.waiter(), wait)?;
        decided(&api, &id, wait, place)
            .await?
            .ok_or_else(Problem::not_found)?
    };
    let eyes = match &reader {
        Reader::Agent(_) => Eyes::Full,
        Reader::Operator(operator) if full => {
            look(&api, operator, &dossier, "api").await?;
            Eyes::Full
        }
        Reader::Auditor(_) if full => {
            return Err(Problem::forbidden(
                "not_a_decider",
                "all of the arguments are shown to an operator who may decide the request",
            ));
        }
        Reader::Operator(_) | Reader::Auditor(_) => Eyes::Redacted,
    };
    let view = view(dossier, eyes)?;
    Ok(Json(match &reader {
        Reader::Agent(_) => view,
        Reader::Operator(_) | Reader::Auditor(_) => view.with_code(gatekeeper.maker().key().as_bytes()),
    }))
}

fn may_know(reader: &Reader, dossier: &Dossier) -> bool {
    match reader {
        Reader::Agent(agent) => dossier.confirmation.asked.token == agent.caller.token,
        Reader::Operator(_) | Reader::Auditor(_) => true,
    }
}

/// Puts on record that a person who may decide is about to see all of the arguments. Nothing is shown before that stands.
pub async fn look(api: &Api, operator: &Operator, dossier: &Dossier, surface: &str) -> Result<(), Problem> {
    let row = &dossier.confirmation;
    let (roll, _) = api
        .gatekeeper()
        .roll_for(&operator.org, &operator.id, None)
        .await?;
    if !may_see_all(&roll, &operator.id, row, api.clock().now()) {
        return Err(Problem::forbidden(
            "not_a_decider",
            "this operator may not decide the request",
        ));
    }
    let mut draft = Draft::new(&row.org, "args.viewed", Actor::Operator(operator.id.0.clone()))
        .about(&row.id)
        .with("surface", surface);
    draft.job.clone_from(&row.asked.job);
    api.gatekeeper().store().run(Append(vec![draft])).await?;
    Ok(())
}
