//! Compaction: when the conversation outgrows its budget, the oldest of it is left out and a note says what was there.
//!
//! A call stands together with its result in one entry, and the turn with its open calls is no part of the history, so nothing
//! here can part a call from its result or lose a call that people are being asked about.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::memory::{Entry, Past};
use super::size::{self, stored};

/// Bytes that are counted as a token. Endpoints count differently; the budget leaves room for that.
const BYTES_A_TOKEN: usize = 4;
/// Begins the note that stands for what was left out.
const NOTE: &str = "[An older part of this conversation was left out.";
/// The most characters kept of each result, when even the newest entries are too much.
const SHORT: usize = 400;

/// About how many tokens the entries are.
pub fn estimate(entries: &[Entry]) -> usize {
    tokens(size(entries))
}

/// About how many tokens so many bytes are.
pub const fn tokens(bytes: usize) -> usize {
    bytes / BYTES_A_TOKEN
}

/// The bytes of the entries' texts, as they are stored.
pub fn size(entries: &[Entry]) -> usize {
    let of = |entry: &Entry| match entry {
        Entry::User(text) => stored(text),
        Entry::Model { text, calls } => {
            let words = text.as_deref().map_or(0, stored);
            let call = |call: &Past| {
                stored(&call.id) + stored(&call.tool) + stored(&call.args) + stored(&call.result)
            };
            words + calls.iter().map(call).sum::<usize>()
        }
    };
    entries.iter().map(of).sum()
}

/// Brings the history under `budget` tokens, if it is over it; tells whether anything changed. The first entry (the input) and
/// the newest exchange stay.
pub fn compact(history: &mut Vec<Entry>, budget: usize) -> bool {
    if estimate(history) <= budget {
        return false;
    }
    // Room for a while, so that not every further reply compacts again.
    let target = budget / 2;
    let mut left_out = Vec::new();
    while history.len() > 2 && estimate(history) > target {
        left_out.push(history.remove(1));
    }
    if estimate(history) > target {
        shorten(history, target);
    }
    if !left_out.is_empty() {
        history.insert(1, Entry::User(note(&left_out)));
    }
    true
}

/// What was left out: how much, and which calls led to what.
fn note(entries: &[Entry]) -> String {
    let mut tools = BTreeMap::<&str, usize>::new();
    let mut replies = 0_usize;
    let mut before = "";
    for entry in entries {
        match entry {
            Entry::User(text) if text.starts_with(NOTE) => before = text,
            Entry::User(_) => {}
            Entry::Model { calls, .. } => {
                replies += 1;
                for call in calls {
                    *tools.entry(&call.tool).or_default() += 1;
                }
            }
        }
    }
    let mut text = format!("{NOTE} It held {replies} of your replies");
    for (at, (tool, count)) in tools.iter().enumerate() {
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            "{} {tool} ({count})",
            if at == 0 { " with calls of" } else { "," }
        );
    }
    text.push_str(". What those calls did is done; do not make them again.]");
    if let Some(earlier) = before.get(NOTE.len()..).filter(|earlier| earlier.len() < 1_000) {
        let _ = write!(text, " [Before that:{earlier}");
    }
    text
}

/// Cuts long results and words, when the newest exchange alone is too much.
fn shorten(history: &mut [Entry], target: usize) {
    let each = {
        let parts: usize = history
            .iter()
            .map(|entry| match entry {
                Entry::User(_) => 1,
                Entry::Model { calls, .. } => 1 + calls.len(),
            })
            .sum();
        (target * BYTES_A_TOKEN / parts.max(1)).max(SHORT)
    };
    for entry in history {
        match entry {
            Entry::User(text) => cut(text, each),
            Entry::Model { text, calls } => {
                if let Some(text) = text {
                    cut(text, each);
                }
                for call in calls {
                    cut(&mut call.result, each);
                    // Arguments are JSON, which no half of it is.
                    if stored(&call.args) > each {
                        "{}".clone_into(&mut call.args);
                        call.result.push_str("\n[the arguments were left out]");
                    }
                }
            }
        }
    }
}

fn cut(text: &mut String, most: usize) {
    if stored(text) > most {
        *text = size::bounded(std::mem::take(text), most);
    }
}
