//! The app with its token and secrets, and the channels that share it. Decides nothing about a click.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gatepost_channel::{
    AppKey, Card, CardForm, Channel, Click, Connection, Dialogs, Directory, Failure, Finding, Health,
    HttpAnswer, Inbound, Means, MessageRef, Needs, Pace, PlatformUser, PostKey, Posted, PrivateNotice,
    RawRequest, Refusal, Reply, UtcMillis, Verifier, Webhook,
};
use gatepost_channel::{Command, Whisper};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use crate::callback::AppId;
use crate::client::Api;
use crate::config::{ConfigError, Mode, SlackConfig};
use crate::connection::SlackConnection;
use crate::directory::Home;
use crate::verify::SlackVerifier;
use crate::{callback, card, check, command, exam, post};

/// The kind as the configuration spells it.
const KIND: &str = "slack";

/// One Slack app: its token, its secrets, its connection to the Web API.
pub struct SlackApp {
    key: AppKey,
    /// The configured `app_id`.
    api_app_id: Option<String>,
    pub(crate) api: Api,
    /// Whose accounts are no strangers; asked once.
    pub(crate) home: OnceCell<Home>,
    inlet: Inlet,
}

/// How clicks come in: over signed HTTP, or over a connection of ours. Never both, never neither.
enum Inlet {
    Webhook(SlackVerifier),
    Socket(Arc<SlackConnection>),
}

impl SlackApp {
    /// Builds the app that `config` names. `http` must be built with redirects off and a connect time-out of 2 s; each call
    /// sets its own total time-out of 10 s. `means` is for Socket Mode.
    pub fn new(config: &SlackConfig, http: reqwest::Client, means: &Means) -> Result<Arc<Self>, ConfigError> {
        config.validate()?;
        let key = app_key(config);
        let inlet = match &config.mode {
            Mode::Webhook { signing_secrets } => {
                let app = match config.app_id {
                    Some(_) => AppId::Named,
                    None => AppId::Proven(key.id.clone()),
                };
                Inlet::Webhook(SlackVerifier::new(signing_secrets, app)?)
            }
            Mode::Socket { app_token } => Inlet::Socket(Arc::new(SlackConnection::new(
                key.clone(),
                config.app_id.clone(),
                Api::new(&config.base_url, app_token, http.clone())?,
                means.clone(),
            ))),
        };
        Ok(Arc::new(Self {
            api: Api::new(&config.base_url, &config.bot_token, http)?,
            api_app_id: config.app_id.clone(),
            home: OnceCell::new(),
            inlet,
            key,
        }))
    }
}

/// The configured id, else a fingerprint of the token: enough to tell apps apart, too short to guess a token from.
fn app_key(config: &SlackConfig) -> AppKey {
    let id = config.app_id.clone().unwrap_or_else(|| {
        let digest = Sha256::digest(config.bot_token.expose().as_bytes());
        let mut text = hex::encode(digest);
        text.truncate(16);
        text
    });
    AppKey {
        kind: KIND.to_owned(),
        id,
    }
}

/// A conversation in a workspace, served by a [`SlackApp`].
pub struct SlackChannel {
    pub(crate) app: Arc<SlackApp>,
    name: String,
    pub(crate) chat: String,
    teams: Vec<String>,
}

impl SlackChannel {
    /// A channel with an app of its own. See [`SlackApp::new`] for what `http` must be.
    pub fn new(config: &SlackConfig, http: reqwest::Client, means: &Means) -> Result<Self, ConfigError> {
        Self::of(SlackApp::new(config, http, means)?, config)
    }

    /// A channel of an app that other channels use too.
    pub fn of(app: Arc<SlackApp>, config: &SlackConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        if app.key != app_key(config) {
            return Err(ConfigError::OtherApp);
        }
        Ok(Self {
            app,
            name: config.name.clone(),
            chat: config.channel.clone(),
            teams: config.teams.clone(),
        })
    }
}

#[async_trait]
impl Channel for SlackChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    fn app(&self) -> AppKey {
        self.app.key.clone()
    }

    fn chat(&self) -> &str {
        &self.chat
    }

    fn admits(&self, user: &PlatformUser) -> bool {
        let named = |tenant: &String| self.teams.contains(tenant);
        user.tenant.as_ref().is_some_and(named) || (self.teams.is_empty() && !user.from_elsewhere)
    }

    fn shows_all(&self, card: &Card) -> bool {
        card::shows_all(card)
    }

    async fn post(&self, card: &Card, key: &PostKey) -> Posted {
        post::post(&self.app.api, &self.chat, card, key).await
    }

    async fn edit(&self, at: &MessageRef, card: &Card) -> Result<CardForm, Failure> {
        post::edit(&self.app.api, at, card).await
    }

    async fn check(&self) -> Health {
        let health = check::check(&self.app.api, &self.chat).await;
        match &self.app.inlet {
            Inlet::Webhook(_) => health,
            Inlet::Socket(connection) => connection.check(health).await,
        }
    }

    async fn examine(&self, needs: &Needs) -> Vec<Finding> {
        let app = self.app.api_app_id.as_deref();
        let webhook = matches!(self.app.inlet, Inlet::Webhook(_));
        exam::examine(&self.app.api, app, webhook, needs).await
    }

    /// About one message a second and channel, with short bursts tolerated (Slack, rate limits of `chat.postMessage`).
    fn pace(&self) -> Pace {
        Pace {
            burst: 3,
            every: Duration::from_secs(1),
        }
    }

    fn threads(&self) -> Option<&dyn gatepost_channel::Threads> {
        Some(self)
    }

    fn connection(&self) -> Option<Arc<dyn Connection>> {
        match &self.app.inlet {
            Inlet::Webhook(_) => None,
            Inlet::Socket(connection) => Some(Arc::clone(connection) as Arc<dyn Connection>),
        }
    }

    /// An acknowledgement is empty; the card follows by `chat.update`.
    fn takes_card(&self) -> bool {
        false
    }

    fn webhook(&self) -> Option<&dyn Webhook> {
        match self.app.inlet {
            Inlet::Webhook(_) => Some(self),
            Inlet::Socket(_) => None,
        }
    }

    fn private_notice(&self) -> Option<&dyn PrivateNotice> {
        Some(self)
    }

    fn whisper(&self) -> Option<&dyn Whisper> {
        Some(self)
    }

    fn directory(&self) -> Option<&dyn Directory> {
        Some(self)
    }

    fn dialogs(&self) -> Option<&dyn Dialogs> {
        Some(self)
    }
}

impl Verifier for SlackChannel {
    fn verify(&self, request: &RawRequest, now: UtcMillis) -> Result<Inbound, Refusal> {
        match &self.app.inlet {
            Inlet::Webhook(verifier) => verifier.verify(request, now),
            Inlet::Socket(_) => Err(Refusal::inauthentic("no_callback_route")),
        }
    }
}

impl Webhook for SlackChannel {
    /// Slack takes an empty 200; the outcome follows by `chat.update` and a private notice. A modal closes on it; where the answer
    /// did not count, it stays open and says why.
    fn answer(&self, click: &Click, reply: &Reply) -> HttpAnswer {
        callback::stays_open(click.vantage, reply)
            .map_or_else(HttpAnswer::empty, |body| HttpAnswer::json(&body))
    }

    fn answer_command(&self, _command: &Command, reply: &Reply) -> HttpAnswer {
        HttpAnswer::json(&command::answer(reply))
    }
}
