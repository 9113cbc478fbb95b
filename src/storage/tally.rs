//! Tallies: the calls of the last while that fall under a limit. The store keeps and locks them; what they mean is for the room
//! that counts.

use gatepost_channel::UtcMillis;
use serde::{Deserialize, Serialize};

use crate::ids::{Org, TokenName};

/// What is counted. Empty texts stand for "any".
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TallyKey {
    /// The organisation.
    pub org: Org,
    /// The connector, or the tool.
    pub counter: String,
    /// Whose limit it is: empty for the one of everybody, else the piece that has its own.
    pub scope: String,
    /// The token; empty where the calls of a person count together whatever token they come by.
    pub token: TokenName,
    /// The person; empty where all calls of the token count together.
    pub person: String,
}

/// Calls that are remembered together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The first of them.
    pub first: UtcMillis,
    /// The last of them.
    pub last: UtcMillis,
    /// How many.
    pub count: u64,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// What is counted.
    pub key: TallyKey,
    /// The calls, oldest first.
    pub marks: Vec<Mark>,
    /// When nothing of it counts any more.
    pub forget_at: UtcMillis,
}
