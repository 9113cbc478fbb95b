//! The entry `openapi` of `agent.tools`: which operations of which document become tools, and under which terms.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use globset::{Glob, GlobMatcher};

use super::{Import, Operation, load, tool_name};
use crate::config::agent::{ToolConfig, ToolHead, decode_output_limit, decode_tool_timeout};
use crate::config::context::Complaint;
use crate::config::http_tool::{HttpTool, ToolMethod, decode_headers, read_template};
use crate::config::node::{MapReader, Reader};
use crate::config::problem::ProblemKind;
use crate::config::shown::shown;
use crate::config::template::Template;
use crate::config::yaml::Value;

/// Which calls of imported operations need a person, whatever the policy says.
#[derive(Debug, Clone, Default)]
pub enum Confirm {
    /// Those whose method may change something: all but GET, HEAD and OPTIONS.
    #[default]
    ByMethod,
    /// All, or none.
    Always(bool),
    /// By name; those that no name fits, by their method.
    Named(Vec<(ByName, bool)>),
}

/// A name, or a glob over names, of operations.
#[derive(Debug, Clone)]
pub struct ByName {
    text: String,
    glob: GlobMatcher,
}

impl ByName {
    /// Reads a name or glob.
    pub fn read(text: &str) -> Option<Self> {
        if text.is_empty() || text.chars().count() > 256 {
            return None;
        }
        Some(Self {
            text: text.to_owned(),
            glob: Glob::new(text).ok()?.compile_matcher(),
        })
    }

    /// Whether it fits the id of an operation.
    pub fn fits(&self, id: &str) -> bool {
        self.text == id || self.glob.is_match(id)
    }
}

impl Confirm {
    /// Whether calls of this operation need a person. A name in full says more than a glob; of several globs the strictest
    /// voice counts.
    pub fn of(&self, id: &str, method: ToolMethod) -> bool {
        match self {
            Self::ByMethod => !method.is_safe(),
            Self::Always(always) => *always,
            Self::Named(named) => {
                let exact = named.iter().find(|(name, _)| name.text == id);
                let mut fitting = named.iter().filter(|(name, _)| name.fits(id)).peekable();
                match (exact, fitting.peek()) {
                    (Some((_, needs)), _) => *needs,
                    (None, None) => !method.is_safe(),
                    (None, Some(_)) => fitting.any(|(_, needs)| *needs),
                }
            }
        }
    }
}

/// What the entry says.
struct Wanted {
    name: String,
    document: PathBuf,
    base: Option<Template>,
    include: Vec<ByName>,
    exclude: Vec<ByName>,
    headers: std::collections::BTreeMap<String, crate::config::Secret>,
    confirm: Confirm,
    timeout: Duration,
    output_limit: usize,
}

impl Wanted {
    fn takes(&self, id: &str) -> bool {
        let any = |names: &[ByName]| names.iter().any(|name| name.fits(id));
        (self.include.is_empty() || any(&self.include)) && !any(&self.exclude)
    }
}

/// Reads the entry and the document that it names; its tools, in the order of the document.
pub(in crate::config) fn decode(reader: &Reader<'_>) -> Option<Vec<ToolConfig>> {
    let before = reader.context().count();
    let mut map = reader.map()?;
    let wanted = decode_wanted(&mut map);
    map.finish();
    let wanted = wanted.filter(|_| reader.context().count() == before)?;
    let fixed: BTreeSet<String> = wanted.headers.keys().cloned().collect();
    // Every id is looked at, so that a name that fits none is found.
    let mut ids = Vec::new();
    let import = {
        let seen = std::cell::RefCell::new(&mut ids);
        load(&wanted.document, &fixed, &|id| {
            seen.borrow_mut().push(id.to_owned());
            wanted.takes(id)
        })
    };
    let import = match import {
        Ok(import) => import,
        Err(problems) => {
            reader.context().pass_on(problems);
            return None;
        }
    };
    unused(reader, &wanted, &ids);
    for refused in &import.refused {
        let mut problem = refused.problem.clone();
        problem.message = format!(
            "the operation `{}` cannot be a tool: {}",
            shown(&refused.id),
            problem.message
        );
        problem.remedy =
            Some("mend the document, or name the operation under `exclude` of the entry".to_owned());
        reader.context().pass_on(vec![problem]);
    }
    let base = base(reader, &wanted, &import)?;
    let tools = import.operations.iter().filter_map(|operation| {
        let tool = tool(&wanted, &base, operation);
        if tool.is_none() {
            reader.complain(
                Complaint::new(
                    ProblemKind::BadValue,
                    format!("the operation `{}` has no usable address", shown(&operation.id)),
                )
                .remedy("mend the document, or name the operation under `exclude`"),
            );
        }
        tool
    });
    let tools: Vec<_> = tools.collect();
    (reader.context().count() == before).then_some(tools)
}

/// Where everything is sent: what the entry says, else the document's first server.
fn base(reader: &Reader<'_>, wanted: &Wanted, import: &Import) -> Option<Template> {
    if let Some(base) = &wanted.base {
        return Some(base.clone());
    }
    let refuse = |found: String| {
        reader.complain(
            Complaint::new(ProblemKind::BadValue, found)
                .remedy("name the address that all operations stand below as `base_url`"),
        );
    };
    match &import.server {
        Ok(server)
            if server.origin().scheme() == "http"
                && !crate::config::address::is_loopback(server.origin()) =>
        {
            refuse("the document's server is plain http on another machine".to_owned());
            None
        }
        Ok(server) => Some(server.clone()),
        Err(why) => {
            refuse(why.clone());
            None
        }
    }
}

