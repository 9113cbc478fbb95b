//! What opens for one person, as a modal within Slack's limits: a form for words, or everything there is to see with the answers
//! below it. Talks to nobody.
//!
//! What has to come back with an answer travels in `private_metadata`, which Slack keeps: whoever fills the modal in cannot change
//! it. The fields stand in [`fields`], in order, and are read in `submission`.

use gatepost_channel::{
    Actions, ButtonValue, Card, Decision, Dialog, FullView, Inert, Link, MessageRef, ReasonForm, Say, Seen,
};
use serde::{Deserialize, Serialize};

use crate::blocks::{BUTTON_TEXT, Block, Button, Choice, ELEMENT_TEXT, PlainText, cost};
use crate::card::{self, APPROVE_FOR, MOST_GRANTS, OPEN_CONSOLE};
use crate::edit;

/// Names our modals among those that Slack sends back.
pub(crate) const CALLBACK: &str = "gatepost_answer";
/// The block of the choice between the answers.
pub(crate) const ANSWER: &str = "answer";
/// The block of the field for a reason.
pub(crate) const WHY: &str = "why";

/// Title and both labels of a modal, in units.
const LABEL: usize = 24;
/// A sentence or two.
const SAY: usize = 3_000;
/// The label of a field.
const FIELD_LABEL: usize = 300;
/// Small print.
const SMALL: usize = 100;
/// The value of a choice, in bytes.
const CHOICE: usize = 75;
/// What a modal may weigh, in bytes of JSON in pure ASCII; Slack takes 250 kB.
const BUDGET: usize = 240_000;
/// Slack takes a hundred blocks; a view has at most seventeen beside the pieces of its arguments.
const MOST_PIECES: usize = 83;

/// A modal, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Modal {
    #[serde(rename = "type")]
    kind: &'static str,
    callback_id: &'static str,
    title: PlainText,
    close: PlainText,
    #[serde(skip_serializing_if = "Option::is_none")]
    submit: Option<PlainText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    private_metadata: Option<String>,
    blocks: Vec<Block>,
}

/// What travels with a modal and comes back with an answer from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Baggage {
    /// The button value of the card.
    #[serde(rename = "b")]
    pub(crate) button: String,
    /// The conversation of the card.
    #[serde(rename = "c")]
    pub(crate) chat: String,
    /// Its message.
    #[serde(rename = "m")]
    pub(crate) message: String,
    /// That everything could be seen.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub(crate) seen: Option<String>,
    /// The answer, as the `action_id` of a button says it, where the modal is about one.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<String>,
}

/// Lays a dialogue out.
pub(crate) fn lay_out(dialog: &Dialog) -> Modal {
    match dialog {
        Dialog::Wait(say) | Dialog::Tell(say) => saying(say),
        Dialog::Reason(form) => reason(form),
        Dialog::Everything(view) => everything(view),
    }
}

/// Whether tool and arguments are in the modal whole, and the modal is one that Slack takes.
pub(crate) fn holds(view: &FullView) -> bool {
    cost(view.card.tool.one_line().as_str()) <= SAY
        // Nothing that is far too long is laid out to be measured.
        && view.arguments.as_str().len() <= BUDGET
        && view.arguments.pieces(ELEMENT_TEXT, cost).len() <= MOST_PIECES
        && serde_json::to_string(&everything(view)).is_ok_and(|text| ascii(&text) <= BUDGET)
}

/// The length of JSON once everything beyond ASCII is escaped, the larger of the two readings of Slack's limit.
fn ascii(json: &str) -> usize {
    json.chars()
        .map(|c| if c.is_ascii() { 1 } else { 6 * c.len_utf16() })
        .sum()
}

fn modal(title: &str, close: &str, blocks: Vec<Block>) -> Modal {
    Modal {
        kind: "modal",
        callback_id: CALLBACK,
        title: PlainText::new(title, LABEL),
        close: PlainText::new(close, LABEL),
        submit: None,
        private_metadata: None,
        blocks,
    }
}

fn saying(say: &Say) -> Modal {
    let mut blocks = vec![Block::line(say.text.as_str(), SAY)];
    blocks.extend(say.link.as_ref().and_then(link));
    modal(&say.title, &say.words.close, blocks)
}

