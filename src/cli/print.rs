//! Writing to the terminal: the only place that prints. Text of others is made inert before it is shown.

use std::io::Write as _;

use gatepost_channel::Inert;
use serde_json::Value;

/// One line on stdout. A reader that went away is no error.
pub fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    drop(writeln!(out, "{text}"));
}

/// A message on stderr.
pub fn error(text: &str) {
    let mut err = std::io::stderr().lock();
    drop(writeln!(err, "gatepost: {text}"));
}

/// A JSON value on stdout.
pub fn json(value: &Value) {
    line(&serde_json::to_string_pretty(value).unwrap_or_default());
}

/// A member as one inert line of text; `-` when there is none.
pub fn text(value: &Value, member: &str) -> String {
    match &value[member] {
        Value::Null => "-".to_owned(),
        Value::String(text) => Inert::new(text).one_line().to_string(),
        other => Inert::new(&other.to_string()).one_line().to_string(),
    }
}

/// Rows under headings, in columns as wide as they need.
pub fn table(headings: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([headings[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..headings.len()).map(width).collect();
    let render = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    line(&render(headings.to_vec()));
    for row in rows {
        line(&render(row.iter().map(String::as_str).collect()));
    }
}
