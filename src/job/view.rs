//! A job as callers see it: the form of the API, the command line and the console.

use serde::Serialize;

use super::{Job, JobState};
use crate::clock::rfc3339;

/// What goes on in a run: counts and words, nothing that was said and no argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// Replies of the model so far.
    pub replies: u32,
    /// Movements entered so far, the first included.
    pub movements: u32,
    /// Requests to people so far.
    pub requests: u32,
    /// How often an older part of the conversation was left out.
    pub compactions: u32,
    /// Tokens that were asked.
    pub input_tokens: u64,
    /// Those of them that the endpoint had in its cache.
    pub cached_tokens: u64,
    /// Tokens that were answered.
    pub output_tokens: u64,
    /// What the endpoint charged, in millionths of its unit.
    pub cost_micros: u64,
    /// The calls of the turn, in order.
    pub calls: Vec<CallView>,
}

/// A call of the turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallView {
    /// Its id.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// How far it came.
    pub state: &'static str,
    /// The request that decides on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmation_id: Option<String>,
}

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
    /// The id of that question, to be sent with its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question_id: Option<String>,
    /// What goes on in it; filled by the agent room, for one job at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// The movement it is in.
    pub movement: String,
    /// Where it goes on after its wait.
    pub resume_movement: Option<String>,
    /// The requests of its current turn.
    pub confirmation_ids: Vec<String>,
    /// The job that spawned it.
    pub parent_id: Option<String>,
    /// The sub-tasks that it began, in order.
    pub subtask_ids: Vec<String>,
    /// What it handed over, or why it was aborted.
    pub result: Option<String>,
    /// By what fault it ended.
    pub error: Option<String>,
    /// When a worker may take it, while that is later than its last change: a job that was submitted for later, or one that
    /// rests after a failed attempt; RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_at: Option<String>,
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
            question_id: None,
            activity: None,
            movement: job.movement.clone(),
            resume_movement: job.state.resume_movement().map(str::to_owned),
            confirmation_ids: job.confirmations.iter().map(ToString::to_string).collect(),
            subtask_ids: job.children.iter().map(ToString::to_string).collect(),
            parent_id: job.parent.as_ref().map(ToString::to_string),
            result,
            error,
            run_at: (job.state.is_queued() && job.run_at > job.updated_at).then(|| rfc3339(job.run_at)),
            created_at: rfc3339(job.created_at),
            updated_at: rfc3339(job.updated_at),
        }
    }
}
