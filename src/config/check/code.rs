//! One-time codes of those who are asked beside a rule's approvers: whoever may break the glass, and whom an escalation asks.
//!
//! It must not know how many must approve: who of a rule's own approvers lacks a code is counted with the quorum.

use super::{View, policy::is_named, shown};
use crate::gate::policy::{Approvers, ConfirmSource};

/// Tells of people without `totp` whom the rule at `path` asks for codes beside its approvers; `fallback` is what it leaves out.
pub(super) fn others_have_one(
    view: &View<'_>,
    path: &str,
    (own, fallback): (&ConfirmSource, &ConfirmSource),
    org: &str,
) {
    if !own.step_up.or(fallback.step_up).unwrap_or_default().code {
        return;
    }
    let glass = own.break_glass.iter().map(|glass| {
        (
            format!("{path}.break_glass.approvers"),
            glass.lists.iter().collect(),
        )
    });
    let steps = own.after.escalate.iter().flatten().enumerate();
    let steps = steps.filter_map(|(at, step)| {
        let key = format!("{path}.escalate[{at}].approvers");
        Some((key, vec![step.approvers.as_ref()?]))
    });
    for (key, lists) in glass.chain(steps) {
        tell(view, &key, &lists, org);
    }
}

fn tell(view: &View<'_>, key: &str, lists: &[&Approvers], org: &str) {
    let without: Vec<&str> = view
        .operators()
        .filter(|operator| operator.is_of(org) && operator.code_key.is_none())
        .filter(|operator| lists.iter().all(|list| is_named(view, operator, list)))
        .map(|operator| operator.id.as_str())
        .collect();
    if !without.is_empty() {
        view.warn(
            key,
            format!(
                "the rule asks for one-time codes, without which these approve nothing; add `totp` to their entries under `operators`: {}",
                shown(&without.join(", "))
            ),
        );
    }
}
