//! Posting and editing a card, with a plainer form when the platform refuses the content. Nothing is repeated blindly.

use gatepost_channel::{Card, CardForm, Failure, MessageRef, PostKey, Posted};
use reqwest::Method;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::card::{lay_out, minimal};
use crate::client::{Call, FeishuApp};
use crate::config::is_id;
use crate::document::text;
use crate::elements::CardJson;
use crate::error::CallError;

/// The longest `uuid` that the platform takes.
pub(crate) const LONGEST_KEY: usize = 50;

/// The body of `im/v1/messages`; the card travels as text.
#[derive(Serialize)]
struct NewMessage<'a> {
    receive_id: &'a str,
    msg_type: &'static str,
    content: String,
    uuid: &'a str,
}

/// The body of an edit; the card is replaced whole.
#[derive(Serialize)]
struct NewContent {
    content: String,
}

/// Posts the card to the group. The plainer form goes out under the same `uuid`: at most one message succeeds under it, so that
/// a first answer that was lost and a second try can never leave two cards.
pub(crate) async fn post(app: &FeishuApp, chat: &str, card: &Card, key: &PostKey) -> Posted {
    let uuid = uuid(key);
    let group = Receiver::Group(chat);
    let mut posted = create(app, group, &lay_out(card).card, &uuid)
        .await
        .map(Posted::At);
    if posted.as_ref().is_err_and(CallError::is_content) && card.set.is_none() {
        tracing::warn!(request = %card.request_id, "the platform refused the card; posting the minimal one");
        posted = create(app, group, &minimal(card), &uuid)
            .await
            .map(Posted::Minimal);
    }
    posted.unwrap_or_else(not_posted)
}

/// What a post that was not answered by a place comes to.
pub(crate) fn not_posted(error: CallError) -> Posted {
    match error.may_have_happened() {
        Some(why) => Posted::Unknown { why },
        None => Posted::NotSent(error.failure()),
    }
}

/// Who gets a message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Receiver<'a> {
    /// A group, by its `chat_id`.
    Group(&'a str),
    /// One person, by their `open_id`; where that chat is the answer says.
    Person(&'a str),
}

/// Replaces the card at `at`. A settled card loses its buttons even if its content is refused.
pub(crate) async fn edit(app: &FeishuApp, at: &MessageRef, card: &Card) -> Result<CardForm, Failure> {
    if !is_id(&at.message) {
        return Err(Failure::Gone {
            why: "not a message id of the platform".to_owned(),
        });
    }
    let mut form = CardForm::LaidOut;
    let mut edited = replace(app, &at.message, &lay_out(card).card).await;
    // Several open requests that are refused together have no plainer form: the core posts them one by one.
    let plainer = card.set.is_none() || !card.is_open();
    if edited.as_ref().is_err_and(CallError::is_content) && plainer {
        tracing::warn!(request = %card.request_id, "the platform refused the edit; trying the minimal card");
        form = CardForm::Minimal;
        edited = replace(app, &at.message, &minimal(card)).await;
    }
    edited.map(|()| form).map_err(CallError::failure)
}

pub(crate) async fn create(
    app: &FeishuApp,
    receiver: Receiver<'_>,
    card: &CardJson,
    uuid: &str,
) -> Result<MessageRef, CallError> {
    let (kind, id) = match receiver {
        Receiver::Group(chat) => ("chat_id", chat),
        Receiver::Person(user) => ("open_id", user),
    };
    let body = NewMessage {
        receive_id: id,
        msg_type: "interactive",
        content: card.content(),
        uuid,
    };
    let answer = app
        .call(&Call {
            name: "im.message.create",
            method: Method::POST,
            path: &["open-apis", "im", "v1", "messages"],
            query: &[("receive_id_type", kind)],
            body: Some(json(&body)),
        })
        .await?;
    let chat = match receiver {
        Receiver::Group(chat) => Some(chat),
        Receiver::Person(_) => text(&answer, &["data", "chat_id"]).filter(|id| is_id(id)),
    };
    let message = text(&answer, &["data", "message_id"]).filter(|id| is_id(id));
    match (chat, message) {
        (Some(chat), Some(message)) => Ok(MessageRef {
            chat: chat.to_owned(),
            message: message.to_owned(),
        }),
        _ => Err(CallError::Unclear("no message id in the answer".to_owned())),
    }
}

pub(crate) async fn replace(app: &FeishuApp, message: &str, card: &CardJson) -> Result<(), CallError> {
    let body = NewContent {
        content: card.content(),
    };
    app.call(&Call {
        name: "im.message.patch",
        method: Method::PATCH,
        path: &["open-apis", "im", "v1", "messages", message],
        query: &[],
        body: Some(json(&body)),
    })
    .await
    .map(|_| ())
}

/// A body of plain structs of text; serialising it cannot fail.
pub(crate) fn json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}

/// The key as the platform takes it: as it is, or its digest when it is too long.
pub(crate) fn uuid(key: &PostKey) -> String {
    if key.0.len() <= LONGEST_KEY && !key.0.is_empty() {
        return key.0.clone();
    }
    let mut digest = hex::encode(Sha256::digest(key.0.as_bytes()));
    digest.truncate(LONGEST_KEY);
    digest
}
