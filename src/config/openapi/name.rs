//! Names of imported tools: made of an operation's id, or of its method and path, so that the same document always gives the
//! same names.

use sha2::{Digest as _, Sha256};

/// The longest name that model endpoints take.
const LONGEST: usize = 64;

/// The id of an operation that has none: `get_items_by_id` for `GET /items/{id}`.
pub(super) fn derived(method: &str, path: &str) -> String {
    let mut name = method.to_ascii_lowercase();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let plain = segment.replace('{', "_by_").replace('}', "_");
        name.push('_');
        name.push_str(&plain);
    }
    word(&name)
}

/// The tool's name: the connector, two underscores, and the id in the characters that every model endpoint takes. What is too
/// long is cut, with a piece of the hash of the whole behind it.
pub(super) fn tool(connector: &str, id: &str) -> String {
    let room = LONGEST.saturating_sub(connector.len() + 2);
    let mut word = word(id);
    if word.len() > room {
        let hash = hex::encode(Sha256::digest(id.as_bytes()));
        let hash = hash.get(..6).unwrap_or_default();
        let kept = word.get(..room.saturating_sub(7)).unwrap_or_default();
        word = format!("{}_{hash}", kept.trim_end_matches('_'));
    }
    format!("{connector}__{word}")
}

/// The name of an argument in the characters that every model endpoint takes.
pub(super) fn argument(name: &str) -> String {
    let mut word = word_of(name, |c| matches!(c, '-' | '.'));
    word.truncate(LONGEST);
    word
}

fn word(text: &str) -> String {
    word_of(text, |c| c == '-')
}

/// Letters, digits, `_` and what `also` takes; anything else is an underscore, never two of them in a row. ASCII.
fn word_of(text: &str, also: impl Fn(char) -> bool) -> String {
    let mut word = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || also(c) {
            word.push(c);
        } else if !word.ends_with('_') {
            word.push('_');
        }
    }
    word.trim_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use super::{argument, derived, tool};

    #[test]
    fn names_are_stable_and_fit_every_endpoint() {
        assert_eq!(derived("GET", "/items/{id}/lines"), "get_items_by_id_lines");
        assert_eq!(derived("POST", "/"), "post");
        assert_ne!(derived("GET", "/items/{id}"), derived("GET", "/items/id"));
        assert_eq!(tool("oa", "repos/get-content"), "oa__repos_get-content");
        assert_eq!(tool("oa", "a__b..c"), "oa__a_b_c");
        let (long, other) = ("x".repeat(100), "x".repeat(101));
        assert_eq!(tool("oa", &long).len(), 64);
        assert_ne!(tool("oa", &long), tool("oa", &other));
        assert_eq!(argument("filter[name]"), "filter_name");
        assert_eq!(argument("X-Trace"), "X-Trace");
        assert_eq!(argument("\u{e9}"), "");
    }
}
