//! The arguments in a field of a modal, so spelled that they come back as they were put there.
//!
//! Slack reads the entities `&amp;`, `&lt;` and `&gt;` in texts that it is sent, and gives emoji back by their names (`:rocket:`). In
//! JSON such characters stand in strings and keys only, so an escape says the same and goes through untouched.

use std::fmt::Write as _;

use gatepost_channel::{EditForm, FullView};

use crate::blocks::{Block, FIELD_TEXT, cost};

/// The block of the field for changed arguments; block and field have one name.
pub(crate) const ARGUMENTS: &str = "args";

/// The label of the field, in units.
const LABEL: usize = 300;
/// Where else they can be changed, in units.
const ELSEWHERE: usize = 1_000;

/// The field, or where the arguments can be changed when they do not fit into one.
pub(crate) fn lay_out(view: &FullView) -> Option<Block> {
    let EditForm {
        text,
        label,
        elsewhere,
        ..
    } = view.edit.as_ref()?;
    Some(match spelled(text) {
        Some(text) => Block::editor(ARGUMENTS, label, LABEL, text),
        None => Block::line(elsewhere, ELSEWHERE),
    })
}

/// The text as it goes through Slack unchanged; nothing where it is too long for a field.
fn spelled(text: &str) -> Option<String> {
    // Nothing that is far too long is spelled out to be measured.
    if text.len() > 4 * FIELD_TEXT {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        let entity = ["&amp;", "&lt;", "&gt;"]
            .iter()
            .any(|entity| text[at..].starts_with(entity));
        if entity || may_be_emoji(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _written = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(character);
        }
    }
    (cost(&out) <= FIELD_TEXT).then_some(out)
}

/// Whether Slack may take it for an emoji: everything beyond the basic plane, and the blocks of it in which emoji stand (Unicode,
/// emoji-data). Rather too many than one that comes back as a name.
const fn may_be_emoji(character: char) -> bool {
    matches!(character,
        '\u{a9}' | '\u{ae}' | '\u{200d}' | '\u{203c}' | '\u{2049}' | '\u{20e3}'
        | '\u{2100}'..='\u{214f}' | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{2460}'..='\u{24ff}'
        | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}'
        | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{fe00}'..='\u{fe0f}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slack_would_change_is_spelled_as_an_escape_and_nothing_else() {
        for (text, expected) in [
            (
                r#"{"cmd": "a && b > c; d & e <x>"}"#,
                r#"{"cmd": "a && b > c; d & e <x>"}"#,
            ),
            (
                r#"{"html": "R&amp;D &lt;b&gt; &nbsp;"}"#,
                r#"{"html": "R\u0026amp;D \u0026lt;b\u0026gt; &nbsp;"}"#,
            ),
            (
                r#"{"🚀": "✅ 支払い é"}"#,
                r#"{"\ud83d\ude80": "\u2705 支払い é"}"#,
            ),
        ] {
            let spelled = spelled(text).unwrap();
            assert_eq!(spelled, expected);
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(read(&spelled), read(text), "it says the same");
        }
    }

    #[test]
    fn what_does_not_fit_is_not_cut() {
        assert!(spelled(&"x".repeat(FIELD_TEXT)).is_some());
        assert_eq!(spelled(&"x".repeat(FIELD_TEXT + 1)), None);
        assert_eq!(
            spelled(&"🚀".repeat(FIELD_TEXT / 12 + 1)),
            None,
            "measured as it is sent"
        );
        assert_eq!(
            spelled(&"<".repeat(FIELD_TEXT / 2)),
            None,
            "and as Slack may escape it"
        );
    }
}
