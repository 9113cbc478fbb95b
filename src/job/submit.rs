//! Submitting: a run becomes a row in the queue.

use gatepost_channel::UtcMillis;

use crate::audit::{Actor, Draft, Opening};
use crate::clock::rfc3339;
use crate::ids::{JobId, OperatorId, Org, TokenName};
use crate::storage::{Touches, Transaction, Workspace};

use super::{Job, JobState};

/// A new job, complete but for its times.
#[derive(Debug, Clone)]
pub struct Submit {
    /// Its id.
    pub id: JobId,
    /// Whose it is.
    pub org: Org,
    /// Who submits it.
    pub token: TokenName,
    /// The piece it runs; the caller checked that there is one.
    pub piece: String,
    /// The movement in which it starts.
    pub movement: String,
    /// What it is given.
    pub input: String,
    /// The input, for the audit log.
    pub shown_input: Option<Opening>,
    /// Asserted by who submits it.
    pub agent_id: Option<String>,
    /// Asserted by who submits it.
    pub session_id: Option<String>,
    /// Asserted by who submits it.
    pub requester: Option<String>,
    /// The persons behind it: the named requester when known, the owner of the token, those of the parent.
    pub persons: Vec<OperatorId>,
    /// The job that spawns it.
    pub parent: Option<JobId>,
    /// Higher first.
    pub priority: i32,
    /// No worker takes it before; at once, when `None` or past.
    pub run_at: Option<UtcMillis>,
}

impl Transaction for Submit {
    type Answer = Job;
    const NAME: &'static str = "submit_job";

    fn touches(&self, touches: &mut Touches) {
        touches.orgs.insert(self.org.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> Job {
        self.begin(workspace, "{}")
    }
}

impl Submit {
    /// The job is there, with this memory.
    pub(super) fn begin(&self, workspace: &mut Workspace, memory: &str) -> Job {
        let now = workspace.now();
        let job = Job {
            id: self.id.clone(),
            org: self.org.clone(),
            token: self.token.clone(),
            piece: self.piece.clone(),
            input: self.input.clone(),
            agent_id: self.agent_id.clone(),
            session_id: self.session_id.clone(),
            requester: self.requester.clone(),
            persons: self.persons.clone(),
            parent: self.parent.clone(),
            state: JobState::Queued,
            movement: self.movement.clone(),
            waiting_on: Vec::new(),
            confirmations: Vec::new(),
            children: Vec::new(),
            memory: memory.to_owned(),
            priority: self.priority,
            attempts: 0,
            run_at: self.run_at.map_or(now, |at| at.max(now)),
            fence: 0,
            created_at: now,
            updated_at: now,
            version: 0,
        };
        let mut draft = Draft::new(&self.org, "job.submitted", Actor::Token(self.token.0.clone()))
            .of_job(&self.id)
            .with("piece", self.piece.as_str())
            .with_private("input", self.shown_input.clone());
        if let Some(parent) = &self.parent {
            draft = draft.with("parent", parent.as_str());
        }
        if job.run_at > now {
            draft = draft.with("run_at", rfc3339(job.run_at));
        }
        workspace.audit(draft);
        workspace.insert_job(job.clone());
        job
    }
}
