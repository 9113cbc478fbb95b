//! JSON whose meaning is never in doubt: read strictly, kept exactly, spelled in one way (RFC 8259, RFC 6901, RFC 8785).
//!
//! This is what digests are taken over, so it must not know tools, policy or any library's idea of a JSON value.

mod pointer;
mod read;
mod write;

pub use pointer::{Pointer, PointerProblem};
pub(super) use pointer::{reaches_index, reaches_key};
pub use read::{JsonError, JsonProblem, MAX_DEPTH, ReadLimits};

use super::number::Number;

/// A JSON value. Numbers keep their decimal value, strings are Unicode text, keys are unique and in canonical order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number
    Number(Number),
    /// A string
    String(String),
    /// An array
    Array(Vec<Json>),
    /// An object
    Object(Object),
}

/// The kind of a JSON value, for messages that must not show the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number
    Number,
    /// A string
    String,
    /// An array
    Array,
    /// An object
    Object,
}

impl Kind {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

impl Json {
    /// An object of these members. Of members with one key the last stands; text from outside is read by
    /// [`Json::read`], which refuses such.
    pub fn object<K: Into<String>>(members: impl IntoIterator<Item = (K, Json)>) -> Self {
        let mut object = Object::default();
        for (key, value) in members {
            object.insert(key, value);
        }
        Self::Object(object)
    }

    /// What kind of value it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::Bool(_) => Kind::Boolean,
            Self::Number(_) => Kind::Number,
            Self::String(_) => Kind::String,
            Self::Array(_) => Kind::Array,
            Self::Object(_) => Kind::Object,
        }
    }

    /// Whether it is neither an array nor an object.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Self::Array(_) | Self::Object(_))
    }

    /// Whether arrays and objects nest deeper in it than so many levels.
    pub fn nests_deeper_than(&self, levels: usize) -> bool {
        let Some(left) = levels.checked_sub(1) else {
            return !self.is_scalar();
        };
        match self {
            Self::Array(items) => items.iter().any(|item| item.nests_deeper_than(left)),
            Self::Object(object) => object.iter().any(|(_, value)| value.nests_deeper_than(left)),
            _ => false,
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The members of an object.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The items of an array.
    pub fn as_array(&self) -> Option<&[Json]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The member of an object with this key.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.as_object()?.get(key)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Self {
        Self::Number(value.into())
    }
}

/// The members of an object: unique keys in the order of their UTF-16 code units (RFC 8785 section 3.2.3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Object(Vec<(String, Json)>);

impl Object {
    /// The value under a key.
    pub fn get(&self, key: &str) -> Option<&Json> {
        let at = self.find(key).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    /// The members in canonical order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Json)> + ExactSizeIterator {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets a member and gives back what stood there.
    pub fn insert(&mut self, key: impl Into<String>, value: Json) -> Option<Json> {
        let key = key.into();
        match self.find(&key) {
            Ok(at) => self
                .0
                .get_mut(at)
                .map(|member| std::mem::replace(&mut member.1, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| by_utf16(other, key))
    }
}

fn by_utf16(left: &str, right: &str) -> std::cmp::Ordering {
    left.encode_utf16().cmp(right.encode_utf16())
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
