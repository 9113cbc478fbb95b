//! The rows of work to be done: jobs and the outbox.

use gatepost_channel::UtcMillis;

use super::{Site, Text, keep, row, spell};
use crate::delivery::{Errand, OutboxItem};
use crate::ids::{ChannelName, ConfirmationId, JobId, Org, OutboxId, TokenName, WorkerId};
use crate::job::{Job, JobState, JobStatus, Lease, WaitReason};
use crate::storage::StoreError;

row! {
    /// A row of `job`.
    JobRow in "job" {
        id: String,
        org: Text,
        token: Text,
        piece: Text,
        input: Text,
        agent_id: Option<Text>,
        session_id: Option<Text>,
        requester: Option<Text>,
        persons: String,
        parent: Option<String>,
        status: String,
        worker: Option<String>,
        lease_until: Option<i64>,
        wait_reason: Option<String>,
        resume_movement: Option<Text>,
        result: Option<Text>,
        movement: Text,
        waiting_on: String,
        children: String,
        confirmations: String,
        memory: Text,
        priority: i64,
        attempts: i64,
        run_at: i64,
        due_at: Option<i64>,
        fence: i64,
        created_at: i64,
        updated_at: i64,
        version: i64,
    }
}

impl From<&Job> for JobRow {
    fn from(job: &Job) -> Self {
        let (lease, result) = match &job.state {
            JobState::Running(lease) => (Some(lease), None),
            JobState::Completed { result } | JobState::Aborted { result } => (None, Some(result)),
            JobState::Error { error } => (None, Some(error)),
            JobState::Queued
            | JobState::WaitingHuman { .. }
            | JobState::WaitingSubtasks { .. }
            | JobState::Cancelled => (None, None),
        };
        let due_at = match &job.state {
            JobState::Queued => Some(job.run_at.0),
            JobState::Running(lease) => Some(lease.until.0),
            _ => None,
        };
        Self {
            id: job.id.as_str().to_owned(),
            org: Text::keep(job.org.as_str()),
            token: Text::keep(job.token.as_str()),
            piece: Text::keep(&job.piece),
            input: Text::keep(&job.input),
            agent_id: keep(job.agent_id.as_ref()),
            session_id: keep(job.session_id.as_ref()),
            requester: keep(job.requester.as_ref()),
            persons: spell(&job.persons),
            parent: job.parent.as_ref().map(|parent| parent.as_str().to_owned()),
            status: job.state.status().as_str().to_owned(),
            worker: lease.map(|lease| lease.worker.as_str().to_owned()),
            lease_until: lease.map(|lease| lease.until.0),
            wait_reason: job.state.wait_reason().map(|reason| reason.as_str().to_owned()),
            resume_movement: job.state.resume_movement().map(Text::keep),
            result: keep(result),
            movement: Text::keep(&job.movement),
            waiting_on: spell(&job.waiting_on),
            children: spell(&job.children),
            confirmations: spell(&job.confirmations),
            memory: Text::keep(&job.memory),
            priority: job.priority.into(),
            attempts: job.attempts.into(),
            run_at: job.run_at.0,
            due_at,
            fence: job.fence,
            created_at: job.created_at.0,
            updated_at: job.updated_at.0,
            version: job.version,
        }
    }
}

