//! The layout of a card that several like requests share: what is common stands once, then each request with its arguments and
//! its own buttons, then the buttons for all of them. Talks to nobody.
//!
//! As on the card of one request every part has its fixed share, so that what is shown whole stays so when votes are added.

use gatepost_channel::{Actions, All, Asks, ButtonValue, Card, CardSet, Clip, Fact, Inert, even_share};

use crate::blocks::{self, BUTTON_TEXT, Block, Button, Confirm, HEADER_TEXT, PlainText, Style, cost};
use crate::card::{Message, PREVIEW, SHOW_EVERYTHING, SMALL, TOOL, TOTAL, clipped, text, title};

/// The `action_id` of approving all.
pub(crate) const APPROVE_ALL: &str = "approve_all";
/// The `action_id` of rejecting all.
pub(crate) const REJECT_ALL: &str = "reject_all";

/// The most requests on a card: each takes up to four of its fifty blocks.
const MOST_ROWS: usize = 10;
/// The most facts in one place.
const MOST_FACTS: usize = 8;
/// All facts that are common.
const FACTS: usize = 1_000;
/// Number, title and id of one request.
const HEAD: usize = 100;
/// All facts of one request.
const ROW_FACTS: usize = 350;
/// The line where arguments of one request were left out.
const CUT_LINE: usize = 100;
/// A label; its value follows.
const LABEL: usize = 40;

/// Whether every request is shown whole.
pub(crate) fn shows_all(card: &Card, set: &CardSet) -> bool {
    let arguments: usize = set.items.iter().map(|item| cost(item.arguments.as_str())).sum();
    set.items.len() <= MOST_ROWS
        && cost(card.tool.one_line().as_str()) <= TOOL
        && arguments <= room(card, set)
}

/// What is left for the arguments of all requests together.
fn room(card: &Card, set: &CardSet) -> usize {
    let label = |label: &str| cost(label).min(BUTTON_TEXT);
    let asked = set.items.iter().find_map(|item| asks(item)?.once_more.as_ref());
    let question = asked.map_or(0, |asked| Confirm::new(asked).cost());
    let words = &card.words;
    let buttons = label(&words.approve) + label(&words.reject) + label(&words.show_everything);
    let row = HEAD + ROW_FACTS + buttons + question;
    let fixed = HEADER_TEXT + PREVIEW + TOOL + FACTS + SMALL + 2 * BUTTON_TEXT + question;
    TOTAL.saturating_sub(fixed + set.items.len() * row)
}

const fn asks(card: &Card) -> Option<&Asks> {
    match &card.actions {
        Actions::Decide { asks, .. } => Some(asks),
        Actions::None => None,
    }
}

/// The card as people should see it.
pub(crate) fn full(card: &Card, set: &CardSet) -> Message {
    let whole = shows_all(card, set);
    let rows = &set.items[..set.items.len().min(MOST_ROWS)];
    let costs = rows.iter().map(|item| cost(item.arguments.as_str()));
    let most = even_share(costs, room(card, set).saturating_sub(rows.len() * CUT_LINE));
    let mut shown = vec![
        Block::header(&title(card)),
        Block::line(&clipped(&card.tool.one_line(), TOOL), TOOL),
    ];
    shown.extend(Block::fields(&lines(&card.facts, FACTS)));
    for (at, item) in rows.iter().enumerate() {
        shown.extend(row(at + 1, item, if whole { usize::MAX } else { most }));
    }
    if let Some(all) = set.all.as_ref().filter(|_| whole) {
        shown.push(for_all(all));
    }
    let left_out = set.items.len() - rows.len();
    let ids = if left_out == 0 {
        card.request_id.clone()
    } else {
        format!("{} +{left_out}", card.request_id)
    };
    shown.push(Block::small(&ids, SMALL));
    Message {
        text: text(card),
        blocks: shown,
    }
}

/// One request: its number and id, what is said of it alone, its arguments, its buttons.
fn row(number: usize, item: &Card, most: usize) -> Vec<Block> {
    let head = match item.actions {
        Actions::Decide { .. } => format!("{number}. {}", item.request_id),
        Actions::None => format!("{number}. {} · {}", title(item), item.request_id),
    };
    let mut elements = vec![PlainText::new(&head, HEAD)];
    elements.extend(lines(&item.facts, ROW_FACTS));
    let mut shown = vec![Block::Context { elements }];
    let whole = match item.arguments.clip(most, cost) {
        Clip::Whole(text) => {
            shown.push(Block::literal(text));
            true
        }
        // The way to everything is in the buttons; both ends would take more blocks than ten rows have.
        Clip::Cut {
            head,
            shown: kept,
            total,
            ..
        } => {
            shown.push(Block::literal(head));
            shown.push(Block::line(&item.words.cut_line(kept, total), CUT_LINE));
            false
        }
    };
    shown.extend(buttons(item, whole));
    shown
}

/// The buttons of one request; what was cut cannot be approved here. What opens in private takes a reason to reject, too.
fn buttons(item: &Card, whole: bool) -> Option<Block> {
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
    let value = ButtonValue::one(*token, *revision);
    let approve = (whole || *approve_when_cut).then(|| {
        Button::decide("approve", &item.words.approve, &value, Some(Style::Primary))
            .confirmed(asks.once_more.as_ref().map(Confirm::new))
    });
    let reject = Button::decide("reject", &item.words.reject, &value, None);
    let show = Button::ask(SHOW_EVERYTHING, &item.words.show_everything, &value);
    Some(Block::Actions {
        block_id: format!("{}:v{revision}", blocks::start(&item.request_id, SMALL)),
        elements: approve.into_iter().chain([reject, show]).collect(),
    })
}

/// The buttons for all requests that are open.
fn for_all(all: &All) -> Block {
    let approve = Button::decide(APPROVE_ALL, &all.approve, &all.value, Some(Style::Primary));
    Block::Actions {
        block_id: format!("all:{}", all.value),
        elements: vec![
            approve.confirmed(all.once_more.as_ref().map(Confirm::new)),
            Button::decide(REJECT_ALL, &all.reject, &all.value, None),
        ],
    }
}

/// Facts as one line each, all of them within the budget; what is beyond the most is counted.
fn lines(facts: &[Fact], budget: usize) -> Vec<PlainText> {
    let (named, left_out) = if facts.len() > MOST_FACTS {
        (&facts[..MOST_FACTS - 1], facts.len() - MOST_FACTS + 1)
    } else {
        (facts, 0)
    };
    let labels: Vec<PlainText> = named
        .iter()
        .map(|fact| PlainText::new(&fact.label, LABEL))
        .collect();
    let values: Vec<Inert> = named.iter().map(|fact| fact.value.one_line()).collect();
    let taken: usize = labels.iter().map(|label| cost(label.as_str()) + 2).sum();
    let left = budget.saturating_sub(taken + LABEL);
    let most = even_share(values.iter().map(|value| cost(value.as_str())), left);
    let mut lines: Vec<PlainText> = labels
        .iter()
        .zip(&values)
        .map(|(label, value)| {
            let line = format!("{}: {}", label.as_str(), clipped(value, most));
            PlainText::new(&line, LABEL + 2 + most)
        })
        .collect();
    if left_out > 0 {
        lines.push(PlainText::new(&format!("+{left_out}"), LABEL));
    }
    lines
}

#[cfg(test)]
#[path = "set_tests.rs"]
mod tests;
