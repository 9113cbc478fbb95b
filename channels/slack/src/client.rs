//! One call to the Web API: bearer token, own time-out, capped answer, no retry. Knows no card.

use std::time::Duration;

use gatepost_channel::Secret;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode, Url};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::config::{self, ConfigError};
use crate::error::{self, CallError};
use crate::wait;

/// A call from first byte to last; the click behind it has been answered already.
const TIMEOUT: Duration = Duration::from_secs(10);
/// More than any answer we ask for.
const MAX_ANSWER: usize = 512 * 1024;

/// The Web API as one app sees it.
pub(crate) struct Api {
    http: reqwest::Client,
    base: Url,
    bearer: HeaderValue,
}

/// A successful answer: `ok` was true.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The scopes that the token has, when Slack names them.
    pub(crate) scopes: Option<String>,
    /// The body.
    pub(crate) body: Map<String, Value>,
}

impl Answer {
    /// A text at the top of the body, when it is one of Slack's short ids or times.
    pub(crate) fn id(&self, key: &str) -> Option<&str> {
        let text = self.body.get(key)?.as_str()?;
        error::is_short_word(text).then_some(text)
    }
}

/// How arguments travel: Slack reads JSON for methods that write, and only forms for most that read.
pub(crate) enum Arguments<'a> {
    /// `application/json`, spelled.
    Json(Vec<u8>),
    /// `application/x-www-form-urlencoded`.
    Form(&'a [(&'a str, &'a str)]),
}

impl Arguments<'_> {
    /// Spells `arguments` as JSON.
    pub(crate) fn json(arguments: &impl Serialize) -> Result<Self, CallError> {
        serde_json::to_vec(arguments)
            .map(Self::Json)
            .map_err(|_| CallError::setup("request_not_built"))
    }
}

/// Arguments of every method that writes: no name or address in the top-level text is made into a link. Left out of an edit,
/// Slack would fall back to its defaults.
#[derive(Debug, Serialize)]
pub(crate) struct Literally {
    parse: &'static str,
    link_names: bool,
}

impl Default for Literally {
    fn default() -> Self {
        Self {
            parse: "none",
            link_names: false,
        }
    }
}

impl Api {
    /// The Web API at `base_url`, called with `token`.
    pub(crate) fn new(base_url: &str, token: &Secret, http: reqwest::Client) -> Result<Self, ConfigError> {
        Ok(Self {
            http,
            base: config::base_url(base_url)?,
            bearer: config::bearer(token)?,
        })
    }

    /// Calls `method` once.
    pub(crate) async fn call(&self, method: &str, arguments: Arguments<'_>) -> Result<Answer, CallError> {
        let url = self.address(method)?;
        let request = self
            .http
            .post(url)
            .timeout(TIMEOUT)
            .header(AUTHORIZATION, self.bearer.clone());
        let request = match arguments {
            Arguments::Json(body) => request
                .header(CONTENT_TYPE, "application/json; charset=utf-8")
                .body(body),
            Arguments::Form(pairs) => request.form(pairs),
        };
        let response = request
            .send()
            .await
            .map_err(|error| CallError::transport(&error))?;
        let status = response.status();
        let headers = response.headers().clone();
        let body = read(response).await;
        if status == StatusCode::TOO_MANY_REQUESTS {
            let body = body.unwrap_or_default();
            return Err(CallError::throttled(wait::asked(&headers, &body)));
        }
        let body = body?;
        match serde_json::from_slice(&body) {
            Ok(Value::Object(body)) => judge(status, &headers, body),
            _ => Err(CallError::unreadable(status)),
        }
    }

    /// The address of a method below the base, with or without a slash at the base's end.
    fn address(&self, method: &str) -> Result<Url, CallError> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| CallError::setup("request_not_built"))?
            .pop_if_empty()
            .push(method);
        Ok(url)
    }
}

/// Success is a 2xx whose body says `ok: true`; everything else is a failure with a class.
fn judge(status: StatusCode, headers: &HeaderMap, body: Map<String, Value>) -> Result<Answer, CallError> {
    match body.get("ok") {
        Some(Value::Bool(true)) if status.is_success() => Ok(Answer {
            scopes: headers
                .get("x-oauth-scopes")
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned),
            body,
        }),
        Some(Value::Bool(false)) => Err(CallError::refused(&body, wait::asked_by_header(headers))),
        _ => Err(CallError::unreadable(status)),
    }
}

/// The body, up to the cap. A lost or endless answer leaves the outcome open.
async fn read(mut response: Response) -> Result<Vec<u8>, CallError> {
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| CallError::transport(&error))?
    {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(CallError::Unclear("answer_too_large".to_owned()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
