//! The state of the fake tenant.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use super::super::limiter::Limiter;
use super::contacts::{Group, SCOPES, Status};
use super::{CHAT, Call};

/// A person of the tenant.
#[derive(Clone, Debug)]
pub struct Person {
    /// `ou_…`, per app.
    pub open_id: String,
    /// `on_…`, per developer.
    pub union_id: String,
    /// Per tenant; callbacks carry it only when the app has the scope.
    pub user_id: Option<String>,
    /// What `batch_get_id` finds.
    pub email: String,
    /// What the account is.
    pub status: Status,
    /// Whether the contact range of the app holds the person.
    pub in_range: bool,
    /// The department, by which a group may hold the person.
    pub department: Option<String>,
}

impl Person {
    /// A person whose callbacks carry no `user_id`.
    pub fn new(open_id: &str, email: &str) -> Self {
        let union_id = open_id.replacen("ou_", "on_", 1);
        Self {
            open_id: open_id.to_owned(),
            union_id,
            user_id: None,
            email: email.to_owned(),
            status: Status::Active,
            in_range: true,
            department: None,
        }
    }
}

/// A message with all that it ever was.
#[derive(Clone, Debug)]
pub struct Message {
    /// `om_…`
    pub id: String,
    /// Where it stands.
    pub chat_id: String,
    /// The message that it answers.
    pub parent_id: Option<String>,
    /// `interactive` or `text`.
    pub msg_type: String,
    /// From the first post to the present state; never empty.
    pub history: Vec<Value>,
    /// Whether it was recalled.
    pub recalled: bool,
    pub(super) created_ms: i64,
}

impl Message {
    /// What people see now.
    pub fn current(&self) -> &Value {
        self.history
            .last()
            .expect("a message has at least its first state")
    }

    /// Every text of the current card, one a line.
    pub fn visible_text(&self) -> String {
        let mut lines = Vec::new();
        walk(self.current(), &mut |fields| {
            let text = fields
                .get("content")
                .or_else(|| fields.get("text"))
                .and_then(Value::as_str);
            lines.extend(text.map(str::to_owned));
        });
        lines.join("\n")
    }

    /// The `decision` of every enabled button of the current card, in order of the document.
    pub fn decisions(&self) -> Vec<String> {
        let mut found = Vec::new();
        for button in buttons(self.current()) {
            found.extend(callback_value(&button)["decision"].as_str().map(str::to_owned));
        }
        found
    }
}

type Fields = serde_json::Map<String, Value>;

/// Calls `see` for every object of a document.
pub(super) fn walk(value: &Value, see: &mut impl FnMut(&Fields)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, see)),
        Value::Object(fields) => {
            see(fields);
            fields.values().for_each(|field| walk(field, see));
        }
        _ => {}
    }
}

/// The enabled buttons of a card.
pub(super) fn buttons(card: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    walk(card, &mut |fields| {
        let is = |name: &str, value: &str| fields.get(name).and_then(Value::as_str) == Some(value);
        if is("tag", "button") && fields.get("disabled") != Some(&Value::Bool(true)) {
            found.push(Value::Object(fields.clone()));
        }
    });
    found
}

/// What a press on the button sends back; null without a callback.
pub(super) fn callback_value(button: &Value) -> Value {
    let behaviors = button["behaviors"].as_array().cloned().unwrap_or_default();
    let callback = behaviors
        .into_iter()
        .find(|behavior| behavior["type"] == "callback");
    callback
        .map(|behavior| behavior["value"].clone())
        .unwrap_or_default()
}

#[derive(Debug)]
pub(super) struct Chat {
    pub bot_is_member: bool,
    pub absent: BTreeSet<String>,
}

impl Chat {
    pub fn with_bot() -> Self {
        Self {
            bot_is_member: true,
            absent: BTreeSet::new(),
        }
    }
}

#[derive(Debug)]
pub(super) struct CardToken {
    pub message_id: String,
    pub issued_ms: i64,
    pub uses: u32,
    pub answered: bool,
}

#[derive(Debug)]
pub(super) struct World {
    pub chats: BTreeMap<String, Chat>,
    pub people: BTreeMap<String, Person>,
    pub groups: BTreeMap<String, Group>,
    /// What the app may ask of the contacts.
    pub scopes: BTreeSet<String>,
    /// 50 calls a second of each of these.
    pub contact_calls: Limiter,
    pub messages: Vec<Message>,
    pub ephemerals: Vec<(String, String, Value)>,
    pub calls: Vec<Call>,
    /// Each with the millisecond at which it ends; the newest last.
    pub tokens: Vec<(String, i64)>,
    /// `uuid` of a send: when, and what it made.
    pub uuids: HashMap<String, (i64, String)>,
    pub card_tokens: HashMap<String, CardToken>,
    pub in_click: BTreeSet<String>,
    pub locks: bool,
    pub rate_limited: bool,
    pub limiter: Limiter,
    /// The app's own record, as `application/v6/applications/{id}` shows it.
    pub app: Value,
    /// Where the long connection is opened; nothing while the console does not offer it.
    pub socket_address: Option<String>,
    counter: u32,
}

impl World {
    pub fn new() -> Self {
        Self {
            chats: BTreeMap::from([(CHAT.to_owned(), Chat::with_bot())]),
            people: BTreeMap::new(),
            groups: BTreeMap::new(),
            scopes: SCOPES.map(str::to_owned).into(),
            contact_calls: Limiter::new(20, 50),
            messages: Vec::new(),
            ephemerals: Vec::new(),
            calls: Vec::new(),
            tokens: Vec::new(),
            uuids: HashMap::new(),
            card_tokens: HashMap::new(),
            in_click: BTreeSet::new(),
            locks: true,
            rate_limited: true,
            limiter: Limiter::new(200, 5),
            app: json!({
                "app_id": super::APP,
                "online_version_id": "oav_1",
                "unaudit_version_id": "",
                "callback_info": {"callback_type": "webhook", "subscribed_callbacks": ["card.action.trigger"]},
            }),
            socket_address: None,
            counter: 0,
        }
    }

    /// A new id of the platform's look.
    pub fn id(&mut self, prefix: &str) -> String {
        self.counter += 1;
        format!("{prefix}{:032x}", self.counter)
    }

    pub fn message_mut(&mut self, id: &str) -> Option<&mut Message> {
        self.messages.iter_mut().find(|message| message.id == id)
    }
}
