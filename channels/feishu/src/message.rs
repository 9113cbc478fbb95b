//! What a message to the bot says (`im.message.receive_v1`): words in the person's own conversation with it, or in a group where
//! it is mentioned. Only text of a person counts; whatever else is authentic is without effect.

use gatepost_channel::command::LONGEST_WORDS;
use gatepost_channel::{Answered, Command, Inbound, Place, PlatformUser, UtcMillis};
use serde_json::Value;

use crate::callback::{id, nothing, person};
use crate::config::is_id;
use crate::document::{self, Object, text};

/// How the bot is called in words; left out in its own conversation and behind a mention of it.
const CALLED: &str = "/gatepost";
/// The most mentions that are read; the platform allows about as many.
const MOST_MENTIONS: usize = 50;

/// Reads a message. In a group whoever is mentioned is named: whether that is the bot cannot be told from the event alone.
pub(crate) fn read(event: &Object) -> Inbound {
    match command(event) {
        Ok(command) => Inbound::Command(command),
        Err(why) => Inbound::Ignored {
            answer: nothing(),
            why,
        },
    }
}

fn command(event: &Object) -> Result<Command, &'static str> {
    if text(event, &["event", "sender", "sender_type"]) != Some("user") {
        return Err("not_of_a_person");
    }
    if text(event, &["event", "message", "message_type"]) != Some("text") {
        return Err("not_text");
    }
    let user = sender(event)?;
    let message = id(event, &["event", "message", "message_id"]).ok_or("message_missing")?;
    let chat = id(event, &["event", "message", "chat_id"]).ok_or("chat_missing")?;
    let content = text(event, &["event", "message", "content"]).ok_or("content_missing")?;
    let content = document::parse(content.as_bytes()).map_err(|_| "content_malformed")?;
    let said = text(&content, &["text"]).ok_or("content_malformed")?;
    let mentions = mentions(event);
    let place = match text(event, &["event", "message", "chat_type"]) {
        Some("p2p") => Place::Private { chat },
        Some(_) => Place::Group {
            chat,
            message: message.clone(),
            mentioned: mentions.iter().filter_map(|mention| mention.of.clone()).collect(),
        },
        None => return Err("chat_type_missing"),
    };
    if let Place::Group { mentioned, .. } = &place
        && mentioned.is_empty()
    {
        return Err("not_addressed");
    }
    let at = ["message", "header"].into_iter().find_map(|part| match part {
        "message" => moment(text(event, &["event", "message", "create_time"])?),
        _ => moment(text(event, &["header", "create_time"])?),
    });
    Ok(Command {
        app: id(event, &["header", "app_id"]),
        place,
        user,
        called: CALLED.to_owned(),
        words: words(said, &mentions),
        said_at: Some(at.ok_or("time_missing")?),
        answered: Answered::Apart,
        replay_key: format!("message|{message}"),
    })
}

fn sender(event: &Object) -> Result<PlatformUser, &'static str> {
    let sender = event
        .get("event")
        .and_then(|event| event.get("sender")?.as_object())
        .ok_or("sender_missing")?;
    let tenant = id(sender, &["tenant_key"]);
    if tenant != id(event, &["header", "tenant_key"]) {
        return Err("tenant_disagrees");
    }
    let ids = sender.get("sender_id").and_then(Value::as_object);
    let ids = ids.and_then(person).ok_or("sender_missing")?;
    Ok(PlatformUser {
        ids,
        tenant,
        // The event is of one tenant; one that names another for the person is refused.
        from_elsewhere: false,
    })
}

/// Somebody who is mentioned: how the text spells it, and who it is.
struct Mention<'a> {
    key: &'a str,
    of: Option<String>,
}

fn mentions(event: &Object) -> Vec<Mention<'_>> {
    let all = event
        .get("event")
        .and_then(|event| event.pointer("/message/mentions")?.as_array());
    let all = all.into_iter().flatten().take(MOST_MENTIONS);
    all.filter_map(|mention| {
        Some(Mention {
            key: mention
                .get("key")?
                .as_str()
                .filter(|key| key.starts_with('@') && key.len() > 1)?,
            of: mention
                .pointer("/id/open_id")
                .and_then(Value::as_str)
                .filter(|id| is_id(id))
                .map(str::to_owned),
        })
    })
    .collect()
}

/// The words without mentions and without the name of the bot.
fn words(said: &str, mentions: &[Mention<'_>]) -> String {
    let mut keys: Vec<&str> = mentions.iter().map(|mention| mention.key).collect();
    // `@_user_10` before `@_user_1`, which begins it.
    keys.sort_unstable_by_key(|key| std::cmp::Reverse(key.len()));
    let mut said: String = said.chars().take(2 * LONGEST_WORDS).collect();
    for key in keys {
        said = said.replace(key, " ");
    }
    let said = said.trim();
    let (first, rest) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
    let called = [CALLED, "gatepost"]
        .iter()
        .any(|name| first.eq_ignore_ascii_case(name));
    let said = if called { rest } else { said };
    said.trim().chars().take(LONGEST_WORDS).collect()
}

/// A time as the platform spells it: milliseconds, or microseconds where it counts finer.
fn moment(text: &str) -> Option<UtcMillis> {
    let number: i64 = text.parse().ok()?;
    match text.len() {
        13 => Some(UtcMillis(number)),
        16 => Some(UtcMillis(number / 1_000)),
        _ => None,
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
