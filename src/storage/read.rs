//! The reading side of the store: questions that change nothing, answered by connections that cannot write.

use async_trait::async_trait;
use gatepost_channel::UtcMillis;

use super::{StoreError, TokenHash};
use crate::audit::{ChainHead, Event};
use crate::confirmation::grant::Grant;
use crate::confirmation::{Dossier, Status};
use crate::ids::{ChannelName, ConfirmationId, JobId, Org, TokenName};
use crate::job::{Job, JobStatus};

/// One page of a list, newest first for requests and jobs, oldest first for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Where the next page starts; `None` at the end. Opaque to callers, checked by the store.
    pub next_cursor: Option<String>,
}

/// Which requests. `None` and empty mean any.
#[derive(Debug, Clone, Default)]
pub struct ConfirmationFilter {
    /// Only of these organisations.
    pub orgs: Vec<Org>,
    /// Only in one of these states.
    pub status: Vec<Status>,
    /// Only of this tool, exactly.
    pub tool: Option<String>,
    /// Only of this agent id.
    pub agent: Option<String>,
    /// Only asked by this token.
    pub token: Option<TokenName>,
    /// Only of this requester, as asserted.
    pub requester: Option<String>,
    /// Only with a vote of this operator.
    pub operator: Option<String>,
    /// Only with a card on this channel.
    pub channel: Option<ChannelName>,
    /// Only of this job.
    pub job: Option<JobId>,
    /// Created at or after.
    pub since: Option<UtcMillis>,
    /// Created before.
    pub until: Option<UtcMillis>,
    /// Only with an id that begins so; `cr_` and hex digits, anything else finds nothing.
    pub id_prefix: Option<String>,
    /// Contained in tool, rule, reason, requester or id; taken literally, without case for ASCII.
    pub q: Option<String>,
    /// Decided before this instant, parked on by a job, and not resumed.
    pub stuck_since: Option<UtcMillis>,
    /// Only those that one person approved past everybody else.
    pub break_glass: bool,
    /// At most so many; the store caps it at 200.
    pub limit: usize,
    /// From the last page.
    pub cursor: Option<String>,
}

/// Which audit events. `None` and empty mean any.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Only of these organisations.
    pub orgs: Vec<Org>,
    /// Only of these kinds.
    pub kind: Vec<String>,
    /// Only of this actor.
    pub actor: Option<String>,
    /// Only about this request.
    pub confirmation: Option<ConfirmationId>,
    /// Only about this job.
    pub job: Option<JobId>,
    /// Only on this channel.
    pub channel: Option<String>,
    /// At or after.
    pub since: Option<UtcMillis>,
    /// Before.
    pub until: Option<UtcMillis>,
    /// At most so many; the store caps it at 1,000.
    pub limit: usize,
    /// From the last page.
    pub cursor: Option<String>,
}

/// Which jobs. `None` and empty mean any.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// Only of these organisations.
    pub orgs: Vec<Org>,
    /// Only submitted by this token.
    pub token: Option<TokenName>,
    /// Only in one of these states.
    pub status: Vec<JobStatus>,
    /// At most so many; the store caps it at 200.
    pub limit: usize,
    /// From the last page.
    pub cursor: Option<String>,
}

/// Which grants. `None` and empty mean any.
#[derive(Debug, Clone, Default)]
pub struct GrantFilter {
    /// Only of these organisations.
    pub orgs: Vec<Org>,
    /// Only those that have not ended.
    pub live: bool,
    /// Only those that have not ended and whose time passed by this instant.
    pub due_at: Option<UtcMillis>,
    /// At most so many; the store caps it at 256.
    pub limit: usize,
    /// From the last page.
    pub cursor: Option<String>,
}

/// A question could not be answered.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// The cursor is not one that the store gave out.
    #[error("the cursor is not one of ours")]
    BadCursor,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Counts for the metrics and the health page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Undecided requests.
    pub pending: u64,
    /// When the oldest undecided request was created.
    pub oldest_pending: Option<UtcMillis>,
    /// Decided requests whose job did not resume yet.
    pub unresumed: u64,
    /// Outbox rows.
    pub outbox: u64,
    /// Jobs by status word.
    pub jobs: Vec<(String, u64)>,
}

/// The questions. Implemented by each backend over a pool that cannot write.
#[async_trait]
pub trait Read: Send + Sync {
    /// A request with everything that belongs to it.
    async fn dossier(&self, id: &ConfirmationId) -> Result<Option<Dossier>, StoreError>;
    /// The request whose card carries a button of this token.
    async fn dossier_of_button(&self, token: &TokenHash) -> Result<Option<Dossier>, StoreError>;
    /// A page of requests.
    async fn confirmations(&self, filter: &ConfirmationFilter) -> Result<Page<Dossier>, ReadError>;
    /// A job.
    async fn job(&self, id: &JobId) -> Result<Option<Job>, StoreError>;
    /// A page of jobs.
    async fn jobs(&self, filter: &JobFilter) -> Result<Page<Job>, ReadError>;
    /// A page of grants.
    async fn grants(&self, filter: &GrantFilter) -> Result<Page<Grant>, ReadError>;
    /// A page of audit events with what is kept beside them, in order of organisation and `seq`.
    async fn audit(&self, filter: &AuditFilter) -> Result<Page<Event>, ReadError>;
    /// The chain heads.
    async fn heads(&self) -> Result<Vec<ChainHead>, StoreError>;
    /// The next deadline of an undecided request, for the sweeper's timer.
    async fn next_deadline(&self) -> Result<Option<UtcMillis>, StoreError>;
    /// When the next outbox row becomes due.
    async fn next_outbox(&self) -> Result<Option<UtcMillis>, StoreError>;
    /// Counts for the metrics.
    async fn counts(&self) -> Result<Counts, StoreError>;
    /// The store's clock.
    async fn now(&self) -> Result<UtcMillis, StoreError>;
    /// Whether the database answers and its schema is the one this program knows.
    async fn ready(&self) -> Result<(), StoreError>;
}