/// A row with the way to the console.
fn link(link: &Link) -> Option<Block> {
    Some(Block::Actions {
        block_id: "links".to_owned(),
        elements: vec![Button::open(OPEN_CONSOLE, &link.label, &link.url)?],
    })
}

/// What the request is, in short: state, tool, facts.
fn head(card: &Card) -> Vec<Block> {
    let mut blocks = vec![
        Block::header(&card::title(card)),
        Block::line(&card::clipped(&card.tool.one_line(), SAY), SAY),
    ];
    blocks.extend(Block::fields(&card::facts(&card.facts)));
    blocks
}

fn baggage(card: &Card, at: &MessageRef, seen: Option<Seen>, answer: Option<String>) -> Option<String> {
    let Actions::Decide { token, revision, .. } = &card.actions else {
        return None;
    };
    let button = ButtonValue::one(*token, *revision);
    serde_json::to_string(&Baggage {
        button: button.to_string(),
        chat: at.chat.clone(),
        message: at.message.clone(),
        seen: seen.map(|seen| seen.to_string()),
        answer,
    })
    .ok()
}

fn reason(form: &ReasonForm) -> Modal {
    let card = &form.card;
    let mut blocks = head(card);
    let answer = match (&form.grant, form.decision) {
        (Some(scope), Decision::Approve) => format!("{APPROVE_FOR}{scope}"),
        (_, decision) => decision.as_str().to_owned(),
    };
    let label = match form.decision {
        Decision::Approve => &card.words.approve,
        Decision::Reject => &card.words.reject,
    };
    let baggage = baggage(card, &form.at, None, Some(answer));
    let open = baggage.is_some();
    if open {
        blocks.push(why(card, !form.required));
    }
    blocks.push(Block::small(&card.request_id, SMALL));
    Modal {
        submit: open.then(|| PlainText::new(label, LABEL)),
        private_metadata: baggage,
        ..modal(label, &form.words.close, blocks)
    }
}

fn everything(view: &FullView) -> Modal {
    let card = &view.card;
    let mut blocks = head(card);
    blocks.push(Block::line(&card.words.arguments, SAY));
    blocks.extend(
        view.arguments
            .pieces(ELEMENT_TEXT, cost)
            .into_iter()
            .map(Block::literal),
    );
    let baggage = view
        .seen
        .and_then(|seen| baggage(card, &view.at, Some(seen), None));
    let answers = baggage.is_some();
    if answers {
        blocks.extend(fields(view));
    }
    blocks.push(Block::small(&card.request_id, SMALL));
    Modal {
        submit: answers.then(|| PlainText::new(&view.words.send, LABEL)),
        private_metadata: baggage,
        ..modal(&card.words.show_everything, &view.words.close, blocks)
    }
}

/// The fields of an answer, in order: the arguments where they may be changed, which answer, and why. Nothing is chosen beforehand.
fn fields(view: &FullView) -> Vec<Block> {
    let card = &view.card;
    let Actions::Decide { asks, .. } = &card.actions else {
        return Vec::new();
    };
    let mut choices = vec![Choice::new("approve", &card.words.approve, BUTTON_TEXT)];
    choices.extend(asks.distinct(MOST_GRANTS).into_iter().filter_map(|offer| {
        let value = format!("{APPROVE_FOR}{}", offer.scope);
        (value.len() <= CHOICE).then(|| Choice::new(&value, &offer.label, BUTTON_TEXT))
    }));
    choices.push(Choice::new("reject", &card.words.reject, BUTTON_TEXT));
    let mut fields = Vec::new();
    if let Some(asked) = &asks.once_more {
        // A choice and a press on "send" are two acts already; what is asked is said before them.
        fields.push(Block::line(&asked.text, SAY));
    }
    fields.extend(edit::lay_out(view));
    fields.push(Block::choice(ANSWER, &view.words.answer, choices));
    // Required only if every answer needs it: Slack would not send an answer that needs none.
    fields.push(why(card, !(asks.reason_to_approve && asks.reason_to_reject)));
    fields
}

fn why(card: &Card, optional: bool) -> Block {
    Block::reason(WHY.to_owned(), &card.words.reason, FIELD_LABEL, optional)
}

/// A text of ours in a modal, for places without a layout of their own.
pub(crate) fn words(text: &Inert) -> String {
    PlainText::new(text.as_str(), SAY).as_str().to_owned()
}
