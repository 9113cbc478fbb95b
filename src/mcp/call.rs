//! One call: its arguments as they were approved, how far they got, and what came of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Called {
    /// The tool answered.
    Done(String),
    /// The tool, or the server for it, answered that it failed.
    Failed(String),
    /// It was certainly not carried out.
    NotMade(String),
    /// The tool is not the one any more that the caller knows.
    Changed,
    /// It was sent and no answer came that could be read: it may have been carried out.
    Unknown(String),
}

impl Called {
    /// The word for metrics.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Failed(_) => "failed",
            Self::NotMade(_) => "not_made",
            Self::Changed => "changed",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// How far a call got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Fate {
    /// Nothing of it left this program.
    Unsent = 0,
    /// Its caller gave it up before anything of it left: it will never be sent.
    Withdrawn = 1,
    /// It may have arrived.
    Sent = 2,
    /// It left, and the other side certainly did not take it.
    Refused = 3,
    /// It left, and its answer can never come.
    Lost = 4,
}

/// The stored arguments and the permit of a call. They travel beside the SDK's own message, whose numbers are doubles.
#[derive(Clone)]
pub(super) struct Parcel {
    /// Canonical JSON of an object.
    pub(super) args: Arc<str>,
    /// The idempotency key.
    pub(super) permit: Arc<str>,
    fate: Arc<AtomicU8>,
}

impl Parcel {
    pub(super) fn new(args: &str, permit: &str) -> Self {
        Self {
            args: args.into(),
            permit: permit.into(),
            fate: Arc::new(AtomicU8::new(Fate::Unsent as u8)),
        }
    }

    pub(super) fn fate(&self) -> Fate {
        match self.fate.load(Ordering::SeqCst) {
            0 => Fate::Unsent,
            1 => Fate::Withdrawn,
            3 => Fate::Refused,
            4 => Fate::Lost,
            _ => Fate::Sent,
        }
    }

    /// From one fate to the next; whether it was at the first.
    pub(super) fn turn(&self, from: Fate, to: Fate) -> bool {
        let turned = self
            .fate
            .compare_exchange(from as u8, to as u8, Ordering::SeqCst, Ordering::SeqCst);
        turned.is_ok()
    }
}
