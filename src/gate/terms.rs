//! The terms of a confirmation: who may decide, how many, until when. Resolved from the rule, then from `policy.confirm`, then
//! from the defaults, and stored with the request, so that a later change of policy does not change what was asked.

use serde::{Deserialize, Serialize};

use super::decision::{self, DecisionTerms, Stage};
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
    /// What an answer needs, and what else can be answered.
    #[serde(default, skip_serializing_if = "DecisionTerms::is_plain")]
    pub decision: DecisionTerms,
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
        let own = Stage {
            name: String::new(),
            approvers: self.approvers.clone(),
            quorum: terms.quorum,
        };
        terms.decision = self.decision.no_weaker_than(&other.decision, own);
        let missing = terms
            .quorum
            .saturating_sub(decision::persons_needed(&terms.decision.stages));
        if let Some(last) = terms.decision.stages.last_mut() {
            // Where the other rule asks for more people than all stages together, the last stage asks for them.
            last.quorum = last.quorum.max(1).saturating_add(missing);
        }
        if !terms.decision.stages.is_empty() {
            terms.approvers = decision::everybody(&terms.decision.stages);
            terms.quorum = decision::persons_needed(&terms.decision.stages);
        }
        terms
    }
}
