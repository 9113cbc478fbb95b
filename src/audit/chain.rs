//! The hash chain: how an event gets its place, and how edits, gaps, reorders and cut tails are found.
//!
//! `hash = SHA-256(prev_hash ‖ length ‖ canonical event)`, all as bytes of text; the length is 8 bytes, big-endian.

use std::collections::BTreeMap;

use gatepost_channel::UtcMillis;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::opening::commit;
use super::{Draft, Opening, Sealed};
use crate::ids::{ConfirmationId, JobId, Org};

/// The hash before the first event.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The end of one organisation's chain.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ChainHead {
    /// Whose chain.
    pub org: Org,
    /// The place of the last event; 0 when there is none.
    pub seq: i64,
    /// Its hash.
    pub hash: String,
}

impl ChainHead {
    /// A chain without events.
    pub fn start(org: Org) -> Self {
        Self {
            org,
            seq: 0,
            hash: GENESIS.to_owned(),
        }
    }

    /// Gives an event its place and moves the head.
    pub fn append(&mut self, draft: Draft, at: UtcMillis) -> Sealed {
        let private = draft.private.iter();
        let commitments: BTreeMap<_, _> = private.map(|(name, text)| (*name, text.commitment())).collect();
        let commitments = spell(&commitments);
        let private = draft.private.iter();
        let openings: BTreeMap<_, _> = private.map(|(name, text)| (*name, text.kept())).collect();
        let openings = spell(&openings);
        let mut sealed = Sealed {
            org: draft.org,
            seq: self.seq + 1,
            at,
            kind: draft.kind.to_owned(),
            actor: draft.actor.to_string(),
            confirmation: draft.confirmation,
            job: draft.job,
            channel: draft.channel,
            data: spell(&draft.data),
            commitments,
            openings,
            prev_hash: self.hash.clone(),
            hash: String::new(),
        };
        sealed.hash = hash(&sealed);
        self.seq = sealed.seq;
        self.hash.clone_from(&sealed.hash);
        sealed
    }
}

/// JSON text of a value of ours; with string keys only it cannot fail, and were it to, nothing would verify.
fn spell<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn hash(event: &Sealed) -> String {
    // An array rather than an object: nothing depends on the order of keys.
    let canonical = spell(&(
        event.org.as_str(),
        event.seq,
        event.at.0,
        &event.kind,
        &event.actor,
        event.confirmation.as_ref().map(ConfirmationId::as_str),
        event.job.as_ref().map(JobId::as_str),
        &event.channel,
        &event.data,
        &event.commitments,
    ));
    let mut digest = Sha256::new();
    digest.update(event.prev_hash.as_bytes());
    digest.update((canonical.len() as u64).to_be_bytes());
    digest.update(canonical.as_bytes());
    hex::encode(digest.finalize())
}

/// Where a chain stops being true, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Break {
    /// Whose chain.
    pub org: Org,
    /// The first place that cannot be trusted.
    pub seq: i64,
    /// `edited`, `gap`, `broken_link`, `edited_text`, `unreadable`, `cut_tail` or `head_differs`.
    pub what: &'static str,
}

/// Checks one organisation's events in order of `seq`.
#[derive(Debug, Clone)]
pub struct Checker {
    expected: ChainHead,
    events: u64,
}

impl Checker {
    /// Starts at the beginning of the chain.
    pub fn new(org: Org) -> Self {
        Self {
            expected: ChainHead::start(org),
            events: 0,
        }
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Sealed) -> Result<(), Break> {
        let fault = |what| Break {
            org: self.expected.org.clone(),
            seq: self.expected.seq + 1,
            what,
        };
        if event.org != self.expected.org || event.seq != self.expected.seq + 1 {
            return Err(fault("gap"));
        }
        if event.prev_hash != self.expected.hash {
            return Err(fault("broken_link"));
        }
        if hash(event) != event.hash {
            return Err(fault("edited"));
        }
        if !openings_hold(event) {
            return Err(fault("edited_text"));
        }
        self.expected.seq = event.seq;
        self.expected.hash.clone_from(&event.hash);
        self.events += 1;
        Ok(())
    }

    /// How many events were taken.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// The head as the events have it.
    pub const fn head(&self) -> &ChainHead {
        &self.expected
    }

    /// Compares with a head from elsewhere: the store's own, or one kept outside.
    pub fn end(&self, head: &ChainHead) -> Result<(), Break> {
        let fault = |seq, what| Break {
            org: self.expected.org.clone(),
            seq,
            what,
        };
        if head.seq > self.expected.seq {
            return Err(fault(self.expected.seq + 1, "cut_tail"));
        }
        if head.seq == self.expected.seq && head.hash != self.expected.hash {
            return Err(fault(head.seq, "head_differs"));
        }
        Ok(())
    }
}

