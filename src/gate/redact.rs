//! What people see of arguments: values that policy hides are replaced by their type and length (invariant 10 in docs/ARCHITECTURE.md).
//!
//! It must not know which rule hides what, or who looks.

use thiserror::Error;

use super::json::{Json, Kind, Pointer, reaches_index, reaches_key};

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

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
