//! From bytes to trust: a callback counts only after a verifier has seen it, and only a verifier can make a [`Verified`].

use std::fmt;

use subtle::ConstantTimeEq;

use crate::ask::Ask;
use crate::command::Command;
use crate::inbound::{Click, HttpAnswer, Inbound};
use crate::time::UtcMillis;

/// A request as it came in: header pairs in order with duplicates kept, and the raw body. Nothing in it is trusted.
#[derive(Clone)]
pub struct RawRequest {
    /// Header names as received, and raw values.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body bytes, already capped by the caller.
    pub body: Vec<u8>,
}

/// Bodies and headers hold secrets and arguments, so they do not print.
impl fmt::Debug for RawRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "RawRequest({} headers, {} bytes)",
            self.headers.len(),
            self.body.len()
        )
    }
}

impl RawRequest {
    /// All values of a header, its name compared without case.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.headers
            .iter()
            .filter(move |(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.as_slice())
    }

    /// The value of a header that stands exactly once; more than one or none is `None`.
    pub fn single<'a>(&'a self, name: &'a str) -> Option<&'a [u8]> {
        let mut values = self.values(name);
        let first = values.next()?;
        values.next().is_none().then_some(first)
    }
}

/// How a refused callback is answered and named in the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// Not authentic: 401 with nothing in it.
    Inauthentic,
    /// Cannot be read at all: 400.
    Unreadable,
}

/// Why a callback was refused. `reason` is a stable word of ours (`signature_mismatch`, `stale_timestamp`, …).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// Decides the HTTP status.
    pub kind: RefusalKind,
    /// The stable word.
    pub reason: &'static str,
    /// What an operator can do about it, when that is known; for the log only.
    pub hint: Option<&'static str>,
}

impl Refusal {
    /// A request that is not authentic.
    pub const fn inauthentic(reason: &'static str) -> Self {
        Self {
            kind: RefusalKind::Inauthentic,
            reason,
            hint: None,
        }
    }

    /// A request that cannot be read.
    pub const fn unreadable(reason: &'static str) -> Self {
        Self {
            kind: RefusalKind::Unreadable,
            reason,
            hint: None,
        }
    }

    /// The same refusal with advice for the operator's log.
    #[must_use]
    pub const fn with_hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }
}

/// Checks a callback against the secrets of one app and reads it. Implementations verify the raw bytes before they parse.
pub trait Verifier: Send + Sync {
    /// Verifies and reads `request`; freshness is judged against `now`.
    fn verify(&self, request: &RawRequest, now: UtcMillis) -> Result<Inbound, Refusal>;
}

/// Reads what came in over a connection that the platform itself authenticated for one app. Implementations compare the app
/// that the payload names with the app of the connection, and refuse a payload that names another one or none.
pub trait FrameVerifier: Send + Sync {
    /// Verifies and reads one payload.
    fn verify_frame(&self, payload: &[u8]) -> Result<Inbound, Refusal>;
}

/// Something a [`Verifier`] or a [`FrameVerifier`] vouches for. There is no other way to make one.
#[derive(Debug)]
pub struct Verified<T>(T);

impl Verified<Inbound> {
    /// Runs the verifier over the raw request.
    pub fn check(verifier: &dyn Verifier, request: &RawRequest, now: UtcMillis) -> Result<Self, Refusal> {
        verifier.verify(request, now).map(Self)
    }

    /// Runs the verifier of a connection over a payload that came in on it.
    pub fn frame(verifier: &dyn FrameVerifier, payload: &[u8]) -> Result<Self, Refusal> {
        verifier.verify_frame(payload).map(Self)
    }

    /// What to do with it: a click stays verified, everything else is already answered.
    pub fn open(self) -> Opened {
        match self.0 {
            Inbound::Click(click) => Opened::Click(Box::new(Verified(click))),
            Inbound::Command(command) => Opened::Command(Box::new(Verified(command))),
            Inbound::Ask(ask) => Opened::Ask(Box::new(Verified(ask))),
            Inbound::Handshake(answer) => Opened::Answered {
                answer,
                ignored: None,
            },
            Inbound::Ignored { answer, why } => Opened::Answered {
                answer,
                ignored: Some(why),
            },
        }
    }
}

/// A verified request, sorted by what is left to do.
#[derive(Debug)]
pub enum Opened {
    /// Somebody pressed a button: decide, then answer.
    Click(Box<Verified<Click>>),
    /// Somebody spoke to the bot: obey or refuse, then answer.
    Command(Box<Verified<Command>>),
    /// Somebody asks to be shown something: open it.
    Ask(Box<Verified<Ask>>),
    /// The answer is complete and nothing else happens.
    Answered {
        /// What the platform gets.
        answer: HttpAnswer,
        /// Why nothing happened, when that is worth a log line.
        ignored: Option<&'static str>,
    },
}

impl<T> Verified<T> {
    /// What was verified.
    pub const fn get(&self) -> &T {
        &self.0
    }
}

/// Compares two byte strings without telling by time where they differ; unequal lengths are unequal.
pub fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}
