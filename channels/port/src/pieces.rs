//! Text in parts: all of it, in order, none longer than a platform takes.

use unicode_segmentation::UnicodeSegmentation;

use crate::text::Inert;

impl Inert {
    /// The whole text in pieces of at most `budget` units, cut at line ends where there are any, else between grapheme clusters. Put
    /// together again they are the text, letter for letter. A single character that costs more than the budget is a piece of its own.
    pub fn pieces(&self, budget: usize, cost: impl Fn(&str) -> usize) -> Vec<&str> {
        let text = self.as_str();
        let mut pieces = Vec::new();
        let (mut from, mut used, mut line_end) = (0, 0, 0);
        for (at, unit) in units(text, budget, &cost) {
            let one = cost(unit);
            // A line end may be so far back that what follows it is still too long with this one.
            while used + one > budget && at > from {
                let cut = if line_end > from { line_end } else { at };
                pieces.push(&text[from..cut]);
                from = cut;
                used = cost(&text[from..at]);
            }
            used += one;
            if unit.ends_with('\n') {
                line_end = at + unit.len();
            }
        }
        if from < text.len() {
            pieces.push(&text[from..]);
        }
        pieces
    }
}

/// Grapheme clusters; one that alone is over the budget falls apart into characters.
fn units<'a>(
    text: &'a str,
    budget: usize,
    cost: &impl Fn(&str) -> usize,
) -> impl Iterator<Item = (usize, &'a str)> {
    text.grapheme_indices(true).flat_map(move |(at, cluster)| {
        let step = |text: &'a str| text.chars().next().map_or(0, char::len_utf8);
        let whole = cost(cluster) <= budget;
        let mut rest = (at, cluster);
        std::iter::from_fn(move || {
            let (at, text) = rest;
            let len = if whole { text.len() } else { step(text) };
            let (unit, behind) = text.split_at_checked(len)?;
            rest = (at + len, behind);
            (!unit.is_empty()).then_some((at, unit))
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_stay_whole_where_they_can() {
        let text = Inert::new("one\ntwo\nthree and more\n");
        assert_eq!(text.pieces(9, str::len), ["one\ntwo\n", "three and", " more\n"]);
        assert_eq!(text.pieces(100, str::len), ["one\ntwo\nthree and more\n"]);
        assert!(Inert::new("").pieces(9, str::len).is_empty());
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_too_long(
            text in prop_oneof![any::<String>(), "[a\n支é\u{e38}]{0,300}"],
            budget in 4_usize..60,
        ) {
            let text = Inert::new(&text);
            let pieces = text.pieces(budget, str::len);
            prop_assert_eq!(pieces.concat(), text.as_str());
            prop_assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= budget));
        }
    }
}
