//! Interactive requests as Slack sends them: a form with one JSON field, signed over the raw bytes.

use std::fmt::Write as _;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::super::platform_request::{Answered, PlatformRequest};
use super::methods::COMMAND_CHANNEL;
use super::world::{Message, Revision, View};
use super::{APP, FakeSlack, SIGNING_SECRET, TEAM};

/// How the arguments travel.
#[derive(Clone, Debug)]
enum Carriage {
    /// `payload=` and JSON: clicks and modals.
    Payload,
    /// Flat form fields: slash commands.
    Fields,
}

/// A request about to be signed. Its methods are what an attacker or an accident could change.
#[derive(Clone, Debug)]
#[must_use]
pub struct Signed {
    document: Value,
    carriage: Carriage,
    secret: String,
    timestamp: i64,
}

impl FakeSlack {
    /// A press on the button `action_id` as it stands now in `message`, by `user`.
    ///
    /// # Panics
    /// When the message is gone or has no such button any more: no client could press it.
    pub fn click(&self, message: &Message, action_id: &str, user: &str) -> Signed {
        let now = self
            .messages(&message.channel)
            .into_iter()
            .find(|other| other.ts == message.ts);
        let now = now.expect("the message still stands");
        self.press(&now, now.current(), action_id, user)
    }

    /// A press on the `nth` button (from 0) with this `action_id` as it stands now, on a message that has several.
    ///
    /// # Panics
    /// When the message is gone or has no such button any more.
    pub fn click_nth(&self, message: &Message, nth: usize, action_id: &str, user: &str) -> Signed {
        let mut messages = self.messages(&message.channel).into_iter();
        let now = messages.find(|other| other.ts == message.ts);
        let now = now.expect("the message still stands");
        self.press_nth(&now, now.current(), nth, action_id, user)
    }

    /// A press on the button as it stood in the given revision (a client that has not caught up).
    pub fn click_revision(&self, message: &Message, revision: usize, action_id: &str, user: &str) -> Signed {
        self.press(message, &message.history[revision], action_id, user)
    }

    fn press(&self, message: &Message, revision: &Revision, action_id: &str, user: &str) -> Signed {
        self.press_nth(message, revision, 0, action_id, user)
    }

    fn press_nth(
        &self,
        message: &Message,
        revision: &Revision,
        nth: usize,
        action_id: &str,
        user: &str,
    ) -> Signed {
        let Some((block_id, button)) = revision.buttons(action_id).into_iter().nth(nth) else {
            panic!("no button {action_id}; there are {:?}", revision.action_ids())
        };
        let now_ms = self.clock().now_ms();
        let (trigger, number) = self.world(|world| (world.trigger(user, now_ms), world.next()));
        let mut action = button;
        action["block_id"] = json!(block_id);
        action["action_ts"] = json!(format!("{}.{number:06}", now_ms.div_euclid(1000)));
        let mut shown = message.shown();
        shown["blocks"] = revision.blocks.clone();
        let document = json!({
            "type": "block_actions",
            "user": {"id": user, "username": user.to_lowercase(), "name": user.to_lowercase(), "team_id": TEAM},
            "api_app_id": APP, "token": "legacy-verification-token",
            "container": {
                "type": "message", "message_ts": message.ts, "channel_id": message.channel, "is_ephemeral": false,
            },
            "trigger_id": trigger, "team": {"id": TEAM, "domain": "gatepost-test"}, "enterprise": null,
            "is_enterprise_install": false,
            "channel": {"id": message.channel, "name": message.channel.to_lowercase()},
            "message": shown, "state": {"values": untouched(&revision.blocks)},
            "response_url": format!("https://hooks.slack.com/actions/{TEAM}/{number}/secret"),
            "actions": [action],
        });
        self.signed(document, Carriage::Payload)
    }

    /// The slash command `command text`, typed by `user`.
    pub fn slash_command(&self, command: &str, text: &str, user: &str) -> Signed {
        let now_ms = self.clock().now_ms();
        let trigger = self.world(|world| world.trigger(user, now_ms));
        let document = json!({
            "token": "legacy-verification-token", "team_id": TEAM, "team_domain": "gatepost-test",
            "channel_id": COMMAND_CHANNEL, "channel_name": "approvals", "user_id": user,
            "user_name": user.to_lowercase(), "command": command, "text": text, "api_app_id": APP,
            "is_enterprise_install": "false", "trigger_id": trigger,
            "response_url": format!("https://hooks.slack.com/commands/{TEAM}/1/secret"),
        });
        self.signed(document, Carriage::Fields)
    }

