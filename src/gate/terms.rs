//! The terms of a confirmation: who may decide, how many, until when. Resolved from the rule, then from `policy.confirm`, then
//! from the defaults, and stored with the request, so that a later change of policy does not change what was asked.

use serde::{Deserialize, Serialize};

use super::policy::{Approvers, PartialView};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The channels a card is posted to.
    pub channels: Vec<String>,
    /// Who may decide.
    pub approvers: Approvers,
    /// Distinct persons needed to approve.
    pub quorum: u32,
    /// Distinct persons needed to reject.
    pub deny_threshold: u32,
    /// Whether a person behind the call may approve it.
    pub self_approval: bool,
    /// How long the request may be decided, in milliseconds.
    pub timeout_ms: i64,
    /// How long an approval may be consumed, in milliseconds.
    pub permit_ttl_ms: i64,
    /// What to do when a card cannot show everything.
    pub partial_view: PartialView,
    /// JSON pointers of arguments that are hidden wherever people look.
    pub redact: Vec<super::json::Pointer>,
}

impl Terms {
    /// These terms, in nothing milder than others: more persons, fewer refusals, less time, less shown. Who is asked, and where,
    /// stays.
    #[must_use]
    pub fn no_weaker_than(&self, other: &Self) -> Self {
        let mut terms = self.clone();
        terms.quorum = terms.quorum.max(other.quorum);
        terms.deny_threshold = terms.deny_threshold.min(other.deny_threshold);
        terms.self_approval &= other.self_approval;
        terms.timeout_ms = terms.timeout_ms.min(other.timeout_ms);
        terms.permit_ttl_ms = terms.permit_ttl_ms.min(other.permit_ttl_ms);
        if other.partial_view == PartialView::Reject {
            terms.partial_view = PartialView::Reject;
        }
        terms.redact.extend(other.redact.iter().cloned());
        terms
    }
}
