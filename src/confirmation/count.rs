//! Counting: what votes lead to. They pass a stage, settle the request, or wait for more.

use gatepost_channel::Decision;

use super::decide::{Ballot, Decide, Refusal, Ruling};
use super::settle::{refresh_cards, settle};
use super::{Permit, State, edit, grant, stage};
use crate::audit::{Actor, Draft};
use crate::ids::{ConfirmationId, GrantId, OperatorId};
use crate::storage::Workspace;

/// Whether the votes that stand lead further than they did when they were counted. Two people who are known by look-ups only and
/// answer in the same instant are each judged without the other; whoever of them presses again finds both.
pub(super) fn leads_on(workspace: &Workspace, id: &ConfirmationId, answer: &Decide) -> bool {
    let (Some(row), Ballot::Person(person)) = (workspace.confirmation(id), &answer.ballot) else {
        return false;
    };
    let votes = edit::standing(workspace.votes(id), &row.progress);
    let mut own = votes
        .iter()
        .filter(|vote| answer.roll.is_same(&vote.person, person));
    if answer.edit.is_some() || !own.any(|vote| vote.decision == answer.decision) {
        return false;
    }
    match answer.decision {
        Decision::Approve => {
            let reached = stage::reached(&votes, row, &answer.roll);
            reached.all || !reached.passed.is_empty()
        }
        Decision::Reject => stage::rejections(&votes, row, &answer.roll) >= row.terms.deny_threshold.max(1),
    }
}

/// What the votes lead to, the last of which this person has just cast with their answer. A grant that comes of them gets this id.
pub(super) fn count(
    workspace: &mut Workspace,
    id: &ConfirmationId,
    answer: &Decide,
    (person, grant_id): (OperatorId, Option<GrantId>),
) -> Ruling {
    let now = workspace.now();
    // Persons count, not clicks; and only those who may still decide.
    let Some(row) = workspace.confirmation(id) else {
        return Ruling::Refused(Refusal::NotFound);
    };
    let votes = edit::standing(workspace.votes(id), &row.progress);
    let end = match answer.decision {
        Decision::Approve => {
            let reached = stage::reached(&votes, row, &answer.roll);
            let (at, all, any_passed) = (reached.at, reached.all, !reached.passed.is_empty());
            let passed = reached.passed.into_iter().map(|name| {
                let mut draft = Draft::new(&row.org, "stage.passed", Actor::System)
                    .about(id)
                    .with("stage", name);
                draft.job.clone_from(&row.asked.job);
                draft
            });
            for draft in passed.collect::<Vec<_>>() {
                workspace.audit(draft);
            }
            if !all {
                workspace.change_confirmation(id, |row| {
                    row.progress.stage = at;
                    // Others are asked from here on: what stands on the cards was for those who were asked before.
                    row.revision += u32::from(any_passed);
                    row.edition += 1;
                });
                refresh_cards(workspace, id);
                return Ruling::Counted;
            }
            State::Approved {
                at: now,
                permit: Permit::Open,
            }
        }
        Decision::Reject => {
            if stage::rejections(&votes, row, &answer.roll) < row.terms.deny_threshold.max(1) {
                workspace.change_confirmation(id, |row| row.edition += 1);
                refresh_cards(workspace, id);
                return Ruling::Counted;
            }
            State::Rejected { at: now }
        }
    };
    let approved = matches!(end, State::Approved { .. });
    settle(workspace, id, end, Actor::Operator(person.0.clone()));
    if let Some(grant) = grant_id.filter(|_| approved) {
        grant::make(workspace, id, grant, Actor::Operator(person.0));
    }
    Ruling::Settled
}

#[cfg(test)]
#[path = "crossed_tests.rs"]
mod tests;
