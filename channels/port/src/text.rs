//! Untrusted text made inert: nothing in it hides, reorders, pads or imitates.
//!
//! Markup is each platform's own affair and dies in the adapter (plain-text fields, escaping); what no platform takes care of
//! dies here, once, for all of them: control characters, bidirectional controls, invisible characters, exotic blanks, padding
//! and piled-up marks become visible, and so does what passes for something else ([`lookalike`]). Other letters, digits,
//! punctuation and ordinary line breaks stay as they were.

use std::fmt;

use unicode_segmentation::UnicodeSegmentation;

use crate::lookalike;

/// More blanks in a row than this are counted instead of shown.
const MAX_BLANKS: usize = 16;
/// More line breaks in a row than this are counted instead of shown.
const MAX_BREAKS: usize = 3;
/// More combining marks on one character than this are counted instead of shown.
const MAX_MARKS: usize = 4;

/// Text that somebody else wrote, safe to be shown as text. Made only by [`Inert::new`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Inert(String);

impl Inert {
    /// Makes any text inert.
    pub fn new(text: &str) -> Self {
        let mut out = String::with_capacity(text.len());
        let mut alike = lookalike::places(text).into_iter().peekable();
        let mut chars = text.char_indices().peekable();
        let mut marks = 0_usize;
        while let Some((at, c)) = chars.next() {
            if alike.next_if_eq(&at).is_some() {
                marks = 0;
                note(&mut out, format_args!("\\u{{{:04X}}}", c as u32));
                continue;
            }
            if is_mark(c) {
                marks += 1;
                if marks <= MAX_MARKS {
                    out.push(c);
                } else if !chars.peek().is_some_and(|(_, next)| is_mark(*next)) {
                    note(&mut out, format_args!("[+{} marks]", marks - MAX_MARKS));
                }
                continue;
            }
            marks = 0;
            match c {
                ' ' | '\n' => {
                    let mut run = 1;
                    while chars.next_if(|(_, next)| *next == c).is_some() {
                        run += 1;
                    }
                    let (limit, word) = if c == ' ' {
                        (MAX_BLANKS, "spaces")
                    } else {
                        (MAX_BREAKS, "line breaks")
                    };
                    if run > limit {
                        note(&mut out, format_args!("[{run} {word}]"));
                        if c == '\n' {
                            out.push('\n');
                        }
                    } else {
                        out.extend(std::iter::repeat_n(c, run));
                    }
                }
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                c if c.is_control() && (c as u32) < 0x80 => {
                    note(&mut out, format_args!("\\x{:02x}", c as u32));
                }
                c if hides(c) => note(&mut out, format_args!("\\u{{{:04X}}}", c as u32)),
                c => out.push(c),
            }
        }
        Self(out)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How many characters it has (Unicode scalar values).
    pub fn characters(&self) -> usize {
        self.0.chars().count()
    }

    /// Inert lines below each other. Each is somebody's inert text with signs and blanks of ours around it.
    pub(crate) fn lines(lines: impl IntoIterator<Item = String>) -> Self {
        Self(lines.into_iter().collect::<Vec<_>>().join("\n"))
    }

    /// The same on one line: line breaks become visible.
    #[must_use]
    pub fn one_line(&self) -> Self {
        Self(self.0.replace('\n', "\\n"))
    }

    /// At most `budget` units from the start, cut between grapheme clusters; `cost` gives the units of a piece.
    pub fn head(&self, budget: usize, cost: impl Fn(&str) -> usize) -> &str {
        let mut used = 0;
        for (at, cluster) in self.0.grapheme_indices(true) {
            used += cost(cluster);
            if used > budget {
                return &self.0[..at];
            }
        }
        &self.0
    }

    /// At most `budget` units from the end, cut between grapheme clusters.
    pub fn tail(&self, budget: usize, cost: impl Fn(&str) -> usize) -> &str {
        let mut used = 0;
        let mut from = self.0.len();
        for (at, cluster) in self.0.grapheme_indices(true).rev() {
            used += cost(cluster);
            if used > budget {
                break;
            }
            from = at;
        }
        &self.0[from..]
    }

    /// The text within `budget` units: whole, or its head and its tail around a gap.
    pub fn clip(&self, budget: usize, cost: impl Fn(&str) -> usize + Copy) -> Clip<'_> {
        if cost(&self.0) <= budget {
            return Clip::Whole(&self.0);
        }
        let head = self.head(budget - budget / 3, cost);
        let tail = self.tail(budget / 3, cost);
        Clip::Cut {
            head,
            tail,
            shown: head.chars().count() + tail.chars().count(),
            total: self.characters(),
        }
    }
}

