//! Tools made of an OpenAPI document (3.0 or 3.1): each operation becomes an ordinary HTTP tool. [`document`] is the document,
//! [`schema`] and [`operation`] what becomes of it, [`name`] how tools are called, [`entry`] the configuration's entry.
//!
//! The document is read where it is named, nothing is fetched, and what cannot be sent exactly is refused when it is loaded.
//! Sources: OpenAPI 3.0.4 and 3.1.1, RFC 3986, RFC 6901.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use self::document::{Document, Refusal, entries, get, text};
use self::operation::Found;
use super::http_tool::ToolMethod;
use super::problem::{Location, Problem};
use super::shown::shown;
use super::template::Template;

mod document;
pub mod entry;
mod name;
pub mod operation;
mod schema;

#[cfg(test)]
mod openapi_tests;

pub use entry::{ByName, Confirm};
pub use operation::Operation;

/// The most operations of one document.
const MOST_OPERATIONS: usize = 2_000;
/// The most variables of a server's address, and the longest value of one.
const MOST_VARIABLES: usize = 20;
const LONGEST_VARIABLE: usize = 253;
const METHODS: [(&str, ToolMethod); 7] = [
    ("get", ToolMethod::Get),
    ("head", ToolMethod::Head),
    ("options", ToolMethod::Options),
    ("post", ToolMethod::Post),
    ("put", ToolMethod::Put),
    ("patch", ToolMethod::Patch),
    ("delete", ToolMethod::Delete),
];

/// What was found in a document.
#[derive(Debug)]
pub struct Import {
    /// The document as it is named in messages.
    pub label: String,
    /// Its title and version, for people.
    pub title: String,
    /// Where its operations are served, if the document says so in a way that can be used.
    pub server: Result<Template, String>,
    /// What can be a tool, in the order of the document.
    pub operations: Vec<Operation>,
    /// What cannot, and why.
    pub refused: Vec<Refused>,
}

/// An operation that cannot be a tool.
#[derive(Debug)]
pub struct Refused {
    /// Its id.
    pub id: String,
    /// What stands in the way.
    pub problem: Problem,
}

/// Reads a file. `fixed` are the headers, in lower case, that the operator sets; `wanted` says which ids are looked at.
///
/// # Errors
/// What is wrong with the document as a whole.
pub fn load(
    path: &Path,
    fixed: &BTreeSet<String>,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Import, Vec<Problem>> {
    import(&Document::load(path)?, fixed, wanted)
}

/// As [`load`], of a text that is named so in messages.
///
/// # Errors
/// What is wrong with the document as a whole.
pub fn read(
    text: &str,
    label: &str,
    fixed: &BTreeSet<String>,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Import, Vec<Problem>> {
    import(&Document::read(text, label)?, fixed, wanted)
}

/// The name of the tool that an operation becomes.
pub fn tool_name(connector: &str, id: &str) -> String {
    name::tool(connector, id)
}

fn import(
    document: &Document,
    fixed: &BTreeSet<String>,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Import, Vec<Problem>> {
    let found = find(document).map_err(|problem| vec![*problem])?;
    let mut import = Import {
        label: document.label.clone(),
        title: title(document),
        server: server(document),
        operations: Vec::new(),
        refused: Vec::new(),
    };
    let mut named: BTreeMap<String, String> = BTreeMap::new();
    for found in found.iter().filter(|found| wanted(&found.id)) {
        // Two ids that differ only in characters that no tool's name has would be one tool.
        let twin = named.insert(name::tool("x", &found.id), found.key.clone());
        let read = match twin {
            Some(other) => Err(document.problem(
                found.node.at,
                &found.key,
                format!("it would have the name of the operation at {other}; give one of the two another operationId"),
            )),
            None => operation::read(document, found, fixed),
        };
        match read {
            Ok(operation) => import.operations.push(operation),
            Err(problem) => import.refused.push(Refused {
                id: found.id.clone(),
                problem: *problem,
            }),
        }
    }
    Ok(import)
}

/// The operations of the document, in its order.
fn find(document: &Document) -> Result<Vec<Found<'_>>, Refusal> {
    let Some(paths) = get(&document.root, "paths") else {
        return Err(document.problem(document.root.at, "paths", "the key `paths` is missing"));
    };
    let mut all = Vec::new();
    for entry in entries(paths).iter().filter(|entry| !entry.key.starts_with("x-")) {
        let key = super::node::joined("paths", &entry.key);
        let refuse = |(at, why): (Location, String)| document.problem(at, &key, why);
        let item = document.follow(&entry.value).map_err(refuse)?;
        for (word, method) in METHODS {
            let Some(node) = get(item, word) else { continue };
            if all.len() >= MOST_OPERATIONS {
                return Err(document.problem(
                    entry.at,
                    &key,
                    format!("the document has more than {MOST_OPERATIONS} operations"),
                ));
            }
            let id = text(node, "operationId")
                .map(str::trim)
                .filter(|id| !id.is_empty());
            all.push(Found {
                id: id.map_or_else(|| name::derived(word, &entry.key), str::to_owned),
                method,
                path: &entry.key,
                item,
                node,
                key: format!("{key}.{word}"),
            });
        }
    }
    Ok(all)
}

fn title(document: &Document) -> String {
    let info = get(&document.root, "info");
    let of = |key| info.and_then(|info| text(info, key)).unwrap_or_default();
    shown(format!("{} {}", of("title"), of("version")).trim())
}

/// The address of the first server, its variables at their defaults.
fn server(document: &Document) -> Result<Template, String> {
    let servers = document::items(get(&document.root, "servers"));
    let Some(server) = servers.first() else {
        return Err("the document names no server".to_owned());
    };
    let mut url = text(server, "url").unwrap_or_default().to_owned();
    let variables = get(server, "variables").map(entries).unwrap_or_default();
    for variable in variables.iter().take(MOST_VARIABLES) {
        if url.len() > super::template::MAX_ADDRESS {
            return Err("the address of its server is too long".to_owned());
        }
        let default = text(&variable.value, "default");
        if let Some(default) = default.filter(|default| default.len() <= LONGEST_VARIABLE) {
            url = url.replace(&format!("{{{}}}", variable.key), default);
        }
    }
    let template = url
        .parse::<Template>()
        .map_err(|why| format!("its server cannot be used: {why}"))?;
    if template.slots().next().is_some() {
        return Err("the address of its server has variables without a default".to_owned());
    }
    Ok(template)
}
