//! One operation of a document as a tool: its arguments, and where each of them goes.
//!
//! Arguments are flat: parameters and the members of the body stand side by side. Only where two would have one name they are
//! grouped by place: `path`, `query`, `header`, `body`. What cannot be sent exactly is refused, never guessed.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use super::document::{Document, Refusal, entries, get, is_true, items, text};
use super::name;
use super::schema::{Flattening, LONGEST_NOTE, MOST_BYTES, may_be, prose};
use crate::config::http_tool::{ArgPath, BadHeader, Body, Place, Placed, ToolMethod, argument_header};
use crate::config::problem::Location;
use crate::config::shown::shown;
use crate::config::template::Template;
use crate::config::yaml::{Node, Value};

/// The longest description of a tool, in characters.
const LONGEST_DESCRIPTION: usize = 1_000;
/// The most parameters of one operation.
const MOST_PARAMETERS: usize = 200;

/// An operation that can be a tool.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Its id in the document, or one made of method and path.
    pub id: String,
    /// The method.
    pub method: ToolMethod,
    /// The path below the server's address.
    pub path: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub parameters: Map<String, Json>,
    /// Where arguments go.
    pub placed: Vec<Placed>,
    /// What the body is.
    pub body: Body,
    /// Whether a schema contained itself and was cut.
    pub is_cut: bool,
    /// Where it stands.
    pub at: Location,
    /// The path of its key.
    pub key: String,
}

/// An operation as it stands in the document.
pub(super) struct Found<'d> {
    pub(super) id: String,
    pub(super) method: ToolMethod,
    pub(super) path: &'d str,
    pub(super) item: &'d Node,
    pub(super) node: &'d Node,
    pub(super) key: String,
}

/// A parameter that becomes an argument.
struct Parameter {
    place: Place,
    name: String,
    argument: String,
    schema: Json,
    required: bool,
}

/// What becomes of the request body.
enum Content {
    Nothing,
    /// The members of the object are arguments.
    Members(Map<String, Json>),
    /// The body is one argument.
    Whole {
        schema: Json,
        required: bool,
    },
}

/// Reads an operation. `fixed` are the headers that the operator sets, in lower case: no argument sets them.
pub(super) fn read(
    document: &Document,
    found: &Found<'_>,
    fixed: &BTreeSet<String>,
) -> Result<Operation, Refusal> {
    let mut reading = Reading {
        document,
        found,
        fixed,
        schemas: Flattening::new(document, &found.key),
    };
    for node in [found.item, found.node] {
        if let Some(servers) = get(node, "servers") {
            return Err(reading.problem(servers.at, "it names servers of its own, which are not followed"));
        }
    }
    let parameters = reading.parameters()?;
    let content = reading.content()?;
    let is_cut = reading.schemas.recursive;
    let (schema, mut placed, body) = arranged(parameters, content);
    placed.sort_by_key(|one| one.place);
    let size = serde_json::to_vec(&schema).map_or(usize::MAX, |bytes| bytes.len());
    if size > MOST_BYTES {
        return Err(reading.problem(
            found.node.at,
            format!("its arguments need more than {MOST_BYTES} bytes of schema"),
        ));
    }
    Ok(Operation {
        id: found.id.clone(),
        method: found.method,
        path: found.path.to_owned(),
        description: description(found),
        parameters: schema,
        placed,
        body,
        is_cut,
        at: found.node.at,
        key: found.key.clone(),
    })
}

struct Reading<'d> {
    document: &'d Document,
    found: &'d Found<'d>,
    fixed: &'d BTreeSet<String>,
    schemas: Flattening<'d>,
}

impl<'d> Reading<'d> {
    fn problem(&self, at: Location, message: impl Into<String>) -> Refusal {
        self.document.problem(at, &self.found.key, message)
    }

