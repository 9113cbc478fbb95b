//! What was found out about people before a transaction, and travels in it. Judges nothing.

use super::Account;
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
}

impl Insight {
    /// Whether a stated requester is this person, in any case.
    pub fn is_called(&self, requester: &str) -> bool {
        let requester = requester.trim().to_lowercase();
        self.handles
            .iter()
            .any(|handle| handle.to_lowercase() == requester)
    }
}
