//! Policy: which calls run, which are refused, and which need a person.
//!
//! [`PolicySource`] is what is written, [`Policy::compile`] turns it into [`Rule`]s, [`Policy::judge`] asks them.
//! The room must not know files and lines, operators, or how a question reaches anybody.

mod compile;
mod facts;
mod glob;
mod judge;
mod rule;
mod scope;
mod source;
mod terms;
mod value;
mod when;

use std::{fmt, sync::Arc};

use super::terms::Terms;
pub use compile::{CompileProblem, Limits, RuleRef};
pub use facts::CallFacts;
pub use glob::ToolGlob;
pub use judge::{Judgement, Unevaluated, Voice, Voices};
pub use rule::Rule;
pub use source::{Approvers, ConfirmSource, Effect, PartialView, PolicySource, RuleSource};
pub use terms::DEFAULT_TIMEOUT;
pub use when::Unevaluable;

/// A policy that compiled: ordered rules, of which the first match decides.
pub struct Policy {
    env: Arc<cel::Env>,
    limits: Limits,
    default: Effect,
    terms: Terms,
    rules: Vec<Rule>,
}

impl Policy {
    /// The rules in order, for the checks of names at start-up.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What happens to a call that no rule matches.
    pub fn default_effect(&self) -> Effect {
        self.default
    }

    /// The terms of a confirmation that no rule asked for; channels and approvers may be empty.
    pub fn default_terms(&self) -> &Terms {
        &self.terms
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("default", &self.default)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
