//! Pieces: the plans of jobs, read from a folder of YAML files with the reader of the configuration, so that every problem is
//! told with file, line and key. [`lint`] is what can be said of a piece that can be used all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;

use crate::config::context::{Complaint, Context};
use crate::config::hook::HooksConfig;
use crate::config::node::{Reader, did_you_mean};
use crate::config::shown::shown_path;
use crate::config::{Location, Problem, ProblemKind, Warning, yaml};
use crate::hook;

use super::sentinel::Sentinel;

/// The sentinel that a rule may name.
pub const WAIT_SUBTASKS: &str = Sentinel::WaitSubtasks.as_str();
mod lint;

/// The most files in a folder.
const MAX_FILES: usize = 1_000;

/// All pieces, by name.
#[derive(Debug, Clone, Default)]
pub struct Pieces {
    all: BTreeMap<String, Piece>,
    warnings: Vec<Warning>,
}

/// A plan.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Its name.
    pub name: String,
    /// What it is for, for people and the model.
    pub description: Option<String>,
    /// Where it begins.
    pub initial_movement: String,
    /// How many movements a run may go through, the first included.
    pub max_movements: u32,
    /// The pieces that its sub-tasks may play; those that the job's token may submit, when it lists none.
    pub pieces: Option<BTreeSet<String>>,
    /// Its stages, names unique.
    pub movements: Vec<Movement>,
    /// Hooks of its own, beside those for every agent.
    pub hooks: Option<HooksConfig>,
}

/// One stage of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Movement {
    /// Its name.
    pub name: String,
    /// What the model shall do.
    pub instruction: String,
    /// As whom.
    pub persona: Option<String>,
    /// The tools it may call: names, or the beginning of names with `*` behind it. Empty means none.
    pub allowed_tools: Vec<String>,
    /// Which movement may follow.
    pub rules: Vec<Rule>,
    /// Which follows when no rule does, and where the run goes on after a rule let it wait for sub-tasks.
    pub default_next: Option<String>,
    /// How often it may be entered again; the house's limit, when it says nothing.
    pub max_revisits: Option<u32>,
}

/// One way on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// When, in words for the model.
    pub condition: String,
    /// The movement that follows, or [`WAIT_SUBTASKS`].
    pub next: String,
}

impl Pieces {
    /// Reads a folder. `tools` are the names of the tools there are.
    ///
    /// # Errors
    /// Every problem of every file.
    pub fn load(folder: &Path, tools: &BTreeSet<String>) -> Result<Self, Vec<Problem>> {
        let unreadable = |path: &Path, what: String| {
            Complaint::new(ProblemKind::Unreadable, what)
                .remedy("name a readable folder of YAML files in agent.pieces")
                .at(&shown_path(path), None, "")
        };
        let entries = std::fs::read_dir(folder)
            .map_err(|error| vec![unreadable(folder, format!("cannot be read: {error}"))])?;
        let mut files = Vec::new();
        for entry in entries {
            let path = entry
                .map_err(|error| vec![unreadable(folder, format!("cannot be read: {error}"))])?
                .path();
            let is_yaml = path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml");
            if is_yaml {
                files.push(path);
            }
        }
        if files.len() > MAX_FILES {
            return Err(vec![unreadable(
                folder,
                format!("holds more than {MAX_FILES} pieces"),
            )]);
        }
        files.sort();
        let mut pieces = Self::default();
        let mut labels = BTreeMap::new();
        let mut problems = Vec::new();
        for path in &files {
            let label = shown_path(path);
            let text = match read_text(path) {
                Ok(text) => text,
                Err(error) => {
                    problems.push(unreadable(path, format!("cannot be read: {error}")));
                    continue;
                }
            };
            match Piece::read_in(&text, &label, folder, tools) {
                Err(found) => problems.extend(found),
                Ok((piece, _)) if pieces.all.contains_key(&piece.name) => {
                    let what = format!("a second piece named `{}`", piece.name);
                    problems.push(
                        Complaint::new(ProblemKind::Conflict, what)
                            .remedy("give each piece its own name")
                            .at(&label, Some(Location { line: 1, column: 1 }), "name"),
                    );
                }
                Ok((piece, warnings)) => {
                    labels.insert(piece.name.clone(), label);
                    pieces.warnings.extend(warnings);
                    pieces.all.insert(piece.name.clone(), piece);
                }
            }
        }
        // Only now is it known which pieces there are.
        if problems.is_empty() {
            problems.extend(lint::unknown_pieces(&pieces.all, &labels));
        }
        if problems.is_empty() {
            Ok(pieces)
        } else {
            Err(problems)
        }
    }

    /// These pieces.
    pub fn new(pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self {
            all: pieces
                .into_iter()
                .map(|piece| (piece.name.clone(), piece))
                .collect(),
            warnings: Vec::new(),
        }
    }

    /// What works, but probably not as it was meant.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The piece of that name.
    pub fn get(&self, name: &str) -> Option<&Piece> {
        self.all.get(name)
    }

    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = &Piece> {
        self.all.values()
    }
}

