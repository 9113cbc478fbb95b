//! Schemas of a document as JSON Schema without references, as far as a request needs them: both dialects become one, what is
//! only read is left out, and a schema that contains itself is cut where it does.
//!
//! Depth, number and size are bounded. Only keywords of validation and a description are taken over, so that nothing else of
//! a document reaches a model.

use serde_json::{Map, Value as Json};

use super::document::{Document, Refusal, Version, entries, get, is_true, items, reference};
use crate::config::problem::Location;
use crate::config::shown::is_invisible;
use crate::config::yaml::{Node, Value};

/// The deepest nesting of schemas.
const MAX_DEPTH: usize = 32;
/// The most schemas of one operation, after references are replaced by what they name.
const MOST_SCHEMAS: usize = 2_000;
/// The most bytes of the schema of one operation, spelt as JSON.
pub(super) const MOST_BYTES: usize = 64 * 1024;
/// The longest description of one value, in characters.
pub(super) const LONGEST_NOTE: usize = 400;

/// Keywords whose value is taken over as it is.
const PLAIN: [&str; 16] = [
    "type",
    "format",
    "default",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
];
/// More of them, and lists of names.
const COUNTS: [&str; 2] = ["minProperties", "maxProperties"];
/// Keywords that hold a schema.
const ONE: [&str; 4] = ["items", "additionalProperties", "not", "contains"];
/// Keywords that hold a list of schemas.
const SEVERAL: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords that hold schemas by name.
const BY_NAME: [&str; 2] = ["properties", "patternProperties"];

/// Takes the schemas of one operation over.
pub(super) struct Flattening<'d> {
    document: &'d Document,
    /// The operation, for messages.
    key: &'d str,
    left: usize,
    /// What is being unfolded, to find what contains itself.
    open: Vec<*const Node>,
    /// Whether a schema contained itself.
    pub(super) recursive: bool,
}

impl<'d> Flattening<'d> {
    pub(super) const fn new(document: &'d Document, key: &'d str) -> Self {
        Self {
            document,
            key,
            left: MOST_SCHEMAS,
            open: Vec::new(),
            recursive: false,
        }
    }

    /// The schema without references.
    pub(super) fn schema(&mut self, node: &'d Node) -> Result<Json, Refusal> {
        self.at_depth(node, 0)
    }

    fn at_depth(&mut self, node: &'d Node, depth: usize) -> Result<Json, Refusal> {
        if depth > MAX_DEPTH {
            return Err(self.problem(node.at, "a schema nested deeper than 32 levels"));
        }
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| self.problem(node.at, "a schema that unfolds to too much"))?;
        match &node.value {
            Value::Bool(value) => return Ok(Json::Bool(*value)),
            Value::Map(_) => {}
            _ => return Err(self.problem(node.at, "a schema that is not a mapping")),
        }
        if reference(node).is_none() {
            return self.keywords(node, depth).map(Json::Object);
        }
        let target = self
            .document
            .follow(node)
            .map_err(|(at, why)| self.problem(at, why))?;
        let address = std::ptr::from_ref(target);
        if self.open.contains(&address) {
            self.recursive = true;
            return Ok(Json::Object(Map::new()));
        }
        self.open.push(address);
        let named = self.at_depth(target, depth + 1);
        self.open.pop();
        let mut named = named?;
        if self.document.version == Version::V31 {
            // What stands beside a reference holds as well (JSON Schema 2020-12, section 8.2.3.1).
            let beside = self.keywords(node, depth)?;
            if beside.keys().any(|key| key != "description") {
                return Ok(serde_json::json!({"allOf": [named, beside]}));
            }
        }
        if let (Json::Object(named), Some(note)) = (&mut named, note(node)) {
            named.insert("description".to_owned(), note);
        }
        Ok(named)
    }

    fn keywords(&mut self, node: &'d Node, depth: usize) -> Result<Map<String, Json>, Refusal> {
        let mut out = Map::new();
        for entry in entries(node) {
            let (key, value) = (entry.key.as_str(), &entry.value);
            if PLAIN.contains(&key) || COUNTS.contains(&key) {
                let plain = plain(value, 0).ok_or_else(|| {
                    self.problem(
                        value.at,
                        "a value that JSON cannot spell, or that is nested too deep",
                    )
                })?;
                out.insert(key.to_owned(), plain);
            } else if ONE.contains(&key) {
                out.insert(key.to_owned(), self.at_depth(value, depth + 1)?);
            } else if SEVERAL.contains(&key) {
                let schemas = items(Some(value))
                    .iter()
                    .map(|item| self.at_depth(item, depth + 1));
                let schemas = schemas.collect::<Result<Vec<_>, _>>()?;
                out.insert(key.to_owned(), Json::Array(schemas));
            } else if BY_NAME.contains(&key) {
                let mut named = Map::new();
                for member in entries(value) {
                    if !self.is_only_read(&member.value) {
                        named.insert(member.key.clone(), self.at_depth(&member.value, depth + 1)?);
                    }
                }
                out.insert(key.to_owned(), Json::Object(named));
            }
        }
        let required = items(get(node, "required"))
            .iter()
            .filter_map(|name| match &name.value {
                Value::Text(name) => Some(name.as_str()),
                _ => None,
            });
        let properties = get(node, "properties");
        let sent = |name: &&str| {
            properties
                .and_then(|properties| get(properties, name))
                .is_none_or(|property| !self.is_only_read(property))
        };
        let required: Vec<Json> = required.filter(sent).map(Json::from).collect();
        if !required.is_empty() {
            out.insert("required".to_owned(), Json::Array(required));
        }
        if let Some(note) = note(node) {
            out.insert("description".to_owned(), note);
        }
        if self.document.version == Version::V30 {
            modern(node, &mut out);
        }
        Ok(out)
    }

    /// A property that stands in answers alone (OpenAPI 3.0, section 4.7.24.2).
    fn is_only_read(&self, node: &Node) -> bool {
        self.document
            .follow(node)
            .is_ok_and(|node| is_true(node, "readOnly"))
    }

    fn problem(&self, at: Location, message: impl Into<String>) -> Refusal {
        self.document.problem(at, self.key, message)
    }
}

