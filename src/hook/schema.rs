//! The JSON Schema of the hook protocol, for those who write hooks.

/// The schema of every message of process hooks and command hooks (JSON Schema 2020-12).
pub const SCHEMA: &str = include_str!("../../schemas/hooks.schema.json");

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::SCHEMA;
    use crate::hook::Action;

    /// The schema says what the program takes: the words of the actions, and where `respond` and `deny_tool` are possible.
    #[test]
    fn the_schema_knows_the_actions_of_each_point() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let words = |pointer: &str| -> Vec<String> {
            let list = schema.pointer(pointer).and_then(Value::as_array).unwrap();
            list.iter()
                .map(|word| word.as_str().unwrap().to_owned())
                .collect()
        };
        let point = |name| crate::hook::Point::named(name).unwrap();
        for (name, at) in [
            ("before_tool", "pre_tool_use"),
            ("after_tool", "post_tool_use"),
            ("before_llm", "before_model"),
            ("after_llm", "after_model"),
        ] {
            let possible: Vec<&str> = Action::ALL
                .into_iter()
                .filter(|action| *action != Action::Ask && action.is_valid_at(point(at)))
                .map(Action::word)
                .collect();
            assert_eq!(
                words(&format!("/$defs/code.{name}/properties/action/enum")),
                possible
            );
            let page = format!("/$defs/page.{name}/properties/decision/properties/action/enum");
            assert_eq!(words(&page), possible);
        }
    }

    #[test]
    fn every_reference_of_the_schema_leads_somewhere() {
        fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
            match value {
                Value::Object(map) => {
                    found.extend(map.get("$ref").and_then(Value::as_str));
                    map.values().for_each(|value| references(value, found));
                }
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                _ => {}
            }
        }
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let mut found = Vec::new();
        references(&schema, &mut found);
        assert!(found.len() > 10);
        for reference in found {
            let name = reference.strip_prefix("#/$defs/").unwrap();
            assert!(schema["$defs"].get(name).is_some(), "{reference}");
        }
    }
}
