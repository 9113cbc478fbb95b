//! What a failed call to a platform means for the caller.

use std::time::Duration;

/// A platform call that did not succeed, by what has to happen next. The text names the platform's own code and never holds
/// a secret, an address or an argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Not processed; the same call may succeed later. `after` is the platform's own wish.
    #[error("temporary: {why}")]
    Retry {
        /// How long the platform asked us to wait.
        after: Option<Duration>,
        /// The platform's code.
        why: String,
    },
    /// This place cannot be reached for good: channel gone, bot not in it, archived. Another channel may work.
    #[error("the place refuses: {why}")]
    Target {
        /// The platform's code.
        why: String,
    },
    /// Credentials, scopes or set-up are wrong; an operator must act.
    #[error("the set-up is wrong: {why}")]
    Setup {
        /// The platform's code.
        why: String,
    },
    /// The content was refused even in its minimal form.
    #[error("the card was refused: {why}")]
    Content {
        /// The platform's code.
        why: String,
    },
    /// The message to be edited no longer exists or can no longer be edited.
    #[error("the message is gone: {why}")]
    Gone {
        /// The platform's code.
        why: String,
    },
}

impl Failure {
    /// Whether the same call may be tried again.
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::Retry { .. })
    }
}
