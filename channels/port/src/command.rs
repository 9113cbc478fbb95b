//! Words to the bot: a slash command, or a message that speaks to it. What they mean, and whether they count, is the core's affair.

use async_trait::async_trait;

use crate::channel::{PostKey, Reply};
use crate::failure::Failure;
use crate::inbound::PlatformUser;
use crate::text::Inert;
use crate::time::UtcMillis;

/// The most characters of a command that are passed on; more than any command of ours needs, with a reason of full length.
pub const LONGEST_WORDS: usize = 3_000;

/// What a person said to the bot, verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The app that the platform says was spoken to, when the payload names it; compared with the app of the channel.
    pub app: Option<String>,
    /// Where it was said.
    pub place: Place,
    /// Who said it.
    pub user: PlatformUser,
    /// How the bot was called (`/gatepost`), to be repeated in what the person is told; a plain word.
    pub called: String,
    /// What stands behind that, trimmed, as it was typed. At most [`LONGEST_WORDS`] characters.
    pub words: String,
    /// When the platform says that it was said, where that is not proven fresh by the request: platforms repeat messages for hours.
    pub said_at: Option<UtcMillis>,
    /// How the person is answered.
    pub answered: Answered,
    /// Names this very command for the replay memory: equal when the platform sends it again, different for the next one.
    pub replay_key: String,
}

/// Where a command was said. An answer reaches nobody but the person in either case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The platform shows neither the command nor its answer to anybody else. The chat may be one of ours or any other.
    Private {
        /// The chat.
        chat: String,
    },
    /// In a group that reads along.
    Group {
        /// The chat; only a configured one counts.
        chat: String,
        /// The message, for an answer that can only be given there.
        message: String,
        /// Who is mentioned in it. Only words to the bot are a command: [`Whisper::is_me`] tells whether it is among them.
        mentioned: Vec<String>,
    },
}

impl Place {
    /// The chat.
    pub fn chat(&self) -> &str {
        match self {
            Self::Private { chat } | Self::Group { chat, .. } => chat,
        }
    }
}

/// How a command is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// The answer to the request is what the person sees, and nobody else.
    There,
    /// The request is only acknowledged; the answer follows by [`Whisper`].
    Apart,
}

/// Whom an answer is for, and where it was asked for. Stored, so its spelling is stable.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Listener {
    /// The platform's id of the person, the most specific one.
    pub user: String,
    /// The chat where they spoke.
    pub chat: String,
    /// The message in a group that reads along; nothing where nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Answering one person so that nobody else sees it.
#[async_trait]
pub trait Whisper: Send + Sync {
    /// Whether one of these who were [mentioned](Place::Group) is the bot.
    async fn is_me(&self, _mentioned: &[String]) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Shows the reply to the listener alone: its card where there is one, else its text. Where the platform cannot reach the
    /// person alone, `aloud`, which holds own words only, may be said in their place; the reply never is. `key` names the answer,
    /// for platforms that can refuse a repetition.
    async fn whisper(
        &self,
        to: &Listener,
        reply: &Reply,
        aloud: &Inert,
        key: &PostKey,
    ) -> Result<(), Failure>;
}
