//! What an app and a channel need before anything runs. A channel that would check nothing cannot be made.
//!
//! Knows no file format: the caller reads the configuration and names file and line of an error.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use gatepost_channel::Secret;
use reqwest::Url;

use crate::connection::FeishuConnection;

/// One app on the platform, shared by all of its channels.
#[derive(Debug, Clone)]
pub struct FeishuAppConfig {
    /// `https://open.feishu.cn`, `https://open.larksuite.com` or a private installation; plain http only on loopback.
    pub base_url: String,
    /// `cli_…`.
    pub app_id: String,
    /// The secret that tenant tokens are fetched with.
    pub app_secret: Secret,
}

/// One group in which an app posts cards.
#[derive(Debug, Clone)]
pub struct FeishuConfig {
    /// The configured name, unique in the installation.
    pub name: String,
    /// The group, `oc_…`.
    pub chat_id: String,
    /// Whose people may click (`tenant_key`); empty leaves it to the operators' identities alone.
    pub tenants: Vec<String>,
    /// How clicks come in.
    pub mode: Mode,
}

/// How clicks come in.
#[derive(Debug, Clone)]
pub enum Mode {
    /// The platform calls us over HTTP. Every callback is signed and encrypted.
    Webhook(CallbackSecrets),
    /// We connect to the platform, over this connection of the app; connecting is the authentication, and there is no
    /// callback route.
    LongConnection(Arc<FeishuConnection>),
}

/// Both secrets that a webhook needs. Neither alone protects anything: the key signs and seals, the token names the app.
#[derive(Debug, Clone)]
pub struct CallbackSecrets {
    pub(crate) encrypt_key: Secret,
    pub(crate) verification_token: Secret,
}

impl CallbackSecrets {
    /// Takes both; a missing one is an error, never a weaker check.
    pub fn new(encrypt_key: Option<Secret>, verification_token: Option<Secret>) -> Result<Self, ConfigError> {
        Ok(Self {
            encrypt_key: encrypt_key.ok_or(ConfigError::EncryptKey)?,
            verification_token: verification_token.ok_or(ConfigError::VerificationToken)?,
        })
    }
}

/// Why an app or a channel cannot be made. The text says what to do and holds no value of a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Webhook mode without the key that signs and seals callbacks.
    #[error(
        "encrypt_key is missing: set an Encrypt Key in the developer console (Events & callbacks) and here, or use mode: long_connection"
    )]
    EncryptKey,
    /// Webhook mode without the token that names the app.
    #[error(
        "verification_token is missing: copy the Verification Token from the developer console (Events & callbacks)"
    )]
    VerificationToken,
    /// The base address is none, or would carry the secret in the clear.
    #[error("base_url {0}; use https://open.feishu.cn, or https://open.larksuite.com for Lark")]
    BaseUrl(&'static str),
    /// An id that the platform cannot have given.
    #[error("{key} is not an id of the platform ({example})")]
    Id {
        /// The configuration's key.
        key: &'static str,
        /// What such an id looks like.
        example: &'static str,
    },
    /// A tenant that names nobody.
    #[error("tenants holds an empty entry: remove it, or name the tenant_key")]
    Tenant,
    /// A channel was to share a connection that is another app's.
    #[error("app_id is not that of the connection the channel was given")]
    OtherApp,
    /// A channel without a name.
    #[error("name is empty")]
    Name,
}

impl ConfigError {
    /// The key of the configuration that is wrong.
    pub const fn key(&self) -> &'static str {
        match self {
            Self::EncryptKey => "encrypt_key",
            Self::VerificationToken => "verification_token",
            Self::BaseUrl(_) => "base_url",
            Self::Id { key, .. } => key,
            Self::OtherApp => "app_id",
            Self::Tenant => "tenants",
            Self::Name => "name",
        }
    }
}

/// The address of the platform's API, to which paths are added.
#[derive(Clone)]
pub(crate) struct BaseUrl(Url);

impl BaseUrl {
    /// Reads the configured address.
    pub(crate) fn parse(text: &str) -> Result<Self, ConfigError> {
        let url = Url::parse(text).map_err(|_| ConfigError::BaseUrl("is not an address"))?;
        match url.scheme() {
            "https" => {}
            "http" if on_loopback(&url) => {}
            "http" => return Err(ConfigError::BaseUrl("may be plain http only on loopback")),
            _ => return Err(ConfigError::BaseUrl("is neither https nor http")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ConfigError::BaseUrl("must not carry a user or password"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(ConfigError::BaseUrl("must not carry a query or fragment"));
        }
        Ok(Self(url))
    }

    /// The address with these path segments, each encoded, and this query.
    pub(crate) fn at(&self, segments: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.0.clone();
        // http and https addresses always take path segments.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BaseUrl({})", self.0.host_str().unwrap_or("-"))
    }
}

fn on_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether the text has the form of the platform's ids; they travel in paths, so nothing else may.
pub(crate) fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 128
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_without_both_secrets_cannot_be_made() {
        let secret = || Some(Secret::new("s").unwrap());
        assert_eq!(
            CallbackSecrets::new(None, secret()).unwrap_err(),
            ConfigError::EncryptKey
        );
        assert_eq!(
            CallbackSecrets::new(secret(), None).unwrap_err(),
            ConfigError::VerificationToken
        );
        for blank in ["", "   "] {
            assert!(Secret::new(blank).is_err(), "RH-101: {blank:?} is no secret");
        }
    }

    #[test]
    fn the_secret_never_travels_in_the_clear() {
        for good in [
            "https://open.feishu.cn",
            "https://private.example/feishu/",
            "http://127.0.0.1:9",
            "http://[::1]:9",
            "http://localhost:9",
        ] {
            assert!(BaseUrl::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "open.feishu.cn",
            "http://open.feishu.cn",
            "http://127.0.0.1.evil.example",
            "http://localhost.evil.example",
            "https://user:pass@open.feishu.cn",
            "https://open.feishu.cn/?a=b",
            "ftp://127.0.0.1",
        ] {
            assert!(BaseUrl::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn segments_cannot_escape_their_place() {
        let base = BaseUrl::parse("https://private.example/prefix/").unwrap();
        let url = base.at(&["im", "a/../b?c"], &[("k", "v&w")]);
        assert_eq!(
            url.as_str(),
            "https://private.example/prefix/im/a%2F..%2Fb%3Fc?k=v%26w"
        );
        assert!(!is_id("../x") && !is_id("") && is_id("oc_84983ff6516d731e"));
    }
}
