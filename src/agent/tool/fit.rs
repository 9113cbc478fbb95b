//! Whether arguments fit the JSON Schema of their tool, so that nobody is asked about a call that the tool could not take.
//!
//! Judged are the keywords that tools use: `type enum const required properties additionalProperties items prefixItems anyOf
//! allOf oneOf not if then else $ref minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems
//! minProperties maxProperties uniqueItems dependentRequired pattern patternProperties propertyNames multipleOf contains
//! minContains maxContains`. Others, `format` among them, are for the model alone: the tool has the last word.
//! A `$ref` leads to a part of the same schema; one that leads elsewhere is never followed, and fits nothing. Messages name
//! places and kinds, never values.

use std::cell::Cell;

use serde_json::{Map, Value};

use crate::gate::json::{Json, Object, ReadLimits};

mod pattern;

/// What does not fit, as the model is told it; `None` when everything fits.
pub(super) fn misfit(schema: &Value, args: &Json) -> Option<String> {
    let judge = Judge {
        root: schema,
        fuel: Cell::new(FUEL),
        depth: Cell::new(0),
    };
    judge.judge(schema, args, "").err()
}

/// The most places of a schema that are looked at for one call: a schema that leads back to itself comes to an end.
const FUEL: u32 = 1_000_000;
/// The deepest that one place leads to another. Arguments are nested at most 128 deep.
const DEPTH: u32 = 300;
const INVOLVED: &str = "the tool's own schema is too involved to be checked";

/// The schema as a whole, for what refers to a part of it.
struct Judge<'a> {
    root: &'a Value,
    fuel: Cell<u32>,
    depth: Cell<u32>,
}

