//! What a run remembers: the conversation, the calls of the turn and how far each came, and what is counted. It is the whole
//! truth about the run: a crash at any instant loses nothing that is not here.
//!
//! A call stands together with its result in one value, so no cut through the history can tear them apart.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::model::Usage;
use crate::gate::{DenyReason, Digest};
use crate::ids::{ConfirmationId, JobId, PermitId};
use crate::job::WaitReason;
use crate::job::answer::{Heard, NotHeard, Question, Reply};

/// The form of memories that this program writes and reads.
const VERSION: u32 = 1;

/// A memory of any version, as far as its version.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    version: u32,
    /// What was said, oldest first.
    pub history: Vec<Entry>,
    /// The calls under way; none while the model is to be asked.
    pub turn: Option<Turn>,
    /// Replies of the model taken so far.
    pub replies: u32,
    /// Replies since the last one that could be acted upon.
    pub idle: u32,
    /// Replies in a row of which every call was refused as it stands.
    #[serde(default)]
    pub mistakes: u32,
    /// Requests that people were asked about.
    pub cards: u32,
    /// Questions that the user was asked.
    pub questions: u32,
    /// Calls that a person rejected.
    pub rejected: Vec<Digest>,
    /// The requests of the last turn in which people were asked, decided or not.
    pub asked: Vec<ConfirmationId>,
    /// The reply that was that turn.
    pub asked_in: u32,
    /// Movements entered, the first not counted.
    #[serde(default)]
    pub moves: u32,
    /// How often each movement was entered, the first time of the first one not counted.
    #[serde(default)]
    pub visits: BTreeMap<String, u32>,
    /// The tools that people granted, by movement.
    #[serde(default)]
    pub granted: BTreeMap<String, BTreeSet<String>>,
    /// How many jobs stand above this one.
    #[serde(default)]
    pub depth: u32,
    /// The tools of each job above this one, as patterns: what one of them does not hold is not had.
    #[serde(default)]
    pub ceilings: Vec<Vec<String>>,
    /// The sub-tasks, in the order in which they began.
    #[serde(default)]
    pub children: Vec<Child>,
    /// What the model cost so far.
    #[serde(default)]
    pub usage: Usage,
    /// How often old parts of the conversation were left out.
    #[serde(default)]
    pub compactions: u32,
    /// Questions put so far: to the user, and to operators about an outcome. Each has its number from here.
    #[serde(default)]
    pub put: u32,
    /// Questions about an outcome that were answered.
    #[serde(default)]
    pub outcomes: u32,
}

/// A sub-task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// Its job.
    pub job: JobId,
    /// The piece that it plays.
    pub piece: String,
    /// Whether the model was told how it ended.
    pub told: bool,
}

/// One contribution to the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// Told to the model: the input, or a note of ours.
    User(String),
    /// Said by the model, with the calls it made and what came of each.
    Model {
        /// Its words.
        text: Option<String>,
        /// Its calls, in order.
        calls: Vec<Past>,
    },
}

/// A call that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// Its id.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments, canonical.
    pub args: String,
    /// What the model was told.
    pub result: String,
}

/// The model's last reply, as long as one of its calls is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Its words.
    pub text: Option<String>,
    /// Its calls, in order; at least one.
    pub calls: Vec<Call>,
}

/// A call of the turn.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Stable for job, turn and place, whatever the model called it: asking again after a crash finds the same request.
    pub id: String,
    /// The tool's name, or a stand-in where the model's spelling could not be sent back to it.
    pub tool: String,
    /// The arguments, canonical; `{}` where they could not be read.
    pub args: String,
    /// By what its tool was known when the gate was first asked about it; none for a tool that no server can change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// How far it came.
    pub state: CallState,
}

/// How far a call came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum CallState {
    /// Not judged yet.
    Planned,
    /// People are asked.
    Waiting {
        /// The request.
        request: ConfirmationId,
    },
    /// It may have been sent.
    Running {
        /// Its permit, the idempotency key.
        permit: PermitId,
        /// The request that permitted it; none when policy did.
        request: Option<ConfirmationId>,
    },
    /// It was sent, or may have been, and its answer is not known.
    Unsure {
        /// Its permit.
        permit: PermitId,
        /// The request that permitted it.
        request: Option<ConfirmationId>,
        /// What an operator said about it.
        happened: Option<bool>,
        /// The number of the question that asks for it.
        #[serde(default)]
        number: u32,
    },
    /// The user is asked; their words will be the result.
    Asking {
        /// The question.
        question: String,
        /// Why the job waits.
        #[serde(default = "user_input")]
        wait: WaitReason,
        /// The number of the question.
        #[serde(default)]
        number: u32,
    },
    /// The sub-tasks are waited for; what became of them will be the result.
    Subtasks {
        /// The movement that follows; none where the run stays.
        resume: Option<String>,
    },
    /// Over: it ran, or it never was a call that could run.
    Done {
        /// What the model is told.
        result: String,
    },
    /// Over: it must not run.
    Denied {
        /// Why.
        reason: DenyReason,
        /// What the model is told.
        result: String,
    },
}

