//! The size of texts as they are stored: in JSON a control character or a quotation mark takes more than itself.

use std::ops::ControlFlow;

/// Stands at the end of a text that was cut.
const CUT: &str = "\n[cut: it was too long to be kept]";

/// The bytes of a character in a JSON text, as it is written here.
const fn of_char(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        c => c.len_utf8(),
    }
}

/// The bytes of a text in a JSON text, without its quotation marks.
pub fn stored(text: &str) -> usize {
    text.chars().map(of_char).sum()
}

/// The text, cut where it would take more than `most` bytes; it says so then, as far as there is room for that.
pub fn bounded(mut text: String, most: usize) -> String {
    // Nothing takes more than six bytes for one of its own.
    if text.len().saturating_mul(6) <= most || stored(&text) <= most {
        return text;
    }
    let room = most.saturating_sub(stored(CUT));
    let end = text.char_indices().try_fold(0, |taken, (at, c)| {
        let taken = taken + of_char(c);
        if taken > room {
            ControlFlow::Break(at)
        } else {
            ControlFlow::Continue(taken)
        }
    });
    if let ControlFlow::Break(at) = end {
        text.truncate(at);
        if room > 0 {
            text.push_str(CUT);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{bounded, stored};

    proptest! {
        #[test]
        fn a_size_is_that_of_the_json(text in any::<String>()) {
            prop_assert_eq!(stored(&text) + 2, serde_json::to_string(&text).unwrap().len());
        }

        #[test]
        fn a_bounded_text_is_within_its_bound(text in "(a|\u{1}|\"|\u{1F600}){0,300}", most in 0..400_usize) {
            let kept = bounded(text.clone(), most);
            prop_assert!(stored(&kept) <= most);
            if stored(&text) <= most {
                prop_assert_eq!(kept, text);
            } else if most > 40 {
                prop_assert!(kept.ends_with("kept]"));
            }
        }
    }
}
