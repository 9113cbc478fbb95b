//! The difference that a batch made, as sets to write, in the order in which they are written. This file must not know SQL.

use serde::Serialize;

use super::rows::grant::{GrantChange, GrantRow};
use super::rows::log::{EventRow, HeadRow, ReplayMemory, TallyRow};
use super::rows::note::NoteRow;
use super::rows::request::{ConfirmationChange, ConfirmationRow, DeliveryRow, VoteRow};
use super::rows::spell;
use super::rows::work::{JobChange, JobRow, OutboxRow};
use super::{Changes, StoreError};

/// What is done with a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    InsertJobs,
    InsertConfirmations,
    ChangeConfirmations,
    ChangeJobs,
    InsertVotes,
    InsertDeliveries,
    ChangeDeliveries,
    PutOutbox,
    RemoveOutbox,
    InsertReplays,
    InsertGrants,
    ChangeGrants,
    PutTallies,
    PutNotes,
    InsertEvents,
    MoveHeads,
}

impl Step {
    /// All of them, in the order in which they are written.
    pub(super) const ALL: [Self; 16] = [
        Self::InsertJobs,
        Self::InsertConfirmations,
        Self::ChangeConfirmations,
        Self::ChangeJobs,
        Self::InsertVotes,
        Self::InsertDeliveries,
        Self::ChangeDeliveries,
        Self::PutOutbox,
        Self::RemoveOutbox,
        Self::InsertReplays,
        Self::InsertGrants,
        Self::ChangeGrants,
        Self::PutTallies,
        Self::PutNotes,
        Self::InsertEvents,
        Self::MoveHeads,
    ];

    /// Whether a row may be missed, so that what was reached must be counted. All others put what is new, or fail.
    pub(super) const fn may_miss(self) -> bool {
        matches!(
            self,
            Self::ChangeConfirmations | Self::ChangeJobs | Self::ChangeDeliveries
        )
    }
}

/// One set: a JSON array with one element for each row.
#[derive(Debug)]
pub(super) struct Put {
    pub(super) step: Step,
    pub(super) set: String,
    pub(super) rows: usize,
}

impl Put {
    /// Every row must have been reached: a change that does not find its row fails the whole. Only removing is no fault when
    /// the row is gone already.
    pub(super) fn check(&self, reached: u64) -> Result<(), StoreError> {
        let wanted = u64::try_from(self.rows).unwrap_or(u64::MAX);
        if reached == wanted || self.step == Step::RemoveOutbox {
            return Ok(());
        }
        Err(StoreError::Database(format!(
            "{:?} reached {reached} of {wanted} rows",
            self.step
        )))
    }
}

/// The sets that are not empty. What others refer to comes first.
pub(super) fn puts(changes: &Changes) -> Vec<Put> {
    let jobs: Vec<_> = changes.new_jobs.iter().map(JobRow::from).collect();
    let requests: Vec<_> = changes
        .new_confirmations
        .iter()
        .map(ConfirmationRow::from)
        .collect();
    let settled: Vec<_> = changes
        .changed_confirmations
        .iter()
        .map(ConfirmationChange::from)
        .collect();
    let moved = changes
        .changed_jobs
        .iter()
        .map(|(job, stored)| JobChange::of(job, *stored));
    let votes = changes.new_votes.iter().map(|(id, vote)| VoteRow::of(id, vote));
    let cards = changes
        .new_deliveries
        .iter()
        .map(|(id, card)| DeliveryRow::of(id, card));
    let shown = changes
        .changed_deliveries
        .iter()
        .map(|(id, card)| DeliveryRow::of(id, card));
    let outbox: Vec<_> = changes.outbox.iter().map(OutboxRow::from).collect();
    let replays: Vec<_> = changes.new_replays.iter().map(ReplayMemory::from).collect();
    let grants: Vec<_> = changes.new_grants.iter().map(GrantRow::from).collect();
    let used = changes
        .changed_grants
        .iter()
        .map(|(grant, stored)| GrantChange::of(grant, *stored));
    let tallies: Vec<_> = changes.tallies.iter().map(TallyRow::from).collect();
    let notes: Vec<_> = changes.notes.iter().map(NoteRow::from).collect();
    let events: Vec<_> = changes.events.iter().map(EventRow::from).collect();
    let heads: Vec<_> = changes.heads.iter().map(HeadRow::from).collect();
    [
        put(Step::InsertJobs, &jobs),
        put(Step::InsertConfirmations, &requests),
        put(Step::ChangeConfirmations, &settled),
        put(Step::ChangeJobs, &moved.collect::<Vec<_>>()),
        put(Step::InsertVotes, &votes.collect::<Vec<_>>()),
        put(Step::InsertDeliveries, &cards.collect::<Vec<_>>()),
        put(Step::ChangeDeliveries, &shown.collect::<Vec<_>>()),
        put(Step::PutOutbox, &outbox),
        put(Step::RemoveOutbox, &changes.removed_outbox),
        put(Step::InsertReplays, &replays),
        put(Step::InsertGrants, &grants),
        put(Step::ChangeGrants, &used.collect::<Vec<_>>()),
        put(Step::PutTallies, &tallies),
        put(Step::PutNotes, &notes),
        put(Step::InsertEvents, &events),
        put(Step::MoveHeads, &heads),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn put<R: Serialize>(step: Step, rows: &[R]) -> Option<Put> {
    (!rows.is_empty()).then(|| Put {
        step,
        set: spell(rows),
        rows: rows.len(),
    })
}