    /// The submission of an opened modal; `values` is Slack's `state.values`.
    pub fn submit_view(&self, view: &View, values: &Value) -> Signed {
        let mut shown = view.content.clone();
        shown["state"] = json!({"values": values});
        shown["app_installed_team_id"] = json!(TEAM);
        let now_ms = self.clock().now_ms();
        let trigger = self.world(|world| world.trigger(&view.user, now_ms));
        let document = json!({
            "type": "view_submission", "team": {"id": TEAM, "domain": "gatepost-test"},
            "user": {"id": view.user, "username": view.user.to_lowercase(), "team_id": TEAM},
            "api_app_id": APP, "token": "legacy-verification-token", "trigger_id": trigger, "view": shown,
            "response_urls": [],
            "is_enterprise_install": false, "enterprise": null,
        });
        self.signed(document, Carriage::Payload)
    }

    /// Somebody fills an open modal in and sends it: the choice, where there is one, and the words.
    ///
    /// # Panics
    /// When the modal does not offer the choice, or a client would not send it.
    pub fn answer_view(&self, view: &View, choice: Option<&str>, words: &str) -> Signed {
        self.fill_in(view, choice, words, None)
    }

    /// The same, with `edited` in place of what stands in the field that has something in it. Left alone, it comes back as Slack makes
    /// it come back: entities read, emoji by their names.
    ///
    /// # Panics
    /// When there is no such field, or it takes no text of this length.
    pub fn fill_in(&self, view: &View, choice: Option<&str>, words: &str, edited: Option<&str>) -> Signed {
        let mut taken = edited.is_none();
        let mut values = serde_json::Map::new();
        for block in view.content["blocks"].as_array().into_iter().flatten() {
            if block["type"] != "input" {
                continue;
            }
            let (element, optional) = (&block["element"], block["optional"] == true);
            let state = if element["type"] == "radio_buttons" {
                let options = element["options"].as_array().expect("options");
                let chosen = options.iter().find(|option| option["value"].as_str() == choice);
                assert!(
                    chosen.is_some() || (choice.is_none() && optional),
                    "no choice {choice:?}: {options:?}"
                );
                json!({"type": "radio_buttons", "selected_option": chosen})
            } else if let Some(given) = element["initial_value"].as_str() {
                let typed = edited.map_or_else(|| rewritten(given), str::to_owned);
                taken = true;
                let most = element["max_length"].as_u64().unwrap_or(3_000);
                assert!(
                    typed.encode_utf16().count() as u64 <= most,
                    "the field takes no more"
                );
                json!({"type": element["type"], "value": Some(typed).filter(|typed| !typed.is_empty())})
            } else {
                assert!(optional || !words.is_empty(), "the client wants words");
                json!({"type": element["type"], "value": Some(words).filter(|words| !words.is_empty())})
            };
            let action_id = element["action_id"].as_str().expect("an action_id");
            let block_id = block["block_id"].as_str().expect("a block_id");
            values.insert(block_id.to_owned(), json!({ action_id: state }));
        }
        assert!(taken, "no field to change: {}", view.content);
        assert!(
            !view.content["submit"].is_null(),
            "nothing can be sent: {}",
            view.content
        );
        self.submit_view(view, &Value::Object(values))
    }

    /// Somebody closes an open modal.
    pub fn close_view(&self, view: &View) -> Signed {
        self.world(|world| {
            for open in &mut world.views {
                open.closed |= open.id == view.id;
            }
        });
        let document = json!({
            "type": "view_closed", "team": {"id": TEAM, "domain": "gatepost-test"},
            "user": {"id": view.user, "username": view.user.to_lowercase(), "team_id": TEAM},
            "api_app_id": APP, "token": "legacy-verification-token", "view": view.content, "is_cleared": false,
            "is_enterprise_install": false, "enterprise": null,
        });
        self.signed(document, Carriage::Payload)
    }

    fn signed(&self, document: Value, carriage: Carriage) -> Signed {
        let secret = SIGNING_SECRET.to_owned();
        Signed {
            document,
            carriage,
            secret,
            timestamp: self.clock().now_seconds(),
        }
    }
}

impl Signed {
    /// Signed with a secret that is not the app's.
    pub fn forged(mut self) -> Self {
        "not-the-signing-secret".clone_into(&mut self.secret);
        self
    }

