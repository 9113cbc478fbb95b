//! Proof by a one-time code, inside the deciding transaction: a code counts once, whatever server, organisation or request it is
//! given to, and wrong ones are bounded. Both are remembered in the store, by its clock.

use std::time::Duration;

use gatepost_channel::UtcMillis;

use super::decide::Refusal;
use super::roll::Roll;
use crate::gate::code::{DRIFT, STEP_MS};
use crate::ids::{OperatorId, Org, TokenName};
use crate::storage::{Mark, Tally, TallyKey, Touches, Workspace};

/// Wrong codes of one person within [`WINDOW`], after which every further one is refused unread.
pub const TRIES: u64 = 5;
/// See [`TRIES`].
pub const WINDOW: Duration = Duration::from_mins(15);

/// A person has one secret in all of their organisations, so what was tried and used counts in all of them.
fn key(counter: &str, person: &OperatorId) -> TallyKey {
    TallyKey {
        org: Org(String::new()),
        counter: counter.to_owned(),
        scope: String::new(),
        token: TokenName(String::new()),
        person: person.0.clone(),
    }
}

fn used(person: &OperatorId) -> TallyKey {
    key("code.used", person)
}

fn wrong(person: &OperatorId) -> TallyKey {
    key("code.wrong", person)
}

/// What is locked before a code of this person is read.
pub fn touches(person: &OperatorId, touches: &mut Touches) {
    touches.tallies.extend([used(person), wrong(person)]);
}

/// Takes a code of this person, once.
///
/// # Errors
/// Why it proves nothing. A wrong one, or one that was used before, has been counted.
pub fn prove(workspace: &mut Workspace, roll: &Roll, person: &OperatorId, code: &str) -> Result<(), Refusal> {
    let secret = roll.code_key(person).ok_or(Refusal::CodeNotSetUp)?;
    let now = workspace.now();
    let window = i64::try_from(WINDOW.as_millis()).unwrap_or(i64::MAX);
    let marks = |key: &TallyKey| workspace.tally(key).map_or(&[][..], |tally| &tally.marks);
    let recent = |mark: &&Mark| now.0.saturating_sub(mark.last.0) < window;
    let mut failures: Vec<Mark> = marks(&wrong(person)).iter().filter(recent).copied().collect();
    let failed = failures
        .iter()
        .fold(0_u64, |sum, mark| sum.saturating_add(mark.count));
    if failed >= TRIES {
        return Err(Refusal::TooManyCodes);
    }
    let last = marks(&used(person))
        .iter()
        .map(|mark| mark.first.0.div_euclid(STEP_MS))
        .max();
    let fresh = |step: &i64| last.is_none_or(|last| *step > last);
    if let Some(step) = secret.step_of(code, now).filter(fresh) {
        let begins = UtcMillis(step.saturating_mul(STEP_MS));
        // Once no clock can take it any more, it need not be remembered.
        let over = begins.0.saturating_add(STEP_MS.saturating_mul(2 * DRIFT + 2));
        put(
            workspace,
            used(person),
            vec![mark(begins)],
            over.max(now.0.saturating_add(window)),
        );
        return Ok(());
    }
    failures.push(mark(now));
    put(workspace, wrong(person), failures, now.0.saturating_add(window));
    Err(Refusal::WrongCode)
}

const fn mark(at: UtcMillis) -> Mark {
    Mark {
        first: at,
        last: at,
        count: 1,
    }
}

fn put(workspace: &mut Workspace, key: TallyKey, marks: Vec<Mark>, forget_at: i64) {
    workspace.put_tally(Tally {
        key,
        marks,
        forget_at: UtcMillis(forget_at),
    });
}
