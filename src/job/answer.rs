//! Answering: somebody gives a parked run what it asked for. Waits that are decided through their request are not answered here.

use std::sync::Arc;

use crate::audit::{Actor, Draft, Opening};
use crate::confirmation::roll::Roll;
use crate::ids::{ConfirmationId, JobId, Org};
use crate::storage::{Touches, Transaction, Workspace};

use super::cancel::By;
use super::{Job, JobState, WaitReason};

/// The call was carried out: that is put on record, and it is not sent again.
const DONE: &str = "done";
/// The call was not carried out: it is sent again under its permit.
const NOT_DONE: &str = "not_done";

/// What is said to the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Words: for `user_input` and `browser_login`.
    Words(String),
    /// Whether the call with the unknown outcome was carried out.
    Outcome {
        /// `done` or `not_done`.
        done: bool,
    },
}

/// A question that a parked run asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Unique within the job: every time that something is asked has its own, so that an answer meets the question that was
    /// shown or none.
    pub id: String,
    /// In words for people.
    pub text: String,
    /// The request behind the call that is asked about, when people approved it.
    pub request: Option<ConfirmationId>,
}

/// A reply that a memory took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The memory with the reply in it.
    pub memory: String,
    /// The question that it answered.
    pub question: Question,
}

/// Why a memory takes no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotHeard {
    /// Nothing of this kind is asked.
    #[error("the job's memory holds no open question")]
    NoQuestion,
    /// The question that the reply names is not open (any more).
    #[error("the question is not open")]
    Closed,
    /// `not_done` names no question, and an outcome was asked for before: it may be the answer to that, told again or late.
    #[error("it cannot be told which question is meant")]
    Ambiguous,
}

/// Puts a reply to the question of this id into a memory. The agent room's, handed in: the job room does not read memories.
pub type Hear = fn(memory: &str, reply: &Reply, question: Option<&str>) -> Result<Heard, NotHeard>;

/// Answers a job.
#[derive(Clone)]
pub struct Answer {
    /// The job.
    pub job: JobId,
    /// The caller's organisation.
    pub org: Org,
    /// Who answers: an operator, or the job's own token for `user_input` only.
    pub by: By,
    /// What is said. For `outcome_unknown` it is `done` or `not_done`.
    pub answer: Opening,
    /// The question that was shown to whoever answers. It may be left out where only one can be meant.
    pub question: Option<String>,
    /// Puts it into the memory.
    pub hear: Hear,
    /// The job's requests as it was read before.
    pub confirmations: Vec<ConfirmationId>,
    /// Who may decide, as the configuration has it now.
    pub roll: Arc<Roll>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// The job goes on.
    Done(Box<Job>),
    /// Its wait is decided through its confirmation request.
    DecidedByRequest,
    /// It does not wait for an answer.
    NotWaiting,
    /// The question that is named is not open, or no longer.
    Closed,
    /// No question is named, and it cannot be told which one is meant.
    Ambiguous,
    /// Only an operator may answer this.
    NotAllowed,
    /// The answer lets an approved call be sent again, and this person may not approve it.
    NotADecider,
    /// The answer is none of those that this wait takes.
    NotAnAnswer,
    /// There is no such job for this caller.
    NotFound,
}

impl Transaction for Answer {
    type Answer = Answered;
    const NAME: &'static str = "answer_job";

    fn touches(&self, touches: &mut Touches) {
        touches.jobs.insert(self.job.clone());
        touches.confirmations.extend(self.confirmations.iter().cloned());
    }

    fn apply(&self, workspace: &mut Workspace) -> Answered {
        let Some(job) = workspace
            .job(&self.job)
            .filter(|job| self.by.sees(&self.org, job))
        else {
            return Answered::NotFound;
        };
        let JobState::WaitingHuman {
            reason,
            resume_movement,
        } = &job.state
        else {
            return Answered::NotWaiting;
        };
        if reason.is_decided_by_request() {
            return Answered::DecidedByRequest;
        }
        if matches!(self.by, By::Token(_)) && *reason != WaitReason::UserInput {
            return Answered::NotAllowed;
        }
        let Some(reply) = self.reply(*reason) else {
            return Answered::NotAnAnswer;
        };
        let Heard { memory, question } = match (self.hear)(&job.memory, &reply, self.question.as_deref()) {
            Ok(heard) => heard,
            Err(NotHeard::NoQuestion) => return Answered::NotWaiting,
            Err(NotHeard::Closed) => return Answered::Closed,
            Err(NotHeard::Ambiguous) => return Answered::Ambiguous,
        };
        if reply == (Reply::Outcome { done: false }) && !self.may_send_again(workspace, &question) {
            return Answered::NotADecider;
        }
        let (org, movement, reason) = (job.org.clone(), resume_movement.clone(), reason.as_str());
        let now = workspace.now();
        workspace.change_job(&self.job, |job| {
            job.memory = memory;
            job.movement = movement;
            job.state = JobState::Queued;
            job.waiting_on.clear();
            job.run_at = now;
            job.attempts = 0;
            job.updated_at = now;
        });
        let mut draft = Draft::new(&org, "job.answered", self.by.actor())
            .of_job(&self.job)
            .with("reason", reason)
            .with("question_id", question.id)
            .with_private("answer", Some(self.answer.clone()));
        if let Reply::Outcome { done } = reply {
            draft = draft.with("outcome", if done { DONE } else { NOT_DONE });
            draft.confirmation = question.request;
        }
        workspace.audit(draft);
        workspace.audit(Draft::new(&org, "job.resumed", Actor::System).of_job(&self.job));
        workspace
            .job(&self.job)
            .map_or(Answered::NotFound, |job| Answered::Done(Box::new(job.clone())))
    }
}

impl Answer {
    /// `not_done` lets a call go out a second time under its permit. That is as much as an approval: it takes a person who may
    /// give one. A request that is not here was not looked at, and nobody may. A call that policy allowed needed nobody, so that
    /// any operator of the organisation may say what became of it.
    fn may_send_again(&self, workspace: &Workspace, question: &Question) -> bool {
        let By::Operator(person) = &self.by else {
            return false;
        };
        question.request.as_ref().is_none_or(|id| {
            workspace.confirmation(id).is_some_and(|row| {
                let under_way = row.state.consumed().is_some() && row.ledger.outcome.is_none();
                let themselves = row.asked.persons.contains(person) && !row.terms.self_approval;
                let may_decide = self
                    .roll
                    .may_decide(person, &row.org, &row.in_force(), workspace.now());
                under_way && !themselves && may_decide
            })
        })
    }

    fn reply(&self, reason: WaitReason) -> Option<Reply> {
        let text = self.answer.value.trim();
        match (reason, text) {
            (WaitReason::OutcomeUnknown, DONE) => Some(Reply::Outcome { done: true }),
            (WaitReason::OutcomeUnknown, NOT_DONE) => Some(Reply::Outcome { done: false }),
            (WaitReason::OutcomeUnknown, _) | (_, "") => None,
            (_, words) => Some(Reply::Words(words.to_owned())),
        }
    }
}
