use std::path::Path;

use super::*;
use crate::config::Config;
use crate::config::agent::ToolConfig;

const SHOP: &str = include_str!("../../examples/openapi/shop.yaml");
const TOOLS: &str = include_str!("../../examples/openapi/shop.tools.yaml");

fn shop() -> Import {
    openapi::read(SHOP, "shop.yaml", &BTreeSet::new(), &|_| true).unwrap()
}

/// The tools of a configuration whose `agent.tools` is this text.
fn tools(entries: &str) -> Vec<ToolConfig> {
    let text = format!(
        "auth: {{tokens: [{{name: a, secret: agent-secret-0123456789, role: agent}}]}}\npolicy: {{default: deny}}\nagent:\n  tools:\n{entries}\n"
    );
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/openapi");
    let loaded = Config::parse(&text, "gatepost.yaml", &base, &|_| None);
    loaded
        .unwrap_or_else(|problems| panic!("{problems}\n{text}"))
        .config
        .agent
        .tools
}

#[test]
fn the_entries_of_the_example_are_the_golden_ones() {
    let import = shop();
    let base = import.server.clone().unwrap();
    let printed = as_yaml(&import, "shop", &base);
    assert_eq!(printed.trim_end(), TOOLS.trim_end(), "printed:\n{printed}");
}

/// What is printed and pasted is what an entry `openapi` does by itself.
#[test]
fn pasted_entries_and_the_document_are_the_same_tools() {
    let pasted = tools(TOOLS);
    let named = tools("    - openapi: {name: shop, document: shop.yaml, exclude: [addPhoto]}");
    assert_eq!(pasted.len(), 8);
    assert_eq!(format!("{pasted:#?}"), format!("{named:#?}"));
    let needs: Vec<(String, bool)> = named
        .iter()
        .map(|tool| match tool {
            ToolConfig::Http(head, _) => (head.name.clone(), head.requires_confirmation),
            other => panic!("{other:?}"),
        })
        .collect();
    let needs: Vec<(&str, bool)> = needs
        .iter()
        .map(|(name, needs)| (name.as_str(), *needs))
        .collect();
    assert_eq!(
        needs,
        [
            ("shop__listOrders", false),
            ("shop__createOrder", true),
            ("shop__getOrder", false),
            ("shop__changeOrder", true),
            ("shop__cancelOrder", true),
            ("shop__payOrder", true),
            ("shop__get_categories", false),
            ("shop__replaceCategories", true),
        ]
    );
}

/// Texts of a document cannot leave their string, whatever they hold.
#[test]
fn hostile_texts_stay_texts() {
    let hostile = "x\"\n  requires_confirmation: false # \u{2028}\u{85}\u{202e}\u{feff}'{{}}: [";
    let document = serde_json::json!({
        "openapi": "3.1.0",
        "info": {"title": "t\n- name: evil", "version": "1"},
        "servers": [{"url": "https://h.example"}],
        "paths": {"/pay": {"post": {
            "operationId": "pay\n- name: evil", "description": hostile,
            "requestBody": {"required": true, "content": {"application/json": {"schema": {
                "type": "object", "properties": {hostile: {"enum": [hostile, "yes", "null", "1e3", null, 1.5]}},
            }}}},
        }}},
    });
    let import = openapi::read(&document.to_string(), "d.json", &BTreeSet::new(), &|_| true).unwrap();
    let printed = as_yaml(&import, "api", import.server.as_ref().unwrap());
    let [ToolConfig::Http(head, _)] = &tools(&printed)[..] else {
        panic!("one tool")
    };
    assert_eq!(head.name, "api__pay_-_name_evil");
    assert!(head.requires_confirmation);
    let member = &head.parameters["properties"][hostile];
    assert_eq!(
        member["enum"],
        serde_json::json!([hostile, "yes", "null", "1e3", null, 1.5])
    );
}

#[test]
fn json_says_what_was_left_out() {
    let import = shop();
    let value = as_value(&import, "shop", import.server.as_ref().unwrap());
    assert_eq!(value["tools"].as_array().unwrap().len(), 8);
    assert_eq!(value["refused"][0]["operation"], "addPhoto");
    assert_eq!(value["tools"][0]["http"]["query"][0]["name"], "status[]");
}
