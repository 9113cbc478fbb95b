//! Arguments that a person changed before they approved: what a rule lets people change, what of it stays as it was, and what the
//! change is.
//!
//! It must not know who edits, whether their vote counts, or how the edited call reaches whoever runs it.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::arguments::{Arguments, InvalidArguments};
use super::json::{Json, Pointer, reaches_index, reaches_key};
use super::redact::{below, hidden};

/// What of a request's arguments people may change when they approve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditTerms {
    /// Which of them.
    pub scope: EditScope,
    /// Whether whoever asked takes other arguments than it sent. Nobody is offered an edit that would not arrive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub carried: bool,
}

/// Which arguments may be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EditScope {
    /// All of them.
    Any,
    /// What stands at these places; the segment `*` is every item or member.
    At(Vec<Pointer>),
}

/// Why changed arguments are no edit that the request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EditProblem {
    /// They differ where the rule lets nobody change anything.
    #[error("the rule does not let people change these arguments")]
    OutOfScope,
    /// A hidden value was changed, added, removed or moved.
    #[error("what the rule hides cannot be changed; leave it as it is shown")]
    Hidden,
    /// They are no arguments any more.
    #[error(transparent)]
    Malformed(#[from] InvalidArguments),
}

impl EditTerms {
    /// What both let people change; nothing when that is nothing.
    pub fn and(&self, other: &Self) -> Option<Self> {
        let scope = match (&self.scope, &other.scope) {
            (EditScope::Any, scope) | (scope, EditScope::Any) => scope.clone(),
            (EditScope::At(ours), EditScope::At(theirs)) => {
                let within = |one: &[Pointer], two: &[Pointer]| -> Vec<Pointer> {
                    let inside = |pointer: &&Pointer| two.iter().any(|wider| covers(wider, pointer));
                    one.iter().filter(inside).cloned().collect()
                };
                let mut both = within(ours, theirs);
                for pointer in within(theirs, ours) {
                    if !both.contains(&pointer) {
                        both.push(pointer);
                    }
                }
                if both.is_empty() {
                    return None;
                }
                EditScope::At(both)
            }
        };
        Some(Self {
            scope,
            carried: self.carried && other.carried,
        })
    }

    /// The arguments as they are after the edit: hidden values as they were proposed, everything else as it was written. `hidden` is
    /// what people do not see; where `edited` holds what they see instead, the hidden value is put back.
    pub fn apply(
        &self,
        proposed: &Json,
        edited: &Arguments,
        hidden: &[Pointer],
    ) -> Result<Arguments, EditProblem> {
        let whole = put_back(Some(proposed), Some(edited.json()), &segments(hidden))?;
        let whole = whole.ok_or(EditProblem::Hidden)?;
        if let EditScope::At(places) = &self.scope
            && !only_within(Some(proposed), Some(&whole), &segments(places))
        {
            return Err(EditProblem::OutOfScope);
        }
        Ok(Arguments::try_from(whole)?)
    }

    /// Where the edit differs although the rule lets nobody change that: JSON pointers, and those of what may be changed. Both are
    /// empty where everything may be.
    pub fn outside(
        &self,
        proposed: &Json,
        edited: &Arguments,
        hidden: &[Pointer],
    ) -> (Vec<String>, Vec<String>) {
        let EditScope::At(places) = &self.scope else {
            return (Vec::new(), Vec::new());
        };
        let whole = put_back(Some(proposed), Some(edited.json()), &segments(hidden));
        let Ok(Some(whole)) = whole else {
            return (Vec::new(), Vec::new());
        };
        let inside = |at: &str| {
            let at = at.parse::<Pointer>();
            at.is_ok_and(|at| places.iter().any(|place| covers(place, &at)))
        };
        let mut outside: Vec<String> = changes(proposed, &whole)
            .into_iter()
            .map(|change| change.at)
            .collect();
        outside.retain(|at| !inside(at));
        (outside, places.iter().map(ToString::to_string).collect())
    }
}

/// Whether everything that `narrow` names lies at or below what `wide` names.
pub(in crate::gate) fn covers(wide: &Pointer, narrow: &Pointer) -> bool {
    let (wide, narrow) = (wide.segments(), narrow.segments());
    wide.len() <= narrow.len()
        && wide
            .iter()
            .zip(narrow)
            .all(|(wide, narrow)| wide == "*" || wide == narrow)
}

fn segments(pointers: &[Pointer]) -> Vec<&[String]> {
    pointers.iter().map(Pointer::segments).collect()
}

/// Whether any of the paths ends at something in the value.
fn meets(value: Option<&Json>, paths: &[&[String]]) -> bool {
    let Some(value) = value else { return false };
    if paths.iter().any(|path| path.is_empty()) {
        return true;
    }
    if paths.is_empty() {
        return false;
    }
    match value {
        Json::Array(items) => (0..)
            .zip(items)
            .any(|(at, item)| meets(Some(item), &below(paths, |segment| reaches_index(segment, at)))),
        Json::Object(object) => object
            .iter()
            .any(|(key, member)| meets(Some(member), &below(paths, |segment| reaches_key(segment, key)))),
        _ => false,
    }
}

