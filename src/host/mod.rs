//! Agent hosts: programs that ask before they run a tool and take the answer in a form of their own.
//!
//! A host is one [`Dialect`]: it reads the host's JSON into a [`HookEvent`] and spells a [`HookVerdict`] the way that host, and
//! no other, obeys. Silence, errors and unknown words are consent in nearly all of them, so a dialect always has a denial to
//! say, also to a body that it cannot read. To add a host: one file, one line in [`Host`].
//!
//! [`serve`] puts the gate behind the dialects. The room knows no SQL, no web server and no chat platform.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::confirmation::OutcomeStatus;
use crate::gate::json::JsonError;
use crate::gate::{Arguments, InvalidArguments, Json, ToolName};

pub mod claude_code;
mod executed;
pub mod serve;
mod words;

/// The largest body of a hook that is read, in bytes.
pub const MAX_BODY: usize = 4 * 1024 * 1024;

/// The answer's header that names the request which still waits for a person. Whoever asks again sends it back, and so keeps
/// to that request.
pub const PENDING_HEADER: &str = "gatepost-pending";

/// The request's header with an id for calls to which the host gives none.
pub const CALL_HEADER: &str = "gatepost-call";

/// An agent host whose dialect is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Host {
    /// Claude Code and what is built on its engine (Claude Agent SDK).
    ClaudeCode,
}

/// A host of this name is not known, so there is no form in which it could be told anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no agent host of this name is known; known are: {}", Host::NAMES.join(", "))]
pub struct UnknownHost;

impl Host {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::ClaudeCode];
    /// Their names, in the same order.
    pub const NAMES: [&'static str; 1] = ["claude-code"];

    /// Reads the name of the URL and the command line.
    pub fn parse(name: &str) -> Result<Self, UnknownHost> {
        Self::ALL
            .into_iter()
            .find(|host| host.name() == name)
            .ok_or(UnknownHost)
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => Self::NAMES[0],
        }
    }

    /// How to talk to it.
    pub fn dialect(self) -> &'static dyn Dialect {
        match self {
            Self::ClaudeCode => &claude_code::ClaudeCode,
        }
    }
}

impl FromStr for Host {
    type Err = UnknownHost;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::parse(name)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// At which moment a host asks; answers differ in form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// Before every call of a tool.
    BeforeTool,
    /// Only where the host itself would ask the person before it.
    Permission,
}

/// What a host says.
#[derive(Debug, Clone)]
pub enum HookEvent {
    /// May this call run?
    Asks(Box<HookCall>),
    /// A call ran.
    Ran(HookReport),
    /// Something that needs no answer.
    Observed,
}

/// A call that a host asks about. All of it is asserted by the host.
#[derive(Debug, Clone)]
pub struct HookCall {
    /// When it asks.
    pub asking: Asking,
    /// The tool, named as the host names it.
    pub tool: ToolName,
    /// The arguments, exact.
    pub args: Arguments,
    /// The host, and behind a slash the kind of its sub-agent.
    pub agent_id: String,
    /// The session.
    pub session_id: String,
    /// The call's own id, where the host gives one.
    pub call_id: Option<String>,
    /// What else may help a person or a rule.
    pub metadata: Json,
}

/// What a call led to, as the host tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookReport {
    /// The session.
    pub session_id: String,
    /// The call.
    pub call_id: String,
    /// How it ended.
    pub status: OutcomeStatus,
    /// The call itself and what came of it, where the host tells.
    pub told: Option<Box<HostRan>>,
}

/// A call that ran, in the host's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRan {
    /// The tool.
    pub tool: ToolName,
    /// The arguments.
    pub args: Arguments,
    /// The host, and behind a slash the kind of its sub-agent.
    pub agent_id: String,
    /// What came of it, as text.
    pub output: String,
}

/// What a host is told about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookVerdict {
    /// It may run, now, once.
    Allow {
        /// Why.
        reason: String,
        /// The call as people changed it, which is what may run; nothing where it may run as it was asked.
        changed: Option<Changed>,
    },
    /// It must not run.
    Deny {
        /// Why, and what to do instead; the model reads it.
        reason: String,
    },
}

/// A call as people changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The arguments, complete and exact.
    pub args: Arguments,
    /// What was changed, in one line for the model.
    pub told: String,
}

/// Why a host's message is refused. The text carries nothing of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// It is no acceptable JSON.
    #[error("the hook's JSON is refused: {0}")]
    Json(#[from] JsonError),
    /// The call in it is malformed.
    #[error(transparent)]
    Call(#[from] InvalidArguments),
    /// A member is missing, empty, too long or of another type.
    #[error("the hook's JSON has no acceptable `{0}`")]
    Member(&'static str),
    /// Nobody here knows what this event wants.
    #[error("the hook's event is unknown")]
    Event,
}

/// How to talk to one host.
pub trait Dialect: Sync {
    /// Reads a message strictly.
    fn read(&self, body: &[u8]) -> Result<HookEvent, Unreadable>;

    /// The form in which a message wants its answer, as far as can be told, whatever else is wrong with it; `None` where no
    /// call waits for it. Only good for choosing the form of a denial.
    fn asking(&self, body: &[u8]) -> Option<Asking>;

    /// The answer, as the host obeys it: the body of a 200, or all of standard output with exit code 0.
    fn speak(&self, asking: Asking, verdict: &HookVerdict) -> String;

    /// Whether an allowance that is asked for at this moment can carry other arguments than the host sent, and the host is known to run
    /// those and no others.
    fn carries_edits(&self, asking: Asking) -> bool;

    /// What is said where nothing is asked.
    fn silence(&self) -> String;

    /// Understands an answer of [`Dialect::speak`], and nothing that differs from it in meaning.
    fn hear(&self, asking: Asking, answer: &[u8]) -> Option<HookVerdict>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_hosts_and_nothing_else_does() {
        for (host, name) in Host::ALL.into_iter().zip(Host::NAMES) {
            assert_eq!(host.name(), name);
            assert_eq!(Host::parse(name), Ok(host));
        }
        for name in ["", "claude", "Claude-Code", "claude-code/", "codex "] {
            assert_eq!(Host::parse(name), Err(UnknownHost), "{name}");
        }
    }

    #[test]
    fn what_a_dialect_says_it_understands() {
        for host in Host::ALL {
            let dialect = host.dialect();
            for asking in [Asking::BeforeTool, Asking::Permission] {
                for verdict in [
                    HookVerdict::Allow {
                        reason: "approved by \"Li\" \u{1b}".to_owned(),
                        changed: None,
                    },
                    HookVerdict::Deny {
                        reason: "no\n".to_owned(),
                    },
                ] {
                    let said = dialect.speak(asking, &verdict);
                    let heard = dialect.hear(asking, said.as_bytes());
                    assert_eq!(
                        heard.as_ref().map(std::mem::discriminant),
                        Some(std::mem::discriminant(&verdict))
                    );
                }
                for foreign in ["", "{}", "null", "[]", "{\"ok\":true}", "<html>"] {
                    assert_eq!(dialect.hear(asking, foreign.as_bytes()), None, "{foreign}");
                }
            }
        }
    }
}
