//! The linter of pieces: movements that no way leads to, and sub-tasks that no piece can play.

use std::collections::{BTreeMap, BTreeSet};

use super::{Movement, Piece};
use crate::config::context::Complaint;
use crate::config::node::{Reader, did_you_mean};
use crate::config::{Problem, ProblemKind};

/// Warns of each movement that cannot be entered from the first one.
pub(super) fn unreachable(initial: &str, movements: &[Movement], items: &[Reader<'_>]) {
    let mut reached = BTreeSet::from([initial]);
    let mut ways = vec![initial];
    while let Some(name) = ways.pop() {
        let Some(movement) = movements.iter().find(|movement| movement.name == name) else {
            continue;
        };
        let nexts = movement.rules.iter().map(|rule| rule.next.as_str());
        for next in nexts.chain(movement.default_next.as_deref()) {
            if reached.insert(next) {
                ways.push(next);
            }
        }
    }
    for item in items {
        if let Some(name) = super::decode::movement_name(item)
            && !reached.contains(name.as_str())
        {
            item.warn(format!(
                "no rule and no default_next leads to the movement `{name}`"
            ));
        }
    }
}

/// Pieces that are named under `pieces` and are not there.
pub(super) fn unknown_pieces(
    all: &BTreeMap<String, Piece>,
    labels: &BTreeMap<String, String>,
) -> Vec<Problem> {
    let words: Vec<&str> = all.keys().map(String::as_str).collect();
    let unknown = |piece: &Piece, name: &str| {
        let label = labels.get(&piece.name).map_or("", String::as_str);
        Complaint::new(ProblemKind::UnknownName, format!("there is no piece `{name}`"))
            .accepted("the name of a piece of this folder")
            .remedy(
                did_you_mean(name, &words).unwrap_or_else(|| "add the piece, or remove the entry".to_owned()),
            )
            .at(label, None, "pieces")
    };
    all.values()
        .flat_map(|piece| piece.pieces.iter().flatten().map(move |name| (piece, name)))
        .filter(|(_, name)| !all.contains_key(*name))
        .map(|(piece, name)| unknown(piece, name))
        .collect()
}
