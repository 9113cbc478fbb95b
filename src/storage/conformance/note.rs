//! Notes: kept exactly, replaced by name, found by organisation and kind, and never lost to a writer beside.

use super::*;
use crate::storage::{Note, NoteKey, NoteKind, Touches, Transaction, Workspace};

/// Adds a letter to a note.
struct Scribble {
    key: NoteKey,
    name: String,
    letter: String,
}

impl Transaction for Scribble {
    type Answer = usize;
    const NAME: &'static str = "scribble";

    fn touches(&self, touches: &mut Touches) {
        touches.orgs.insert(self.key.org.clone());
        touches.notes.insert(self.key.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> usize {
        let mut body = String::new();
        for note in workspace.notes(&self.key) {
            if note.name == self.name {
                body.clone_from(&note.body);
            }
        }
        workspace.put_note(Note {
            key: self.key.clone(),
            name: self.name.clone(),
            body: body + &self.letter,
        });
        workspace.notes(&self.key).count()
    }
}

fn scribble(org: &str, kind: NoteKind, name: &str, letter: &str) -> Scribble {
    Scribble {
        key: NoteKey {
            org: Org::from(org),
            kind,
        },
        name: name.to_owned(),
        letter: letter.to_owned(),
    }
}

pub(super) async fn a_note_is_kept_replaced_and_found_by_its_kind(place: &Place) {
    let write = async |org, kind, name, letter| {
        let scribble = scribble(org, kind, name, letter);
        place.store.run(scribble).await.expect("written")
    };
    let odd = "d\0an\u{1a}a \u{1f600}'";
    assert_eq!(write("acme", NoteKind::Absence, odd, odd).await, 1);
    assert_eq!(write("acme", NoteKind::Absence, "b", "x").await, 2);
    assert_eq!(
        write("acme", NoteKind::Channel, odd, "y").await,
        1,
        "another kind"
    );
    assert_eq!(
        write("beta", NoteKind::Absence, "b", "z").await,
        1,
        "another organisation"
    );
    assert_eq!(write("acme", NoteKind::Absence, odd, "!").await, 2);
    let read = async |kind| {
        let notes = place.store.read().notes(kind).await.expect("read").into_iter();
        notes
            .map(|note| (note.key.org.0, note.name, note.body))
            .collect::<Vec<_>>()
    };
    let row = |org: &str, name: &str, body: &str| (org.to_owned(), name.to_owned(), body.to_owned());
    assert_eq!(
        read(NoteKind::Absence).await,
        [
            row("acme", "b", "x"),
            row("acme", odd, &format!("{odd}!")),
            row("beta", "b", "z")
        ]
    );
    assert_eq!(read(NoteKind::Channel).await, [row("acme", odd, "y")]);
}

pub(super) async fn of_sixteen_writers_of_one_note_none_is_lost(place: &Place) {
    let writers = (0..16).map(|n| {
        let store = place.store.clone();
        async move {
            let letter = char::from(b'a' + n).to_string();
            let scribble = scribble("acme", NoteKind::Absence, "dana", &letter);
            store.run(scribble).await.expect("written")
        }
    });
    side_by_side(writers).await;
    let notes = place.store.read().notes(NoteKind::Absence).await.expect("read");
    let mut letters: Vec<char> = notes[0].body.chars().collect();
    letters.sort_unstable();
    assert_eq!(letters, ('a'..='p').collect::<Vec<_>>());
}
