//! The adapter: the port's verbs on one group of one app.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gatepost_channel::{
    AppKey, Ask, Card, CardForm, Channel, Click, Connection, Directory, Failure, Finding, FullView, Health,
    HttpAnswer, Inbound, MessageRef, Needs, Pace, Pages, PlatformUser, PostKey, Posted, RawRequest, Refusal,
    Reply, UtcMillis, Verifier, Webhook,
};
use gatepost_channel::{Command, Whisper};

use crate::KIND;
use crate::card::lay_out;
use crate::client::FeishuApp;
use crate::config::{ConfigError, FeishuConfig, Mode, is_id};
use crate::connection::FeishuConnection;
use crate::exam::{self, Way};
use crate::verify::{CallbackVerifier, Document};
use crate::{callback, check, message, page, post};

/// A group on Feishu or Lark.
#[derive(Debug)]
pub struct FeishuChannel {
    pub(crate) app: Arc<FeishuApp>,
    name: String,
    pub(crate) chat_id: String,
    tenants: Vec<String>,
    inlet: Inlet,
}

/// How clicks come in. Never both, never neither.
#[derive(Debug)]
enum Inlet {
    Webhook(FeishuWebhook),
    Connection(Arc<FeishuConnection>),
}

/// The callback side: made only with both secrets of the app.
#[derive(Debug)]
pub(crate) struct FeishuWebhook {
    pub(crate) verifier: CallbackVerifier,
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
        let inlet = match config.mode {
            Mode::Webhook(secrets) => Inlet::Webhook(FeishuWebhook {
                verifier: CallbackVerifier::new(app.app_id().to_owned(), secrets),
            }),
            Mode::LongConnection(connection) if connection.key() == app.key() => {
                Inlet::Connection(connection)
            }
            Mode::LongConnection(_) => return Err(ConfigError::OtherApp),
        };
        Ok(Self {
            app,
            name: config.name,
            chat_id: config.chat_id,
            tenants: config.tenants,
            inlet,
        })
    }
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

    fn admits(&self, user: &PlatformUser) -> bool {
        let named = |tenant: &String| self.tenants.contains(tenant);
        user.tenant.as_ref().is_some_and(named) || (self.tenants.is_empty() && !user.from_elsewhere)
    }

    fn shows_all(&self, card: &Card) -> bool {
        lay_out(card).shows_all
    }

    async fn post(&self, card: &Card, key: &PostKey) -> Posted {
        post::post(&self.app, &self.chat_id, card, key).await
    }

    async fn edit(&self, at: &MessageRef, card: &Card) -> Result<CardForm, Failure> {
        post::edit(&self.app, at, card).await
    }

    async fn check(&self) -> Health {
        let health = check::check(&self.app, &self.chat_id).await;
        match &self.inlet {
            Inlet::Webhook(_) => health,
            Inlet::Connection(connection) => connection.check(health).await,
        }
    }

    async fn examine(&self, needs: &Needs) -> Vec<Finding> {
        let way = match self.inlet {
            Inlet::Webhook(_) => Way::Webhook,
            Inlet::Connection(_) => Way::Connection,
        };
        exam::examine(&self.app, way, needs).await
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

    fn pages(&self) -> Option<&dyn Pages> {
        Some(self)
    }

    fn webhook(&self) -> Option<&dyn Webhook> {
        match &self.inlet {
            Inlet::Webhook(webhook) => Some(webhook),
            Inlet::Connection(_) => None,
        }
    }

    fn whisper(&self) -> Option<&dyn Whisper> {
        Some(self)
    }

    fn threads(&self) -> Option<&dyn gatepost_channel::Threads> {
        Some(self)
    }

    fn connection(&self) -> Option<Arc<dyn Connection>> {
        match &self.inlet {
            Inlet::Webhook(_) => None,
            Inlet::Connection(connection) => Some(Arc::clone(connection) as Arc<dyn Connection>),
        }
    }

    fn directory(&self) -> Option<&dyn Directory> {
        Some(self)
    }
}

/// One person is a chat with the bot; it is opened by the first message.
#[async_trait]
impl Pages for FeishuChannel {
    fn count(&self, view: &FullView) -> Option<u32> {
        page::count(view)
    }

    async fn send(&self, user: &str, view: &FullView, number: u32, key: &PostKey) -> Posted {
        page::send(&self.app, user, view, number, key).await
    }

    async fn edit(&self, at: &MessageRef, view: &FullView) -> Result<(), Failure> {
        page::edit(&self.app, at, view).await
    }
}

impl Verifier for FeishuWebhook {
    fn verify(&self, request: &RawRequest, now: UtcMillis) -> Result<Inbound, Refusal> {
        Ok(match self.verifier.document(request, now)? {
            Document::Challenge(text) => Inbound::Handshake(callback::challenge(&text)),
            Document::CardAction(event) => callback::read(&event),
            Document::Message(event) => message::read(&event),
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

    /// An event is acknowledged; the person is answered by a message.
    fn answer_command(&self, _command: &Command, _reply: &Reply) -> HttpAnswer {
        callback::nothing()
    }

    fn answer_ask(&self, _ask: &Ask, reply: &Reply) -> HttpAnswer {
        callback::answer(reply)
    }
}
