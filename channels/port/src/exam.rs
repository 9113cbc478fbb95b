//! A close look at one channel, for whoever sets it up: what is fine, what cannot be told, what is wrong and what to click.
//!
//! [`Health`](crate::Health) answers "would a card go through now?" for monitoring; an exam also looks at what only shows when
//! somebody clicks, joins or leaves. It posts nothing and changes nothing.

/// What the installation uses of a channel, so that nothing is asked for that it does not need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// The address that the platform must call, where clicks come in over HTTP and a public address is configured.
    pub callback: Option<String>,
    /// Whether operators are found by their e-mail address.
    pub emails: bool,
    /// Whether operators are found by a group of the platform.
    pub groups: bool,
}

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingState {
    /// As it should be.
    Fine,
    /// It works, but something is missing that one may want, or it cannot be told from here.
    Note,
    /// It does not work until somebody acts.
    Ill,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at: `scopes`, `callbacks`, `version`; a stable word.
    pub about: &'static str,
    /// How it stands.
    pub state: FindingState,
    /// What was seen, and where to click to mend it. No secret.
    pub detail: String,
}

impl Finding {
    /// As it should be.
    pub fn fine(about: &'static str, detail: impl Into<String>) -> Self {
        Self::new(about, FindingState::Fine, detail)
    }

    /// Works, with something to know.
    pub fn note(about: &'static str, detail: impl Into<String>) -> Self {
        Self::new(about, FindingState::Note, detail)
    }

    /// Does not work.
    pub fn ill(about: &'static str, detail: impl Into<String>) -> Self {
        Self::new(about, FindingState::Ill, detail)
    }

    fn new(about: &'static str, state: FindingState, detail: impl Into<String>) -> Self {
        Self {
            about,
            state,
            detail: detail.into(),
        }
    }
}
