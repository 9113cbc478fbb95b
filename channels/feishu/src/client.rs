//! Calls to the platform: one app, its tenant token, and answers read strictly.
//!
//! Success is HTTP 2xx with `code` 0; everything else is a `CallError`. No address, header or body reaches a log or an error.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gatepost_channel::{AppKey, Secret, UtcMillis};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response};
use serde_json::json;

use crate::KIND;
use crate::config::{BaseUrl, ConfigError, FeishuAppConfig, is_id};
use crate::document::{self, Object, text};
use crate::error::{CallError, Class, Refused, UNREADABLE, scopes, sub_code};
use crate::token::{Fresh, TokenCache};

/// How long one call may take in all. Connecting is limited by the client that the caller builds (2 s).
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The most that is read of an answer, in bytes.
const LONGEST_ANSWER: usize = 64 * 1024;
/// The longest wait that is taken from the platform.
const LONGEST_WAIT: u64 = 600;

/// Tells the time; a parameter so that a test can set it.
pub type Now = Arc<dyn Fn() -> UtcMillis + Send + Sync>;

/// One app, shared by its channels: they use one token and one client.
pub struct FeishuApp {
    http: Client,
    now: Now,
    base: BaseUrl,
    app_id: String,
    app_secret: Secret,
    tokens: TokenCache,
    me: OnceLock<String>,
    patience: Duration,
}

impl fmt::Debug for FeishuApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FeishuApp({} at {:?})", self.app_id, self.base)
    }
}

/// A call to make: method, path segments, query, JSON body.
pub(crate) struct Call<'a> {
    /// Names the call in logs.
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    pub(crate) path: &'a [&'a str],
    pub(crate) query: &'a [(&'a str, &'a str)],
    pub(crate) body: Option<Vec<u8>>,
}

impl FeishuApp {
    /// An app. `http` must follow no redirect and give up connecting after two seconds; a call as a whole ends after ten.
    pub fn new(http: Client, now: Now, config: FeishuAppConfig) -> Result<Arc<Self>, ConfigError> {
        if !is_id(&config.app_id) {
            return Err(ConfigError::Id {
                key: "app_id",
                example: "cli_a1b2c3d4e5f60718",
            });
        }
        Ok(Arc::new(Self {
            http,
            now,
            base: BaseUrl::parse(&config.base_url)?,
            app_id: config.app_id,
            app_secret: config.app_secret,
            tokens: TokenCache::default(),
            me: OnceLock::new(),
            patience: CALL_TIMEOUT,
        }))
    }

    /// The same app, giving up sooner.
    #[cfg(test)]
    pub(crate) fn with_patience(mut self: Arc<Self>, patience: Duration) -> Arc<Self> {
        Arc::get_mut(&mut self)
            .expect("an app that is not shared yet")
            .patience = patience;
        self
    }

    /// Names the app; no secret.
    pub fn key(&self) -> AppKey {
        AppKey {
            kind: KIND.to_owned(),
            id: self.app_id.clone(),
        }
    }

    /// The app's id, `cli_…`.
    pub fn app_id(&self) -> &str {
        &self.app_id
    }

