//! The model: what is asked of it and what it answers, whoever it is. [`client`] speaks to an OpenAI-compatible endpoint; a
//! test scripts one.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::memory::Entry;

pub mod client;
pub(super) mod stream;
mod wire;

/// One question to the model.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// What it is and what it shall do.
    pub system: String,
    /// What was said so far.
    pub history: &'a [Entry],
    /// What it may call.
    pub tools: Vec<ToolOffer>,
    /// Who hears how it goes.
    pub listener: Listener<'a>,
}

/// What comes while a question is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// So much of the answer has come. Told at the first piece and whenever it has doubled since.
    Heard {
        /// Bytes so far.
        bytes: usize,
    },
    /// There was no answer, and the question is asked again.
    AskedAgain {
        /// How often it was asked, this time included.
        tries: usize,
    },
}

/// Hears [`Progress`]. It must not wait. The default hears nothing.
#[derive(Clone, Copy, Default)]
pub struct Listener<'a>(Option<&'a (dyn Fn(Progress) + Send + Sync)>);

impl<'a> Listener<'a> {
    /// Whoever hears.
    pub const fn new(hear: &'a (dyn Fn(Progress) + Send + Sync)) -> Self {
        Self(Some(hear))
    }

    /// Tells.
    pub fn tell(self, progress: Progress) {
        if let Some(hear) = self.0 {
            hear(progress);
        }
    }
}

impl fmt::Debug for Listener<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

/// A tool as it is offered to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOffer {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

/// What the model answered, as it came; nothing in it is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    /// Its words.
    pub text: Option<String>,
    /// The calls it wants.
    pub calls: Vec<RawCall>,
    /// Whether it came to its own end. A reply that was cut off or filtered is never acted upon.
    pub complete: bool,
    /// What the endpoint says that it cost.
    pub usage: Usage,
}

/// What replies cost, as the endpoint counts it; 0 where it says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of what was asked.
    pub input_tokens: u64,
    /// Those of them that were read from the endpoint's cache.
    pub cached_tokens: u64,
    /// Tokens of what was answered.
    pub output_tokens: u64,
    /// What the endpoint charged, in millionths of its unit (`usage.cost`).
    pub cost_micros: u64,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub const fn plus(self, more: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(more.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(more.cached_tokens),
            output_tokens: self.output_tokens.saturating_add(more.output_tokens),
            cost_micros: self.cost_micros.saturating_add(more.cost_micros),
        }
    }
}

/// A call as the model spelled it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawCall {
    /// The model's id for it.
    pub id: Option<String>,
    /// The tool's name.
    pub name: Option<String>,
    /// The arguments, as text.
    pub arguments: Option<String>,
    /// Why it cannot be told what this call is; such a call is never made.
    pub fault: Option<&'static str>,
}

/// The model could not be asked. The texts hold neither the key nor what was said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// It did not answer, or said that it cannot just now; repeated already.
    #[error("the model did not answer: {0}")]
    Unavailable(String),
    /// It refused the question; asking it again makes no sense.
    #[error("the model refused the request: {0}")]
    Refused(String),
    /// Its answer makes no sense.
    #[error("the model's answer cannot be read: {0}")]
    Unreadable(String),
}

/// Something that can be asked.
#[async_trait]
pub trait Model: Send + Sync {
    /// Asks.
    async fn ask(&self, question: Question<'_>) -> Result<Reply, ModelError>;
}
