//! What was found out about people before a transaction, and travels in it. Judges nothing.

use super::Account;
use super::refusal::Refusal;
use crate::ids::OperatorId;

/// What was found out about people before the transaction, and travels in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Insight {
    /// The account through which the answer comes.
    pub account: Option<Account>,
    /// What the person is called: a call that states one of these as its requester is their own.
    pub handles: Vec<String>,
    /// Persons behind the call beside those that were known when it was asked.
    pub behind: Vec<OperatorId>,
    /// Whether the stated requester could not be looked up: who approves might be approving their own call.
    pub requester_unsure: bool,
    /// Why it cannot be told whether somebody who has no entry of their own is one of those behind the call: for them alone, who
    /// has an entry is told apart by it.
    pub doubt: Option<Doubt>,
}

/// Why it cannot be told whether an account is that of somebody who is known by another. The graver one is last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// No platform shows what would tell.
    NotToldApart,
    /// A look-up failed that would have told: another try may.
    LookUpFailed,
}

impl Doubt {
    /// How an approval is refused for it.
    pub const fn refusal(self) -> Refusal {
        match self {
            Self::NotToldApart => Refusal::NotToldApart,
            Self::LookUpFailed => Refusal::LookUpFailed,
        }
    }
}

impl Insight {
    /// Whether an address is among what the person is called.
    pub fn has_address(&self) -> bool {
        self.handles.iter().any(|handle| handle.contains('@'))
    }

    /// Whether a stated requester is this person, in any case.
    pub fn is_called(&self, requester: &str) -> bool {
        let requester = requester.trim().to_lowercase();
        self.handles
            .iter()
            .any(|handle| handle.to_lowercase() == requester)
    }
}
