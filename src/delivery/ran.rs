//! Whether an approved call ran, as far as the row tells. It must not know words.

use gatepost_channel::UtcMillis;

use crate::confirmation::{Confirmation, OutcomeStatus, Permit, State};

/// What became of an approved call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// Nobody has used the approval; it can be used until then.
    NotYet {
        /// The permit's end.
        until: UtcMillis,
    },
    /// Nobody used the approval while it could be used.
    Lapsed,
    /// It was begun, and how it ended is not on record.
    Begun,
    /// It ended well.
    Succeeded,
    /// It failed.
    Failed,
}

impl Ran {
    /// What became of the call; `None` where it was not approved.
    pub fn of(row: &Confirmation, now: UtcMillis) -> Option<Self> {
        let State::Approved { at, permit } = &row.state else {
            return None;
        };
        Some(match (&row.ledger.outcome, permit) {
            (Some(outcome), _) => match outcome.status {
                OutcomeStatus::Succeeded => Self::Succeeded,
                OutcomeStatus::Failed => Self::Failed,
            },
            (None, Permit::Consumed { .. }) => Self::Begun,
            (None, Permit::Open) => {
                let until = UtcMillis(at.0.saturating_add(row.terms.permit_ttl_ms));
                if now < until {
                    Self::NotYet { until }
                } else {
                    Self::Lapsed
                }
            }
        })
    }
}
