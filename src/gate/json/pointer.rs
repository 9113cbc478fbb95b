//! JSON pointers (RFC 6901). Where a pointer names what to hide, there is one addition: the segment `*` reaches every
//! item of an array and every member of an object, so that a policy can hide a field of each item.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use thiserror::Error;

use super::Json;

/// The most segments that a pointer may have: as deep as arguments may nest.
const MAX_SEGMENTS: usize = super::MAX_DEPTH;

/// A pointer that has been read. The empty pointer is the whole document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    written: String,
    segments: Vec<String>,
}

/// Why a text is no pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PointerProblem {
    /// It does not start with a slash.
    #[error("a JSON pointer starts with `/`")]
    NoSlash,
    /// A `~` is not followed by 0 or 1.
    #[error("in a JSON pointer `~` is written `~0` and `/` is written `~1`")]
    Escape,
    /// It has more segments than arguments have levels.
    #[error("a JSON pointer has more than {MAX_SEGMENTS} segments")]
    TooLong,
}

impl Pointer {
    /// The unescaped segments.
    pub(in crate::gate) fn segments(&self) -> &[String] {
        &self.segments
    }
}

/// Whether a segment reaches the member of an object with this key.
pub(in crate::gate) fn reaches_key(segment: &str, key: &str) -> bool {
    segment == "*" || segment == key
}

/// Whether a segment reaches the item of an array at this index.
pub(in crate::gate) fn reaches_index(segment: &str, at: usize) -> bool {
    segment == "*" || index(segment) == Some(at)
}

impl FromStr for Pointer {
    type Err = PointerProblem;

    fn from_str(written: &str) -> Result<Self, Self::Err> {
        let segments = match written.strip_prefix('/') {
            None if written.is_empty() => Vec::new(),
            None => return Err(PointerProblem::NoSlash),
            Some(rest) => rest.split('/').map(unescape).collect::<Result<Vec<_>, _>>()?,
        };
        if segments.len() > MAX_SEGMENTS {
            return Err(PointerProblem::TooLong);
        }
        Ok(Self {
            written: written.to_owned(),
            segments,
        })
    }
}

impl Serialize for Pointer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written)
    }
}

impl<'de> Deserialize<'de> for Pointer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl Json {
    /// The value that an RFC 6901 pointer names; here `*` is an ordinary key.
    pub fn pointer(&self, pointer: &str) -> Option<&Json> {
        let pointer: Pointer = pointer.parse().ok()?;
        pointer
            .segments
            .iter()
            .try_fold(self, |value, segment| match value {
                Json::Object(object) => object.get(segment),
                Json::Array(items) => items.get(index(segment)?),
                _ => None,
            })
    }
}

/// RFC 6901 section 4: digits without needless zeros.
fn index(segment: &str) -> Option<usize> {
    let plain = segment.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = segment == "0" || !segment.starts_with('0');
    if plain && canonical {
        segment.parse().ok()
    } else {
        None
    }
}

fn unescape(segment: &str) -> Result<String, PointerProblem> {
    let mut rest = segment;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once('~') {
        plain.push_str(before);
        let (character, after) = match (after.strip_prefix('0'), after.strip_prefix('1')) {
            (Some(after), _) => ('~', after),
            (_, Some(after)) => ('/', after),
            _ => return Err(PointerProblem::Escape),
        };
        plain.push(character);
        rest = after;
    }
    plain.push_str(rest);
    Ok(plain)
}
