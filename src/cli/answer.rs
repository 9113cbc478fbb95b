//! What the server answered, in two forms: members to look at, and the text itself, in which every number keeps its exact value.
//!
//! Arguments may hold numbers that no double holds and be nested to the limit; so they are never read as part of the whole.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::gate::Json;
use crate::gate::json::ReadLimits;

/// An object that the server answered with.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its members. One that this form cannot hold exactly enough to be read is null.
    pub value: Value,
    text: Box<RawValue>,
}

impl Answer {
    /// Reads an object; nothing else is an answer.
    pub fn read(body: &[u8]) -> Option<Self> {
        let text: Box<RawValue> = serde_json::from_slice(body).ok()?;
        Self::of(text)
    }

    fn of(text: Box<RawValue>) -> Option<Self> {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(text.get()).ok()?;
        let read = |member: &RawValue| serde_json::from_str(member.get()).unwrap_or_default();
        let value: Map<String, Value> = members
            .into_iter()
            .map(|(name, member)| (name, read(member)))
            .collect();
        Some(Self {
            value: value.into(),
            text,
        })
    }

    /// The answer as it came.
    pub fn text(&self) -> &str {
        self.text.get()
    }

    /// A member exactly as it was asked or stored.
    pub fn exact(&self, name: &str) -> Option<Json> {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(self.text.get()).ok()?;
        let text = members.get(name)?.get();
        Json::read(text.as_bytes(), ReadLimits::bytes(text.len())).ok()
    }

    /// The answer as a page of a list: its items and where it goes on.
    pub fn page(&self) -> Option<(Vec<Self>, Option<String>)> {
        #[derive(Deserialize)]
        struct Page {
            items: Vec<Box<RawValue>>,
            next_cursor: Option<String>,
        }
        let page: Page = serde_json::from_str(self.text.get()).ok()?;
        let items = page.items.into_iter().map(Self::of).collect::<Option<_>>()?;
        Some((items, page.next_cursor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_deep_arguments_survive_whole() {
        let deep = format!("{}1{}", "[".repeat(127), "]".repeat(127));
        let args = format!("{{\"amount\":100000000000000000000000000.10,\"deep\":{deep}}}");
        let body = format!("{{\"items\":[{{\"id\":\"cr_1\",\"tool_args\":{args}}}],\"next_cursor\":\"c\"}}");
        let (items, next) = Answer::read(body.as_bytes()).unwrap().page().unwrap();
        assert_eq!(next.as_deref(), Some("c"));
        assert_eq!(items[0].value["id"], "cr_1");
        let exact = items[0].exact("tool_args").unwrap();
        assert!(
            exact.canonical().contains("100000000000000000000000000.1,"),
            "{exact}"
        );
        assert!(items[0].text().contains("000.10,"));
    }

    #[test]
    fn only_objects_are_answers() {
        for body in ["", "[]", "\"x\"", "{", "{} {}", "<html>"] {
            assert!(Answer::read(body.as_bytes()).is_none(), "{body}");
        }
    }
}