impl JobRow {
    /// What the row means.
    pub(in crate::storage) fn read(self) -> Result<Job, StoreError> {
        let site = Site::new("job", &self.id);
        let status = site.need(JobStatus::parse(&self.status), "status")?;
        let resume_movement = site.maybe_text(self.resume_movement, "resume_movement")?;
        let result = site.maybe_text(self.result, "result")?;
        let state = match status {
            JobStatus::Queued => JobState::Queued,
            JobStatus::Running => {
                let worker = site.need(self.worker, "worker")?;
                JobState::Running(Lease {
                    worker: WorkerId::parse(&worker).map_err(|_| site.fault("worker"))?,
                    until: UtcMillis(site.need(self.lease_until, "lease_until")?),
                    fence: self.fence,
                })
            }
            JobStatus::WaitingHuman => {
                let reason = site.need(self.wait_reason, "wait_reason")?;
                JobState::WaitingHuman {
                    reason: site.need(WaitReason::parse(&reason), "wait_reason")?,
                    resume_movement: site.need(resume_movement, "resume_movement")?,
                }
            }
            JobStatus::WaitingSubtasks => JobState::WaitingSubtasks {
                resume_movement: site.need(resume_movement, "resume_movement")?,
            },
            JobStatus::Completed => JobState::Completed {
                result: site.need(result, "result")?,
            },
            JobStatus::Aborted => JobState::Aborted {
                result: site.need(result, "result")?,
            },
            JobStatus::Cancelled => JobState::Cancelled,
            JobStatus::Error => JobState::Error {
                error: site.need(result, "result")?,
            },
        };
        Ok(Job {
            id: JobId::parse(&self.id).map_err(|_| site.fault("id"))?,
            org: Org(site.text(self.org, "org")?),
            token: TokenName(site.text(self.token, "token")?),
            piece: site.text(self.piece, "piece")?,
            input: site.text(self.input, "input")?,
            agent_id: site.maybe_text(self.agent_id, "agent_id")?,
            session_id: site.maybe_text(self.session_id, "session_id")?,
            requester: site.maybe_text(self.requester, "requester")?,
            persons: site.json(&self.persons, "persons")?,
            parent: self
                .parent
                .map(|parent| JobId::parse(&parent).map_err(|_| site.fault("parent")))
                .transpose()?,
            state,
            movement: site.text(self.movement, "movement")?,
            waiting_on: site.json(&self.waiting_on, "waiting_on")?,
            children: site.json(&self.children, "children")?,
            confirmations: site.json(&self.confirmations, "confirmations")?,
            memory: site.text(self.memory, "memory")?,
            priority: site.count(self.priority, "priority")?,
            attempts: site.count(self.attempts, "attempts")?,
            run_at: UtcMillis(self.run_at),
            fence: self.fence,
            created_at: UtcMillis(self.created_at),
            updated_at: UtcMillis(self.updated_at),
            version: self.version,
        })
    }
}

row! {
    /// A row of `outbox`.
    OutboxRow in "outbox" {
        id: String,
        confirmation: Option<String>,
        channel: Text,
        card: Option<String>,
        errand: String,
        attempts: i64,
        not_before: i64,
        worker: Option<String>,
        lease_until: Option<i64>,
        due_at: i64,
        fence: i64,
        created_at: i64,
    }
}

impl From<&OutboxItem> for OutboxRow {
    fn from(item: &OutboxItem) -> Self {
        let lease = item.lease.as_ref();
        Self {
            id: item.id.as_str().to_owned(),
            confirmation: item.confirmation.as_ref().map(|id| id.as_str().to_owned()),
            channel: Text::keep(item.channel.as_str()),
            card: match &item.errand {
                Errand::Card { delivery, .. } => Some(delivery.as_str().to_owned()),
                Errand::Notice { .. }
                | Errand::Whisper { .. }
                | Errand::View { .. }
                | Errand::Line { .. }
                | Errand::Escalate { .. } => None,
            },
            errand: spell(&item.errand),
            attempts: item.attempts.into(),
            not_before: item.not_before.0,
            worker: lease.map(|(worker, _)| worker.as_str().to_owned()),
            lease_until: lease.map(|(_, until)| until.0),
            due_at: lease
                .map_or(item.not_before, |(_, until)| item.not_before.max(*until))
                .0,
            fence: item.fence,
            created_at: item.created_at.0,
        }
    }
}

impl OutboxRow {
    /// What the row means.
    pub(in crate::storage) fn read(self) -> Result<OutboxItem, StoreError> {
        let site = Site::new("outbox", &self.id);
        let lease = match (self.worker, self.lease_until) {
            (None, None) => None,
            (Some(worker), Some(until)) => Some((
                WorkerId::parse(&worker).map_err(|_| site.fault("worker"))?,
                UtcMillis(until),
            )),
            (Some(_), None) | (None, Some(_)) => return Err(site.fault("half a lease")),
        };
        Ok(OutboxItem {
            id: OutboxId::parse(&self.id).map_err(|_| site.fault("id"))?,
            confirmation: self
                .confirmation
                .map(|id| ConfirmationId::parse(&id).map_err(|_| site.fault("confirmation")))
                .transpose()?,
            channel: ChannelName(site.text(self.channel, "channel")?),
            errand: site.json(&self.errand, "errand")?,
            attempts: site.count(self.attempts, "attempts")?,
            not_before: UtcMillis(self.not_before),
            lease,
            fence: self.fence,
            created_at: UtcMillis(self.created_at),
        })
    }
}

/// A change of a job, with the version that it was read at.
#[derive(Debug, serde::Serialize)]
pub(in crate::storage) struct JobChange {
    stored: i64,
    #[serde(flatten)]
    row: JobRow,
}

impl JobChange {
    pub(in crate::storage) fn of(job: &Job, stored: i64) -> Self {
        Self {
            stored,
            row: JobRow::from(job),
        }
    }
}