const fn user_input() -> WaitReason {
    WaitReason::UserInput
}

/// A memory that cannot be read. The text holds nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is not in the form this program writes.
    #[error("the memory of the run cannot be read (line {line}, column {column})")]
    Malformed {
        /// Where.
        line: usize,
        /// Where.
        column: usize,
    },
    /// Another version of the program wrote it.
    #[error("the memory of the run is of version {0}, which this program does not know")]
    Version(u32),
}

impl Memory {
    /// The memory of a run that begins.
    pub fn fresh(input: &str) -> Self {
        Self {
            version: VERSION,
            history: vec![Entry::User(input.to_owned())],
            turn: None,
            replies: 0,
            idle: 0,
            mistakes: 0,
            cards: 0,
            questions: 0,
            rejected: Vec::new(),
            asked: Vec::new(),
            asked_in: 0,
            moves: 0,
            visits: BTreeMap::new(),
            granted: BTreeMap::new(),
            depth: 0,
            ceilings: Vec::new(),
            children: Vec::new(),
            usage: Usage::default(),
            compactions: 0,
            put: 0,
            outcomes: 0,
        }
    }

    /// The memory of a sub-task of this run that begins; `ceiling` is what the run may call itself.
    #[must_use]
    pub fn of_subtask(&self, input: &str, ceiling: Vec<String>) -> Self {
        let mut ceilings = self.ceilings.clone();
        ceilings.push(ceiling);
        Self {
            depth: self.depth.saturating_add(1),
            ceilings,
            ..Self::fresh(input)
        }
    }

    /// The sub-tasks whose end the model was not told yet, in order.
    pub fn awaited(&self) -> impl Iterator<Item = &Child> {
        self.children.iter().filter(|child| !child.told)
    }

    /// Reads what [`Memory::write`] wrote; `{}` is the memory of a run that has not begun.
    pub fn read(text: &str, input: &str) -> Result<Self, Unreadable> {
        if text == "{}" {
            return Ok(Self::fresh(input));
        }
        let malformed = |error: serde_json::Error| Unreadable::Malformed {
            line: error.line(),
            column: error.column(),
        };
        let Versioned { version } = serde_json::from_str(text).map_err(malformed)?;
        if version != VERSION {
            return Err(Unreadable::Version(version));
        }
        serde_json::from_str(text).map_err(malformed)
    }

    /// The memory as it is stored.
    pub fn write(&self) -> String {
        // Strings, numbers and unit-free enums only: there is nothing in it that JSON cannot hold.
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }

    /// People are asked about a call of the current turn.
    pub(super) fn note_request(&mut self, request: &ConfirmationId) {
        self.cards = self.cards.saturating_add(1);
        if self.asked_in != self.replies {
            self.asked.clear();
            self.asked_in = self.replies;
        }
        self.asked.push(request.clone());
    }

    /// What somebody is asked: the user's question, or which call needs an operator to say whether it was carried out.
    pub fn question(&self) -> Option<Question> {
        self.calls().iter().find_map(Call::question)
    }

    /// The number of a question that is about to be put.
    pub(super) const fn put_question(&mut self) -> u32 {
        self.put = self.put.saturating_add(1);
        self.put
    }

    /// The calls of the turn.
    pub fn calls(&self) -> &[Call] {
        self.turn.as_ref().map_or(&[], |turn| &turn.calls)
    }

    /// A call of the turn.
    pub fn call(&self, at: usize) -> Option<&Call> {
        self.calls().get(at)
    }

    /// Remembers by what the tool of a call is known.
    pub fn recognise(&mut self, at: usize, fingerprint: String) {
        let call = self.turn.as_mut().and_then(|turn| turn.calls.get_mut(at));
        if let Some(call) = call {
            call.fingerprint = Some(fingerprint);
        }
    }

    /// A hook rewrote the arguments of a call that is not judged yet.
    pub(super) fn rewrite(&mut self, at: usize, args: &str) {
        if let Some(call) = self.turn.as_mut().and_then(|turn| turn.calls.get_mut(at)) {
            args.clone_into(&mut call.args);
        }
    }