impl Judge<'_> {
    /// Looks at one place. Whoever leads back to itself runs out of depth or of fuel, and then nothing fits.
    fn judge(&self, schema: &Value, value: &Json, at: &str) -> Result<(), String> {
        let depth = self.depth.get() + 1;
        if depth > DEPTH {
            self.fuel.set(0);
        }
        self.spend(1)?;
        self.depth.set(depth);
        let judged = self.look(schema, value, at);
        self.depth.set(depth - 1);
        judged
    }

    fn look(&self, schema: &Value, value: &Json, at: &str) -> Result<(), String> {
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => return Err(format!("{} is not allowed", place(at))),
            _ => return Ok(()),
        };
        if let Some(target) = schema.get("$ref") {
            let part = target
                .as_str()
                .and_then(|target| self.root.pointer(target.strip_prefix('#')?));
            let part = part.ok_or("the tool's own schema refers to what is not in it")?;
            self.judge(part, value, at)?;
        }
        kind(schema, value, at)?;
        choice(schema, value, at)?;
        match value {
            Json::Object(members) => self.members(schema, value, members, at)?,
            Json::Array(items) => self.elements(schema, items, at)?,
            Json::String(text) => self.text(schema, text, at)?,
            Json::Number(number) => {
                // A number that no double holds is compared by the double next to it: bounds guide the model, they guard nothing.
                if let Ok(number) = number.as_str().parse::<f64>() {
                    range(schema, number, at)?;
                    multiple(schema, number, at)?;
                }
            }
            Json::Null | Json::Bool(_) => {}
        }
        self.branches(schema, value, at)
    }

    fn text(&self, schema: &Map<String, Value>, text: &str, at: &str) -> Result<(), String> {
        bounds(
            schema,
            ("minLength", "maxLength"),
            text.chars().count(),
            "characters",
            at,
        )?;
        if let Some(wanted) = schema.get("pattern").and_then(Value::as_str) {
            self.spend(text.len())?;
            if pattern::holds(wanted, text) == Some(false) {
                return Err(format!(
                    "{} does not have the form that the tool takes",
                    place(at)
                ));
            }
        }
        Ok(())
    }

    fn members(
        &self,
        schema: &Map<String, Value>,
        value: &Json,
        members: &Object,
        at: &str,
    ) -> Result<(), String> {
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if value.get(name).is_none() {
                return Err(format!("{} lacks the required member `{name}`", place(at)));
            }
        }
        let dependent = schema.get("dependentRequired").and_then(Value::as_object);
        for (name, wanted) in dependent
            .into_iter()
            .flatten()
            .filter(|(name, _)| value.get(name).is_some())
        {
            for other in wanted.as_array().into_iter().flatten().filter_map(Value::as_str) {
                if value.get(other).is_none() {
                    return Err(format!(
                        "{} lacks the member `{other}`, which `{name}` needs",
                        place(at)
                    ));
                }
            }
        }
        bounds(
            schema,
            ("minProperties", "maxProperties"),
            members.iter().count(),
            "members",
            at,
        )?;
        let known = schema.get("properties").and_then(Value::as_object);
        for (name, member) in members.iter() {
            let deeper = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            if let Some(names) = schema.get("propertyNames") {
                self.judge(names, &Json::String(name.to_owned()), &deeper)?;
            }
            let mut is_known = self.by_pattern(schema, name, member, &deeper)?;
            if let Some(schema) = known.and_then(|known| known.get(name)) {
                self.judge(schema, member, &deeper)?;
                is_known = true;
            }
            if !is_known && let Some(rest) = schema.get("additionalProperties") {
                self.judge(rest, member, &deeper)?;
            }
        }
        Ok(())
    }

    /// Whether a pattern speaks of this member, or may do so where that cannot be told.
    fn by_pattern(
        &self,
        schema: &Map<String, Value>,
        name: &str,
        member: &Json,
        at: &str,
    ) -> Result<bool, String> {
        let mut is_known = false;
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        for (pattern, each) in patterns.into_iter().flatten() {
            self.spend(name.len())?;
            match pattern::holds(pattern, name) {
                Some(true) => self.judge(each, member, at)?,
                Some(false) => continue,
                None => {}
            }
            is_known = true;
        }
        Ok(is_known)
    }

    fn elements(&self, schema: &Map<String, Value>, items: &[Json], at: &str) -> Result<(), String> {
        bounds(schema, ("minItems", "maxItems"), items.len(), "items", at)?;
        let first = schema.get("prefixItems").and_then(Value::as_array);
        let first = first.map_or(&[][..], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            if let Some(each) = first.get(index).or_else(|| schema.get("items")) {
                self.judge(each, item, &format!("{at}/{index}"))?;
            }
        }
        if let Some(wanted) = schema.get("contains") {
            let found = items.iter().filter(|item| self.judge(wanted, item, at).is_ok());
            let found = u64::try_from(found.count()).unwrap_or(u64::MAX);
            let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
            let fits = found >= bound("minContains").unwrap_or(1)
                && bound("maxContains").is_none_or(|most| found <= most);
            if !fits || self.fuel.get() == 0 {
                return Err(format!(
                    "{} does not hold the items that the tool takes",
                    place(at)
                ));
            }
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            for (index, item) in items.iter().enumerate() {
                self.spend(index)?;
                if items.iter().take(index).any(|other| other == item) {
                    return Err(format!("{} holds one item twice", place(at)));
                }
            }
        }
        Ok(())
    }

    fn branches(&self, schema: &Map<String, Value>, value: &Json, at: &str) -> Result<(), String> {
        let list = |name: &str| schema.get(name).and_then(Value::as_array);
        for every in list("allOf").into_iter().flatten() {
            self.judge(every, value, at)?;
        }
        let fits = |branches: &Vec<Value>| {
            branches
                .iter()
                .filter(|one| self.judge(one, value, at).is_ok())
                .count()
        };
        let wrong = list("anyOf").is_some_and(|any| fits(any) == 0)
            || list("oneOf").is_some_and(|one| fits(one) != 1)
            || schema
                .get("not")
                .is_some_and(|not| self.judge(not, value, at).is_ok());
        // Where nothing could be told for want of fuel, nothing fits.
        if wrong || self.fuel.get() == 0 {
            return Err(format!(
                "{} fits none of the shapes that the tool takes",
                place(at)
            ));
        }
        if let Some(condition) = schema.get("if") {
            let branch = if self.judge(condition, value, at).is_ok() {
                "then"
            } else {
                "else"
            };
            if let Some(branch) = schema.get(branch) {
                self.judge(branch, value, at)?;
            }
        }
        Ok(())
    }

    fn spend(&self, steps: usize) -> Result<(), String> {
        let left = u32::try_from(steps)
            .ok()
            .and_then(|steps| self.fuel.get().checked_sub(steps));
        self.fuel.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or_else(|| INVOLVED.to_owned())
    }
}

fn kind(schema: &Map<String, Value>, value: &Json, at: &str) -> Result<(), String> {
    let wanted: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    let found = value.kind();
    let fits = |wanted: &&str| match *wanted {
        "integer" => is_whole(value),
        wanted => wanted == found.name(),
    };
    if wanted.iter().any(fits) {
        return Ok(());
    }
    let wanted = wanted.join(" or ");
    Err(format!(
        "{} must be of type {wanted}, not {}",
        place(at),
        found.name()
    ))
}

/// Numbers are spelled without needless zeros, so that a whole one has no point and no negative exponent.
fn is_whole(value: &Json) -> bool {
    matches!(value, Json::Number(number) if !number.as_str().contains('.') && !number.as_str().contains("e-"))
}

