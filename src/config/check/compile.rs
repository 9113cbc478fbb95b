//! What the gate says about globs, conditions and pointers, with the file and line that it does not know.

use std::collections::BTreeSet;

use super::{Complaint, ProblemKind, View, policy::is_named, shown};
use crate::gate::Terms;
use crate::gate::policy::{CompileProblem, Effect, Limits, Policy, PolicySource};

/// The compiled policy, or a complaint about each part that does not compile.
pub(super) fn check(view: &View<'_>, source: &PolicySource) -> Option<Policy> {
    match Policy::compile(source, &Limits::default()) {
        Ok(policy) => {
            both_can_be_met(view, &policy);
            Some(policy)
        }
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

/// Who decides under a rule about what the agent asserts must also be an approver of what would hold without the agent's word:
/// the default, or a later rule. Persons who are among both are needed.
fn both_can_be_met(view: &View<'_>, policy: &Policy) {
    if !view.whole() {
        return;
    }
    let asks = |effect| effect == Effect::Confirm;
    for (index, rule) in policy.rules().iter().enumerate() {
        if !asks(rule.effect()) || !rule.rests_on_assertions() {
            continue;
        }
        let later = policy.rules().iter().skip(index + 1);
        let later = later.filter(|later| asks(later.effect()) && !later.rests_on_assertions());
        let later = later.map(|later| (format!("the rule `{}`", shown(later.name())), later.terms()));
        let default =
            asks(policy.default_effect()).then(|| ("`policy.confirm`".to_owned(), policy.default_terms()));
        for (name, beside) in later.chain(default) {
            if let Some((org, needed, there)) = too_few(view, rule.terms(), beside) {
                let message = format!(
                    "asks about what the agent says of itself, so whoever decides must be among the approvers of {name} too, but of the {needed} needed only {there} of the organisation `{org}` are; name persons who are among both, or set `trust_asserted: true`"
                );
                view.warn(&format!("policy.rules[{index}].approvers"), message);
                break;
            }
        }
    }
}

/// The first organisation in which each of two lists of approvers is long enough and what they have in common is not.
fn too_few<'a>(view: &'a View<'_>, rule: &Terms, beside: &Terms) -> Option<(&'a str, u32, usize)> {
    let needed = rule.quorum.max(beside.quorum);
    let named = |channel: &str| rule.channels.iter().any(|name| name == channel);
    let orgs: BTreeSet<&str> = view
        .channels()
        .filter(|channel| named(&channel.name))
        .map(|channel| channel.org.as_str())
        .collect();
    orgs.into_iter().find_map(|org| {
        let members = || view.operators().filter(|operator| operator.is_of(org));
        let count = |terms: &Terms| {
            members()
                .filter(|operator| is_named(view, operator, &terms.approvers))
                .count()
        };
        let there = members()
            .filter(|operator| {
                is_named(view, operator, &rule.approvers) && is_named(view, operator, &beside.approvers)
            })
            .count();
        let few = |count: usize| u32::try_from(count).unwrap_or(u32::MAX) < needed;
        (few(there) && count(beside) > 0 && count(rule) > 0).then_some((org, needed, there))
    })
}
