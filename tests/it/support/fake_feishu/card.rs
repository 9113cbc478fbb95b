//! The platform's rules for card JSON 2.0: unknown tags and properties are refused, and the structural limits hold.
//!
//! Strict where the documentation leaves doubt: what this accepts, a tenant accepts.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::markdown;
use super::world::World;

/// The sub-code and text inside a 230099.
#[derive(Debug)]
pub(super) struct Refused {
    code: u32,
    message: String,
    value: String,
}

impl Refused {
    /// The text of the platform's answer.
    pub fn text(&self) -> String {
        let Self { code, message, value } = self;
        format!(
            "Failed to create card content, ext=ErrCode: {code}; ErrMsg: {message}; ErrorValue: {value}; "
        )
    }

    pub fn new(code: u32, message: &str, value: &str) -> Self {
        Self {
            code,
            message: message.to_owned(),
            value: value.to_owned(),
        }
    }
}

type Checked = Result<(), Refused>;
type Fields = Map<String, Value>;

const TEXT: &str = "tag content i18n_content text_size text_align text_color lines element_id icon";

/// Checks a whole card.
pub(super) fn check(card: &Value, world: &World) -> Checked {
    let mut checker = Checker {
        world,
        tags: 0,
        tables: 0,
        names: BTreeSet::new(),
        element_ids: BTreeSet::new(),
    };
    checker.card(card)
}

struct Checker<'a> {
    world: &'a World,
    tags: usize,
    tables: usize,
    names: BTreeSet<String>,
    element_ids: BTreeSet<String>,
}

fn object<'a>(value: &'a Value, path: &str) -> Result<&'a Fields, Refused> {
    value
        .as_object()
        .ok_or_else(|| Refused::new(200_621, "parse card json err, not an object", path))
}

fn known(fields: &Fields, allowed: &[&str], path: &str) -> Checked {
    let allows = |name: &str| {
        allowed
            .iter()
            .any(|list| list.split(' ').any(|known| known == name))
    };
    match fields.keys().find(|name| !allows(name)) {
        None => Ok(()),
        Some(name) => {
            let message = format!("parse card json err, unknown property: {name}, path: [{path}]");
            Err(Refused::new(200_621, &message, name))
        }
    }
}

fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The properties of a component beside `tag`, `element_id` and `margin`; none for a tag that 2.0 does not know.
fn properties(tag: &str) -> Option<&'static str> {
    Some(match tag {
        "div" => "text icon width",
        "markdown" => "content i18n_content text_align text_size icon",
        "hr" => "",
        "button" => {
            "type size width text icon hover_tips disabled disabled_tips confirm behaviors name required \
             form_action_type"
        }
        "input" => {
            "name required placeholder default_value disabled width max_length input_type show_icon rows \
             auto_resize max_rows label label_position value behaviors confirm fallback"
        }
        "form" => {
            "name elements direction padding horizontal_spacing horizontal_align vertical_spacing vertical_align \
             confirm"
        }
        "column_set" => "flex_mode background_style horizontal_spacing horizontal_align columns action",
        "column" => {
            "elements background_style width weight direction padding horizontal_spacing vertical_spacing \
             horizontal_align vertical_align action"
        }
        "collapsible_panel" => {
            "elements expanded background_color header border direction padding vertical_spacing \
             horizontal_spacing vertical_align horizontal_align"
        }
        "interactive_container" => {
            "elements width height background_style has_border border_color corner_radius padding behaviors \
             hover_tips disabled disabled_tips confirm direction vertical_spacing horizontal_spacing \
             vertical_align horizontal_align"
        }
        "table" => "columns rows page_size row_height row_max_height header_style freeze_first_column",
        _ => return None,
    })
}