/// The edited value with the hidden ones of the proposed one in it. A hidden value has one place before and after: none may come,
/// go, or move along a list. Recurses as deep as arguments nest.
fn put_back(
    proposed: Option<&Json>,
    edited: Option<&Json>,
    paths: &[&[String]],
) -> Result<Option<Json>, EditProblem> {
    if !meets(proposed, paths) && !meets(edited, paths) {
        return Ok(edited.cloned());
    }
    if paths.iter().any(|path| path.is_empty()) {
        return match (proposed, edited) {
            (Some(before), Some(after))
                if before.is_scalar() && (after == before || after.as_str() == Some(&hidden(before))) =>
            {
                Ok(Some(before.clone()))
            }
            _ => Err(EditProblem::Hidden),
        };
    }
    match (proposed, edited) {
        (Some(Json::Array(before)), Some(Json::Array(after))) if before.len() == after.len() => {
            let items = before.iter().zip(after).enumerate().map(|(at, (before, after))| {
                let paths = below(paths, |segment| reaches_index(segment, at));
                put_back(Some(before), Some(after), &paths)?.ok_or(EditProblem::Hidden)
            });
            Ok(Some(Json::Array(items.collect::<Result<_, _>>()?)))
        }
        (Some(Json::Object(before)), Some(Json::Object(after))) => {
            let mut members = Vec::new();
            for key in keys(before, after) {
                let paths = below(paths, |segment| reaches_key(segment, key));
                if let Some(member) = put_back(before.get(key), after.get(key), &paths)? {
                    members.push((key, member));
                }
            }
            Ok(Some(Json::object(members)))
        }
        _ => Err(EditProblem::Hidden),
    }
}

/// Whether two values are equal but at the ends of the paths.
fn only_within(before: Option<&Json>, after: Option<&Json>, paths: &[&[String]]) -> bool {
    if before == after || paths.iter().any(|path| path.is_empty()) {
        return true;
    }
    if paths.is_empty() {
        return false;
    }
    match (before, after) {
        (Some(Json::Array(before)), Some(Json::Array(after))) if before.len() == after.len() => {
            before.iter().zip(after).enumerate().all(|(at, (before, after))| {
                let paths = below(paths, |segment| reaches_index(segment, at));
                only_within(Some(before), Some(after), &paths)
            })
        }
        (Some(Json::Object(before)), Some(Json::Object(after))) => keys(before, after).all(|key| {
            let paths = below(paths, |segment| reaches_key(segment, key));
            only_within(before.get(key), after.get(key), &paths)
        }),
        _ => false,
    }
}

/// The keys of both, each once.
fn keys<'a>(
    before: &'a super::json::Object,
    after: &'a super::json::Object,
) -> impl Iterator<Item = &'a str> {
    let added = after.iter().map(|(key, _)| key);
    let added = added.filter(|key| before.get(key).is_none());
    before.iter().map(|(key, _)| key).chain(added)
}

/// One place at which two values differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where, as a JSON pointer (RFC 6901).
    pub at: String,
    /// What stood there; nothing where it was added.
    pub before: Option<Json>,
    /// What stands there; nothing where it was removed.
    pub after: Option<Json>,
}

/// The places at which two values differ: as deep as objects have the same keys and lists the same length.
pub fn changes(before: &Json, after: &Json) -> Vec<Change> {
    let mut found = Vec::new();
    collect(&mut String::new(), Some(before), Some(after), &mut found);
    found
}

fn collect(at: &mut String, before: Option<&Json>, after: Option<&Json>, found: &mut Vec<Change>) {
    if before == after {
        return;
    }
    let mut inside = |segment: &str, before: Option<&Json>, after: Option<&Json>| {
        let end = at.len();
        at.push('/');
        at.push_str(&segment.replace('~', "~0").replace('/', "~1"));
        collect(at, before, after, found);
        at.truncate(end);
    };
    match (before, after) {
        (Some(Json::Object(before)), Some(Json::Object(after))) => {
            for key in keys(before, after) {
                inside(key, before.get(key), after.get(key));
            }
        }
        (Some(Json::Array(before)), Some(Json::Array(after))) if before.len() == after.len() => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                inside(&index.to_string(), Some(before), Some(after));
            }
        }
        _ => found.push(Change {
            at: at.clone(),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

/// The changes for people: `- place: value` as it was, `+ place: value` as it is. Of a text of several lines only the lines that
/// differ are told, each on a line of its own.
pub fn diff(changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes {
        match (&change.before, &change.after) {
            (Some(Json::String(before)), Some(Json::String(after)))
                if before.contains('\n') || after.contains('\n') =>
            {
                line(&mut text, ' ', &format!("{}:", change.at));
                let (gone, come) = differing_lines(before, after);
                for (mark, lines) in [('-', gone), ('+', come)] {
                    for one in lines {
                        line(&mut text, mark, one);
                    }
                }
            }
            (before, after) => {
                for (mark, value) in [('-', before), ('+', after)] {
                    if let Some(value) = value {
                        line(&mut text, mark, &format!("{}: {}", change.at, value.canonical()));
                    }
                }
            }
        }
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

fn line(text: &mut String, mark: char, value: &str) {
    text.push(mark);
    text.push(' ');
    text.push_str(value);
    text.push('\n');
}

/// What is left of the lines of both when those that are equal at the beginning and at the end are left out.
fn differing_lines<'a>(before: &'a str, after: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let (mut before, mut after): (Vec<_>, Vec<_>) =
        (before.split('\n').collect(), after.split('\n').collect());
    let equal = before
        .iter()
        .zip(&after)
        .take_while(|(one, two)| one == two)
        .count();
    before.drain(..equal);
    after.drain(..equal);
    let equal = before
        .iter()
        .rev()
        .zip(after.iter().rev())
        .take_while(|(one, two)| one == two)
        .count();
    before.truncate(before.len() - equal);
    after.truncate(after.len() - equal);
    (before, after)
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
