//! The tree and the way through it: readers of values and of mappings that remember their path and place.
//!
//! It knows no section. Whoever decodes a mapping asks for its keys one by one and ends with [`MapReader::finish`],
//! which reports what was never asked for; the keys asked for are remembered, so that the JSON Schema can be compared
//! with the decoder. Each question either answers or writes down a problem, so that all problems of a file are told in
//! one go. The typed questions stand in `scalar` and `secret_source`.

use std::fmt::Write as _;

use super::{
    context::{Complaint, Context},
    nearest::nearest,
    problem::{Location, ProblemKind},
    shown::{may_be_secret, shown},
    yaml::{Entry, Node, Value},
};

/// One value of the tree, its place and its path.
#[derive(Clone)]
pub struct Reader<'a> {
    pub(super) cx: &'a Context<'a>,
    pub(super) node: &'a Node,
    pub(super) at: Location,
    pub(super) path: String,
    pub(super) shape: String,
}

impl<'a> Reader<'a> {
    /// The path of the key.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where the key stands, or the item of a list.
    pub fn at(&self) -> Location {
        self.at
    }

    /// What the reading of the file shares.
    pub fn context(&self) -> &'a Context<'a> {
        self.cx
    }

    /// The raw value.
    pub fn value(&self) -> &'a Value {
        &self.node.value
    }

    /// Writes down a problem of this value.
    pub fn complain(&self, complaint: Complaint) {
        self.cx.complain(Some(self.at), &self.path, complaint);
    }

    /// Writes down a warning about this value.
    pub fn warn(&self, message: impl Into<String>) {
        self.cx.warn(Some(self.at), &self.path, message);
    }

    /// A problem of a value that is of the right type but not accepted.
    pub fn bad_value(&self, accepted: impl Into<String>, remedy: impl Into<String>) {
        let message = format!("found {}", describe(self.value()));
        self.complain(
            Complaint::new(ProblemKind::BadValue, message)
                .accepted(accepted)
                .remedy(remedy),
        );
    }

    pub(super) fn wrong_type(&self, found: &str, accepted: &str) {
        let remedy = match self.value() {
            Value::Null => "give the key a value, or remove it",
            Value::Number(_) | Value::Bool(_) if accepted.starts_with("text") => "put the value in quotes",
            _ => "see examples/gatepost.yaml for the shape of this key",
        };
        let message = format!("found {found}");
        self.complain(
            Complaint::new(ProblemKind::WrongType, message)
                .accepted(accepted)
                .remedy(remedy),
        );
    }

    /// The value as a mapping.
    pub fn map(&self) -> Option<MapReader<'a>> {
        let Value::Map(entries) = self.value() else {
            self.wrong_type(&describe_type(self.value()), "a mapping of keys to values");
            return None;
        };
        Some(self.map_of(entries))
    }

    pub(super) fn map_of(&self, entries: &'a [Entry]) -> MapReader<'a> {
        MapReader {
            reader: self.clone(),
            entries,
            asked: Vec::new(),
        }
    }

    /// The entries of a mapping whose keys are names given by the user.
    pub fn names(&self) -> Option<Vec<(&'a str, Reader<'a>)>> {
        let map = self.map()?;
        Some(
            map.entries
                .iter()
                .map(|entry| (entry.key.as_str(), map.child(entry, "*")))
                .collect(),
        )
    }

    /// The items of a list.
    pub fn list(&self) -> Option<Vec<Reader<'a>>> {
        let Value::List(items) = self.value() else {
            self.wrong_type(&describe_type(self.value()), "a list");
            return None;
        };
        let item = |(index, node): (usize, &'a Node)| Reader {
            cx: self.cx,
            node,
            at: node.at,
            path: format!("{}[{index}]", self.path),
            shape: format!("{}[]", self.shape),
        };
        Some(items.iter().enumerate().map(item).collect())
    }
}

/// The keys of one mapping.
pub struct MapReader<'a> {
    reader: Reader<'a>,
    entries: &'a [Entry],
    asked: Vec<&'static str>,
}

