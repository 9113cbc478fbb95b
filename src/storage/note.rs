//! Notes: what is known at run time about something that the configuration names. The store keeps them; what a body means is for the
//! room that writes it.

use crate::ids::Org;

/// What a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoteKind {
    /// An operator, by id: the absences that they set themselves.
    Absence,
    /// A channel, by name: how it took the last cards.
    Channel,
}

impl NoteKind {
    /// The word of the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Absence => "absence",
            Self::Channel => "channel",
        }
    }

    /// Reads the word.
    pub(super) fn parse(word: &str) -> Option<Self> {
        [Self::Absence, Self::Channel]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

/// Finds all notes of one kind in an organisation. There is at most one for each thing that the configuration names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NoteKey {
    /// The organisation.
    pub org: Org,
    /// The kind.
    pub kind: NoteKind,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Where it is found.
    pub key: NoteKey,
    /// What it is about.
    pub name: String,
    /// JSON, of whoever wrote it.
    pub body: String,
}
