//! What the gate says about globs, conditions and pointers, with the file and line that it does not know.

use super::{Complaint, ProblemKind, View};
use crate::gate::policy::{CompileProblem, Limits, Policy, PolicySource};

/// The compiled policy, or a complaint about each part that does not compile.
pub(super) fn check(view: &View<'_>, source: &PolicySource) -> Option<Policy> {
    match Policy::compile(source, &Limits::default()) {
        Ok(policy) => Some(policy),
        Err(problems) => {
            for problem in problems {
                complain(view, problem);
            }
            None
        }
    }
}

/// What the other checks have already said about a key is not said again in other words.
fn complain(view: &View<'_>, problem: CompileProblem) {
    let CompileProblem {
        rule,
        field,
        problem,
        remedy,
    } = problem;
    let key = match &rule {
        Some(rule) => format!("policy.rules[{}].{field}", rule.index),
        None => format!("policy.{field}"),
    };
    if !view.cx.has(&key) {
        view.complain(&key, Complaint::new(ProblemKind::Policy, problem).remedy(remedy));
    }
}
