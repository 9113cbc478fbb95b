//! A job as callers see it: the form of the API, the command line and the console.

use serde::Serialize;

use super::{Job, JobState};
use crate::clock::rfc3339;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JobView {
    /// Its id.
    pub id: String,
    /// The piece it runs.
    pub piece: String,
    /// The word of its state.
    pub status: &'static str,
    /// Why it waits for people.
    pub wait_reason: Option<&'static str>,
    /// What it asks its user; filled by the agent room, which reads memories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The movement it is in.
    pub movement: String,
    /// Where it goes on after its wait.
    pub resume_movement: Option<String>,
    /// The requests of its current turn.
    pub confirmation_ids: Vec<String>,
    /// The job that spawned it.
    pub parent_id: Option<String>,
    /// What it handed over, or why it was aborted.
    pub result: Option<String>,
    /// By what fault it ended.
    pub error: Option<String>,
    /// When it was submitted; RFC 3339.
    pub created_at: String,
    /// When it last changed; RFC 3339.
    pub updated_at: String,
}

impl From<&Job> for JobView {
    fn from(job: &Job) -> Self {
        let (result, error) = match &job.state {
            JobState::Completed { result } | JobState::Aborted { result } => (Some(result.clone()), None),
            JobState::Error { error } => (None, Some(error.clone())),
            _ => (None, None),
        };
        Self {
            id: job.id.to_string(),
            piece: job.piece.clone(),
            status: job.state.status().as_str(),
            wait_reason: job.state.wait_reason().map(super::WaitReason::as_str),
            question: None,
            movement: job.movement.clone(),
            resume_movement: job.state.resume_movement().map(str::to_owned),
            confirmation_ids: job.confirmations.iter().map(ToString::to_string).collect(),
            parent_id: job.parent.as_ref().map(ToString::to_string),
            result,
            error,
            created_at: rfc3339(job.created_at),
            updated_at: rfc3339(job.updated_at),
        }
    }
}
