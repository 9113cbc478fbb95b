//! What happens after the cards were posted: channels that are named are there, steps come one after the other and before the
//! end of the request.

use std::time::Duration;

use super::{Complaint, ProblemKind, View, policy::approvers_stand};
use crate::gate::policy::ConfirmSource;

/// Every name of the section stands for something. `path` is that of the rule, or `policy.confirm`.
pub(super) fn names_stand(view: &View<'_>, path: &str, confirm: &ConfirmSource) {
    let after = &confirm.after;
    if view.channels_whole {
        let known: Vec<&str> = view.channels().map(|channel| channel.name.as_str()).collect();
        let steps = after.escalate.iter().flatten().enumerate();
        let steps = steps.map(|(at, step)| (format!("{path}.escalate[{at}].channels"), Some(&step.channels)));
        let lists = [
            (format!("{path}.fallback"), after.fallback.as_ref()),
            (format!("{path}.notify.channels"), after.notify.as_ref()),
        ];
        for (key, names) in lists.into_iter().chain(steps) {
            for (at, name) in names.into_iter().flatten().enumerate() {
                if !known.contains(&name.as_str()) {
                    view.unknown(&format!("{key}[{at}]"), "channel", name, &known);
                }
            }
        }
    }
    if view.operators_whole {
        for (at, step) in after.escalate.iter().flatten().enumerate() {
            if let Some(approvers) = &step.approvers {
                approvers_stand(view, &format!("{path}.escalate[{at}]"), approvers);
            }
        }
    }
}

/// Steps come one after the other, each before the end of the request. `policy` is what a rule leaves out.
pub(super) fn times_fit(view: &View<'_>, path: &str, own: &ConfirmSource, policy: &ConfirmSource) {
    let timeout = own
        .timeout
        .or(policy.timeout)
        .unwrap_or(crate::gate::policy::DEFAULT_TIMEOUT);
    let mut last = 0;
    for (at, step) in own.after.escalate.iter().flatten().enumerate() {
        let key = format!("{path}.escalate[{at}].after");
        if step.after_ms <= last {
            view.complain(
                &key,
                Complaint::new(
                    ProblemKind::BadValue,
                    "the step does not come after the one before it",
                )
                .remedy("write the steps in order of time"),
            );
        }
        last = last.max(step.after_ms);
        let after = Duration::from_millis(step.after_ms.unsigned_abs());
        if after >= timeout {
            let message = "the request has ended by then: its `timeout` is no longer than that";
            view.complain(
                &key,
                Complaint::new(ProblemKind::BadValue, message)
                    .remedy("give the step less time, or the request more"),
            );
        }
    }
    let asked = own.channels.as_ref().or(policy.channels.as_ref());
    for (key, names) in [
        ("fallback", own.after.fallback.as_ref()),
        ("notify.channels", own.after.notify.as_ref()),
    ] {
        for (at, name) in names.into_iter().flatten().enumerate() {
            if asked.is_some_and(|asked| asked.contains(name)) {
                view.warn(
                    &format!("{path}.{key}[{at}]"),
                    format!("`{name}` is asked anyway, since it stands among the channels"),
                );
            }
        }
    }
}
