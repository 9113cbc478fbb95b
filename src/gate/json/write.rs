//! The two spellings: the canonical one (RFC 8785), and one for people.

use std::fmt::{self, Write as _};

use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::value::RawValue;

use super::Json;

impl Json {
    /// The canonical spelling: no blanks, keys in the order of their UTF-16 code units, the shortest escapes, numbers
    /// as [`Number::as_str`](crate::gate::number::Number::as_str) spells them. NUL stays the escape `\u0000`, so every
    /// database can keep the text.
    pub fn canonical(&self) -> String {
        self.spell(Layout::Canonical)
    }

    /// A spelling for people: two blanks for each level, otherwise as the canonical one.
    pub fn pretty(&self) -> String {
        self.spell(Layout::Pretty)
    }

    fn spell(&self, layout: Layout) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write(&mut text, self, layout, 0);
        text
    }
}

impl fmt::Display for Json {
    /// The canonical spelling.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical())
    }
}

impl Serialize for Json {
    /// Into JSON text only: the canonical spelling stands in it as it is, numbers included.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.canonical())
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Layout {
    Canonical,
    Pretty,
}

fn write(out: &mut String, value: &Json, layout: Layout, level: usize) -> fmt::Result {
    match value {
        Json::Null => out.write_str("null"),
        Json::Bool(value) => write!(out, "{value}"),
        Json::Number(number) => out.write_str(number.as_str()),
        Json::String(text) => string(out, text),
        Json::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                separate(out, layout, level + 1, at == 0);
                write(out, item, layout, level + 1)?;
            }
            close(out, layout, level, items.is_empty(), ']');
            Ok(())
        }
        Json::Object(object) => {
            out.push('{');
            for (at, (key, value)) in object.iter().enumerate() {
                separate(out, layout, level + 1, at == 0);
                string(out, key)?;
                out.push_str(if layout == Layout::Pretty { ": " } else { ":" });
                write(out, value, layout, level + 1)?;
            }
            close(out, layout, level, object.is_empty(), '}');
            Ok(())
        }
    }
}

fn separate(out: &mut String, layout: Layout, level: usize, first: bool) {
    if !first {
        out.push(',');
    }
    if layout == Layout::Pretty {
        line(out, level);
    }
}

fn close(out: &mut String, layout: Layout, level: usize, empty: bool, bracket: char) {
    if layout == Layout::Pretty && !empty {
        line(out, level);
    }
    out.push(bracket);
}

fn line(out: &mut String, level: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", level));
}

/// RFC 8785 section 3.2.2.2.
fn string(out: &mut String, text: &str) -> fmt::Result {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            control @ '\0'..='\u{1f}' => write!(out, "\\u{:04x}", u32::from(control))?,
            plain => out.push(plain),
        }
    }
    out.push('"');
    Ok(())
}
