//! What a card says of the right by which somebody answered: in whose place.
//!
//! It must not decide anything: what it shows was stored by whoever decided.

use super::phrase::AuthorityWords;
use crate::confirmation::Vote;
use crate::confirmation::roll::Roll;

/// Who voted, and in whose place: "Mira for Dana".
pub fn voice(vote: &Vote, roll: &Roll, words: &AuthorityWords) -> String {
    let name = vote.voter(roll);
    match &vote.content.acting_for {
        None => name,
        Some(absent) => words
            .acting_for
            .replace("{name}", &name)
            .replace("{absent}", roll.name(absent)),
    }
}
