//! What a server offers: each tool is judged before anybody hears of it, and known by a fingerprint from then on.
//!
//! Name, description and schema are the server's words: bounded, without invisible characters, and a schema that points
//! outside of itself is not used. What the server says of the tool's nature (`readOnlyHint` and the like) is left aside.

use std::collections::BTreeMap;
use std::fmt;

use rmcp::model::Tool;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::answer::{is_visible, shown};

/// The longest name of a tool as the model sees it; several endpoints take no more.
const MAX_NAME: usize = 64;
/// The most characters of a description.
const MAX_DESCRIPTION: usize = 2_000;
/// The most bytes of a schema.
const MAX_SCHEMA: usize = 64 * 1024;
/// The deepest nesting of a schema.
const MAX_DEPTH: usize = 32;
/// The most tools of one server.
pub(super) const MAX_TOOLS: usize = 256;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Its name at the server; letters, digits, `_` and `-` only.
    pub name: String,
    /// What it does, in the server's words.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Map<String, Value>,
    /// What it is known by.
    pub fingerprint: Fingerprint,
}

/// The SHA-256, in hex, of everything that a server says about a tool. It changes whenever the tool does.
#[derive(Clone, PartialEq, Eq)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({}…)", self.0.get(..8).unwrap_or_default())
    }
}

/// The tools of a server, and why some that it named are left out.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    /// By name.
    pub tools: BTreeMap<String, Definition>,
    /// One line each.
    pub left_out: Vec<String>,
}

impl Offer {
    /// Judges what a server named: each entry is the JSON of one tool.
    pub(super) fn judge(server: &str, named: Vec<Value>) -> Self {
        let mut offer = Self::default();
        let mut twice = Vec::new();
        for entry in named {
            let name = entry
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            match define(server, entry) {
                Err(why) => offer.left_out.push(format!("{}: {why}", shown(&name))),
                Ok(_) if offer.tools.len() >= MAX_TOOLS => {
                    offer
                        .left_out
                        .push(format!("{}: more than {MAX_TOOLS} tools", shown(&name)));
                }
                Ok(definition) => {
                    if offer.tools.insert(name.clone(), definition).is_some() {
                        twice.push(name);
                    }
                }
            }
        }
        // Nobody can tell which of two was meant.
        for name in twice {
            if offer.tools.remove(&name).is_some() {
                offer.left_out.push(format!("{name}: named twice"));
            }
        }
        offer.left_out.truncate(MAX_TOOLS);
        offer
    }
}

fn define(server: &str, entry: Value) -> Result<Definition, String> {
    let tool: Tool =
        serde_json::from_value(entry).map_err(|_| "not a tool as MCP describes one".to_owned())?;
    let name = tool.name.clone().into_owned();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || !name.chars().all(plain) {
        return Err("a name of other characters than A-Z a-z 0-9 _ -".to_owned());
    }
    if full_name(server, &name).len() > MAX_NAME {
        return Err(format!("its full name has more than {MAX_NAME} characters"));
    }
    let schema = (*tool.input_schema).clone();
    if let Some(kind) = schema.get("type").filter(|kind| *kind != "object") {
        let kind = kind.as_str().unwrap_or("several");
        return Err(format!("its arguments are of type {}, not object", shown(kind)));
    }
    let whole = Value::Object(schema.clone());
    if whole.to_string().len() > MAX_SCHEMA {
        return Err(format!("a schema of more than {MAX_SCHEMA} bytes"));
    }
    sound(&whole, &whole, 0)?;
    let fingerprint = fingerprint(&tool)?;
    Ok(Definition {
        description: described(tool.description.as_deref().unwrap_or_default()),
        name,
        schema,
        fingerprint,
    })
}

/// `mcp__SERVER__TOOL`.
pub fn full_name(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

/// Whether a schema is not too deep and refers to nothing but parts of itself.
fn sound(root: &Value, schema: &Value, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("a schema nested more than {MAX_DEPTH} deep"));
    }
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                if let ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) =
                    (key.as_str(), value)
                {
                    let within = target.strip_prefix('#');
                    if within.and_then(|pointer| root.pointer(pointer)).is_none() {
                        return Err("a schema that refers to what is not in it".to_owned());
                    }
                }
                sound(root, value, depth + 1)?;
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| sound(root, item, depth + 1)),
        _ => Ok(()),
    }
}

fn described(text: &str) -> String {
    let seen = |c: char| c == '\n' || is_visible(c);
    let mut kept: String = text.chars().filter(|c| seen(*c)).take(MAX_DESCRIPTION).collect();
    if text.chars().filter(|c| seen(*c)).nth(MAX_DESCRIPTION).is_some() {
        kept.push('…');
    }
    kept
}