fn choice(schema: &Map<String, Value>, value: &Json, at: &str) -> Result<(), String> {
    let is = |wanted: &Value| {
        serde_json::to_vec(wanted)
            .ok()
            .and_then(|text| Json::read(&text, ReadLimits::bytes(text.len())).ok())
            .is_some_and(|wanted| wanted == *value)
    };
    let fits = schema.get("const").is_none_or(is)
        && schema
            .get("enum")
            .and_then(Value::as_array)
            .is_none_or(|wanted| wanted.iter().any(is));
    if fits {
        return Ok(());
    }
    Err(format!(
        "{} is not one of the values that the tool takes",
        place(at)
    ))
}

fn bounds(
    schema: &Map<String, Value>,
    (least, most): (&str, &str),
    count: usize,
    of: &str,
    at: &str,
) -> Result<(), String> {
    let bound = |name: &str| {
        schema
            .get(name)
            .and_then(Value::as_u64)
            .and_then(|bound| usize::try_from(bound).ok())
    };
    match (bound(least), bound(most)) {
        (Some(least), _) if count < least => Err(format!("{} needs at least {least} {of}", place(at))),
        (_, Some(most)) if count > most => Err(format!("{} takes at most {most} {of}", place(at))),
        _ => Ok(()),
    }
}

fn range(schema: &Map<String, Value>, number: f64, at: &str) -> Result<(), String> {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let fits = bound("minimum").is_none_or(|least| number >= least)
        && bound("maximum").is_none_or(|most| number <= most)
        && bound("exclusiveMinimum").is_none_or(|least| number > least)
        && bound("exclusiveMaximum").is_none_or(|most| number < most);
    if fits {
        return Ok(());
    }
    Err(format!("{} is outside the range that the tool takes", place(at)))
}

/// A quotient of doubles is whole but for its last digits: 0.3 is a multiple of 0.1.
fn multiple(schema: &Map<String, Value>, number: f64, at: &str) -> Result<(), String> {
    let Some(of) = schema
        .get("multipleOf")
        .and_then(Value::as_f64)
        .filter(|of| *of > 0.0)
    else {
        return Ok(());
    };
    let quotient = number / of;
    let off = (quotient - quotient.round()).abs();
    if off <= quotient.abs().max(1.0) * 1e-12 {
        return Ok(());
    }
    Err(format!("{} is not a multiple of what the tool takes", place(at)))
}