impl Checker<'_> {
    fn card(&mut self, card: &Value) -> Checked {
        let fields = object(card, "card")?;
        if text(fields, "schema") != "2.0" {
            return Err(Refused::new(
                200_830,
                "this tenant takes cards of schema 2.0 only",
                "schema",
            ));
        }
        known(fields, &["schema config card_link header body"], "")?;
        if let Some(config) = fields.get("config") {
            Self::config(object(config, "config")?)?;
        }
        if let Some(header) = fields.get("header") {
            self.header(object(header, "header")?)?;
        }
        let missing = Value::Null;
        let body = object(fields.get("body").unwrap_or(&missing), "body")?;
        let layout = "elements direction padding horizontal_spacing vertical_spacing \
             horizontal_align vertical_align";
        known(body, &[layout], "body")?;
        self.elements(body, 1, None, "body")?;
        if self.tags > 200 {
            return Err(Refused::new(11_310, "card element number over limit", "element"));
        }
        if self.tables > 5 {
            return Err(Refused::new(11_310, "card table number over limit", "table"));
        }
        Ok(())
    }

    fn config(config: &Fields) -> Checked {
        let allowed = "streaming_mode streaming_config summary locales enable_forward \
             update_multi width_mode use_custom_translation enable_forward_interaction style";
        known(config, &[allowed], "config")?;
        if config
            .get("update_multi")
            .is_some_and(|value| *value != Value::Bool(true))
        {
            return Err(Refused::new(
                200_621,
                "update_multi of schema V2 must be true",
                "update_multi",
            ));
        }
        Ok(())
    }

    fn header(&mut self, header: &Fields) -> Checked {
        let allowed = "title subtitle template icon padding text_tag_list i18n_text_tag_list";
        known(header, &[allowed], "header")?;
        let colours = [
            "",
            "blue",
            "wathet",
            "turquoise",
            "green",
            "yellow",
            "orange",
            "red",
            "carmine",
            "violet",
            "purple",
            "indigo",
            "grey",
            "default",
        ];
        if !colours.contains(&text(header, "template")) {
            return Err(Refused::new(
                200_621,
                "unknown header template",
                text(header, "template"),
            ));
        }
        for name in ["title", "subtitle"] {
            if let Some(object) = header.get(name) {
                self.text(object, usize::MAX, &format!("header -> {name}"))?;
            }
        }
        let tags = header
            .get("text_tag_list")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if tags.len() > 3 {
            return Err(Refused::new(11_310, "text_tag_list over limit", "text_tag_list"));
        }
        for tag in &tags {
            let fields = object(tag, "header -> text_tag_list")?;
            known(fields, &["tag element_id text color"], "header -> text_tag_list")?;
            self.tags += 1;
            self.text(
                fields.get("text").unwrap_or(&Value::Null),
                usize::MAX,
                "header -> text_tag_list",
            )?;
        }
        Ok(())
    }

    /// A `plain_text` or `lark_md` object.
    fn text(&mut self, value: &Value, most: usize, path: &str) -> Checked {
        let fields = object(value, path)?;
        known(fields, &[TEXT], path)?;
        self.tags += 1;
        let content = text(fields, "content");
        if content.chars().count() > most {
            return Err(Refused::new(200_621, "text over limit", path));
        }
        match text(fields, "tag") {
            "plain_text" => Ok(()),
            "lark_md" => self.markdown(content),
            other => Err(unsupported(other, path)),
        }
    }

    fn plain(&mut self, value: &Value, most: usize, path: &str) -> Checked {
        if value["tag"] != "plain_text" {
            return Err(Refused::new(200_621, "the text must be plain_text", path));
        }
        self.text(value, most, path)
    }

    fn markdown(&mut self, content: &str) -> Checked {
        for id in markdown::mentioned(content) {
            if id == "all" {
                return Err(Refused::new(
                    100_290,
                    "the group owner does not allow to mention all",
                    "all",
                ));
            }
            if !self.world.people.contains_key(&id) {
                return Err(Refused::new(100_290, "the user of an at tag is invalid", &id));
            }
        }
        if let Some(key) = markdown::images(content)
            .into_iter()
            .find(|key| !key.starts_with("img_v"))
        {
            return Err(Refused::new(200_570, "the image key is invalid", &key));
        }
        let tables = markdown::tables(content);
        if tables > 4 {
            return Err(Refused::new(11_310, "card table number over limit", "table"));
        }
        self.tables += tables;
        Ok(())
    }

    fn elements(&mut self, parent: &Fields, depth: usize, form: Option<&str>, path: &str) -> Checked {
        let name = if parent.contains_key("columns") {
            "columns"
        } else {
            "elements"
        };
        let list = parent.get(name).and_then(Value::as_array);
        let list =
            list.ok_or_else(|| Refused::new(200_621, "parse card json err, elements is not a list", path))?;
        if depth > 5 {
            return Err(Refused::new(11_310, "card nesting over limit", path));
        }
        for (index, element) in list.iter().enumerate() {
            let tag = element["tag"].as_str().unwrap_or_default();
            self.element(
                element,
                depth,
                form,
                &format!("{path} -> {name} -> [{index}](tag: {tag})"),
            )?;
        }
        Ok(())
    }

    fn element(&mut self, element: &Value, depth: usize, form: Option<&str>, path: &str) -> Checked {
        let fields = object(element, path)?;
        let tag = text(fields, "tag");
        let own = properties(tag).ok_or_else(|| unsupported(tag, path))?;
        known(fields, &["tag element_id margin", own], path)?;
        self.tags += 1;
        self.element_id(fields)?;
        match tag {
            "div" => self.text(fields.get("text").unwrap_or(&Value::Null), usize::MAX, path),
            "markdown" => self.markdown(text(fields, "content")),
            "button" => self.button(fields, form, path),
            "input" => self.input(fields, path),
            "form" => self.form(fields, depth, path),
            "table" => {
                self.tables += 1;
                if form.is_some() {
                    return Err(Refused::new(200_621, "a form holds no table", path));
                }
                Ok(())
            }
            "column_set" | "column" | "interactive_container" => self.elements(fields, depth + 1, form, path),
            "collapsible_panel" => {
                if let Some(title) = fields.get("header").and_then(|header| header.get("title")) {
                    self.text_or_markdown(title, path)?;
                }
                self.elements(fields, depth + 1, form, path)
            }
            _ => Ok(()),
        }
    }

    fn text_or_markdown(&mut self, title: &Value, path: &str) -> Checked {
        if title["tag"] == "markdown" {
            self.tags += 1;
            return self.markdown(title["content"].as_str().unwrap_or_default());
        }
        self.text(title, usize::MAX, path)
    }

    fn element_id(&mut self, fields: &Fields) -> Checked {
        let Some(id) = fields.get("element_id").and_then(Value::as_str) else {
            return Ok(());
        };
        let shaped = id.len() <= 20
            && id.starts_with(|first: char| first.is_ascii_alphabetic())
            && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !shaped || !self.element_ids.insert(id.to_owned()) {
            return Err(Refused::new(200_621, "element_id is malformed or not unique", id));
        }
        Ok(())
    }

    fn button(&mut self, fields: &Fields, form: Option<&str>, path: &str) -> Checked {
        self.plain(fields.get("text").unwrap_or(&Value::Null), 100, path)?;
        if form.is_some() && text(fields, "name").is_empty() {
            return Err(Refused::new(200_530, "the button in the form has no name", path));
        }
        self.name(fields)?;
        for tips in ["hover_tips", "disabled_tips"]
            .iter()
            .filter_map(|name| fields.get(*name))
        {
            self.plain(tips, usize::MAX, path)?;
        }
        if let Some(confirm) = fields.get("confirm") {
            let confirm = object(confirm, path)?;
            known(confirm, &["title text"], path)?;
            for part in ["title", "text"] {
                self.plain(confirm.get(part).unwrap_or(&Value::Null), usize::MAX, path)?;
            }
        }
        for behavior in fields
            .get("behaviors")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            match behavior["type"].as_str() {
                Some("callback") if behavior["value"].is_object() => {}
                Some("open_url")
                    if behavior["default_url"]
                        .as_str()
                        .is_some_and(|url| url.starts_with("http")) => {}
                _ => return Err(Refused::new(200_621, "parse card json err, bad behavior", path)),
            }
        }
        Ok(())
    }

    fn name(&mut self, fields: &Fields) -> Checked {
        let name = text(fields, "name");
        if !name.is_empty() && !self.names.insert(name.to_owned()) {
            return Err(Refused::new(200_530, "a name stands twice", name));
        }
        Ok(())
    }

    fn input(&mut self, fields: &Fields, path: &str) -> Checked {
        if text(fields, "name").is_empty() {
            return Err(Refused::new(200_530, "the input has no name", path));
        }
        self.name(fields)?;
        let longest = fields.get("max_length").map_or(Some(1), Value::as_u64);
        if !longest.is_some_and(|most| (1..=1000).contains(&most)) {
            return Err(Refused::new(200_621, "max_length is out of range", path));
        }
        let given = text(fields, "default_value").encode_utf16().count() as u64;
        if given > longest.unwrap_or_default() {
            return Err(Refused::new(
                200_621,
                "default_value is longer than max_length",
                path,
            ));
        }
        for (name, most) in [("placeholder", 100), ("label", usize::MAX)] {
            if let Some(text) = fields.get(name) {
                self.plain(text, most, path)?;
            }
        }
        Ok(())
    }

    fn form(&mut self, fields: &Fields, depth: usize, path: &str) -> Checked {
        let name = text(fields, "name");
        if depth != 1 || name.is_empty() {
            return Err(Refused::new(
                200_530,
                "a form stands at the root and has a name",
                path,
            ));
        }
        self.name(fields)?;
        self.elements(fields, depth + 1, Some(name), path)?;
        let submits = super::world::buttons(&Value::Object(fields.clone()));
        if !submits
            .iter()
            .any(|button| button["form_action_type"] == "submit")
        {
            return Err(Refused::new(
                200_530,
                "there is no submit button in the form container",
                path,
            ));
        }
        Ok(())
    }
}

fn unsupported(tag: &str, path: &str) -> Refused {
    let message = format!(
        "cards of schema V2 no longer support this capability; unsupported tag {tag}; ErrorPath: ROOT -> {path}"
    );
    Refused::new(200_861, &message, tag)
}
