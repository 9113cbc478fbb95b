//! Break-glass: one person whom the rule names for it approves alone, past quorum, stages and approvers, with a reason in words. It
//! lifts nothing else, is bounded in number, and everybody who was passed over is told in the same transaction.

use gatepost_channel::{Decision, UtcMillis};
use serde::{Deserialize, Serialize};

use super::decide::{Ballot, Decide, Refusal, Ruling, Target};
use super::edit::EditRefusal;
use super::roll::{Right, Roll};
use super::settle::settle;
use super::{Basis, Confirmation, Permit, State, Status, edit, proof};
use crate::audit::{Actor, Draft, Opening};
use crate::delivery::{Errand, OutboxItem};
use crate::gate::authority::BreakGlass;
use crate::gate::decision::says_something;
use crate::gate::policy::Approvers;
use crate::ids::{ChannelName, ConfirmationId, OperatorId, Org, OutboxId, TokenName};
use crate::storage::{Mark, Tally, TallyKey, Workspace};

/// That somebody breaks the glass, with what the transaction needs for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glass {
    /// The rule under which it is counted, as it was read before; another rule is not looked at.
    pub rule: Option<String>,
    /// What everybody who could be passed over is told, where they can be told anything.
    pub notices: Vec<GlassNotice>,
}

/// What one person is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlassNotice {
    /// The row's id.
    pub id: OutboxId,
    /// Whom.
    pub person: OperatorId,
    /// Through which channel.
    pub channel: ChannelName,
    /// How and what: own words, and the reason, which is shown as text.
    pub errand: Errand,
}

/// Who broke the glass: what decided the request instead of votes. Stored with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// Who.
    pub person: OperatorId,
    /// When.
    pub at: UtcMillis,
    /// Through what.
    pub surface: String,
    /// Why, in their words; untrusted.
    pub reason: String,
    /// Whether they gave their one-time code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub code: bool,
    /// Who may have voted and had not approved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<OperatorId>,
}

/// Counts the uses under one rule.
pub fn uses(org: &Org, rule: Option<&str>) -> TallyKey {
    TallyKey {
        org: org.clone(),
        counter: "break_glass".to_owned(),
        scope: rule.unwrap_or_default().to_owned(),
        token: TokenName(String::new()),
        person: String::new(),
    }
}

/// Whether the rule lets this person do it: by a right of their own at that instant, never in somebody's place.
pub fn may_break(roll: &Roll, person: &OperatorId, org: &Org, glass: &BreakGlass, at: UtcMillis) -> bool {
    let lists: Vec<&Approvers> = glass.lists.iter().collect();
    let right = Right {
        org,
        lists: &lists,
        at,
        barred: &[],
    };
    roll.holds(person, None, right)
}

/// Whether a request that was approved so may still run: whoever did had the right to, as the roll knows it now for that instant,
/// does not stand behind the call, and gave what the rule asks for.
pub fn still_stands(row: &Confirmation, broken: &Broken, roll: &Roll) -> bool {
    let terms = &row.terms.decision;
    terms.break_glass.as_ref().is_some_and(|glass| {
        may_break(roll, &broken.person, &row.org, glass, broken.at)
            && !row
                .barred()
                .iter()
                .any(|other| roll.is_same(other, &broken.person))
            && (broken.code || !terms.step_up.code)
            && says_something(&broken.reason)
    })
}

impl Decide {
    /// Breaks the glass, or tells why not.
    pub(super) fn break_glass(
        &self,
        workspace: &mut Workspace,
        id: &ConfirmationId,
        glass: &Glass,
    ) -> Ruling {
        let broken = match self.may_break_glass(workspace, id, glass) {
            Ok(broken) => broken,
            Err(refusal) => {
                if refusal == Refusal::Expired {
                    super::expire::expire(workspace, id);
                }
                self.audit_refusal(workspace, Some(id), refusal.as_str());
                return Ruling::Refused(refusal);
            }
        };
        let now = workspace.now();
        let Some(row) = workspace.confirmation(id) else {
            return Ruling::Refused(Refusal::NotFound);
        };
        let (org, job) = (row.org.clone(), row.asked.job.clone());
        let actor = Actor::Operator(broken.person.0.clone());
        let passed_over: Vec<String> = broken.passed_over.iter().map(|person| person.0.clone()).collect();
        let mut draft = Draft::new(&org, "confirmation.break_glass", actor.clone())
            .about(id)
            .with("surface", self.surface.as_str())
            .with("passed_over", passed_over)
            .with_private("reason", self.reason.clone());
        if let Some(rule) = &row.rule {
            draft = draft.with("rule", rule.as_str());
        }
        draft.job.clone_from(&job);
        workspace.audit(draft);
        for notice in glass
            .notices
            .iter()
            .filter(|notice| broken.passed_over.contains(&notice.person))
        {
            workspace.put_outbox(OutboxItem {
                id: notice.id.clone(),
                confirmation: Some(id.clone()),
                channel: notice.channel.clone(),
                errand: notice.errand.clone(),
                attempts: 0,
                not_before: now,
                lease: None,
                fence: 0,
                created_at: now,
            });
        }
        workspace.change_confirmation(id, |row| {
            row.progress.basis = Some(Basis::BreakGlass(Box::new(broken)));
        });
        let approved = State::Approved {
            at: now,
            permit: Permit::Open,
        };
        settle(workspace, id, approved, actor);
        Ruling::Settled
    }