    /// Makes the call with the tenant token. A token that is not taken is replaced and the call repeated, once.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Object, CallError> {
        let token = self.token().await?;
        match self.send(call, Some(&token)).await {
            Err(CallError::Refused(refused)) if refused.class() == Class::Token => {
                self.tokens.drop_refused(&token).await;
                let token = self.token().await?;
                self.send(call, Some(&token)).await
            }
            other => other,
        }
    }

    /// The tenant token, fetched when there is none. Its own failures are never failures of the call that needed it.
    pub(crate) async fn token(&self) -> Result<Secret, CallError> {
        self.tokens
            .get((self.now)(), || self.fetch_token())
            .await
            .map_err(|error| match error {
                CallError::Unclear(_) => CallError::NotAsked("no tenant token: no clear answer"),
                CallError::Refused(refused) => CallError::NoToken(refused),
                other => other,
            })
    }

    async fn fetch_token(&self) -> Result<Fresh, CallError> {
        let body = json!({ "app_id": self.app_id, "app_secret": self.app_secret.expose() });
        let answer = self
            .send(
                &Call {
                    name: "tenant_access_token",
                    method: Method::POST,
                    path: &["open-apis", "auth", "v3", "tenant_access_token", "internal"],
                    query: &[],
                    body: Some(body.to_string().into_bytes()),
                },
                None,
            )
            .await?;
        let token = text(&answer, &["tenant_access_token"])
            .filter(|token| token.bytes().all(|b| b.is_ascii_graphic()))
            .and_then(|token| Secret::new(token).ok())
            .ok_or_else(|| CallError::Unclear("no token in the answer".to_owned()))?;
        let life = answer
            .get("expire")
            .and_then(serde_json::Value::as_u64)
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs);
        Ok(Fresh { token, life })
    }

    /// The bot's own `open_id`; asked for once.
    pub(crate) async fn me(&self) -> Result<String, CallError> {
        if let Some(me) = self.me.get() {
            return Ok(me.clone());
        }
        let answer = self
            .call(&Call {
                name: "bot.info",
                method: Method::GET,
                path: &["open-apis", "bot", "v3", "info"],
                query: &[],
                body: None,
            })
            .await?;
        let me = text(&answer, &["bot", "open_id"]).filter(|id| is_id(id));
        let me = me.ok_or_else(|| CallError::Unclear("no bot in the answer".to_owned()))?;
        Ok(self.me.get_or_init(|| me.to_owned()).clone())
    }

    /// Asks where a long connection may be opened: an address for one use, and how to behave. The ticket stands in the
    /// address, so it is not logged.
    pub(crate) async fn endpoint(&self) -> Result<Object, CallError> {
        let body = json!({ "AppID": self.app_id, "AppSecret": self.app_secret.expose() });
        let call = Call {
            name: "ws.endpoint",
            method: Method::POST,
            path: &["callback", "ws", "endpoint"],
            query: &[],
            body: Some(body.to_string().into_bytes()),
        };
        let headers =
            HeaderMap::from_iter([(HeaderName::from_static("locale"), HeaderValue::from_static("zh"))]);
        self.send_with(&call, None, headers).await
    }

    async fn send(&self, call: &Call<'_>, token: Option<&Secret>) -> Result<Object, CallError> {
        self.send_with(call, token, HeaderMap::new()).await
    }

    async fn send_with(
        &self,
        call: &Call<'_>,
        token: Option<&Secret>,
        headers: HeaderMap,
    ) -> Result<Object, CallError> {
        let mut request = self
            .http
            .request(call.method.clone(), self.base.at(call.path, call.query))
            .headers(headers)
            .timeout(self.patience);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.expose()));
        }
        if let Some(body) = &call.body {
            request = request
                .header(CONTENT_TYPE, "application/json; charset=utf-8")
                .body(body.clone());
        }
        let result = match request.send().await {
            Ok(response) => read(response).await,
            Err(error) if error.is_connect() || error.is_builder() => {
                Err((CallError::NotAsked("no connection to the platform"), None))
            }
            Err(error) if error.is_timeout() => Err((CallError::Unclear("timeout".to_owned()), None)),
            Err(_) => Err((CallError::Unclear("connection lost".to_owned()), None)),
        };
        result.map_err(|(error, log_id)| {
            tracing::warn!(
                call = call.name,
                app = %self.app_id,
                log_id = log_id.as_deref().unwrap_or("-"),
                error = ?error,
                "the platform did not do it"
            );
            error
        })
    }
}

/// Reads an answer: 2xx with `code` 0 is success, whatever else came is sorted.
async fn read(response: Response) -> Result<Object, (CallError, Option<String>)> {
    let status = response.status();
    let headers = response.headers().clone();
    let log_id = log_id(&headers);
    let fail = |error| (error, log_id.clone());
    let body = capped(response)
        .await
        .map_err(|why| fail(CallError::Unclear(why.to_owned())))?;
    let answer = document::parse(&body).ok();
    let code = answer.as_ref().and_then(|answer| answer.get("code")?.as_i64());
    match (code, answer) {
        (Some(0), Some(answer)) if status.is_success() => Ok(answer),
        (None, _) if status.is_success() => Err(fail(CallError::Unclear(UNREADABLE.to_owned()))),
        (code, answer) => {
            let message = answer
                .as_ref()
                .and_then(|answer| text(answer, &["msg"]))
                .unwrap_or("");
            Err(fail(CallError::Refused(Refused {
                status: status.as_u16(),
                code: code.filter(|code| *code != 0),
                sub_code: sub_code(message),
                locked: message.contains("is lock"),
                after: wait(&headers),
                scopes: if code == Some(99_991_672) {
                    scopes(message)
                } else {
                    Vec::new()
                },
            })))
        }
    }
}

/// The body, as long as it stays small.
async fn capped(mut response: Response) -> Result<Vec<u8>, &'static str> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| "answer lost")? {
        if body.len() + chunk.len() > LONGEST_ANSWER {
            return Err("answer too long");
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// How long the platform wants us to wait: whole seconds, at least one, capped. A date or a word is no answer; the caller has
/// its own patience.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    ["x-ogw-ratelimit-reset", "retry-after"].iter().find_map(|name| {
        let seconds: u64 = headers.get(*name)?.to_str().ok()?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds.clamp(1, LONGEST_WAIT)))
    })
}

/// The platform's name for this call, for its support; only when it looks like one.
fn log_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("x-tt-logid")?.to_str().ok()?;
    is_id(id).then(|| id.to_owned())
}