impl<'a> MapReader<'a> {
    /// The value of a key that may be left out.
    pub fn optional(&mut self, key: &'static str) -> Option<Reader<'a>> {
        self.asked.push(key);
        self.reader.cx.remember(joined(&self.reader.shape, key));
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(self.child(entry, key))
    }

    /// The value of a key that must be there.
    pub fn required(&mut self, key: &'static str) -> Option<Reader<'a>> {
        self.required_as(key, "add the key")
    }

    /// The value of a key that must be there; `remedy` says what to write where it is not.
    pub fn required_as(&mut self, key: &'static str, remedy: &str) -> Option<Reader<'a>> {
        let found = self.optional(key);
        if found.is_none() {
            self.missing(key, remedy);
        }
        found
    }

    /// Whether the key stands there, without deciding what it may hold.
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// Writes down that a key is missing.
    pub fn missing(&self, key: &str, remedy: &str) {
        let message = format!("the key `{key}` is missing");
        self.reader.cx.complain(
            Some(self.reader.at),
            &joined(&self.reader.path, key),
            Complaint::new(ProblemKind::MissingKey, message).remedy(remedy),
        );
    }

    /// The mapping itself.
    pub fn reader(&self) -> &Reader<'a> {
        &self.reader
    }

    /// Reports every key that nobody asked for.
    pub fn finish(self) {
        self.finish_beside(&[], "");
    }

    /// Reports every key that nobody asked for; one of `elsewhere` means something in another mapping, and `remedy` says in which.
    pub fn finish_beside(self, elsewhere: &[&str], remedy: &str) {
        for entry in self
            .entries
            .iter()
            .filter(|entry| !self.asked.contains(&entry.key.as_str()))
        {
            let mut free = self.asked.clone();
            free.retain(|key| !self.has(key));
            let merge = || "YAML merge keys are not supported: repeat the keys".to_owned();
            let misplaced = elsewhere.contains(&entry.key.as_str());
            let remedy = (entry.key == "<<")
                .then(merge)
                .or_else(|| misplaced.then(|| remedy.to_owned()))
                .or_else(|| did_you_mean(&entry.key, &free))
                .or_else(|| did_you_mean(&entry.key, &self.asked))
                .unwrap_or_else(|| "remove the key, or move it to where it belongs".into());
            self.reader.cx.complain(
                Some(entry.at),
                &joined(&self.reader.path, &entry.key),
                Complaint::new(
                    ProblemKind::UnknownKey,
                    format!("the key `{}` is not known here", shown(&entry.key)),
                )
                .accepted(one_of(&self.asked))
                .remedy(remedy),
            );
        }
    }

    fn child(&self, entry: &'a Entry, shape: &str) -> Reader<'a> {
        Reader {
            cx: self.reader.cx,
            node: &entry.value,
            at: entry.at,
            path: joined(&self.reader.path, &entry.key),
            shape: joined(&self.reader.shape, shape),
        }
    }
}

/// The path of a key below another.
pub fn joined(path: &str, key: &str) -> String {
    let plain = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '*'));
    match (path.is_empty(), plain) {
        (true, true) => key.to_owned(),
        (false, true) => format!("{path}.{key}", key = shown(key)),
        (_, false) => format!("{path}[\"{}\"]", shown(key)),
    }
}

/// `did you mean …?`, when one of the words is close.
pub fn did_you_mean(word: &str, words: &[&str]) -> Option<String> {
    nearest(word, words.iter().copied()).map(|meant| format!("did you mean `{meant}`?"))
}

/// A list of words for people.
pub fn one_of(words: &[&str]) -> String {
    let mut out = String::new();
    for (index, word) in words.iter().enumerate() {
        let separator = if index == 0 {
            ""
        } else if index + 1 == words.len() {
            " or "
        } else {
            ", "
        };
        // Writing to a String cannot fail.
        let _ = write!(out, "{separator}{word}");
    }
    out
}

/// The value for a message. Not for secrets.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Text(text) if may_be_secret(text) => {
            format!(
                "a text of {} characters (not shown: it may be a secret)",
                text.chars().count()
            )
        }
        Value::Text(text) => format!("the text `{}`", shown(text)),
        Value::Number(spelling) => format!("the number {}", shown(spelling)),
        Value::Bool(value) => value.to_string(),
        Value::Null | Value::List(_) | Value::Map(_) => describe_type(value),
    }
}

/// The value's type, without what it holds.
pub(super) fn describe_type(value: &Value) -> String {
    match value {
        Value::Null => "nothing (null)",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::Text(_) => "text",
        Value::List(_) => "a list",
        Value::Map(_) => "a mapping",
    }
    .to_owned()
}