impl Piece {
    /// Reads and checks the text of one piece.
    ///
    /// # Errors
    /// Every problem of the text, in the order of the file.
    pub fn parse(text: &str, file: &str, tools: &BTreeSet<String>) -> Result<Self, Vec<Problem>> {
        Self::read(text, file, tools).map(|(piece, _)| piece)
    }

    /// Like [`Piece::parse`], with what the linter thinks of it.
    ///
    /// # Errors
    /// Every problem of the text, in the order of the file.
    pub fn read(
        text: &str,
        file: &str,
        tools: &BTreeSet<String>,
    ) -> Result<(Self, Vec<Warning>), Vec<Problem>> {
        Self::read_in(text, file, Path::new(""), tools)
    }

    /// The same for a piece in a folder, where the programs of its hooks start. It takes nothing from our environment.
    fn read_in(
        text: &str,
        file: &str,
        folder: &Path,
        tools: &BTreeSet<String>,
    ) -> Result<(Self, Vec<Warning>), Vec<Problem>> {
        let cx = Context::new(file, folder, &|_| None);
        let (tree, faults) = yaml::read(text);
        for fault in faults {
            cx.complain(
                Some(fault.at),
                "",
                Complaint::new(fault.kind, fault.message).remedy(fault.remedy),
            );
        }
        let piece = tree.and_then(|tree| decode(&cx.root(&tree), tools));
        let (mut problems, warnings) = cx.into_found();
        problems.sort_by(|a, b| a.at.cmp(&b.at).then_with(|| a.key.cmp(&b.key)));
        match piece {
            Some(piece) if problems.is_empty() => Ok((piece, warnings)),
            _ if problems.is_empty() => Err(vec![
                Complaint::new(ProblemKind::Unreadable, "the piece could not be read").at(file, None, ""),
            ]),
            _ => Err(problems),
        }
    }

    /// The movement of that name.
    pub fn movement(&self, name: &str) -> Option<&Movement> {
        self.movements.iter().find(|movement| movement.name == name)
    }
}

impl Movement {
    /// Whether it may call the tool.
    pub fn allows(&self, tool: &str) -> bool {
        any_fits(&self.allowed_tools, tool)
    }
}

/// Whether one of the patterns means the tool.
pub(super) fn any_fits(patterns: &[String], tool: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern, tool))
}

fn fits(pattern: &str, tool: &str) -> bool {
    pattern
        .strip_suffix('*')
        .map_or(pattern == tool, |head| tool.starts_with(head))
}

fn decode(reader: &Reader<'_>, tools: &BTreeSet<String>) -> Option<Piece> {
    let mut map = reader.map()?;
    let name = map.required("name").and_then(|name| name.name());
    let description = map
        .optional("description")
        .map_or(Some(None), |text| text.text().map(Some));
    let initial = map.required("initial_movement");
    let max_movements = map
        .optional("max_movements")
        .map_or(Some(30), |number| number.integer(1, 1_000));
    let pieces = map
        .optional("pieces")
        .map_or(Some(None), |list| list.texts_or_none().map(Some));
    let list = map.required("movements").and_then(|list| {
        let items = list.list()?;
        if items.is_empty() {
            list.bad_value("at least one movement", "say what the piece does");
        }
        Some(items)
    });
    let hooks = map
        .optional("hooks")
        .map_or(Some(None), |hooks| decode_hooks(&hooks).map(Some));
    map.finish();
    let items = list?;
    let names: Vec<String> = items.iter().filter_map(movement_name).collect();
    for (index, item) in items.iter().enumerate() {
        let earlier = items.iter().take(index).filter_map(movement_name);
        if let Some(name) = movement_name(item)
            && earlier.into_iter().any(|other| other == name)
        {
            item.complain(
                Complaint::new(ProblemKind::Conflict, "a second movement of the same name")
                    .remedy("give each movement its own name"),
            );
        }
    }
    let movements: Vec<Movement> = items
        .iter()
        .filter_map(|item| decode_movement(item, &names, tools))
        .collect();
    let initial_movement = initial.and_then(|reader| known(&reader, &names));
    if let Some(initial) = &initial_movement {
        lint::unreachable(initial, &movements, &items);
    }
    Some(Piece {
        name: name?,
        description: description?,
        initial_movement: initial_movement?,
        max_movements: max_movements?,
        pieces: pieces?.map(|pieces| pieces.into_iter().collect()),
        movements,
        hooks: hooks?,
    })
}

/// The block of the configuration, checked to its end.
fn decode_hooks(reader: &Reader<'_>) -> Option<HooksConfig> {
    let hooks = HooksConfig::decode(reader)?;
    match hook::check(&hooks) {
        Ok(()) => Some(hooks),
        Err(error) => {
            reader.complain(
                Complaint::new(ProblemKind::BadValue, error.to_string()).remedy("see docs/HOOK-PROTOCOL.md"),
            );
            None
        }
    }
}

