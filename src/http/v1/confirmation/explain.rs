//! Refusals of an answer in words that say what would be taken: whom the request asks, which grants it offers, and what an armed
//! approval waits for. It decides nothing, and names nothing of the arguments.

use gatepost_channel::Inert;

use crate::clock::rfc3339;
use crate::confirmation::decide::Refusal;
use crate::confirmation::step_up::Waiting;
use crate::confirmation::{Confirmation, Dossier, Status, grant, stage};
use crate::gate::policy::Approvers;

/// So many approvals that wait are named.
const SHOWN: usize = 5;

/// Why somebody may not decide, and who may.
pub(super) fn who(refusal: Refusal, dossier: Option<&Dossier>) -> String {
    let why = match refusal {
        Refusal::NotThisStage => "other people are asked in this stage of the request",
        _ => "this operator may not decide the request",
    };
    let Some(row) = dossier.map(|dossier| &dossier.confirmation) else {
        return why.to_owned();
    };
    let terms = row.in_force();
    let stage = stage::current(&terms, &row.progress);
    let lists: Vec<String> = [stage.approvers]
        .into_iter()
        .chain(stage.also)
        .map(list)
        .collect();
    format!(
        "{why}; it asks {}",
        Inert::new(&lists.join(", and of these only ")).one_line()
    )
}

fn list(approvers: &Approvers) -> String {
    let Approvers {
        roles,
        operators,
        on_call,
    } = approvers;
    let named = [
        ("the role", "the roles", roles),
        ("the operator", "the operators", operators),
        ("who is on call in", "who is on call in", on_call),
    ];
    let parts: Vec<String> = named
        .into_iter()
        .filter_map(|(one, many, those)| match those.as_slice() {
            [] => None,
            [name] => Some(format!("{one} {name}")),
            several => Some(format!("{many} {}", several.join(", "))),
        })
        .collect();
    parts.join(" or ")
}

/// Which grants an Approve may ask for.
pub(super) fn grants(dossier: Option<&Dossier>) -> String {
    let offered = dossier.map(|dossier| grant::offers(&dossier.confirmation));
    let offered: Vec<String> = offered
        .unwrap_or_default()
        .iter()
        .map(ToString::to_string)
        .collect();
    if offered.is_empty() {
        return "the request offers none; answer without `grant`; nothing was changed".to_owned();
    }
    format!(
        "it offers {}; name one of them in `grant`, or answer without it; nothing was changed",
        offered.join(", ")
    )
}

/// What completes the approvals that wait, and until when.
pub(super) fn armed(dossier: Option<&Dossier>) -> String {
    let row = dossier.map(|dossier| &dossier.confirmation);
    let waiting: Vec<String> = row.into_iter().flat_map(each).collect();
    if waiting.is_empty() {
        return "the approval waits for what completes it; nothing was changed".to_owned();
    }
    format!("{}; nothing was changed", waiting.join("; "))
}

fn each(row: &Confirmation) -> impl Iterator<Item = String> {
    let step = row.terms.decision.step_up;
    let armed = row.progress.armed.iter().take(SHOWN);
    armed
        .filter(|_| row.state.status() == Status::Pending)
        .map(move |arm| {
            let what = match arm.waits_for(step) {
                Waiting::Code => "their one-time code (`code`)",
                Waiting::SecondPerson => "somebody else who may approve",
            };
            let who = Inert::new(&arm.person.0);
            format!(
                "the approval of {} waits until {} for {what}",
                who.one_line(),
                rfc3339(arm.until)
            )
        })
}
