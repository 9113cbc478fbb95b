//! The arguments of a call in parts that people read easily: commands and documents as they are, edits as changes, short values
//! in rows, and everything else as JSON. The shape of the arguments decides, never the name of the tool.
//!
//! Every argument stands whole in exactly one part; where the shape is none of these, all of it is shown as JSON. A text stands
//! without quotes only where it cannot be taken for a number, a list or nothing.

use gatepost_channel::{Body, Content, Inert, Part, Row};

use super::diff::change;
use super::phrase::{ArgumentWords, Phrases};
use crate::gate::json::{Json, Object, Pointer, ReadLimits};
use crate::gate::{redacted, shown_changes, shown_edited, shown_or_hidden};

/// Arguments that hold a command.
const COMMANDS: [&str; 3] = ["command", "cmd", "script"];
/// Arguments that hold a text and what it becomes: the spellings of agent hosts.
const EDITS: [(&str, &str); 5] = [
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_str", "new_str"),
    ("oldText", "newText"),
    ("old_text", "new_text"),
];
/// The argument that holds several edits of one file.
const SEVERAL: &str = "edits";
/// A value with more characters gets a part of its own.
const SHORT: usize = 160;
/// A name with more characters, or with others than these, is shown in JSON, where no heading can hold it.
const LONGEST_NAME: usize = 32;

/// Stored arguments as a card shows them.
pub fn body(canonical: &str, hidden: &[Pointer], words: &ArgumentWords) -> Body {
    let json = redacted(canonical, hidden);
    let whole = shown_or_hidden(json.as_ref());
    match json.as_ref().and_then(Json::as_object) {
        Some(object) => Body::new(parts(object, words).unwrap_or_default(), whole),
        None => Body::from(whole),
    }
}

/// The arguments of an edited call: what a person changed, then all of them as they are now.
pub fn edited(before: &str, after: &str, hidden: &[Pointer], phrases: &Phrases) -> Body {
    let [above_changes, above_all] = phrases.edited();
    let changes = Part {
        heading: above_changes.to_owned(),
        content: Content::Literal(shown_changes(before, after, hidden)),
    };
    let now = body(after, hidden, &phrases.parts);
    let parts = [changes].into_iter().chain(now.parts().iter().cloned());
    let whole = shown_edited(before, after, hidden, [above_changes, above_all]);
    Body::new(parts.collect(), whole)
}

/// `None` where a name fits no heading.
fn parts(object: &Object, words: &ArgumentWords) -> Option<Vec<Part>> {
    let (mut first, mut rows, mut changes, mut rest) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let edit = changed(object);
    for (name, value) in object.iter() {
        if edit
            .as_ref()
            .is_some_and(|(old, new, _)| name == *old || name == *new)
        {
            continue;
        }
        match value {
            Json::String(text) if COMMANDS.contains(&name) && !text.trim().is_empty() => {
                first.push(literal(name, text, words)?);
            }
            Json::Array(items)
                if name == SEVERAL && several(items, words, &mut rows, &mut changes).is_some() => {}
            Json::String(text) if text.contains('\n') => rest.push(literal(name, text, words)?),
            value => match short(value) {
                Some(value) => rows.push(row(name, &value)),
                None => rest.push(match value {
                    Json::String(text) => literal(name, text, words)?,
                    value => Part {
                        heading: words.named.replace("{name}", plain(name)?),
                        content: Content::Literal(Inert::new(&value.pretty())),
                    },
                }),
            },
        }
    }
    changes.extend(edit.map(|(old, new, content)| Part {
        heading: words.change.replace("{old}", old).replace("{new}", new),
        content,
    }));
    if !rows.is_empty() {
        first.push(Part {
            heading: String::new(),
            content: Content::Rows(rows),
        });
    }
    Some(first.into_iter().chain(changes).chain(rest).collect())
}

/// A text as it is.
fn literal(name: &str, text: &str, words: &ArgumentWords) -> Option<Part> {
    let heading = words
        .text
        .replace("{count}", &text.chars().count().to_string())
        .replace("{name}", plain(name)?);
    Some(Part {
        heading,
        content: Content::Literal(Inert::new(text)),
    })
}

/// The edit that an object holds: both names, and what changes.
fn changed(object: &Object) -> Option<(&'static str, &'static str, Content)> {
    let mut pairs = EDITS.into_iter();
    pairs.find_map(|(old, new)| {
        let text = |name| object.get(name).and_then(Json::as_str);
        Some((old, new, change(text(old)?, text(new)?)?))
    })
}

/// Several edits of one file. What stands beside the texts of each goes into the rows. `None`, and nothing done, where one of
/// them is no edit.
fn several(
    items: &[Json],
    words: &ArgumentWords,
    rows: &mut Vec<Row>,
    changes: &mut Vec<Part>,
) -> Option<()> {
    let (mut beside, mut found) = (Vec::new(), Vec::new());
    for (at, item) in items.iter().enumerate() {
        let object = item.as_object()?;
        let (old, new, content) = changed(object)?;
        for (name, value) in object.iter().filter(|(name, _)| *name != old && *name != new) {
            beside.push(row(&format!("{SEVERAL}[{at}].{name}"), &short(value)?));
        }
        let old = format!("{SEVERAL}[{at}]: {old}");
        found.push(Part {
            heading: words.change.replace("{old}", &old).replace("{new}", new),
            content,
        });
    }
    if found.is_empty() {
        return None;
    }
    rows.append(&mut beside);
    changes.append(&mut found);
    Some(())
}

/// A name that a heading can hold.
fn plain(name: &str) -> Option<&str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (!name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(fits)).then_some(name)
}

/// A row; a name that could be taken for more than a name stands in quotes.
fn row(name: &str, value: &str) -> Row {
    let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, ':' | '"' | '\\' | ',');
    let key = if name.is_empty() || name.chars().any(odd) {
        Json::from(name).canonical()
    } else {
        name.to_owned()
    };
    Row {
        key: Inert::new(&key).one_line(),
        value: Inert::new(value).one_line(),
    }
}

/// A value that fits a row, as it is spelled there.
fn short(value: &Json) -> Option<String> {
    let flat = match value {
        Json::Array(items) => items.iter().all(Json::is_scalar),
        Json::Object(object) => object.is_empty(),
        Json::String(text) => {
            return (text.chars().count() <= SHORT && !text.contains('\n')).then(|| spelled(text));
        }
        _ => true,
    };
    let text = flat.then(|| value.canonical())?;
    (text.chars().count() <= SHORT).then_some(text)
}

/// A text in a row: in quotes where it would be taken for something else without.
fn spelled(text: &str) -> String {
    let blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
    let other = text.starts_with(['"', '[', '{'])
        || Json::read(text.as_bytes(), ReadLimits::bytes(text.len())).is_ok()
        || blank(text.chars().next())
        || blank(text.chars().next_back());
    if other {
        Json::from(text).canonical()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
