//! The strict reader: whatever two readers could understand differently is refused (RFC 8259, RFC 7493).

use thiserror::Error;

use super::{Json, Object, by_utf16};
use crate::gate::number::{Number, NumberProblem};

/// How deep arguments may nest: the value inside 128 arrays and objects is read, inside 129 it is not.
pub const MAX_DEPTH: usize = 128;

/// The levels that a message may have around the arguments in it.
const AROUND: usize = 8;

/// What a reader may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    bytes: usize,
    depth: usize,
}

impl ReadLimits {
    /// At most this many bytes, at most [`MAX_DEPTH`] arrays and objects inside each other.
    pub const fn bytes(bytes: usize) -> Self {
        Self {
            bytes,
            depth: MAX_DEPTH,
        }
    }

    /// The same for a message that holds such a value inside itself: a few levels deeper. The value inside is to be checked with
    /// [`Json::nests_deeper_than`], as [`Arguments`](crate::gate::Arguments) does.
    pub const fn message(bytes: usize) -> Self {
        Self {
            bytes,
            depth: MAX_DEPTH + AROUND,
        }
    }

    /// The same, but no deeper than `depth`; never more than [`MAX_DEPTH`].
    #[must_use]
    pub const fn shallower(self, depth: usize) -> Self {
        Self {
            depth: if depth < self.depth { depth } else { self.depth },
            ..self
        }
    }
}

/// Why bytes are no acceptable JSON, and where. It never carries any of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{problem} (at byte {at})")]
pub struct JsonError {
    /// What is wrong.
    pub problem: JsonProblem,
    /// The byte at which it was noticed, from 0.
    pub at: usize,
}

/// What is wrong with the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum JsonProblem {
    /// They are more than the limit.
    #[error("the JSON text is longer than {0} bytes")]
    TooLong(usize),
    /// They are not UTF-8.
    #[error("the JSON text is not UTF-8")]
    NotUtf8,
    /// They end too soon.
    #[error("the JSON text ends too soon")]
    Ends,
    /// Something stands where the grammar has no place for it.
    #[error("the JSON text holds something that does not belong there")]
    Unexpected,
    /// Something follows the value.
    #[error("something follows the JSON value")]
    Trailing,
    /// Arrays and objects nest too deep.
    #[error("arrays and objects nest deeper than {0} levels")]
    TooDeep(usize),
    /// An object has one key twice, after unescaping.
    #[error("an object has the same key twice")]
    DuplicateKey,
    /// A control character stands in a string without an escape.
    #[error("a string holds an unescaped control character")]
    ControlCharacter,
    /// A backslash is followed by what is no escape.
    #[error("a string holds a malformed escape")]
    Escape,
    /// An escape names half of a surrogate pair.
    #[error("a string holds a lone surrogate")]
    LoneSurrogate,
    /// A number is not acceptable.
    #[error(transparent)]
    Number(#[from] NumberProblem),
}

impl Json {
    /// Reads a whole text. Refuses, with the place: more bytes or levels than the limits, invalid UTF-8, duplicate
    /// keys, lone surrogates, raw control characters in strings, numbers of more than 40 digits and anything behind
    /// the value.
    pub fn read(bytes: &[u8], limits: ReadLimits) -> Result<Self, JsonError> {
        if bytes.len() > limits.bytes {
            return Err(JsonError {
                problem: JsonProblem::TooLong(limits.bytes),
                at: limits.bytes,
            });
        }
        let text = std::str::from_utf8(bytes).map_err(|error| JsonError {
            problem: JsonProblem::NotUtf8,
            at: error.valid_up_to(),
        })?;
        let mut reader = Reader {
            text,
            at: 0,
            depth: limits.depth,
        };
        let value = reader.value(0)?;
        reader.blank();
        match reader.peek() {
            None => Ok(value),
            Some(_) => Err(reader.error(JsonProblem::Trailing)),
        }
    }
}

