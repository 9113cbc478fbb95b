//! Lines below a card: answers to its message. The one line that the client reads as markup holds nothing but mentions, made from
//! open ids; all else is plain text.

use async_trait::async_trait;
use gatepost_channel::{Inert, Mention, MessageRef, Note, PostKey, Posted, Threads};
use reqwest::Method;
use serde::Serialize;

use crate::card::{own, short};
use crate::channel::FeishuChannel;
use crate::client::Call;
use crate::config::is_id;
use crate::document::text;
use crate::error::CallError;
use crate::post::{json, uuid};

/// The most characters of a name.
const NAME: usize = 60;

/// The body of `im/v1/messages/{id}/reply`; the card travels as text.
#[derive(Serialize)]
struct Answer<'a> {
    msg_type: &'static str,
    content: String,
    reply_in_thread: bool,
    uuid: &'a str,
}

/// A card with a line or two, and nothing to press.
#[derive(Serialize)]
struct Line {
    schema: &'static str,
    config: Config,
    body: Body,
}

#[derive(Serialize)]
struct Config {
    update_multi: bool,
    enable_forward: bool,
    summary: Summary,
}

#[derive(Serialize)]
struct Summary {
    content: String,
}

#[derive(Serialize)]
struct Body {
    elements: Vec<Element>,
}

#[derive(Serialize)]
#[serde(tag = "tag", rename_all = "snake_case")]
enum Element {
    /// Mentions, and nothing else: this element reads markup.
    Markdown {
        content: Mentions,
    },
    Div {
        text: Plain,
    },
}

#[derive(Serialize)]
#[serde(tag = "tag", rename = "plain_text")]
struct Plain {
    content: String,
}

/// Open ids, each letter of which was looked at; spelled as the platform's own tags.
struct Mentions(Vec<String>);

impl Serialize for Mentions {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tags: Vec<_> = self.0.iter().map(|id| format!("<at id={id}></at>")).collect();
        serializer.serialize_str(&tags.join(" "))
    }
}

#[async_trait]
impl Threads for FeishuChannel {
    /// Both forms go out under one `uuid`: at most one of them can stand.
    async fn reply(&self, under: &MessageRef, note: &Note, key: &PostKey) -> Posted {
        if !is_id(&under.message) {
            return Posted::NotSent(gatepost_channel::Failure::Gone {
                why: "not a message id of the platform".to_owned(),
            });
        }
        let uuid = uuid(key);
        let mut answer = self.answer(under, note, true, &uuid).await;
        if answer.as_ref().is_err_and(CallError::is_content) {
            tracing::warn!(request = %note.request_id, "the platform refused the note; sending it without mentions");
            answer = self.answer(under, note, false, &uuid).await;
        }
        match answer {
            Ok(at) => Posted::At(at),
            Err(error) => match error.may_have_happened() {
                Some(why) => Posted::Unknown { why },
                None => Posted::NotSent(error.failure()),
            },
        }
    }
}

impl FeishuChannel {
    async fn answer(
        &self,
        under: &MessageRef,
        note: &Note,
        mentions: bool,
        uuid: &str,
    ) -> Result<MessageRef, CallError> {
        let body = Answer {
            msg_type: "interactive",
            content: serde_json::to_string(&line(note, mentions)).unwrap_or_default(),
            reply_in_thread: false,
            uuid,
        };
        let answer = self
            .app
            .call(&Call {
                name: "im.message.reply",
                method: Method::POST,
                path: &["open-apis", "im", "v1", "messages", &under.message, "reply"],
                query: &[],
                body: Some(json(&body)),
            })
            .await?;
        text(&answer, &["data", "message_id"])
            .filter(|id| is_id(id))
            .map(|message| MessageRef {
                chat: under.chat.clone(),
                message: message.to_owned(),
            })
            .ok_or_else(|| CallError::Unclear("no message id in the answer".to_owned()))
    }
}

fn line(note: &Note, mentions: bool) -> Line {
    let (mut ids, mut names) = (Vec::new(), Vec::new());
    for mention in &note.mentions {
        match open_id(mention).filter(|_| mentions) {
            Some(id) => ids.push(id),
            None => names.push(short(mention.name.one_line().as_str(), NAME)),
        }
    }
    let mut elements = Vec::new();
    if !ids.is_empty() {
        elements.push(Element::Markdown {
            content: Mentions(ids),
        });
    }
    let mut said = names.join(", ");
    if !said.is_empty() {
        said.push_str(": ");
    }
    said.push_str(note.text.as_str());
    elements.push(Element::Div {
        text: Plain {
            content: own(Inert::new(&said).as_str()),
        },
    });
    Line {
        schema: "2.0",
        config: Config {
            update_multi: true,
            enable_forward: false,
            summary: Summary {
                content: own(&note.preview),
            },
        },
        body: Body { elements },
    }
}

/// The id, if it is an open id: what else people are known by (union and user ids) a mention does not take everywhere.
fn open_id(mention: &Mention) -> Option<String> {
    let id = mention.id.as_deref()?;
    let rest = id.strip_prefix("ou_")?;
    let plain = rest
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    ((1..=64).contains(&rest.len()) && plain).then(|| id.to_owned())
}
