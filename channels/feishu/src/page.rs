//! All there is to see of a request, for one person: the tool and its arguments in messages of the bot to them, then one with the
//! answers. Each is a card of plain text within the platform's budgets.
//!
//! The parts hold tool and arguments alone, so they fit together although the request may change between two of them; everything
//! that changes (facts, votes, the end) stands on the last one, which can be edited.

use gatepost_channel::{Actions, Failure, FullView, MessageRef, PostKey, Posted};

use crate::card::{BUDGET, MOST_ELEMENTS, Shown, TOOL, buttons, facts, own, template, weigh, weight};
use crate::client::FeishuApp;
use crate::config::is_id;
use crate::edit;
use crate::elements::{CardJson, Element, Template};
use crate::error::CallError;
use crate::post::{Receiver, create, not_posted, replace, uuid};

/// What the arguments of one part may weigh, in bytes of what is sent.
const PART: usize = 18_000;
/// The most parts: beyond, a person is better served by the console.
const MOST_PARTS: usize = 20;

/// The arguments in parts, or nothing when they are too many.
fn parts(view: &FullView) -> Option<Vec<&str>> {
    let text = &view.arguments;
    let fits = weigh(view.card.tool.one_line().as_str()) <= TOOL
        // Nothing that is far too long is cut up to be counted.
        && text.as_str().len() <= PART * MOST_PARTS;
    let parts = fits.then(|| text.pieces(PART, weigh))?;
    (parts.len() <= MOST_PARTS).then_some(parts)
}

/// How many messages there are.
pub(crate) fn count(view: &FullView) -> Option<u32> {
    u32::try_from(parts(view)?.len() + 1).ok()
}

/// The message with this number.
pub(crate) fn lay_out(view: &FullView, number: u32) -> Option<CardJson> {
    let parts = parts(view)?;
    let at = usize::try_from(number).ok()?;
    match parts.get(at) {
        Some(part) => Some(one(view, at + 1, parts.len(), part)),
        None if at == parts.len() => Some(last(view)),
        None => None,
    }
}

fn one(view: &FullView, number: usize, of: usize, part: &str) -> CardJson {
    let card = &view.card;
    let title = own(&view.words.part_line(number, of));
    let mut elements = vec![Element::heading(card.tool.one_line().as_str().to_owned())];
    elements.push(Element::note(own(&card.words.arguments)));
    elements.push(Element::boxed(part.to_owned()));
    elements.push(Element::note(own(&card.request_id)));
    CardJson::new(Template::Grey, title, own(&card.preview), elements)
}

/// The message with the answers. Where the field for changed arguments would make it too heavy, it says where else they can be changed.
fn last(view: &FullView) -> CardJson {
    let whole = answers(view, edit::lay_out(view));
    if weight(&whole) <= BUDGET && whole.count() <= MOST_ELEMENTS {
        return whole;
    }
    let elsewhere = view.edit.as_ref().filter(|_| view.seen.is_some());
    answers(view, elsewhere.map(edit::elsewhere))
}

fn answers(view: &FullView, edit: Option<Element>) -> CardJson {
    let card = &view.card;
    let mut elements = vec![Element::heading(card.tool.one_line().as_str().to_owned())];
    elements.extend(facts(card));
    match (&card.actions, view.seen) {
        (Actions::Decide { .. }, Some(seen)) => {
            elements.extend(buttons(card, true, Shown::Alone(seen)));
            elements.extend(edit);
        }
        (Actions::Decide { .. }, None) => {
            elements.push(Element::warning(own(&card.words.approve_in_full_view)));
        }
        (Actions::None, _) => {}
    }
    elements.push(Element::note(own(&card.request_id)));
    CardJson::new(template(card), own(&card.title), own(&card.preview), elements)
}

/// Sends one of the messages to the person with this `open_id`. Refused content is not sent in another form: what is left out
/// could not be seen.
pub(crate) async fn send(app: &FeishuApp, user: &str, view: &FullView, number: u32, key: &PostKey) -> Posted {
    let nowhere = |why: &str| Posted::NotSent(Failure::Setup { why: why.to_owned() });
    if !is_id(user) {
        return nowhere("not an id of the platform");
    }
    match lay_out(view, number) {
        Some(card) => create(app, Receiver::Person(user), &card, &uuid(key))
            .await
            .map_or_else(not_posted, Posted::At),
        None => nowhere("there is no such part"),
    }
}

/// What is left of the last message where the platform refuses the rest: ids and our own words. Nothing can be answered on it, since
/// what would be answered could not be shown.
pub(crate) fn bare(view: &FullView) -> CardJson {
    let card = &view.card;
    let mut elements = Vec::new();
    if let Actions::Decide { .. } = card.actions {
        elements.push(Element::warning(own(&card.words.approve_in_full_view)));
    }
    elements.push(Element::note(own(&card.request_id)));
    CardJson::new(template(card), own(&card.title), own(&card.preview), elements)
}

/// Replaces the last message. It loses its buttons even if the content that takes their place is refused.
pub(crate) async fn edit(app: &FeishuApp, at: &MessageRef, view: &FullView) -> Result<(), Failure> {
    if !is_id(&at.message) {
        return Err(Failure::Gone {
            why: "not a message id of the platform".to_owned(),
        });
    }
    let mut edited = replace(app, &at.message, &last(view)).await;
    if edited.as_ref().is_err_and(CallError::is_content) {
        tracing::warn!(request = %view.card.request_id, "the platform refused the edit of a page; trying the barest one");
        edited = replace(app, &at.message, &bare(view)).await;
    }
    edited.map_err(CallError::failure)
}
