//! The state of the fake workspace.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use super::super::limiter::Limiter;
use super::people::{Standing, Tiers, UserGroup};
use super::{CHANNEL, Call, TEAM};

/// A person (or bot) of the workspace.
#[derive(Clone, Debug)]
pub struct User {
    /// `U…` or `W…`, opaque.
    pub id: String,
    /// The address that `users.lookupByEmail` finds.
    pub email: String,
    /// The name shown.
    pub name: String,
    /// What the account is.
    pub standing: Standing,
}

impl User {
    /// An active person.
    pub fn new(id: &str, email: &str) -> Self {
        Self {
            id: id.to_owned(),
            email: email.to_owned(),
            name: id.to_lowercase(),
            standing: Standing::Member,
        }
    }

    /// The same account, standing otherwise.
    pub fn standing(self, standing: Standing) -> Self {
        Self { standing, ..self }
    }
}

/// One state of a message.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The fallback text.
    pub text: String,
    /// The blocks, each with a `block_id`; an empty array without any.
    pub blocks: Value,
    /// Message metadata or null.
    pub metadata: Value,
}

impl Revision {
    /// The button with this `action_id`, and the `block_id` around it; the first of several.
    pub fn button(&self, action_id: &str) -> Option<(String, Value)> {
        self.buttons(action_id).into_iter().next()
    }

    /// All buttons with this `action_id`, in order, each with the `block_id` around it.
    pub fn buttons(&self, action_id: &str) -> Vec<(String, Value)> {
        let mut found = Vec::new();
        for block in self.blocks.as_array().into_iter().flatten() {
            let elements = block["elements"].as_array().cloned().unwrap_or_default();
            let candidates = elements.into_iter().chain([block["accessory"].clone()]);
            for element in candidates {
                if element["type"] == "button" && element["action_id"] == action_id {
                    let id = block["block_id"].as_str().unwrap_or_default();
                    found.push((id.to_owned(), element));
                }
            }
        }
        found
    }

    /// The `action_id` of every button, in order.
    pub fn action_ids(&self) -> Vec<String> {
        let mut found = Vec::new();
        collect_action_ids(&self.blocks, &mut found);
        found
    }

    /// The persons whom the message mentions.
    pub fn mentions(&self) -> Vec<String> {
        let mut found = Vec::new();
        collect_users(&self.blocks, &mut found);
        found
    }

    /// Everything that a person could read: the fallback text and each text of the blocks, one a line.
    pub fn visible_text(&self) -> String {
        let mut lines = vec![self.text.clone()];
        collect_texts(&self.blocks, &mut lines);
        lines.join("\n")
    }
}

fn collect_action_ids(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_action_ids(item, found)),
        Value::Object(fields) => {
            if let Some(id) = fields.get("action_id").and_then(Value::as_str) {
                found.push(id.to_owned());
            }
            fields.values().for_each(|field| collect_action_ids(field, found));
        }
        _ => {}
    }
}

/// The persons that elements of rich text mention.
pub(super) fn collect_users(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_users(item, found)),
        Value::Object(fields) => {
            if fields.get("type").is_some_and(|kind| kind == "user") {
                found.extend(fields.get("user_id").and_then(Value::as_str).map(str::to_owned));
            }
            fields.values().for_each(|field| collect_users(field, found));
        }
        _ => {}
    }
}

pub(super) fn collect_texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, found)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == "text" => found.push(text.clone()),
                    other => collect_texts(other, found),
                }
            }
        }
        _ => {}
    }
}

/// A message of a channel with all that it ever was.
#[derive(Clone, Debug)]
pub struct Message {
    /// Where it stands.
    pub channel: String,
    /// Its id within the channel.
    pub ts: String,
    /// The message under which it is a reply.
    pub thread_ts: Option<String>,
    /// From the first post to the present state; never empty.
    pub history: Vec<Revision>,
}

impl Message {
    /// What people see now.
    pub fn current(&self) -> &Revision {
        self.history
            .last()
            .expect("a message has at least its first state")
    }

    /// As the API and a callback show it.
    pub(super) fn shown(&self) -> Value {
        let now = self.current();
        json!({
            "type": "message", "subtype": "bot_message", "user": "U0GATEBOT", "bot_id": "B0GATEBOT",
            "app_id": super::APP, "team": TEAM, "ts": self.ts, "text": now.text, "blocks": now.blocks,
        })
    }
}

