//! Policy as it is written: what the configuration hands to the compiler, before globs and conditions are checked.
//!
//! Nothing here is judged yet; [`super::Policy::compile`] turns it into rules that can be asked.

use std::time::Duration;

use gatepost_channel::Risk;
use serde::{Deserialize, Serialize};

use crate::gate::after::AfterSource;
use crate::gate::authority::{BreakGlass, StepUp};
use crate::gate::collapse::Collapse;
use crate::gate::decision::{RequireReason, Stage, everybody, persons_needed};
use crate::gate::edit::EditScope;
use crate::gate::grant::GrantTerms;

/// What a rule does with a call. The order is the strictness: the strictest voice wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The call runs without a person.
    Allow,
    /// The call becomes a confirmation request.
    Confirm,
    /// The call is refused.
    Deny,
}

/// What happens when a card cannot show all of the arguments (invariant 9 in docs/ARCHITECTURE.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartialView {
    /// The card carries Reject and "show everything", but no Approve.
    #[default]
    Reject,
    /// The rule lifts this: the card may be approved as it stands.
    Approve,
}

/// Who may decide: named operators, everybody who holds one of the roles, and who is on call. Empty means nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approvers {
    /// Roles, as the operators' `roles` name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Operator ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<String>,
    /// Lists of people on call, by name: whoever is at the moment of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_call: Vec<String>,
}

impl Approvers {
    /// Whether nobody at all is meant.
    pub const fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.operators.is_empty() && self.on_call.is_empty()
    }
}

impl Approvers {
    /// Lets everybody decide whom the other list names too.
    pub fn include(&mut self, other: &Self) {
        let Self {
            roles,
            operators,
            on_call,
        } = other;
        for (into, from) in [
            (&mut self.roles, roles),
            (&mut self.operators, operators),
            (&mut self.on_call, on_call),
        ] {
            for name in from {
                if !into.contains(name) {
                    into.push(name.clone());
                }
            }
        }
    }
}

/// The settings of a confirmation. In a rule, what is left out comes from `policy.confirm`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfirmSource {
    /// Channel names.
    pub channels: Option<Vec<String>>,
    /// Who may decide.
    pub approvers: Option<Approvers>,
    /// Distinct persons needed to approve; at least 1.
    pub quorum: Option<u32>,
    /// Distinct persons needed to reject; 1 unless a rule says otherwise.
    pub deny_threshold: Option<u32>,
    /// Whether the person behind the call may approve it.
    pub self_approval: Option<bool>,
    /// How long the request may be decided.
    pub timeout: Option<Duration>,
    /// How long an approval may be consumed.
    pub permit_ttl: Option<Duration>,
    /// What to do when the card cannot show everything.
    pub partial_view: Option<PartialView>,
    /// What is at stake.
    pub risk: Option<Risk>,
    /// Which answers need a reason in words.
    pub require_reason: Option<RequireReason>,
    /// Whether a person is asked once more before an Approve is sent.
    pub confirm_step: Option<bool>,
    /// Who is asked one after the other, instead of approvers and quorum. A rule's own; never from `policy.confirm`.
    pub stages: Option<Vec<Stage>>,
    /// What an approval may let run beside the call. A rule's own; never from `policy.confirm`.
    pub grants: Option<GrantTerms>,
    /// What people may change of the arguments when they approve. A rule's own; never from `policy.confirm`.
    pub edits: Option<EditScope>,
    /// When like requests share a card.
    pub collapse: Option<Collapse>,
    /// What happens after the cards were posted.
    pub after: AfterSource,
    /// What an approval takes beside the press.
    pub step_up: Option<StepUp>,
    /// Who may approve alone in need. A rule's own; never from `policy.confirm`.
    pub break_glass: Option<BreakGlass>,
}

impl ConfirmSource {
    /// The same with approvers and quorum filled in from the stages, where there are any.
    #[must_use]
    pub fn summed(&self) -> Self {
        let mut all = self.clone();
        if let Some(stages) = self.stages.as_deref().filter(|stages| !stages.is_empty()) {
            all.approvers = Some(everybody(stages));
            all.quorum = Some(persons_needed(stages));
        }
        all
    }
}

/// One line of policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSource {
    /// Its name, unique in the policy.
    pub name: String,
    /// Globs over tool names.
    pub tools: Vec<String>,
    /// A CEL condition over `tool, args, agent, requester, org, metadata, token`.
    pub when: Option<String>,
    /// What happens to a matching call.
    pub effect: Effect,
    /// Why, in words for people.
    pub reason: Option<String>,
    /// For whom the rule holds; `None` is everybody.
    pub orgs: Option<Vec<String>>,
    /// JSON pointers of arguments that are hidden wherever people look.
    pub redact: Vec<String>,
    /// Takes what the agent asserts of itself for true: an allow rule may read it, and a rule that reads it may make the verdict
    /// milder.
    pub trust_asserted: bool,
    /// Denies a call behind which no known person stands.
    pub verified_requester: bool,
    /// The confirmation settings.
    pub confirm: ConfirmSource,
}

/// The policy section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySource {
    /// What happens to a call that no rule matches.
    pub default: Effect,
    /// What a rule leaves out.
    pub confirm: ConfirmSource,
    /// The rules; the first match decides.
    pub rules: Vec<RuleSource>,
}
