//! One compiled line of policy.

use super::{facts::CallFacts, glob::ToolGlobs, source::Effect, when::Condition};
use crate::gate::{json::Pointer, terms::Terms};

/// A rule that compiled.
#[derive(Debug)]
pub struct Rule {
    pub(super) name: String,
    pub(super) tools: ToolGlobs,
    pub(super) when: Option<Condition>,
    pub(super) effect: Effect,
    pub(super) reason: Option<String>,
    pub(super) orgs: Option<Vec<String>>,
    pub(super) trust_asserted: bool,
    pub(super) verified_requester: bool,
    pub(super) redact: Vec<Pointer>,
    pub(super) terms: Terms,
}

impl Rule {
    /// Its name, unique in the policy.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What happens to a call that matches.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// For which organisations it holds; `None` is all.
    pub fn orgs(&self) -> Option<&[String]> {
        self.orgs.as_deref()
    }

    /// The terms of its confirmations, with what it leaves out filled in. An allow rule has them too: another voice
    /// may ask for a confirmation.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Whether tool and organisation are those of the rule.
    pub(super) fn concerns(&self, facts: &CallFacts<'_>) -> bool {
        self.orgs
            .as_ref()
            .is_none_or(|orgs| orgs.iter().any(|org| org == facts.org))
            && self.tools.matches(facts.tool)
    }

    /// What the rule does with a call that matches it: one behind which no known person stands may be refused.
    pub(super) fn effect_on(&self, facts: &CallFacts<'_>) -> Effect {
        if self.verified_requester && !facts.known_person {
            Effect::Deny
        } else {
            self.effect
        }
    }

    /// Whether it is asked about what the agent says of itself without being told to trust that; then it may only add to what
    /// would follow without the agent's word.
    pub fn rests_on_assertions(&self) -> bool {
        !self.trust_asserted
            && self
                .when
                .as_ref()
                .is_some_and(|condition| condition.asserted().next().is_some())
    }
}
