//! The neutral card as card JSON 2.0, within the platform's budgets.
//!
//! A card request may hold 30 KB and 200 elements; ours stays under [`BUDGET`] and [`MOST_ELEMENTS`], measured on what is sent:
//! the card travels as a JSON string inside JSON, so each quote, backslash and line break weighs more than it looks. What does
//! not fit of the arguments is left out in the middle, the card says so, and Approve is not on it.

use gatepost_channel::{Actions, ButtonValue, Card, Clip, Decision, Inert, Tone};

use crate::elements::{CardJson, Element, Template};

/// The most that the HTTP body of a card may weigh, in bytes. The platform refuses 30 KB, counted after its own additions.
pub(crate) const BUDGET: usize = 24_000;
/// The most elements on a card; the platform refuses 200.
pub(crate) const MOST_ELEMENTS: usize = 150;
/// What the body around the card may weigh: chat, type, uuid, quotes; in bytes.
const ENVELOPE: usize = 320;
/// The most that the tool's name may weigh before it counts as cut.
const TOOL: usize = 2_000;
/// The most that all facts together may weigh.
const FACTS: usize = 8_000;
/// The most that the value of one fact may weigh.
const ONE_FACT: usize = 1_500;
/// What a paragraph weighs beside its text, at most.
const PARAGRAPH: usize = 120;
/// The most facts on a card.
const MOST_FACTS: usize = 40;
/// The most that a text of ours may weigh: titles, labels, lines.
const OWN: usize = 600;
/// The most that the address of the full view may weigh; a longer one is left out.
const ADDRESS: usize = 1_500;

/// A laid-out card.
#[derive(Debug)]
pub(crate) struct LaidOut {
    /// What is sent.
    pub(crate) card: CardJson,
    /// Whether it shows the tool and all of the arguments.
    pub(crate) shows_all: bool,
}

/// Lays the card out. What is not shown whole is never approvable, unless the rule says so.
pub(crate) fn lay_out(card: &Card) -> LaidOut {
    let text = card.arguments.as_str();
    let heavy = weigh(text);
    let tool_fits = weigh(card.tool.one_line().as_str()) <= TOOL;
    if heavy <= BUDGET {
        let whole = build(card, Arguments::Whole(text), tool_fits);
        if fits(&whole) {
            return LaidOut {
                card: whole,
                shows_all: tool_fits,
            };
        }
    }
    let total = card.arguments.characters();
    let frame = build(card, Arguments::cut("", "", total, total), false);
    // Less than the whole, so that what is cut stays cut.
    let left = BUDGET.saturating_sub(weight(&frame)).min(heavy.saturating_sub(1));
    let cut = match card.arguments.clip(left, weigh) {
        Clip::Whole(_) => None,
        Clip::Cut {
            head,
            tail,
            shown,
            total,
        } => Some(build(card, Arguments::cut(head, tail, shown, total), false)),
    };
    LaidOut {
        card: cut.filter(fits).unwrap_or_else(|| minimal(card)),
        shows_all: false,
    }
}

/// The card that is left when the platform refuses the content: ids and our own words, Reject and the way to the full view.
/// On a settled request it has nothing to press.
pub(crate) fn minimal(card: &Card) -> CardJson {
    let mut elements = Vec::new();
    if let Actions::Decide { .. } = card.actions {
        elements.push(Element::warning(own(&card.words.approve_in_full_view)));
    }
    elements.extend(buttons(card, false));
    elements.push(Element::note(own(&card.request_id)));
    CardJson::new(
        template(card.tone),
        own(&card.title),
        own(&card.preview),
        elements,
    )
}

/// What a card with this content weighs as the body of a request, in bytes.
pub(crate) fn weight(card: &CardJson) -> usize {
    ENVELOPE + escaped(&card.content())
}

/// How much of the arguments goes on the card.
#[derive(Clone, Copy)]
enum Arguments<'a> {
    Whole(&'a str),
    Cut {
        head: &'a str,
        tail: &'a str,
        shown: usize,
        total: usize,
    },
}

impl<'a> Arguments<'a> {
    const fn cut(head: &'a str, tail: &'a str, shown: usize, total: usize) -> Self {
        Self::Cut {
            head,
            tail,
            shown,
            total,
        }
    }
}

fn fits(card: &CardJson) -> bool {
    weight(card) <= BUDGET && card.count() <= MOST_ELEMENTS
}

