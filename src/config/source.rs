//! Where each key of the file stands, for problems that show only after the file was read: a rule that does not compile,
//! a piece that names a tool that is not there.

use std::collections::BTreeMap;

use super::{
    context::Complaint,
    node::joined,
    problem::{Location, Problem, Warning},
    yaml::{Node, Value},
};

/// The places of the keys of one file.
#[derive(Debug, Clone)]
pub struct SourceMap {
    file: String,
    places: BTreeMap<String, Location>,
}

impl SourceMap {
    /// Walks the tree, whose depth the reader of YAML has bounded.
    pub fn of(file: &str, root: &Node) -> Self {
        let mut places = BTreeMap::new();
        walk(root, root.at, String::new(), &mut places);
        Self {
            file: file.to_owned(),
            places,
        }
    }

    /// The file as it is named in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Where a key stands, such as `policy.rules[2].when`; if it was left out, where the nearest one around it stands.
    pub fn locate(&self, key: &str) -> Option<Location> {
        let mut path = key;
        loop {
            if let Some(place) = self.places.get(path) {
                return Some(*place);
            }
            if path.is_empty() {
                return None;
            }
            path = path
                .rfind(['.', '['])
                .and_then(|end| path.get(..end))
                .unwrap_or("");
        }
    }

    /// A problem of a key.
    pub fn problem(&self, key: &str, complaint: Complaint) -> Problem {
        complaint.at(&self.file, self.locate(key), key)
    }

    /// A warning about a key.
    pub fn warning(&self, key: &str, message: impl Into<String>) -> Warning {
        Warning {
            file: self.file.clone(),
            at: self.locate(key),
            key: key.to_owned(),
            message: message.into(),
        }
    }
}

fn walk(node: &Node, at: Location, path: String, places: &mut BTreeMap<String, Location>) {
    match &node.value {
        Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, item.at, format!("{path}[{index}]"), places);
            }
        }
        Value::Map(entries) => {
            for entry in entries {
                walk(&entry.value, entry.at, joined(&path, &entry.key), places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => {}
    }
    places.insert(path, at);
}
