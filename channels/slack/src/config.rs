//! What an operator writes down for one Slack channel, checked before anything is built from it. Knows no YAML.

use std::net::IpAddr;

use gatepost_channel::Secret;
use reqwest::Url;
use reqwest::header::HeaderValue;

/// One configured channel and the app behind it.
#[derive(Debug, Clone)]
pub struct SlackConfig {
    /// The channel's name, unique in the installation.
    pub name: String,
    /// Where the Web API is, `https://slack.com/api`. Plain http only on loopback.
    pub base_url: String,
    /// The bot token, `xoxb-…`.
    pub bot_token: Secret,
    /// How clicks come in.
    pub mode: Mode,
    /// The id of the conversation that cards go to: `C…`, `G…` or `D…`. Clicks name it by id, so a name would never match.
    pub channel: String,
    /// The app's id, `A…`. When given, a click must name it.
    pub app_id: Option<String>,
    /// The workspaces whose people may click, as a click names the person's own (`user.team_id`); empty: no restriction here.
    /// The operators' identities decide either way.
    pub teams: Vec<String>,
}

/// How clicks come in.
#[derive(Debug, Clone)]
pub enum Mode {
    /// Slack calls us over HTTP and signs each call.
    Webhook {
        /// The app's signing secret; more than one while it is rotated. At least one.
        signing_secrets: Vec<Secret>,
    },
    /// We connect to Slack (Socket Mode); connecting is the authentication, and there is no callback route.
    Socket {
        /// The app-level token, `xapp-…`, with the scope `connections:write`.
        app_token: Secret,
    },
}

/// Why a channel cannot be built. The texts name the key and the remedy, and no value of a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The channel has no name.
    #[error("name: a channel needs a name")]
    NoName,
    /// Not an address that the Web API can be called at.
    #[error("base_url: {0}")]
    BaseUrl(&'static str),
    /// The token could not be sent in a header.
    #[error(
        "bot_token: holds a blank, a line end or a character that no token has; copy it again without quotes"
    )]
    BotToken,
    /// The app-level token could not be sent in a header.
    #[error(
        "app_token: holds a blank, a line end or a character that no token has; copy it again without quotes"
    )]
    AppToken,
    /// No secret, so nobody could be verified.
    #[error("signing_secret: at least one is needed (Basic Information, App Credentials)")]
    NoSigningSecret,
    /// A secret that Slack never issues.
    #[error(
        "signing_secret: holds a blank, a line end or a character that no secret has; copy it again without quotes"
    )]
    SigningSecret,
    /// Not the id of a conversation.
    #[error(
        "channel: needs the id of the conversation (C…, G… or D…, at the foot of its details), not a name or a person"
    )]
    Channel,
    /// Not the id of an app.
    #[error("app_id: needs the app's id (A…, Basic Information)")]
    AppId,
    /// Not the id of a workspace.
    #[error("teams: needs ids of workspaces (T…), not their names")]
    Teams,
    /// Two channels were to share an app that they do not share.
    #[error("bot_token: the channel belongs to another app than the one it was given")]
    OtherApp,
}

impl SlackConfig {
    /// Checks everything that can be checked without asking Slack.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.name.trim().is_empty() {
            return Err(ConfigError::NoName);
        }
        base_url(&self.base_url)?;
        bearer(&self.bot_token)?;
        match &self.mode {
            Mode::Webhook { signing_secrets } if signing_secrets.is_empty() => {
                return Err(ConfigError::NoSigningSecret);
            }
            Mode::Webhook { signing_secrets } => {
                if !signing_secrets.iter().all(|secret| is_graphic(secret.expose())) {
                    return Err(ConfigError::SigningSecret);
                }
            }
            Mode::Socket { app_token } => {
                bearer(app_token).map_err(|_| ConfigError::AppToken)?;
            }
        }
        if !(is_id(&self.channel) && self.channel.starts_with(['C', 'G', 'D'])) {
            return Err(ConfigError::Channel);
        }
        if !self.app_id.iter().all(|id| is_id(id)) {
            return Err(ConfigError::AppId);
        }
        if !self.teams.iter().all(|id| is_id(id)) {
            return Err(ConfigError::Teams);
        }
        Ok(())
    }
}

