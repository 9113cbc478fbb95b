//! Lines below a card: answers in its thread. A mention is an element of its own, made from an id of Slack's form; all else is
//! literal text.

use async_trait::async_trait;
use gatepost_channel::{CardForm, Mention, MessageRef, Note, PostKey, Posted, Threads};
use serde::Serialize;

use crate::blocks;
use crate::channel::SlackChannel;
use crate::client::{Arguments, Literally};
use crate::error::CallError;
use crate::post::place;

/// The most units of a note, and of a name in it.
const TEXT: usize = 2_000;
const NAME: usize = 100;

/// The arguments of `chat.postMessage` for an answer.
#[derive(Serialize)]
struct Answering<'a> {
    channel: &'a str,
    thread_ts: &'a str,
    reply_broadcast: bool,
    text: String,
    blocks: [RichText; 1],
    #[serde(flatten)]
    literally: Literally,
    #[serde(flatten)]
    folded: Folded,
}

/// Nothing in the note is read as markup or shown as a preview of what it leads to.
#[derive(Serialize, Default)]
struct Folded {
    mrkdwn: bool,
    unfurl_links: bool,
    unfurl_media: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "rich_text")]
struct RichText {
    elements: [Section; 1],
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "rich_text_section")]
struct Section {
    elements: Vec<Part>,
}

/// What a line is made of: a person of Slack's, or text in which nothing is read.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    User { user_id: String },
    Text { text: String },
}

#[async_trait]
impl Threads for SlackChannel {
    async fn reply(&self, under: &MessageRef, note: &Note, _key: &PostKey) -> Posted {
        let mut answer = self.answer(under, note, true).await;
        if let Err(error) = &answer
            && error.is_content()
        {
            tracing::warn!(request = %note.request_id, ?error, "Slack refused the note; sending it without mentions");
            answer = self.answer(under, note, false).await;
        }
        match answer {
            Ok(answer) => place(&answer, CardForm::LaidOut),
            Err(error) => error.of_post(),
        }
    }
}

impl SlackChannel {
    async fn answer(
        &self,
        under: &MessageRef,
        note: &Note,
        mentions: bool,
    ) -> Result<crate::client::Answer, CallError> {
        let answering = Answering {
            channel: &under.chat,
            thread_ts: &under.message,
            reply_broadcast: note.aloud,
            text: blocks::escape(blocks::start(&note.preview, TEXT)),
            blocks: [RichText {
                elements: [Section {
                    elements: parts(note, mentions),
                }],
            }],
            literally: Literally::default(),
            folded: Folded::default(),
        };
        let arguments = Arguments::json(&answering)?;
        self.app.api.call("chat.postMessage", arguments).await
    }
}

/// First whom it is for, then what it says.
fn parts(note: &Note, mentions: bool) -> Vec<Part> {
    let text = |text: &str| Part::Text {
        text: text.to_owned(),
    };
    let mut parts = Vec::new();
    for mention in &note.mentions {
        parts.push(match user_id(mention).filter(|_| mentions) {
            Some(user_id) => Part::User { user_id },
            None => text(blocks::start(mention.name.one_line().as_str(), NAME)),
        });
        parts.push(text(" "));
    }
    let said = blocks::start(note.text.as_str(), TEXT);
    parts.push(text(if said.is_empty() { "—" } else { said }));
    // Slack takes no empty text; a person may have no name.
    parts.retain(|part| !matches!(part, Part::Text { text } if text.is_empty()));
    parts
}

/// The id, if it is one of Slack's: `U…` or `W…`.
fn user_id(mention: &Mention) -> Option<String> {
    let id = mention.id.as_deref()?;
    let plain = id
        .bytes()
        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    (id.starts_with(['U', 'W']) && (3..=32).contains(&id.len()) && plain).then(|| id.to_owned())
}