/// A modal that was opened.
#[derive(Clone, Debug)]
pub struct View {
    /// `V…`
    pub id: String,
    /// Who sees it.
    pub user: String,
    /// As given to `views.open` or `views.update` last, blocks with their ids.
    pub content: Value,
    /// Whether the person closed it.
    pub closed: bool,
}

impl View {
    /// Everything that a person could read, one text a line.
    pub fn visible_text(&self) -> String {
        let mut lines = Vec::new();
        collect_texts(&self.content, &mut lines);
        lines.join("\n")
    }

    /// What stands in preformatted text, put together.
    pub fn literal_text(&self) -> String {
        let blocks = self.content["blocks"].as_array().cloned().unwrap_or_default();
        let literal = blocks.into_iter().filter(|block| block["type"] == "rich_text");
        let mut texts = Vec::new();
        literal.for_each(|block| collect_texts(&block, &mut texts));
        texts.concat()
    }

    /// The values that can be chosen, in order.
    pub fn choices(&self) -> Vec<String> {
        let mut found = Vec::new();
        for block in self.content["blocks"].as_array().into_iter().flatten() {
            let options = block["element"]["options"].as_array();
            let values = options
                .into_iter()
                .flatten()
                .filter_map(|option| option["value"].as_str());
            found.extend(values.map(str::to_owned));
        }
        found
    }
}

#[derive(Debug)]
pub(super) struct Channel {
    pub archived: bool,
    pub bot_is_member: bool,
    pub absent: BTreeSet<String>,
}

impl Channel {
    pub fn with_bot() -> Self {
        Self {
            archived: false,
            bot_is_member: true,
            absent: BTreeSet::new(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Trigger {
    pub issued_ms: i64,
    pub used: bool,
    pub user: String,
}

#[derive(Debug)]
pub(super) struct World {
    pub channels: BTreeMap<String, Channel>,
    pub users: BTreeMap<String, User>,
    pub user_groups: BTreeMap<String, UserGroup>,
    pub tiers: Tiers,
    pub paid: bool,
    pub messages: Vec<Message>,
    pub ephemerals: Vec<(String, String, Value)>,
    pub views: Vec<View>,
    pub calls: Vec<Call>,
    pub triggers: HashMap<String, Trigger>,
    pub token_error: Option<String>,
    pub scopes: Vec<String>,
    pub rate_limited: bool,
    pub limiter: Limiter,
    /// Where Socket Mode is opened; nothing while it is off.
    pub socket_address: Option<String>,
    counter: u32,
}

impl World {
    pub fn new() -> Self {
        let scopes = [
            "chat:write",
            "channels:read",
            "groups:read",
            "im:read",
            "users:read",
            "users:read.email",
            "usergroups:read",
            "commands",
        ];
        Self {
            channels: BTreeMap::from([(CHANNEL.to_owned(), Channel::with_bot())]),
            users: BTreeMap::new(),
            user_groups: BTreeMap::new(),
            tiers: Tiers::default(),
            paid: true,
            messages: Vec::new(),
            ephemerals: Vec::new(),
            views: Vec::new(),
            calls: Vec::new(),
            triggers: HashMap::new(),
            token_error: None,
            scopes: scopes.map(str::to_owned).to_vec(),
            rate_limited: true,
            limiter: Limiter::new(1000, 5),
            socket_address: None,
            counter: 0,
        }
    }

    pub fn channel_mut(&mut self, id: &str) -> &mut Channel {
        self.channels
            .get_mut(id)
            .unwrap_or_else(|| panic!("the test never made channel {id}"))
    }

    /// The next number of this workspace.
    pub fn next(&mut self) -> u32 {
        self.counter += 1;
        self.counter
    }

    /// A new message id: seconds, and a fraction that never repeats.
    pub fn next_ts(&mut self, now_ms: i64) -> String {
        format!("{}.{:06}", now_ms.div_euclid(1000), self.next())
    }

    /// A new trigger for a modal of `user`.
    pub fn trigger(&mut self, user: &str, now_ms: i64) -> String {
        let id = format!("{}.{}.{:032x}", now_ms, self.next(), 0x5eed_u32 + self.counter);
        self.triggers.insert(
            id.clone(),
            Trigger {
                issued_ms: now_ms,
                used: false,
                user: user.to_owned(),
            },
        );
        id
    }
}
