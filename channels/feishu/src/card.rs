//! The neutral card as card JSON 2.0, within the platform's budgets.
//!
//! A card request may hold 30 KB and 200 elements; ours stays under [`BUDGET`] and [`MOST_ELEMENTS`], measured on what is sent:
//! the card travels as a JSON string inside JSON, so each quote, backslash and line break weighs more than it looks. What does
//! not fit of the arguments is left out in the middle, the card says so, and Approve is not on it.

use gatepost_channel::{
    Actions, Asks, Body, ButtonValue, Card, Clip, Decision, Inert, OnceMore, Risk, Seen, Tone,
};

use crate::arguments::{self, Extent};
use crate::elements::{CardJson, Element, Template, Vote};
use crate::set;

/// The most that the HTTP body of a card may weigh, in bytes. The platform refuses 30 KB, counted after its own additions.
pub(crate) const BUDGET: usize = 24_000;
/// The most elements on a card; the platform refuses 200.
pub(crate) const MOST_ELEMENTS: usize = 150;
/// What a count of shown characters may weigh more than `0`.
const COUNT: usize = 20;
/// What the body around the card may weigh: chat, type, uuid, quotes; in bytes.
const ENVELOPE: usize = 320;
/// The most that the tool's name may weigh before it counts as cut.
pub(crate) const TOOL: usize = 2_000;
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

/// The most offers beside Approve; what is beyond is left out.
const MOST_GRANTS: usize = 4;
/// The most characters of the heading and of the text of a question before Approve.
const QUESTION: (usize, usize) = (100, 300);

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
    if let Some(set) = &card.set {
        return set::lay_out(card, set);
    }
    let tool_fits = weigh(card.tool.one_line().as_str()) <= TOOL;
    let one_part = Body::from(card.arguments.whole().clone());
    for body in [&card.arguments, &one_part] {
        if arguments::weight(body) <= BUDGET {
            let whole = build(card, body, Extent::Whole, tool_fits);
            if fits(&whole) {
                return LaidOut {
                    card: whole,
                    shows_all: tool_fits,
                };
            }
        }
    }
    let cut = [&card.arguments, &one_part]
        .into_iter()
        .map(|body| cut(card, body));
    LaidOut {
        card: cut.flatten().find(fits).unwrap_or_else(|| minimal(card)),
        shows_all: false,
    }
}

/// The card with as much of each part as there is room for; `None` when nothing would be cut.
fn cut(card: &Card, body: &Body) -> Option<CardJson> {
    let frame = build(card, body, Extent::Each(0), false);
    let heavy = arguments::weight(body);
    // Less than the whole, so that what is cut stays cut.
    let left = BUDGET
        .saturating_sub(weight(&frame) + body.parts().len() * COUNT)
        .min(heavy.checked_sub(1)?);
    Some(build(card, body, arguments::share(body, left), false))
}

/// The card that is left when the platform refuses the content: ids and our own words, Reject and the way to the full view.
/// On a settled request it has nothing to press.
pub(crate) fn minimal(card: &Card) -> CardJson {
    let mut elements = Vec::new();
    if let Actions::Decide { .. } = card.actions {
        elements.push(Element::warning(own(&card.words.approve_in_full_view)));
    }
    elements.extend(plain_buttons(card));
    elements.push(Element::note(own(&card.request_id)));
    CardJson::new(template(card), own(&card.title), own(&card.preview), elements)
}

/// What a card with this content weighs as the body of a request, in bytes.
pub(crate) fn weight(card: &CardJson) -> usize {
    ENVELOPE + escaped(&card.content())
}

fn fits(card: &CardJson) -> bool {
    weight(card) <= BUDGET && card.count() <= MOST_ELEMENTS
}

/// The full layout; `all` says whether everything that is approved is on it.
fn build(card: &Card, body: &Body, extent: Extent, all: bool) -> CardJson {
    let mut elements = vec![Element::heading(clipped(&card.tool.one_line(), TOOL))];
    elements.extend(facts(card));
    if !body.as_str().is_empty() {
        elements.extend(arguments::lay_out(card, body, extent));
    }
    if let Actions::Decide { approve_when_cut, .. } = card.actions {
        let may_approve = all || approve_when_cut;
        if !may_approve {
            elements.push(Element::warning(own(&card.words.approve_in_full_view)));
        }
        let shown = if all { Shown::Here } else { Shown::Elsewhere };
        elements.extend(buttons(card, may_approve, shown));
    }
    elements.push(Element::note(own(&card.request_id)));
    CardJson::new(template(card), own(&card.title), own(&card.preview), elements)
}

/// What can be pressed: Approve and what is offered beside it, then Reject in a form with a field for the reason. An approval
/// that needs a reason stands in a form of its own, since a required field blocks every button of its form.
pub(crate) fn buttons(card: &Card, may_approve: bool, shown: Shown) -> Vec<Element> {
    let Actions::Decide { asks, full_view, .. } = &card.actions else {
        return Vec::new();
    };
    let seen = shown.seen();
    let (mut elements, mut row) = (Vec::new(), Vec::new());
    if may_approve {
        let votes = approvals(card, asks, seen);
        if asks.reason_to_approve {
            elements.push(Element::form(
                Decision::Approve,
                label(&card.words.reason),
                true,
                votes,
            ));
        } else {
            row.extend(votes.into_iter().map(Element::vote));
        }
    }
    row.extend(ways(card, full_view.as_deref(), shown));
    if !row.is_empty() {
        elements.push(Element::row(row));
    }
    elements.extend(rejection(card, seen).map(|vote| {
        let required = asks.reason_to_reject;
        Element::form(Decision::Reject, label(&card.words.reason), required, vec![vote])
    }));
    elements
}

