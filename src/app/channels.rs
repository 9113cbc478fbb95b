//! From the configuration to channels: the place where adapters get their names, secrets and connections.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use gatepost_channel::{AppKey, Channel, Connection, EmptySecret, Means};
use gatepost_feishu::{CallbackSecrets, FeishuApp, FeishuAppConfig, FeishuChannel, FeishuConnection};
use gatepost_local::LocalChannel;
use gatepost_slack::{SlackApp, SlackChannel};

use crate::clock::Clock;
use crate::config::{
    ChannelConfig, FeishuConfig, FeishuMode, Language, Platform, Secret, SlackConfig, SlackMode,
};
use crate::delivery::card::Voice;
use crate::delivery::phrase;
use crate::delivery::registry::{Listed, Registry};
use crate::ids::{ChannelName, Ids as _, Org, SystemIds};

/// A channel cannot be built from what is configured.
#[derive(Debug, thiserror::Error)]
#[error("channel {channel}: {what}")]
pub struct ChannelError {
    channel: String,
    what: String,
}

/// The HTTP client that every adapter uses: no redirects, a short connect time-out, no proxy for loopback.
pub fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(2))
        .timeout(Duration::from_secs(15))
        .user_agent(concat!("gatepost/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// The HTTP client that opens WebSockets: as the other, and HTTP/1.1 alone, from which a connection can be upgraded.
fn socket_client() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(2))
        .http1_only()
        .user_agent(concat!("gatepost/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// The connections of these channels, one for each app that has one. Each is to run on the server's tasks, with the same
/// intake that the callbacks get.
pub fn connections(registry: &Registry) -> Vec<Arc<dyn Connection>> {
    let all = registry.all().filter_map(|listed| listed.channel.connection());
    let by_app: BTreeMap<_, _> = all.map(|connection| (connection.key(), connection)).collect();
    by_app.into_values().collect()
}

/// Builds all channels; those of one app share it.
pub fn build(
    channels: &[ChannelConfig],
    http: &reqwest::Client,
    clock: &Arc<dyn Clock>,
) -> Result<Registry, ChannelError> {
    let sockets = socket_client().map_err(|error| ChannelError {
        channel: "all".to_owned(),
        what: error.without_url().to_string(),
    })?;
    let now = Arc::clone(clock);
    let mut apps = Apps {
        http: http.clone(),
        means: Means {
            http: sockets,
            now: Arc::new(move || now.now()),
            chance: Arc::new(|bytes| SystemIds.random(bytes)),
        },
        slack: HashMap::new(),
        feishu: HashMap::new(),
        connected: HashMap::new(),
    };
    let listed = channels.iter().map(|config| {
        let channel = apps.channel(config).map_err(|what| ChannelError {
            channel: config.name.clone(),
            what,
        })?;
        Ok(Listed {
            name: ChannelName(config.name.clone()),
            org: Org(config.org.clone()),
            voice: Voice {
                language: match config.language {
                    Language::En => phrase::Language::En,
                    Language::Zh => phrase::Language::Zh,
                    Language::Ja => phrase::Language::Ja,
                },
                zone: config.time_zone.clone(),
            },
            channel,
        })
    });
    Ok(Registry::new(listed.collect::<Result<Vec<_>, _>>()?))
}

struct Apps {
    http: reqwest::Client,
    means: Means,
    slack: HashMap<(String, String), Arc<SlackApp>>,
    feishu: HashMap<(String, String), Arc<FeishuApp>>,
    connected: HashMap<AppKey, Arc<FeishuConnection>>,
}

impl Apps {
    fn channel(&mut self, config: &ChannelConfig) -> Result<Arc<dyn Channel>, String> {
        match &config.platform {
            Platform::Local => Ok(Arc::new(LocalChannel::new(&config.name))),
            Platform::Slack(slack) => self.slack(config, slack),
            Platform::Feishu(feishu) => self.feishu(config, feishu),
        }
    }

    fn slack(&mut self, channel: &ChannelConfig, config: &SlackConfig) -> Result<Arc<dyn Channel>, String> {
        let mode = match &config.mode {
            SlackMode::Webhook { signing_secrets } => gatepost_slack::Mode::Webhook {
                signing_secrets: signing_secrets.iter().map(secret).collect::<Result<_, _>>()?,
            },
            SlackMode::Socket { app_token } => gatepost_slack::Mode::Socket {
                app_token: secret(app_token)?,
            },
        };
        let adapter = gatepost_slack::SlackConfig {
            name: channel.name.clone(),
            base_url: config.base_url.to_string(),
            bot_token: secret(&config.bot_token)?,
            mode,
            channel: config.channel.clone(),
            app_id: config.app_id.clone(),
            teams: config.teams.clone().unwrap_or_default(),
        };
        let key = (channel.org.clone(), config.bot_token.expose().to_owned());
        let app = if let Some(app) = self.slack.get(&key) {
            Arc::clone(app)
        } else {
            let app =
                SlackApp::new(&adapter, self.http.clone(), &self.means).map_err(|error| error.to_string())?;
            self.slack.insert(key, Arc::clone(&app));
            app
        };
        Ok(Arc::new(
            SlackChannel::of(app, &adapter).map_err(|error| error.to_string())?,
        ))
    }

    fn feishu(&mut self, channel: &ChannelConfig, config: &FeishuConfig) -> Result<Arc<dyn Channel>, String> {
        let key = (channel.org.clone(), config.app_id.clone());
        let app = if let Some(app) = self.feishu.get(&key) {
            Arc::clone(app)
        } else {
            let adapter = FeishuAppConfig {
                base_url: config.base_url.to_string(),
                app_id: config.app_id.clone(),
                app_secret: secret(&config.app_secret)?,
            };
            let app = FeishuApp::new(self.http.clone(), Arc::clone(&self.means.now), adapter)
                .map_err(|error| error.to_string())?;
            self.feishu.insert(key, Arc::clone(&app));
            app
        };
        let mode = match &config.mode {
            FeishuMode::Webhook {
                encrypt_key,
                verification_token,
            } => gatepost_feishu::Mode::Webhook(
                CallbackSecrets::new(Some(secret(encrypt_key)?), Some(secret(verification_token)?))
                    .map_err(|error| error.to_string())?,
            ),
            FeishuMode::LongConnection { verification_token } => {
                let token = verification_token.as_ref().map(secret).transpose()?;
                let connection = self
                    .connected
                    .entry(app.key())
                    .or_insert_with(|| FeishuConnection::new(Arc::clone(&app), token, self.means.clone()));
                gatepost_feishu::Mode::LongConnection(Arc::clone(connection))
            }
        };
        let adapter = gatepost_feishu::FeishuConfig {
            name: channel.name.clone(),
            chat_id: config.chat_id.clone(),
            tenants: config.tenants.clone().unwrap_or_default(),
            mode,
        };
        Ok(Arc::new(
            FeishuChannel::new(app, adapter).map_err(|error| error.to_string())?,
        ))
    }
}

fn secret(secret: &Secret) -> Result<gatepost_channel::Secret, String> {
    gatepost_channel::Secret::new(secret.expose()).map_err(|error: EmptySecret| error.to_string())
}
