//! The audit log over HTTP: how an event looks from outside, and which events are asked for.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::problem::Problem;
use super::super::query::Params;
use super::raw;
use crate::audit::{Event, Opening};
use crate::clock::rfc3339;
use crate::gate::Json as Strict;
use crate::gate::json::ReadLimits;
use crate::ids::{ConfirmationId, JobId, Org};
use crate::storage::AuditFilter;

pub mod export;
pub mod list;
pub mod verify;

#[cfg(test)]
mod audit_tests;

/// An event as the API shows it.
#[derive(Debug, Serialize)]
pub struct View {
    seq: i64,
    at: String,
    kind: String,
    actor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
    /// Facts, and beside them the texts that are still kept; an erased text is `null`.
    data: Box<RawValue>,
    prev_hash: String,
    hash: String,
    /// What the hash was taken over, where the event is exported.
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<Proof>,
}

/// The parts of an event as they were hashed: texts exactly as they stand, so that the chain can be checked elsewhere.
#[derive(Debug, Serialize)]
struct Proof {
    org: String,
    at_ms: i64,
    data: String,
    commitments: String,
    openings: Box<RawValue>,
}

/// Shows an event; with the proof where it leaves the server for good.
pub fn view(event: Event, with_proof: bool) -> Result<View, Problem> {
    let Event {
        org,
        seq,
        at,
        kind,
        actor,
        confirmation,
        job,
        channel,
        data,
        commitments,
        openings,
        prev_hash,
        hash,
    } = event;
    Ok(View {
        seq,
        at: rfc3339(at),
        kind,
        actor,
        confirmation_id: confirmation.map(|id| id.to_string()),
        job_id: job.map(|id| id.to_string()),
        channel,
        data: raw(told(&data, &openings).canonical())?,
        prev_hash,
        hash,
        proof: with_proof
            .then(|| {
                Ok::<_, Problem>(Proof {
                    org: org.0,
                    at_ms: at.0,
                    data,
                    commitments,
                    openings: raw(openings)?,
                })
            })
            .transpose()?,
    })
}

/// Facts and texts together. Arguments stand as JSON, with their numbers as they are. An event that was damaged is shown as
/// far as it can be read: the log must not become unreadable through one row.
fn told(data: &str, openings: &str) -> Strict {
    let mut told = match read(data) {
        Some(Strict::Object(object)) => object,
        _ => crate::gate::json::Object::default(),
    };
    let openings: Map<String, Value> = serde_json::from_str(openings).unwrap_or_default();
    for (name, opening) in openings {
        let text = serde_json::from_value::<Option<Opening>>(opening).ok().flatten();
        let value = match text {
            None => Strict::Null,
            Some(opening) if name == "tool_args" => {
                read(&opening.value).unwrap_or_else(|| opening.value.into())
            }
            Some(opening) => opening.value.into(),
        };
        told.insert(name, value);
    }
    Strict::Object(told)
}

fn read(text: &str) -> Option<Strict> {
    Strict::read(text.as_bytes(), ReadLimits::bytes(text.len())).ok()
}

/// Which events: the same parameters for the list and the export.
pub fn filter(org: Org, params: &mut Params) -> Result<AuditFilter, Problem> {
    Ok(AuditFilter {
        orgs: vec![org],
        kind: params.words("kind", |word| (!word.is_empty()).then(|| word.to_owned()))?,
        actor: params.text("actor"),
        confirmation: params.parsed("confirmation_id", "the id of a request", |text| {
            ConfirmationId::parse(text).ok()
        })?,
        job: params.parsed("job_id", "the id of a job", |text| JobId::parse(text).ok())?,
        channel: params.text("channel"),
        since: params.instant("since")?,
        until: params.instant("until")?,
        limit: params.limit(100, 1_000)?,
        cursor: params.cursor(),
    })
}
