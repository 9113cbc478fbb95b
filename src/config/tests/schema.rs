//! The JSON Schema and the decoder know the same keys.

use std::{collections::BTreeSet, path::Path};

use serde_json::Value as Json;

use super::super::{Context, Node, node::joined, read_tree, schema::SCHEMA, yaml};
use super::{EXAMPLE, ProblemKind, example};

/// Keys by path, and the paths of secrets, whose inner keys are the same everywhere.
#[derive(Default)]
struct Keys {
    all: BTreeSet<String>,
    secrets: BTreeSet<String>,
}

fn flatten(root: &Json, schema: &Json, path: &str, keys: &mut Keys) {
    if let Some(target) = schema["$ref"].as_str() {
        let name = target.strip_prefix("#/$defs/").unwrap();
        if matches!(name, "secret" | "env_value") {
            keys.secrets.insert(path.to_owned());
            return;
        }
        return flatten(root, &root["$defs"][name], path, keys);
    }
    for choice in schema["oneOf"].as_array().into_iter().flatten() {
        flatten(root, choice, path, keys);
    }
    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
        let path = joined(path, key);
        keys.all.insert(path.clone());
        flatten(root, value, &path, keys);
    }
    if schema["additionalProperties"].is_object() {
        flatten(root, &schema["additionalProperties"], &joined(path, "*"), keys);
    }
    if schema["items"].is_object() {
        flatten(root, &schema["items"], &format!("{path}[]"), keys);
    }
}

#[test]
fn the_schema_and_the_decoder_know_the_same_keys() {
    let schema: Json = serde_json::from_str(SCHEMA).unwrap();
    let mut keys = Keys::default();
    flatten(&schema, &schema, "", &mut keys);
    let folder = example::folder();
    let cx = Context::new("gatepost.yaml", &folder.0, &example::env);
    assert!(read_tree(&cx, &yaml::read(EXAMPLE).0.unwrap()).is_some());
    let inner = |key: &str| {
        key.rsplit_once('.')
            .is_some_and(|(outer, last)| matches!(last, "env" | "file") && keys.secrets.contains(outer))
    };
    let known: BTreeSet<String> = cx.known().into_iter().filter(|key| !inner(key)).collect();
    assert_eq!(
        known, keys.all,
        "the example holds every key, so the decoder has asked for every key"
    );
}

/// Guides say that the example explains every key; where a value would change what most people want, in a comment.
#[test]
fn the_example_names_every_key() {
    let schema: Json = serde_json::from_str(SCHEMA).unwrap();
    let mut keys = Keys::default();
    flatten(&schema, &schema, "", &mut keys);
    let named = |key: &str| {
        EXAMPLE.match_indices(&format!("{key}:")).any(|(at, _)| {
            let before = EXAMPLE[..at].chars().next_back();
            before.is_none_or(|before| !before.is_alphanumeric() && before != '_')
        })
    };
    let last = |path: &String| path.rsplit(['.', ']']).next().unwrap_or_default().to_owned();
    let unnamed: BTreeSet<String> = keys.all.iter().map(last).filter(|key| !named(key)).collect();
    assert!(unnamed.is_empty(), "{unnamed:?}");
}

/// Every mapping of the tree: the path of indices to it.
fn mappings(node: &Node, way: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
    match &node.value {
        yaml::Value::Map(entries) => {
            found.push(way.clone());
            for (index, entry) in entries.iter().enumerate() {
                way.push(index);
                mappings(&entry.value, way, found);
                way.pop();
            }
        }
        yaml::Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                way.push(index);
                mappings(item, way, found);
                way.pop();
            }
        }
        _ => {}
    }
}

fn at<'n>(node: &'n mut Node, way: &[usize]) -> &'n mut Node {
    way.iter().fold(node, |node, index| match &mut node.value {
        yaml::Value::Map(entries) => &mut entries[*index].value,
        yaml::Value::List(items) => &mut items[*index],
        _ => panic!("no way"),
    })
}

#[test]
fn an_unknown_key_is_refused_in_every_mapping() {
    let tree = yaml::read(EXAMPLE).0.unwrap();
    let mut ways = Vec::new();
    mappings(&tree, &mut Vec::new(), &mut ways);
    let folder = example::folder();
    let mut free = BTreeSet::new();
    for way in ways {
        let mut spoilt = tree.clone();
        let target = at(&mut spoilt, &way);
        let place = target.at;
        let yaml::Value::Map(entries) = &mut target.value else {
            panic!("not a mapping")
        };
        entries.push(yaml::Entry {
            key: "zzz_unknown".into(),
            at: place,
            value: Node {
                at: place,
                value: yaml::Value::Bool(true),
            },
        });
        let cx = Context::new("gatepost.yaml", &folder.0, &example::env);
        let read = read_tree(&cx, &spoilt);
        let (problems, _) = cx.into_found();
        if problems
            .iter()
            .any(|problem| problem.kind == ProblemKind::UnknownKey && problem.key.ends_with("zzz_unknown"))
        {
            continue;
        }
        // Where the keys are names given by the user, the value is what is wrong.
        match problems
            .iter()
            .find(|problem| problem.key.ends_with("zzz_unknown"))
        {
            Some(problem) => free.insert(problem.key.clone()),
            None => free.insert(format!("free JSON at line {}: {}", place.line, read.is_some())),
        };
    }
    let json = free.iter().filter(|key| key.starts_with("free JSON")).count();
    assert_eq!(
        json, 4,
        "only the settings of a built-in hook, the parameters of two tools and the operations that need a person are free: {free:#?}"
    );
    assert_eq!(free.len() - json, 12, "{free:#?}");
}

#[test]
fn every_key_may_be_lost_without_a_panic() {
    let tree = yaml::read(EXAMPLE).0.unwrap();
    let mut ways = Vec::new();
    mappings(&tree, &mut Vec::new(), &mut ways);
    let mut refused = 0;
    for way in ways {
        let mut whole = tree.clone();
        let yaml::Value::Map(entries) = &at(&mut whole, &way).value else {
            panic!("not a mapping")
        };
        for lost in 0..entries.len() {
            let mut spoilt = tree.clone();
            let yaml::Value::Map(entries) = &mut at(&mut spoilt, &way).value else {
                panic!("not a mapping")
            };
            entries.remove(lost);
            let cx = Context::new("gatepost.yaml", Path::new("nowhere"), &example::env);
            let read = read_tree(&cx, &spoilt);
            refused += usize::from(read.is_none());
            assert!(read.is_some() || cx.count() > 0, "refused without a word");
        }
    }
    assert!(refused > 20);
}