    pub(super) fn set(&mut self, at: usize, state: CallState) {
        if let Some(call) = self.turn.as_mut().and_then(|turn| turn.calls.get_mut(at)) {
            call.state = state;
        }
    }

    /// The first call of which this holds.
    pub(super) fn find(&self, holds: impl Fn(&CallState) -> bool) -> Option<usize> {
        self.calls().iter().position(|call| holds(&call.state))
    }
}

impl Call {
    /// What is asked about this call. The id tells it from every other question of the job, also from an earlier one about
    /// the same call.
    fn question(&self) -> Option<Question> {
        let (number, text, request) = match &self.state {
            CallState::Asking { question, number, .. } => (number, question.clone(), None),
            CallState::Unsure {
                permit,
                request,
                happened: None,
                number,
            } => {
                let who = if request.is_some() {
                    ", which takes a person who may approve it"
                } else {
                    ""
                };
                let text = format!(
                    "Was the call of {} under the permit {permit} carried out? done: it was; that is put on record and the call \
                     is not sent again. not_done: it was not; it is sent again under the same permit{who}.",
                    self.tool
                );
                (number, text, request.clone())
            }
            _ => return None,
        };
        Some(Question {
            id: format!("{}q{number}", self.id),
            text,
            request,
        })
    }
}

impl CallState {
    /// The request behind the call.
    pub const fn request(&self) -> Option<&ConfirmationId> {
        match self {
            Self::Waiting { request } => Some(request),
            Self::Running { request, .. } | Self::Unsure { request, .. } => request.as_ref(),
            _ => None,
        }
    }

    /// What the model is told, once the call is over.
    pub fn result(&self) -> Option<&str> {
        match self {
            Self::Done { result } | Self::Denied { result, .. } => Some(result),
            _ => None,
        }
    }
}

impl fmt::Debug for Memory {
    /// Counts only: what was said does not reach a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("history", &self.history.len())
            .field("calls", &self.calls())
            .field("replies", &self.replies)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Call {
    /// Without the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({} {})", self.id, self.state.word())
    }
}

impl CallState {
    /// The word for people who look.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Waiting { .. } => "waiting",
            Self::Running { .. } => "running",
            Self::Unsure { .. } => "unsure",
            Self::Asking { .. } => "asking",
            Self::Subtasks { .. } => "subtasks",
            Self::Done { .. } => "done",
            Self::Denied { .. } => "denied",
        }
    }
}

/// Puts a reply into a stored memory: the words become the result of the call that asked, `done` or `not_done` settles the
/// call with the unknown outcome. It is what [`Answer`](crate::job::answer::Answer) is handed.
///
/// A reply that names no question is taken for the open one, but for a `not_done` only the first time: told again, or late, it
/// would send another call again.
pub fn hear(memory: &str, reply: &Reply, named: Option<&str>) -> Result<Heard, NotHeard> {
    let mut memory = Memory::read(memory, "").map_err(|_| NotHeard::NoQuestion)?;
    let fits = |state: &CallState| match reply {
        Reply::Words(_) => matches!(state, CallState::Asking { .. }),
        Reply::Outcome { .. } => matches!(state, CallState::Unsure { happened: None, .. }),
    };
    let open = memory
        .find(fits)
        .and_then(|at| Some((at, memory.call(at)?.question()?)));
    let Some((at, question)) = open else {
        return Err(named.map_or(NotHeard::NoQuestion, |_| NotHeard::Closed));
    };
    match named {
        Some(named) if named != question.id => return Err(NotHeard::Closed),
        None if memory.outcomes > 0 && matches!(reply, Reply::Outcome { done: false }) => {
            return Err(NotHeard::Ambiguous);
        }
        _ => {}
    }
    let state = match (memory.call(at).map(|call| call.state.clone()), reply) {
        (
            Some(CallState::Unsure {
                permit,
                request,
                number,
                ..
            }),
            Reply::Outcome { done },
        ) => {
            memory.outcomes = memory.outcomes.saturating_add(1);
            CallState::Unsure {
                permit,
                request,
                happened: Some(*done),
                number,
            }
        }
        (_, Reply::Words(words)) => CallState::Done {
            result: super::tool::told(words),
        },
        (_, Reply::Outcome { .. }) => return Err(NotHeard::NoQuestion),
    };
    memory.set(at, state);
    Ok(Heard {
        memory: memory.write(),
        question,
    })
}