/// What the dialect of OpenAPI 3.0 spells in its own way, as JSON Schema.
fn modern(node: &Node, out: &mut Map<String, Json>) {
    if is_true(node, "nullable") {
        if let Some(Json::String(one)) = out.get("type").cloned() {
            out.insert("type".to_owned(), serde_json::json!([one, "null"]));
        }
        if let Some(Json::Array(values)) = out.get_mut("enum")
            && !values.contains(&Json::Null)
        {
            values.push(Json::Null);
        }
    }
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        match out.get(exclusive) {
            Some(Json::Bool(true)) => {
                out.remove(exclusive);
                if let Some(value) = out.remove(bound) {
                    out.insert(exclusive.to_owned(), value);
                }
            }
            Some(Json::Bool(false)) => {
                out.remove(exclusive);
            }
            _ => {}
        }
    }
}

fn note(node: &Node) -> Option<Json> {
    let text = prose(super::document::text(node, "description")?, LONGEST_NOTE);
    (!text.is_empty()).then_some(Json::String(text))
}

/// Text of a document for a model: bounded, and without what people would not see.
pub(super) fn prose(text: &str, most: usize) -> String {
    let visible = |c: &char| (*c == '\n' || !c.is_control()) && !is_invisible(*c);
    let text: String = text.trim().chars().filter(visible).take(most).collect();
    text.trim().to_owned()
}

fn plain(node: &Node, depth: usize) -> Option<Json> {
    if depth > MAX_DEPTH {
        return None;
    }
    Some(match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Text(text) => Json::String(text.clone()),
        Value::Number(spelling) => Json::Number(serde_json::from_str(spelling).ok()?),
        Value::List(items) => Json::Array(
            items
                .iter()
                .map(|item| plain(item, depth + 1))
                .collect::<Option<_>>()?,
        ),
        Value::Map(entries) => Json::Object(
            entries
                .iter()
                .map(|entry| Some((entry.key.clone(), plain(&entry.value, depth + 1)?)))
                .collect::<Option<_>>()?,
        ),
    })
}

/// Whether a value that fits the schema may be of this type, as far as the schema says so.
pub(super) fn may_be(schema: &Json, kind: &str) -> bool {
    let named = match schema.get("type") {
        Some(Json::String(one)) => one == kind,
        Some(Json::Array(several)) => several.iter().any(|one| one == kind),
        _ => match kind {
            "array" => schema.get("items").is_some(),
            _ => schema.get("properties").is_some() || schema.get("additionalProperties").is_some(),
        },
    };
    named
        || SEVERAL.iter().any(|several| {
            let branches = schema.get(*several).and_then(Json::as_array);
            branches.into_iter().flatten().any(|branch| may_be(branch, kind))
        })
}
