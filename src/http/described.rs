//! Answers held against the description of the API: every member that is sent must be described, and be of the type that is said.
//! For tests, here and outside of this crate's sources, so it knows nothing but JSON.

use serde_json::Value;

/// What of an answer the description does not say. Nothing where all is well, or where no such address is described.
pub fn faults(document: &Value, (method, path): (&str, &str), status: u16, answer: &Value) -> Vec<String> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let Some(operation) = operation(document, method, path) else {
        return Vec::new();
    };
    let responses = &operation["responses"];
    let named = responses.get(status.to_string());
    let Some(response) = named.or_else(|| responses.get("default")) else {
        return vec![format!(
            "{method} {path}: an answer of the status {status} is not described"
        )];
    };
    let content = &resolved(document, response)["content"];
    let Some(schema) = ["application/json", "application/problem+json"]
        .iter()
        .find_map(|kind| content.get(kind)?.get("schema"))
    else {
        return Vec::new();
    };
    let mut faults = Vec::new();
    check(document, schema, answer, "", &mut faults);
    faults
        .into_iter()
        .map(|fault| format!("{method} {path} {status}: {fault}"))
        .collect()
}

/// The operation of an address: one without parameters is meant before one with some.
fn operation<'d>(document: &'d Value, method: &str, path: &str) -> Option<&'d Value> {
    let paths = document["paths"].as_object()?;
    let fits = |template: &str| {
        let (mut ours, mut theirs) = (template.split('/'), path.split('/'));
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return true,
                (Some(one), Some(other)) if one == other || (one.starts_with('{') && !other.is_empty()) => {}
                _ => return false,
            }
        }
    };
    let mut fitting: Vec<_> = paths.iter().filter(|(template, _)| fits(template)).collect();
    fitting.sort_by_key(|(template, _)| template.contains('{'));
    fitting.first()?.1.get(method.to_lowercase())
}

fn resolved<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    match schema["$ref"].as_str() {
        Some(to) => document
            .pointer(to.trim_start_matches('#'))
            .map_or(schema, |schema| resolved(document, schema)),
        None => schema,
    }
}

fn check(document: &Value, schema: &Value, value: &Value, place: &str, faults: &mut Vec<String>) {
    let schema = resolved(document, schema);
    let choices = ["oneOf", "anyOf"]
        .iter()
        .find_map(|word| schema[*word].as_array());
    if let Some(choices) = choices {
        let fits = |choice: &Value| {
            let mut inner = Vec::new();
            check(document, choice, value, place, &mut inner);
            inner.is_empty()
        };
        if !choices.iter().any(fits) {
            faults.push(format!("{place} fits none of the choices: {value}"));
        }
        return;
    }
    if !is_of_type(schema, value) {
        faults.push(format!("{place} is not of the type {}: {value}", schema["type"]));
        return;
    }
    let listed = schema["enum"].as_array();
    if listed.is_some_and(|listed| !value.is_null() && !listed.contains(value)) {
        faults.push(format!("{place} is none of the values that are listed: {value}"));
    }
    match value {
        Value::Object(members) => {
            let described = schema["properties"].as_object();
            for name in schema["required"].as_array().into_iter().flatten() {
                if name.as_str().is_none_or(|name| !members.contains_key(name)) {
                    faults.push(format!("{place} lacks {name}"));
                }
            }
            for (name, member) in members {
                let place = format!("{place}/{name}");
                match described.and_then(|described| described.get(name)) {
                    Some(schema) => check(document, schema, member, &place, faults),
                    None => match &schema["additionalProperties"] {
                        schema @ Value::Object(_) => check(document, schema, member, &place, faults),
                        // What names its members names all of them.
                        Value::Bool(true) => {}
                        _ if described.is_none() => {}
                        _ => faults.push(format!("{place} is not described")),
                    },
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                check(document, &schema["items"], item, &format!("{place}/{at}"), faults);
            }
        }
        _ => {}
    }
}

fn is_of_type(schema: &Value, value: &Value) -> bool {
    let is = |word: &str| match word {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    match &schema["type"] {
        Value::String(word) => is(word),
        Value::Array(words) => words.iter().any(|word| word.as_str().is_some_and(is)),
        _ => true,
    }
}
