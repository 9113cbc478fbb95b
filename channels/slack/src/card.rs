//! The layout of the neutral card in Block Kit, within Slack's limits. Talks to nobody.
//!
//! Slack refuses a message whose texts together pass an undocumented cap, seen at about 11,000 units; the card keeps to
//! [`TOTAL`], of which every part has its fixed share. A fixed share makes the answer to "is everything shown?" depend on
//! the tool, its arguments and what the rule asks of an answer, so it does not change when votes are added.

use gatepost_channel::{Actions, Asks, ButtonValue, Card, Clip, Fact, Inert, Risk, Tone, even_share};
use serde::Serialize;

use crate::arguments::{self, CUT_LINE, HEADING};
use crate::blocks::{
    self, BUTTON_TEXT, Block, Button, Confirm, HEADER_TEXT, PlainText, QUESTION, Style, cost,
};
use crate::set;

/// All texts of a card together, in units as [`cost`] counts them.
pub(crate) const TOTAL: usize = 9_000;

pub(crate) const PREVIEW: usize = 150;
pub(crate) const TOOL: usize = 300;
const NO_APPROVE: usize = 400;
pub(crate) const SMALL: usize = 100;
const FACTS: usize = 2_000;
const ARGUMENTS: usize = 5_250;

/// The most offers beside Approve; what is beyond is left out.
pub(crate) const MOST_GRANTS: usize = 4;
/// Begins the `action_id` of an offer beside Approve; its scope follows.
pub(crate) const APPROVE_FOR: &str = "approve:";

/// A label; its value starts on the next line.
const LABEL: usize = 40;
/// More facts than this are counted instead of shown.
const MAX_FACTS: usize = 30;
/// What stands beside a cut value: `… […/…]` with two counts.
const CUT_MARK: usize = 24;
/// The least that is worth showing of a cut value.
const MIN_VALUE: usize = 1;

const _: () = assert!(
    HEADER_TEXT
        + PREVIEW
        + TOOL
        + HEADING
        + CUT_LINE
        + NO_APPROVE
        + SMALL
        + FACTS
        + ARGUMENTS
        + 5 * BUTTON_TEXT
        <= TOTAL,
    "the shares fit the whole"
);
const _: () = assert!(
    MOST_GRANTS * BUTTON_TEXT + (MOST_GRANTS + 1) * (QUESTION[0] + QUESTION[1] + QUESTION[2] + QUESTION[3])
        < ARGUMENTS / 2 + 175,
    "what an answer needs leaves room for the arguments"
);
const _: () = assert!(
    MAX_FACTS * (LABEL + 1 + CUT_MARK + MIN_VALUE) <= FACTS,
    "every fact keeps its label"
);

/// The button that opens everything in a modal.
pub(crate) const SHOW_EVERYTHING: &str = "show_everything";
/// The button that opens a form for a reason to reject.
pub(crate) const REJECT_WITH_REASON: &str = "reject_with_reason";
/// The address button; pressing it also sends a callback, which is acknowledged and dropped.
pub(crate) const OPEN_CONSOLE: &str = "open_console";

/// A message, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Message {
    /// For push notices and screen readers; escaped.
    pub(crate) text: String,
    /// What is shown.
    pub(crate) blocks: Vec<Block>,
}

/// Whether the card shows the tool and its arguments whole.
pub(crate) fn shows_all(card: &Card) -> bool {
    if let Some(set) = &card.set {
        return set::shows_all(card, set);
    }
    cost(card.tool.one_line().as_str()) <= TOOL && arguments::fit(&card.arguments, room(card))
}

/// What is left for the arguments once the rule's demands on an answer are laid out.
fn room(card: &Card) -> usize {
    let Actions::Decide { asks, .. } = &card.actions else {
        return ARGUMENTS;
    };
    let offers = asks.distinct(MOST_GRANTS).len();
    let question = asks
        .once_more
        .as_ref()
        .map_or(0, |asked| Confirm::new(asked).cost());
    ARGUMENTS.saturating_sub(offers * BUTTON_TEXT + (offers + 1) * question)
}

/// The card as people should see it.
pub(crate) fn full(card: &Card) -> Message {
    if let Some(set) = &card.set {
        return set::full(card, set);
    }
    let whole = shows_all(card);
    let mut shown = vec![
        Block::header(&title(card)),
        Block::line(&clipped(&card.tool.one_line(), TOOL), TOOL),
    ];
    shown.extend(Block::fields(&facts(&card.facts)));
    shown.extend(arguments::lay_out(card, room(card)));
    if let Actions::Decide { approve_when_cut, .. } = &card.actions {
        let approvable = whole || *approve_when_cut;
        if !approvable {
            shown.push(Block::line(&card.words.approve_in_full_view, NO_APPROVE));
        }
        shown.extend(buttons(card, approvable));
    }
    shown.push(Block::small(&card.request_id, SMALL));
    Message {
        text: text(card),
        blocks: shown,
    }
}

