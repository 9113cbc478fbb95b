//! An OpenAPI document (3.0 or 3.1) as a tree with places, and the way along its references.
//!
//! The document is hostile: its size, nesting and unfolding are bounded, references stay inside it and are followed a bounded
//! number of steps. It knows no tool.

use std::path::Path;

use crate::config::context::Complaint;
use crate::config::problem::{Location, Problem, ProblemKind};
use crate::config::shown::{shown, shown_path};
use crate::config::yaml::{self, Bounds, Entry, Node, Value};
use crate::gate::Json;
use crate::gate::json::ReadLimits;

/// The longest document that is read, in bytes.
pub(super) const MAX_BYTES: usize = 8 << 20;
/// The most that a document may unfold to, in the measure of [`yaml`].
const MAX_WEIGHT: usize = 500_000;
/// References that lead to references.
const MOST_STEPS: usize = 16;
/// Levels of JSON; YAML has a bound of its own.
const MAX_DEPTH: usize = 64;

/// What stands in the way of one operation; boxed, since it is far larger than what is read.
pub(super) type Refusal = Box<Problem>;

/// See the module.
pub(super) struct Document {
    /// How it is named in messages.
    pub(super) label: String,
    pub(super) root: Node,
    pub(super) version: Version,
}

/// Which dialect of schemas it is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// OpenAPI 3.0: a dialect of its own (specification section 4.7.24).
    V30,
    /// OpenAPI 3.1: JSON Schema 2020-12.
    V31,
}

impl Document {
    /// Reads a file.
    pub(super) fn load(path: &Path) -> Result<Self, Vec<Problem>> {
        let label = shown_path(path);
        let text = crate::config::read_text(path, MAX_BYTES).map_err(|fault| {
            vec![
                Complaint::new(ProblemKind::Unreadable, format!("cannot be read: {fault}"))
                    .remedy("name a readable file in UTF-8")
                    .at(&label, None, ""),
            ]
        })?;
        Self::read(&text, &label)
    }

    /// Reads a text, YAML or JSON.
    pub(super) fn read(text: &str, label: &str) -> Result<Self, Vec<Problem>> {
        let root = tree(text, label)?;
        let version = version(&root, label).map_err(|problem| vec![*problem])?;
        Ok(Self {
            label: label.to_owned(),
            root,
            version,
        })
    }

    /// A problem of this document.
    pub(super) fn problem(&self, at: Location, key: &str, message: impl Into<String>) -> Refusal {
        Box::new(Complaint::new(ProblemKind::BadValue, message).at(&self.label, Some(at), key))
    }

    /// The node itself, or what its reference leads to.
    pub(super) fn follow<'d>(&'d self, node: &'d Node) -> Result<&'d Node, (Location, String)> {
        let mut node = node;
        for _ in 0..MOST_STEPS {
            let Some(reference) = reference(node) else {
                return Ok(node);
            };
            let Value::Text(target) = &reference.value else {
                return Err((reference.at, "a $ref that is not text".to_owned()));
            };
            node = self.named(target).map_err(|why| (reference.at, why))?;
        }
        Err((
            node.at,
            "a $ref that leads to itself, or through too many others".to_owned(),
        ))
    }

    /// What a local reference names: a JSON pointer as the fragment of an address (RFC 6901 section 6).
    fn named(&self, target: &str) -> Result<&Node, String> {
        let Some(pointer) = target.strip_prefix("#/") else {
            return Err(format!(
                "the reference `{}` leads out of the document, which is not followed",
                shown(target)
            ));
        };
        let lost = || format!("nothing stands at `{}`", shown(target));
        let mut node = &self.root;
        for segment in pointer.split('/') {
            let segment = unescaped(segment).ok_or_else(lost)?;
            node = match &node.value {
                Value::Map(_) => get(node, &segment),
                Value::List(items) => segment.parse::<usize>().ok().and_then(|at| items.get(at)),
                _ => None,
            }
            .ok_or_else(lost)?;
        }
        Ok(node)
    }
}

