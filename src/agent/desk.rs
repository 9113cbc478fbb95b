//! The desk: what callers may do with jobs, whatever they come through. The API, the command line and the console use it.

use std::sync::Arc;

use super::memory::{self, Memory};
use super::piece::Pieces;
use crate::gatekeeper::{Caller, Gatekeeper};
use crate::ids::{JobId, OperatorId, Org};
use crate::job::answer::{Answer, Answered};
use crate::job::cancel::{By, Cancel, Cancelled};
use crate::job::submit::Submit;
use crate::job::view::JobView;
use crate::job::{Job, WaitReason};
use crate::storage::{JobFilter, Page, ReadError, StoreError};

/// The most bytes of a job's input.
pub const MAX_INPUT: usize = 256 * 1024;
/// The most characters of an answer; no more would be told to the model anyway.
pub const MAX_ANSWER: usize = super::tool::MAX_RESULT;
/// The most characters of an asserted name.
const MAX_NAME: usize = 256;

/// See the module. Clones share it.
#[derive(Clone)]
pub struct Desk {
    gatekeeper: Gatekeeper,
    pieces: Arc<Pieces>,
}

/// What somebody wants to be run.
#[derive(Debug, Clone, Default)]
pub struct Submission {
    /// The piece.
    pub piece: String,
    /// What it is given.
    pub input: String,
    /// Asserted by the caller.
    pub agent_id: Option<String>,
    /// Asserted by the caller.
    pub session_id: Option<String>,
    /// Asserted by the caller.
    pub requester: Option<String>,
}

/// A job was not taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NotSubmitted {
    /// There is no such piece.
    #[error("there is no piece of that name")]
    UnknownPiece,
    /// The token may not submit it.
    #[error("this token may not submit that piece")]
    NotAllowed,
    /// The input is too long, or an asserted name is.
    #[error("`{0}` is too long")]
    TooLong(&'static str),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Desk {
    /// A desk for jobs of these pieces.
    pub const fn new(gatekeeper: Gatekeeper, pieces: Arc<Pieces>) -> Self {
        Self { gatekeeper, pieces }
    }

    /// The pieces there are.
    pub fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    /// Takes a job. `allowed` are the pieces that the token may submit; `None` means all.
    pub async fn submit(
        &self,
        caller: &Caller,
        allowed: Option<&[String]>,
        submission: Submission,
    ) -> Result<Job, NotSubmitted> {
        if allowed.is_some_and(|names| !names.contains(&submission.piece)) {
            return Err(NotSubmitted::NotAllowed);
        }
        let piece = self
            .pieces
            .get(&submission.piece)
            .ok_or(NotSubmitted::UnknownPiece)?;
        if submission.input.len() > MAX_INPUT {
            return Err(NotSubmitted::TooLong("input"));
        }
        for (name, text) in [
            ("agent_id", &submission.agent_id),
            ("session_id", &submission.session_id),
            ("requester", &submission.requester),
        ] {
            if text
                .as_deref()
                .is_some_and(|text| text.chars().nth(MAX_NAME).is_some())
            {
                return Err(NotSubmitted::TooLong(name));
            }
        }
        let people = self.gatekeeper.people();
        let named = submission
            .requester
            .as_deref()
            .and_then(|requester| people.named(&caller.org, requester));
        let mut persons: Vec<OperatorId> = named.into_iter().chain(&caller.owner).cloned().collect();
        persons.sort();
        persons.dedup();
        let ids = &**self.gatekeeper.ids();
        let submit = Submit {
            id: JobId::fresh(ids),
            org: caller.org.clone(),
            token: caller.token.clone(),
            piece: piece.name.clone(),
            movement: piece.initial_movement.clone(),
            shown_input: self.gatekeeper.text(Some(&submission.input)),
            // A NUL in text is what some databases cannot keep.
            input: submission.input.replace('\0', "\u{FFFD}"),
            agent_id: submission.agent_id,
            session_id: submission.session_id,
            requester: submission.requester,
            persons,
            parent: None,
            priority: 0,
        };
        Ok(self.gatekeeper.store().run(submit).await?)
    }

    /// A job, if this caller may know of it.
    pub async fn job(&self, org: &Org, by: &By, id: &JobId) -> Result<Option<Job>, StoreError> {
        let job = self.gatekeeper.store().read().job(id).await?;
        Ok(job.filter(|job| by.sees(org, job)))
    }

    /// A page of the jobs that this caller may know of.
    pub async fn jobs(&self, org: &Org, by: &By, filter: JobFilter) -> Result<Page<Job>, ReadError> {
        let filter = JobFilter {
            orgs: vec![org.clone()],
            token: match by {
                By::Token(token) => Some(token.clone()),
                By::Operator(_) => filter.token,
            },
            ..filter
        };
        self.gatekeeper.store().read().jobs(&filter).await
    }

    /// Cancels a job.
    pub async fn cancel(&self, org: &Org, by: &By, id: &JobId) -> Result<Cancelled, StoreError> {
        let store = self.gatekeeper.store();
        loop {
            let Some(job) = self.job(org, by, id).await? else {
                return Ok(Cancelled::NotFound);
            };
            let cancel = Cancel {
                job: id.clone(),
                org: org.clone(),
                by: by.clone(),
                confirmations: job.confirmations,
                parent: job.parent,
            };
            // It asks at most a bounded number of times while it is read and cancelled.
            match store.run(cancel).await? {
                Cancelled::Moved => {}
                done => return Ok(done),
            }
        }
    }

    /// Answers what a parked job asked. Of a longer answer the first [`MAX_ANSWER`] characters count.
    pub async fn answer(&self, org: &Org, by: &By, id: &JobId, answer: &str) -> Result<Answered, StoreError> {
        let answer = Answer {
            job: id.clone(),
            org: org.clone(),
            by: by.clone(),
            answer: answer
                .replace('\0', "\u{FFFD}")
                .chars()
                .take(MAX_ANSWER)
                .collect(),
            shown: self.gatekeeper.text(Some(answer)),
            hear: memory::hear,
        };
        self.gatekeeper.store().run(answer).await
    }

    /// A job as callers see it, with its question when it waits for an answer.
    pub fn view(&self, job: &Job) -> JobView {
        let question = (job.state.wait_reason() == Some(WaitReason::UserInput))
            .then(|| Memory::read(&job.memory, "").ok())
            .flatten()
            .and_then(|memory| memory.question().map(str::to_owned));
        JobView {
            question,
            ..JobView::from(job)
        }
    }
}
