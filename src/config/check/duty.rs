//! Who answers when: everybody who is named is there, nobody stands in for themselves or in a circle, and a list of people on call
//! reaches the quorum of the rules that name it.

use std::collections::BTreeSet;

use gatepost_channel::UtcMillis;

use super::{Complaint, ProblemKind, View, shown};
use crate::config::Operator;
use crate::config::on_call::OnCall;
use crate::gate::duty::Absences;
use crate::gate::policy::Approvers;

pub(super) fn check(view: &View<'_>) {
    view.unique(
        "on_call",
        "name",
        "list of people on call",
        view.on_call
            .iter()
            .flatten()
            .map(|list| list.map(|list| list.name.as_str())),
    );
    if !view.operators_whole {
        return;
    }
    people_stand(view);
    nameable_stand(view);
    let whole = substitutes_stand(view);
    if whole {
        no_circle(view);
    }
}

/// Everybody on a list is an operator.
fn people_stand(view: &View<'_>) {
    let known: Vec<&str> = view.operators().map(|operator| operator.id.as_str()).collect();
    for (index, list) in view.on_call.iter().flatten().enumerate() {
        let Some(list) = list else { continue };
        let path = format!("on_call[{index}]");
        let shifts = list.rota.shifts.iter().enumerate();
        let shifts = shifts.map(|(at, shift)| (format!("{path}.shifts[{at}].operator"), &shift.operator));
        let turns = list
            .rota
            .rotation
            .iter()
            .flat_map(|rotation| rotation.operators.iter().enumerate());
        let turns = turns.map(|(at, person)| (format!("{path}.rotation.operators[{at}]"), person));
        for (key, person) in shifts.chain(turns) {
            if !known.contains(&person.as_str()) {
                view.unknown(&key, "operator", person, &known);
            }
        }
    }
}

/// Whom somebody may name themselves is somebody else, named once, and of an organisation of theirs.
fn nameable_stand(view: &View<'_>) {
    let known: Vec<&str> = view.operators().map(|operator| operator.id.as_str()).collect();
    for (index, operator) in view.operators.iter().enumerate() {
        let Some(operator) = operator else { continue };
        for (at, name) in operator.substitutes.iter().enumerate() {
            let key = format!("operators[{index}].substitutes[{at}]");
            let twice = operator.substitutes.iter().take(at).any(|before| before == name);
            match view.operators().find(|other| other.id == *name) {
                None => view.unknown(&key, "operator", name, &known),
                Some(_) if twice => view.complain(
                    &key,
                    Complaint::new(ProblemKind::Conflict, "stands here twice")
                        .remedy("name each of them once"),
                ),
                Some(other) if other.id == operator.id => stands_alone(view, &key),
                Some(other) => together(view, &key, operator, other),
            }
        }
    }
}

fn stands_alone(view: &View<'_>, key: &str) {
    view.complain(
        key,
        Complaint::new(ProblemKind::Conflict, "nobody stands in for themselves").remedy("name somebody else"),
    );
}

/// A substitute is somebody else, and of an organisation of the absent person.
fn substitutes_stand(view: &View<'_>) -> bool {
    let before = view.cx.count();
    let known: Vec<&str> = view.operators().map(|operator| operator.id.as_str()).collect();
    for (index, operator) in view.operators.iter().enumerate() {
        let Some(operator) = operator else { continue };
        for (at, absence) in operator.away.iter().enumerate() {
            let key = format!("operators[{index}].away[{at}].substitute");
            let substitute = view.operators().find(|other| other.id == absence.substitute);
            match substitute {
                None => view.unknown(&key, "operator", &absence.substitute, &known),
                Some(other) if other.id == operator.id => stands_alone(view, &key),
                Some(other) => together(view, &key, operator, other),
            }
        }
    }
    view.cx.count() == before
}

/// A substitute acts only in organisations to which both belong.
fn together(view: &View<'_>, key: &str, absent: &Operator, substitute: &Operator) {
    let missing: Vec<&str> = absent
        .orgs
        .iter()
        .map(String::as_str)
        .filter(|org| !substitute.is_of(org))
        .collect();
    if absent.orgs.is_empty() || missing.is_empty() {
        return;
    }
    let message = format!(
        "the substitute `{}` does not belong to {}, where `{}` decides",
        shown(&substitute.id),
        shown(&missing.join(", ")),
        shown(&absent.id)
    );
    if missing.len() == absent.orgs.len() {
        view.complain(
            key,
            Complaint::new(ProblemKind::Conflict, message).remedy("name somebody of the same organisation"),
        );
    } else {
        view.warn(key, message);
    }
}

/// People who are away at the same time and would act for each other.
fn no_circle(view: &View<'_>) {
    let absences = Absences::new(
        view.operators()
            .map(|operator| (operator.id.clone(), operator.away.clone())),
    );
    let Some(circle) = absences.circle("") else { return };
    let first = circle.first().copied().unwrap_or_default();
    let index = view
        .operators
        .iter()
        .position(|operator| operator.is_some_and(|operator| operator.id == first))
        .unwrap_or_default();
    let way = circle
        .iter()
        .chain([&first])
        .copied()
        .collect::<Vec<_>>()
        .join(" → ");
    view.complain(
        &format!("operators[{index}].away"),
        Complaint::new(
            ProblemKind::Conflict,
            format!(
                "these people are away at the same time and stand in for each other: {}",
                shown(&way)
            ),
        )
        .remedy("name a substitute who is there"),
    );
}

/// Every list that approvers name is there.
pub(super) fn lists_stand(view: &View<'_>, path: &str, approvers: &Approvers) {
    if !view.on_call_whole() {
        return;
    }
    let known: Vec<&str> = view.lists().map(|list| list.name.as_str()).collect();
    for (index, name) in approvers.on_call.iter().enumerate() {
        if !known.contains(&name.as_str()) {
            let key = format!("{path}.approvers.on_call[{index}]");
            view.unknown(&key, "list of people on call", name, &known);
        }
    }
}

/// The instants at which those whom the approvers mean change, and so their number: one where no list is named.
pub(super) fn moments(view: &View<'_>, approvers: &[&Approvers]) -> BTreeSet<UtcMillis> {
    let named = |list: &&OnCall| {
        approvers
            .iter()
            .any(|approvers| approvers.on_call.contains(&list.name))
    };
    let mut moments: BTreeSet<UtcMillis> = view
        .lists()
        .filter(named)
        .flat_map(|list| list.rota.moments())
        .collect();
    if moments.is_empty() {
        moments.insert(UtcMillis(0));
    }
    moments
}

/// Whether one of the lists that the approvers name has this person on call at this instant.
pub(super) fn is_on_call(view: &View<'_>, operator: &Operator, approvers: &Approvers, at: UtcMillis) -> bool {
    let mut named = view.lists().filter(|list| approvers.on_call.contains(&list.name));
    named.any(|list| list.rota.on_call(at).contains(&operator.id.as_str()))
}

/// Whether one of the lists that the approvers name ever has this person on call.
pub(super) fn is_ever_on_call(view: &View<'_>, operator: &Operator, approvers: &Approvers) -> bool {
    let mut named = view.lists().filter(|list| approvers.on_call.contains(&list.name));
    named.any(|list| list.rota.everybody().contains(operator.id.as_str()))
}
