//! The arguments of a call, laid out for people: parts in reading order, and the whole as one text for where parts do not fit.
//!
//! Which part an argument becomes is decided in the core. Every argument stands in exactly one part, whole, so that an adapter
//! that shows every part shows everything. It must not know tools, policy or a platform's form.

use crate::text::{Clip, Inert};

/// The most parts; whoever lays out more makes one part of the whole.
pub const MOST_PARTS: usize = 8;

/// The arguments of one call. Text becomes one of a single part with `Body::from`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    parts: Vec<Part>,
    whole: Inert,
}

/// One part: our heading, and what stands below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Own words, on one line; may name the argument. Empty where the layout's own heading (`Words::arguments`) is enough.
    pub heading: String,
    /// What is shown.
    pub content: Content,
}

/// What a part shows. Adapters show it where no markup is read, apart from words of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Arguments with short values, one a row.
    Rows(Vec<Row>),
    /// Literal text over several lines: a command, a document, JSON.
    Literal(Inert),
    /// What an edit takes away and puts in, complete: no line is left out.
    Change(Vec<Line>),
}

/// A short argument. Both stand on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub key: Inert,
    /// Its value, spelled so that a text cannot pass for a number or a list.
    pub value: Inert,
}

/// One line of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What becomes of it.
    pub fate: Fate,
    /// Without its line break.
    pub text: Inert,
}

/// What becomes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It stays.
    Kept,
    /// It goes.
    Removed,
    /// It comes.
    Added,
}

impl Fate {
    /// The sign at the start of the line, as in a unified diff.
    pub const fn sign(self) -> char {
        match self {
            Self::Kept => ' ',
            Self::Removed => '-',
            Self::Added => '+',
        }
    }
}

impl Content {
    /// As literal text: rows as `key: value` with the values below each other, lines of a change after their signs.
    pub fn text(&self) -> Inert {
        match self {
            Self::Rows(rows) => Inert::lines(rows.iter().map(|row| {
                let room = rows.iter().map(|row| row.key.characters()).max().unwrap_or(0);
                let room = room.min(WIDEST_KEY).saturating_sub(row.key.characters());
                format!("{}: {:room$}{}", row.key, "", row.value)
            })),
            Self::Literal(text) => text.clone(),
            Self::Change(lines) => Inert::lines(
                lines
                    .iter()
                    .map(|line| format!("{} {}", line.fate.sign(), line.text)),
            ),
        }
    }
}

/// Keys wider than this do not move the values of the others; fewer than the blanks that count as padding.
const WIDEST_KEY: usize = 16;

impl Body {
    /// A body of these parts. `whole` is the same as one text; with more than [`MOST_PARTS`] parts, or none, only it is shown.
    pub fn new(parts: Vec<Part>, whole: Inert) -> Self {
        if parts.is_empty() || parts.len() > MOST_PARTS {
            return Self::from(whole);
        }
        Self { parts, whole }
    }

    /// The parts in reading order, at least one.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// All of it as one text.
    pub const fn whole(&self) -> &Inert {
        &self.whole
    }

    /// All of it as one text.
    pub fn as_str(&self) -> &str {
        self.whole.as_str()
    }

    /// How many characters the one text has.
    pub fn characters(&self) -> usize {
        self.whole.characters()
    }

    /// The one text within `budget` units; see [`Inert::clip`].
    pub fn clip(&self, budget: usize, cost: impl Fn(&str) -> usize + Copy) -> Clip<'_> {
        self.whole.clip(budget, cost)
    }
}

impl From<Inert> for Body {
    fn from(whole: Inert) -> Self {
        Self {
            parts: vec![Part {
                heading: String::new(),
                content: Content::Literal(whole.clone()),
            }],
            whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str, value: &str) -> Row {
        Row {
            key: Inert::new(key),
            value: Inert::new(value),
        }
    }

    #[test]
    fn rows_stand_below_each_other() {
        let rows = Content::Rows(vec![
            row("amount", "50000"),
            row("payee", "ACME"),
            row("a_key_that_is_wider_than_all", "x"),
        ]);
        assert_eq!(
            rows.text().as_str(),
            "amount:           50000\npayee:            ACME\na_key_that_is_wider_than_all: x"
        );
    }

    #[test]
    fn lines_of_a_change_follow_their_signs() {
        let line = |fate, text: &str| Line {
            fate,
            text: Inert::new(text),
        };
        let change = Content::Change(vec![
            line(Fate::Kept, "a"),
            line(Fate::Removed, ""),
            line(Fate::Added, "+ b"),
        ]);
        assert_eq!(change.text().as_str(), "  a\n- \n+ + b");
    }

    #[test]
    fn too_many_parts_become_one() {
        let part = Part {
            heading: "Arguments".to_owned(),
            content: Content::Rows(vec![row("a", "1")]),
        };
        let body = |count| Body::new(vec![part.clone(); count], Inert::new("{\"a\": 1}"));
        assert_eq!(body(MOST_PARTS).parts().len(), MOST_PARTS);
        for count in [0, MOST_PARTS + 1] {
            assert_eq!(body(count), Body::from(Inert::new("{\"a\": 1}")));
        }
    }
}
