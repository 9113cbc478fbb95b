//! The arguments as people may see them: redacted, laid out over lines, inert.

use gatepost_channel::Inert;

use super::json::{Json, Pointer, ReadLimits};
use super::redact::redact;

/// Stored arguments for people. What cannot be redacted is not shown at all; the gate denied such a call before it was stored.
pub fn shown(canonical: &str, hidden: &[Pointer]) -> Inert {
    match shown_json(canonical, hidden) {
        Some(json) => Inert::new(&json.pretty()),
        None => Inert::new("‹hidden›"),
    }
}

/// The redacted arguments in canonical form, for lists, pages and the audit log.
pub fn shown_canonical(canonical: &str, hidden: &[Pointer]) -> String {
    shown_json(canonical, hidden).map_or_else(|| "{}".to_owned(), |json| json.canonical())
}

fn shown_json(canonical: &str, hidden: &[Pointer]) -> Option<Json> {
    let json = Json::read(canonical.as_bytes(), ReadLimits::bytes(canonical.len())).ok()?;
    redact(&json, hidden).ok()
}