/// The card when Slack refuses the content of the full one: title and ids, Reject and the way to everything. It keeps a rich
/// text, since Slack does not let an edit take the last one away (`block_mismatch`).
pub(crate) fn minimal(card: &Card) -> Message {
    let mut shown = vec![
        Block::header(&title(card)),
        Block::literal(blocks::start(&card.request_id, SMALL)),
    ];
    if matches!(card.actions, Actions::Decide { .. }) {
        shown.push(Block::line(&card.words.approve_in_full_view, NO_APPROVE));
    }
    shown.extend(buttons(card, false));
    Message {
        text: text(card),
        blocks: shown,
    }
}

/// The last resort for a settled card: our one line and no buttons.
pub(crate) fn one_line(card: &Card) -> Message {
    Message {
        text: text(card),
        blocks: Vec::new(),
    }
}

pub(crate) fn text(card: &Card) -> String {
    blocks::escape(blocks::start(&card.preview, PREVIEW))
}

/// Own words with a sign for the tone, and for the risk while the request is open, so that a list of cards can be read at a glance.
pub(crate) fn title(card: &Card) -> String {
    let sign = match (card.tone, card.risk) {
        (Tone::Pending, Some(Risk::Low)) => '🔵',
        (Tone::Pending, None | Some(Risk::Medium)) => '🟡',
        (Tone::Pending, Some(Risk::High)) => '🟠',
        (Tone::Pending, Some(Risk::Critical)) => '🔴',
        (Tone::Approved, _) => '✅',
        (Tone::Rejected, _) => '⛔',
        (Tone::Closed, _) => '⚪',
    };
    format!("{sign} {}", card.title)
}

/// Approve, and Approve for later calls too.
fn approvals(card: &Card, asks: &Asks, value: &ButtonValue) -> Vec<Button> {
    let confirm = asks.once_more.as_ref().map(Confirm::new);
    let style = if card.risk.is_some_and(Risk::is_grave) {
        Style::Danger
    } else {
        Style::Primary
    };
    let approve = Button::decide("approve", &card.words.approve, value, Some(style));
    let offers = asks.distinct(MOST_GRANTS).into_iter().map(|offer| {
        let action_id = format!("{APPROVE_FOR}{}", offer.scope);
        Button::decide(action_id, &offer.label, value, None)
    });
    let all = [approve].into_iter().chain(offers);
    all.map(|button| button.confirmed(confirm.clone())).collect()
}

/// The row of buttons; none on a settled card. An answer that needs words is pressed like any other: the press opens the form for
/// them. A form for words that nobody asks for stands beside Reject.
fn buttons(card: &Card, approvable: bool) -> Option<Block> {
    let Actions::Decide {
        token,
        revision,
        full_view,
        asks,
        ..
    } = &card.actions
    else {
        return None;
    };
    let value = ButtonValue::one(*token, *revision);
    let approve = if approvable {
        approvals(card, asks, &value)
    } else {
        Vec::new()
    };
    let reject = Button::decide("reject", &card.words.reject, &value, None);
    let why = (!asks.reason_to_reject)
        .then(|| Button::ask(REJECT_WITH_REASON, &card.words.reject_with_reason, &value));
    let show = Button::ask(SHOW_EVERYTHING, &card.words.show_everything, &value);
    let open = full_view
        .as_deref()
        .and_then(|url| Button::open(OPEN_CONSOLE, &card.words.open_console, url));
    Some(Block::Actions {
        block_id: format!("{}:v{revision}", blocks::start(&card.request_id, SMALL)),
        elements: approve
            .into_iter()
            .chain([reject])
            .chain(why)
            .chain([show])
            .chain(open)
            .collect(),
    })
}

/// The facts as fields: our label, below it the value on one line, so that no value can start a line that looks like ours.
pub(crate) fn facts(facts: &[Fact]) -> Vec<PlainText> {
    let (named, left_out) = if facts.len() > MAX_FACTS {
        (&facts[..MAX_FACTS - 1], facts.len() - MAX_FACTS + 1)
    } else {
        (facts, 0)
    };
    let values: Vec<Inert> = named.iter().map(|fact| fact.value.one_line()).collect();
    let labels = MAX_FACTS.min(named.len() + 1) * (LABEL + 1);
    let cap = even_share(values.iter().map(|value| cost(value.as_str())), FACTS - labels);
    let mut fields: Vec<PlainText> = named
        .iter()
        .zip(&values)
        .map(|(fact, value)| {
            let label = PlainText::new(&fact.label, LABEL);
            PlainText::new(
                &format!("{}\n{}", label.as_str(), clipped(value, cap)),
                LABEL + 1 + cap,
            )
        })
        .collect();
    if left_out > 0 {
        fields.push(PlainText::new(&format!("+{left_out}"), LABEL));
    }
    fields
}

/// A value within `budget`, with both ends and the count of what is shown where it had to be cut.
pub(crate) fn clipped(value: &Inert, budget: usize) -> String {
    match value.clip(budget, cost) {
        Clip::Whole(text) => text.to_owned(),
        Clip::Cut { .. } => match value.clip(budget.saturating_sub(CUT_MARK), cost) {
            Clip::Cut {
                head,
                tail,
                shown,
                total,
            } => format!("{head} … {tail} [{shown}/{total}]"),
            Clip::Whole(text) => text.to_owned(),
        },
    }
}
