//! Beginning a call: the permit is consumed and the memory says "running" in one transaction, committed before anything is
//! sent. Whatever happens afterwards, the call is known to have begun.

use crate::audit::Draft;
use crate::confirmation::consume::{Consume, NotGranted, consume};
use crate::ids::PermitId;
use crate::storage::{Touches, Transaction, Workspace};

use super::hold::{Hold, LostLease};
use super::save::Remembered;

/// By what right a call begins.
#[derive(Debug, Clone)]
pub enum Right {
    /// An approval, consumed here.
    Approved(Box<Consume>),
    /// Policy allows it: a permit drawn for it, so that the tool still sees one key for one call.
    Allowed(PermitId),
    /// Policy wants a person, and the job is an evaluation that the configuration lets go on without one. That it did is on
    /// record in the transaction in which the call begins.
    Bypassed {
        /// The permit drawn for it.
        permit: PermitId,
        /// The event that says so.
        event: Box<Draft>,
    },
}

/// Begins a call.
#[derive(Debug, Clone)]
pub struct BeginCall {
    /// By whom.
    pub hold: Hold,
    /// By what right.
    pub right: Right,
    /// The memory in which the call is running under that permit.
    pub remembered: Remembered,
}

/// The call may be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Handed to the tool as the idempotency key.
    pub permit: PermitId,
    /// What must run, for an approved call: the stored arguments in canonical form. An allowed call runs as it was judged.
    pub stored_args: Option<String>,
}

/// The call may not be sent; nothing was remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotBegun {
    /// The job is somebody else's.
    #[error(transparent)]
    Lost(#[from] LostLease),
    /// There is no permit.
    #[error("no permit: {}", .0.as_str())]
    NotGranted(NotGranted),
}

impl Transaction for BeginCall {
    type Answer = Result<Begun, NotBegun>;
    const NAME: &'static str = "begin_call";

    fn touches(&self, touches: &mut Touches) {
        self.remembered.touches(&self.hold, touches);
        if let Right::Approved(consume) = &self.right {
            consume.touches(touches);
        }
    }

    fn apply(&self, workspace: &mut Workspace) -> Self::Answer {
        self.hold.of(workspace)?;
        let begun = match &self.right {
            Right::Allowed(permit) => Begun {
                permit: permit.clone(),
                stored_args: None,
            },
            Right::Bypassed { permit, event } => {
                workspace.audit((**event).clone().with("permit", permit.as_str()));
                Begun {
                    permit: permit.clone(),
                    stored_args: None,
                }
            }
            Right::Approved(request) => {
                let ours = workspace
                    .confirmation(&request.id)
                    .is_some_and(|row| row.asked.job.as_ref() == Some(&self.hold.job));
                if !ours {
                    return Err(NotBegun::NotGranted(NotGranted::NotFound));
                }
                let granted = consume(workspace, request).map_err(NotBegun::NotGranted)?;
                Begun {
                    permit: granted.permit,
                    stored_args: Some(granted.args),
                }
            }
        };
        self.remembered.write(workspace, &self.hold);
        Ok(begun)
    }
}
