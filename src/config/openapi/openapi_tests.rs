use std::collections::BTreeSet;
use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::{Confirm, Import, Operation, read};
use crate::config::http_tool::{Body, Place, ToolMethod};

fn import(document: &Json) -> Result<Import, String> {
    read(&document.to_string(), "api.json", &BTreeSet::new(), &|_| true).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        problems.join("\n")
    })
}

/// A document with this operation under `POST /items/{id}`, whose path parameter stands beside it.
fn with(operation: Json, more: Json) -> Json {
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {"title": "Items", "version": "1"},
        "servers": [{"url": "https://items.example/v1"}],
        "paths": {"/items/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
        }},
    });
    document["paths"]["/items/{id}"]["post"] = operation;
    let Json::Object(more) = more else {
        panic!("members of the document");
    };
    for (key, value) in more {
        document[key] = value;
    }
    document
}

fn one(operation: Json, more: Json) -> Result<Operation, String> {
    let mut import = import(&with(operation, more))?;
    match import.refused.pop() {
        Some(refused) => Err(refused.problem.to_string()),
        None => Ok(import.operations.pop().unwrap()),
    }
}

fn body(schema: &Json) -> Json {
    json!({"requestBody": {"required": true, "content": {"application/json; charset=utf-8": {"schema": schema}}}})
}

