//! One thing that was looked at, and how it is shown.

use gatepost_channel::FindingState;
use serde::Serialize;

use crate::cli::print;

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    /// It works; there is something to know.
    Note,
    Ill,
}

impl From<FindingState> for State {
    fn from(state: FindingState) -> Self {
        match state {
            FindingState::Fine => Self::Ok,
            FindingState::Note => Self::Note,
            FindingState::Ill => Self::Ill,
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) name: String,
    healthy: bool,
    pub(super) state: State,
    pub(super) detail: String,
}

impl Finding {
    /// Fine or ill.
    pub(super) fn new(name: impl Into<String>, looked: Result<String, String>) -> Self {
        let state = if looked.is_ok() { State::Ok } else { State::Ill };
        let (Ok(detail) | Err(detail)) = looked;
        Self::of(name, state, detail)
    }

    /// In any state.
    pub(super) fn of(name: impl Into<String>, state: State, detail: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            healthy: state != State::Ill,
            state,
            detail: detail.into(),
        }
    }

    /// Whether nothing must be done.
    pub(super) const fn healthy(&self) -> bool {
        self.healthy
    }

    /// A row of the table.
    pub(super) fn row(&self) -> Vec<String> {
        let state = match self.state {
            State::Ok => "ok",
            State::Note => "note",
            State::Ill => "ILL",
        };
        vec![
            print::foreign(&self.name),
            state.to_owned(),
            print::foreign(&self.detail),
        ]
    }
}