/// The name alone, for the checks of what refers to it; problems are told by [`decode_movement`].
fn movement_name(item: &Reader<'_>) -> Option<String> {
    let yaml::Value::Map(entries) = item.value() else {
        return None;
    };
    let entry = entries.iter().find(|entry| entry.key == "name")?;
    match &entry.value.value {
        yaml::Value::Text(name) => Some(name.clone()),
        _ => None,
    }
}

fn decode_movement(item: &Reader<'_>, names: &[String], tools: &BTreeSet<String>) -> Option<Movement> {
    let mut map = item.map()?;
    let name = map.required("name").and_then(|reader| {
        let name = reader.name()?;
        if Sentinel::is_reserved(&name) {
            reader.bad_value("a name that is no sentinel of the engine", "choose another name");
            return None;
        }
        Some(name)
    });
    let instruction = map.required("instruction").and_then(|text| text.text());
    let persona = map
        .optional("persona")
        .map_or(Some(None), |text| text.text().map(Some));
    let allowed_tools = map
        .optional("allowed_tools")
        .map_or_else(|| Some(Vec::new()), |list| decode_tools(&list, tools));
    let rules = map
        .optional("rules")
        .map_or_else(|| Some(Vec::new()), |list| decode_rules(&list, names));
    let default_next = map
        .optional("default_next")
        .map_or(Some(None), |next| decode_default(&next, names).map(Some));
    let max_revisits = map
        .optional("max_revisits")
        .map_or(Some(None), |number| number.integer(0, 1_000).map(Some));
    map.finish();
    if let (Some(Some(next)), Some(rules)) = (&default_next, &rules)
        && !names.contains(next)
        && rules.iter().any(|rule| rule.next == WAIT_SUBTASKS)
    {
        item.warn(format!(
            "a rule leads to {WAIT_SUBTASKS} and `default_next` is no movement: the job goes on in this movement"
        ));
    }
    Some(Movement {
        name: name?,
        instruction: instruction?,
        persona: persona?,
        allowed_tools: allowed_tools?,
        rules: rules?,
        default_next: default_next?,
        max_revisits: max_revisits?,
    })
}

fn decode_tools(list: &Reader<'_>, tools: &BTreeSet<String>) -> Option<Vec<String>> {
    let patterns = list.texts_or_none()?;
    for (item, pattern) in list.list()?.iter().zip(&patterns) {
        let stars = pattern.matches('*').count();
        if stars > 1 || (stars == 1 && !pattern.ends_with('*')) {
            item.bad_value(
                "a tool's name, or its beginning with one `*` behind it",
                "name the tools one by one",
            );
        } else if !pattern.starts_with("mcp__") && !tools.iter().any(|tool| fits(pattern, tool)) {
            // The tools of an MCP server are known only once it runs.
            let words: Vec<&str> = tools.iter().map(String::as_str).collect();
            item.complain(
                Complaint::new(ProblemKind::UnknownName, format!("there is no tool `{pattern}`"))
                    .accepted("the name of a tool under agent.tools")
                    .remedy(
                        did_you_mean(pattern, &words)
                            .unwrap_or_else(|| "configure the tool, or remove the entry".to_owned()),
                    ),
            );
        }
    }
    Some(patterns)
}

fn decode_rules(list: &Reader<'_>, names: &[String]) -> Option<Vec<Rule>> {
    let mut rules = Vec::new();
    for item in list.list()? {
        let mut map = item.map()?;
        let condition = map.required("condition").and_then(|text| text.text());
        let next = map.required("next").and_then(|next| match next.text()?.as_str() {
            WAIT_SUBTASKS => Some(WAIT_SUBTASKS.to_owned()),
            word if Sentinel::is_reserved(word) => {
                next.complain(
                    Complaint::new(
                        ProblemKind::BadValue,
                        format!("`{word}` is the engine's own and no rule may lead to it"),
                    )
                    .accepted(format!("the name of a movement, or {WAIT_SUBTASKS}"))
                    .remedy("remove the rule: the model ends a job with `complete`"),
                );
                None
            }
            _ => known(&next, names),
        });
        map.finish();
        rules.push(Rule {
            condition: condition?,
            next: next?,
        });
    }
    Some(rules)
}

/// A movement, or a sentinel: what follows by default is the engine's to say.
fn decode_default(next: &Reader<'_>, names: &[String]) -> Option<String> {
    let text = next.text()?;
    if ["COMPLETE", "ABORT", "ASK"].contains(&text.as_str()) {
        Some(text)
    } else {
        known(next, names)
    }
}

fn known(reader: &Reader<'_>, names: &[String]) -> Option<String> {
    let name = reader.text()?;
    if names.contains(&name) {
        return Some(name);
    }
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    reader.bad_value(
        "the name of a movement of this piece",
        did_you_mean(&name, &words).unwrap_or_else(|| "add the movement, or name another".to_owned()),
    );
    None
}

/// A regular file of UTF-8 text within the bounds of the YAML reader.
fn read_text(path: &Path) -> std::io::Result<String> {
    let limit = u64::try_from(yaml::MAX_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() > yaml::MAX_BYTES {
        return Err(std::io::Error::other("it is too large"));
    }
    String::from_utf8(bytes)
        .map_err(|_| std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}
