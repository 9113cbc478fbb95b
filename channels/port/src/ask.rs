//! A press that decides nothing yet: the person asks to be shown something of their own first.
//!
//! What then opens is a [`Dialog`](crate::Dialog); what comes back from it is a [`Click`](crate::Click) like any other, which says by
//! its [`Vantage`] from where the person answered.

use std::fmt;

use crate::button::{ButtonValue, Seen};
use crate::inbound::{Decision, PlatformUser};

/// A press on a button of one of our cards that opens something, verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The app that the platform says was clicked, when the payload names it; compared with the app of the channel.
    pub app: Option<String>,
    /// The chat in which the message stands.
    pub chat: String,
    /// The message that was clicked.
    pub message: String,
    /// Who clicked.
    pub user: PlatformUser,
    /// What the button carried; `None` when it is not a value of ours.
    pub button: Option<ButtonValue>,
    /// What is asked for.
    pub wants: Wants,
    /// The platform's leave to open something, where it gives one.
    pub opener: Option<Opener>,
    /// Names this very press for the replay memory, as [`Click::replay_key`](crate::Click::replay_key) does.
    pub replay_key: String,
}

/// What a person asks to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wants {
    /// A field for the reason of this answer.
    Reason(Decision),
    /// All there is to see of the request.
    Everything,
}

impl Wants {
    /// The stable word of the audit log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reason(Decision::Approve) => "reason_to_approve",
            Self::Reason(Decision::Reject) => "reason_to_reject",
            Self::Everything => "everything",
        }
    }
}

/// The platform's leave to open one thing for the person who pressed (Slack: `trigger_id`, three seconds, one use). It is used at
/// once or not at all, and never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Opener(String);

impl Opener {
    /// Wraps what the platform sent with the press.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// What the platform sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whoever holds it may open something in the person's name, so it does not print.
impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opener(…)")
    }
}

/// From where a person answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Vantage {
    /// From a card that the group sees.
    #[default]
    Card,
    /// From something that was opened for this person alone: a dialogue, or a message in a chat of their own.
    Alone {
        /// What was put there by the core when all of it could be seen there. The core judges it.
        seen: Option<Seen>,
    },
}
