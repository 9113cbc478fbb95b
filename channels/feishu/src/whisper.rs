//! Answering one person: a message of the bot's own conversation with them. Where there can be none, and they spoke in a group, the
//! group is told so, and nothing else.

use async_trait::async_trait;
use gatepost_channel::{Failure, Inert, Listener, PostKey, Reply, ReplyTone, Whisper};
use reqwest::Method;
use serde::Serialize;

use crate::card::{lay_out, minimal};
use crate::channel::FeishuChannel;
use crate::client::{Call, FeishuApp};
use crate::config::is_id;
use crate::elements::{CardJson, Element, Template};
use crate::error::CallError;
use crate::post::{json, uuid};

/// What stands above an answer and in lists of chats: no word of the answer.
const TITLE: &str = "Gatepost";

/// The body of a message to a person.
#[derive(Serialize)]
struct ToPerson<'a> {
    receive_id: &'a str,
    msg_type: &'static str,
    content: String,
    uuid: &'a str,
}

/// The body of an answer to a message.
#[derive(Serialize)]
struct ToMessage<'a> {
    msg_type: &'static str,
    content: String,
    uuid: &'a str,
}

#[async_trait]
impl Whisper for FeishuChannel {
    async fn is_me(&self, mentioned: &[String]) -> Result<bool, Failure> {
        let me = self.app.me().await.map_err(CallError::failure)?;
        Ok(mentioned.contains(&me))
    }

    async fn whisper(
        &self,
        to: &Listener,
        reply: &Reply,
        aloud: &Inert,
        key: &PostKey,
    ) -> Result<(), Failure> {
        let (told, plainer) = match &reply.card {
            Some(card) => (lay_out(card).card, Some(minimal(card))),
            None => (note(reply.tone, &reply.text), None),
        };
        let key = uuid(key);
        let mut told = person(&self.app, &to.user, &told, &key).await;
        if let (true, Some(plainer)) = (told.as_ref().is_err_and(CallError::is_content), plainer) {
            told = person(&self.app, &to.user, &plainer, &key).await;
        }
        let failure = match told {
            Ok(()) => return Ok(()),
            Err(error) => error.failure(),
        };
        match (&to.message, failure) {
            (Some(message), Failure::Target { .. } | Failure::Setup { .. }) if is_id(message) => {
                let said = note(ReplyTone::Warning, aloud);
                let key = uuid(&PostKey(format!("{key}-aloud")));
                answer(&self.app, message, &said, &key)
                    .await
                    .map_err(CallError::failure)
            }
            (_, failure) => Err(failure),
        }
    }
}

/// A few lines of text, on which nothing can be pressed.
fn note(tone: ReplyTone, text: &Inert) -> CardJson {
    let template = match tone {
        ReplyTone::Success => Template::Green,
        ReplyTone::Info => Template::Grey,
        ReplyTone::Warning => Template::Orange,
        ReplyTone::Error => Template::Red,
    };
    let lines = vec![Element::paragraph(text.as_str().to_owned())];
    CardJson::new(template, TITLE.to_owned(), TITLE.to_owned(), lines)
}

async fn person(app: &FeishuApp, user: &str, card: &CardJson, uuid: &str) -> Result<(), CallError> {
    let body = ToPerson {
        receive_id: user,
        msg_type: "interactive",
        content: card.content(),
        uuid,
    };
    app.call(&Call {
        name: "im.message.create",
        method: Method::POST,
        path: &["open-apis", "im", "v1", "messages"],
        query: &[("receive_id_type", "open_id")],
        body: Some(json(&body)),
    })
    .await
    .map(drop)
}

async fn answer(app: &FeishuApp, message: &str, card: &CardJson, uuid: &str) -> Result<(), CallError> {
    let body = ToMessage {
        msg_type: "interactive",
        content: card.content(),
        uuid,
    };
    app.call(&Call {
        name: "im.message.reply",
        method: Method::POST,
        path: &["open-apis", "im", "v1", "messages", message, "reply"],
        query: &[],
        body: Some(json(&body)),
    })
    .await
    .map(drop)
}

#[cfg(test)]
#[path = "whisper_tests.rs"]
mod tests;
