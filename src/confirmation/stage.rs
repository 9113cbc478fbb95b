//! Stages: groups of people who are asked one after the other. A vote counts for the stage in which it was cast, and nobody
//! counts in two. A rule without stages has one.

use std::collections::BTreeSet;

use gatepost_channel::{Decision, UtcMillis};

use super::roll::{Right, Roll};
use super::{Confirmation, Progress, Vote, step_up};
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

    /// In whose places this person of the organisation may answer in it at this instant, unless it is that of somebody barred:
    /// see [`Roll::seats`].
    pub fn seats(
        &self,
        roll: &Roll,
        person: &OperatorId,
        org: &Org,
        at: UtcMillis,
        barred: &[OperatorId],
    ) -> Vec<Option<OperatorId>> {
        let lists = self.lists();
        let right = Right {
            org,
            lists: &lists,
            at,
            barred,
        };
        roll.seats(person, right)
    }

    /// Whether this person could answer in it at this instant, in that place.
    pub fn entitles(
        &self,
        roll: &Roll,
        (person, acting_for): (&OperatorId, Option<&OperatorId>),
        org: &Org,
        at: UtcMillis,
        barred: &[OperatorId],
    ) -> bool {
        let lists = self.lists();
        let right = Right {
            org,
            lists: &lists,
            at,
            barred,
        };
        roll.holds(person, acting_for, right)
    }

    fn lists(&self) -> Vec<&Approvers> {
        [self.approvers].into_iter().chain(self.also).collect()
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
    at(terms, progress.stage)
}

/// The stage at this place.
pub fn at(terms: &Terms, place: u32) -> Current<'_> {
    each(terms)
        .nth(usize::try_from(place).unwrap_or(usize::MAX))
        .unwrap_or_else(|| whole(terms, place, place.saturating_add(1)))
}

/// How far votes lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached<'a> {
    /// The names of the stages that have their approvals, others being asked after them.
    pub passed: Vec<&'a str>,
    /// The place of the stage that has not, or of the last.
    pub at: u32,
    /// Whether the last one has its approvals too.
    pub all: bool,
}

/// How far these votes lead from the stage that people vote in. Who edits in a later stage has voted in it before those who are asked
/// earlier, so more than one stage may be passed at once.
pub fn reached<'a>(votes: &[Vote], row: &'a Confirmation, roll: &Roll) -> Reached<'a> {
    let mut passed = Vec::new();
    let terms = row.in_force();
    let mut stage = current(&terms, &row.progress);
    let mut taken = Taken::default();
    for earlier in each(&terms).filter(|earlier| earlier.at < stage.at) {
        taken.approvals(votes, &earlier, row, roll);
    }
    loop {
        let enough = taken.approvals(votes, &stage, row, roll) >= stage.quorum;
        if !enough || stage.is_last() {
            return Reached {
                passed,
                at: stage.at,
                all: enough,
            };
        }
        passed.push(at(&row.terms, stage.at).name.unwrap_or_default());
        stage = at(&terms, stage.at + 1);
    }
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

/// The roles that let people answer in some stage.
pub fn roles(terms: &Terms) -> BTreeSet<String> {
    let lists = each(terms).flat_map(|stage| [stage.approvers].into_iter().chain(stage.also));
    lists.flat_map(|list| list.roles.iter().cloned()).collect()
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

/// How many persons said this in this stage and had the right to, as the roll knows it now for the instant of their vote. Of
/// those who approve in one person's place, one counts, and nobody counts in two places.
pub fn standing(
    votes: &[Vote],
    decision: Decision,
    stage: &Current<'_>,
    row: &Confirmation,
    roll: &Roll,
) -> u32 {
    if decision == Decision::Approve {
        return Taken::default().approvals(votes, stage, row, roll);
    }
    let counts = |vote: &&Vote| {
        let who = (&vote.person, vote.content.acting_for.as_ref());
        vote.decision == decision
            && vote.content.stage == stage.at
            && stage.entitles(roll, who, &row.org, vote.at, &[])
    };
    let counted = votes.iter().filter(counts);
    let persons: BTreeSet<_> = counted.map(|vote| roll.person(&vote.person)).collect();
    u32::try_from(persons.len()).unwrap_or(u32::MAX)
}

/// Whose approvals were counted, from stage to stage. Votes of several ids may turn out to be one person's: only the first of
/// them counts.
#[derive(Default)]
struct Taken<'a> {
    persons: BTreeSet<&'a OperatorId>,
    seats: BTreeSet<&'a OperatorId>,
}

impl<'a> Taken<'a> {
    /// How many approve in this stage who were not counted before.
    fn approvals(
        &mut self,
        votes: &'a [Vote],
        stage: &Current<'_>,
        row: &Confirmation,
        roll: &'a Roll,
    ) -> u32 {
        let counts = |vote: &&Vote| {
            let who = (&vote.person, vote.content.acting_for.as_ref());
            vote.decision == Decision::Approve
                && vote.content.stage == stage.at
                && stage.entitles(roll, who, &row.org, vote.at, row.barred())
                && step_up::is_met(vote, stage, row, roll)
        };
        votes.iter().filter(counts).fold(0_u32, |count, vote| {
            let (person, seat) = (roll.person(&vote.person), roll.person(vote.seat()));
            let free = !self.persons.contains(person) && !self.seats.contains(seat);
            if free {
                self.persons.insert(person);
                self.seats.insert(seat);
            }
            count.saturating_add(u32::from(free))
        })
    }
}

/// How many persons reject, whatever the stage in which they did, and had the right to.
pub fn rejections(votes: &[Vote], row: &Confirmation, roll: &Roll) -> u32 {
    each(&row.in_force()).fold(0, |sum, stage| {
        sum.saturating_add(standing(votes, Decision::Reject, &stage, row, roll))
    })
}

/// Whether every stage has its approvals, by people who had the right to give them and none of whom is counted twice.
pub fn all_approve(votes: &[Vote], row: &Confirmation, roll: &Roll) -> bool {
    let mut taken = Taken::default();
    each(&row.in_force()).all(|stage| taken.approvals(votes, &stage, row, roll) >= stage.quorum)
}
