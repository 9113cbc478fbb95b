//! Posting and editing a card, with a simpler form when Slack refuses the content. Nothing is repeated blindly.

use gatepost_channel::{Card, CardForm, Failure, MessageRef, PostKey, Posted};
use serde::Serialize;

use crate::card::{self, Message};
use crate::client::{Answer, Api, Arguments, Literally};
use crate::error::CallError;

/// Posts the card to `chat`. Several requests that are refused together have no simpler form: the core posts them one by one.
pub(crate) async fn post(api: &Api, chat: &str, card: &Card, key: &PostKey) -> Posted {
    let mut answer = send(api, chat, &card::full(card), Some(Metadata::new(card, key))).await;
    let mut form = CardForm::LaidOut;
    if let Err(error) = &answer
        && error.is_content()
        && card.set.is_none()
    {
        tracing::warn!(request = %card.request_id, ?error, "Slack refused the card; posting the minimal one");
        answer = send(api, chat, &card::minimal(card), None).await;
        form = CardForm::Minimal;
    }
    match answer {
        Ok(answer) => place(&answer, form),
        Err(error) => error.of_post(),
    }
}

/// Replaces the card at `at`. A settled card loses its buttons even if Slack takes nothing but one line.
pub(crate) async fn edit(api: &Api, at: &MessageRef, card: &Card) -> Result<CardForm, Failure> {
    let mut forms = vec![(CardForm::LaidOut, card::full(card))];
    if card.set.is_none() || !card.is_open() {
        forms.push((CardForm::Minimal, card::minimal(card)));
    }
    if !card.is_open() {
        forms.push((CardForm::Minimal, card::one_line(card)));
    }
    let mut refused = CallError::setup("no_form");
    for (form, message) in forms {
        match replace(api, at, &message).await {
            Ok(_) => return Ok(form),
            Err(error) if error.is_content() => {
                tracing::warn!(request = %card.request_id, ?error, "Slack refused the edit; trying a simpler form");
                refused = error;
            }
            Err(error) => return Err(error.of_edit()),
        }
    }
    Err(refused.of_edit())
}

/// Where the message stands, in Slack's own words: a conversation can be known by another id than the one posted to.
pub(crate) fn place(answer: &Answer, form: CardForm) -> Posted {
    match (answer.id("channel"), answer.id("ts")) {
        (Some(chat), Some(message)) => {
            let at = MessageRef {
                chat: chat.to_owned(),
                message: message.to_owned(),
            };
            match form {
                CardForm::LaidOut => Posted::At(at),
                CardForm::Minimal => Posted::Minimal(at),
            }
        }
        _ => Posted::Unknown {
            why: "answer_without_place".to_owned(),
        },
    }
}

/// The arguments of `chat.postMessage`: nothing is expanded, linked or read as markup.
#[derive(Serialize)]
struct Posting<'a> {
    channel: &'a str,
    #[serde(flatten)]
    message: &'a Message,
    #[serde(flatten)]
    literally: Literally,
    mrkdwn: bool,
    unfurl_links: bool,
    unfurl_media: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata<'a>>,
}

/// Ids only: every app and member of the workspace can read it.
#[derive(Serialize)]
struct Metadata<'a> {
    event_type: &'static str,
    event_payload: Ids<'a>,
}

#[derive(Serialize)]
struct Ids<'a> {
    request: &'a str,
    attempt: &'a str,
}

impl<'a> Metadata<'a> {
    fn new(card: &'a Card, key: &'a PostKey) -> Self {
        Self {
            event_type: "gatepost_card",
            event_payload: Ids {
                request: &card.request_id,
                attempt: &key.0,
            },
        }
    }
}

/// The arguments of `chat.update`, which falls back to reading markup unless it is told not to each time.
#[derive(Serialize)]
struct Editing<'a> {
    channel: &'a str,
    ts: &'a str,
    #[serde(flatten)]
    message: &'a Message,
    #[serde(flatten)]
    literally: Literally,
}

async fn send(
    api: &Api,
    chat: &str,
    message: &Message,
    metadata: Option<Metadata<'_>>,
) -> Result<Answer, CallError> {
    let posting = Posting {
        channel: chat,
        message,
        literally: Literally::default(),
        mrkdwn: false,
        unfurl_links: false,
        unfurl_media: false,
        metadata,
    };
    api.call("chat.postMessage", Arguments::json(&posting)?).await
}

async fn replace(api: &Api, at: &MessageRef, message: &Message) -> Result<Answer, CallError> {
    let editing = Editing {
        channel: &at.chat,
        ts: &at.message,
        message,
        literally: Literally::default(),
    };
    api.call("chat.update", Arguments::json(&editing)?).await
}
