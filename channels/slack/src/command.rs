//! Slash commands: the flat fields of a form, or the same fields as the payload of an envelope, read into a command; and the answer
//! that only the person sees. The `response_url`, which is as good as a key, is never read.
//!
//! Slack shows a command and the answer to it to nobody but the person, whatever the conversation; so every place is private.

use async_trait::async_trait;
use gatepost_channel::command::LONGEST_WORDS;
use gatepost_channel::{
    Answered, Command, Failure, Inbound, Inert, Listener, Place, PlatformUser, PostKey, Refusal, Reply,
    Whisper,
};
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::blocks::{self, Block};
use crate::callback::{AppId, id_of, ignored};
use crate::card::{self, Message};
use crate::channel::SlackChannel;
use crate::client::{Arguments, Literally};
use crate::error::CallError;

/// What a plain answer may hold, in units; a text object takes 3,000.
const ANSWER: usize = 3_000;
/// Longest name of a command; Slack takes 32 characters.
const LONGEST_NAME: usize = 64;

/// The fields of a command, in order, with duplicates kept.
pub(crate) type Fields = [(String, String)];

/// The answer as Slack takes it: in the response, as the payload of an acknowledgement.
#[derive(Debug, Serialize)]
struct Answer {
    response_type: &'static str,
    #[serde(flatten)]
    message: Message,
}

/// The arguments of `chat.postEphemeral`.
#[derive(Serialize)]
struct Told<'a> {
    channel: &'a str,
    user: &'a str,
    #[serde(flatten)]
    message: Message,
    #[serde(flatten)]
    literally: Literally,
}

/// Reads a command. `proof` is something that a repetition of this very request has too, for a sender that names no `trigger_id`.
pub(crate) fn read(
    fields: &Fields,
    app: &AppId,
    proof: &str,
    answered: Answered,
) -> Result<Inbound, Refusal> {
    let (Some(user), Some(chat)) = (id(fields, "user_id")?, id(fields, "channel_id")?) else {
        return Ok(ignored("command_incomplete"));
    };
    let claimed = id(fields, "api_app_id")?;
    let app = match app {
        AppId::Named => match claimed {
            Some(claimed) => claimed.to_owned(),
            None => return Ok(ignored("command_incomplete")),
        },
        AppId::Proven(key) => key.clone(),
    };
    let called = one(fields, "command")?.unwrap_or_default();
    let text = one(fields, "text")?.unwrap_or_default();
    // The workspace in which the person is signed in; nobody else can call the app's command.
    let tenant = match id(fields, "team_id")? {
        Some(team) => Some(team),
        None => id(fields, "enterprise_id")?,
    };
    let moment = id(fields, "trigger_id")?.unwrap_or(proof);
    let named = [tenant.unwrap_or_default(), user, chat, called, text, moment].join("|");
    Ok(Inbound::Command(Command {
        app: Some(app),
        place: Place::Private {
            chat: chat.to_owned(),
        },
        user: PlatformUser {
            ids: vec![user.to_owned()],
            tenant: tenant.map(str::to_owned),
            // A command names one workspace: that of the person.
            from_elsewhere: false,
        },
        called: name(called),
        words: unescape(text).trim().chars().take(LONGEST_WORDS).collect(),
        said_at: None,
        answered,
        replay_key: format!("command|{}", hex::encode(Sha256::digest(named))),
    }))
}

/// The fields of a command that came as JSON: its texts.
pub(crate) fn fields_of(payload: &Map<String, Value>) -> Vec<(String, String)> {
    let texts = payload
        .iter()
        .filter_map(|(key, value)| Some((key, value.as_str()?)));
    texts.map(|(key, text)| (key.clone(), text.to_owned())).collect()
}

/// The answer that only the person sees.
pub(crate) fn answer(reply: &Reply) -> Value {
    let answer = Answer {
        response_type: "ephemeral",
        message: message(reply),
    };
    // Plain structs of text always serialise.
    serde_json::to_value(answer).unwrap_or_default()
}

fn message(reply: &Reply) -> Message {
    match &reply.card {
        Some(card) => card::full(card),
        None => Message {
            text: blocks::escape(blocks::start(reply.text.as_str(), ANSWER)),
            blocks: vec![Block::line(reply.text.as_str(), ANSWER)],
        },
    }
}

#[async_trait]
impl Whisper for SlackChannel {
    async fn whisper(
        &self,
        to: &Listener,
        reply: &Reply,
        _aloud: &Inert,
        _key: &PostKey,
    ) -> Result<(), Failure> {
        let told = Told {
            channel: &to.chat,
            user: &to.user,
            message: message(reply),
            literally: Literally::default(),
        };
        let arguments = Arguments::json(&told).map_err(CallError::of_edit)?;
        self.app
            .api
            .call("chat.postEphemeral", arguments)
            .await
            .map(drop)
            .map_err(CallError::of_edit)
    }
}

/// The one value of a field; a field that stands twice is refused, since choosing would be guessing.
fn one<'a>(fields: &'a Fields, name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut values = fields.iter().filter(|(key, _)| key == name);
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(Refusal::unreadable("field_duplicated")),
        (found, None) => Ok(found.map(|(_, value)| value.as_str())),
    }
}

/// An opaque id; an empty field is none.
fn id<'a>(fields: &'a Fields, name: &str) -> Result<Option<&'a str>, Refusal> {
    one(fields, name)?
        .filter(|text| !text.is_empty())
        .map(id_of)
        .transpose()
}

/// How the bot was called, when that is a plain word.
fn name(called: &str) -> String {
    let plain = called.starts_with('/')
        && called.len() <= LONGEST_NAME
        && called
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_'));
    if plain { called } else { "/gatepost" }.to_owned()
}

/// Undoes Slack's escaping of the three characters of its markup.
fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
