//! What people see of arguments: values that policy hides are replaced by their type and length (invariant 10 in docs/ARCHITECTURE.md).
//!
//! It must not know which rule hides what, or who looks.

use thiserror::Error;

use super::json::{Json, Kind, Pointer, reaches_index, reaches_key};

/// From so many characters on a hidden value is looked for inside of words too.
const SHORT: usize = 6;

/// A pointer that meets an array or an object: what would be hidden is unclear, so the call is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a redaction meets a value of type {}, not a single value", .kind.name())]
pub struct RedactProblem {
    /// What it met.
    pub kind: Kind,
}

/// Replaces the single value at each pointer by a text that tells its type and length. A pointer that meets nothing
/// changes nothing; the segment `*` meets every item of an array and every member of an object.
pub fn redact<'a>(
    value: &Json,
    pointers: impl IntoIterator<Item = &'a Pointer>,
) -> Result<Json, RedactProblem> {
    let paths: Vec<_> = pointers.into_iter().map(Pointer::segments).collect();
    copy(value, &paths)
}

/// Copies what no path ends at. Recurses as deep as the value, which is at most [`super::json::MAX_DEPTH`].
fn copy(value: &Json, paths: &[&[String]]) -> Result<Json, RedactProblem> {
    if paths.is_empty() {
        return Ok(value.clone());
    }
    let ends = paths.iter().any(|path| path.is_empty());
    match value {
        Json::Array(_) | Json::Object(_) if ends => Err(RedactProblem { kind: value.kind() }),
        Json::Array(items) => {
            let items = items.iter().enumerate();
            let copied =
                items.map(|(at, item)| copy(item, &below(paths, |segment| reaches_index(segment, at))));
            copied.collect::<Result<_, _>>().map(Json::Array)
        }
        Json::Object(object) => {
            let copied = object.iter().map(|(key, member)| {
                let member = copy(member, &below(paths, |segment| reaches_key(segment, key)))?;
                Ok((key, member))
            });
            copied.collect::<Result<Vec<_>, _>>().map(Json::object)
        }
        single if ends => Ok(Json::String(hidden(single))),
        single => Ok(single.clone()),
    }
}

/// What is left of the paths whose first segment reaches a child.
pub(super) fn below<'a>(paths: &[&'a [String]], reaches: impl Fn(&str) -> bool) -> Vec<&'a [String]> {
    paths
        .iter()
        .filter_map(|path| path.split_first())
        .filter(|(segment, _)| reaches(segment))
        .map(|(_, rest)| rest)
        .collect()
}

/// What people see in place of a hidden value.
pub(super) fn hidden(value: &Json) -> String {
    let name = value.kind().name();
    let length = match value {
        Json::String(text) => text.chars().count(),
        Json::Number(number) => number.as_str().len(),
        _ => return format!("‹hidden: {name}›"),
    };
    let unit = if length == 1 { "character" } else { "characters" };
    format!("‹hidden: {name}, {length} {unit}›")
}

/// Free text without what is hidden in these arguments: whoever wrote it may have seen them whole. A value of few characters is
/// replaced where it stands as a word of its own, a longer one wherever it stands; a truth value or `null` gives nothing away.
pub fn out_of(text: &str, arguments: &Json, pointers: &[Pointer]) -> String {
    let paths: Vec<_> = pointers.iter().map(Pointer::segments).collect();
    let mut found = Vec::new();
    collect(arguments, &paths, &mut found);
    // The longest first: what a shorter one leaves of it would still tell.
    found.sort_by_key(|(said, _)| std::cmp::Reverse(said.len()));
    found.into_iter().fold(text.to_owned(), |text, (said, instead)| {
        without(&text, &said, &instead)
    })
}

/// What is hidden, as a person would write it, and what stands in its place.
fn collect(value: &Json, paths: &[&[String]], found: &mut Vec<(String, String)>) {
    if paths.is_empty() {
        return;
    }
    let ends = paths.iter().any(|path| path.is_empty());
    match value {
        Json::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, &below(paths, |segment| reaches_index(segment, at)), found);
            }
        }
        Json::Object(object) => {
            for (key, member) in object.iter() {
                collect(member, &below(paths, |segment| reaches_key(segment, key)), found);
            }
        }
        Json::String(text) if ends && !text.trim().is_empty() => {
            found.push((text.trim().to_owned(), hidden(value)));
        }
        Json::Number(number) if ends => found.push((number.as_str().to_owned(), hidden(value))),
        _ => {}
    }
}

/// The text with every place of `said` replaced.
fn without(text: &str, said: &str, instead: &str) -> String {
    let short = said.chars().count() < SHORT;
    let is_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let (mut kept, mut rest, mut before) = (String::new(), text, None);
    while let Some((ahead, behind)) = rest.split_once(said) {
        kept.push_str(ahead);
        before = ahead.chars().next_back().or(before);
        let inside = short && (is_word(before) || is_word(behind.chars().next()));
        kept.push_str(if inside { said } else { instead });
        before = said.chars().next_back();
        rest = behind;
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
