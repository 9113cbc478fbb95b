//! Casting a vote that counts: who may cast it was found before, and what the votes of the request lead to is counted behind it.

use super::count::{count, leads_on};
use super::decide::{Ballot, Decide, Refusal, Ruling, Target};
use super::edit::{self, Revised};
use super::step_up::{self, Second, Step};
use super::{Account, Vote, VoteContent, expire, stage};
use crate::audit::{Actor, Draft, Opening};
use crate::gate::grant::GrantScope;
use crate::ids::{ChannelName, ConfirmationId, DeliveryId, GrantId, OperatorId};
use crate::storage::Workspace;
use gatepost_channel::Decision;

/// What a person may do with their answer.
pub(super) struct Allowed<'a> {
    pub(super) person: OperatorId,
    /// In whose place they answer.
    pub(super) acting_for: Option<OperatorId>,
    /// The grant that they ask for.
    pub(super) wished: Option<GrantScope>,
    /// The arguments in place of those that stand.
    pub(super) edit: Option<&'a Revised>,
    /// The person has approved before, and is here to confirm somebody else's approval.
    pub(super) voted: bool,
}

/// A vote, before it is written down.
pub(super) struct Cast {
    pub(super) person: OperatorId,
    pub(super) acting_for: Option<OperatorId>,
    /// The stage in which it is cast. An edit has all of them asked again, and the vote stands where its person is asked.
    pub(super) stage: u32,
    pub(super) decision: Decision,
    pub(super) channel: Option<ChannelName>,
    /// The account through which it comes.
    pub(super) account: Option<Account>,
    pub(super) surface: String,
    pub(super) reason: Option<Opening>,
    pub(super) wished: Option<GrantScope>,
    /// The id that the grant gets if this vote makes it.
    pub(super) grant_id: Option<GrantId>,
    /// The person gave a one-time code for it.
    pub(super) code: bool,
    /// Who confirmed it.
    pub(super) second: Option<Second>,
}

impl Decide {
    /// The person's own vote in this stage, without anything that backs it.
    pub(super) fn own(&self, allowed: &Allowed<'_>, stage: u32) -> Cast {
        Cast {
            person: allowed.person.clone(),
            acting_for: allowed.acting_for.clone(),
            stage,
            decision: self.decision,
            channel: self.channel(),
            account: self.insight.account.clone(),
            surface: self.surface.as_str().to_owned(),
            reason: self.reason.clone(),
            wished: allowed.wished,
            grant_id: self.grant.as_ref().map(|wish| wish.id.clone()),
            code: false,
            second: None,
        }
    }

    pub(super) fn vote(
        &self,
        workspace: &mut Workspace,
        id: &ConfirmationId,
        card: Option<&DeliveryId>,
    ) -> Ruling {
        let refuse = |workspace: &mut Workspace, refusal: Refusal| {
            if refusal == Refusal::Expired {
                expire::expire(workspace, id);
            }
            if refusal == Refusal::AlreadyVoted
                && let Ballot::Person(person) = &self.ballot
                && leads_on(workspace, id, self)
            {
                let grant = self.grant.as_ref().map(|wish| wish.id.clone());
                return count(workspace, id, self, (person.clone(), grant));
            }
            // Where a form for the words opens, asking for them is no refusal.
            let asks_back = matches!(&self.target, Target::Card(clicked) if clicked.asks_back);
            if !(asks_back && refusal == Refusal::ReasonRequired) {
                self.audit_refusal(workspace, Some(id), refusal.as_str());
            }
            Ruling::Refused(refusal)
        };
        let allowed = match self.may_vote(workspace, id, card) {
            Ok(allowed) => allowed,
            Err(refusal) => return refuse(workspace, refusal),
        };
        step_up::lapse(workspace, id);
        let Some(row) = workspace.confirmation(id) else {
            return refuse(workspace, Refusal::NotFound);
        };
        // A vote stands in the stage in which it was cast; an edit has all of them asked again.
        let stage = row.progress.stage;
        if self.decision == Decision::Approve && !row.terms.decision.step_up.is_none() {
            return match self.step_up(workspace, id, &allowed) {
                Ok(Step::Cast(cast)) => self.cast(workspace, id, *cast),
                Ok(Step::Armed(waiting)) => Ruling::Armed(waiting),
                Err(refusal) => refuse(workspace, refusal),
            };
        }
        if let Some(revised) = allowed.edit {
            edit::adopt(workspace, id, &allowed.person, revised);
        }
        self.cast(workspace, id, self.own(&allowed, stage))
    }

    fn cast(&self, workspace: &mut Workspace, id: &ConfirmationId, cast: Cast) -> Ruling {
        let now = workspace.now();
        let Some(row) = workspace.confirmation(id) else {
            return Ruling::Refused(Refusal::NotFound);
        };
        let (org, job, edit) = (row.org.clone(), row.asked.job.clone(), row.call().edit);
        let mut draft = Draft::new(&org, "vote.cast", Actor::Operator(cast.person.0.clone()))
            .about(id)
            .with("decision", cast.decision.as_str())
            .with("surface", cast.surface.as_str())
            .with_private("reason", cast.reason.clone())
            .with_some("grant", cast.wished.map(|scope| scope.to_string()))
            .with_some("stage", stage::at(&row.in_force(), cast.stage).name)
            .with_some("acting_for", cast.acting_for.as_ref().map(OperatorId::as_str))
            .with_some("code", cast.code.then_some(true))
            .with_some(
                "confirmed_by",
                cast.second.as_ref().map(|second| second.person.as_str()),
            )
            .with_some("edit", (edit > 0).then_some(edit))
            .with_some("set", self.set().map(|set| set.to_string()));
        draft.job = job;
        draft.channel = cast.channel.as_ref().map(|channel| channel.0.clone());
        workspace.audit(draft);
        let (person, grant_id) = (cast.person.clone(), cast.grant_id);
        let vote = Vote {
            person: cast.person,
            decision: cast.decision,
            channel: cast.channel,
            surface: cast.surface,
            reason: cast.reason.map(|reason| reason.value),
            at: now,
            content: VoteContent {
                stage: cast.stage,
                grant: cast.wished,
                acting_for: cast.acting_for,
                edit,
                code: cast.code,
                second: cast.second,
                account: cast.account,
            },
        };
        workspace.insert_vote(id, vote);
        workspace.change_confirmation(id, |row| row.progress.armed.retain(|arm| arm.person != person));
        count(workspace, id, self, (person, grant_id))
    }
}
