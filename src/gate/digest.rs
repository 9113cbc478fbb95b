//! What is approved is what runs: the digest of a call, and the short code that people may see of it.
//!
//! The digest covers the full arguments, so outside the API only the keyed code appears: it is no oracle for guesses.

use std::{fmt, str::FromStr};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use thiserror::Error;

use super::{
    arguments::{Arguments, ToolName},
    json::Json,
};

/// SHA-256 over the canonical form (RFC 8785) of `{"tool_args": …, "tool_name": …}`; shown as 64 lower-case hex digits.
/// Comparing two takes the same time wherever they differ.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

/// Why a text is no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a digest is written as 64 lower-case hex digits")]
pub struct MalformedDigest;

impl Digest {
    /// The digest of a call.
    pub fn of(tool: &ToolName, arguments: &Arguments) -> Self {
        let name = Json::from(tool.as_str()).canonical();
        let mut hash = Sha256::new();
        for part in [
            "{\"tool_args\":",
            arguments.canonical(),
            ",\"tool_name\":",
            &name,
            "}",
        ] {
            hash.update(part.as_bytes());
        }
        Self(hash.finalize().into())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Digest {}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    /// Nothing of the value: a digest in a log would let a reader test guesses of the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(…)")
    }
}

impl FromStr for Digest {
    type Err = MalformedDigest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(MalformedDigest);
        }
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| MalformedDigest)?;
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

/// Douglas Crockford's base 32: no I, L, O or U.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Keeps these codes apart from whatever else is keyed with the server's key.
const PURPOSE: &[u8] = b"gatepost short code";

/// 40 bits of a digest keyed with the server's key, for people to compare by eye: `K7QF-2M9X`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ShortCode(String);

impl ShortCode {
    /// The code of a digest under the server's key.
    pub fn of(key: &[u8; 32], digest: &Digest) -> Self {
        // A key shorter than the block is padded with zeros (RFC 2104 section 2); written out, it cannot fail.
        let mut block = [0; 64];
        block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(PURPOSE);
        mac.update(digest.as_bytes());
        let tag = mac.finalize().into_bytes();
        let bits = tag
            .iter()
            .take(5)
            .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        let mut text = String::with_capacity(9);
        for place in (0..8).rev() {
            let letter = usize::try_from(bits >> (place * 5) & 31)
                .ok()
                .and_then(|value| ALPHABET.get(value));
            text.push(letter.copied().map_or('0', char::from));
            if place == 4 {
                text.push('-');
            }
        }
        Self(text)
    }

    /// The code as shown.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ShortCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
#[path = "digest_tests.rs"]
mod tests;
