//! Slack's rules for blocks: shapes, lengths and the total, each refused in Slack's own words.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::world::collect_texts;

/// Seen as `msg_blocks_too_long` at 11,341 counted characters (bolt-js issue 2867).
const TOTAL_TEXT: usize = 11_300;

/// Why blocks are refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// `invalid_blocks` with these messages.
    Invalid(Vec<String>),
    /// `msg_blocks_too_long`
    TooLong,
}

/// Checks the blocks of a message (`most` 50) or a view (`most` 100).
pub(super) fn check(blocks: &Value, most: usize) -> Result<(), Refusal> {
    let mut checker = Checker::default();
    match blocks.as_array() {
        None => checker.fail("must be an array", "/blocks"),
        Some(list) => {
            if list.len() > most {
                checker.fail(&format!("no more than {most} items allowed"), "/blocks");
            }
            for (index, block) in list.iter().enumerate() {
                checker.block(block, &format!("/blocks/{index}"));
            }
        }
    }
    if !checker.found.is_empty() {
        return Err(Refusal::Invalid(checker.found));
    }
    let mut texts = Vec::new();
    collect_texts(blocks, &mut texts);
    if texts.iter().map(|text| units(text)).sum::<usize>() > TOTAL_TEXT {
        return Err(Refusal::TooLong);
    }
    Ok(())
}

/// The length as Slack's clients count it: UTF-16 units.
pub(super) fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

#[derive(Default)]
struct Checker {
    found: Vec<String>,
    block_ids: BTreeSet<String>,
    markdown: usize,
}

impl Checker {
    fn fail(&mut self, problem: &str, pointer: &str) {
        self.found
            .push(format!("[ERROR] {problem} [json-pointer:{pointer}]"));
    }

    fn keys(&mut self, fields: &Map<String, Value>, allowed: &[&str], at: &str) {
        for name in fields.keys().filter(|name| !allowed.contains(&name.as_str())) {
            self.fail(&format!("invalid additional property: {name}"), at);
        }
    }

    fn text(&mut self, text: &str, most: usize, at: &str) {
        if text.is_empty() {
            self.fail("must be more than 0 characters", at);
        }
        if units(text) > most {
            self.fail(&format!("must be less than {} characters", most + 1), at);
        }
    }

    fn string(&mut self, fields: &Map<String, Value>, name: &str, most: usize, required: bool, at: &str) {
        match fields.get(name) {
            Some(Value::String(text)) => self.text(text, most, &format!("{at}/{name}")),
            None if required => self.fail(&format!("missing required field: {name}"), at),
            None => {}
            Some(_) => self.fail("must be a string", &format!("{at}/{name}")),
        }
    }

    fn block(&mut self, block: &Value, at: &str) {
        let Some(fields) = block.as_object() else {
            return self.fail("must provide an object", at);
        };
        self.string(fields, "block_id", 255, false, at);
        if let Some(id) = fields.get("block_id").and_then(Value::as_str)
            && !self.block_ids.insert(id.to_owned())
        {
            self.fail("`block_id` must be unique", &format!("{at}/block_id"));
        }
        match fields.get("type").and_then(Value::as_str).unwrap_or_default() {
            "section" => self.section(fields, at),
            "header" => {
                self.keys(fields, &["type", "block_id", "text"], at);
                self.text_object(fields.get("text"), &["plain_text"], 150, &format!("{at}/text"));
            }
            "divider" => self.keys(fields, &["type", "block_id"], at),
            "actions" => self.actions(fields, at),
            "context" => {
                self.keys(fields, &["type", "block_id", "elements"], at);
                self.each(fields, 10, at, |checker, element, at| {
                    checker.text_object(Some(element), &["plain_text", "mrkdwn"], 3000, at);
                });
            }
            "rich_text" => {
                self.keys(fields, &["type", "block_id", "elements"], at);
                self.each(fields, 1000, at, Self::rich_text);
            }
            "markdown" => {
                self.keys(fields, &["type", "block_id", "text"], at);
                self.string(fields, "text", 12_000, true, at);
                self.markdown += fields.get("text").and_then(Value::as_str).map_or(0, units);
                if self.markdown > 12_000 {
                    self.fail("markdown blocks hold more than 12000 characters together", at);
                }
            }
            "input" => self.input(fields, at),
            other => self.fail(&format!("unsupported type: {other}"), &format!("{at}/type")),
        }
    }