fn place(at: &str) -> String {
    if at.is_empty() {
        "the arguments object".to_owned()
    } else {
        format!("`{at}`")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(schema: &Value, args: &str) -> Option<String> {
        misfit(
            schema,
            &Json::read(args.as_bytes(), ReadLimits::bytes(10_000)).unwrap(),
        )
    }

    #[test]
    fn arguments_are_held_against_the_schema_of_their_tool() {
        let pay = json!({
            "type": "object",
            "required": ["amount"],
            "additionalProperties": false,
            "properties": {
                "amount": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e6},
                "times": {"type": "integer"},
                "payee": {"type": ["string", "null"], "minLength": 2, "maxLength": 4},
                "kind": {"enum": ["wire", 1]},
                "lines": {"type": "array", "maxItems": 2, "items": {"type": "object", "required": ["sku"]}},
                "to": {"anyOf": [{"type": "string"}, {"type": "object", "required": ["iban"]}]},
            },
        });
        for fits in [
            r#"{"amount":1}"#,
            r#"{"amount":0.1000000000000000000001,"times":2.0,"payee":"日本語","kind":1.0}"#,
            r#"{"amount":1e6,"payee":null,"lines":[{"sku":1},{"sku":2,"x":3}],"to":{"iban":1}}"#,
        ] {
            assert_eq!(told(&pay, fits), None, "{fits}");
        }
        for (args, why) in [
            ("{}", "the arguments object lacks the required member `amount`"),
            (
                r#"{"amount":"1"}"#,
                "`/amount` must be of type number, not string",
            ),
            (
                r#"{"amount":0}"#,
                "`/amount` is outside the range that the tool takes",
            ),
            (
                r#"{"amount":1,"times":2.5}"#,
                "`/times` must be of type integer, not number",
            ),
            (
                r#"{"amount":1,"payee":"x"}"#,
                "`/payee` needs at least 2 characters",
            ),
            (
                r#"{"amount":1,"kind":"cash"}"#,
                "`/kind` is not one of the values that the tool takes",
            ),
            (
                r#"{"amount":1,"lines":[{"sku":1},{}]}"#,
                "`/lines/1` lacks the required member `sku`",
            ),
            (
                r#"{"amount":1,"lines":[1,2,3]}"#,
                "`/lines` takes at most 2 items",
            ),
            (
                r#"{"amount":1,"to":5}"#,
                "`/to` fits none of the shapes that the tool takes",
            ),
            (r#"{"amount":1,"a/b":1}"#, "`/a~1b` is not allowed"),
        ] {
            assert_eq!(told(&pay, args).as_deref(), Some(why), "{args}");
        }
    }

    #[test]
    fn what_is_not_judged_does_not_stand_in_the_way() {
        for schema in [
            json!({}),
            json!(true),
            json!({"format": "date", "type": 5, "required": "a"}),
        ] {
            assert_eq!(told(&schema, r#"{"a":[1]}"#), None, "{schema}");
        }
    }

    #[test]
    fn a_reference_leads_to_a_part_of_the_schema_and_nowhere_else() {
        let tree = json!({
            "$defs": {"node": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}},
            "$ref": "#/$defs/node",
        });
        assert_eq!(
            told(&tree, r#"{"name":"a","children":[{"name":"b","children":[]}]}"#),
            None
        );
        assert_eq!(
            told(&tree, r#"{"name":"a","children":[{"name":"b"},{"children":[]}]}"#).as_deref(),
            Some("`/children/1` lacks the required member `name`")
        );
        for elsewhere in [
            "https://elsewhere.example/s.json",
            "other.json",
            "#/$defs/none",
            "#anchor",
        ] {
            let schema = json!({"properties": {"a": {"$ref": elsewhere}}});
            assert_eq!(
                told(&schema, r#"{"a":1}"#).as_deref(),
                Some("the tool's own schema refers to what is not in it"),
                "{elsewhere}"
            );
        }
    }

    #[test]
    fn a_schema_without_an_end_fits_nothing() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
            json!({"not": {"$ref": "#"}}),
            json!({"allOf": [{"anyOf": [{"$ref": "#"}, {}]}, {"anyOf": [{"$ref": "#"}, {}]}]}),
        ] {
            assert!(told(&schema, "{}").is_some(), "{schema}");
        }
    }

    #[test]
    fn the_rarer_keywords_are_judged_too() {
        let schema = json!({
            "minProperties": 1,
            "dependentRequired": {"card": ["cvc"]},
            "not": {"required": ["forbidden"]},
            "if": {"properties": {"kind": {"const": "wire"}}, "required": ["kind"]},
            "then": {"required": ["iban"]},
            "properties": {
                "pair": {"prefixItems": [{"type": "string"}, {"type": "number"}], "items": false},
                "set": {"uniqueItems": true},
            },
        });
        for fits in [
            r#"{"kind":"cash"}"#,
            r#"{"kind":"wire","iban":1}"#,
            r#"{"pair":["a",1],"set":[1,2]}"#,
            r#"{"card":1,"cvc":2}"#,
        ] {
            assert_eq!(told(&schema, fits), None, "{fits}");
        }
        for misfit in [
            "{}",
            r#"{"kind":"wire"}"#,
            r#"{"pair":[1]}"#,
            r#"{"pair":["a",1,2]}"#,
            r#"{"set":[1,1.0]}"#,
            r#"{"card":1}"#,
            r#"{"forbidden":1}"#,
        ] {
            assert!(told(&schema, misfit).is_some(), "{misfit}");
        }
    }

    #[test]
    fn forms_multiples_and_names_are_judged() {
        let form = json!({
            "type": "object",
            "properties": {
                "iban": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{2}$"},
                "odd": {"type": "string", "pattern": "(?=x)y"},
                "price": {"type": "number", "multipleOf": 0.01},
                "list": {"type": "array", "contains": {"const": 1}, "maxContains": 2},
            },
            "patternProperties": {"^x_": {"type": "integer"}},
            "additionalProperties": false,
            "propertyNames": {"maxLength": 6},
        });
        for fits in [
            r#"{"iban":"DE89","price":19.99,"x_n":1,"list":[2,1,1]}"#,
            r#"{"odd":"what the engine cannot tell is left to the tool"}"#,
            r#"{"price":1e9}"#,
        ] {
            assert_eq!(told(&form, fits), None, "{fits}");
        }
        for (args, part) in [
            (r#"{"iban":"DE8"}"#, "`/iban` does not have the form"),
            (r#"{"price":0.015}"#, "`/price` is not a multiple"),
            (r#"{"x_n":"1"}"#, "`/x_n` must be of type integer"),
            (r#"{"y_n":1}"#, "`/y_n` is not allowed"),
            (r#"{"x_toolong":1}"#, "`/x_toolong` takes at most 6"),
            (r#"{"list":[2]}"#, "`/list` does not hold"),
            (r#"{"list":[1,1,1]}"#, "`/list` does not hold"),
        ] {
            let why = told(&form, args).unwrap_or_default();
            assert!(why.contains(part), "{args}: {why}");
        }
    }
}
