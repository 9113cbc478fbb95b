//! The story that the demo tells: one line a step, with the time since the start and who does it, and the card as a small box.

use std::time::Instant;

use gatepost_channel::{Card, Inert};

use crate::cli::print;
use crate::cli::table::{cells_of, fit};

/// The inside of the box around a card.
const BOX: usize = 68;
/// Longer arguments are cut in the box; `gatepost show` has all of them.
const LINES: usize = 24;

/// See the module.
pub struct Story {
    start: Instant,
    colours: bool,
    /// To stderr, because stdout carries JSON.
    aside: bool,
}

impl Story {
    /// A story that begins now.
    pub fn begin(aside: bool) -> Self {
        Self {
            start: Instant::now(),
            colours: !aside && print::colours(),
            aside,
        }
    }

    /// Seconds since it began.
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// A line without time.
    pub fn say(&self, text: &str) {
        if self.aside {
            print::note(text);
        } else {
            print::line(text);
        }
    }

    /// What somebody does now. Text of others in it must be inert already.
    pub fn step(&self, who: &str, what: &str) {
        let at = format!("{:6.2}s", self.seconds());
        let (at, who) = (self.paint("2", &at), self.paint("1", &format!("{who:<7}")));
        self.say(&format!("{at}  {who}  {what}"));
    }

    /// More about the step before.
    pub fn more(&self, what: &str) {
        self.say(&format!("{:18}{what}", ""));
    }

    /// How it ended.
    pub fn end(&self, good: bool, text: &str) {
        let text = if good {
            self.paint("1;32", text)
        } else {
            self.paint("1;31", text)
        };
        self.say(&format!("\n{text}"));
    }

    /// The card as people see it, in a box.
    pub fn card(&self, card: &Card) {
        let mut lines = vec![
            Inert::new(&card.title).to_string(),
            card.tool.to_string(),
            String::new(),
        ];
        lines.extend(card.arguments.as_str().lines().take(LINES).map(str::to_owned));
        if card.arguments.as_str().lines().count() > LINES {
            lines.push("…".to_owned());
        }
        lines.push(String::new());
        let width = card
            .facts
            .iter()
            .map(|fact| cells_of(&fact.label))
            .max()
            .unwrap_or(0);
        for fact in &card.facts {
            lines.push(format!("{}  {}", fit(&fact.label, width), fact.value.one_line()));
        }
        let edge = |left, right| format!("{:18}{left}{}{right}", "", "─".repeat(BOX + 2));
        self.say(&self.paint("33", &edge('╭', '╮')));
        let wall = self.paint("33", "│");
        for (index, line) in lines.iter().enumerate() {
            let text = fit(line, BOX);
            let text = if index == 0 {
                self.paint("1;33", &text)
            } else {
                text
            };
            self.say(&format!("{:18}{wall} {text} {wall}", ""));
        }
        self.say(&self.paint("33", &edge('╰', '╯')));
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colours {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}
