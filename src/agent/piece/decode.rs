//! One piece, from its text.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Allowed, Movement, Piece, Rule, WAIT_SUBTASKS, lint};
use crate::agent::limits::OwnLimits;
use crate::agent::sentinel::Sentinel;
use crate::config::context::{Complaint, Context};
use crate::config::hook::HooksConfig;
use crate::config::limits;
use crate::config::node::{Reader, did_you_mean};
use crate::config::{Problem, ProblemKind, Warning, yaml};
use crate::hook;

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
    pub(super) fn read_in(
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
    let limits = OwnLimits {
        max_iterations: limits::iterations(&mut map),
        text_only: limits::in_a_row(&mut map, "text_only_limit"),
        mistakes: limits::in_a_row(&mut map, "mistake_limit"),
        cards: limits::people(&mut map, "card_limit"),
        asks: limits::people(&mut map, "ask_limit"),
        subtask_depth: limits::depth(&mut map),
        subtasks: limits::subtasks(&mut map),
    };
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
        limits,
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
pub(super) fn movement_name(item: &Reader<'_>) -> Option<String> {
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
        .map_or_else(|| Some(Allowed::default()), |list| decode_tools(&list, tools));
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

fn decode_tools(list: &Reader<'_>, tools: &BTreeSet<String>) -> Option<Allowed> {
    let globs = list.texts_or_none()?;
    for (item, glob) in list.list()?.iter().zip(&globs) {
        let one = match Allowed::parse([glob.clone()]) {
            Ok(one) => one,
            Err(problem) => {
                item.complain(
                    Complaint::new(ProblemKind::BadValue, problem)
                        .accepted("a tool's name, or a glob over names, as in the rules of the policy")
                        .remedy("correct the glob, or name the tools one by one"),
                );
                continue;
            }
        };
        // The tools of a server are known only once it runs.
        if !glob.starts_with("mcp__") && !tools.iter().any(|tool| one.allows(tool)) {
            let words: Vec<&str> = tools.iter().map(String::as_str).collect();
            item.complain(
                Complaint::new(ProblemKind::UnknownName, format!("there is no tool `{glob}`"))
                    .accepted("the name of a tool under agent.tools, or a glob that matches one")
                    .remedy(
                        did_you_mean(glob, &words)
                            .unwrap_or_else(|| "configure the tool, or remove the entry".to_owned()),
                    ),
            );
        }
    }
    Allowed::parse(globs).ok()
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
