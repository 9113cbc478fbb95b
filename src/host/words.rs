//! Why a call may or must not run, in one line for the model and for the person at the host's terminal.
//!
//! What people wrote is made inert: a terminal shows it as text.

use gatepost_channel::{Decision, Inert, UtcMillis};

use crate::clock::rfc3339;
use crate::confirmation::roll::Roll;
use crate::confirmation::{Confirmation, Dossier, Vote, edit};
use crate::gate::DenyReason;
use crate::ids::ConfirmationId;

/// The most characters of one stretch of somebody's words.
const MAX_STRETCH: usize = 500;

/// Who approved, where and when.
pub fn approved(dossier: &Dossier, roll: &Roll) -> String {
    let when = dossier
        .confirmation
        .state
        .decided_at()
        .map(seconds)
        .unwrap_or_default();
    let who = voters(dossier, roll, Decision::Approve);
    let id = &dossier.confirmation.id;
    let changed = if dossier.confirmation.call().edit > 0 {
        " with changed arguments"
    } else {
        ""
    };
    format!("approved{changed} by {who} {when} ({id})")
}

/// What people changed, for the model: it proposed another call than the one that runs.
pub fn changed(row: &Confirmation, roll: &Roll) -> String {
    let changed = edit::in_words(row, roll).unwrap_or_else(|| "people changed the arguments".to_owned());
    format!(
        "Before this call was approved, {changed}. What runs is the changed call; take it as what is wanted, and do not make the call \
         again as it was."
    )
}

/// Policy said yes.
pub fn allowed(rule: Option<&str>) -> String {
    match rule {
        Some(rule) => format!("allowed by rule {}", inert(rule)),
        None => "allowed by policy".to_owned(),
    }
}

/// Who rejected, and why in their words.
pub fn rejected(dossier: &Dossier, roll: &Roll) -> String {
    let who = voters(dossier, roll, Decision::Reject);
    let why = dossier
        .votes
        .iter()
        .rev()
        .find_map(|vote| (vote.decision == Decision::Reject).then_some(vote.reason.as_deref()?));
    let what = match why {
        Some(why) => format!("denied by {who}: {}", inert(why)),
        None => format!("denied by {who}"),
    };
    denied(&what, DenyReason::RejectedByOperator)
}

/// Policy said no.
pub fn forbidden(rule: Option<&str>, message: &str, reason: DenyReason) -> String {
    let what = match rule {
        Some(rule) => format!("denied by rule {}: {}", inert(rule), inert(message)),
        None => format!("denied: {}", inert(message)),
    };
    denied(&what, reason)
}

/// A denial: what happened, its code, and what to do.
pub fn denied(what: &str, reason: DenyReason) -> String {
    let what = what.trim_end_matches('.');
    format!("{what}. [{}] {}", reason.code(), reason.advice())
}

/// Nobody has decided yet, and the host cannot be kept waiting any longer.
pub fn parked(id: &ConfirmationId) -> String {
    format!(
        "Not run: request {id} waits for a person. [pending] Do not make this call again now, in this or another form; go on \
         with other work or end your turn. When the request is approved, make exactly the same call again, once."
    )
}

fn voters(dossier: &Dossier, roll: &Roll, decision: Decision) -> String {
    let names: Vec<String> = dossier
        .standing_votes()
        .iter()
        .filter(|vote| vote.decision == decision)
        .map(|vote| format!("{} ({})", inert(&vote.voter(roll)), place(vote)))
        .collect();
    if names.is_empty() {
        "nobody".to_owned()
    } else {
        names.join(" and ")
    }
}

fn place(vote: &Vote) -> &str {
    vote.channel
        .as_ref()
        .map_or(vote.surface.as_str(), |channel| channel.as_str())
}

/// RFC 3339 without the fraction.
fn seconds(at: UtcMillis) -> String {
    rfc3339(UtcMillis(at.0.saturating_sub(at.0.rem_euclid(1_000)))).replace(".000Z", "Z")
}

fn inert(text: &str) -> String {
    let text = Inert::new(text.trim()).one_line();
    text.head(MAX_STRETCH, |piece| piece.chars().count()).to_owned()
}
