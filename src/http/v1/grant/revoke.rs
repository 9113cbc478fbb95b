//! `DELETE /api/grants/{id}`: an operator of the organisation takes a grant back. That only makes things stricter, so it needs
//! no more than that. Calls that were approved under it and not yet executed stay undone.

use axum::Json;
use axum::extract::State;

use super::{View, view};
use crate::confirmation::grant::{Revoke, Revoked};
use crate::http::Api;
use crate::http::auth::Operator;
use crate::http::problem::{Code, Problem};
use crate::http::v1::WhichGrant;

/// Takes it back; a second time is fine.
pub async fn handle(
    State(api): State<Api>,
    operator: Operator,
    WhichGrant(id): WhichGrant,
) -> Result<Json<View>, Problem> {
    let revoke = Revoke {
        id,
        org: operator.org,
        by: operator.id,
    };
    match api.gatekeeper().store().run(revoke).await? {
        Revoked::Done(grant) => Ok(Json(view(grant))),
        Revoked::Ended(_) => Err(Problem::new(Code::GrantEnded)),
        Revoked::NotFound => Err(Problem::not_found()),
    }
}