    fn follow(&self, node: &'d Node) -> Result<&'d Node, Refusal> {
        self.document
            .follow(node)
            .map_err(|(at, why)| self.problem(at, why))
    }

    /// Parameters of the path and of the operation; the latter stand in for the former (section 4.8.10.1).
    fn parameters(&mut self) -> Result<Vec<Parameter>, Refusal> {
        let lists = [self.found.item, self.found.node].map(|node| items(get(node, "parameters")));
        let mut nodes: Vec<(&str, &str, &Node)> = Vec::new();
        for node in lists.into_iter().flatten() {
            let node = self.follow(node)?;
            let (Some(place), Some(name)) = (text(node, "in"), text(node, "name")) else {
                return Err(self.problem(node.at, "a parameter without `in` and `name`"));
            };
            nodes.retain(|(other, named, _)| (*other, *named) != (place, name));
            nodes.push((place, name, node));
        }
        if nodes.len() > MOST_PARAMETERS {
            return Err(self.problem(
                self.found.node.at,
                format!("more than {MOST_PARAMETERS} parameters"),
            ));
        }
        let mut parameters = Vec::new();
        for (place, name, node) in nodes {
            parameters.extend(self.parameter(place, name, node)?);
        }
        self.slots(&parameters)?;
        let mut seen = BTreeSet::new();
        if let Some(twice) = parameters
            .iter()
            .find(|one| !seen.insert((one.place, &one.argument)))
        {
            return Err(self.problem(
                self.found.node.at,
                format!(
                    "two parameters would be the argument `{}`",
                    shown(&twice.argument)
                ),
            ));
        }
        Ok(parameters)
    }

    fn parameter(&mut self, place: &str, name: &str, node: &'d Node) -> Result<Option<Parameter>, Refusal> {
        let refuse = |reading: &Self, why: &str| {
            Err(reading.problem(node.at, format!("the parameter `{}` {why}", shown(name))))
        };
        let place = match place {
            "path" => Place::Path,
            "query" => Place::Query,
            "header" => Place::Header,
            "cookie" => return refuse(self, "goes into a cookie, which no tool sets"),
            _ => return refuse(self, "goes to a place that is not known"),
        };
        if place == Place::Header {
            let lower = name.to_ascii_lowercase();
            let set = ["accept", "content-type", "authorization", "idempotency-key"];
            // Set by Gatepost or the operator, or left to other parts of a document (section 4.8.12.2.1).
            if set.contains(&lower.as_str()) || self.fixed.contains(&lower) {
                return Ok(None);
            }
            match argument_header(name) {
                Ok(()) => {}
                Err(BadHeader::Name) => return refuse(self, "cannot be the name of a header"),
                Err(BadHeader::Ours) => return refuse(self, "is a header that no argument may set"),
            }
        }
        let Some(schema) = get(node, "schema") else {
            return refuse(
                self,
                "has no `schema`: parameters with a `content` are not imported",
            );
        };
        let mut schema = self.schemas.schema(schema)?;
        let default = if place == Place::Query { "form" } else { "simple" };
        let style = text(node, "style").unwrap_or(default);
        if style != default {
            return refuse(
                self,
                &format!("has the style `{}`, which is not imported", shown(style)),
            );
        }
        let is_compound = may_be(&schema, "array") || may_be(&schema, "object");
        let explode = get(node, "explode").map(|explode| explode.value == Value::Bool(true));
        if is_compound && place != Place::Query {
            return refuse(self, "takes a list or an object, which only the query does");
        }
        if is_compound && explode == Some(false) {
            return refuse(
                self,
                "takes a list or an object that is not exploded, which is not imported",
            );
        }
        let argument = name::argument(name);
        if argument.is_empty() {
            return refuse(self, "has a name that no argument can have");
        }
        if let (Json::Object(schema), Some(note)) = (&mut schema, text(node, "description")) {
            let told = prose(note, LONGEST_NOTE);
            if !told.is_empty() {
                schema.insert("description".to_owned(), Json::String(told));
            }
        }
        Ok(Some(Parameter {
            place,
            name: name.to_owned(),
            argument,
            schema,
            required: place == Place::Path || is_true(node, "required"),
        }))
    }

    /// The path and its parameters name the same slots.
    fn slots(&self, parameters: &[Parameter]) -> Result<(), Refusal> {
        let below = "https://server.invalid/".parse::<Template>();
        let template = below
            .and_then(|server| server.joined(self.found.path))
            .map_err(|why| self.problem(self.found.node.at, format!("its path: {why}")))?;
        let slots: BTreeSet<&str> = template.slots().collect();
        let named = parameters.iter().filter(|one| one.place == Place::Path);
        let named: BTreeSet<&str> = named.map(|one| one.name.as_str()).collect();
        if slots != named {
            return Err(self.problem(
                self.found.node.at,
                "the slots of its path and its parameters in the path are not the same",
            ));
        }
        Ok(())
    }

    fn content(&mut self) -> Result<Content, Refusal> {
        let Some(body) = get(self.found.node, "requestBody") else {
            return Ok(Content::Nothing);
        };
        // Such a body has no meaning and is to be ignored (section 4.8.10.1).
        if self.found.method.is_safe() {
            return Ok(Content::Nothing);
        }
        let body = self.follow(body)?;
        let required = is_true(body, "required");
        let content = get(body, "content").map(entries).unwrap_or_default();
        let is_json = |media: &str| {
            let essence = media.split(';').next().unwrap_or_default().trim();
            essence.eq_ignore_ascii_case("application/json")
        };
        let Some(media) = content.iter().find(|entry| is_json(&entry.key)) else {
            return Err(self.problem(body.at, "its body is not application/json"));
        };
        let media = self.follow(&media.value)?;
        let schema = match get(media, "schema") {
            Some(schema) => self.schemas.schema(schema)?,
            None => json!({}),
        };
        Ok(match schema {
            Json::Object(members) if required && is_plain_object(&members) => Content::Members(members),
            schema => Content::Whole { schema, required },
        })
    }
}

/// Whether an object is described by its members alone, so that they can stand among other arguments.
fn is_plain_object(schema: &Map<String, Json>) -> bool {
    let known = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "description",
    ];
    schema.get("type").is_some_and(|kind| kind == "object")
        && schema.get("properties").is_some_and(Json::is_object)
        && schema.get("additionalProperties").is_none_or(Json::is_boolean)
        && schema.keys().all(|key| known.contains(&key.as_str()))
}

