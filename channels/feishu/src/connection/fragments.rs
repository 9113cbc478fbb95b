//! Joining payloads that came in several frames: by message, in order of their numbers, as bytes, since a border may cut a
//! character. Bounded in number, size and time.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// A message whose parts did not all come within this is dropped; the official clients wait as long.
const COMPLETE_WITHIN: Duration = Duration::from_secs(5);
/// Most parts of one message.
const MOST_PARTS: usize = 64;
/// Most messages that wait for parts.
const MOST_MESSAGES: usize = 32;
/// Most bytes that wait in all.
const MOST_BYTES: usize = 2 * 1024 * 1024;
/// Longest id of a message, in bytes.
const LONGEST_ID: usize = 256;

/// The parts that wait for others.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    waiting: BTreeMap<String, Waiting>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    since: Instant,
    parts: Vec<Option<Vec<u8>>>,
    bytes: usize,
}

impl Fragments {
    /// Takes part `seq` of `sum`; gives the whole once the last one is there. The error is a word for the log; what was
    /// collected of the message is dropped with it.
    pub(crate) fn join(
        &mut self,
        id: &str,
        (seq, sum): (usize, usize),
        part: Vec<u8>,
        now: Instant,
    ) -> Result<Option<Vec<u8>>, &'static str> {
        self.forget_late(now);
        if sum == 0 || sum > MOST_PARTS || seq >= sum || id.len() > LONGEST_ID {
            self.forget(id);
            return Err("fragment_numbers");
        }
        if sum == 1 {
            return Ok(Some(part));
        }
        if self
            .waiting
            .get(id)
            .is_some_and(|waiting| waiting.parts.len() != sum)
        {
            self.forget(id);
            return Err("fragment_sum_changed");
        }
        if self.bytes.saturating_add(part.len()) > MOST_BYTES
            || (self.waiting.len() >= MOST_MESSAGES && !self.waiting.contains_key(id))
        {
            self.forget(id);
            return Err("fragments_too_many");
        }
        let waiting = self.waiting.entry(id.to_owned()).or_insert_with(|| Waiting {
            since: now,
            parts: vec![None; sum],
            bytes: 0,
        });
        // A repeated part changes nothing.
        if waiting.parts[seq].is_none() {
            waiting.bytes += part.len();
            self.bytes += part.len();
            waiting.parts[seq] = Some(part);
        }
        if waiting.parts.iter().any(Option::is_none) {
            return Ok(None);
        }
        let whole = waiting
            .parts
            .iter_mut()
            .filter_map(Option::take)
            .flatten()
            .collect();
        self.forget(id);
        Ok(Some(whole))
    }

    fn forget(&mut self, id: &str) {
        if let Some(gone) = self.waiting.remove(id) {
            self.bytes -= gone.bytes;
        }
    }

    fn forget_late(&mut self, now: Instant) {
        self.waiting
            .retain(|_, waiting| now.saturating_duration_since(waiting.since) < COMPLETE_WITHIN);
        self.bytes = self.waiting.values().map(|waiting| waiting.bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_that_make_no_sense_and_floods_are_refused() {
        let mut fragments = Fragments::default();
        let now = Instant::now();
        for numbers in [(0, 0), (1, 1), (3, 3), (0, 65), (usize::MAX, usize::MAX)] {
            assert!(fragments.join("m", numbers, vec![1], now).is_err(), "{numbers:?}");
        }
        assert_eq!(fragments.join("m", (0, 2), vec![1], now), Ok(None));
        assert_eq!(
            fragments.join("m", (1, 3), vec![1], now),
            Err("fragment_sum_changed")
        );
        assert_eq!(
            fragments.join("m", (1, 2), vec![2], now),
            Ok(None),
            "nothing is left of the first try"
        );
        for number in 0..100 {
            let _ = fragments.join(&format!("m{number}"), (0, 2), vec![0; 100_000], now);
        }
        assert!(fragments.waiting.len() <= MOST_MESSAGES && fragments.bytes <= MOST_BYTES);
    }

    #[test]
    fn late_parts_find_nothing() {
        let mut fragments = Fragments::default();
        let now = Instant::now();
        assert_eq!(fragments.join("m", (0, 2), vec![1], now), Ok(None));
        assert_eq!(
            fragments.join("m", (1, 2), vec![2], now + COMPLETE_WITHIN),
            Ok(None)
        );
        assert_eq!(fragments.bytes, 1);
    }

    proptest! {
        #[test]
        fn any_order_with_repeats_gives_the_whole(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 2..20),
            order in any::<u64>(),
        ) {
            let mut fragments = Fragments::default();
            let now = Instant::now();
            let mut numbers: Vec<usize> = (0..parts.len()).collect();
            numbers.sort_by_key(|number| (order.rotate_left(u32::try_from(*number).unwrap() * 7) % 61, *number));
            let mut whole = None;
            for number in numbers {
                for _ in 0..2 {
                    if whole.is_none() {
                        whole = fragments.join("m", (number, parts.len()), parts[number].clone(), now).unwrap();
                    }
                }
            }
            prop_assert_eq!(whole, Some(parts.concat()));
            prop_assert_eq!(fragments.bytes, 0);
        }
    }
}
