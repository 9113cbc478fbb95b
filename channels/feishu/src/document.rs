//! Reading JSON from outside: one object, nothing after it, no key twice, no depth without end.
//!
//! A signature without separators and a cipher without a MAC leave room for tricks with bytes that a lenient reader would
//! skip; this reader skips none.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A JSON object.
pub(crate) type Object = Map<String, Value>;

/// How deep objects and arrays may nest. The platform's own documents need six levels.
pub(crate) const MAX_DEPTH: usize = 64;

/// Why bytes are not a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotADocument {
    /// Not exactly one JSON value with unique keys.
    Json,
    /// JSON, but no object.
    Object,
    /// Nested deeper than [`MAX_DEPTH`].
    Deep,
}

/// Reads `bytes` as exactly one JSON object.
pub(crate) fn parse(bytes: &[u8]) -> Result<Object, NotADocument> {
    if depth(bytes) > MAX_DEPTH {
        return Err(NotADocument::Deep);
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict.deserialize(&mut reader).map_err(|_| NotADocument::Json)?;
    reader.end().map_err(|_| NotADocument::Json)?;
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(NotADocument::Object),
    }
}

/// The text at a path of keys.
pub(crate) fn text<'a>(object: &'a Object, path: &[&str]) -> Option<&'a str> {
    let (last, parents) = path.split_last()?;
    let mut at = object;
    for key in parents {
        at = at.get(*key)?.as_object()?;
    }
    at.get(*last)?.as_str()
}

/// The deepest nesting of brackets outside strings, without recursion. Brackets that do not pair are the parser's affair.
fn depth(bytes: &[u8]) -> usize {
    let (mut now, mut most) = (0_usize, 0_usize);
    let (mut in_text, mut escaped) = (false, false);
    for &byte in bytes {
        if in_text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b'{' | b'[' => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// Builds a [`Value`] and refuses a key that stands twice in one object.
#[derive(Clone, Copy)]
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self)?;
            if object.insert(key, value).is_some() {
                return Err(A::Error::custom("a key stands twice"));
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_object_and_nothing_else() {
        assert!(parse(br#" {"a":{"b":[1,2.5,"x",null,true]}} "#).is_ok());
        for (bad, why) in [
            ("", NotADocument::Json),
            ("[1]", NotADocument::Object),
            (r#"{"a":1}x"#, NotADocument::Json),
            ("{\"a\":1}\u{0}", NotADocument::Json),
            (r#"{"a":1}{"a":1}"#, NotADocument::Json),
            (r#"{"a":1,"a":1}"#, NotADocument::Json),
            (r#"{"a":1,"\u0061":2}"#, NotADocument::Json),
            (r#"{"x":{"a":1,"a":2}}"#, NotADocument::Json),
            (r#"{"a":"\ud800"}"#, NotADocument::Json),
        ] {
            assert_eq!(parse(bad.as_bytes()), Err(why), "{bad}");
        }
        assert_eq!(parse(b"{\"a\":\"\xff\"}"), Err(NotADocument::Json));
    }

    #[test]
    fn depth_is_bounded_before_anything_recurses() {
        let nested = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
        assert!(parse(nested(MAX_DEPTH - 1).as_bytes()).is_ok());
        assert_eq!(parse(nested(MAX_DEPTH).as_bytes()), Err(NotADocument::Deep));
        assert_eq!(parse("[".repeat(1_000_000).as_bytes()), Err(NotADocument::Deep));
        assert!(
            parse(format!("{{\"a\":\"{}\\\"[\"}}", "[{".repeat(500)).as_bytes()).is_ok(),
            "brackets in text do not nest"
        );
    }

    proptest! {
        #[test]
        fn agrees_with_the_lenient_reader_on_what_it_takes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(object) = parse(&bytes) {
                prop_assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), Value::Object(object));
            }
        }
    }
}