fn description(found: &Found<'_>) -> String {
    let parts = ["summary", "description"].map(|key| text(found.node, key).unwrap_or_default());
    let mut parts: Vec<&str> = parts.into_iter().map(str::trim).collect();
    parts.retain(|part| !part.is_empty());
    parts.dedup();
    let prose = prose(&parts.join("\n"), LONGEST_DESCRIPTION);
    if prose.is_empty() {
        format!("{} {}", found.method.as_str(), found.path)
    } else {
        prose
    }
}

/// The schema of all arguments, and their places.
fn arranged(parameters: Vec<Parameter>, content: Content) -> (Map<String, Json>, Vec<Placed>, Body) {
    let mut seen = BTreeSet::new();
    let own: Vec<&str> = match &content {
        Content::Nothing => Vec::new(),
        Content::Members(members) => properties(members).map(|(name, _)| name.as_str()).collect(),
        Content::Whole { .. } => vec!["body"],
    };
    let mut all = parameters.iter().map(|one| one.argument.as_str()).chain(own);
    let collide = all.any(|name| !seen.insert(name.to_owned()));
    if collide {
        grouped(parameters, content)
    } else {
        flat(parameters, content)
    }
}

fn properties(schema: &Map<String, Json>) -> impl Iterator<Item = (&String, &Json)> {
    let properties = schema.get("properties").and_then(Json::as_object);
    properties.into_iter().flatten()
}

fn flat(parameters: Vec<Parameter>, content: Content) -> (Map<String, Json>, Vec<Placed>, Body) {
    let mut object = Object::default();
    let mut placed = Vec::new();
    for one in parameters {
        placed.push(Placed {
            place: one.place,
            name: one.name,
            arg: ArgPath::top(one.argument.as_str()),
        });
        object.add(one.argument, one.schema, one.required);
    }
    let body = match content {
        Content::Nothing => Body::Nothing,
        Content::Members(members) => {
            let required: Vec<&str> = members
                .get("required")
                .and_then(Json::as_array)
                .into_iter()
                .flatten()
                .filter_map(Json::as_str)
                .collect();
            for (name, schema) in properties(&members) {
                object.add(name.clone(), schema.clone(), required.contains(&name.as_str()));
            }
            object.is_open = members.get("additionalProperties") != Some(&Json::Bool(false));
            Body::Rest
        }
        Content::Whole { schema, required } => {
            object.add("body".to_owned(), schema, required);
            Body::Member(ArgPath::top("body"))
        }
    };
    (object.schema(), placed, body)
}

fn grouped(parameters: Vec<Parameter>, content: Content) -> (Map<String, Json>, Vec<Placed>, Body) {
    let mut groups: Vec<(&str, Object)> = Vec::new();
    let mut placed = Vec::new();
    for one in parameters {
        let word = match one.place {
            Place::Path => "path",
            Place::Query => "query",
            Place::Header => "header",
        };
        if !groups.iter().any(|(other, _)| *other == word) {
            groups.push((word, Object::default()));
        }
        placed.push(Placed {
            place: one.place,
            arg: ArgPath::below(word, one.argument.as_str()),
            name: one.name,
        });
        if let Some((_, group)) = groups.iter_mut().find(|(other, _)| *other == word) {
            group.add(one.argument, one.schema, one.required);
        }
    }
    let mut object = Object::default();
    for (word, group) in groups {
        let required = !group.required.is_empty();
        object.add(word.to_owned(), Json::Object(group.schema()), required);
    }
    let (schema, required) = match content {
        Content::Nothing => return (object.schema(), placed, Body::Nothing),
        Content::Members(members) => (Json::Object(members), true),
        Content::Whole { schema, required } => (schema, required),
    };
    object.add("body".to_owned(), schema, required);
    (object.schema(), placed, Body::Member(ArgPath::top("body")))
}

/// The schema of an object being put together.
#[derive(Default)]
struct Object {
    properties: Map<String, Json>,
    required: Vec<String>,
    /// Whether members that are not described may stand there.
    is_open: bool,
}

impl Object {
    fn add(&mut self, name: String, schema: Json, required: bool) {
        if required {
            self.required.push(name.clone());
        }
        self.properties.insert(name, schema);
    }

    fn schema(self) -> Map<String, Json> {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Json::Object(self.properties));
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), json!(self.required));
        }
        if !self.is_open {
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
        schema
    }
}