/// The address of the Web API: https, or http to this very machine; nothing in it that could leak or be lost on a join.
pub(crate) fn base_url(text: &str) -> Result<Url, ConfigError> {
    let url = Url::parse(text).map_err(|_| ConfigError::BaseUrl("not an address"))?;
    match url.scheme() {
        "https" => {}
        "http" if is_loopback(&url) => {}
        "http" => return Err(ConfigError::BaseUrl("plain http is for loopback only; use https")),
        _ => return Err(ConfigError::BaseUrl("must start with https://")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ConfigError::BaseUrl("must not hold a user name or password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(ConfigError::BaseUrl("must not hold a query or fragment"));
    }
    Ok(url)
}

/// The Authorization header, marked so that it does not print.
pub(crate) fn bearer(token: &Secret) -> Result<HeaderValue, ConfigError> {
    if !is_graphic(token.expose()) {
        return Err(ConfigError::BotToken);
    }
    let mut value =
        HeaderValue::try_from(format!("Bearer {}", token.expose())).map_err(|_| ConfigError::BotToken)?;
    value.set_sensitive(true);
    Ok(value)
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_graphic(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\'')
}

fn is_id(text: &str) -> bool {
    (2..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_good_configuration_passes() {
        assert_eq!(fixture::config("https://slack.com/api").validate(), Ok(()));
    }

    #[test]
    fn addresses_are_https_or_loopback() {
        for good in [
            "https://slack.com/api",
            "http://127.0.0.1:9000",
            "http://[::1]:9000/api/",
            "http://localhost:9000/api",
        ] {
            assert!(base_url(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "slack.com/api",
            "http://slack.com/api",
            "http://127.0.0.1.example.com/",
            "http://0.0.0.0:80/",
            "ftp://127.0.0.1/",
            "https://u:p@slack.com/api",
            "https://slack.com/api?x=1",
        ] {
            assert!(base_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_key_named() {
        let good = fixture::config("https://slack.com/api");
        let secret = |text: &str| Secret::new(text).unwrap();
        let cases = [
            (
                SlackConfig {
                    name: " ".into(),
                    ..good.clone()
                },
                "name",
            ),
            (
                SlackConfig {
                    bot_token: secret("xoxb-1\n"),
                    ..good.clone()
                },
                "bot_token",
            ),
            (
                SlackConfig {
                    bot_token: secret("\"xoxb-1\""),
                    ..good.clone()
                },
                "bot_token",
            ),
            (
                SlackConfig {
                    mode: Mode::Webhook {
                        signing_secrets: vec![],
                    },
                    ..good.clone()
                },
                "signing_secret",
            ),
            (
                SlackConfig {
                    mode: Mode::Webhook {
                        signing_secrets: vec![secret("\u{feff}abc")],
                    },
                    ..good.clone()
                },
                "signing_secret",
            ),
            (
                SlackConfig {
                    mode: Mode::Socket {
                        app_token: secret("xapp-1\n"),
                    },
                    ..good.clone()
                },
                "app_token",
            ),
            (
                SlackConfig {
                    channel: "#ops".into(),
                    ..good.clone()
                },
                "channel",
            ),
            (
                SlackConfig {
                    channel: "U0AAAA1111".into(),
                    ..good.clone()
                },
                "channel",
            ),
            (
                SlackConfig {
                    app_id: Some(String::new()),
                    ..good.clone()
                },
                "app_id",
            ),
            (
                SlackConfig {
                    teams: vec!["acme corp".into()],
                    ..good
                },
                "teams",
            ),
        ];
        for (config, key) in cases {
            let error = config.validate().unwrap_err().to_string();
            assert!(error.starts_with(key), "{error}");
            assert!(!error.contains("xoxb"), "{error}");
        }
    }
}
