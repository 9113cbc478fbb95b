//! Stages: groups of people who are asked one after the other. A vote counts for the stage in which it was cast, and nobody
//! counts in two. A rule without stages has one.

use gatepost_channel::Decision;

use super::roll::Roll;
use super::{Progress, Vote};
use crate::gate::Terms;
use crate::gate::policy::Approvers;
use crate::ids::{OperatorId, Org};

/// Who is asked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Current<'a> {
    /// Its place, from 0.
    pub at: u32,
    /// How many there are.
    pub count: u32,
    /// Its name; nothing where a rule has no stages.
    pub name: Option<&'a str>,
    /// Who may answer.
    pub approvers: &'a Approvers,
    /// And must be among each of these.
    pub also: &'a [Approvers],
    /// Distinct persons needed.
    pub quorum: u32,
}

impl Current<'_> {
    /// Whether others are asked after it.
    pub const fn is_last(&self) -> bool {
        self.at + 1 >= self.count
    }

    /// Whether this person of the organisation may answer in it.
    pub fn may_answer(&self, roll: &Roll, person: &OperatorId, org: &Org) -> bool {
        let mut lists = [self.approvers].into_iter().chain(self.also);
        lists.all(|approvers| roll.is_among(person, org, approvers))
    }

    /// How many of these votes approve in this stage.
    pub fn approvals(&self, votes: &[Vote]) -> usize {
        votes
            .iter()
            .filter(|vote| vote.decision == Decision::Approve && vote.content.stage == self.at)
            .count()
    }
}

/// The stage that people vote in.
pub fn current<'a>(terms: &'a Terms, progress: &Progress) -> Current<'a> {
    each(terms)
        .nth(usize::try_from(progress.stage).unwrap_or(usize::MAX))
        .unwrap_or_else(|| whole(terms, progress.stage, progress.stage.saturating_add(1)))
}

/// All stages in order.
pub fn each(terms: &Terms) -> impl Iterator<Item = Current<'_>> {
    let stages = &terms.decision.stages;
    let count = u32::try_from(stages.len()).unwrap_or(u32::MAX);
    let named = (0..).zip(stages).map(move |(at, stage)| Current {
        at,
        count,
        name: Some(&stage.name),
        approvers: &stage.approvers,
        also: &terms.also,
        quorum: stage.quorum.max(1),
    });
    named.chain(stages.is_empty().then(|| whole(terms, 0, 1)))
}

/// Everybody at once.
fn whole(terms: &Terms, at: u32, count: u32) -> Current<'_> {
    Current {
        at,
        count,
        name: None,
        approvers: &terms.approvers,
        also: &terms.also,
        quorum: terms.quorum.max(1),
    }
}

/// How many persons said this in this stage and may still answer in it.
pub fn standing(votes: &[Vote], decision: Decision, stage: &Current<'_>, org: &Org, roll: &Roll) -> u32 {
    let counts = |vote: &&Vote| {
        vote.decision == decision
            && vote.content.stage == stage.at
            && stage.may_answer(roll, &vote.person, org)
    };
    u32::try_from(votes.iter().filter(counts).count()).unwrap_or(u32::MAX)
}

/// How many persons reject, whatever the stage in which they did, and may still answer in it.
pub fn rejections(votes: &[Vote], terms: &Terms, org: &Org, roll: &Roll) -> u32 {
    each(terms).fold(0, |sum, stage| {
        sum.saturating_add(standing(votes, Decision::Reject, &stage, org, roll))
    })
}

/// Whether every stage has its approvals, by people who may still give them.
pub fn all_approve(votes: &[Vote], terms: &Terms, org: &Org, roll: &Roll) -> bool {
    each(terms).all(|stage| standing(votes, Decision::Approve, &stage, org, roll) >= stage.quorum)
}
