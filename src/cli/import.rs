//! `gatepost import openapi FILE`: the operations of a document as entries of `agent.tools`, to be pasted and edited.
//!
//! Nothing is fetched and nothing is started. What cannot be a tool is named in a comment, with the reason.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::print;
use super::stop::{Done, Stop};
use crate::config::http_tool::{Body, Place, Placed};
use crate::config::openapi::{self, ByName, Confirm, Import, Operation};
use crate::config::template::Template;

mod yaml;

/// Arguments of `gatepost import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(subcommand)]
    from: From,
}

#[derive(Debug, Subcommand)]
enum From {
    /// An OpenAPI document, version 3.0 or 3.1, YAML or JSON
    #[command(
        after_help = "Examples:\n  gatepost import openapi shop.yaml --name shop\n  gatepost import openapi shop.json --name shop --include 'list*' --include getOrder\n  gatepost import openapi shop.json --exclude 'delete*' --base-url https://shop.example/v1 > tools.yaml\n\nNothing is fetched: FILE lies here. What is printed goes under `agent.tools`; docs/guides/openapi.md explains it."
    )]
    Openapi(OpenapiArgs),
}

#[derive(Debug, Args)]
struct OpenapiArgs {
    /// The document
    file: PathBuf,
    /// What stands before the two underscores of each tool's name
    #[arg(long, default_value = "api", value_parser = connector)]
    name: String,
    /// The address that all operations stand below; left out, the document's first server
    #[arg(long, value_name = "URL")]
    base_url: Option<Template>,
    /// Only operations of this id; a glob; may be given several times
    #[arg(long, value_name = "GLOB", value_parser = by_name)]
    include: Vec<ByName>,
    /// No operation of this id; a glob; may be given several times
    #[arg(long, value_name = "GLOB", value_parser = by_name)]
    exclude: Vec<ByName>,
}

fn connector(text: &str) -> Result<String, String> {
    if openapi::entry::is_connector(text) {
        Ok(text.to_owned())
    } else {
        Err("at most 32 letters, digits, - and single _, other than mcp".to_owned())
    }
}

fn by_name(text: &str) -> Result<ByName, String> {
    ByName::read(text).ok_or_else(|| "neither an operationId nor a glob".to_owned())
}

/// Prints the entries.
pub fn run(args: ImportArgs, as_json: bool) -> Done {
    let From::Openapi(args) = args.from;
    let any = |names: &[ByName], id: &str| names.iter().any(|name| name.fits(id));
    let wanted = |id: &str| (args.include.is_empty() || any(&args.include, id)) && !any(&args.exclude, id);
    let import = openapi::load(&args.file, &BTreeSet::new(), &wanted).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Stop::failed(problems.join("\n"))
    })?;
    let base = match (&args.base_url, &import.server) {
        (Some(base), _) => base.clone(),
        (None, Ok(server)) => server.clone(),
        (None, Err(why)) => {
            return Err(Stop::failed(format!(
                "{why}; name the address that all operations stand below with --base-url"
            )));
        }
    };
    if as_json {
        print::json(&as_value(&import, &args.name, &base));
    } else {
        print::line(&as_yaml(&import, &args.name, &base));
    }
    Ok(())
}

/// The entries, and what could not be one.
fn as_value(import: &Import, name: &str, base: &Template) -> Value {
    let tools = import.operations.iter().filter_map(|one| entry(one, name, base));
    let refused = import
        .refused
        .iter()
        .map(|one| json!({"operation": one.id, "key": one.problem.key, "why": one.problem.message}));
    json!({
        "title": import.title,
        "tools": tools.map(|parts| Value::Object(parts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())).collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
    })
}

/// The entries as YAML, to be put below `tools:` as they are.
fn as_yaml(import: &Import, name: &str, base: &Template) -> String {
    let mut out = format!(
        "# {} of {}: entries for agent.tools. Read them before use: descriptions go to the model,\n# and requires_confirmation says which calls need a person whatever the policy says.\n",
        count(import.operations.len()),
        yaml::comment(&import.title),
    );
    for operation in &import.operations {
        let Some(parts) = entry(operation, name, base) else {
            continue;
        };
        let cut = if operation.is_cut {
            "; a schema that contains itself is cut"
        } else {
            ""
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "\n# {} {}{cut}",
            operation.method.as_str(),
            yaml::comment(&operation.path)
        );
        out.push_str(&yaml::item(&parts));
    }
    for refused in &import.refused {
        let _ = writeln!(
            out,
            "\n# left out: {} ({}): {}",
            yaml::comment(&refused.id),
            yaml::comment(&refused.problem.key),
            yaml::comment(&refused.problem.message)
        );
    }
    out.trim_end().to_owned()
}

fn count(operations: usize) -> String {
    format!("{operations} operation{}", if operations == 1 { "" } else { "s" })
}

/// One entry, its keys in the order in which people read them.
fn entry(operation: &Operation, name: &str, base: &Template) -> Option<Vec<(&'static str, Value)>> {
    let mut http = vec![
        ("method", json!(operation.method.as_str())),
        ("url", json!(base.joined(&operation.path).ok()?.to_string())),
    ];
    for (key, place) in [
        ("path", Place::Path),
        ("query", Place::Query),
        ("header_args", Place::Header),
    ] {
        let placed = operation.placed.iter().filter(|one| one.place == place);
        // A slot takes the argument of its name without being told.
        let placed = placed.filter(|one| place != Place::Path || !is_plain(one));
        let placed: Vec<Value> = placed
            .map(|one| {
                if is_plain(one) {
                    json!(one.name)
                } else {
                    json!({"name": one.name, "arg": one.arg.pointer()})
                }
            })
            .collect();
        if !placed.is_empty() {
            http.push((key, json!(placed)));
        }
    }
    match &operation.body {
        Body::Nothing if operation.method.is_safe() => {}
        Body::Nothing => http.push(("body", json!("none"))),
        Body::Rest => http.push(("body", json!("rest"))),
        Body::Member(arg) => http.push(("body", json!(arg.pointer()))),
    }
    let http: Map<String, Value> = http
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    let needs_person = Confirm::ByMethod.of(&operation.id, operation.method);
    let mut parts = vec![
        ("name", json!(openapi::tool_name(name, &operation.id))),
        ("description", json!(operation.description)),
        ("parameters", Value::Object(operation.parameters.clone())),
        ("http", Value::Object(http)),
        ("requires_confirmation", json!(needs_person)),
    ];
    if operation.method.is_safe() {
        parts.push(("idempotent", json!(true)));
    }
    Some(parts)
}

/// Whether the argument has the name of the place, so that the name alone says it.
fn is_plain(one: &Placed) -> bool {
    one.arg.second.is_none() && one.arg.first == one.name
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
