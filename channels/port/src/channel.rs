//! The verbs of a channel, and the capabilities that some channels have.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::ask::Ask;
use crate::card::Card;
use crate::command::{Command, Whisper};
use crate::connection::Connection;
use crate::dialog::{Dialogs, Pages};
use crate::directory::Directory;
use crate::exam::{Finding, Needs};
use crate::failure::Failure;
use crate::inbound::{Click, HttpAnswer, PlatformUser};
use crate::text::Inert;
use crate::threads::Threads;
use crate::verify::Verifier;

/// One app on one platform. Channels with the same key share connections, token caches and callbacks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AppKey {
    /// The adapter's kind.
    pub kind: String,
    /// Names the app; no secret.
    pub id: String,
}

/// Where a posted card stands: enough to edit it and to recognise a click on it. Stored, so its spelling is stable.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MessageRef {
    /// The chat, as the platform names it in clicks.
    pub chat: String,
    /// The message, as the platform names it in clicks.
    pub message: String,
}

/// Names one attempt to post, for platforms that can refuse a repetition. At most 50 characters, stable over retries of the
/// same attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostKey(pub String);

/// What came of posting a card. A post has three outcomes, not two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posted {
    /// It stands here.
    At(MessageRef),
    /// The platform refused its content, so that its minimal form stands here ([`CardForm::Minimal`]).
    Minimal(MessageRef),
    /// It certainly does not stand anywhere.
    NotSent(Failure),
    /// The request left and no clear answer came: it may stand.
    Unknown {
        /// The platform's code or the transport's class; no secret.
        why: String,
    },
}

/// In which form a card stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CardForm {
    /// Laid out.
    LaidOut,
    /// Ids and own words only, since the platform refused the content. Nobody saw the arguments there, so the core lets nobody
    /// approve on it.
    Minimal,
}

/// What a channel says of itself when asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Whether a card would go through now.
    pub healthy: bool,
    /// One line for an operator: what is wrong and what to do.
    pub detail: String,
}

/// How a private answer to a click or a command is coloured. Stored, so its spelling is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplyTone {
    /// The vote counted.
    Success,
    /// Nothing changed, and that is fine.
    Info,
    /// Nothing changed; the person should know why.
    Warning,
    /// The person may not do this.
    Error,
}

/// What of an answer a reply is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Field {
    /// The answer itself.
    #[default]
    Answer,
    /// The reason given with it.
    Reason,
    /// The arguments as they were changed.
    Arguments,
}

/// What the clicker is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Its colour.
    pub tone: ReplyTone,
    /// Its words, in the channel's language.
    pub text: Inert,
    /// Whether the answer changed nothing. Where a dialogue was sent, it then stays open and says so.
    pub refused: bool,
    /// What of an answer it is about, for dialogues that say it at the field.
    pub field: Field,
    /// The card as the request stands now, where the platform takes it with the answer.
    pub card: Option<Card>,
}

/// A configured group on a platform.
///
/// Calls may be made from several tasks at once. No method may block for longer than its own time-outs, retry by itself more
/// than once (for a refreshed token), or log what it was given.
#[async_trait]
pub trait Channel: Send + Sync {
    /// The configured name, unique in the installation.
    fn name(&self) -> &str;

    /// The adapter's kind, as the configuration spells it.
    fn kind(&self) -> &'static str;

    /// The app behind the channel.
    fn app(&self) -> AppKey;

    /// The chat that cards are posted to, as clicks name it.
    fn chat(&self) -> &str;

    /// Whether this person may click here at all, by the tenant that they come from (`tenants`, `teams`). Where tenants are
    /// configured, a person whose tenant the platform did not name may not; where none are, nobody whom the platform shows to come
    /// from elsewhere may.
    fn admits(&self, user: &PlatformUser) -> bool;

    /// Whether the card would show all of the arguments. Pure: asked before anything is stored.
    fn shows_all(&self, card: &Card) -> bool;

    /// Posts the card to the group. Falls back by itself to a minimal card (Reject and "show everything") when the content
    /// is refused.
    async fn post(&self, card: &Card, key: &PostKey) -> Posted;

    /// Replaces a posted card whole, and says in which form it stands now. Falls back by itself to a minimal card.
    async fn edit(&self, at: &MessageRef, card: &Card) -> Result<CardForm, Failure>;

    /// Asks the platform whether this channel works.
    async fn check(&self) -> Health;

    /// Looks closely at what [`Channel::check`] does not see: scopes, callbacks, versions. Posts and changes nothing.
    async fn examine(&self, _needs: &Needs) -> Vec<Finding> {
        Vec::new()
    }

    /// How many cards and edits may be sent to the group, as a rate and a burst.
    fn pace(&self) -> Pace;

    /// How long after the first attempt the platform lets no second card arise under the same [`PostKey`]: for that long, a
    /// post of unknown outcome may be repeated with its key. `None` where the platform gives no such promise.
    fn repeats_safely(&self) -> Option<Duration> {
        None
    }

    /// The app's connections, for channels whose clicks come in that way. Channels of one app give the same one.
    fn connection(&self) -> Option<Arc<dyn Connection>> {
        None
    }

    /// Whether the platform takes the card with the answer to a click. Where it does not, [`Reply::card`] is not made.
    fn takes_card(&self) -> bool {
        true
    }

    /// The callback side, for channels that are called over HTTP. A socket channel has none.
    fn webhook(&self) -> Option<&dyn Webhook> {
        None
    }

    /// Lines below a card, for platforms that have threads or replies.
    fn threads(&self) -> Option<&dyn Threads> {
        None
    }

    /// The private notice, for platforms that cannot answer a click in its own response.
    fn private_notice(&self) -> Option<&dyn PrivateNotice> {
        None
    }

    /// Answering a command apart from its request, for channels whose commands are not always answered there.
    fn whisper(&self) -> Option<&dyn Whisper> {
        None
    }

    /// Who is who on the platform, for those that can be asked.
    fn directory(&self) -> Option<&dyn Directory> {
        None
    }

    /// Windows that a press opens for one person.
    fn dialogs(&self) -> Option<&dyn Dialogs> {
        None
    }

    /// Messages to one person, for platforms without such windows.
    fn pages(&self) -> Option<&dyn Pages> {
        None
    }
}

/// How fast one group may be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Messages that may go at once.
    pub burst: u32,
    /// The time in which one more becomes free.
    pub every: Duration,
}

/// The callback side of a channel: a verifier, and the answer to a click in the platform's own form.
pub trait Webhook: Verifier {
    /// The answer to an authentic click, 200 always. Pure.
    fn answer(&self, click: &Click, reply: &Reply) -> HttpAnswer;

    /// The answer to an authentic command, 200 always. It holds the reply only for one that is
    /// [answered there](crate::Answered::There); else it only acknowledges. Pure.
    fn answer_command(&self, _command: &Command, _reply: &Reply) -> HttpAnswer {
        HttpAnswer::empty()
    }

    /// The answer to an authentic ask, 200 always: acknowledged where a dialogue opens by itself, else the reply. Pure.
    fn answer_ask(&self, _ask: &Ask, _reply: &Reply) -> HttpAnswer {
        HttpAnswer::empty()
    }
}

/// Telling one person something that the group does not see.
#[async_trait]
pub trait PrivateNotice: Send + Sync {
    /// Tells the person who clicked, in the chat where they clicked.
    async fn tell(&self, user: &str, chat: &str, text: &Inert) -> Result<(), Failure>;
}
