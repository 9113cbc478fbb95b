//! Lines below a posted card, for platforms that have threads or replies: reminders, and what came of it.

use async_trait::async_trait;

use crate::channel::{MessageRef, PostKey, Posted};
use crate::text::Inert;

/// Writing below a message of ours.
#[async_trait]
pub trait Threads: Send + Sync {
    /// Posts the note as an answer to the message. As for a card there are three outcomes, and `key` names the attempt: where
    /// [`Channel::repeats_safely`](crate::Channel::repeats_safely) promises it, one key makes one message. A message that is not
    /// there is [`Failure::Gone`](crate::Failure::Gone). A note whose content is refused is sent once more without mentions.
    async fn reply(&self, under: &MessageRef, note: &Note, key: &PostKey) -> Posted;
}

/// A line or two below a card. It has no button.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The request's id, `cr_…`.
    pub request_id: String,
    /// Shown as text: own words, with names and times in them.
    pub text: Inert,
    /// Own words and ids only, for push messages and lists.
    pub preview: String,
    /// Whom the line is for, in order.
    pub mentions: Vec<Mention>,
    /// Whether the whole group should see it, and not only who follows the thread.
    pub aloud: bool,
}

/// A person whom a note is for. The id comes from the configuration or from the platform itself, never from what an agent said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The platform's id. A person without one, or with one that is not of the platform's form, is named in text.
    pub id: Option<String>,
    /// Their name, on one line.
    pub name: Inert,
}
