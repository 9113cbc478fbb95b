//! Spelling values as YAML that reads back as the same values: blocks for mappings and lists of mappings, JSON for the rest.

use std::fmt::Write as _;

use serde_json::Value;

/// The widest value that stands on the line of its key.
const WIDE: usize = 100;

/// An item of a list below a key at the left edge of `tools:`, indented as in the example configuration.
pub(super) fn item(parts: &[(&str, Value)]) -> String {
    let mut out = String::new();
    for (at, (key, value)) in parts.iter().enumerate() {
        out.push_str(if at == 0 { "    - " } else { "      " });
        pair(key, value, 6, &mut out);
    }
    out
}

/// A text for a comment: one line, bounded, nothing that a terminal or a reader would act on.
pub(super) fn comment(text: &str) -> String {
    crate::config::shown::shown_line(text, 300)
}

fn pair(key: &str, value: &Value, indent: usize, out: &mut String) {
    out.push_str(&spelt_key(key));
    out.push(':');
    let flow = flow(value);
    match value {
        Value::Object(members) if flow.len() + indent > WIDE && !members.is_empty() => {
            out.push('\n');
            for (key, value) in members {
                out.push_str(&" ".repeat(indent + 2));
                pair(key, value, indent + 2, out);
            }
        }
        _ => {
            out.push(' ');
            out.push_str(&flow);
            out.push('\n');
        }
    }
}

/// The value on one line. YAML 1.2 takes JSON as it is; keys and words that need no quotes get none.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| format!("{}: {}", spelt_key(key), flow(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::String(text) if is_word(text) => text.clone(),
        Value::String(text) => quoted(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn spelt_key(key: &str) -> String {
    if is_word(key) { key.to_owned() } else { quoted(key) }
}

/// A text that no reader of YAML takes for anything but text.
fn is_word(text: &str) -> bool {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let plain = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let odd = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    starts && plain && text.len() <= 64 && !odd.contains(&text.to_ascii_lowercase().as_str())
}

/// A text in quotes: JSON's, with everything escaped that YAML calls not printable or that is not seen.
fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        let hidden = matches!(
            c,
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}'
        ) || crate::config::shown::is_invisible(c);
        if hidden {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}
