//! How often one person may speak to the bot: enough for a person, too little for a flood. Kept in memory; nothing depends on it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gatepost_channel::UtcMillis;

/// Commands of one person within a [`WINDOW`].
pub(super) const MOST: u32 = 20;
/// The window.
const WINDOW: Duration = Duration::from_mins(1);
/// People remembered at once; beyond, whoever is new waits.
const PEOPLE: usize = 10_000;

/// What a person may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Speak.
    Taken,
    /// Not now; the person has not been told yet.
    Over,
    /// Not now, and the person has been told.
    Silent,
}

/// See the module.
#[derive(Debug, Default)]
pub(in crate::callback) struct Pace(Mutex<HashMap<String, (UtcMillis, u32)>>);

impl Pace {
    /// Counts a command of this person.
    pub(super) fn take(&self, person: &str, now: UtcMillis) -> Turn {
        let mut people = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that went back starts anew instead of shutting people out.
        let current = |began: UtcMillis| began <= now && now.since(began) < WINDOW;
        if !people.contains_key(person) && people.len() >= PEOPLE {
            people.retain(|_, (began, _)| current(*began));
            if people.len() >= PEOPLE {
                return Turn::Silent;
            }
        }
        let (began, count) = people.entry(person.to_owned()).or_insert((now, 0));
        if !current(*began) {
            (*began, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        match *count {
            count if count <= MOST => Turn::Taken,
            count if count == MOST + 1 => Turn::Over,
            _ => Turn::Silent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_told_once_and_heard_again_in_the_next_window() {
        let pace = Pace::default();
        for _ in 0..MOST {
            assert_eq!(pace.take("U1", UtcMillis(0)), Turn::Taken);
        }
        assert_eq!(pace.take("U1", UtcMillis(1)), Turn::Over);
        assert_eq!(pace.take("U1", UtcMillis(2)), Turn::Silent);
        assert_eq!(
            pace.take("U2", UtcMillis(2)),
            Turn::Taken,
            "others are not held up"
        );
        assert_eq!(pace.take("U1", UtcMillis(60_000)), Turn::Taken);
        assert_eq!(
            pace.take("U1", UtcMillis(-5)),
            Turn::Taken,
            "a clock that went back"
        );
    }

    #[test]
    fn a_flood_of_people_is_bounded_and_passes() {
        let pace = Pace::default();
        for person in 0..PEOPLE {
            assert_eq!(pace.take(&person.to_string(), UtcMillis(0)), Turn::Taken);
        }
        assert_eq!(pace.take("one more", UtcMillis(0)), Turn::Silent);
        assert_eq!(pace.take("7", UtcMillis(0)), Turn::Taken);
        assert_eq!(pace.take("one more", UtcMillis(60_000)), Turn::Taken);
        assert_eq!(pace.0.lock().unwrap().len(), 1);
    }
}
