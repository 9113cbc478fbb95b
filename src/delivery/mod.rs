//! Getting cards to people: which channels, the outbox, and keeping every posted card true.
//!
//! An outbox row says *that* a card must be brought up to date, not what it shows: whoever sends it renders the request as it
//! stands then. So a late post and a late edit are never stale, and edits of one card never overtake each other.

mod arguments;
pub mod authority;
mod bucket;
pub mod button;
pub mod card;
pub mod claim;
pub mod dialog;
pub mod diff;
mod edited;
pub mod escalate;
#[cfg(test)]
mod escalate_tests;
#[cfg(test)]
mod fixture;
pub mod health;
pub mod mention;
mod message;
#[cfg(test)]
mod message_tests;
pub mod notice;
pub mod phrase;
pub mod plan;
pub mod ran;
pub mod record;
#[cfg(test)]
mod record_tests;
pub mod registry;
mod reroute;
#[cfg(test)]
mod reroute_tests;
pub mod sender;
pub mod shared;
#[cfg(test)]
mod shared_tests;
pub mod thread;
#[cfg(test)]
mod thread_tests;
pub mod view;
pub mod whisper;

pub use thread::Line;

use gatepost_channel::{Listener, ReplyTone, UtcMillis};
use serde::{Deserialize, Serialize};

use crate::ids::{ChannelName, ConfirmationId, DeliveryId, OutboxId, WorkerId};

/// What is to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Errand {
    /// Post the card, or edit it where it stands.
    Card {
        /// Which card.
        delivery: DeliveryId,
        /// Posts begun so far; names the attempt for platforms that refuse a repetition.
        posts: u32,
    },
    /// Tell one person something privately.
    Notice {
        /// The platform's id of the person.
        user: String,
        /// The chat where they clicked.
        chat: String,
        /// What they are told; own words and ids.
        text: String,
    },
    /// Answer one person's words, so that nobody else sees it.
    Whisper {
        /// Whom, and where they spoke.
        to: Listener,
        /// Its colour.
        tone: ReplyTone,
        /// What they are told: own words, ids, names of tools and tokens. Never arguments.
        text: String,
        /// They asked to see the request: it is rendered as it stands when this is sent. Holds how they called the bot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shows: Option<String>,
    },
    /// Show one person everything there is of a request, in messages to them alone.
    View {
        /// From which card it was asked.
        delivery: DeliveryId,
        /// The platform's id of the person.
        user: String,
        /// The revision that they are shown; of another one nothing more is sent.
        revision: u32,
        /// The message that is next, from 0.
        page: u32,
        /// What they are told if it cannot be sent; own words.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        otherwise: String,
    },
    /// Say something below a card.
    Line {
        /// Below which card.
        delivery: DeliveryId,
        /// What about.
        line: Line,
        /// How often somebody began to say it; back to 0 when it certainly was not said.
        begun: u32,
    },
    /// Take the next step of the request's escalation. Nothing is sent.
    Escalate {
        /// Which step, from 0.
        step: u32,
    },
}

impl Errand {
    /// Whether it writes a message to the group, which takes only so many.
    pub const fn is_message(&self) -> bool {
        matches!(self, Self::Card { .. } | Self::Line { .. })
    }
}

/// One row of the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxItem {
    /// Its id. The row of a card is [`OutboxId::of_card`], so there is one at most.
    pub id: OutboxId,
    /// About which request; a notice may be about none.
    pub confirmation: Option<ConfirmationId>,
    /// Through which channel.
    pub channel: ChannelName,
    /// What to do.
    pub errand: Errand,
    /// Failed attempts so far.
    pub attempts: u32,
    /// Not before.
    pub not_before: UtcMillis,
    /// Who is sending it, and until when that is believed.
    pub lease: Option<(WorkerId, UtcMillis)>,
    /// Rises with every claim and every change of what is wanted; a sender whose fence is old cannot write.
    pub fence: i64,
    /// When it was queued.
    pub created_at: UtcMillis,
}
