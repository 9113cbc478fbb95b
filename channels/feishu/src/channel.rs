//! The adapter: the port's verbs on one group of one app.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gatepost_channel::{
    AppKey, Card, Channel, Click, Failure, Health, HttpAnswer, Inbound, MessageRef, Pace, PostKey, Posted,
    RawRequest, Refusal, Reply, UtcMillis, Verifier, Webhook,
};
use reqwest::Method;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::KIND;
use crate::callback;
use crate::card::{lay_out, minimal};
use crate::client::{Call, FeishuApp};
use crate::config::{ConfigError, FeishuConfig, Mode, is_id};
use crate::document::{Object, text};
use crate::elements::CardJson;
use crate::error::{CallError, Class};
use crate::verify::{CallbackVerifier, Document};

/// The longest `uuid` that the platform takes.
const LONGEST_KEY: usize = 50;

/// A group on Feishu or Lark.
#[derive(Debug)]
pub struct FeishuChannel {
    app: Arc<FeishuApp>,
    name: String,
    chat_id: String,
    tenants: Vec<String>,
    webhook: Option<FeishuWebhook>,
}

/// The callback side: made only with both secrets of the app.
#[derive(Debug)]
struct FeishuWebhook {
    verifier: CallbackVerifier,
}

#[derive(Serialize)]
struct NewMessage<'a> {
    receive_id: &'a str,
    msg_type: &'static str,
    content: String,
    uuid: &'a str,
}

#[derive(Serialize)]
struct NewContent {
    content: String,
}

impl FeishuChannel {
    /// A channel of the app. Nothing is sent yet.
    pub fn new(app: Arc<FeishuApp>, config: FeishuConfig) -> Result<Self, ConfigError> {
        if config.name.is_empty() {
            return Err(ConfigError::Name);
        }
        if !is_id(&config.chat_id) {
            return Err(ConfigError::Id {
                key: "chat_id",
                example: "oc_84983ff6516d731e5b5f68d4ea2e1da5",
            });
        }
        if config.tenants.iter().any(|tenant| tenant.trim().is_empty()) {
            return Err(ConfigError::Tenant);
        }
        let webhook = match config.mode {
            Mode::Webhook(secrets) => Some(FeishuWebhook {
                verifier: CallbackVerifier::new(app.app_id().to_owned(), secrets),
            }),
            Mode::LongConnection { .. } => None,
        };
        Ok(Self {
            app,
            name: config.name,
            chat_id: config.chat_id,
            tenants: config.tenants,
            webhook,
        })
    }

    async fn create(&self, card: &CardJson, uuid: &str) -> Result<MessageRef, CallError> {
        let body = NewMessage {
            receive_id: &self.chat_id,
            msg_type: "interactive",
            content: card.content(),
            uuid,
        };
        let answer = self
            .app
            .call(&Call {
                name: "im.message.create",
                method: Method::POST,
                path: &["open-apis", "im", "v1", "messages"],
                query: &[("receive_id_type", "chat_id")],
                body: Some(json(&body)),
            })
            .await?;
        text(&answer, &["data", "message_id"])
            .filter(|id| is_id(id))
            .map(|message| MessageRef {
                chat: self.chat_id.clone(),
                message: message.to_owned(),
            })
            .ok_or_else(|| CallError::Unclear("no message id in the answer".to_owned()))
    }

    async fn patch(&self, message: &str, card: &CardJson) -> Result<(), CallError> {
        let body = NewContent {
            content: card.content(),
        };
        self.app
            .call(&Call {
                name: "im.message.patch",
                method: Method::PATCH,
                path: &["open-apis", "im", "v1", "messages", message],
                query: &[],
                body: Some(json(&body)),
            })
            .await
            .map(|_| ())
    }

    async fn get(&self, name: &'static str, path: &[&str]) -> Result<Object, CallError> {
        self.app
            .call(&Call {
                name,
                method: Method::GET,
                path,
                query: &[],
                body: None,
            })
            .await
    }

    /// Asks for the token, the bot and the group, in this order; the first trouble ends it.
    async fn ask(&self) -> Result<String, String> {
        let says = |what: &str, error: CallError| format!("{what}: {}", error.failure());
        let bot = self
            .get("bot.info", &["open-apis", "bot", "v3", "info"])
            .await
            .map_err(|error| says("bot", error))?;
        let status = bot
            .get("bot")
            .and_then(|bot| bot.get("activate_status")?.as_i64());
        if status.is_some_and(|status| status != 2) {
            return Err(
                "bot: the app is not enabled in the tenant; publish a version and enable it".to_owned(),
            );
        }
        match self.in_group().await {
            Ok(true) => Ok("token, bot and group are fine".to_owned()),
            Ok(false) => {
                Err("group: the bot is not in it, or it was dissolved; add the bot to the group".to_owned())
            }
            // Reading a group needs a scope that posting does not.
            Err(CallError::Refused(refused)) if refused.class() == Class::Setup => Ok(format!(
                "token and bot are fine; whether the bot is in the group cannot be told ({})",
                refused.why()
            )),
            Err(error) => Err(says("group", error)),
        }
    }

