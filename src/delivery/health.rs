//! How channels take cards, as all processes know it: a note for each channel that refuses, written when that begins and when it ends.
//! What is temporary or not known tells nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gatepost_channel::{Failure, Posted, UtcMillis};
use serde::{Deserialize, Serialize};

use crate::ids::{ChannelName, Org};
use crate::storage::{Note, NoteKey, NoteKind, Store, StoreError, Touches, Transaction, Workspace};

/// How old may be what this process knows of the others.
const LOOK: Duration = Duration::from_secs(5);

/// Why a channel takes no cards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// What it said to the last card.
    pub why: String,
    /// Since when it has refused.
    pub since: UtcMillis,
}

/// What is known of all channels: of those that are not here, nothing bad.
#[derive(Debug, Default)]
pub struct Health {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    looked_at: Option<UtcMillis>,
    troubles: BTreeMap<ChannelName, Trouble>,
}

impl Health {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what all processes know.
    ///
    /// # Errors
    /// The store failed.
    pub async fn read(
        &self,
        store: &Store,
        now: UtcMillis,
    ) -> Result<BTreeMap<ChannelName, Trouble>, StoreError> {
        let notes = store.read().notes(NoteKind::Channel).await?;
        let troubles: BTreeMap<_, _> = notes
            .iter()
            .filter_map(|note| Some((ChannelName(note.name.clone()), trouble_of(note)?)))
            .collect();
        let mut known = self.known();
        known.looked_at = Some(now);
        known.troubles.clone_from(&troubles);
        Ok(troubles)
    }

    /// Remembers how a channel took a card, for all processes. What they know is read first where that was long ago: one may have told
    /// what this one never heard.
    ///
    /// # Errors
    /// The store failed: it will be told with the next card.
    pub async fn fared(
        &self,
        store: &Store,
        (org, channel): (&Org, &ChannelName),
        fate: Fate<'_>,
        now: UtcMillis,
    ) -> Result<(), StoreError> {
        let why = match fate {
            Fate::Taken => None,
            Fate::Refused(Failure::Retry { .. } | Failure::Gone { .. }) | Fate::Unknown => return Ok(()),
            Fate::Refused(failure) => Some(failure.to_string()),
        };
        let looked_at = self.known().looked_at;
        if looked_at.is_none_or(|at| at > now || now.since(at) >= LOOK) {
            self.read(store, now).await?;
        }
        if self.known().troubles.get(channel).map(|trouble| &trouble.why) == why.as_ref() {
            return Ok(());
        }
        let tell = Tell {
            org: org.clone(),
            channel: channel.clone(),
            why,
        };
        let trouble = store.run(tell).await?;
        let mut known = self.known();
        match trouble {
            None => known.troubles.remove(channel),
            Some(trouble) => known.troubles.insert(channel.clone(), trouble),
        };
        Ok(())
    }
}

/// What became of a card.
#[derive(Debug, Clone, Copy)]
pub enum Fate<'a> {
    /// The channel took it.
    Taken,
    /// The channel did not.
    Refused(&'a Failure),
    /// Nobody knows.
    Unknown,
}

impl<'a> From<&'a Posted> for Fate<'a> {
    fn from(posted: &'a Posted) -> Self {
        match posted {
            Posted::At(_) | Posted::Minimal(_) => Self::Taken,
            Posted::NotSent(failure) => Self::Refused(failure),
            Posted::Unknown { .. } => Self::Unknown,
        }
    }
}

/// What a note says; nothing where the channel takes cards, or where it makes no sense.
fn trouble_of(note: &Note) -> Option<Trouble> {
    serde_json::from_str(&note.body).unwrap_or_default()
}

/// Puts down why a channel refuses, or that it no longer does.
struct Tell {
    org: Org,
    channel: ChannelName,
    why: Option<String>,
}

impl Transaction for Tell {
    /// What holds now.
    type Answer = Option<Trouble>;
    const NAME: &'static str = "tell_channel";

    fn touches(&self, touches: &mut Touches) {
        touches.orgs.insert(self.org.clone());
        touches.notes.insert(self.key());
    }

    fn apply(&self, workspace: &mut Workspace) -> Option<Trouble> {
        let key = self.key();
        let before = workspace
            .notes(&key)
            .find(|note| note.name == self.channel.0)
            .and_then(trouble_of);
        let since = before
            .as_ref()
            .map_or_else(|| workspace.now(), |trouble| trouble.since);
        let now = self.why.clone().map(|why| Trouble { why, since });
        if now != before {
            workspace.put_note(Note {
                key,
                name: self.channel.0.clone(),
                body: serde_json::to_string(&now).unwrap_or_default(),
            });
        }
        now
    }
}

impl Tell {
    fn key(&self) -> NoteKey {
        NoteKey {
            org: self.org.clone(),
            kind: NoteKind::Channel,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::memory::Memory;

    fn told(memory: &mut Memory, why: Option<&str>) -> Option<(String, i64)> {
        let tell = Tell {
            org: Org::from("acme"),
            channel: ChannelName::from("ops"),
            why: why.map(str::to_owned),
        };
        memory.run(&tell).map(|trouble| (trouble.why, trouble.since.0))
    }

    #[test]
    fn a_refusal_stands_from_the_first_until_a_card_goes_through() {
        let mut memory = Memory::at(1_000);
        assert_eq!(told(&mut memory, None), None);
        assert!(memory.notes.is_empty(), "all is well, and nothing is written");
        assert_eq!(
            told(&mut memory, Some("archived")),
            Some(("archived".into(), 1_000))
        );
        memory.now.0 += 500;
        assert_eq!(
            told(&mut memory, Some("revoked")),
            Some(("revoked".into(), 1_000))
        );
        assert_eq!(told(&mut memory, None), None);
        memory.now.0 += 500;
        assert_eq!(
            told(&mut memory, Some("archived")),
            Some(("archived".into(), 2_000))
        );
        assert_eq!(memory.notes.len(), 1);
    }
}
