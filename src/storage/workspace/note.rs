//! The notes of a batch.

use super::Workspace;
use crate::storage::note::{Note, NoteKey};

impl Workspace {
    /// The notes of one kind in an organisation, in order of name.
    pub fn notes<'a>(&'a self, key: &'a NoteKey) -> impl Iterator<Item = &'a Note> {
        self.notes
            .range((key.clone(), String::new())..)
            .take_while(move |((of, _), _)| of == key)
            .map(|(_, (note, _))| note)
    }

    /// Sets a note.
    pub fn put_note(&mut self, note: Note) {
        self.notes
            .insert((note.key.clone(), note.name.clone()), (note, true));
    }

    /// Takes notes in as they were read.
    pub(super) fn hold_notes(&mut self, notes: Vec<Note>) {
        for note in notes {
            self.notes
                .insert((note.key.clone(), note.name.clone()), (note, false));
        }
    }

    /// What must be written of them.
    pub(super) fn changed_notes(&mut self) -> Vec<Note> {
        let notes = std::mem::take(&mut self.notes).into_values();
        notes
            .filter(|(_, changed)| *changed)
            .map(|(note, _)| note)
            .collect()
    }
}
