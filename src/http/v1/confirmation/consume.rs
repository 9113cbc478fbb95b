//! `POST /api/confirmations/{id}/consume`: for a client of the API, the only answer that permits an execution.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::clock::rfc3339;
use crate::confirmation::consume::NotGranted;
use crate::gate::{Digest, ToolName};
use crate::gatekeeper::Via;
use crate::http::Api;
use crate::http::auth::Agent;
use crate::http::body::Members;
use crate::http::problem::{Code, Problem};
use crate::http::v1::{RequestId, raw};

/// The permit, just consumed.
#[derive(Debug, Serialize)]
pub struct Granted {
    permit: String,
    args_digest: Digest,
    tool_args: Box<RawValue>,
    expires_at: String,
    /// Whether people changed the arguments: then `tool_args` are not those that were asked about, and only they may run.
    edited: bool,
    /// What they changed, in one line for the model.
    changes: Option<String>,
}

/// Consumes it, once.
pub async fn handle(
    State(api): State<Api>,
    agent: Agent,
    RequestId(id): RequestId,
    members: Members,
) -> Result<Json<Granted>, Problem> {
    let digest = call(members).map_err(|problem| problem.adding(ACCEPTED))?;
    let consumed = api.gatekeeper().consume(Via::Api, &agent.caller, &id, digest);
    match consumed.await? {
        Ok(granted) => {
            let changes = match granted.edit {
                0 => None,
                _ => api.gatekeeper().changes(&agent.caller.org, &id).await?,
            };
            Ok(Json(Granted {
                permit: granted.permit.to_string(),
                args_digest: granted.digest,
                tool_args: raw(granted.args)?,
                expires_at: rfc3339(granted.expires_at),
                edited: granted.edit > 0,
                changes,
            }))
        }
        Err(why) => Err(refused(why)),
    }
}

/// What the body must hold.
const ACCEPTED: &str =
    "send the call that is about to run, exactly as it was asked: {\"tool_name\": …, \"tool_args\": {…}}";

fn call(mut members: Members) -> Result<Digest, Problem> {
    let tool: ToolName = members.required("tool_name")?.parse()?;
    let args = members.arguments("tool_args")?;
    members.finish()?;
    Ok(Digest::of(&tool, &args))
}

fn refused(why: NotGranted) -> Problem {
    match why {
        NotGranted::NotFound => Problem::not_found(),
        NotGranted::NotApproved(status) => Problem::new(Code::NotApproved)
            .because(format!("the request is {}", status.as_str()))
            .with("confirmation_status", status.as_str()),
        NotGranted::ArgsChanged => {
            Problem::new(Code::ArgsChanged).because("the permit stays usable for the approved call")
        }
        NotGranted::AlreadyConsumed => Problem::new(Code::AlreadyConsumed),
        NotGranted::PermitExpired => Problem::new(Code::PermitExpired),
        NotGranted::NotAuthorised => Problem::new(Code::VotersNotAuthorised),
        NotGranted::LookUpFailed => Problem::new(Code::LookUpFailed)
            .because(
                "whether those who approved may still decide could not be asked; the permit stays usable",
            )
            .retry_after(2),
        NotGranted::DeniedByRule => Problem::new(Code::DeniedByRule),
    }
}
