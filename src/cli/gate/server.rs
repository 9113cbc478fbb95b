//! The server as the hook command sees it: one question in, one answer of the dialect out, and nothing else is believed.

use std::time::Duration;

use reqwest::{RequestBuilder, StatusCode, redirect};
use thiserror::Error;
use url::Url;

use super::super::ServerArgs;
use crate::host::{Asking, CALL_HEADER, HookVerdict, Host, PENDING_HEADER};
use crate::ids::ConfirmationId;

/// An answer is allowed to come this much after the hold.
const MARGIN: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(5);
/// How long nobody waits for more than needed: events that need no answer, and withdrawals.
const ASIDE: Duration = Duration::from_secs(2);
/// No answer of ours is longer: it may hold the arguments as people changed them.
const LONGEST_ANSWER: usize = crate::host::MAX_BODY + 64 * 1024;

/// Why nothing can be asked at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Misconfigured {
    /// No address.
    #[error("the address of the Gatepost server (GATEPOST_URL) is none")]
    Url,
    /// No token.
    #[error("there is no token for Gatepost (GATEPOST_TOKEN)")]
    NoToken,
    /// The token cannot stand in a header.
    #[error("the token for Gatepost (GATEPOST_TOKEN) holds characters that no token has")]
    Token,
    /// No client can be made.
    #[error("no connection to Gatepost can be made")]
    Client,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// Nobody there, for now: worth another try.
    Away(String),
    /// Somebody answered, but not as Gatepost does.
    Foreign(String),
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What the call may do.
    pub verdict: HookVerdict,
    /// The request on which this may still change.
    pub pending: Option<ConfirmationId>,
}

/// See the module.
#[derive(Debug)]
pub struct Server {
    http: reqwest::Client,
    base: Url,
    token: String,
    host: Host,
    call: String,
}

impl Server {
    /// The server of the arguments. `call` names the question if the host does not.
    pub fn new(args: &ServerArgs, host: Host, call: String) -> Result<Self, Misconfigured> {
        let base = Url::parse(args.url.trim()).map_err(|_| Misconfigured::Url)?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(Misconfigured::Url);
        }
        let token = args.token.trim();
        if token.is_empty() {
            return Err(Misconfigured::NoToken);
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Misconfigured::Token);
        }
        // Another part of the process may have been first; then there is nothing to do.
        let _already = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT)
            .build()
            .map_err(|_| Misconfigured::Client)?;
        Ok(Self {
            http,
            base,
            token: token.to_owned(),
            host,
            call,
        })
    }

    /// Asks once; the server answers after `hold` at the latest.
    pub async fn ask(
        &self,
        asking: Asking,
        body: &[u8],
        hold: Duration,
        pending: Option<&ConfirmationId>,
    ) -> Result<Reply, Trouble> {
        let mut request = self.hook(body.to_vec(), hold).timeout(hold + MARGIN);
        if let Some(id) = pending {
            request = request.header(PENDING_HEADER, id.as_str());
        }
        let mut response = request.send().await.map_err(|error| away(&error))?;
        let status = response.status();
        if matches!(
            status,
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
        ) {
            return Err(Trouble::Away(format!(
                "the Gatepost server is away (status {status})"
            )));
        }
        let foreign = || {
            Trouble::Foreign(format!(
                "the server did not answer as Gatepost does (status {status})"
            ))
        };
        if status != StatusCode::OK {
            return Err(foreign());
        }
        let pending = match response.headers().get(PENDING_HEADER) {
            None => None,
            Some(id) => {
                let id = id.to_str().ok().and_then(|id| ConfirmationId::parse(id).ok());
                Some(id.ok_or_else(foreign)?)
            }
        };
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| away(&error))? {
            if answer.len() + chunk.len() > LONGEST_ANSWER {
                return Err(foreign());
            }
            answer.extend_from_slice(&chunk);
        }
        let verdict = self.host.dialect().hear(asking, &answer).ok_or_else(foreign)?;
        Ok(Reply { verdict, pending })
    }

    /// Hands on an event that needs no answer. What comes of it does not matter to the host.
    pub async fn pass_on(&self, body: Vec<u8>) {
        drop(self.hook(body, Duration::ZERO).timeout(ASIDE).send().await);
    }

    /// Withdraws a request. The deadline of the request is what holds if this fails.
    pub async fn cancel(&self, id: &ConfirmationId) {
        let path = format!("/api/confirmations/{id}/cancel");
        drop(self.post(&path, None).timeout(ASIDE).body("{}").send().await);
    }

    fn hook(&self, body: Vec<u8>, hold: Duration) -> RequestBuilder {
        self.post(&format!("/api/hooks/{}", self.host), Some(hold))
            .header(CALL_HEADER, &self.call)
            .body(body)
    }

    fn post(&self, path: &str, hold: Option<Duration>) -> RequestBuilder {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url.set_query(hold.map(|hold| format!("hold={}", hold.as_secs())).as_deref());
        url.set_fragment(None);
        self.http
            .post(url)
            .bearer_auth(&self.token)
            .header("content-type", "application/json")
    }
}

/// What the transport says may hold the address with a password; the kind of it does not.
fn away(error: &reqwest::Error) -> Trouble {
    let what = if error.is_timeout() {
        "the Gatepost server did not answer in time"
    } else if error.is_connect() {
        "the Gatepost server cannot be reached"
    } else {
        "the connection to the Gatepost server broke off"
    };
    Trouble::Away(what.to_owned())
}