impl fmt::Display for Inert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What fits of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clip<'a> {
    /// All of it.
    Whole(&'a str),
    /// Its ends; what lies between was left out.
    Cut {
        /// From the start.
        head: &'a str,
        /// To the end.
        tail: &'a str,
        /// Characters in both.
        shown: usize,
        /// Characters in the whole.
        total: usize,
    },
}

/// Writes a visible note in place of what was taken out; a `String` takes every write.
fn note(out: &mut String, what: fmt::Arguments<'_>) {
    let taken = fmt::Write::write_fmt(out, what);
    debug_assert!(taken.is_ok(), "a string takes every write");
}

/// Combining marks that pile up on one letter (the blocks made only of them).
fn is_mark(c: char) -> bool {
    matches!(c as u32, 0x0300..=0x034E | 0x0350..=0x036F | 0x0483..=0x0489 | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x20D0..=0x20FF | 0xFE20..=0xFE2F)
}

/// Characters that are invisible, reorder their neighbours, or are blanks that pass for nothing.
fn hides(c: char) -> bool {
    let point = c as u32;
    c.is_control()
        || (c.is_whitespace() && c != ' ' && c != '\n')
        || point & 0xFFFE == 0xFFFE
        || matches!(point,
            0x00AD | 0x034F | 0x061C | 0x070F | 0x08E2 | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F
            | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F | 0x2800 | 0x3164
            | 0xE000..=0xF8FF | 0xFDD0..=0xFDEF | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFC
            | 0x110BD | 0x110CD | 0x13430..=0x1345F | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A
            | 0x000E_0000..=0x000E_0FFF | 0x000F_0000..=0x0010_FFFF)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        Inert::new(text).0
    }

    #[test]
    fn tricks_become_visible_and_plain_text_stays() {
        for (text, expected) in [
            ("R&D costs `5` <b> *x* 支払い é", "R&D costs `5` <b> *x* 支払い é"),
            ("a\u{202E}b", "a\\u{202E}b"),
            ("pay\u{200B}pal", "pay\\u{200B}pal"),
            ("x\u{1b}[31m", "x\\x1b[31m"),
            ("a\r\nb", "a\\r\nb"),
            ("a\u{00A0}b", "a\\u{00A0}b"),
            ("tag\u{E0041}", "tag\\u{E0041}"),
            ("\u{0}", "\\x00"),
            ("\\u0000", "\\u0000"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn padding_is_counted() {
        assert_eq!(shown(&format!("a{}b", " ".repeat(240))), "a[240 spaces]b");
        assert_eq!(shown(&format!("a{}b", "\n".repeat(50))), "a[50 line breaks]\nb");
        assert_eq!(shown("a   b\n\nc"), "a   b\n\nc");
    }

    #[test]
    fn piled_marks_are_counted() {
        assert_eq!(
            shown(&format!("e{}x", "\u{301}".repeat(5000))),
            format!("e{}[+4996 marks]x", "\u{301}".repeat(4))
        );
    }

    #[test]
    fn a_clip_keeps_both_ends() {
        let text = Inert::new(&"支払い".repeat(100));
        match text.clip(90, str::len) {
            Clip::Cut {
                head,
                tail,
                shown,
                total,
            } => {
                assert!(head.len() <= 60 && tail.len() <= 30);
                assert_eq!((shown, total), (30, 300));
            }
            Clip::Whole(_) => panic!("it does not fit"),
        }
    }

    proptest! {
        #[test]
        fn nothing_hidden_survives(text in any::<String>()) {
            let inert = Inert::new(&text);
            prop_assert!(!inert.0.chars().any(hides));
            prop_assert!(!inert.0.contains(&" ".repeat(MAX_BLANKS + 1)));
        }

        #[test]
        fn cuts_never_exceed_the_budget(text in any::<String>(), budget in 0_usize..200) {
            let inert = Inert::new(&text);
            prop_assert!(inert.head(budget, str::len).len() <= budget);
            prop_assert!(inert.tail(budget, str::len).len() <= budget);
        }
    }
}
