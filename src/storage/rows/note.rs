//! The row of a note.

use super::{Site, Text, row};
use crate::ids::Org;
use crate::storage::StoreError;
use crate::storage::note::{Note, NoteKey, NoteKind};

row! {
    /// A row of `note`.
    NoteRow in "note" {
        org: Text,
        kind: String,
        name: Text,
        body: Text,
    }
}

impl From<&Note> for NoteRow {
    fn from(note: &Note) -> Self {
        Self {
            org: Text::keep(note.key.org.as_str()),
            kind: note.key.kind.as_str().to_owned(),
            name: Text::keep(&note.name),
            body: Text::keep(&note.body),
        }
    }
}

impl NoteRow {
    /// What the row means.
    pub(in crate::storage) fn read(self) -> Result<Note, StoreError> {
        let site = Site::new("note", "?");
        Ok(Note {
            key: NoteKey {
                org: Org(site.text(self.org, "org")?),
                kind: site.need(NoteKind::parse(&self.kind), "kind")?,
            },
            name: site.text(self.name, "name")?,
            body: site.text(self.body, "body")?,
        })
    }
}
