//! Consuming: the only way from an approval to an execution. Once, for exactly the approved call, in time, by who asked.

use std::sync::Arc;
use std::time::Duration;

use gatepost_channel::UtcMillis;

use crate::audit::{Actor, Draft};
use crate::gate::Digest;
use crate::gate::grant::GrantTerms;
use crate::ids::{ConfirmationId, GrantId, PermitId, TokenName};
use crate::storage::{Touches, Transaction, Workspace};

use super::roll::Roll;
use super::settle::refresh_cards_within;
use super::{Basis, Permit, State, Status, break_glass, edit, grant, stage};

/// How long cards may take to show that a call runs.
const SHOW_THAT_IT_RUNS: Duration = Duration::from_secs(2);

/// Asks for the permit of an approved call.
#[derive(Debug, Clone)]
pub struct Consume {
    /// The request.
    pub id: ConfirmationId,
    /// Who asks: only the token that asked for the confirmation.
    pub token: TokenName,
    /// Over the call that is about to run: as it was approved, or as it was proposed by who has not heard of an edit.
    pub digest: Digest,
    /// Over the call about which policy was asked once more.
    pub judged: Digest,
    /// The permit's id, used when it is granted.
    pub permit: PermitId,
    /// Who may decide, as the configuration has it now: an approval by somebody who no longer may does not count.
    pub roll: Arc<Roll>,
    /// The rule that denies the call by now, if one does.
    pub denied_by: Option<String>,
    /// The grant that approved it, if one did.
    pub grant: Option<GrantId>,
    /// What today's rule of the call offers as grants.
    pub offered: Option<GrantTerms>,
}

/// The right to execute, just consumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// Handed to the tool as the idempotency key.
    pub permit: PermitId,
    /// Over what may run.
    pub digest: Digest,
    /// What may run: the stored arguments in canonical form, as people approved them.
    pub args: String,
    /// Which edit of the arguments that is; 0 when they are as they were proposed.
    pub edit: u32,
    /// Until when it may be begun.
    pub expires_at: UtcMillis,
}

/// Why there is no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotGranted {
    /// There is no such request of this token.
    NotFound,
    /// It is not approved.
    NotApproved(Status),
    /// The call is not the one that was approved; the permit stays usable.
    ArgsChanged,
    /// The permit was used before.
    AlreadyConsumed,
    /// The permit is too old.
    PermitExpired,
    /// Too few of the voters may still decide.
    NotAuthorised,
    /// Whether they may could not be looked up; the permit stays usable.
    LookUpFailed,
    /// A rule denies the call by now.
    DeniedByRule,
}

impl NotGranted {
    /// The stable word of the audit log and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::NotApproved(_) => "not_approved",
            Self::ArgsChanged => "args_changed",
            Self::AlreadyConsumed => "already_consumed",
            Self::PermitExpired => "permit_expired",
            Self::NotAuthorised => "not_authorised",
            Self::LookUpFailed => "look_up_failed",
            Self::DeniedByRule => "denied_by_rule",
        }
    }
}

impl Transaction for Consume {
    type Answer = Result<Granted, NotGranted>;
    const NAME: &'static str = "consume";

    fn touches(&self, touches: &mut Touches) {
        touches.confirmations.insert(self.id.clone());
        touches.grants.extend(self.grant.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> Self::Answer {
        consume(workspace, self)
    }
}

/// The consumption itself, for transactions that do more beside it (resuming a job).
pub fn consume(workspace: &mut Workspace, request: &Consume) -> Result<Granted, NotGranted> {
    let judged = judge(workspace, request);
    let Some(row) = workspace.confirmation(&request.id) else {
        return Err(NotGranted::NotFound);
    };
    if judged == Err(NotGranted::NotFound) {
        return Err(NotGranted::NotFound);
    }
    let kind = if judged.is_ok() {
        "permit.consumed"
    } else {
        "permit.refused"
    };
    let mut draft = Draft::new(&row.org, kind, Actor::Token(request.token.0.clone())).about(&request.id);
    draft.job.clone_from(&row.asked.job);
    let draft = match &judged {
        Ok(granted) if granted.edit > 0 => draft
            .with("permit", granted.permit.as_str())
            .with("edit", granted.edit),
        Ok(granted) => draft.with("permit", granted.permit.as_str()),
        Err(why) => draft.with("reason", why.as_str()),
    };
    workspace.audit(draft);
    if judged.is_ok() {
        let now = workspace.now();
        workspace.change_confirmation(&request.id, |row| {
            if let State::Approved { permit, .. } = &mut row.state {
                *permit = Permit::Consumed {
                    id: request.permit.clone(),
                    at: now,
                };
            }
            row.ledger.resumed_at = Some(now);
            row.edition += 1;
        });
        // Most calls end soon, and then one edit shows both.
        refresh_cards_within(workspace, &request.id, SHOW_THAT_IT_RUNS);
    }
    judged
}

fn judge(workspace: &Workspace, request: &Consume) -> Result<Granted, NotGranted> {
    let row = workspace.confirmation(&request.id).ok_or(NotGranted::NotFound)?;
    if row.asked.token != request.token {
        return Err(NotGranted::NotFound);
    }
    let State::Approved { at, permit } = &row.state else {
        return Err(NotGranted::NotApproved(row.state.status()));
    };
    if matches!(permit, Permit::Consumed { .. }) {
        return Err(NotGranted::AlreadyConsumed);
    }
    if !row.is_about(&request.digest) {
        return Err(NotGranted::ArgsChanged);
    }
    let call = row.call();
    if request.judged != call.digest {
        // The request was approved with an edit after policy had looked at it: as it looked, it was still open.
        return Err(NotGranted::NotApproved(Status::Pending));
    }
    let expires_at = UtcMillis(at.0.saturating_add(row.terms.permit_ttl_ms));
    if workspace.now() >= expires_at {
        return Err(NotGranted::PermitExpired);
    }
    if request.denied_by.is_some() {
        return Err(NotGranted::DeniedByRule);
    }
    let backed = |roll: &Roll| match &row.progress.basis {
        None => {
            let votes = edit::standing(workspace.votes(&request.id), &row.progress);
            stage::all_approve(&votes, row, roll)
        }
        Some(Basis::BreakGlass(broken)) => break_glass::still_stands(row, broken, roll),
        Some(Basis::Grant(id)) => grant::still_stands(workspace, id, row, request.offered.as_ref(), roll),
    };
    if !backed(&request.roll) {
        let perhaps = request.roll.hopeful().is_some_and(|roll| backed(&roll));
        return Err(if perhaps {
            NotGranted::LookUpFailed
        } else {
            NotGranted::NotAuthorised
        });
    }
    Ok(Granted {
        permit: request.permit.clone(),
        digest: call.digest,
        args: call.args.to_owned(),
        edit: call.edit,
        expires_at,
    })
}