/// The cursor always stands on a character boundary: it passes whole ASCII characters or whole runs up to one.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// Recursion ends at `self.depth`, which is at most [`MAX_DEPTH`] and [`AROUND`].
    fn value(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.blank();
        match self.peek() {
            Some(b'n') => self.word("null", Json::Null),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'[') => self.array(depth + 1),
            Some(b'{') => self.object(depth + 1),
            _ => Err(self.unexpected()),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.enter(depth)?;
        let mut items = Vec::new();
        if self.skip(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            if !self.more(b']')? {
                return Ok(Json::Array(items));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.enter(depth)?;
        let mut members = Vec::new();
        if self.skip(b'}') {
            return Ok(Json::Object(Object::default()));
        }
        loop {
            self.blank();
            let at = self.at;
            let key = self.string()?;
            if !self.skip(b':') {
                return Err(self.unexpected());
            }
            members.push((key, self.value(depth)?, at));
            if !self.more(b'}')? {
                break;
            }
        }
        members.sort_by(|(left, ..), (right, ..)| by_utf16(left, right));
        let twice = members.windows(2).find_map(|pair| match pair {
            [(left, ..), (right, _, at)] if left == right => Some(*at),
            _ => None,
        });
        match twice {
            Some(at) => Err(JsonError {
                problem: JsonProblem::DuplicateKey,
                at,
            }),
            None => Ok(Json::Object(Object(
                members.into_iter().map(|(key, value, _)| (key, value)).collect(),
            ))),
        }
    }

    fn enter(&mut self, depth: usize) -> Result<(), JsonError> {
        if depth > self.depth {
            return Err(self.error(JsonProblem::TooDeep(self.depth)));
        }
        self.at += 1;
        Ok(())
    }

    /// Behind an item: whether another follows a comma, or the container ends.
    fn more(&mut self, end: u8) -> Result<bool, JsonError> {
        if self.skip(b',') {
            Ok(true)
        } else if self.skip(end) {
            Ok(false)
        } else {
            Err(self.unexpected())
        }
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let (number, length) = Number::scan(self.rest()).map_err(|problem| self.error(problem.into()))?;
        self.at += length;
        Ok(Json::Number(number))
    }

    fn string(&mut self) -> Result<String, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let plain = rest
                .bytes()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))
                .unwrap_or(rest.len());
            text.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                None => return Err(self.error(JsonProblem::Ends)),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(self.error(JsonProblem::ControlCharacter)),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        let lone = JsonError {
            problem: JsonProblem::LoneSurrogate,
            at: start,
        };
        let plain = match self.text.as_bytes().get(start + 1) {
            Some(b'u') => {
                let first = self.unit()?;
                if !(0xd800..0xe000).contains(&first) {
                    return char::from_u32(first).ok_or(lone);
                }
                if first >= 0xdc00 || !self.rest().starts_with("\\u") {
                    return Err(lone);
                }
                let second = self.unit()?;
                if !(0xdc00..0xe000).contains(&second) {
                    return Err(lone);
                }
                return char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)).ok_or(lone);
            }
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(same @ (b'"' | b'\\' | b'/')) => char::from(*same),
            Some(_) => return Err(self.error(JsonProblem::Escape)),
            None => return Err(self.error(JsonProblem::Ends)),
        };
        self.at += 2;
        Ok(plain)
    }

    /// The code unit of the `\uXXXX` at the cursor.
    fn unit(&mut self) -> Result<u32, JsonError> {
        let digits = self
            .text
            .as_bytes()
            .get(self.at + 2..self.at + 6)
            .ok_or_else(|| self.error(JsonProblem::Escape))?;
        let mut unit = 0;
        for digit in digits {
            let digit = char::from(*digit)
                .to_digit(16)
                .ok_or_else(|| self.error(JsonProblem::Escape))?;
            unit = unit * 16 + digit;
        }
        self.at += 6;
        Ok(unit)
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, JsonError> {
        if !self.rest().starts_with(word) {
            return Err(self.unexpected());
        }
        self.at += word.len();
        Ok(value)
    }

    fn skip(&mut self, wanted: u8) -> bool {
        self.blank();
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn unexpected(&self) -> JsonError {
        self.error(if self.peek().is_some() {
            JsonProblem::Unexpected
        } else {
            JsonProblem::Ends
        })
    }

    fn error(&self, problem: JsonProblem) -> JsonError {
        JsonError { problem, at: self.at }
    }
}