    /// Signed this long ago.
    pub fn aged(mut self, by: Duration) -> Self {
        self.timestamp -= i64::try_from(by.as_secs()).expect("a short way");
        self
    }

    /// The clicker and the workspace belong to another team.
    pub fn by_team(self, team: &str) -> Self {
        self.edit(|document| {
            document["team"]["id"] = json!(team);
            document["user"]["team_id"] = json!(team);
        })
    }

    /// Sent for another app.
    pub fn for_app(self, app: &str) -> Self {
        self.edit(|document| document["api_app_id"] = json!(app))
    }

    /// Claims to come from another channel.
    pub fn in_channel(self, channel: &str) -> Self {
        self.edit(|document| {
            document["channel"]["id"] = json!(channel);
            document["container"]["channel_id"] = json!(channel);
        })
    }

    /// Claims to come from another message.
    pub fn on_message(self, ts: &str) -> Self {
        self.edit(|document| {
            document["message"]["ts"] = json!(ts);
            document["container"]["message_ts"] = json!(ts);
        })
    }

    /// Carries another value than the button's.
    pub fn with_value(self, value: &str) -> Self {
        self.edit(|document| document["actions"][0]["value"] = json!(value))
    }

    /// Any other change of the JSON.
    pub fn edit(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.document);
        self
    }

    /// The type of the envelope of Socket Mode that carries it.
    pub fn envelope(&self) -> &'static str {
        match self.carriage {
            Carriage::Payload => "interactive",
            Carriage::Fields => "slash_commands",
        }
    }

    /// What the request says, as an envelope of Socket Mode carries it.
    pub fn into_document(self) -> Value {
        self.document
    }

    /// The exact request; keep it to replay it.
    pub fn request(&self) -> PlatformRequest {
        let body = match self.carriage {
            Carriage::Payload => {
                let json = escaped(&self.document);
                let encoded: String = form_urlencoded::byte_serialize(json.as_bytes()).collect();
                format!("payload={encoded}")
            }
            Carriage::Fields => {
                let fields = self.document.as_object().expect("flat fields");
                let pairs = fields
                    .iter()
                    .map(|(name, value)| (name, value.as_str().expect("a text")));
                form_urlencoded::Serializer::new(String::new())
                    .extend_pairs(pairs)
                    .finish()
            }
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_bytes()).expect("a key of any length");
        mac.update(format!("v0:{}:{body}", self.timestamp).as_bytes());
        let signature = format!("v0={}", hex::encode(mac.finalize().into_bytes()));
        let headers = [
            ("Content-Type", "application/x-www-form-urlencoded".to_owned()),
            (
                "User-Agent",
                "Slackbot 1.0 (+https://api.slack.com/robots)".to_owned(),
            ),
            ("Accept", "application/json,*/*".to_owned()),
            ("X-Slack-Signature", signature),
            ("X-Slack-Request-Timestamp", self.timestamp.to_string()),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
        PlatformRequest {
            headers,
            body: body.into_bytes(),
        }
    }

    /// Signs and posts it.
    pub async fn post(&self, url: &str) -> Answered {
        self.request().post(url).await
    }
}

/// What becomes of a text in a field that nobody touches.
fn rewritten(text: &str) -> String {
    let read = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    read.replace('🚀', ":rocket:").replace('✅', ":white_check_mark:")
}

/// The state of the fields of a message in which nobody typed.
fn untouched(blocks: &Value) -> Value {
    let mut values = serde_json::Map::new();
    for block in blocks.as_array().into_iter().flatten() {
        if block["type"] == "input" {
            let element = &block["element"];
            let action_id = element["action_id"].as_str().expect("an action_id");
            let state = json!({action_id: {"type": element["type"], "value": null}});
            values.insert(block["block_id"].as_str().expect("a block_id").to_owned(), state);
        }
    }
    Value::Object(values)
}

/// JSON in pure ASCII with `\/`, as Slack writes it.
fn escaped(document: &Value) -> String {
    let mut out = String::new();
    for unit in document.to_string().encode_utf16() {
        match u8::try_from(unit) {
            Ok(b'/') => out.push_str("\\/"),
            Ok(ascii @ 0..=0x7f) => out.push(char::from(ascii)),
            _ => write!(out, "\\u{unit:04x}").expect("writing to a string"),
        }
    }
    out
}
