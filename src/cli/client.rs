//! The HTTP client of the commands: one server, one token, JSON in and out, refusals as one sentence.
//!
//! It follows no redirect and uses no proxy: the token goes to the server that was named and to nobody else.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Method, RequestBuilder, Response, redirect};
use serde::Serialize;
use url::Url;

use super::answer::Answer;
use super::print;

/// Longer than any wait that the server grants.
const PATIENCE: Duration = Duration::from_secs(90);
const CONNECT: Duration = Duration::from_secs(10);
/// More than the largest page of a list.
const LONGEST_ANSWER: usize = 64 * 1024 * 1024;

/// Why the server did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is none.
    #[error(
        "`{0}` is not an address of a server: name it with --url or GATEPOST_URL, such as http://127.0.0.1:8460"
    )]
    Address(String),
    /// The token cannot stand in a header.
    #[error("the token holds characters that no token has")]
    Token,
    /// No client can be made.
    #[error("no connection can be made: {0}")]
    Setup(String),
    /// Nobody answered.
    #[error(
        "{url} cannot be reached: {why}; is `gatepost serve` running there? --url or GATEPOST_URL names another server"
    )]
    Unreachable {
        /// The server.
        url: String,
        /// What the transport said.
        why: String,
    },
    /// The server refused, with its problem document (RFC 9457).
    #[error("{detail} ({code})")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The stable code.
        code: String,
        /// What it says, inert.
        detail: String,
    },
    /// The answer is not one of Gatepost's.
    #[error("{url} answered {status} with something that is not Gatepost's")]
    Foreign {
        /// The server.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The answer broke off or is too long.
    #[error("the answer of {url} broke off: {why}")]
    Broken {
        /// The server.
        url: String,
        /// What the transport said.
        why: String,
    },
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    token: String,
}

impl ClientError {
    /// The same, where "not found" says what was looked for and which command lists such things.
    #[must_use]
    pub fn naming(self, what: &str, id: &str, list: &str) -> Self {
        match self {
            Self::Refused {
                status: 404, code, ..
            } => Self::Refused {
                status: 404,
                code,
                detail: format!(
                    "there is no {what} `{}` that this token may see; look at `{list}`",
                    print::foreign(id)
                ),
            },
            other => other,
        }
    }
}

impl Client {
    /// A client of the server at `url`.
    pub fn new(url: &str, token: &str) -> Result<Self, ClientError> {
        let base = Url::parse(url)
            .ok()
            .filter(|base| matches!(base.scheme(), "http" | "https") && base.has_host());
        let base = base.ok_or_else(|| ClientError::Address(print::foreign(url)))?;
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ClientError::Token);
        }
        let http = reqwest::Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT)
            .read_timeout(PATIENCE)
            .build()
            .map_err(|error| ClientError::Setup(error.to_string()))?;
        Ok(Self {
            http,
            base,
            token: token.to_owned(),
        })
    }

    /// `GET path?query`.
    pub async fn get(&self, path: &str, query: &[(String, String)]) -> Result<Answer, ClientError> {
        let response = self.send(self.request(Method::GET, path, query)).await?;
        self.whole(response).await
    }

    /// `POST path` with a JSON body.
    pub async fn post(&self, path: &str, body: &(impl Serialize + Sync)) -> Result<Answer, ClientError> {
        let request = self.request(Method::POST, path, &[]).json(body);
        let response = self.send(request).await?;
        self.whole(response).await
    }

    /// `DELETE path`.
    pub async fn delete(&self, path: &str) -> Result<Answer, ClientError> {
        let response = self.send(self.request(Method::DELETE, path, &[])).await?;
        self.whole(response).await
    }

    /// `GET path?query`, its body handed out as it comes; server-sent events go on after the one of the id `after`.
    pub async fn stream(
        &self,
        path: &str,
        query: &[(String, String)],
        after: Option<&str>,
        mut take: impl FnMut(&Bytes),
    ) -> Result<(), ClientError> {
        let mut request = self.request(Method::GET, path, query);
        if let Some(id) = after {
            request = request.header("last-event-id", id);
        }
        let mut response = self.send(request).await?;
        if !response.status().is_success() {
            return self.whole(response).await.map(|_| ());
        }
        while let Some(chunk) = response.chunk().await.map_err(|error| self.broken(&error))? {
            take(&chunk);
        }
        Ok(())
    }

    fn request(&self, method: Method, path: &str, query: &[(String, String)]) -> RequestBuilder {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url);
        if self.token.is_empty() {
            request
        } else {
            request.bearer_auth(&self.token)
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        request.send().await.map_err(|error| ClientError::Unreachable {
            url: self.shown(),
            why: reason(&error),
        })
    }

    async fn whole(&self, mut response: Response) -> Result<Answer, ClientError> {
        let status = response.status();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.broken(&error))? {
            if body.len() + chunk.len() > LONGEST_ANSWER {
                return Err(ClientError::Broken {
                    url: self.shown(),
                    why: "it is too long".to_owned(),
                });
            }
            body.extend_from_slice(&chunk);
        }
        let foreign = || ClientError::Foreign {
            url: self.shown(),
            status: status.as_u16(),
        };
        let answer = Answer::read(&body).ok_or_else(foreign)?;
        if status.is_success() {
            return Ok(answer);
        }
        let code = answer.value["code"].as_str().ok_or_else(foreign)?;
        let detail = ["detail", "title"]
            .iter()
            .find_map(|member| answer.value[*member].as_str())
            .unwrap_or("refused");
        Err(ClientError::Refused {
            status: status.as_u16(),
            code: print::foreign(code),
            detail: print::foreign(detail),
        })
    }

    fn broken(&self, error: &reqwest::Error) -> ClientError {
        ClientError::Broken {
            url: self.shown(),
            why: reason(error),
        }
    }

    /// The address without a user's name or password.
    fn shown(&self) -> String {
        self.base.origin().ascii_serialization()
    }
}

/// The innermost cause: the outer ones repeat the address.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_found_is_named_and_other_refusals_stay() {
        let refused = |status| ClientError::Refused {
            status,
            code: "a_code".to_owned(),
            detail: "as the server said".to_owned(),
        };
        let named = refused(404)
            .naming("request", "cr_1\u{1b}[2J", "gatepost pending")
            .to_string();
        assert_eq!(
            named,
            "there is no request `cr_1\\x1b[2J` that this token may see; look at `gatepost pending` (a_code)"
        );
        let other = refused(403)
            .naming("request", "cr_1", "gatepost pending")
            .to_string();
        assert_eq!(other, "as the server said (a_code)");
    }
}
