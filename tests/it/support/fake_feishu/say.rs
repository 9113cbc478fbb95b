//! What people write: messages of theirs, and the event `im.message.receive_v1` that tells the bot of them.

use serde_json::{Value, json};

use super::super::temp_dir::random_hex;
use super::click::Callback;
use super::world::Message;
use super::{APP, FakeFeishu, Person, TENANT, VERIFICATION_TOKEN};

/// The bot itself, as `bot/v3/info` names it.
pub const BOT: &str = "ou_fake_bot";

impl FakeFeishu {
    /// The person writes to the bot, in their own conversation with it.
    pub fn write(&self, open_id: &str, text: &str) -> Callback {
        self.said(open_id, &format!("oc_p2p_{open_id}"), "p2p", text, &[])
    }

    /// The person writes in a group, where these are mentioned: `@_user_1` in the text is the first of them.
    pub fn write_in_group(&self, open_id: &str, chat: &str, text: &str, mentioned: &[&str]) -> Callback {
        self.said(open_id, chat, "group", text, mentioned)
    }

    fn said(&self, open_id: &str, chat: &str, kind: &str, text: &str, mentioned: &[&str]) -> Callback {
        let now_ms = self.clock().now_ms();
        let content = json!({ "text": text });
        let (message_id, person) = self.world(|world| {
            let id = world.id("om_");
            world.messages.push(Message {
                id: id.clone(),
                chat_id: chat.to_owned(),
                parent_id: None,
                msg_type: "text".to_owned(),
                history: vec![content.clone()],
                recalled: false,
                created_ms: now_ms,
            });
            (id, world.people.get(open_id).cloned())
        });
        let person = person.unwrap_or_else(|| Person::new(open_id, ""));
        let mentions: Vec<Value> = mentioned
            .iter()
            .enumerate()
            .map(|(at, id)| {
                json!({
                    "key": format!("@_user_{}", at + 1), "id": {"open_id": id}, "name": "Gatepost", "tenant_key": TENANT,
                })
            })
            .collect();
        let mut message = json!({
            "message_id": message_id, "create_time": now_ms.to_string(), "chat_id": chat, "chat_type": kind,
            "message_type": "text", "content": content.to_string(),
        });
        if !mentions.is_empty() {
            message["mentions"] = json!(mentions);
        }
        self.callback(json!({
            "schema": "2.0",
            "header": {
                "event_id": random_hex(), "token": VERIFICATION_TOKEN, "create_time": now_ms.to_string(),
                "event_type": "im.message.receive_v1", "tenant_key": TENANT, "app_id": APP,
            },
            "event": {
                "sender": {
                    "sender_id": {"open_id": person.open_id, "union_id": person.union_id},
                    "sender_type": "user", "tenant_key": TENANT,
                },
                "message": message,
            },
        }))
    }
}