fn tree(text: &str, label: &str) -> Result<Node, Vec<Problem>> {
    if text.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
        let limits = ReadLimits::bytes(MAX_BYTES).shallower(MAX_DEPTH);
        // What is not JSON may still be YAML, whose reader says better what is wrong.
        if let Ok(json) = Json::read(text.as_bytes(), limits) {
            return Ok(from_json(&json));
        }
    }
    let bounds = Bounds {
        bytes: MAX_BYTES,
        weight: MAX_WEIGHT,
    };
    let (root, faults) = yaml::read_within(text, bounds);
    match root {
        Some(root) if faults.is_empty() => Ok(root),
        _ => Err(faults
            .into_iter()
            .map(|fault| {
                Complaint::new(fault.kind, fault.message).remedy(fault.remedy).at(
                    label,
                    Some(fault.at),
                    fault.key,
                )
            })
            .collect()),
    }
}

/// JSON has no places. The recursion is as deep as the reader of JSON allowed.
fn from_json(json: &Json) -> Node {
    let value = match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => Value::Number(number.as_str().to_owned()),
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(items) => Value::List(items.iter().map(from_json).collect()),
        Json::Object(members) => Value::Map(
            members
                .iter()
                .map(|(key, value)| Entry {
                    key: key.to_owned(),
                    at: START,
                    value: from_json(value),
                })
                .collect(),
        ),
    };
    Node { at: START, value }
}

const START: Location = Location { line: 1, column: 1 };

fn version(root: &Node, label: &str) -> Result<Version, Refusal> {
    let refuse = |at: Location, key: &str, message: String, remedy: &str| {
        let complaint = Complaint::new(ProblemKind::BadValue, message)
            .accepted("an OpenAPI document of version 3.0 or 3.1")
            .remedy(remedy);
        Box::new(complaint.at(label, Some(at), key))
    };
    if let Some(swagger) = get(root, "swagger") {
        return Err(refuse(
            swagger.at,
            "swagger",
            "a Swagger 2.0 document".to_owned(),
            "convert it to OpenAPI 3.0 or 3.1 first",
        ));
    }
    let Some(openapi) = get(root, "openapi") else {
        return Err(refuse(
            root.at,
            "openapi",
            "the key `openapi` is missing".to_owned(),
            "name a file that describes an API",
        ));
    };
    let (Value::Text(word) | Value::Number(word)) = &openapi.value else {
        return Err(refuse(
            openapi.at,
            "openapi",
            "the version is not text".to_owned(),
            "write it as in `openapi: 3.1.0`",
        ));
    };
    match word.split('.').take(2).collect::<Vec<_>>()[..] {
        ["3", "0"] => Ok(Version::V30),
        ["3", "1"] => Ok(Version::V31),
        _ => Err(refuse(
            openapi.at,
            "openapi",
            format!("version `{}`", shown(word)),
            "write the document in one of these versions",
        )),
    }
}

/// The member of a mapping with this key.
pub(super) fn get<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    entries(node)
        .iter()
        .find(|entry| entry.key == key)
        .map(|entry| &entry.value)
}

/// The members of a mapping; none of anything else.
pub(super) fn entries(node: &Node) -> &[Entry] {
    match &node.value {
        Value::Map(entries) => entries,
        _ => &[],
    }
}

/// The items of a list; none of anything else.
pub(super) fn items(node: Option<&Node>) -> &[Node] {
    match node.map(|node| &node.value) {
        Some(Value::List(items)) => items,
        _ => &[],
    }
}

/// The text under a key.
pub(super) fn text<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    match &get(node, key)?.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// Whether `true` stands under a key.
pub(super) fn is_true(node: &Node, key: &str) -> bool {
    get(node, key).is_some_and(|node| node.value == Value::Bool(true))
}

/// The reference of a node that is one.
pub(super) fn reference(node: &Node) -> Option<&Node> {
    get(node, "$ref")
}

fn unescaped(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    Some(text.replace("~1", "/").replace("~0", "~"))
}
