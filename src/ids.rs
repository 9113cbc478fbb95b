//! Ids and chance are parameters too: sortable prefixed ids, and random bytes for tokens, salts and nonces.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Makes ids and random bytes.
pub trait Ids: Send + Sync {
    /// A fresh, roughly time-ordered id without prefix: 32 hex digits.
    fn fresh(&self) -> String;
    /// Fills the buffer with unpredictable bytes.
    fn random(&self, into: &mut [u8]);
}

/// Ids from UUID version 7 (RFC 9562) and bytes from the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
    #[expect(clippy::disallowed_methods, reason = "the one place that makes ids")]
    fn fresh(&self) -> String {
        uuid::Uuid::now_v7().simple().to_string()
    }

    #[expect(
        clippy::disallowed_methods,
        clippy::expect_used,
        reason = "the one place that draws bytes; without entropy nothing may go on"
    )]
    fn random(&self, into: &mut [u8]) {
        getrandom::fill(into).expect("the operating system gives entropy");
    }
}

/// Predictable ids and bytes for tests, never for production.
#[derive(Debug, Default)]
pub struct SeededIds {
    counter: AtomicU64,
    stream: Mutex<u64>,
}

impl Ids for SeededIds {
    fn fresh(&self) -> String {
        format!("{:032x}", self.counter.fetch_add(1, Ordering::SeqCst) + 1)
    }

    fn random(&self, into: &mut [u8]) {
        let mut stream = self
            .stream
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        for chunk in into.chunks_mut(32) {
            *stream += 1;
            let block = Sha256::digest(stream.to_be_bytes());
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
    }
}

/// An id that is not one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id of this kind")]
pub struct NotAnId;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// A fresh id.
            pub fn fresh(ids: &dyn Ids) -> Self {
                Self(format!(concat!($prefix, "_{}"), ids.fresh()))
            }

            /// Reads an id; anything of another shape is refused.
            pub fn parse(text: &str) -> Result<Self, NotAnId> {
                let rest = text.strip_prefix(concat!($prefix, "_")).ok_or(NotAnId)?;
                let well_formed = rest.len() == 32 && rest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
                if well_formed { Ok(Self(text.to_owned())) } else { Err(NotAnId) }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// A confirmation request.
    ConfirmationId, "cr"
);
id!(
    /// One card on one channel for one request.
    DeliveryId, "dl"
);
id!(
    /// A job.
    JobId, "job"
);
id!(
    /// A permit: the right to execute one approved call once. Sent to tools as the idempotency key.
    PermitId, "pm"
);
id!(
    /// A grant: an approval that lets later calls run too.
    GrantId, "gr"
);
id!(
    /// An outbox row.
    OutboxId, "ob"
);
id!(
    /// A worker or sender process part that holds leases.
    WorkerId, "wk"
);

impl OutboxId {
    /// The one row that keeps a card true: it has the card's digits, so there is at most one.
    pub fn of_card(card: &DeliveryId) -> Self {
        Self(card.0.replacen("dl_", "ob_", 1))
    }

    /// The one row that waits for the next step of a request's escalation: it has the request's digits.
    pub fn of_escalation(request: &ConfirmationId) -> Self {
        Self(request.0.replacen("cr_", "ob_", 1))
    }

    /// The one row of a line below a card; `what` tells the lines of a card apart.
    pub fn of_line(card: &DeliveryId, what: &str) -> Self {
        let digest = Sha256::digest([card.0.as_bytes(), b" ", what.as_bytes()].concat());
        Self(format!("ob_{}", hex::encode(&digest[..16])))
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

name!(
    /// An organisation; `default` when none is configured.
    Org
);
name!(
    /// A person who may decide, by the id that the configuration gives.
    OperatorId
);
name!(
    /// A configured channel.
    ChannelName
);
name!(
    /// An API token, by its configured name (never its secret).
    TokenName
);

impl Default for Org {
    fn default() -> Self {
        Self("default".to_owned())
    }
}
