//! What an edit changes, line by line. No line is left out, so that both texts can be read from it.

use gatepost_channel::{Content, Fate, Inert, Line};
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// More lines than this are not compared: the work grows with their square, and no card shows as many.
const MOST_LINES: usize = 2_000;

/// The change from one text to the other; `None` when they are too long to be compared. A text ends where its last line ends:
/// a line break at the end shows as an empty line.
pub fn change(before: &str, after: &str) -> Option<Content> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.split('\n').collect(), after.split('\n').collect());
    if old.len() + new.len() > MOST_LINES {
        return None;
    }
    let mut lines = Vec::new();
    let mut add = |fate, texts: &[&str]| {
        lines.extend(texts.iter().map(|text| Line {
            fate,
            text: Inert::new(text),
        }));
    };
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        let (fate, went, came) = match op {
            DiffOp::Equal { .. } => (
                Fate::Kept,
                op.old_range(),
                op.new_range().start..op.new_range().start,
            ),
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                (Fate::Removed, op.old_range(), op.new_range())
            }
        };
        add(fate, &old[went]);
        add(Fate::Added, &new[came]);
    }
    Some(Content::Change(lines))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_change_reads_like_a_unified_diff() {
        let change = change("fn a() {\n  1\n}\n", "fn a() {\n  2\n  3\n}\n").unwrap();
        assert_eq!(change.text().as_str(), "  fn a() {\n-   1\n+   2\n+   3\n  }\n  ");
    }

    #[test]
    fn what_is_too_long_is_not_compared() {
        let long = "x\n".repeat(MOST_LINES);
        assert_eq!(change(&long, "x"), None);
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_from_it(before in "[abc\n]{0,40}", after in "[abc\n]{0,40}") {
            let Some(Content::Change(lines)) = change(&before, &after) else { panic!("short enough") };
            let side = |gone: Fate| {
                let kept = lines.iter().filter(|line| line.fate != gone);
                kept.map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
            };
            prop_assert_eq!(side(Fate::Added), before);
            prop_assert_eq!(side(Fate::Removed), after);
        }
    }
}
