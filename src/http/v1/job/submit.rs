//! `POST /api/jobs`: a run of a piece. 201 with the job.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::view;
use crate::clock::{UtcMillis, parse_rfc3339};
use crate::http::Api;
use crate::http::auth::Agent;
use crate::http::body::{self, Members};
use crate::http::problem::{Code, Problem};
use crate::ids::JobId;
use crate::job::submit::Submit;

/// The highest priority that can be asked for, and with a minus the lowest.
const PRIORITY: i32 = 100;

/// How far ahead a job may be submitted.
const AHEAD: Duration = Duration::from_hours(24 * 366);

/// A time at which the job may run; what is past means at once.
fn later(api: &Api, text: &str) -> Result<UtcMillis, Problem> {
    let latest = api.clock().now().plus(AHEAD);
    parse_rfc3339(text).filter(|at| *at <= latest).ok_or_else(|| {
        body::wrong(
            "run_at",
            "an RFC 3339 time such as 2026-01-31T12:00:00Z, at most 366 days ahead",
        )
    })
}

/// Submits it.
pub async fn handle(State(api): State<Api>, agent: Agent, mut members: Members) -> Result<Response, Problem> {
    let piece = members.required("piece")?;
    let input = members.required("input")?;
    let agent_id = members.name("agent_id")?;
    let session_id = members.name("session_id")?;
    let requester = members.name("requester")?;
    let priority = members.whole("priority", -PRIORITY, PRIORITY)?.unwrap_or(0);
    let run_at = members
        .text("run_at")?
        .map(|text| later(&api, &text))
        .transpose()?;
    members.finish()?;
    // Before anybody is told whether there is such a piece.
    if agent
        .pieces
        .as_ref()
        .is_some_and(|pieces| !pieces.contains(&piece))
    {
        return Err(Problem::new(Code::PieceNotPermitted)
            .because("the token's `pieces` in the configuration lists what it may submit"));
    }
    let desk = api.desk().ok_or_else(|| Problem::new(Code::NotInstalled))?;
    let movement = desk
        .entrance(&piece)
        .ok_or_else(|| Problem::new(Code::UnknownPiece))?;
    let gatekeeper = api.gatekeeper();
    let caller = agent.caller;
    let named = requester.as_deref().map_or(&[][..], |requester| {
        gatekeeper.people().named(&caller.org, requester)
    });
    let mut persons: Vec<_> = named.iter().chain(&caller.owner).cloned().collect();
    persons.sort();
    persons.dedup();
    let submit = Submit {
        id: JobId::fresh(&**gatekeeper.ids()),
        org: caller.org,
        token: caller.token,
        piece,
        movement,
        shown_input: gatekeeper.text(Some(&input)),
        input,
        agent_id,
        session_id,
        requester,
        persons,
        parent: None,
        priority,
        run_at,
    };
    let job = gatekeeper.store().run(submit).await?;
    let mut response = (StatusCode::CREATED, Json(view(&api, &job))).into_response();
    if let Ok(place) = HeaderValue::from_str(&format!("jobs/{}", job.id)) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}