    /// Whether the bot is in the group: asked plainly, or told from what the group shows to it.
    async fn in_group(&self) -> Result<bool, CallError> {
        let group = ["open-apis", "im", "v1", "chats", &self.chat_id];
        let asked = self
            .get(
                "im.chat.is_in_chat",
                &[&group[..], &["members", "is_in_chat"]].concat(),
            )
            .await;
        let told = asked
            .ok()
            .and_then(|answer| answer.get("data")?.get("is_in_chat")?.as_bool());
        if let Some(told) = told {
            return Ok(told);
        }
        let shown = self.get("im.chat.get", &group).await?;
        Ok(!text(&shown, &["data", "chat_status"]).is_some_and(|status| status.starts_with("dissolved")))
    }
}

/// A body of plain structs of text; serialising it cannot fail.
fn json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}

/// The key as the platform takes it: as it is, or its digest when it is too long.
fn uuid(key: &PostKey) -> String {
    if key.0.len() <= LONGEST_KEY && !key.0.is_empty() {
        return key.0.clone();
    }
    let mut digest = hex::encode(Sha256::digest(key.0.as_bytes()));
    digest.truncate(LONGEST_KEY);
    digest
}

#[async_trait]
impl Channel for FeishuChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    fn app(&self) -> AppKey {
        self.app.key()
    }

    fn chat(&self) -> &str {
        &self.chat_id
    }

    fn admits(&self, tenant: Option<&str>) -> bool {
        self.tenants.is_empty() || tenant.is_some_and(|tenant| self.tenants.iter().any(|ours| ours == tenant))
    }

    fn shows_all(&self, card: &Card) -> bool {
        lay_out(card).shows_all
    }

    /// The plainer card goes out under the same `uuid`: at most one message succeeds under it, so that a first answer that was
    /// lost and a second try can never leave two cards.
    async fn post(&self, card: &Card, key: &PostKey) -> Posted {
        let uuid = uuid(key);
        let mut posted = self.create(&lay_out(card).card, &uuid).await;
        if posted.as_ref().is_err_and(CallError::is_content) {
            posted = self.create(&minimal(card), &uuid).await;
        }
        match posted {
            Ok(at) => Posted::At(at),
            Err(error) => match error.may_have_happened() {
                Some(why) => Posted::Unknown { why },
                None => Posted::NotSent(error.failure()),
            },
        }
    }

    async fn edit(&self, at: &MessageRef, card: &Card) -> Result<(), Failure> {
        if !is_id(&at.message) {
            return Err(Failure::Gone {
                why: "not a message id of the platform".to_owned(),
            });
        }
        let mut edited = self.patch(&at.message, &lay_out(card).card).await;
        if edited.as_ref().is_err_and(CallError::is_content) {
            edited = self.patch(&at.message, &minimal(card)).await;
        }
        edited.map_err(CallError::failure)
    }

    async fn check(&self) -> Health {
        let (healthy, detail) = match self.ask().await {
            Ok(detail) => (true, detail),
            Err(detail) => (false, detail),
        };
        Health { healthy, detail }
    }

    /// A group takes five messages a second from all of its bots together: one at once and four a second.
    fn pace(&self) -> Pace {
        Pace {
            burst: 1,
            every: Duration::from_millis(250),
        }
    }

    /// One message at most succeeds under one `uuid` within an hour; five minutes of it are left for clocks and queues.
    fn repeats_safely(&self) -> Option<Duration> {
        Some(Duration::from_mins(55))
    }

    fn webhook(&self) -> Option<&dyn Webhook> {
        self.webhook.as_ref().map(|webhook| webhook as &dyn Webhook)
    }
}

impl Verifier for FeishuWebhook {
    fn verify(&self, request: &RawRequest, now: UtcMillis) -> Result<Inbound, Refusal> {
        Ok(match self.verifier.document(request, now)? {
            Document::Challenge(text) => Inbound::Handshake(callback::challenge(&text)),
            Document::CardAction(event) => callback::read(&event),
            Document::OtherEvent => Inbound::Ignored {
                answer: callback::nothing(),
                why: "other_event",
            },
        })
    }
}

impl Webhook for FeishuWebhook {
    fn answer(&self, _click: &Click, reply: &Reply) -> HttpAnswer {
        callback::answer(reply)
    }
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
