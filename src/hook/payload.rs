//! What goes through the points: requests, replies, calls and results, free of anybody's wire form. Hooks get them to read and
//! give changed copies back; nothing is changed in place.

use std::fmt;

use serde_json::Value;

use crate::gate::{Arguments, ToolName};

/// What hooks add to a session that begins, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionContext(pub Vec<String>);

/// A question to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// What it is and what it shall do.
    pub system: String,
    /// What was said so far.
    pub messages: Vec<Message>,
    /// What it may call. A hook may take tools away, never add any.
    pub tools: Vec<ToolOffer>,
}

/// One contribution to the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Told to the model.
    User(String),
    /// Said by the model, with the calls that it made and what came of each.
    Model {
        /// Its words.
        text: Option<String>,
        /// Its calls.
        calls: Vec<PastCall>,
    },
}

/// A call that is over.
#[derive(Clone, PartialEq, Eq)]
pub struct PastCall {
    /// Its id.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments, as text.
    pub args: String,
    /// What the model was told.
    pub result: String,
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

/// What the model answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelReply {
    /// Its words.
    pub text: Option<String>,
    /// The calls that it wants.
    pub calls: Vec<WantedCall>,
    /// Whether it came to its own end.
    pub complete: bool,
}

/// A call as the model spelled it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct WantedCall {
    /// The model's id for it.
    pub id: Option<String>,
    /// The tool's name.
    pub name: Option<String>,
    /// The arguments, as text.
    pub arguments: Option<String>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool. No hook changes it.
    pub tool: ToolName,
    /// Its arguments.
    pub args: Arguments,
}

impl ToolCall {
    /// The same call with other arguments.
    #[must_use]
    pub fn with_args(&self, args: Arguments) -> Self {
        Self {
            tool: self.tool.clone(),
            args,
        }
    }
}

/// What a tool, or a hook in its place, returned.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ToolOutput {
    /// What the model is told.
    pub text: String,
    /// Whether it is a failure.
    pub is_error: bool,
}

impl ToolOutput {
    /// A result of a call that did what it should.
    pub fn done(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: false,
        }
    }

    /// The same result with another text.
    #[must_use]
    pub fn with_text(&self, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: self.is_error,
        }
    }
}

impl fmt::Debug for ToolOutput {
    /// Without the text: results do not reach a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ToolOutput({} bytes, error: {})",
            self.text.len(),
            self.is_error
        )
    }
}

impl fmt::Debug for PastCall {
    /// Without arguments and result.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PastCall({})", self.id)
    }
}

impl fmt::Debug for WantedCall {
    /// Without the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WantedCall({:?})", self.id)
    }
}
