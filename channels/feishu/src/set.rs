//! The layout of a card that several like requests share: what is common stands once, then each request with its arguments and
//! its own buttons, then the buttons for all of them.
//!
//! Whether all of it is shown is answered with room kept for what votes will add, so that the answer stays as it is.

use gatepost_channel::{Actions, All, ButtonValue, Card, CardSet, Clip, Decision, OnceMore};

use crate::card::{
    BUDGET, LaidOut, MOST_ELEMENTS, TOOL, clipped, label, minimal, own, question, template, weigh, weight,
};
use crate::elements::{CardJson, Element, Vote};

/// The most that all common facts together may weigh, and how many there are at most.
const FACTS: (usize, usize) = (4_000, 12);
/// The most that the facts of one request may weigh, beside their paragraph.
const ROW_FACTS: usize = 600;
/// What a paragraph weighs beside its text, at most.
const PARAGRAPH: usize = 120;
/// The elements that the facts of one request are.
const ROW_FACT_ELEMENTS: usize = 2;

/// Lays the card out.
pub(crate) fn lay_out(card: &Card, set: &CardSet) -> LaidOut {
    let whole = build(card, set, usize::MAX, true);
    let whole_fits = weight(&whole) <= BUDGET && whole.count() <= MOST_ELEMENTS;
    if whole_fits && weigh(card.tool.one_line().as_str()) <= TOOL {
        return LaidOut {
            card: whole,
            shows_all: fits_for_good(card, set),
        };
    }
    // Every request keeps an even part of what the frame leaves; what is cut cannot be approved here.
    let frame = weight(&build(card, set, 0, true));
    let share = BUDGET.saturating_sub(frame) / set.items.len().max(1);
    let cut = build(card, set, share, true);
    let fits = weight(&cut) <= BUDGET && cut.count() <= MOST_ELEMENTS;
    LaidOut {
        card: if fits { cut } else { minimal(card) },
        shows_all: false,
    }
}

/// Whether it fits whatever is said of the requests later.
fn fits_for_good(card: &Card, set: &CardSet) -> bool {
    let frame = build(card, set, usize::MAX, false);
    let rows = set.items.len();
    weight(&frame) + FACTS.0 + rows * (PARAGRAPH + ROW_FACTS) <= BUDGET
        && frame.count() + 2 * (FACTS.1 + 1) + rows * ROW_FACT_ELEMENTS <= MOST_ELEMENTS
}

/// Everything, with at most so much of the arguments of each request.
fn build(card: &Card, set: &CardSet, most: usize, with_facts: bool) -> CardJson {
    let mut elements = vec![Element::heading(clipped(&card.tool.one_line(), TOOL))];
    if with_facts {
        elements.extend(common(card));
    }
    let mut whole = true;
    for (at, item) in set.items.iter().enumerate() {
        let head = match item.actions {
            Actions::Decide { .. } => format!("{}. {}", at + 1, item.request_id),
            Actions::None => format!("{}. {} · {}", at + 1, item.title, item.request_id),
        };
        elements.push(Element::note(own(&head)));
        if with_facts && !item.facts.is_empty() {
            elements.push(Element::note(facts_of(item)));
        }
        let shown = match item.arguments.clip(most, weigh) {
            Clip::Whole("") => true,
            Clip::Whole(text) => {
                elements.push(Element::boxed(text.to_owned()));
                true
            }
            Clip::Cut {
                head,
                tail,
                shown,
                total,
            } => {
                elements.push(Element::boxed(head.to_owned()));
                elements.push(Element::warning(own(&item.words.cut_line(shown, total))));
                elements.push(Element::boxed(tail.to_owned()));
                false
            }
        };
        whole &= shown;
        elements.extend(buttons(item, shown));
    }
    if let Some(all) = set.all.as_ref().filter(|_| whole) {
        elements.push(for_all(all));
    }
    elements.push(Element::note(own(&card.request_id)));
    CardJson::new(template(card), own(&card.title), own(&card.preview), elements)
}

/// What is common, one a line, as far as it fits; what is left out is counted.
fn common(card: &Card) -> Vec<Element> {
    let (mut left, most) = FACTS;
    let mut lines = Vec::new();
    for (at, fact) in card.facts.iter().enumerate() {
        let line = format!(
            "{}: {}",
            label(&fact.label),
            clipped(&fact.value.one_line(), ROW_FACTS)
        );
        let cost = PARAGRAPH + weigh(&line);
        if at == most || cost > left {
            lines.push(Element::note(format!("… +{}", card.facts.len() - at)));
            break;
        }
        left -= cost;
        lines.push(Element::paragraph(line));
    }
    lines
}

/// What is said of one request alone, in one line.
fn facts_of(item: &Card) -> String {
    let share = ROW_FACTS / item.facts.len().max(1);
    let mut line = String::new();
    for fact in &item.facts {
        let name = label(&fact.label);
        let value = clipped(&fact.value.one_line(), share.saturating_sub(weigh(&name) + 24));
        let more = format!("{}{name}: {value}", if line.is_empty() { "" } else { " · " });
        if weigh(&line) + weigh(&more) > ROW_FACTS {
            break;
        }
        line.push_str(&more);
    }
    line
}

/// The buttons of one request.
fn buttons(item: &Card, whole: bool) -> Option<Element> {
    let Actions::Decide {
        token,
        revision,
        approve_when_cut,
        asks,
        ..
    } = &item.actions
    else {
        return None;
    };
    let button = ButtonValue::one(*token, *revision);
    let approve = (whole || *approve_when_cut).then(|| {
        let words = &item.words.approve;
        vote(Decision::Approve, words, button, asks.once_more.as_ref())
    });
    let reject = vote(Decision::Reject, &item.words.reject, button, None);
    let show = (!whole).then(|| Element::show(label(&item.words.show_everything), button));
    Some(Element::row(
        approve.into_iter().chain([reject]).chain(show).collect(),
    ))
}

/// The buttons for all requests that are open.
fn for_all(all: &All) -> Element {
    Element::row(vec![
        vote(Decision::Approve, &all.approve, all.value, all.once_more.as_ref()),
        vote(Decision::Reject, &all.reject, all.value, None),
    ])
}

fn vote(decision: Decision, words: &str, button: ButtonValue, once_more: Option<&OnceMore>) -> Element {
    Element::named_vote(Vote {
        decision,
        label: label(words),
        button,
        grant: None,
        once_more: once_more.map(question),
        seen: None,
    })
}

#[cfg(test)]
#[path = "set_tests.rs"]
mod tests;