/// An imported operation as an entry of its own would be.
fn tool(wanted: &Wanted, base: &Template, operation: &Operation) -> Option<ToolConfig> {
    let head = ToolHead {
        name: tool_name(&wanted.name, &operation.id),
        description: operation.description.clone(),
        parameters: operation.parameters.clone(),
        requires_confirmation: wanted.confirm.of(&operation.id, operation.method),
        idempotent: operation.method.is_safe(),
        timeout: wanted.timeout,
        output_limit: wanted.output_limit,
    };
    let http = HttpTool {
        method: operation.method,
        address: base.joined(&operation.path).ok()?,
        headers: wanted.headers.clone(),
        placed: operation.placed.clone(),
        body: operation.body.clone(),
    };
    Some(ToolConfig::Http(head, http))
}

/// A name that fits nothing is a slip of the pen, and under `requires_confirmation` a dangerous one.
fn unused(reader: &Reader<'_>, wanted: &Wanted, ids: &[String]) {
    let confirm = match &wanted.confirm {
        Confirm::Named(named) => named.iter().map(|(name, _)| name).collect(),
        Confirm::ByMethod | Confirm::Always(_) => Vec::new(),
    };
    let all = [
        ("include", wanted.include.iter().collect()),
        ("exclude", wanted.exclude.iter().collect()),
        ("requires_confirmation", confirm),
    ];
    for (key, names) in all {
        for name in names {
            if !ids.iter().any(|id| name.fits(id)) {
                let known: Vec<&str> = ids.iter().map(String::as_str).collect();
                let remedy = crate::config::node::did_you_mean(&name.text, &known)
                    .unwrap_or_else(|| "`gatepost import openapi FILE` lists the operations".to_owned());
                reader.complain(
                    Complaint::new(
                        ProblemKind::UnknownName,
                        format!("`{}` under {key} fits no operation", shown(&name.text)),
                    )
                    .remedy(remedy),
                );
            }
        }
    }
}

fn decode_wanted(map: &mut MapReader<'_>) -> Option<Wanted> {
    let name = map.required("name").and_then(|name| decode_name(&name));
    let document = map.required("document").and_then(|path| path.path_value());
    let base = map
        .optional("base_url")
        .map_or(Some(None), |url| decode_base(&url).map(Some));
    let include = map
        .optional("include")
        .map_or_else(|| Some(Vec::new()), |list| decode_names(&list));
    let exclude = map
        .optional("exclude")
        .map_or_else(|| Some(Vec::new()), |list| decode_names(&list));
    let headers = map.optional("headers").map_or_else(
        || Some(std::collections::BTreeMap::new()),
        |headers| decode_headers(&headers),
    );
    let confirm = map
        .optional("requires_confirmation")
        .map_or_else(|| Some(Confirm::default()), |confirm| decode_confirm(&confirm));
    let timeout = decode_tool_timeout(map);
    let output_limit = decode_output_limit(map);
    Some(Wanted {
        name: name?,
        document: document?,
        base: base?,
        include: include?,
        exclude: exclude?,
        headers: headers?,
        confirm: confirm?,
        timeout: timeout?,
        output_limit: output_limit?,
    })
}

/// Whether a text can stand before the two underscores of a tool's name.
pub fn is_connector(name: &str) -> bool {
    (1..=32).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !name.ends_with('_')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && !name.contains("__")
        && name != "mcp"
}

fn decode_name(reader: &Reader<'_>) -> Option<String> {
    let text = reader.name()?;
    if !is_connector(&text) {
        reader.bad_value(
            "at most 32 letters, digits, - and single _, other than mcp",
            "choose another name",
        );
        return None;
    }
    Some(text)
}

fn decode_base(reader: &Reader<'_>) -> Option<Template> {
    let template = read_template(reader, false)?;
    if template.slots().next().is_some() {
        reader.complain(
            Complaint::new(ProblemKind::BadValue, "the address has a slot")
                .remedy("write the address without braces"),
        );
        return None;
    }
    Some(template)
}

fn decode_names(reader: &Reader<'_>) -> Option<Vec<ByName>> {
    let mut names = Vec::new();
    for item in reader.list()? {
        names.push(decode_by_name(&item, &item.text()?)?);
    }
    if names.is_empty() {
        reader.bad_value(
            "a list with at least one item",
            "name at least one, or remove the key",
        );
        return None;
    }
    Some(names)
}

fn decode_by_name(reader: &Reader<'_>, text: &str) -> Option<ByName> {
    let name = ByName::read(text);
    if name.is_none() {
        reader.complain(
            Complaint::new(ProblemKind::BadValue, "found what is no name and no glob")
                .accepted("an operationId, or a glob such as list*")
                .remedy("close the bracket or brace, or escape it"),
        );
    }
    name
}

fn decode_confirm(reader: &Reader<'_>) -> Option<Confirm> {
    if let Value::Bool(always) = reader.value() {
        return Some(Confirm::Always(*always));
    }
    if !matches!(reader.value(), Value::Map(_)) {
        reader.bad_value(
            "true, false, or a mapping of operations to one of them",
            "choose one of these",
        );
        return None;
    }
    let mut named = Vec::new();
    for (name, needs) in reader.names()? {
        named.push((decode_by_name(&needs, name)?, needs.boolean()?));
    }
    Some(Confirm::Named(named))
}