fn fingerprint(tool: &Tool) -> Result<Fingerprint, String> {
    let mut whole = serde_json::to_value(tool).map_err(|_| "it cannot be spelled as JSON".to_owned())?;
    if let Some(members) = whole.as_object_mut() {
        members.remove("_meta");
        members.remove("icons");
    }
    whole.sort_all_objects();
    Ok(Fingerprint(hex::encode(Sha256::digest(whole.to_string()))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> Value {
        json!({"name": name, "description": "d", "inputSchema": {"type": "object"}})
    }

    fn with_schema(schema: &Value) -> Value {
        json!({"name": "a", "inputSchema": schema})
    }

    #[test]
    fn only_clear_names_are_offered() {
        let spelled = [
            "read",
            "write_file",
            "a.b",
            "",
            "a b",
            "é",
            "x\u{200B}",
            "mcp__y",
            "read-2",
            "dup",
            "dup",
        ];
        let offer = Offer::judge("files", spelled.into_iter().map(tool).collect());
        let names: Vec<&str> = offer.tools.keys().map(String::as_str).collect();
        assert_eq!(names, ["mcp__y", "read", "read-2", "write_file"]);
        assert_eq!(offer.left_out.len(), 6, "{:?}", offer.left_out);
        assert!(offer.left_out.contains(&"dup: named twice".to_owned()));
        let long = Offer::judge(
            &"s".repeat(32),
            vec![tool(&"t".repeat(26)), tool(&"t".repeat(25))],
        );
        assert_eq!(long.tools.len(), 1);
        let many = Offer::judge("s", (0..300).map(|n| tool(&format!("t{n}"))).collect());
        assert_eq!(many.tools.len(), MAX_TOOLS);
    }

    #[test]
    fn a_schema_that_cannot_be_used_leaves_its_tool_out() {
        let deep = (0..40).fold(json!({}), |inner, _| json!({"items": inner}));
        for schema in [
            json!({"type": "string"}),
            json!({"properties": {"a": {"$ref": "https://elsewhere.example/x.json"}}}),
            json!({"properties": {"a": {"$ref": "other.json#/a"}}}),
            json!({"properties": {"a": {"$ref": "#/$defs/none"}}}),
            json!({"allOf": [{"$dynamicRef": "#x"}]}),
            json!({"properties": {"a": deep}}),
            json!({"description": "x".repeat(MAX_SCHEMA)}),
        ] {
            assert!(
                Offer::judge("s", vec![with_schema(&schema)]).tools.is_empty(),
                "{schema}"
            );
        }
        for entry in [
            json!({"name": "a"}),
            json!(null),
            json!({"name": "a", "inputSchema": []}),
        ] {
            assert_eq!(Offer::judge("s", vec![entry, tool("b")]).tools.len(), 1);
        }
        let local = json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}});
        assert_eq!(Offer::judge("s", vec![with_schema(&local)]).tools.len(), 1);
    }

    #[test]
    fn a_fingerprint_changes_with_every_word_about_the_tool() {
        let print = |entry: Value| Offer::judge("s", vec![entry]).tools["a"].fingerprint.clone();
        let base =
            json!({"name": "a", "description": "d", "inputSchema": {"type": "object", "required": ["x"]}});
        let same = json!({"inputSchema": {"required": ["x"], "type": "object"}, "description": "d", "name": "a", "_meta": {"n": 1}});
        assert_eq!(print(base.clone()), print(same));
        for changed in [
            json!({"name": "a", "description": "e", "inputSchema": {"type": "object", "required": ["x"]}}),
            json!({"name": "a", "description": "d", "inputSchema": {"type": "object"}}),
            json!({"name": "a", "title": "t", "description": "d", "inputSchema": {"type": "object", "required": ["x"]}}),
            json!({"name": "a", "description": "d", "inputSchema": {"type": "object", "required": ["x"]},
                "annotations": {"readOnlyHint": true}}),
        ] {
            assert_ne!(print(base.clone()), print(changed.clone()), "{changed}");
        }
    }

    #[test]
    fn a_description_is_bounded_and_hides_nothing() {
        let entry = json!({"name": "a", "description": format!("x\u{E0041}\u{202E}y\n{}", "z".repeat(5_000)),
            "inputSchema": {}});
        let offer = Offer::judge("s", vec![entry]);
        let text = &offer.tools["a"].description;
        assert!(text.starts_with("xy\nzz") && text.chars().count() == MAX_DESCRIPTION + 1);
    }
}
