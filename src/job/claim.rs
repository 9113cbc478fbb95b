//! Claiming: a worker takes jobs that may run. The attempt is written when it begins, so that a job that kills its worker is
//! counted all the same.

use std::collections::BTreeMap;
use std::time::Duration;

use gatepost_channel::UtcMillis;

use crate::audit::{Actor, Draft};
use crate::ids::{ConfirmationId, JobId, TokenName, WorkerId};
use crate::storage::{Touches, Transaction, Workspace};

use super::{Job, JobState, Lease};

/// Claims without progress before a job is given up.
pub const MAX_ATTEMPTS: u32 = 3;

/// How many jobs beyond the limit are looked at when some agents may be at theirs.
const LOOK_AHEAD: usize = 256;

/// Whose a job is, for the limit on jobs of one agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Agent {
    /// The token that submitted it.
    pub token: TokenName,
    /// The agent that it names; a token may stand for several.
    pub agent_id: Option<String>,
}

impl Agent {
    /// Of this job.
    pub fn of(job: &Job) -> Self {
        Self {
            token: job.token.clone(),
            agent_id: job.agent_id.clone(),
        }
    }
}

/// Takes jobs.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Who takes them.
    pub worker: WorkerId,
    /// For how long, unless a heartbeat comes.
    pub lease: Duration,
    /// At most so many.
    pub limit: usize,
    /// What this worker runs at the moment: never taken from itself, even when a step of the clock made its leases look old.
    pub holding: BTreeMap<JobId, Agent>,
    /// At most so many jobs of one agent at the same time in this process; no limit when `None`.
    pub per_agent: Option<usize>,
}

/// What a claim found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claimed {
    /// To be run.
    pub jobs: Vec<Job>,
    /// Tried often enough: to be given up, with [`GiveUp`](super::give_up::GiveUp).
    pub spent: Vec<Spent>,
}

/// A job that was tried often enough, and what must be touched to end it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    /// The job.
    pub id: JobId,
    /// Its requests.
    pub confirmations: Vec<ConfirmationId>,
    /// The job that waits for it.
    pub parent: Option<JobId>,
    /// What it began.
    pub children: Vec<JobId>,
}

impl Transaction for Claim {
    type Answer = Claimed;
    const NAME: &'static str = "claim_jobs";

    fn touches(&self, touches: &mut Touches) {
        let ahead = self.per_agent.map_or(0, |_| LOOK_AHEAD);
        touches.runnable_jobs = touches.runnable_jobs.saturating_add(self.limit + ahead);
    }

    fn apply(&self, workspace: &mut Workspace) -> Claimed {
        let now = workspace.now();
        let mut claimed = Claimed::default();
        let mut running = BTreeMap::<Agent, usize>::new();
        for agent in self.holding.values() {
            *running.entry(agent.clone()).or_default() += 1;
        }
        for id in workspace.runnable_jobs().to_vec() {
            if claimed.jobs.len() == self.limit {
                break;
            }
            let Some(job) = workspace.job(&id) else { continue };
            if !is_runnable(job, now) || self.holding.contains_key(&id) {
                continue;
            }
            if job.attempts >= MAX_ATTEMPTS {
                claimed.spent.push(Spent {
                    id: job.id.clone(),
                    confirmations: job.confirmations.clone(),
                    parent: job.parent.clone(),
                    children: job.children.clone(),
                });
                continue;
            }
            let at_once = running.entry(Agent::of(job)).or_default();
            if self.per_agent.is_some_and(|most| *at_once >= most) {
                continue;
            }
            *at_once += 1;
            if let JobState::Running(lease) = &job.state {
                let draft = Draft::new(&job.org, "job.reclaimed", Actor::System)
                    .of_job(&id)
                    .with("worker", lease.worker.as_str())
                    .with("attempts", job.attempts);
                workspace.audit(draft);
            }
            workspace.change_job(&id, |job| {
                job.fence += 1;
                job.attempts += 1;
                job.updated_at = now;
                job.state = JobState::Running(Lease {
                    worker: self.worker.clone(),
                    until: now.plus(self.lease),
                    fence: job.fence,
                });
            });
            claimed.jobs.extend(workspace.job(&id).cloned());
        }
        claimed
    }
}

/// Whether a worker may take the job now.
pub(super) fn is_runnable(job: &Job, now: UtcMillis) -> bool {
    match &job.state {
        JobState::Queued => job.run_at <= now,
        JobState::Running(lease) => lease.until <= now,
        _ => false,
    }
}