    fn may_break_glass(
        &self,
        workspace: &mut Workspace,
        id: &ConfirmationId,
        act: &Glass,
    ) -> Result<Broken, Refusal> {
        let now = workspace.now();
        let row = workspace.confirmation(id).ok_or(Refusal::NotFound)?;
        let person = match &self.ballot {
            Ballot::Person(person) => person.clone(),
            Ballot::Stranger(_) => return Err(Refusal::UnknownOperator),
            Ballot::Foreigner(_) => return Err(Refusal::ForeignTenant),
            Ballot::Kept(_, refusal) => return Err(*refusal),
        };
        let glass = row.terms.decision.break_glass.clone();
        // Never by a press: whoever does it has named the request, and says why.
        let named = matches!(self.target, Target::Request { .. });
        let glass = glass.filter(|_| named && self.decision == Decision::Approve && row.rule == act.rule);
        let glass = glass.ok_or(Refusal::BreakGlassNotOffered)?;
        if !may_break(&self.roll, &person, &row.org, &glass, now) {
            return Err(Refusal::NotAuthorised);
        }
        match row.state.status() {
            Status::Pending if now < row.expires_at => {}
            Status::Pending | Status::Expired => return Err(Refusal::Expired),
            _ => return Err(Refusal::AlreadySettled),
        }
        self.behind(row, &person)?;
        if self.edit.is_some() {
            return Err(Refusal::Edit(EditRefusal::NotOffered));
        }
        if self.seen.unwrap_or_default() != row.call().edit {
            return Err(Refusal::EditUnseen);
        }
        let votes = edit::standing(workspace.votes(id), &row.progress);
        if votes
            .iter()
            .any(|vote| self.roll.is_same(&vote.person, &person) && vote.decision == Decision::Reject)
        {
            // A person's first vote stands.
            return Err(Refusal::AlreadyVoted);
        }
        if self.grant.is_some() {
            return Err(Refusal::GrantNotOffered);
        }
        let said = |reason: &&Opening| says_something(&reason.value);
        let reason = self
            .reason
            .as_ref()
            .filter(said)
            .ok_or(Refusal::ReasonRequired)?
            .value
            .clone();
        let approved: Vec<_> = votes
            .iter()
            .filter(|vote| vote.decision == Decision::Approve)
            .map(|vote| vote.person.clone())
            .collect();
        let passed_over = self
            .roll
            .deciders(&row.org, &row.in_force(), now)
            .map(|voter| voter.id.clone())
            .filter(|decider| {
                let same = |other: &OperatorId| self.roll.is_same(other, decider);
                !same(&person) && !approved.iter().any(same)
            })
            .collect();
        let key = uses(&row.org, row.rule.as_deref());
        let code = row.terms.decision.step_up.code;
        let marks = workspace.tally(&key).map_or(&[][..], |tally| &tally.marks);
        let recent = |mark: &&Mark| now.0.saturating_sub(mark.last.0) < glass.per_ms;
        let mut marks: Vec<Mark> = marks.iter().filter(recent).copied().collect();
        let used = marks
            .iter()
            .fold(0_u64, |sum, mark| sum.saturating_add(mark.count));
        if used >= u64::from(glass.uses) {
            return Err(Refusal::BreakGlassUsedUp);
        }
        if code {
            // It replaces the other people, not the proof of who this one is.
            let given = self.backing.code.as_ref();
            let set_up = self.roll.code_key(&person).is_some();
            let missing = if set_up {
                Refusal::CodeRequired
            } else {
                Refusal::CodeNotSetUp
            };
            proof::prove(workspace, &self.roll, &person, given.ok_or(missing)?)?;
        }
        marks.push(Mark {
            first: now,
            last: now,
            count: 1,
        });
        workspace.put_tally(Tally {
            key,
            marks,
            forget_at: UtcMillis(now.0.saturating_add(glass.per_ms)),
        });
        Ok(Broken {
            person,
            at: now,
            surface: self.surface.as_str().to_owned(),
            reason,
            code,
            passed_over,
        })
    }
}
