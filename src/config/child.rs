//! Child processes as the configuration names them: hooks, command tools, MCP servers. It starts none.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use super::{
    context::Complaint,
    node::{MapReader, Reader},
    problem::ProblemKind,
    secret::Secret,
    yaml::Value,
};

/// A child process: no shell, an empty environment plus what stands here.
#[derive(Debug, Clone)]
pub struct ChildConfig {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it runs: the folder of the file unless `dir` says otherwise.
    pub dir: PathBuf,
    /// Its whole environment.
    pub env: BTreeMap<String, Secret>,
}

impl ChildConfig {
    /// Reads `command`, `dir` and `env` of a mapping.
    pub(super) fn decode(map: &mut MapReader<'_>) -> Option<Self> {
        let command = map.required("command").and_then(|command| decode_words(&command));
        let dir = map.optional("dir").map_or_else(
            || Some(map.reader().context().resolve("")),
            |dir| dir.path_value(),
        );
        let env = map
            .optional("env")
            .map_or_else(|| Some(BTreeMap::new()), |env| decode_env(&env));
        let (program, args) = command?;
        Some(Self {
            program,
            args,
            dir: dir?,
            env: env?,
        })
    }
}

/// The program and its arguments, as a list: no shell takes them apart.
fn decode_words(reader: &Reader<'_>) -> Option<(String, Vec<String>)> {
    let items = reader.list()?;
    let mut words = Vec::with_capacity(items.len());
    for item in &items {
        match item.value() {
            Value::Text(word) if !word.contains('\0') => words.push(word.clone()),
            Value::Number(word) => words.push(word.clone()),
            _ => {
                item.bad_value("text", "put the word in quotes");
                return None;
            }
        }
    }
    if words.first().is_none_or(String::is_empty) {
        reader.complain(
            Complaint::new(ProblemKind::BadValue, "names no program")
                .accepted("a list such as [python3, review.py]")
                .remedy("name the program and its arguments, one item each"),
        );
        return None;
    }
    let program = words.remove(0);
    Some((program, words))
}

fn decode_env(reader: &Reader<'_>) -> Option<BTreeMap<String, Secret>> {
    let mut env = BTreeMap::new();
    for (name, value) in reader.names()? {
        if name.is_empty() || name.contains(['=', '\0']) {
            value.complain(
                Complaint::new(
                    ProblemKind::BadValue,
                    "found what cannot be the name of an environment variable",
                )
                .accepted("letters, digits and _")
                .remedy("rename it"),
            );
            continue;
        }
        env.insert(name.to_owned(), value.env_value()?);
    }
    Some(env)
}

/// How long a child or a request may take.
pub(super) fn decode_timeout(reader: &Reader<'_>) -> Option<Duration> {
    reader.span(Duration::from_millis(1), Duration::from_hours(24))
}
