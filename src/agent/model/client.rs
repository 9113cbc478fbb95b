//! A small client for one OpenAI-compatible endpoint: answers whole or streamed, bounded time, bounded size, bounded
//! repetition. (Why not a client crate: those that there are repair or drop what an endpoint sends, and a gate must see it.)
//!
//! Whether an answer is streamed is asked for by the configuration and judged by what comes: an endpoint that streams unasked
//! is understood, and one that refuses to stream is asked for whole answers from then on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use tracing::{debug, warn};
use url::Url;

use super::stream::Collector;
use super::wire::{Request, Response};
use super::{Listener, Model, ModelError, Progress, Question, Reply};
use crate::config::agent::ModelConfig;

/// The most bytes of an answer.
const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// The longest pause that an endpoint may ask for.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// When to ask again after an answer that may be better another time.
#[derive(Debug, Clone)]
pub struct Patience {
    /// The pause before each repetition; as many repetitions as pauses.
    pub pauses: Vec<Duration>,
}

impl Patience {
    /// So many repetitions, after 1, 4 and then 15 seconds each.
    pub fn of(retries: u32) -> Self {
        let pauses = [1, 4].into_iter().chain(std::iter::repeat(15));
        Self {
            pauses: (0..retries)
                .zip(pauses)
                .map(|(_, seconds)| Duration::from_secs(seconds))
                .collect(),
        }
    }
}

/// See the module.
pub struct ModelClient {
    http: reqwest::Client,
    url: Url,
    model: String,
    key: Option<HeaderValue>,
    timeout: Duration,
    patience: Patience,
    stream: AtomicBool,
}

/// The configuration of the model cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadModel {
    /// Nothing can stand below the address.
    #[error("`agent.model.base_url` cannot have a path")]
    BaseUrl,
    /// The key cannot be sent.
    #[error("`agent.model.api_key` cannot be sent in a header")]
    Key,
}

impl ModelClient {
    /// A client for this endpoint.
    pub fn new(config: &ModelConfig, http: reqwest::Client, patience: Patience) -> Result<Self, BadModel> {
        let mut url = config.base_url.clone();
        url.path_segments_mut()
            .map_err(|()| BadModel::BaseUrl)?
            .pop_if_empty()
            .extend(["chat", "completions"]);
        let key = match &config.api_key {
            None => None,
            Some(key) => {
                let mut value =
                    HeaderValue::from_str(&format!("Bearer {}", key.expose())).map_err(|_| BadModel::Key)?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        Ok(Self {
            http,
            url,
            model: config.model.clone(),
            key,
            timeout: config.timeout,
            patience,
            stream: AtomicBool::new(config.stream),
        })
    }

    async fn once(&self, body: &[u8], listener: Listener<'_>) -> Result<Reply, Fault> {
        let mut request = self
            .http
            .post(self.url.clone())
            .timeout(self.timeout)
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_vec());
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key.clone());
        }
        let mut response = request
            .send()
            .await
            .map_err(|error| Fault::passing(why(&error)))?;
        let status = response.status();
        if !status.is_success() {
            let pause = response
                .headers()
                .get(RETRY_AFTER)
                .and_then(|value| value.to_str().ok()?.trim().parse().ok())
                .map(Duration::from_secs);
            let text = format!("status {}", status.as_u16());
            let passing = status.is_server_error()
                || matches!(
                    status,
                    StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
                );
            return Err(if passing {
                Fault::Passing { text, pause }
            } else {
                Fault::Lasting(ModelError::Refused(text))
            });
        }
        let is_stream = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.trim_start().starts_with("text/event-stream"));
        if is_stream {
            return collect(response, listener).await;
        }
        let mut answer = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| Fault::passing(why(&error)))?
        {
            if answer.len() + chunk.len() > MAX_ANSWER {
                let text = format!("it is longer than {MAX_ANSWER} bytes");
                return Err(Fault::Lasting(ModelError::Unreadable(text)));
            }
            answer.extend_from_slice(&chunk);
        }
        if answer.trim_ascii_start().starts_with(b"data:") {
            let mut collector = Collector::default();
            return match collector.take(&answer) {
                Ok(()) => Ok(collector.into_reply()),
                Err(bad) => Err(Fault::passing(bad.as_str().to_owned())),
            };
        }
        let read = serde_json::from_slice::<Response>(&answer).map_err(|error| {
            format!(
                "not in the expected form (line {}, column {})",
                error.line(),
                error.column()
            )
        });
        match read.map(Response::into_reply) {
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err(Fault::passing("it holds no message".to_owned())),
            Err(text) => Err(Fault::passing(text)),
        }
    }
}

/// Puts a streamed answer together while it comes.
async fn collect(mut response: reqwest::Response, listener: Listener<'_>) -> Result<Reply, Fault> {
    let mut collector = Collector::default();
    let mut told = 0_usize;
    let mut length = 0_usize;
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| Fault::passing(why(&error)))?
    {
        length = length.saturating_add(chunk.len());
        if length > MAX_ANSWER {
            let text = format!("it is longer than {MAX_ANSWER} bytes");
            return Err(Fault::Lasting(ModelError::Unreadable(text)));
        }
        collector
            .take(&chunk)
            .map_err(|bad| Fault::passing(bad.as_str().to_owned()))?;
        if length > told.saturating_mul(2) {
            told = length;
            listener.tell(Progress::Heard { bytes: length });
        }
    }
    Ok(collector.into_reply())
}

enum Fault {
    Passing { text: String, pause: Option<Duration> },
    Lasting(ModelError),
}

impl Fault {
    const fn passing(text: String) -> Self {
        Self::Passing { text, pause: None }
    }
}

/// What went wrong on the way, without addresses.
fn why(error: &reqwest::Error) -> String {
    let text = if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        "no connection"
    } else {
        "the connection broke"
    };
    text.to_owned()
}

#[async_trait]
impl Model for ModelClient {
    async fn ask(&self, question: Question<'_>) -> Result<Reply, ModelError> {
        let write = |stream| {
            serde_json::to_vec(&Request::of(&self.model, &question, stream))
                .map_err(|_| ModelError::Refused("the question cannot be written as JSON".to_owned()))
        };
        let mut body = write(self.stream.load(Ordering::Relaxed))?;
        let mut pauses = self.patience.pauses.iter();
        let mut tries = 1_usize;
        loop {
            let (text, asked_for) = match self.once(&body, question.listener).await {
                Ok(reply) => {
                    debug!(
                        calls = reply.calls.len(),
                        complete = reply.complete,
                        "the model answered"
                    );
                    return Ok(reply);
                }
                Err(Fault::Lasting(ModelError::Refused(text)))
                    if self.stream.swap(false, Ordering::Relaxed) =>
                {
                    warn!(%text, "the model refused to stream; it is asked for whole answers from now on");
                    body = write(false)?;
                    continue;
                }
                Err(Fault::Lasting(error)) => return Err(error),
                Err(Fault::Passing { text, pause }) => (text, pause),
            };
            let Some(pause) = pauses.next() else {
                return Err(ModelError::Unavailable(text));
            };
            warn!(%text, "the model did not answer; it is asked again");
            tokio::time::sleep((*pause).max(asked_for.unwrap_or_default()).min(MAX_PAUSE)).await;
            tries += 1;
            question.listener.tell(Progress::AskedAgain { tries });
        }
    }
}
