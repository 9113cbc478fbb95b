//! The arguments as people may see them: redacted, laid out over lines, inert.

use std::fmt::Write as _;

use gatepost_channel::Inert;

use super::edit::{changes, diff};
use super::json::{Json, Pointer, ReadLimits};
use super::redact::redact;

/// Stored arguments for people. What cannot be redacted is not shown at all; the gate denied such a call before it was stored.
pub fn shown(canonical: &str, hidden: &[Pointer]) -> Inert {
    shown_or_hidden(redacted(canonical, hidden).as_ref())
}

/// The same of arguments that are redacted already.
pub fn shown_or_hidden(redacted: Option<&Json>) -> Inert {
    match redacted {
        Some(json) => Inert::new(&json.pretty()),
        None => Inert::new("‹hidden›"),
    }
}

/// The arguments of an edited call for people: what was changed, then all of them as they are now, each under its heading.
pub fn shown_edited(before: &str, after: &str, hidden: &[Pointer], headings: [&str; 2]) -> Inert {
    let [above_changes, above_all] = headings;
    match redacted(before, hidden).zip(redacted(after, hidden)) {
        Some((before, after)) => {
            let lines = diff(&changes(&before, &after));
            Inert::new(&format!(
                "{above_changes}\n{lines}\n\n{above_all}\n{}",
                after.pretty()
            ))
        }
        None => Inert::new("‹hidden›"),
    }
}

/// The redacted arguments in canonical form, for lists, pages and the audit log.
pub fn shown_canonical(canonical: &str, hidden: &[Pointer]) -> String {
    redacted(canonical, hidden).map_or_else(|| "{}".to_owned(), |json| json.canonical())
}

/// Arguments for people to change: laid out over lines, exact, and with everything that would not be seen as it is written as an
/// escape of JSON, so that what is sent back is what was there.
pub fn editable(canonical: &str, hidden: &[Pointer]) -> Option<String> {
    let is_plain = |text: &str| Inert::new(text).as_str() == text;
    let mut out = String::new();
    for line in redacted(canonical, hidden)?.pretty().split_inclusive('\n') {
        // What passes for something else in one place is honest in another: a line that shows as it is written stays.
        if is_plain(line) {
            out.push_str(line);
            continue;
        }
        for character in line.chars() {
            let one = character.encode_utf8(&mut [0; 4]).to_owned();
            if matches!(character, '\n' | ' ') || is_plain(&one) {
                out.push(character);
                continue;
            }
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _written = write!(out, "\\u{unit:04x}");
            }
        }
    }
    Some(out)
}

/// What differs between two calls, for people: redacted, laid out over lines, inert. Nothing where nothing differs that may be seen.
pub fn shown_changes(before: &str, after: &str, hidden: &[Pointer]) -> Inert {
    let (before, after) = (redacted(before, hidden), redacted(after, hidden));
    match before.zip(after) {
        Some((before, after)) => Inert::new(&diff(&changes(&before, &after))),
        None => Inert::new("‹hidden›"),
    }
}

/// Stored arguments, redacted; `None` for what cannot be.
pub fn redacted(canonical: &str, hidden: &[Pointer]) -> Option<Json> {
    let json = Json::read(canonical.as_bytes(), ReadLimits::bytes(canonical.len())).ok()?;
    redact(&json, hidden).ok()
}