#[test]
fn arguments_are_flat_until_two_have_one_name() {
    let schema =
        json!({"type": "object", "required": ["amount"], "properties": {"amount": {"type": "number"}}});
    let flat = one(body(&schema), json!({})).unwrap();
    assert_eq!(flat.body, Body::Rest);
    assert_eq!(flat.parameters["required"], json!(["id", "amount"]));
    assert_eq!(flat.id, "post_items_by_id");
    let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    let grouped = one(body(&schema), json!({})).unwrap();
    assert_eq!(grouped.placed[0].arg.pointer(), "/path/id");
    assert_eq!(grouped.parameters["required"], json!(["path", "body"]));
    assert_eq!(grouped.parameters["additionalProperties"], json!(false));
    let list = one(body(&json!({"type": "array"})), json!({})).unwrap();
    assert!(matches!(&list.body, Body::Member(arg) if arg.pointer() == "/body"));
    let may = json!({"requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {}}}}}});
    let optional = one(may, json!({})).unwrap();
    assert_eq!(optional.parameters["required"], json!(["id"]));
}

#[test]
fn parameters_of_the_operation_stand_in_for_those_of_the_path() {
    let operation = json!({"operationId": "put/it", "summary": "Puts", "parameters": [
        {"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}, "description": "which"},
        {"name": "filter[a]", "in": "query", "schema": {"type": "object"}},
        {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
        {"name": "Idempotency-Key", "in": "header", "required": true, "schema": {"type": "string"}},
        {"$ref": "#/components/parameters/Trace~1Id"},
    ]});
    let components = json!({"components": {"parameters": {"Trace/Id": {"name": "X-Trace", "in": "header", "schema": {"type": "string"}}}}});
    let read = one(operation, components).unwrap();
    assert_eq!(
        read.parameters["properties"]["id"],
        json!({"type": "integer", "description": "which"})
    );
    let placed: Vec<(Place, &str, String)> = read
        .placed
        .iter()
        .map(|one| (one.place, one.name.as_str(), one.arg.pointer()))
        .collect();
    assert_eq!(
        placed,
        [
            (Place::Path, "id", "/id".to_owned()),
            (Place::Query, "filter[a]", "/filter_a".to_owned()),
            (Place::Header, "X-Trace", "/X-Trace".to_owned()),
        ]
    );
    assert_eq!((read.body, read.description.as_str()), (Body::Nothing, "Puts"));
}

#[test]
fn both_dialects_of_schemas_become_one() {
    let old = json!({"type": "object", "properties": {
        "a": {"type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false},
        "b": {"type": "string", "nullable": true, "enum": ["x"], "example": "secret", "x-internal": 1},
        "c": {"type": "string", "readOnly": true},
        "d": {"$ref": "#/components/schemas/D"},
    }, "required": ["a", "c"]});
    let more =
        json!({"openapi": "3.0.4", "components": {"schemas": {"D": {"type": "string", "readOnly": true}}}});
    let read = one(body(&old), more).unwrap();
    assert_eq!(
        read.parameters["properties"]["a"],
        json!({"type": "number", "exclusiveMinimum": 1, "maximum": 9})
    );
    assert_eq!(
        read.parameters["properties"]["b"],
        json!({"type": ["string", "null"], "enum": ["x", null]})
    );
    assert!(
        read.parameters["properties"].get("c").is_none() && read.parameters["properties"].get("d").is_none()
    );
    assert_eq!(read.parameters["required"], json!(["id", "a"]));
    let new = json!({"type": "object", "properties": {
        "a": {"$ref": "#/components/schemas/A", "maxLength": 3},
        "b": {"$ref": "#/components/schemas/A", "description": "b"},
    }});
    let more = json!({"components": {"schemas": {"A": {"type": "string"}}}});
    let read = one(body(&new), more).unwrap();
    assert_eq!(
        read.parameters["properties"]["a"],
        json!({"allOf": [{"type": "string"}, {"maxLength": 3}]})
    );
    assert_eq!(
        read.parameters["properties"]["b"],
        json!({"type": "string", "description": "b"})
    );
}

#[test]
fn a_schema_that_contains_itself_is_cut() {
    let more = json!({"components": {"schemas": {
        "Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}, "name": {"type": "string"}}},
    }}});
    let read = one(body(&json!({"$ref": "#/components/schemas/Node"})), more).unwrap();
    assert!(read.is_cut);
    assert_eq!(read.parameters["properties"]["next"], json!({}));
}

#[test]
fn what_cannot_be_sent_exactly_is_refused_by_name() {
    let parameter = |parameter: Json| json!({"parameters": [parameter]});
    let in_query = |more: Json| {
        let mut one = json!({"name": "q", "in": "query", "schema": {"type": "array"}});
        for (key, value) in more.as_object().unwrap() {
            one[key] = value.clone();
        }
        json!({"parameters": [one]})
    };
    for (operation, why) in [
        (
            in_query(json!({"style": "deepObject"})),
            "has the style `deepObject`",
        ),
        (in_query(json!({"style": "pipeDelimited"})), "has the style"),
        (in_query(json!({"explode": false})), "not exploded"),
        (
            in_query(json!({"schema": null})),
            "a schema that is not a mapping",
        ),
        (
            parameter(json!({"name": "q", "in": "query", "content": {}})),
            "has no `schema`",
        ),
        (
            parameter(json!({"name": "c", "in": "cookie", "schema": {}})),
            "cookie",
        ),
        (
            parameter(json!({"name": "b", "in": "body", "schema": {}})),
            "a place that is not known",
        ),
        (parameter(json!({"in": "query"})), "without `in` and `name`"),
        (
            parameter(json!({"name": "h", "in": "header", "schema": {"type": "array"}})),
            "a list or an object",
        ),
        (
            parameter(json!({"name": "h", "in": "header", "schema": {"oneOf": [{"type": "object"}]}})),
            "a list or an object",
        ),
        (
            parameter(json!({"name": "Host", "in": "header", "schema": {}})),
            "no argument may set",
        ),
        (
            parameter(json!({"name": "X-HTTP-Method-Override", "in": "header", "schema": {}})),
            "no argument may set",
        ),
        (
            parameter(json!({"name": "X-Forwarded-For", "in": "header", "schema": {}})),
            "no argument may set",
        ),
        (
            parameter(json!({"name": "a\r\nb", "in": "header", "schema": {}})),
            "cannot be the name of a header",
        ),
        (
            parameter(json!({"name": "é", "in": "query", "schema": {}})),
            "a name that no argument can have",
        ),
        (
            parameter(json!({"name": "x", "in": "path", "schema": {"type": "string"}})),
            "are not the same",
        ),
        (
            json!({"parameters": [{"name": "a[b]", "in": "query", "schema": {}}, {"name": "a_b", "in": "query", "schema": {}}]}),
            "two parameters would be",
        ),
        (
            json!({"servers": [{"url": "https://evil.example"}]}),
            "servers of its own",
        ),
        (
            json!({"requestBody": {"content": {"multipart/form-data": {"schema": {}}}}}),
            "not application/json",
        ),
        (
            json!({"requestBody": {"content": {"application/merge-patch+json": {}}}}),
            "not application/json",
        ),
        (
            json!({"requestBody": {"$ref": "https://evil.example/x.json"}}),
            "leads out of the document",
        ),
        (
            json!({"requestBody": {"$ref": "other.yaml#/a"}}),
            "leads out of the document",
        ),
        (
            json!({"requestBody": {"$ref": "#/components/none"}}),
            "nothing stands at",
        ),
        (json!({"requestBody": {"$ref": 5}}), "not text"),
        (body(&json!("text")), "not a mapping"),
    ] {
        let refused = one(operation.clone(), json!({})).expect_err(&operation.to_string());
        assert!(refused.contains(why), "{operation}: {refused}");
        assert!(refused.starts_with("api.json:1:1: paths"), "{refused}");
    }
}

#[test]
fn hostile_references_and_sizes_end() {
    let round = json!({"components": {"requestBodies": {
        "A": {"$ref": "#/components/requestBodies/B"}, "B": {"$ref": "#/components/requestBodies/A"},
    }}});
    let refused = one(
        json!({"requestBody": {"$ref": "#/components/requestBodies/A"}}),
        round,
    )
    .unwrap_err();
    assert!(refused.contains("leads to itself"), "{refused}");
    // Each level doubles: forty of them would be a million million schemas.
    let mut schemas = json!({});
    for level in 0..40 {
        let next = json!({"$ref": format!("#/components/schemas/L{}", level + 1)});
        schemas[format!("L{level}")] = json!({"type": "object", "properties": {"a": next, "b": next}});
    }
    schemas["L40"] = json!({});
    let refused = one(
        body(&json!({"$ref": "#/components/schemas/L0"})),
        json!({"components": {"schemas": schemas}}),
    )
    .unwrap_err();
    assert!(
        refused.contains("unfolds to too much") || refused.contains("deeper"),
        "{refused}"
    );
    let mut deep = json!({"type": "string"});
    for _ in 0..24 {
        deep = json!({"allOf": [{"items": deep}]});
    }
    assert!(one(body(&deep), json!({})).unwrap_err().contains("nested"));
    let long: Vec<String> = (0..3_000).map(|at| format!("{at:030}")).collect();
    let refused = one(body(&json!({"enum": long})), json!({})).unwrap_err();
    assert!(refused.contains("bytes of schema"), "{refused}");
    let mut laughs = String::from("openapi: 3.0.0\na0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let alias = format!("*a{},", level - 1).repeat(9);
        writeln!(laughs, "a{level}: &a{level} [{}]", alias.trim_end_matches(',')).unwrap();
    }
    let problems = read(&laughs, "a.yaml", &BTreeSet::new(), &|_| true).unwrap_err();
    assert!(problems[0].message.contains("unfolds"), "{}", problems[0]);
    let big = format!(
        "openapi: 3.0.0\nx: \"{}\"",
        "y".repeat(super::document::MAX_BYTES)
    );
    assert!(read(&big, "a.yaml", &BTreeSet::new(), &|_| true).is_err());
}

#[test]
fn paths_and_servers_of_a_document_are_judged_like_any_address() {
    for path in [
        "items",
        "//evil.example/x",
        "/../admin",
        "/a?x=1",
        "/a#b",
        "/a b",
        "/{id",
        "/{}",
        "/a\\b",
        "/%2e%2e/x",
    ] {
        let mut document = with(json!({}), json!({}));
        document["paths"] = json!({path: {"get": {}}});
        let import = import(&document).unwrap();
        assert_eq!((import.operations.len(), import.refused.len()), (0, 1), "{path}");
    }
    let server = |servers: Json| {
        import(&with(json!({}), json!({"servers": servers})))
            .unwrap()
            .server
    };
    assert_eq!(
        server(json!([{"url": "https://{r}.h.example/v{n}", "variables": {"r": {"default": "eu"}, "n": {"default": "2"}}}]))
            .unwrap()
            .to_string(),
        "https://eu.h.example/v2"
    );
    for servers in [
        json!([]),
        json!([{"url": "/v1"}]),
        json!([{"url": "https://{r}.h.example/"}]),
        json!([{"url": "https://h.example/{v}"}]),
        json!([{"url": "https://user:pw@h.example/"}]),
        json!([{"url": "javascript:alert(1)"}]),
        json!([{"url": "https://h.example/{a}", "variables": {"a": {"default": "x".repeat(9_000)}}}]),
    ] {
        assert!(server(servers.clone()).is_err(), "{servers}");
    }
}

#[test]
fn what_is_no_document_of_version_3_is_told_so() {
    for (text, why) in [
        ("swagger: '2.0'\npaths: {}", "a Swagger 2.0 document"),
        ("openapi: 2.0", "version `2.0`"),
        ("openapi: 4.0.0", "version `4.0.0`"),
        ("openapi: [3]", "not text"),
        ("info: {}", "the key `openapi` is missing"),
        ("openapi: 3.1", "the key `paths` is missing"),
        ("openapi: 3.1.0\nopenapi: 3.0.0", "a second time"),
        (
            "{\"openapi\": \"3.1.0\", \"openapi\": \"3.0.0\"}",
            "a second time",
        ),
        ("- a", "the key `openapi` is missing"),
        ("", "the file is empty"),
    ] {
        let problems = read(text, "a.yaml", &BTreeSet::new(), &|_| true).unwrap_err();
        assert!(problems[0].to_string().contains(why), "{text}: {}", problems[0]);
    }
}

#[test]
fn two_operations_of_one_name_are_not_both_tools() {
    let mut document = with(json!({"operationId": "a.b"}), json!({}));
    document["paths"]["/x"] = json!({"get": {"operationId": "a_b"}, "post": {"operationId": "c"}});
    let import = import(&document).unwrap();
    assert_eq!((import.operations.len(), import.refused.len()), (2, 1));
    assert!(import.refused[0].problem.message.contains("another operationId"));
}

#[test]
fn a_name_in_full_says_more_than_a_glob_and_the_strictest_glob_counts() {
    let named = |list: &[(&str, bool)]| {
        let by_name = |text: &str| super::ByName::read(text).unwrap();
        Confirm::Named(list.iter().map(|(text, needs)| (by_name(text), *needs)).collect())
    };
    let both = named(&[("list*", false), ("*Things", true), ("listThings", false)]);
    assert!(!both.of("listThings", ToolMethod::Post));
    assert!(both.of("listOtherThings", ToolMethod::Get));
    assert!(!both.of("listUsers", ToolMethod::Post));
    assert!(both.of("other", ToolMethod::Delete) && !both.of("other", ToolMethod::Get));
}

proptest! {
    /// Documents with anything anywhere are read or refused, and end.
    #[test]
    fn no_document_makes_the_reader_panic(text in "[ -~\n]{0,200}", place in 0..6_usize) {
        let value: Json = serde_json::from_str(&text).unwrap_or(Json::String(text.clone()));
        let mut document = with(json!({"parameters": [{"name": "q", "in": "query", "schema": {}}]}), json!({}));
        match place {
            0 => document["paths"]["/items/{id}"]["post"] = value,
            1 => document["paths"]["/items/{id}"]["post"]["parameters"][0]["schema"] = value,
            2 => document["paths"]["/items/{id}"]["post"]["parameters"][0]["name"] = value,
            3 => document["servers"][0]["url"] = value,
            4 => document["paths"]["/items/{id}"] = json!({"$ref": value}),
            _ => document["paths"] = json!({text.clone(): {"get": {}}}),
        }
        drop(import(&document));
        drop(read(&text, "a.yaml", &BTreeSet::new(), &|_| true));
    }
}
