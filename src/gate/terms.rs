//! The terms of a confirmation: who may decide, how many, until when. Resolved from the rule, then from `policy.confirm`, then
//! from the defaults, and stored with the request, so that a later change of policy does not change what was asked.

use gatepost_channel::Risk;
use serde::{Deserialize, Serialize};

use super::after::AfterTerms;
use super::decision::{self, DecisionTerms, Stage};
use super::policy::{Approvers, PartialView};

/// See the module. As stored text, what has its strictest value is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The channels a card is posted to.
    pub channels: Vec<String>,
    /// Who may decide.
    pub approvers: Approvers,
    /// Who decides must be among each of these as well: the approvers of the rules whose terms hold beside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Approvers>,
    /// Distinct persons needed to approve.
    pub quorum: u32,
    /// Distinct persons needed to reject.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub deny_threshold: u32,
    /// Whether a person behind the call may approve it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub self_approval: bool,
    /// How long the request may be decided, in milliseconds.
    pub timeout_ms: i64,
    /// How long an approval may be consumed, in milliseconds.
    pub permit_ttl_ms: i64,
    /// What to do when a card cannot show everything.
    #[serde(default, skip_serializing_if = "is_reject")]
    pub partial_view: PartialView,
    /// JSON pointers of arguments that are hidden wherever people look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<super::json::Pointer>,
    /// What is at stake, as the rule says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    /// What an answer needs, and what else can be answered.
    #[serde(default, skip_serializing_if = "DecisionTerms::is_plain")]
    pub decision: DecisionTerms,
    /// What happens after the cards were posted.
    #[serde(default, skip_serializing_if = "AfterTerms::is_silent")]
    pub after: AfterTerms,
}

impl Terms {
    /// These terms together with others that hold as well, so that neither is weakened: only who may decide under both decides,
    /// more persons, fewer refusals, less time, less shown. The question goes to the channels of both.
    #[must_use]
    pub fn together_with(&self, other: &Self) -> Self {
        let mut terms = self.clone();
        // Where the other rule asks stage by stage, its stages are asked too, and say who answers in each.
        let plain = other.decision.stages.is_empty().then_some(&other.approvers);
        for approvers in plain.into_iter().chain(&other.also) {
            if *approvers != terms.approvers && !terms.also.contains(approvers) {
                terms.also.push(approvers.clone());
            }
        }
        for channel in &other.channels {
            if !terms.channels.contains(channel) {
                terms.channels.push(channel.clone());
            }
        }
        terms.quorum = terms.quorum.max(other.quorum);
        terms.deny_threshold = terms.deny_threshold.min(other.deny_threshold);
        terms.self_approval &= other.self_approval;
        terms.timeout_ms = terms.timeout_ms.min(other.timeout_ms);
        terms.permit_ttl_ms = terms.permit_ttl_ms.min(other.permit_ttl_ms);
        terms.risk = terms.risk.max(other.risk);
        if other.partial_view == PartialView::Reject {
            terms.partial_view = PartialView::Reject;
        }
        for pointer in &other.redact {
            if !terms.redact.contains(pointer) {
                terms.redact.push(pointer.clone());
            }
        }
        terms.after = terms.after.together_with(&other.after);
        let own = Stage {
            name: String::new(),
            approvers: self.approvers.clone(),
            quorum: self.quorum,
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

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_one(count: &u32) -> bool {
    *count == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_reject(view: &PartialView) -> bool {
    *view == PartialView::Reject
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_of_the_stored_text_is_strict_and_comes_back() {
        let strict = Terms {
            channels: vec!["ops".to_owned()],
            approvers: Approvers {
                roles: vec!["finance".to_owned()],
                operators: Vec::new(),
                ..Approvers::default()
            },
            also: Vec::new(),
            quorum: 2,
            deny_threshold: 1,
            self_approval: false,
            timeout_ms: 1,
            permit_ttl_ms: 2,
            partial_view: PartialView::Reject,
            redact: Vec::new(),
            risk: None,
            decision: DecisionTerms::default(),
            after: AfterTerms::default(),
        };
        let mild = Terms {
            deny_threshold: 3,
            self_approval: true,
            partial_view: PartialView::Approve,
            redact: vec!["/card/number".parse().unwrap()],
            risk: Some(Risk::High),
            ..strict.clone()
        };
        for terms in [&strict, &mild] {
            let text = serde_json::to_string(terms).unwrap();
            assert_eq!(&serde_json::from_str::<Terms>(&text).unwrap(), terms, "{text}");
        }
        assert_eq!(
            serde_json::to_string(&strict).unwrap(),
            r#"{"channels":["ops"],"approvers":{"roles":["finance"]},"quorum":2,"timeout_ms":1,"permit_ttl_ms":2}"#
        );
        // As the first release wrote it.
        let long = r#"{"channels":["ops"],"approvers":{"roles":["finance"],"operators":[]},"quorum":2,"deny_threshold":1,
            "self_approval":false,"timeout_ms":1,"permit_ttl_ms":2,"partial_view":"reject","redact":[]}"#;
        assert_eq!(serde_json::from_str::<Terms>(long).unwrap(), strict);
    }
}
