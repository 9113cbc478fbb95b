//! From the configuration to channels: the place where adapters get their names, secrets and connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gatepost_channel::{Channel, EmptySecret};
use gatepost_feishu::{CallbackSecrets, FeishuApp, FeishuAppConfig, FeishuChannel};
use gatepost_local::LocalChannel;
use gatepost_slack::{SlackApp, SlackChannel};

use crate::clock::Clock;
use crate::config::{
    ChannelConfig, FeishuConfig, FeishuMode, Language, Platform, Secret, SlackConfig, SlackMode,
};
use crate::delivery::phrase;
use crate::delivery::registry::{Listed, Registry};
use crate::ids::{ChannelName, Org};

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

/// Builds all channels; those of one app share it.
pub fn build(
    channels: &[ChannelConfig],
    http: &reqwest::Client,
    clock: &Arc<dyn Clock>,
) -> Result<Registry, ChannelError> {
    let mut apps = Apps {
        http: http.clone(),
        clock: Arc::clone(clock),
        slack: HashMap::new(),
        feishu: HashMap::new(),
    };
    let listed = channels.iter().map(|config| {
        let channel = apps.channel(config).map_err(|what| ChannelError {
            channel: config.name.clone(),
            what,
        })?;
        Ok(Listed {
            name: ChannelName(config.name.clone()),
            org: Org(config.org.clone()),
            language: match config.language {
                Language::En => phrase::Language::En,
                Language::Zh => phrase::Language::Zh,
                Language::Ja => phrase::Language::Ja,
            },
            channel,
        })
    });
    Ok(Registry::new(listed.collect::<Result<Vec<_>, _>>()?))
}

struct Apps {
    http: reqwest::Client,
    clock: Arc<dyn Clock>,
    slack: HashMap<(String, String), Arc<SlackApp>>,
    feishu: HashMap<(String, String), Arc<FeishuApp>>,
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
        let SlackMode::Webhook { signing_secrets } = &config.mode else {
            return Err("mode socket is not built into this version; use mode: webhook".to_owned());
        };
        let adapter = gatepost_slack::SlackConfig {
            name: channel.name.clone(),
            base_url: config.base_url.to_string(),
            bot_token: secret(&config.bot_token)?,
            signing_secrets: signing_secrets.iter().map(secret).collect::<Result<_, _>>()?,
            channel: config.channel.clone(),
            app_id: config.app_id.clone(),
            teams: config.teams.clone().unwrap_or_default(),
        };
        let key = (channel.org.clone(), config.bot_token.expose().to_owned());
        let app = if let Some(app) = self.slack.get(&key) {
            Arc::clone(app)
        } else {
            let app = SlackApp::new(&adapter, self.http.clone()).map_err(|error| error.to_string())?;
            self.slack.insert(key, Arc::clone(&app));
            app
        };
        Ok(Arc::new(
            SlackChannel::of(app, &adapter).map_err(|error| error.to_string())?,
        ))
    }

    fn feishu(&mut self, channel: &ChannelConfig, config: &FeishuConfig) -> Result<Arc<dyn Channel>, String> {
        let FeishuMode::Webhook {
            encrypt_key,
            verification_token,
        } = &config.mode
        else {
            return Err("mode long_connection is not built into this version; use mode: webhook".to_owned());
        };
        let callback = CallbackSecrets::new(Some(secret(encrypt_key)?), Some(secret(verification_token)?))
            .map_err(|error| error.to_string())?;
        let key = (channel.org.clone(), config.app_id.clone());
        let app = if let Some(app) = self.feishu.get(&key) {
            Arc::clone(app)
        } else {
            let clock = Arc::clone(&self.clock);
            let adapter = FeishuAppConfig {
                base_url: config.base_url.to_string(),
                app_id: config.app_id.clone(),
                app_secret: secret(&config.app_secret)?,
            };
            let app = FeishuApp::new(self.http.clone(), Arc::new(move || clock.now()), adapter)
                .map_err(|error| error.to_string())?;
            self.feishu.insert(key, Arc::clone(&app));
            app
        };
        let adapter = gatepost_feishu::FeishuConfig {
            name: channel.name.clone(),
            chat_id: config.chat_id.clone(),
            tenants: config.tenants.clone().unwrap_or_default(),
            mode: gatepost_feishu::Mode::Webhook(callback),
        };
        Ok(Arc::new(
            FeishuChannel::new(app, adapter).map_err(|error| error.to_string())?,
        ))
    }
}

fn secret(secret: &Secret) -> Result<gatepost_channel::Secret, String> {
    gatepost_channel::Secret::new(secret.expose()).map_err(|error: EmptySecret| error.to_string())
}