/// Reject and the way to the full view, in the simplest form.
fn plain_buttons(card: &Card) -> Option<Element> {
    let Actions::Decide { full_view, .. } = &card.actions else {
        return None;
    };
    let mut row: Vec<_> = rejection(card, None).map(Element::vote).into_iter().collect();
    row.extend(ways(card, full_view.as_deref(), Shown::Elsewhere));
    Some(Element::row(row))
}

/// Approve, and Approve for later calls too.
fn approvals(card: &Card, asks: &Asks, seen: Option<Seen>) -> Vec<Vote> {
    let once_more = asks.once_more.as_ref().map(question);
    let offers = asks.distinct(MOST_GRANTS).into_iter();
    let more = offers.map(|offer| (Some(offer.scope.clone()), label(&offer.label)));
    let all = [(None, label(&card.words.approve))].into_iter().chain(more);
    let vote = |(grant, label): (Option<String>, String)| {
        Some(Vote {
            decision: Decision::Approve,
            label,
            button: button(card)?,
            grant,
            once_more: once_more.clone(),
            seen,
        })
    };
    all.filter_map(vote).collect()
}

/// The question before Approve, within the platform's lengths.
pub(crate) fn question(asked: &OnceMore) -> OnceMore {
    OnceMore {
        title: short(&asked.title, QUESTION.0),
        text: short(&asked.text, QUESTION.1),
        ..asked.clone()
    }
}

/// Approve, without anything beside it.
pub(crate) fn approval(card: &Card, shown: Shown) -> Option<Vote> {
    let Actions::Decide { asks, .. } = &card.actions else {
        return None;
    };
    approvals(card, asks, shown.seen()).into_iter().next()
}

fn rejection(card: &Card, seen: Option<Seen>) -> Option<Vote> {
    Some(Vote {
        decision: Decision::Reject,
        label: label(&card.words.reject),
        button: button(card)?,
        grant: None,
        once_more: None,
        seen,
    })
}

const fn button(card: &Card) -> Option<ButtonValue> {
    match card.actions {
        Actions::None => None,
        Actions::Decide { token, revision, .. } => Some(ButtonValue::one(token, revision)),
    }
}

/// Where everything can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// On this card.
    Here,
    /// Not on this card: a button shows it to whoever presses it.
    Elsewhere,
    /// In the messages before this one, which only one person sees.
    Alone(Seen),
}

impl Shown {
    /// That everything could be seen, where one person alone was shown it.
    const fn seen(self) -> Option<Seen> {
        match self {
            Self::Alone(seen) => Some(seen),
            Self::Here | Self::Elsewhere => None,
        }
    }
}

/// The ways to everything: a button where it is not shown here, or where arguments may be changed, which is done in what it opens; and
/// the console.
fn ways(card: &Card, full_view: Option<&str>, shown: Shown) -> Vec<Element> {
    let edits = matches!(&card.actions, Actions::Decide { asks, .. } if asks.edits);
    let opens = shown == Shown::Elsewhere || (shown == Shown::Here && edits);
    let show = opens
        .then(|| button(card))
        .flatten()
        .map(|button| Element::show(label(&card.words.show_everything), button));
    let words = if shown == Shown::Here && !opens {
        &card.words.show_everything
    } else {
        &card.words.open_console
    };
    let link = full_view
        .filter(|url| weigh(url) <= ADDRESS)
        .map(|url| Element::link(label(words), url.to_owned()));
    show.into_iter().chain(link).collect()
}

/// The facts, one a line, as far as they fit; what is left out is counted.
pub(crate) fn facts(card: &Card) -> Vec<Element> {
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

/// The colour: of the risk while the request is open, then of how it ended.
pub(crate) const fn template(card: &Card) -> Template {
    match (card.tone, card.risk) {
        (Tone::Pending, Some(Risk::Low)) => Template::Blue,
        (Tone::Pending, None | Some(Risk::Medium)) => Template::Orange,
        (Tone::Pending, Some(Risk::High)) => Template::Carmine,
        (Tone::Pending, Some(Risk::Critical)) => Template::Purple,
        (Tone::Approved, _) => Template::Green,
        (Tone::Rejected, _) => Template::Red,
        (Tone::Closed, _) => Template::Grey,
    }
}

/// Somebody's text within a budget, its end marked when it was cut.
pub(crate) fn clipped(text: &Inert, budget: usize) -> String {
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
pub(crate) fn own(text: &str) -> String {
    clipped(&Inert::new(text), OWN)
}

/// The label of a button or fact; the platform takes 100 characters.
pub(crate) fn label(text: &str) -> String {
    short(text, 100)
}

/// A text of ours, as plain text and at most so many characters.
pub(crate) fn short(text: &str, most: usize) -> String {
    Inert::new(text).as_str().chars().take(most).collect()
}

/// What a text weighs on the wire: escaped into the card, and the card escaped into the body; in bytes.
pub(crate) fn weigh(text: &str) -> usize {
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
pub(crate) mod tests;
