//! Step-up: under a rule that asks for it an Approve only arms. It counts nothing until the person gives a one-time code where
//! only they are, or a second person approves as well; it lapses by itself. A Reject never needs any of it.

use std::time::Duration;

use gatepost_channel::{Decision, UtcMillis};
use serde::{Deserialize, Serialize};

use super::cast::{Allowed, Cast};
use super::decide::{Decide, Refusal};
use super::roll::Roll;
use super::settle::refresh_cards;
use super::{Account, Confirmation, Vote, edit, proof, stage};
use crate::audit::{Actor, Draft, Opening};
use crate::clock::rfc3339;
use crate::gate::authority::StepUp;
use crate::gate::decision::says_something;
use crate::gate::grant::GrantScope;
use crate::ids::{ChannelName, ConfirmationId, GrantId, OperatorId};
use crate::storage::Workspace;

/// How long an armed approval waits for what completes it.
pub const ARMED_FOR: Duration = Duration::from_mins(5);

/// An approval that counts nothing yet. One person has one at most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// Who approves.
    pub person: OperatorId,
    /// In whose place: that of somebody away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acting_for: Option<OperatorId>,
    /// In which stage, from 0.
    #[serde(default)]
    pub stage: u32,
    /// For which edit of the arguments; 0 is what was proposed.
    #[serde(default)]
    pub edit: u32,
    /// When it lapses.
    pub until: UtcMillis,
    /// Whether the person has given their code, so that only a second person is missing.
    #[serde(default)]
    pub coded: bool,
    /// Where it was armed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelName>,
    /// The account through which it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
    /// Through what.
    pub surface: String,
    /// Why, in the person's words, with the salt of the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Opening>,
    /// The grant that is asked for with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantScope>,
    /// The id of that grant if what completes the approval makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<GrantId>,
}

/// Who confirmed somebody else's approval. It is no vote of theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Who.
    pub person: OperatorId,
    /// In whose place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acting_for: Option<OperatorId>,
    /// Whether they gave their code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub code: bool,
    /// The account through which they did, which is asked about again when the permit is consumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

/// What an armed approval waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// The person's one-time code.
    Code,
    /// Somebody else who may approve.
    SecondPerson,
}

impl Waiting {
    /// The stable word of the audit log, of the replay memory and of replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::SecondPerson => "second_person",
        }
    }
}

impl Arm {
    /// Whose place it takes.
    fn seat(&self) -> &OperatorId {
        self.acting_for.as_ref().unwrap_or(&self.person)
    }

    /// Whether it still waits for anything: what it is about stands, its stage has not passed.
    pub fn is_about(&self, row: &Confirmation) -> bool {
        self.edit == row.call().edit && self.stage >= row.progress.stage
    }

    /// What it waits for.
    pub const fn waits_for(&self, step: StepUp) -> Waiting {
        if step.code && !self.coded {
            Waiting::Code
        } else {
            Waiting::SecondPerson
        }
    }
}

/// What came of an approval under such a rule.
pub(super) enum Step {
    /// It counts nothing yet.
    Armed(Waiting),
    /// This vote counts: the person's own, or the armed one that they confirmed.
    Cast(Box<Cast>),
}

/// Whether what the vote carries is what the rule asks for, as the roll knows it now for the instant of the vote.
pub(super) fn is_met(vote: &Vote, stage: &stage::Current<'_>, row: &Confirmation, roll: &Roll) -> bool {
    let step = row.terms.decision.step_up;
    let second = || {
        vote.content.second.as_ref().is_some_and(|second| {
            let who = (&second.person, second.acting_for.as_ref());
            let seat = second.acting_for.as_ref().unwrap_or(&second.person);
            let behind = |person: &OperatorId| row.barred().iter().any(|other| roll.is_same(other, person));
            !roll.is_same(&second.person, &vote.person)
                && !roll.is_same(seat, vote.seat())
                && (second.code || !step.code)
                && !behind(&second.person)
                && stage.entitles(roll, who, &row.org, vote.at, row.barred())
        })
    };
    (vote.content.code || !step.code) && (!step.second_person || second())
}

