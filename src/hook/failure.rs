//! Ways in which a hook gives no usable answer. The texts hold a bounded, redacted sample of what it printed at most.

use std::time::Duration;

use super::{Action, Point};
use crate::child::NotStarted;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// No answer came in time.
    #[error("timed out after {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The program could not be started.
    #[error(transparent)]
    NotStarted(#[from] NotStarted),
    /// The program ended, or was ended, before it answered.
    #[error("{0}")]
    Ended(String),
    /// It failed before and is not started again yet.
    #[error("it failed before and is started again in {} ms at the earliest", .0.as_millis())]
    BackingOff(Duration),
    /// It is busy with other calls.
    #[error("it was busy with other calls for {} ms", .0.as_millis())]
    Busy(Duration),
    /// What it said is no answer.
    #[error("its answer cannot be read: {0}")]
    Unreadable(String),
    /// It answered with an error of its own.
    #[error("it answered with an error: {0}")]
    Answered(String),
    /// It wants what cannot be done there.
    #[error("`{}` is not possible at {}", .0.word(), .1.name())]
    Impossible(Action, Point),
    /// It broke a rule of its point.
    #[error("{0}")]
    Rule(&'static str),
    /// It panicked.
    #[error("it panicked")]
    Panicked,
    /// What it wraps did not run.
    #[error("what it wraps did not run: {0}")]
    Inner(String),
    /// Whatever else an in-process hook says.
    #[error("{0}")]
    Other(String),
}

impl HookError {
    /// A stable word for the audit log.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TimedOut(_) => "timed_out",
            Self::NotStarted(_) => "not_started",
            Self::Ended(_) => "ended",
            Self::BackingOff(_) => "backing_off",
            Self::Busy(_) => "busy",
            Self::Unreadable(_) => "unreadable",
            Self::Answered(_) => "error",
            Self::Impossible(..) => "impossible",
            Self::Rule(_) => "rule_broken",
            Self::Panicked => "panicked",
            Self::Inner(_) => "not_run",
            Self::Other(_) => "failed",
        }
    }
}
