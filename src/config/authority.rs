//! `step_up` and `break_glass` of a rule, and the secret of an operator's one-time codes.

use std::time::Duration;

use crate::gate::authority::{BreakGlass, StepUp};
use crate::gate::code::CodeKey;

use super::context::Complaint;
use super::node::Reader;
use super::policy::decode_approvers;
use super::problem::ProblemKind;

const STEPS: [(&str, StepUp); 3] = [
    (
        "code",
        StepUp {
            code: true,
            second_person: false,
        },
    ),
    (
        "second_person",
        StepUp {
            code: false,
            second_person: true,
        },
    ),
    (
        "both",
        StepUp {
            code: true,
            second_person: true,
        },
    ),
];
/// The shortest and the longest window in which uses of break-glass are counted.
const WINDOW: (Duration, Duration) = (Duration::from_mins(1), Duration::from_hours(366 * 24));
/// The window that counts where none is written.
const USUAL_WINDOW: Duration = Duration::from_hours(24);

pub(super) fn decode_step_up(reader: &Reader<'_>) -> Option<StepUp> {
    reader.choice(&STEPS)
}

pub(super) fn decode_break_glass(reader: &Reader<'_>) -> Option<BreakGlass> {
    let mut map = reader.map()?;
    let approvers = map
        .required("approvers")
        .and_then(|approvers| decode_approvers(&approvers));
    let uses = map.optional("uses").map(|uses| uses.integer(1, 1000));
    let per = map.optional("per").map(|per| per.span(WINDOW.0, WINDOW.1));
    map.finish();
    Some(BreakGlass {
        lists: vec![approvers?],
        uses: uses.unwrap_or(Some(1))?,
        per_ms: i64::try_from(per.unwrap_or(Some(USUAL_WINDOW))?.as_millis()).ok()?,
    })
}

/// The secret of one-time codes, as an authenticator app takes it.
pub(super) fn decode_code_key(reader: &Reader<'_>) -> Option<CodeKey> {
    let secret = reader.secret()?;
    match CodeKey::from_base32(secret.expose()) {
        Ok(key) => Some(key),
        Err(fault) => {
            reader.complain(
                Complaint::new(
                    ProblemKind::BadSecret,
                    format!("cannot be the secret of one-time codes: {fault}"),
                )
                .remedy("make a random one, such as `head -c 20 /dev/urandom | base32`, and enter it in the person's app too"),
            );
            None
        }
    }
}
