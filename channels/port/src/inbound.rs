//! What a platform tells us once its request is verified.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::ask::{Ask, Opener, Vantage};
use crate::button::ButtonValue;
use crate::command::Command;

/// One operator's answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// The call may run.
    Approve,
    /// The call must not run.
    Reject,
}

impl Decision {
    /// The stable word of the API and the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
        }
    }
}

/// The person as the platform vouches for them. A platform may know one person by several ids of different kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformUser {
    /// The ids, most specific first, each as the configuration spells it (`ou_…`, `on_…`, `U…`). Opaque; compared whole.
    pub ids: Vec<String>,
    /// The workspace or tenant the person belongs to, when the platform says so.
    pub tenant: Option<String>,
    /// The platform says that they come from another workspace than the one in which they acted.
    pub from_elsewhere: bool,
}

/// A press on a button of one of our cards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Click {
    /// The app that the platform says was clicked, when the payload names it; compared with the app of the channel.
    pub app: Option<String>,
    /// The chat in which the message stands.
    pub chat: String,
    /// The message that was clicked.
    pub message: String,
    /// Who clicked.
    pub user: PlatformUser,
    /// What was pressed.
    pub decision: Decision,
    /// What the button carried; `None` when it is not a value of ours.
    pub button: Option<ButtonValue>,
    /// A reason typed beside the press.
    pub reason: Option<String>,
    /// Approve for later calls too: the [`scope`](crate::GrantOffer::scope) of the offer that was chosen.
    pub grant: Option<String>,
    /// What stood in the field of an [`EditForm`](crate::EditForm), as it came; nothing where there was no such field.
    pub edited: Option<Rewritten>,
    /// From where it was answered.
    pub vantage: Vantage,
    /// The platform's leave to open something for this person, should the answer lack words.
    pub opener: Option<Opener>,
    /// Names this very press for the replay memory: equal for an exact repeat, different for a second press.
    pub replay_key: String,
}

/// What stood in a field for changed arguments when an answer was sent: raw, unread, and of any length that a request can have.
#[derive(Clone, PartialEq, Eq)]
pub struct Rewritten(String);

impl Rewritten {
    /// Wraps the text as it came.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl Deref for Rewritten {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Arguments do not print.
impl fmt::Debug for Rewritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rewritten({} bytes)", self.0.len())
    }
}

/// A verified request, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inbound {
    /// The platform proves or probes the address; the answer is complete and nothing else happens.
    Handshake(HttpAnswer),
    /// Somebody pressed a button.
    Click(Click),
    /// Somebody spoke to the bot.
    Command(Command),
    /// Somebody asks to be shown something of their own before they answer.
    Ask(Ask),
    /// Authentic, but of no effect here. The answer is complete; `why` is a stable word for the log.
    Ignored {
        /// What the platform gets.
        answer: HttpAnswer,
        /// Why nothing happened.
        why: &'static str,
    },
}

/// An HTTP answer without a web framework.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status code.
    pub status: u16,
    /// The media type, when there is a body.
    pub content_type: Option<&'static str>,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// 200 with nothing in it.
    pub const fn empty() -> Self {
        Self {
            status: 200,
            content_type: None,
            body: Vec::new(),
        }
    }

    /// 200 with a JSON body.
    pub fn json(value: &serde_json::Value) -> Self {
        Self {
            status: 200,
            content_type: Some("application/json; charset=utf-8"),
            body: value.to_string().into_bytes(),
        }
    }
}
