//! The audit log: append-only, chained per organisation, written in the transaction of what it tells about.
//!
//! This room is pure: it makes events and checks chains; the store keeps them. Arguments and free text enter a hash only as a
//! salted commitment whose opening is kept beside the event, so that they can be erased while the chain stays valid. Arguments that
//! stand in the request's own row are not kept a second time: only their salt stands beside the event ([`opening`]).

use gatepost_channel::UtcMillis;
use serde_json::{Map, Value};

use crate::ids::{ConfirmationId, JobId, Org};

pub mod chain;
pub mod opening;

pub use chain::{Break, ChainHead, Checker};
pub use opening::{Commitment, Opening, Private};

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// Gatepost itself: a deadline, a reconciler.
    System,
    /// An API token, by name.
    Token(String),
    /// A person, by operator id.
    Operator(String),
    /// A grant that was given before, by id.
    Grant(String),
    /// Somebody or something on a platform that is no operator, by channel and platform id.
    Platform(String),
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Token(name) => write!(f, "token:{name}"),
            Self::Operator(id) => write!(f, "operator:{id}"),
            Self::Grant(id) => write!(f, "grant:{id}"),
            Self::Platform(id) => write!(f, "platform:{id}"),
        }
    }
}

/// An event before it has its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Whose chain.
    pub org: Org,
    /// What happened; a stable dotted word.
    pub kind: &'static str,
    /// Who did it.
    pub actor: Actor,
    /// About which request.
    pub confirmation: Option<ConfirmationId>,
    /// About which job.
    pub job: Option<JobId>,
    /// On which channel.
    pub channel: Option<String>,
    /// Facts of ours: words, ids, numbers (integers only). Never free text.
    pub data: Map<String, Value>,
    /// Free text and arguments, by name.
    pub private: Vec<(&'static str, Private)>,
}

impl Draft {
    /// An event with nothing but its kind.
    pub fn new(org: &Org, kind: &'static str, actor: Actor) -> Self {
        Self {
            org: org.clone(),
            kind,
            actor,
            confirmation: None,
            job: None,
            channel: None,
            data: Map::new(),
            private: Vec::new(),
        }
    }

    /// About a request.
    #[must_use]
    pub fn about(mut self, id: &ConfirmationId) -> Self {
        self.confirmation = Some(id.clone());
        self
    }

    /// About a job.
    #[must_use]
    pub fn of_job(mut self, id: &JobId) -> Self {
        self.job = Some(id.clone());
        self
    }

    /// On a channel.
    #[must_use]
    pub fn on(mut self, channel: &str) -> Self {
        self.channel = Some(channel.to_owned());
        self
    }

    /// With a fact of ours.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.data.insert(name.to_owned(), value.into());
        self
    }

    /// With a fact, where there is one.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// With free text, when there is any.
    #[must_use]
    pub fn with_private(self, name: &'static str, opening: Option<Opening>) -> Self {
        match opening {
            Some(opening) => self.committed(name, Private::Beside(opening)),
            None => self,
        }
    }

    /// With a text that is committed to, wherever it is kept.
    #[must_use]
    pub fn committed(mut self, name: &'static str, text: Private) -> Self {
        self.private.push((name, text));
        self
    }
}

/// An event with its place in the chain, ready to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Whose chain.
    pub org: Org,
    /// Its place; from 1, without gaps.
    pub seq: i64,
    /// When, by the store's clock.
    pub at: UtcMillis,
    /// What happened.
    pub kind: String,
    /// Who did it, as text.
    pub actor: String,
    /// About which request.
    pub confirmation: Option<ConfirmationId>,
    /// About which job.
    pub job: Option<JobId>,
    /// On which channel.
    pub channel: Option<String>,
    /// Canonical JSON object: the facts.
    pub data: String,
    /// Canonical JSON object: commitment by name, hex SHA-256. Part of the hash.
    pub commitments: String,
    /// JSON object: opening by name. Not part of the hash; erasable.
    pub openings: String,
    /// Hash of the event before; 64 zeros at the start.
    pub prev_hash: String,
    /// Over everything above but the openings.
    pub hash: String,
}

/// An event as it was read back. The same fields; they are trusted only after [`Checker`] saw them.
pub type Event = Sealed;
