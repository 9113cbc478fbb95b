//! Who somebody is on a platform, and who is in a group: what the core asks before it counts an answer.
//!
//! An adapter tells what the platform says and judges nothing: whether an account may decide, and what follows from a look-up
//! that fails, is for the core to say. What an adapter must keep apart is in [`Unfound`]: a person who is not there, an app that
//! may not ask, and a platform that did not answer lead to three different things.

use async_trait::async_trait;

use crate::failure::Failure;

/// Why an account may not decide, whoever is behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bar {
    /// Switched off by an administrator.
    Deactivated,
    /// Suspended for the time being.
    Frozen,
    /// The person has left the organisation.
    Resigned,
    /// Invited, and not there yet.
    NotJoined,
    /// A guest: let into some conversations, not a member.
    Guest,
    /// A program.
    Bot,
    /// A member of another workspace or tenant than the app's.
    Foreign,
    /// The platform knows no such account.
    Unknown,
}

impl Bar {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Deactivated,
        Self::Frozen,
        Self::Resigned,
        Self::NotJoined,
        Self::Guest,
        Self::Bot,
        Self::Foreign,
        Self::Unknown,
    ];

    /// The stable word of logs, the audit log and the words of replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deactivated => "account_deactivated",
            Self::Frozen => "account_frozen",
            Self::Resigned => "account_resigned",
            Self::NotJoined => "account_not_joined",
            Self::Guest => "account_guest",
            Self::Bot => "account_bot",
            Self::Foreign => "account_foreign",
            Self::Unknown => "account_unknown",
        }
    }
}

/// An account as the platform describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The id by which it was asked for.
    pub id: String,
    /// Why it may not decide; nothing for an active member of the app's own workspace or tenant.
    pub bar: Option<Bar>,
    /// The e-mail address in lower case, where the app may see it.
    pub email: Option<String>,
    /// The name that people see. Chosen by its owner, so it proves nothing.
    pub name: Option<String>,
}

/// Some people of a platform.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// A group that administrators keep, by the platform's id (Slack: user group `S…`; Feishu: user group).
    Named(String),
    /// Everybody in the chat of the channel.
    Chat,
}

/// Why a look-up found nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfound {
    /// The platform answered: there is no such person or group.
    #[error("there is no such person or group")]
    NoSuch,
    /// The app may not ask this at all: a scope is missing, or the platform does not know the method. Asking again changes
    /// nothing until somebody acts.
    #[error("the app may not ask: {why}")]
    MayNotAsk {
        /// The platform's code, and the scope where it names one.
        why: String,
    },
    /// The app may ask, but not about this one: a person or group outside its contact range, a chat that it is not in, a list
    /// that is too long.
    #[error("the app may not see this one: {why}")]
    Hidden {
        /// The platform's code, or what is too long.
        why: String,
    },
    /// No answer that could be used.
    #[error(transparent)]
    Failed(Failure),
}

/// Looks people and groups up, for the app behind a channel. Answers are the same for all channels of the app, but for
/// [`Group::Chat`].
///
/// As for every call of a channel: no repetition but for a refreshed token, own time-outs, nothing of a person in an error.
#[async_trait]
pub trait Directory: Send + Sync {
    /// Whether a text has the form of an id of this platform, so that it is worth asking about. Pure.
    fn is_id(&self, text: &str) -> bool;

    /// The account of this id, in one of the forms in which clicks name people.
    async fn person(&self, id: &str) -> Result<Profile, Unfound>;

    /// The id of the account with this e-mail address, most specific form first where there are several.
    async fn by_email(&self, email: &str) -> Result<String, Unfound>;

    /// The ids of the group's members, in the most specific form of the ids of a click.
    async fn members(&self, group: &Group) -> Result<Vec<String>, Unfound>;

    /// Whether this person is in the group, for platforms that answer this beyond what [`Directory::members`] lists
    /// (members by department). `None`: the list is all there is.
    async fn belongs(&self, group: &Group, id: &str) -> Result<Option<bool>, Unfound> {
        let _ = (group, id);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_bar_has_a_word_of_its_own() {
        let words: BTreeSet<_> = Bar::ALL.into_iter().map(Bar::as_str).collect();
        assert_eq!(words.len(), Bar::ALL.len());
    }
}