/// The full layout; `all` says whether everything that is approved is on it.
fn build(card: &Card, arguments: Arguments<'_>, all: bool) -> CardJson {
    let mut elements = vec![Element::heading(clipped(&card.tool.one_line(), TOOL))];
    elements.extend(facts(card));
    match arguments {
        Arguments::Whole("") => {}
        Arguments::Whole(text) => {
            elements.push(Element::note(own(&card.words.arguments)));
            elements.push(Element::boxed(text.to_owned()));
        }
        Arguments::Cut {
            head,
            tail,
            shown,
            total,
        } => {
            elements.push(Element::note(own(&card.words.arguments)));
            elements.push(Element::boxed(head.to_owned()));
            elements.push(Element::warning(own(&card.words.cut_line(shown, total))));
            elements.push(Element::boxed(tail.to_owned()));
        }
    }
    if let Actions::Decide { approve_when_cut, .. } = card.actions {
        let may_approve = all || approve_when_cut;
        if !may_approve {
            elements.push(Element::warning(own(&card.words.approve_in_full_view)));
        }
        elements.extend(buttons(card, may_approve));
    }
    elements.push(Element::note(own(&card.request_id)));
    CardJson::new(
        template(card.tone),
        own(&card.title),
        own(&card.preview),
        elements,
    )
}

fn buttons(card: &Card, may_approve: bool) -> Option<Element> {
    let Actions::Decide {
        token,
        revision,
        full_view,
        ..
    } = &card.actions
    else {
        return None;
    };
    let value = ButtonValue {
        token: *token,
        revision: *revision,
    };
    let mut row = Vec::new();
    if may_approve {
        row.push(Element::decide(
            Decision::Approve,
            label(&card.words.approve),
            value,
        ));
    }
    row.push(Element::decide(
        Decision::Reject,
        label(&card.words.reject),
        value,
    ));
    if let Some(url) = full_view.as_ref().filter(|url| weigh(url) <= ADDRESS) {
        row.push(Element::link(label(&card.words.show_everything), url.clone()));
    }
    Some(Element::row(row))
}

/// The facts, one a line, as far as they fit; what is left out is counted.
fn facts(card: &Card) -> Vec<Element> {
    let mut left = FACTS;
    let mut lines = Vec::new();
    for (at, fact) in card.facts.iter().enumerate() {
        let line = format!(
            "{}: {}",
            label(&fact.label),
            clipped(&fact.value.one_line(), ONE_FACT)
        );
        let cost = PARAGRAPH + weigh(&line);
        if at == MOST_FACTS || cost > left {
            lines.push(Element::note(format!("… +{}", card.facts.len() - at)));
            break;
        }
        left -= cost;
        lines.push(Element::paragraph(line));
    }
    lines
}

const fn template(tone: Tone) -> Template {
    match tone {
        Tone::Pending => Template::Orange,
        Tone::Approved => Template::Green,
        Tone::Rejected => Template::Red,
        Tone::Closed => Template::Grey,
    }
}

/// Somebody's text within a budget, its end marked when it was cut.
fn clipped(text: &Inert, budget: usize) -> String {
    match text.clip(budget, weigh) {
        Clip::Whole(whole) => whole.to_owned(),
        Clip::Cut {
            head,
            tail,
            shown,
            total,
        } => format!("{head}…[+{}]…{tail}", total - shown),
    }
}

/// A text of ours; bounded all the same, since it may hold ids and names of the configuration.
fn own(text: &str) -> String {
    clipped(&Inert::new(text), OWN)
}

/// The label of a button or fact; the platform takes 100 characters.
fn label(text: &str) -> String {
    Inert::new(text).as_str().chars().take(100).collect()
}

/// What a text weighs on the wire: escaped into the card, and the card escaped into the body; in bytes.
fn weigh(text: &str) -> usize {
    text.chars()
        .map(|c| match c {
            '"' | '\\' => 4,
            '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 3,
            c if (c as u32) < 0x20 => 7,
            c => c.len_utf8(),
        })
        .sum()
}

/// The length of a text inside a JSON string, in bytes.
fn escaped(text: &str) -> usize {
    text.bytes()
        .map(|b| match b {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
            b if b < 0x20 => 6,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
#[path = "card_tests.rs"]
mod tests;