/// Takes away what has lapsed, or was armed in a stage that has passed or for arguments that somebody has changed since.
pub(super) fn lapse(workspace: &mut Workspace, id: &ConfirmationId) {
    let now = workspace.now();
    let Some(row) = workspace.confirmation(id) else {
        return;
    };
    let gone = |row: &Confirmation, arm: &Arm| arm.until <= now || !arm.is_about(row);
    let lapsed: Vec<_> = row
        .progress
        .armed
        .iter()
        .filter(|arm| gone(row, arm))
        .map(|arm| arm.person.clone())
        .collect();
    if lapsed.is_empty() {
        return;
    }
    let (org, job) = (row.org.clone(), row.asked.job.clone());
    for person in lapsed {
        let mut draft = Draft::new(&org, "vote.lapsed", Actor::System)
            .about(id)
            .with("operator", person.as_str());
        draft.job.clone_from(&job);
        workspace.audit(draft);
    }
    workspace.change_confirmation(id, |row| {
        let mut armed = std::mem::take(&mut row.progress.armed);
        armed.retain(|arm| !gone(row, arm));
        row.progress.armed = armed;
        row.edition += 1;
    });
    refresh_cards(workspace, id);
}

/// Whether an approval of somebody else waits for a second person.
pub(super) fn somebody_waits(row: &Confirmation, person: &OperatorId, roll: &Roll, now: UtcMillis) -> bool {
    let step = row.terms.decision.step_up;
    let waits = |arm: &Arm| {
        !roll.is_same(&arm.person, person)
            && arm.until > now
            && arm.is_about(row)
            && arm.waits_for(step) == Waiting::SecondPerson
    };
    step.second_person && row.progress.armed.iter().any(waits)
}

/// The grant that is asked for, and the id that it gets.
type AskedFor = (Option<GrantScope>, Option<GrantId>);

/// Puts the arguments in place that come with an approval, whether it counts at once or is armed: from here on this is what people
/// vote on, and what was armed before was for something else.
fn adopt(workspace: &mut Workspace, id: &ConfirmationId, allowed: &Allowed<'_>) {
    if let Some(revised) = allowed.edit {
        edit::adopt(workspace, id, &allowed.person, revised);
        lapse(workspace, id);
    }
}

impl Decide {
    /// Approves under a rule that asks for more than a press. What has lapsed is gone already.
    pub(super) fn step_up(
        &self,
        workspace: &mut Workspace,
        id: &ConfirmationId,
        allowed: &Allowed<'_>,
    ) -> Result<Step, Refusal> {
        let row = workspace.confirmation(id).ok_or(Refusal::NotFound)?;
        let step = row.terms.decision.step_up;
        let stage = row.progress.stage;
        let person = &allowed.person;
        // What was armed before an edit was for something else.
        let mine = row
            .progress
            .armed
            .iter()
            .filter(|_| allowed.edit.is_none())
            .find(|arm| self.roll.is_same(&arm.person, person))
            .cloned();
        let other = self.confirmable(workspace, row, allowed).cloned();
        let reason = self
            .reason
            .clone()
            .or_else(|| mine.as_ref().and_then(|arm| arm.reason.clone()));
        let grant = match &mine {
            // It may have been asked for with another of the acts, as the reason is given.
            Some(arm) if allowed.wished.is_none() => (arm.grant, arm.grant_id.clone()),
            _ => (allowed.wished, self.grant.as_ref().map(|wish| wish.id.clone())),
        };
        let said = |reason: &Opening| says_something(&reason.value);
        if other.is_none()
            && row.terms.decision.require_reason.of(Decision::Approve)
            && !reason.as_ref().is_some_and(said)
        {
            return Err(Refusal::ReasonRequired);
        }
        if step.code {
            match &self.backing.code {
                Some(code) => proof::prove(workspace, &self.roll, person, code)?,
                None if self.roll.code_key(person).is_none() => return Err(Refusal::CodeNotSetUp),
                // Where a code can be given, a press without one is a slip; and who has voted has nothing to arm.
                None if !self.surface.is_chat() || allowed.voted => return Err(Refusal::CodeRequired),
                None if mine.is_some() => return Err(Refusal::AlreadyArmed),
                None => {
                    adopt(workspace, id, allowed);
                    let backing = (reason, grant, false, Waiting::Code);
                    self.arm(workspace, id, allowed, stage, backing);
                    return Ok(Step::Armed(Waiting::Code));
                }
            }
        }
        adopt(workspace, id, allowed);
        if !step.second_person {
            let (wished, grant_id) = grant;
            return Ok(Step::Cast(Box::new(Cast {
                code: step.code,
                reason,
                wished,
                grant_id,
                ..self.own(allowed, stage)
            })));
        }
        if let Some(arm) = other {
            self.confirmed(workspace, id, allowed, &arm);
            let (wished, grant_id) = grant;
            let wished = arm.grant.filter(|scope| wished == Some(*scope));
            return Ok(Step::Cast(Box::new(Cast {
                person: arm.person,
                acting_for: arm.acting_for,
                stage: arm.stage,
                decision: Decision::Approve,
                channel: arm.channel,
                account: arm.account,
                surface: arm.surface,
                reason: arm.reason,
                wished,
                grant_id,
                code: arm.coded,
                second: Some(Second {
                    person: person.clone(),
                    acting_for: allowed.acting_for.clone(),
                    code: step.code,
                    account: self.insight.account.clone(),
                }),
            })));
        }
        if allowed.voted {
            return Err(Refusal::AlreadyVoted);
        }
        if mine.is_some_and(|arm| arm.waits_for(step) == Waiting::SecondPerson) {
            return Err(Refusal::AlreadyArmed);
        }
        self.arm(
            workspace,
            id,
            allowed,
            stage,
            (reason, grant, step.code, Waiting::SecondPerson),
        );
        Ok(Step::Armed(Waiting::SecondPerson))
    }

