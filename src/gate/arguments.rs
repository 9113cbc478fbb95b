//! What a call is made of: the tool's name and its arguments, read once and never in doubt afterwards.
//!
//! It must not know who asks, or what any rule thinks of it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::value::RawValue;
use thiserror::Error;

use super::json::{Json, JsonError, JsonProblem, Kind, MAX_DEPTH, ReadLimits};

/// The most characters of a tool's name.
pub const MAX_TOOL_NAME: usize = 256;

/// Why a call is malformed. The text carries nothing of what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidArguments {
    /// The arguments are no acceptable JSON.
    #[error("the arguments are refused: {0}")]
    Json(#[from] JsonError),
    /// The arguments are JSON, but no object.
    #[error("the arguments must be a JSON object, not a value of type {}", .0.name())]
    NotAnObject(Kind),
    /// The tool's name is empty or too long.
    #[error("a tool name has 1 to {MAX_TOOL_NAME} characters")]
    ToolNameLength,
    /// The tool's name holds a control character.
    #[error("a tool name must not hold control characters")]
    ToolNameControl,
}

impl InvalidArguments {
    /// The stable code of the HTTP contract; `gatepost openapi` lists them.
    pub const CODE: &'static str = "invalid_arguments";

    /// [`Self::CODE`].
    pub fn code(self) -> &'static str {
        Self::CODE
    }
}

/// The name of a tool: 1 to 256 characters, none of them a control character.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ToolName(String);

impl ToolName {
    /// The name as it is.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ToolName {
    type Err = InvalidArguments;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name.is_empty() || name.chars().nth(MAX_TOOL_NAME).is_some() {
            Err(InvalidArguments::ToolNameLength)
        } else if name.chars().any(char::is_control) {
            Err(InvalidArguments::ToolNameControl)
        } else {
            Ok(Self(name.to_owned()))
        }
    }
}

impl<'de> Deserialize<'de> for ToolName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The arguments of a call: a JSON object together with its canonical spelling, which is what is stored, hashed and
/// sent on.
#[derive(Clone, PartialEq, Eq)]
pub struct Arguments {
    json: Json,
    canonical: String,
}

impl Arguments {
    /// Reads arguments from bytes; see [`Json::read`] for what is refused.
    pub fn read(bytes: &[u8], limits: ReadLimits) -> Result<Self, InvalidArguments> {
        Json::read(bytes, limits)?.try_into()
    }

    /// No arguments: `{}`.
    pub fn none() -> Self {
        Self {
            json: Json::Object(super::json::Object::default()),
            canonical: "{}".to_owned(),
        }
    }

    /// The value.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// The canonical spelling (RFC 8785).
    pub fn canonical(&self) -> &str {
        &self.canonical
    }
}

impl TryFrom<Json> for Arguments {
    type Error = InvalidArguments;

    fn try_from(json: Json) -> Result<Self, Self::Error> {
        match json.kind() {
            Kind::Object if json.nests_deeper_than(MAX_DEPTH) => Err(JsonError {
                problem: JsonProblem::TooDeep(MAX_DEPTH),
                at: 0,
            }
            .into()),
            Kind::Object => Ok(Self {
                canonical: json.canonical(),
                json,
            }),
            other => Err(InvalidArguments::NotAnObject(other)),
        }
    }
}

impl fmt::Debug for Arguments {
    /// Only the size: arguments do not reach a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arguments({} bytes)", self.canonical.len())
    }
}

impl Serialize for Arguments {
    /// Into JSON text only: the canonical spelling stands in it as it is.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.canonical).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_nest_128_levels_wherever_they_stood() {
        for (levels, fits) in [(1, true), (127, true), (128, true), (129, false), (132, false)] {
            let args = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
            assert_eq!(
                Arguments::read(args.as_bytes(), ReadLimits::bytes(5_000)).is_ok(),
                fits,
                "{levels}"
            );
            let message = format!("[[{args}]]");
            let message = Json::read(message.as_bytes(), ReadLimits::message(5_000)).unwrap();
            let inside = message.as_array().unwrap()[0].as_array().unwrap()[0].clone();
            assert_eq!(Arguments::try_from(inside).is_ok(), fits, "{levels}");
        }
        let far = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
        assert!(Json::read(far.as_bytes(), ReadLimits::message(20_000)).is_err());
    }
}
