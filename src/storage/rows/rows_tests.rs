//! Text comes back exactly as it was given, whatever it holds.

use proptest::prelude::*;

use super::Text;

proptest! {
    #[test]
    fn every_text_comes_back_and_is_spelled_without_nul(text in "[\\x00-\\x1f\\x{1a}a-c01\\x{4e00}\\x{1f600}]{0,24}") {
        let kept = Text::keep(&text);
        prop_assert!(!kept.clone().into_kept().contains('\0'));
        prop_assert_eq!(kept.give(), Some(text));
    }
}

#[test]
fn the_six_characters_of_an_escape_are_left_alone() {
    assert_eq!(Text::keep(r"\u0000").into_kept(), r"\u0000");
    assert_eq!(Text::keep("a\0b").into_kept(), "a\u{1a}0b");
    assert_eq!(Text("a\u{1a}".to_owned()).give(), None);
    assert_eq!(Text("a\0".to_owned()).give(), None);
}
