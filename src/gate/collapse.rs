//! When like requests share one card. Part of the terms of a request.
//!
//! It must not know what a card is, nor how requests are found.

use serde::{Deserialize, Serialize};

/// The most requests in one card, whatever a rule says: more than a person looks through before answering all of them.
pub const MOST: u32 = 10;

/// See the module. Left out of the terms, every request has a card of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collapse {
    /// How long after its first request a card takes further ones, in milliseconds.
    pub window_ms: i64,
    /// The most requests in one card, up to [`MOST`]; 1 gives every request a card of its own.
    pub most: u32,
}

impl Collapse {
    /// What both allow.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            window_ms: self.window_ms.min(other.window_ms),
            most: self.most.min(other.most),
        }
    }
}