    /// The armed approval that this person would confirm: the first of another person and place that lacks nothing else, by
    /// somebody who may still give it.
    fn confirmable<'a>(
        &self,
        workspace: &Workspace,
        row: &'a Confirmation,
        allowed: &Allowed<'_>,
    ) -> Option<&'a Arm> {
        let step = row.terms.decision.step_up;
        let seat = allowed.acting_for.as_ref().unwrap_or(&allowed.person);
        let votes = edit::standing(workspace.votes(&row.id), &row.progress);
        let now = workspace.now();
        let ours = (&allowed.person, allowed.acting_for.as_ref());
        let same = |one: &OperatorId, other: &OperatorId| self.roll.is_same(one, other);
        let behind = self.behind(row, &allowed.person).ok()?;
        let mut arms = row
            .progress
            .armed
            .iter()
            .filter(|_| step.second_person && allowed.edit.is_none());
        arms.find(|arm| {
            let terms = row.in_force();
            let stage = stage::at(&terms, arm.stage);
            let may = |who| stage.entitles(&self.roll, who, &row.org, now, &behind);
            let taken = |vote: &Vote| same(&vote.person, &arm.person) || same(vote.seat(), arm.seat());
            !same(&arm.person, &allowed.person)
                && !same(arm.seat(), seat)
                && arm.is_about(row)
                && arm.waits_for(step) == Waiting::SecondPerson
                && !votes.iter().any(taken)
                && !behind.iter().any(|other| same(other, &arm.person))
                && may((&arm.person, arm.acting_for.as_ref()))
                && may(ours)
        })
    }

    fn arm(
        &self,
        workspace: &mut Workspace,
        id: &ConfirmationId,
        allowed: &Allowed<'_>,
        stage: u32,
        (reason, (grant, grant_id), coded, waiting): (Option<Opening>, AskedFor, bool, Waiting),
    ) {
        let until = workspace.now().plus(ARMED_FOR);
        let Some(row) = workspace.confirmation(id) else {
            return;
        };
        let arm = Arm {
            person: allowed.person.clone(),
            acting_for: allowed.acting_for.clone(),
            stage,
            edit: row.call().edit,
            until,
            coded,
            channel: self.channel(),
            account: self.insight.account.clone(),
            surface: self.surface.as_str().to_owned(),
            reason,
            grant,
            grant_id,
        };
        let mut draft = Draft::new(&row.org, "vote.armed", Actor::Operator(arm.person.0.clone()))
            .about(id)
            .with("surface", self.surface.as_str())
            .with("waits_for", waiting.as_str())
            .with("until", rfc3339(until));
        if let Some(absent) = &arm.acting_for {
            draft = draft.with("acting_for", absent.as_str());
        }
        draft.job.clone_from(&row.asked.job);
        draft.channel = arm.channel.as_ref().map(|channel| channel.0.clone());
        workspace.audit(draft);
        workspace.change_confirmation(id, |row| {
            let before = &mut row.progress.armed;
            before.retain(|before| !self.roll.is_same(&before.person, &arm.person));
            row.progress.armed.push(arm);
            row.edition += 1;
        });
        refresh_cards(workspace, id);
    }

    /// Writes down who confirmed whose approval.
    fn confirmed(&self, workspace: &mut Workspace, id: &ConfirmationId, allowed: &Allowed<'_>, arm: &Arm) {
        let Some(row) = workspace.confirmation(id) else {
            return;
        };
        let mut draft = Draft::new(
            &row.org,
            "vote.confirmed",
            Actor::Operator(allowed.person.0.clone()),
        )
        .about(id)
        .with("operator", arm.person.as_str())
        .with("surface", self.surface.as_str())
        .with_private("reason", self.reason.clone());
        if let Some(absent) = &allowed.acting_for {
            draft = draft.with("acting_for", absent.as_str());
        }
        draft.job.clone_from(&row.asked.job);
        draft.channel = self.channel().map(|channel| channel.0);
        workspace.audit(draft);
    }
}