    fn each(
        &mut self,
        fields: &Map<String, Value>,
        most: usize,
        at: &str,
        mut check: impl FnMut(&mut Self, &Value, &str),
    ) {
        let list = fields
            .get("elements")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if list.is_empty() {
            self.fail("no less than 1 items allowed", &format!("{at}/elements"));
        }
        if list.len() > most {
            self.fail(
                &format!("no more than {most} items allowed"),
                &format!("{at}/elements"),
            );
        }
        for (index, element) in list.iter().enumerate() {
            check(self, element, &format!("{at}/elements/{index}"));
        }
    }

    fn section(&mut self, fields: &Map<String, Value>, at: &str) {
        self.keys(
            fields,
            &["type", "block_id", "text", "fields", "accessory", "expand"],
            at,
        );
        let kinds = ["plain_text", "mrkdwn"];
        match (fields.get("text"), fields.get("fields").and_then(Value::as_array)) {
            (None, None) => self.fail("missing required field: text", at),
            (text, list) => {
                if text.is_some() {
                    self.text_object(text, &kinds, 3000, &format!("{at}/text"));
                }
                let list = list.cloned().unwrap_or_default();
                if list.len() > 10 {
                    self.fail("no more than 10 items allowed", &format!("{at}/fields"));
                }
                for (index, field) in list.iter().enumerate() {
                    self.text_object(Some(field), &kinds, 2000, &format!("{at}/fields/{index}"));
                }
            }
        }
        if let Some(accessory) = fields.get("accessory") {
            self.element(accessory, &format!("{at}/accessory"));
        }
    }

    fn actions(&mut self, fields: &Map<String, Value>, at: &str) {
        self.keys(fields, &["type", "block_id", "elements"], at);
        let mut ids = BTreeSet::new();
        self.each(fields, 25, at, |checker, element, at| {
            checker.element(element, at);
            if let Some(id) = element["action_id"].as_str()
                && !ids.insert(id.to_owned())
            {
                checker.fail(
                    "`action_id` must be unique within a block",
                    &format!("{at}/action_id"),
                );
            }
        });
    }

    fn element(&mut self, element: &Value, at: &str) {
        let Some(fields) = element.as_object() else {
            return self.fail("must provide an object", at);
        };
        self.string(fields, "action_id", 255, false, at);
        match fields.get("type").and_then(Value::as_str).unwrap_or_default() {
            "button" => {
                let known = [
                    "type",
                    "text",
                    "action_id",
                    "url",
                    "value",
                    "style",
                    "confirm",
                    "accessibility_label",
                ];
                self.keys(fields, &known, at);
                self.text_object(fields.get("text"), &["plain_text"], 75, &format!("{at}/text"));
                self.string(fields, "value", 2000, false, at);
                self.string(fields, "url", 3000, false, at);
                self.string(fields, "accessibility_label", 75, false, at);
                if let Some(style) = fields.get("style")
                    && style != "primary"
                    && style != "danger"
                {
                    self.fail("must be a valid enum value", &format!("{at}/style"));
                }
                if let Some(confirm) = fields.get("confirm") {
                    self.confirm(confirm, &format!("{at}/confirm"));
                }
            }
            "plain_text_input" => {
                let known = [
                    "type",
                    "action_id",
                    "initial_value",
                    "multiline",
                    "min_length",
                    "max_length",
                    "placeholder",
                    "focus_on_load",
                    "dispatch_action_config",
                ];
                self.keys(fields, &known, at);
                let most = fields.get("max_length").map_or(Some(3000), Value::as_u64);
                if !most.is_some_and(|most| (1..=3000).contains(&most)) {
                    self.fail("must be between 1 and 3000", &format!("{at}/max_length"));
                }
                let most = most
                    .and_then(|most| usize::try_from(most).ok())
                    .unwrap_or_default();
                self.string(fields, "initial_value", most, false, at);
            }
            "radio_buttons" => self.radio_buttons(fields, at),
            other => self.fail(&format!("unsupported type: {other}"), &format!("{at}/type")),
        }
    }

