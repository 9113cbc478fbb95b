//! Writing to the terminal: the only place that prints. Text of others is made inert before it is shown.

use std::io::{IsTerminal as _, Write as _};

use gatepost_channel::Inert;
use serde_json::Value;

use crate::clock::{UtcMillis, parse_rfc3339};

/// One line on stdout. A reader that went away is no error.
pub fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    drop(writeln!(out, "{text}"));
}

/// Whether what stands on stdout can be written over.
pub fn is_live() -> bool {
    std::io::stdout().is_terminal()
}

/// Lines on stdout over the `above` lines that were written last.
pub fn over(above: usize, lines: &[String]) {
    let mut out = std::io::stdout().lock();
    if above > 0 {
        // ECMA-48: up to the first of them, and clear from there.
        drop(write!(out, "\u{1b}[{above}F\u{1b}[J"));
    }
    for line in lines {
        drop(writeln!(out, "{line}"));
    }
    drop(out.flush());
}

/// A message on stderr, under the program's name.
pub fn error(text: &str) {
    note(&format!("gatepost: {text}"));
}

/// A line on stderr: what goes on while the answer on stdout is not there yet.
pub fn note(text: &str) {
    let mut err = std::io::stderr().lock();
    drop(writeln!(err, "{text}"));
}

/// Bytes on stdout as they are.
pub fn bytes(bytes: &[u8]) {
    drop(std::io::stdout().lock().write_all(bytes));
}

/// A JSON value on stdout.
pub fn json(value: &Value) {
    line(&serde_json::to_string_pretty(value).unwrap_or_default());
}

/// A member as one inert line of text; `-` when there is none.
pub fn text(value: &Value, member: &str) -> String {
    inert(&value[member])
}

/// A value as one inert line of text; `-` for null and for nothing.
pub fn inert(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => foreign(text),
        other => foreign(&other.to_string()),
    }
}

/// Somebody else's words on one inert line.
pub fn foreign(text: &str) -> String {
    Inert::new(text).one_line().to_string()
}

/// Somebody else's words, each line of them inert.
pub fn lines(text: &str) -> String {
    block(text, "")
}

/// A text that is laid out over lines, each inert and after `indent`.
pub fn block(text: &str, indent: &str) -> String {
    let lines = text.lines().map(|line| format!("{indent}{}", keep_indent(line)));
    lines.collect::<Vec<_>>().join("\n")
}

/// The indentation of a laid out line is ours, the rest of it is not.
fn keep_indent(line: &str) -> String {
    let rest = line.trim_start_matches(' ');
    format!("{}{}", &line[..line.len() - rest.len()], foreign(rest))
}

/// Names and values, one a line, the values under each other.
pub fn facts(facts: &[(&str, String)]) {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in facts {
        line(&format!("{name:<width$}  {value}"));
    }
}

/// The time from a member until `now`, or from `now` until it: `12s`, `3m`, `2h 5m`, `4d`; `-` when there is none.
pub fn distance(value: &Value, member: &str, now: UtcMillis) -> String {
    let Some(at) = value[member].as_str().and_then(parse_rfc3339) else {
        return "-".to_owned();
    };
    span(at.0.abs_diff(now.0) / 1000)
}

/// A span of seconds for people, in its two largest units.
pub fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h {}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Whether colours may be used: on a terminal, and not against the reader's wish (<https://no-color.org>).
pub fn colours() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    !refused && !dumb && std::io::stdout().is_terminal()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn foreign_text_cannot_steer_the_terminal() {
        let value = json!({"tool_name": "pay\u{1b}[2J\u{202e}\nnow", "n": 4, "nothing": null, "empty": ""});
        assert_eq!(text(&value, "tool_name"), "pay\\x1b[2J\\u{202E}\\nnow");
        assert_eq!(text(&value, "n"), "4");
        assert_eq!(
            (text(&value, "nothing"), text(&value, "empty")),
            ("-".to_owned(), "-".to_owned())
        );
        assert_eq!(
            block("{\n  \"a\": \"\u{200b}\"\n}", "| "),
            "| {\n|   \"a\": \"\\u{200B}\"\n| }"
        );
    }

    #[test]
    fn spans_read_well() {
        for (seconds, expected) in [
            (0, "0s"),
            (59, "59s"),
            (61, "1m"),
            (3_600, "1h 0m"),
            (7_500, "2h 5m"),
            (200_000, "2d"),
        ] {
            assert_eq!(span(seconds), expected);
        }
        let value = json!({"expires_at": "2026-01-01T00:02:00Z", "bad": "soon"});
        let now = parse_rfc3339("2026-01-01T00:00:30Z").expect("a time");
        assert_eq!(distance(&value, "expires_at", now), "1m");
        assert_eq!(distance(&value, "bad", now), "-");
    }
}
