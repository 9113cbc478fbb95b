//! What opens a commitment, and where it is kept. A hash covers `SHA-256(salt ‖ 0 ‖ text)`; salt and text are kept outside the hash, so
//! that a text can be erased while the chain stays valid.
//!
//! A text is kept beside its event, or, for the arguments of a request that nobody hides anything of, in the request's own row:
//! there they stand already, and an event that held them again would double what a parked request takes. Such an event is opened
//! by [`fill_in`] when it is read, so whoever looks at events sees no difference, and an edit of the row no longer opens the
//! commitment. This file must not know how rows are found.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Event;
use crate::ids::Ids;

/// The opening of a commitment: what was committed to, with its salt. Erasing it keeps the chain valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// Hex of 16 random bytes.
    pub salt: String,
    /// The text; redacted already where a rule says so.
    pub value: String,
}

impl Opening {
    /// Salts a text.
    pub fn new(value: &str, ids: &dyn Ids) -> Self {
        Self {
            salt: salt(ids),
            value: value.to_owned(),
        }
    }
}

/// A commitment without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commitment {
    /// Hex of 16 random bytes.
    pub salt: String,
    /// Hex SHA-256 over salt and text.
    pub hash: String,
}

impl Commitment {
    /// Commits to a text that is kept elsewhere.
    pub fn to(text: &str, ids: &dyn Ids) -> Self {
        let salt = salt(ids);
        let hash = commit(&salt, text);
        Self { salt, hash }
    }
}

/// A text on its way into an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Private {
    /// Kept beside the event.
    Beside(Opening),
    /// The arguments of the request that the event is about, exactly as its row keeps them.
    ArgsOfRequest(Commitment),
}

impl Private {
    /// What enters the hash.
    pub(super) fn commitment(&self) -> Cow<'_, str> {
        match self {
            Self::Beside(opening) => commit(&opening.salt, &opening.value).into(),
            Self::ArgsOfRequest(commitment) => commitment.hash.as_str().into(),
        }
    }

    /// What is kept beside the event.
    pub(super) fn kept(&self) -> Kept<'_> {
        match self {
            Self::Beside(opening) => Kept {
                salt: opening.salt.as_str().into(),
                value: Some(opening.value.as_str().into()),
                place: None,
            },
            Self::ArgsOfRequest(commitment) => Kept {
                salt: commitment.salt.as_str().into(),
                value: None,
                place: Some(Place::Request),
            },
        }
    }
}

/// An opening as the store has it: the text, or where it is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept<'k> {
    salt: Cow<'k, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Cow<'k, str>>,
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    place: Option<Place>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    Request,
}

/// Whether a text of the event stands in its request.
pub fn stands_elsewhere(event: &Event) -> bool {
    // A quotation mark inside a text is escaped, so this can only be a place.
    event.openings.contains(r#""in":"request""#)
}

/// Puts the arguments of the event's request where the event refers to them. Without them the reference stays, which opens nothing.
pub fn fill_in(event: &mut Event, args: Option<&str>) {
    let Some(args) = args else { return };
    let Ok(mut kept) = serde_json::from_str::<BTreeMap<String, Option<Kept<'_>>>>(&event.openings) else {
        return;
    };
    for one in kept.values_mut().flatten() {
        if one.place.take().is_some() {
            one.value = Some(args.into());
        }
    }
    if let Ok(openings) = serde_json::to_string(&kept) {
        event.openings = openings;
    }
}

/// The commitment to a text: hex SHA-256 over salt and text.
pub(super) fn commit(salt: &str, text: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(salt.as_bytes());
    digest.update([0]);
    digest.update(text.as_bytes());
    hex::encode(digest.finalize())
}

fn salt(ids: &dyn Ids) -> String {
    let mut salt = [0_u8; 16];
    ids.random(&mut salt);
    hex::encode(salt)
}