    fn radio_buttons(&mut self, fields: &Map<String, Value>, at: &str) {
        let known = [
            "type",
            "action_id",
            "options",
            "initial_option",
            "confirm",
            "focus_on_load",
        ];
        self.keys(fields, &known, at);
        let options = fields.get("options").and_then(Value::as_array);
        let options = options.cloned().unwrap_or_default();
        if !(1..=10).contains(&options.len()) {
            self.fail("between 1 and 10 items allowed", &format!("{at}/options"));
        }
        let mut values = BTreeSet::new();
        for (index, option) in options.iter().enumerate() {
            let at = format!("{at}/options/{index}");
            let Some(fields) = option.as_object() else {
                return self.fail("must provide an object", &at);
            };
            self.keys(fields, &["text", "value", "description"], &at);
            self.text_object(
                fields.get("text"),
                &["plain_text", "mrkdwn"],
                75,
                &format!("{at}/text"),
            );
            self.string(fields, "value", 75, true, &at);
            if !values.insert(option["value"].to_string()) {
                self.fail("option values must be unique", &at);
            }
        }
    }

    fn confirm(&mut self, confirm: &Value, at: &str) {
        let Some(fields) = confirm.as_object() else {
            return self.fail("must provide an object", at);
        };
        self.keys(fields, &["title", "text", "confirm", "deny", "style"], at);
        for (name, most) in [("title", 100), ("confirm", 30), ("deny", 30)] {
            self.text_object(fields.get(name), &["plain_text"], most, &format!("{at}/{name}"));
        }
        self.text_object(
            fields.get("text"),
            &["plain_text", "mrkdwn"],
            300,
            &format!("{at}/text"),
        );
    }

    fn input(&mut self, fields: &Map<String, Value>, at: &str) {
        self.keys(
            fields,
            &[
                "type",
                "block_id",
                "label",
                "element",
                "hint",
                "optional",
                "dispatch_action",
            ],
            at,
        );
        self.text_object(fields.get("label"), &["plain_text"], 2000, &format!("{at}/label"));
        match fields.get("element") {
            Some(element) if element["type"] == "button" => {
                self.fail("unsupported type: button", &format!("{at}/element/type"));
            }
            Some(element) => self.element(element, &format!("{at}/element")),
            None => self.fail("missing required field: element", at),
        }
    }

    fn text_object(&mut self, object: Option<&Value>, kinds: &[&str], most: usize, at: &str) {
        let Some(fields) = object.and_then(Value::as_object) else {
            return self.fail("failed to match all allowed schemas", at);
        };
        let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
        if !kinds.contains(&kind) {
            self.fail("must be a valid enum value", &format!("{at}/type"));
        }
        let own = if kind == "mrkdwn" { "verbatim" } else { "emoji" };
        self.keys(fields, &["type", "text", own], at);
        self.string(fields, "text", most, true, at);
    }

    fn rich_text(&mut self, element: &Value, at: &str) {
        let Some(fields) = element.as_object() else {
            return self.fail("must provide an object", at);
        };
        let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
        let (own, inner): (&[&str], &[&str]) = match kind {
            "rich_text_section" => (
                &[],
                &[
                    "text",
                    "link",
                    "emoji",
                    "user",
                    "channel",
                    "broadcast",
                    "date",
                    "usergroup",
                    "color",
                ],
            ),
            "rich_text_preformatted" => (&["border", "language"], &["text", "link"]),
            "rich_text_quote" => (&["border"], &["text", "link", "emoji", "user"]),
            "rich_text_list" => (&["border", "style", "indent", "offset"], &["rich_text_section"]),
            other => return self.fail(&format!("unsupported type: {other}"), &format!("{at}/type")),
        };
        self.keys(fields, &[&["type", "elements"], own].concat(), at);
        if fields
            .get("border")
            .is_some_and(|border| border != 0 && border != 1)
        {
            self.fail("must be 0 or 1", &format!("{at}/border"));
        }
        self.each(fields, 1000, at, |checker, part, at| {
            let kind = part["type"].as_str().unwrap_or_default();
            if !inner.contains(&kind) {
                return checker.fail(&format!("unsupported type: {kind}"), &format!("{at}/type"));
            }
            match part.as_object() {
                Some(_) if kind == "rich_text_section" => checker.rich_text(part, at),
                Some(fields) if kind == "text" => {
                    checker.keys(fields, &["type", "text", "style"], at);
                    checker.string(fields, "text", usize::MAX - 1, true, at);
                }
                _ => {}
            }
        });
    }
}
