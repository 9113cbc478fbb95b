//! A tool behind HTTP: one request a call, made of the stored arguments alone ([`request`]), the permit as its idempotency key.
//! The client that it is given follows no redirect: an approved body must not travel to where somebody else points.
//!
//! What came of a call is decided by what can be known ([`Answered`]): a call that never left did not run, an answer of the tool
//! itself is taken at its word, and everything between (a lost connection, time that ran out, the word of a gateway) is unknown.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use self::request::Plan;
use super::{Carried, as_text};
use crate::config::agent;
use crate::gate::Json;
use crate::gate::json::ReadLimits;
use crate::ids::PermitId;

mod request;

/// See the module.
pub struct HttpTool {
    http: reqwest::Client,
    method: reqwest::Method,
    plan: Plan,
    /// `None` when a configured header cannot be sent, which the configuration rules out.
    headers: Option<HeaderMap>,
}

impl HttpTool {
    /// The tool that the configuration describes.
    pub fn new(config: &agent::HttpTool, http: reqwest::Client) -> Self {
        let mut headers = Some(HeaderMap::new());
        for (name, value) in &config.headers {
            let name = HeaderName::try_from(name.as_str());
            let value = HeaderValue::from_str(value.expose());
            headers = match (headers, name, value) {
                (Some(mut map), Ok(name), Ok(mut value)) => {
                    value.set_sensitive(true);
                    map.insert(name, value);
                    Some(map)
                }
                _ => None,
            };
        }
        Self {
            http,
            method: match config.method {
                agent::ToolMethod::Get => reqwest::Method::GET,
                agent::ToolMethod::Head => reqwest::Method::HEAD,
                agent::ToolMethod::Options => reqwest::Method::OPTIONS,
                agent::ToolMethod::Post => reqwest::Method::POST,
                agent::ToolMethod::Put => reqwest::Method::PUT,
                agent::ToolMethod::Patch => reqwest::Method::PATCH,
                agent::ToolMethod::Delete => reqwest::Method::DELETE,
            },
            plan: Plan::of(config),
            headers,
        }
    }

    /// Why these arguments cannot be sent, in words that hold no value of theirs.
    pub(super) fn misfit(&self, args: &Json) -> Option<String> {
        let request = self.plan.request(args, "");
        request.err().map(|why| why.to_string())
    }

    /// Sends one request and keeps at most `limit` bytes of the answer.
    pub(super) async fn carry_out(
        &self,
        args: &str,
        permit: &PermitId,
        timeout: Duration,
        limit: usize,
    ) -> Carried {
        let Some(headers) = &self.headers else {
            return Carried::Failed("the tool's headers cannot be sent; the call was not made".to_owned());
        };
        let Ok(read) = Json::read(args.as_bytes(), ReadLimits::bytes(args.len())) else {
            return Carried::Failed("the stored arguments cannot be read; the call was not made".to_owned());
        };
        let outgoing = match self.plan.request(&read, args) {
            Ok(outgoing) => outgoing,
            Err(why) => return Carried::Failed(format!("{why}; the call was not made")),
        };
        let mut request = self
            .http
            .request(self.method.clone(), outgoing.url)
            .timeout(timeout)
            .headers(headers.clone())
            .header("idempotency-key", permit.as_str());
        for (name, value) in outgoing.headers {
            request = request.header(name, value);
        }
        if let Some(body) = outgoing.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let mut response = match request.send().await {
            Ok(response) => response,
            Err(error) if error.is_connect() || error.is_builder() => {
                return Carried::Failed("the tool could not be reached; the call was not made".to_owned());
            }
            Err(error) => return Carried::Unknown(lost(&error)),
        };
        let status = response.status();
        let answered = Answered::of(status, &self.method);
        let (mut body, mut more) = (Vec::new(), false);
        loop {
            match response.chunk().await {
                Ok(None) => break,
                Ok(Some(chunk)) => {
                    let room = limit.saturating_sub(body.len());
                    more = chunk.len() > room;
                    body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
                    if more {
                        break;
                    }
                }
                // The status is the answer; only words are missing.
                Err(_) if answered == Answered::Refused => break,
                Err(error) => return Carried::Unknown(lost(&error)),
            }
        }
        let text = as_text(&body, more.then_some(limit));
        let code = status.as_u16();
        match answered {
            Answered::Did if self.method == reqwest::Method::HEAD => Carried::Done(format!("HTTP {code}")),
            Answered::Did => Carried::Done(text),
            Answered::Refused if status.is_redirection() => Carried::Failed(format!(
                "HTTP {code}: the tool pointed elsewhere, which is not followed\n{text}"
            )),
            Answered::Refused => Carried::Failed(format!("HTTP {code}\n{text}")),
            Answered::Unclear if status.is_redirection() => Carried::Unknown(format!(
                "HTTP {code}: the tool says where the result of the call is to be seen, which is not followed; the call has \
                 probably been carried out\n{text}"
            )),
            Answered::Unclear => Carried::Unknown(format!(
                "HTTP {code}: what stands before the tool got no answer from it; the call may have been carried out\n{text}"
            )),
        }
    }
}

/// What a status says of the call (RFC 9110, section 15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answered {
    /// 2xx: it was carried out.
    Did,
    /// 3xx and 4xx: it was refused or sent elsewhere. 500, 501 and 505: the tool itself says that it failed.
    Refused,
    /// 303 to a call that may change something is how its result is shown elsewhere (section 15.4.4): it was hardly refused.
    /// 502, 503, 504 and every other 5xx are the words of a gateway, which does not know what became of the call.
    Unclear,
}

impl Answered {
    fn of(status: StatusCode, method: &reqwest::Method) -> Self {
        match status.as_u16() {
            303 if !method.is_safe() => Self::Unclear,
            200..=299 => Self::Did,
            300..=499 | 500 | 501 | 505 => Self::Refused,
            _ => Self::Unclear,
        }
    }
}

/// No answer came to a call that may have arrived.
fn lost(error: &reqwest::Error) -> String {
    let why = if error.is_timeout() {
        "no answer came in time"
    } else {
        "the connection broke before the answer"
    };
    format!("{why}; the call may have been carried out")
}