/// Every text that is still kept beside the event opens its commitment; an erased one is fine.
fn openings_hold(event: &Sealed) -> bool {
    let (Ok(commitments), Ok(openings)) = (
        serde_json::from_str::<Map<String, Value>>(&event.commitments),
        serde_json::from_str::<BTreeMap<String, Option<Opening>>>(&event.openings),
    ) else {
        return false;
    };
    openings.iter().all(|(name, opening)| match opening {
        None => commitments.contains_key(name),
        Some(opening) => {
            commitments.get(name).and_then(Value::as_str)
                == Some(commit(&opening.salt, &opening.value).as_str())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::opening::{fill_in, stands_elsewhere};
    use crate::audit::{Actor, Commitment, Private};
    use crate::ids::SeededIds;

    type Tamper = Box<dyn Fn(&mut Vec<Sealed>)>;

    fn chain(length: i64) -> (ChainHead, Vec<Sealed>) {
        let ids = SeededIds::default();
        let org = Org::from("acme");
        let mut head = ChainHead::start(org.clone());
        let events = (0..length)
            .map(|n| {
                let draft = Draft::new(&org, "vote.cast", Actor::Operator("dana".into()))
                    .with("n", n)
                    .with_private("reason", Some(Opening::new("because", &ids)));
                head.append(draft, UtcMillis(n))
            })
            .collect();
        (head, events)
    }

    fn check(events: &[Sealed], head: &ChainHead) -> Result<u64, Break> {
        let mut checker = Checker::new(Org::from("acme"));
        for event in events {
            checker.take(event)?;
        }
        checker.end(head)?;
        Ok(checker.events())
    }

    #[test]
    fn a_true_chain_verifies_and_erased_text_leaves_it_true() {
        let (head, mut events) = chain(5);
        assert_eq!(check(&events, &head), Ok(5));
        events[2].openings = r#"{"reason":null}"#.into();
        assert_eq!(check(&events, &head), Ok(5));
    }

    #[test]
    fn arguments_that_stand_in_the_request_open_their_commitment_from_there_alone() {
        let ids = SeededIds::default();
        let args = r#"{"memo":"\"in\":\"request\""}"#;
        let org = Org::from("acme");
        let mut head = ChainHead::start(org.clone());
        let draft = Draft::new(&org, "confirmation.created", Actor::System)
            .committed("tool_args", Private::ArgsOfRequest(Commitment::to(args, &ids)))
            .with_private("requester", Some(Opening::new("olga", &ids)));
        let event = head.append(draft, UtcMillis(1));
        assert!(stands_elsewhere(&event) && !event.openings.contains("memo"));
        let filled = |args| {
            let mut event = event.clone();
            fill_in(&mut event, args);
            event
        };
        assert_eq!(check(&[filled(Some(args))], &head), Ok(1));
        for wrong in [None, Some("{}"), Some("")] {
            let fault = check(&[filled(wrong)], &head).expect_err("not the arguments");
            assert_eq!((fault.what, fault.seq), ("edited_text", 1), "{wrong:?}");
        }
        let mut erased = event.clone();
        erased.openings = r#"{"tool_args":null,"requester":null}"#.into();
        fill_in(&mut erased, Some(args));
        assert_eq!(check(&[erased], &head), Ok(1));
        // The same texts beside an event look the same to whoever reads it.
        let beside = Opening::new(args, &ids);
        assert!(!stands_elsewhere(&head.append(
            Draft::new(&org, "call.denied", Actor::System).with_private("tool_args", Some(beside)),
            UtcMillis(2)
        )));
        let opened: BTreeMap<String, Opening> =
            serde_json::from_str(&filled(Some(args)).openings).expect("openings");
        assert_eq!(
            (
                opened["tool_args"].value.as_str(),
                opened["requester"].value.as_str()
            ),
            (args, "olga")
        );
    }

    #[test]
    fn a_hash_is_taken_over_the_same_bytes_as_ever() {
        let (head, _) = chain(2);
        assert_eq!(
            head.hash,
            "e7620f164ac0819686acb331527e3e4f119ad7c251409e270a5a677ce1cf0142"
        );
    }

    #[test]
    fn every_kind_of_tampering_names_its_place() {
        let (head, events) = chain(5);
        let cases: [(&str, Tamper, i64); 7] = [
            ("edited", Box::new(|e| e[1].actor = "operator:eve".into()), 2),
            ("edited", Box::new(|e| e[1].data = r#"{"n":9}"#.into()), 2),
            (
                "edited_text",
                Box::new(|e| e[3].openings = e[3].openings.replace("because", "bribed")),
                4,
            ),
            ("gap", Box::new(|e| drop(e.remove(2))), 3),
            ("gap", Box::new(|e| e.swap(1, 2)), 2),
            ("cut_tail", Box::new(|e| e.truncate(3)), 4),
            (
                "broken_link",
                Box::new(|e| {
                    e[2].actor = "x".into();
                    e[2].hash = hash(&e[2]);
                }),
                4,
            ),
        ];
        for (what, tamper, seq) in cases {
            let mut copy = events.clone();
            tamper(&mut copy);
            let fault = check(&copy, &head).expect_err(what);
            assert_eq!((fault.what, fault.seq), (what, seq));
        }
    }
}
