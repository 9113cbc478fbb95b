//! Where the terms of a confirmation come from: the rule, else `policy.confirm`, else the defaults.

use std::time::Duration;

use super::source::ConfirmSource;
use crate::gate::{decision::DecisionTerms, edit::EditTerms, json::Pointer, terms::Terms};

/// How long a request may be decided where neither the rule nor `policy.confirm` says it.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);
const DEFAULT_PERMIT_TTL: Duration = Duration::from_hours(1);

/// The longest that a request may stay open or a permit be used.
pub(super) const LONGEST: Duration = Duration::from_hours(366 * 24);

/// Puts terms together: what the rule says, else what `policy.confirm` says, else the defaults.
pub(super) fn resolve(rule: &ConfirmSource, policy: &ConfirmSource, redact: &[Pointer]) -> Terms {
    let rule = &rule.summed();
    Terms {
        channels: rule
            .channels
            .clone()
            .or_else(|| policy.channels.clone())
            .unwrap_or_default(),
        approvers: rule
            .approvers
            .clone()
            .or_else(|| policy.approvers.clone())
            .unwrap_or_default(),
        also: Vec::new(),
        quorum: rule.quorum.or(policy.quorum).unwrap_or(1).max(1),
        deny_threshold: rule.deny_threshold.or(policy.deny_threshold).unwrap_or(1).max(1),
        self_approval: rule.self_approval.or(policy.self_approval).unwrap_or(false),
        timeout_ms: milliseconds(rule.timeout.or(policy.timeout).unwrap_or(DEFAULT_TIMEOUT)),
        permit_ttl_ms: milliseconds(
            rule.permit_ttl
                .or(policy.permit_ttl)
                .unwrap_or(DEFAULT_PERMIT_TTL),
        ),
        partial_view: rule.partial_view.or(policy.partial_view).unwrap_or_default(),
        redact: redact.to_vec(),
        risk: rule.risk.or(policy.risk),
        decision: DecisionTerms {
            require_reason: rule.require_reason.or(policy.require_reason).unwrap_or_default(),
            confirm_step: rule.confirm_step.or(policy.confirm_step).unwrap_or(false),
            stages: rule.stages.clone().unwrap_or_default(),
            grants: rule.grants.clone(),
            edits: rule.edits.clone().map(|scope| EditTerms {
                scope,
                carried: false,
            }),
            collapse: rule.collapse.or(policy.collapse),
            step_up: rule.step_up.or(policy.step_up).unwrap_or_default(),
            break_glass: rule.break_glass.clone(),
        },
        after: rule.after.resolve(&policy.after),
    }
}

/// Durations are at most [`LONGEST`], so they fit.
fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.min(LONGEST).as_millis()).unwrap_or(i64::MAX)
}

/// The fields that are out of range, with what is wrong and the remedy.
pub(super) fn out_of_range(confirm: &ConfirmSource) -> Vec<(&'static str, &'static str, &'static str)> {
    let count = [
        ("quorum", confirm.quorum),
        ("deny_threshold", confirm.deny_threshold),
    ];
    let span = [("timeout", confirm.timeout), ("permit_ttl", confirm.permit_ttl)];
    let mut found = Vec::new();
    for (field, _) in count.into_iter().filter(|(_, value)| *value == Some(0)) {
        found.push((field, "no person would have to agree", "name at least 1 person"));
    }
    for (field, value) in span
        .into_iter()
        .filter_map(|(field, value)| Some((field, value?)))
    {
        if value < Duration::from_millis(1) || value > LONGEST {
            found.push((
                field,
                "the time is out of range",
                "give a time between a millisecond and 366 days",
            ));
        }
    }
    found
}
