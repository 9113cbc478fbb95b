//! What happens after the cards were posted: the keys `escalate`, `fallback`, `notify` and `thread_notes` of a rule and of
//! `policy.confirm`. Whether names stand for something and times fit is for `check::after`.

use std::time::Duration;

use super::node::{MapReader, Reader};
use super::policy::{LONGEST, decode_approvers};
use crate::gate::after::{AfterSource, Escalation, MAX_CHANNELS, MAX_STEPS};

/// Asks for the keys. What could not be read was complained about.
pub(super) fn decode(map: &mut MapReader<'_>) -> AfterSource {
    AfterSource {
        escalate: map.optional("escalate").and_then(|steps| decode_steps(&steps)),
        fallback: map.optional("fallback").and_then(|names| channels(&names)),
        notify: map.optional("notify").and_then(|notify| {
            let mut map = notify.map()?;
            let names = map.required("channels").and_then(|names| channels(&names));
            map.finish();
            names
        }),
        thread_notes: map.optional("thread_notes").and_then(|wanted| wanted.boolean()),
    }
}

fn decode_steps(reader: &Reader<'_>) -> Option<Vec<Escalation>> {
    let steps = reader.list()?;
    if steps.is_empty() || steps.len() > MAX_STEPS {
        reader.bad_value(
            format!("between 1 and {MAX_STEPS} steps"),
            "name what happens when, or leave `escalate` out",
        );
        return None;
    }
    steps.iter().map(decode_step).collect()
}

fn decode_step(reader: &Reader<'_>) -> Option<Escalation> {
    let before = reader.context().count();
    let mut map = reader.map()?;
    let after = map
        .required("after")
        .and_then(|after| after.span(Duration::from_secs(1), LONGEST));
    let remind = map.optional("remind").and_then(|wanted| wanted.boolean());
    let mention = map.optional("mention").and_then(|wanted| wanted.boolean());
    let names = map.optional("channels").and_then(|names| channels(&names));
    let approvers = map
        .optional("approvers")
        .and_then(|approvers| decode_approvers(&approvers));
    map.finish();
    if reader.context().count() != before {
        return None;
    }
    let mention = mention.unwrap_or(false);
    let step = Escalation {
        after_ms: i64::try_from(after?.as_millis()).ok()?,
        // Whoever is mentioned is mentioned in the reminder.
        remind: remind.unwrap_or(false) || mention,
        mention,
        channels: names.unwrap_or_default(),
        approvers,
    };
    if !step.remind && step.channels.is_empty() && step.approvers.is_none() {
        reader.bad_value(
            "a step with at least one of remind, mention, channels, approvers",
            "say what happens then, or remove the step",
        );
        return None;
    }
    Some(step)
}

fn channels(reader: &Reader<'_>) -> Option<Vec<String>> {
    let names = reader.texts()?;
    if names.len() > MAX_CHANNELS {
        reader.bad_value(format!("at most {MAX_CHANNELS} channels"), "name fewer channels");
        return None;
    }
    Some(names)
}
