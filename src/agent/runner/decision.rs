//! Taking decisions: what people said of the waiting calls, and the consumption of an approval.

use super::{Halt, Session, Stored, Then, denial, denied};
use crate::agent::engine::Event;
use crate::agent::sentinel::{LeadsTo, Sentinel};
use crate::agent::tool::mcp::CHANGED;
use crate::confirmation::consume::NotGranted;
use crate::confirmation::{Dossier, Permit, State, Status};
use crate::gate::DenyReason;
use crate::ids::ConfirmationId;
use crate::job::begin_call::{BeginCall, Begun, NotBegun};
use crate::job::park::Until;
use crate::job::worker::Ran;
use crate::job::{LostLease, WaitReason};

impl Session<'_> {
    /// Looks at the decisions. While one is open the job parks, and parking looks again under the requests' locks.
    pub(super) async fn look(
        &mut self,
        waiting: &[(usize, ConfirmationId)],
        sentinel: Sentinel,
    ) -> Result<Then, Halt> {
        let mut dossiers = Vec::with_capacity(waiting.len());
        for (_, id) in waiting {
            dossiers.push(self.store().read().dossier(id).await?);
        }
        let is_open = |dossier: &Dossier| dossier.confirmation.state.status() == Status::Pending;
        if dossiers.iter().flatten().any(is_open) {
            let until = Until::Decided {
                reason: match sentinel.leads_to() {
                    LeadsTo::People(reason) => reason,
                    LeadsTo::End | LeadsTo::Subtasks => WaitReason::ToolApproval,
                },
                requests: waiting.iter().map(|(_, id)| id.clone()).collect(),
            };
            return self.park(until, None, None).await;
        }
        let Some(((at, id), dossier)) = waiting.first().zip(dossiers.into_iter().next()) else {
            return Ok(Then::Rest(Ran::Failed("the run waits for nothing".to_owned())));
        };
        let Some(dossier) = dossier else {
            let why = denial(DenyReason::GateError, "the request is gone");
            return Ok(denied(*at, DenyReason::GateError, why));
        };
        self.tell_decided(id, dossier.confirmation.state.status().as_str());
        if matches!(
            dossier.confirmation.state,
            State::Approved {
                permit: Permit::Open,
                ..
            }
        ) {
            let asked = &dossier.confirmation.asked;
            // What people saw of the tool may be days old.
            self.runner.toolbox.refresh(asked.tool.as_str()).await;
            self.shelf = self.runner.toolbox.shelf();
            if self.has_changed(*at) {
                self.taken.push(id.clone());
                self.dirty = true;
                self.note_refusal(*at, DenyReason::GateError, "tool_changed");
                return Ok(denied(
                    *at,
                    DenyReason::GateError,
                    denial(DenyReason::GateError, CHANGED),
                ));
            }
            let stored = Stored::of(&dossier.confirmation, &self.runner.gatekeeper.roll());
            return self.permit(*at, Some((&dossier, stored))).await;
        }
        self.taken.push(id.clone());
        self.dirty = true;
        let (reason, why) = self.verdict(&dossier);
        Ok(denied(*at, reason, denial(reason, &why)))
    }

    /// Why a decided request permits nothing, and who said so.
    pub(super) fn verdict(&self, dossier: &Dossier) -> (DenyReason, String) {
        let reason = match dossier.confirmation.state.status() {
            Status::Rejected => DenyReason::RejectedByOperator,
            Status::Expired => DenyReason::Expired,
            Status::Cancelled => DenyReason::Cancelled,
            Status::Undeliverable => DenyReason::Undeliverable,
            Status::Approved => DenyReason::AlreadyConsumed,
            Status::Pending => DenyReason::GateError,
        };
        if reason != DenyReason::RejectedByOperator {
            return (reason, String::new());
        }
        let roll = self.runner.gatekeeper.roll();
        let rejections = dossier
            .votes
            .iter()
            .filter(|vote| vote.decision == gatepost_channel::Decision::Reject);
        let said: Vec<String> = rejections
            .map(|vote| {
                let name = vote.voter(&roll);
                match &vote.reason {
                    Some(reason) => format!("rejected by {name}: {reason}"),
                    None => format!("rejected by {name}, who gave no reason"),
                }
            })
            .collect();
        (reason, said.join("; "))
    }

    /// Consumes the permit and saves the memory in which the call runs.
    pub(super) async fn begin(&mut self) -> Result<Result<(), NotGranted>, Halt> {
        let Some(right) = self.right.take() else {
            return Ok(Err(NotGranted::NotFound));
        };
        let begin = BeginCall {
            hold: self.hold.clone(),
            right,
            remembered: self.remembered(),
        };
        match self.store().run(begin).await? {
            Ok(Begun { stored_args, .. }) => {
                if let (Some(stored), Some(args)) = (&mut self.stored, stored_args) {
                    stored.args = args;
                }
                self.saved();
                Ok(Ok(()))
            }
            Err(NotBegun::Lost(LostLease)) => Err(Halt::Lost),
            Err(NotBegun::NotGranted(why)) => Ok(Err(why)),
        }
    }

    pub(super) fn refused(&mut self, at: usize, why: NotGranted) -> Event {
        let request = self
            .memory
            .call(at)
            .and_then(|call| call.state.request().cloned());
        self.taken.extend(request);
        self.dirty = true;
        self.stored = None;
        let reason = match why {
            NotGranted::NotApproved(Status::Rejected) => DenyReason::RejectedByOperator,
            NotGranted::NotApproved(Status::Expired) => DenyReason::Expired,
            NotGranted::NotApproved(Status::Cancelled) => DenyReason::Cancelled,
            NotGranted::NotApproved(Status::Undeliverable) => DenyReason::Undeliverable,
            NotGranted::NotFound | NotGranted::NotApproved(_) | NotGranted::LookUpFailed => {
                DenyReason::GateError
            }
            NotGranted::ArgsChanged => DenyReason::ArgsChanged,
            NotGranted::AlreadyConsumed => DenyReason::AlreadyConsumed,
            NotGranted::PermitExpired => DenyReason::PermitExpired,
            NotGranted::NotAuthorised => DenyReason::NotAuthorised,
            NotGranted::DeniedByRule => DenyReason::DeniedByRule,
        };
        Event::Denied {
            at,
            reason,
            told: denial(reason, ""),
        }
    }
}
