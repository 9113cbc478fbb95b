//! A server behind streamable HTTP: each message is one POST, whose answer is one message or a stream of them; a GET keeps a
//! stream open for what the server says by itself. No redirect is followed, and every answer is bounded.
//!
//! A session that the server does not know any more ends the connection: whoever keeps the server connects anew. A call that
//! was refused that way was certainly not carried out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};
use rmcp::model::{ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, ServerResult};
use rmcp::transport::Transport;
use rmcp::{RoleClient, model::RequestId};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use super::MAX_MESSAGE;
use super::call::{Fate, Parcel};
use super::sse::Events;
use super::wire::{self, Incoming, NotSent, Outgoing};
use crate::config::Secret;
use crate::lifecycle::Tasks;

/// How many messages wait until the SDK takes them.
const BUFFER: usize = 64;
/// The longest that one exchange may take, streams included; a call has its own limit, which is shorter.
const LONGEST: Duration = Duration::from_hours(24);
/// The pause before the stream of what the server says by itself is opened again.
const PAUSE: Duration = Duration::from_secs(5);
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The transport, for the SDK.
pub(super) struct Http {
    shared: Arc<Shared>,
    heard: mpsc::Receiver<Incoming>,
    _closed: DropGuard,
}

struct Shared {
    http: reqwest::Client,
    url: Url,
    headers: Option<HeaderMap>,
    /// Session and revision, as soon as the server named them.
    session: Mutex<HeaderMap>,
    say: mpsc::Sender<Incoming>,
    tasks: Tasks,
    /// How many messages are on their way to the server.
    waiting: AtomicUsize,
    /// Cancelled at the end, by whoever sees it first.
    over: CancellationToken,
    why: Arc<OnceLock<String>>,
}

impl Http {
    /// `closed` is cancelled when the transport is given up; `why` then says the reason, if we had one.
    pub(super) fn open(
        url: &Url,
        headers: &BTreeMap<String, Secret>,
        http: &reqwest::Client,
        tasks: &Tasks,
        closed: &CancellationToken,
        why: &Arc<OnceLock<String>>,
    ) -> Self {
        let (say, heard) = mpsc::channel(BUFFER);
        let shared = Arc::new(Shared {
            http: http.clone(),
            url: url.clone(),
            headers: own_headers(headers),
            session: Mutex::default(),
            say,
            tasks: tasks.clone(),
            waiting: AtomicUsize::new(0),
            over: closed.child_token(),
            why: Arc::clone(why),
        });
        Self {
            shared,
            heard,
            _closed: closed.clone().drop_guard(),
        }
    }
}

/// The configured headers, as secrets; `None` when one cannot be sent, which the configuration rules out.
fn own_headers(headers: &BTreeMap<String, Secret>) -> Option<HeaderMap> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::try_from(name.as_str()).ok()?;
        let mut value = HeaderValue::from_str(value.expose()).ok()?;
        value.set_sensitive(true);
        map.insert(name, value);
    }
    Some(map)
}

impl Transport<RoleClient> for Http {
    type Error = NotSent;

    fn send(&mut self, message: Outgoing) -> impl Future<Output = Result<(), NotSent>> + Send + 'static {
        let shared = Arc::clone(&self.shared);
        async move {
            shared.waiting.fetch_add(1, Ordering::SeqCst);
            let sent = Arc::clone(&shared).post(message).await;
            shared.waiting.fetch_sub(1, Ordering::SeqCst);
            sent
        }
    }

    async fn receive(&mut self) -> Option<Incoming> {
        tokio::select! {
            biased;
            heard = self.heard.recv() => heard,
            () = self.shared.over.cancelled() => None,
        }
    }

    async fn close(&mut self) -> Result<(), NotSent> {
        self.shared.over.cancel();
        // Frees the session at the server; it is no loss if that does not arrive.
        let shared = Arc::clone(&self.shared);
        if shared.session().contains_key(SESSION) {
            let goodbye = shared
                .request(reqwest::Method::DELETE)
                .timeout(Duration::from_secs(1));
            let _ = goodbye.send().await;
        }
        Ok(())
    }
}

/// What an exchange is about: whose answer is waited for.
struct Asked {
    id: Option<RequestId>,
    parcel: Option<Parcel>,
    opens: bool,
}

impl Shared {
    fn session(&self) -> std::sync::MutexGuard<'_, HeaderMap> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, method: reqwest::Method) -> reqwest::RequestBuilder {
        let session = self.session().clone();
        self.http
            .request(method, self.url.clone())
            .timeout(LONGEST)
            .headers(self.headers.clone().unwrap_or_default())
            .headers(session)
    }

    fn end(&self, why: &str) {
        // The first reason stands.
        let _ = self.why.set(why.to_owned());
        self.over.cancel();
    }

    async fn post(self: Arc<Self>, message: Outgoing) -> Result<(), NotSent> {
        if self.headers.is_none() {
            self.end("its headers cannot be sent");
            return Err(NotSent::Closed);
        }
        let body = wire::spell(&message)?;
        let parcel = wire::parcel(&message).cloned();
        let mut request = self
            .request(reqwest::Method::POST)
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json");
        let mut asked = Asked {
            id: None,
            parcel,
            opens: false,
        };
        if let JsonRpcMessage::Request(sent) = &message {
            asked.id = Some(sent.id.clone());
            asked.opens = matches!(
                sent.request,
                ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_)
            );
            request = request.header("mcp-method", sent.request.method());
            if let ClientRequest::CallToolRequest(call) = &sent.request {
                request = request.header("mcp-name", &*call.params.name);
            }
            if let ClientRequest::DiscoverRequest(_) = &sent.request {
                request = request.header(REVISION, "2026-07-28");
            }
        }
        if let Some(parcel) = &asked.parcel {
            request = request.header("idempotency-key", &*parcel.permit);
        }
        wire::depart(asked.parcel.as_ref())?;
        let answered = tokio::select! {
            answered = request.body(body).send() => answered,
            () = self.over.cancelled() => return Err(NotSent::Closed),
        };
        let response = match answered {
            Ok(response) => response,
            Err(error) => {
                let never_left = error.is_connect() || error.is_builder();
                if never_left {
                    refuse(asked.parcel.as_ref());
                    self.end("it could not be reached");
                }
                return Err(NotSent::Closed);
            }
        };
        let known = self.take_note(&response, &asked);
        // From here on the server may speak by itself.
        if let JsonRpcMessage::Notification(told) = &message
            && matches!(told.notification, ClientNotification::InitializedNotification(_))
            && response.status().is_success()
        {
            let listening = Arc::clone(&self);
            self.tasks.spawn(async move { listening.listen().await });
        }
        if !known {
            return Err(NotSent::Closed);
        }
        // The SDK's task that sends is done; the answer comes when it comes. A stop of ours alone does not end it: the runs that
        // wait for it have a while yet, and what they do not hear they would have to ask a person about.
        let reading = Arc::clone(&self);
        self.tasks.spawn(async move {
            tokio::select! {
                () = reading.read(response, asked) => {}
                () = reading.over.cancelled() => {}
            }
        });
        Ok(())
    }

    /// Whether the exchange goes on. A session that the server has forgotten ends all of them.
    fn take_note(&self, response: &Response, asked: &Asked) -> bool {
        let mut session = self.session();
        if response.status() == StatusCode::NOT_FOUND && session.contains_key(SESSION) {
            drop(session);
            refuse(asked.parcel.as_ref());
            self.end("the server has forgotten the session");
            return false;
        }
        if asked.opens
            && let Some(id) = response.headers().get(SESSION)
        {
            session.insert(SESSION, id.clone());
        }
        true
    }

    /// Reads the answer to a message.
    async fn read(&self, mut response: Response, asked: Asked) {
        let status = response.status();
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let heard = if kind.starts_with("text/event-stream") && status.is_success() {
            self.read_stream(&mut response, asked.id.as_ref()).await
        } else {
            let body = whole(&mut response).await;
            match body.as_deref().map(wire::read) {
                Ok(Some(message)) => {
                    let answers = answers(&message, asked.id.as_ref());
                    self.hear(message, asked.opens).await;
                    if answers { Heard::Answer } else { Heard::Nothing }
                }
                Ok(None) => Heard::Nothing,
                Err(TooMuch) => Heard::TooMuch,
            }
        };
        let Some(id) = asked.id else { return };
        if heard == Heard::Answer {
            return;
        }
        // Whoever waits must hear that nothing comes. What the server refused by its status is an answer all the same.
        let why = if heard == Heard::TooMuch {
            format!("the answer has more than {MAX_MESSAGE} bytes")
        } else if status.is_redirection() {
            "the server pointed elsewhere, which is not followed".to_owned()
        } else if status.is_success() {
            "the answer ended before it was whole".to_owned()
        } else {
            format!("HTTP {}", status.as_u16())
        };
        // An error of the server, or of a gateway before it, says nothing of what was done.
        let open = status.is_success() || status.is_server_error();
        if let Some(parcel) = asked.parcel.filter(|_| open) {
            parcel.turn(Fate::Sent, Fate::Lost);
        }
        let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, why, None);
        let _ = self.say.send(JsonRpcMessage::error(error, Some(id))).await;
    }

    async fn read_stream(&self, response: &mut Response, id: Option<&RequestId>) -> Heard {
        let mut events = Events::new(MAX_MESSAGE);
        while let Ok(Some(chunk)) = response.chunk().await {
            let Ok(taken) = events.take(&chunk) else {
                return Heard::TooMuch;
            };
            for message in taken.iter().filter_map(|data| wire::read(data)) {
                let answers = answers(&message, id);
                self.hear(message, answers).await;
                if answers {
                    return Heard::Answer;
                }
            }
        }
        Heard::Nothing
    }

    /// Hands a message to the SDK. The answer that opens the session also says which revision is spoken in it.
    async fn hear(&self, message: Incoming, may_open: bool) {
        if let (true, JsonRpcMessage::Response(response)) = (may_open, &message) {
            let revision = match &response.result {
                ServerResult::InitializeResult(result) => Some(result.protocol_version.to_string()),
                ServerResult::DiscoverResult(_) => Some("2026-07-28".to_owned()),
                _ => None,
            };
            if let Some(revision) = revision.and_then(|revision| HeaderValue::try_from(revision).ok()) {
                self.session().insert(REVISION, revision);
            }
        }
        if wire::wants_something(&message) && self.waiting.load(Ordering::SeqCst) > wire::MOST_WAITING {
            return self.end(wire::GREEDY);
        }
        // Nobody listens any more when the transport is gone.
        let _ = self.say.send(message).await;
    }

    /// Keeps the stream open on which the server speaks by itself, as long as it offers one.
    async fn listen(self: Arc<Self>) {
        let listen = async {
            loop {
                let request = self
                    .request(reqwest::Method::GET)
                    .header(ACCEPT, "text/event-stream");
                match request.send().await {
                    Ok(mut response) if response.status() == StatusCode::OK => {
                        let kind = response.headers().get(CONTENT_TYPE);
                        let streams =
                            kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
                        if !streams {
                            return;
                        }
                        self.read_stream(&mut response, None).await;
                    }
                    Ok(response) if response.status() == StatusCode::NOT_FOUND => {
                        return self.end("the server has forgotten the session");
                    }
                    // It offers no such stream.
                    Ok(_) => return,
                    Err(_) => {}
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::select! {
            () = listen => {}
            () = self.over.cancelled() => {}
            () = self.tasks.stopping() => {}
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    Answer,
    Nothing,
    TooMuch,
}

struct TooMuch;

/// A body of at most [`MAX_MESSAGE`] bytes; what is missing of it is no message.
async fn whole(response: &mut Response) -> Result<Vec<u8>, TooMuch> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        if body.len() + chunk.len() > MAX_MESSAGE {
            return Err(TooMuch);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn refuse(parcel: Option<&Parcel>) {
    if let Some(parcel) = parcel {
        parcel.turn(Fate::Sent, Fate::Refused);
    }
}

fn answers(message: &Incoming, id: Option<&RequestId>) -> bool {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id) == id,
        JsonRpcMessage::Error(error) => id.is_some() && error.id.as_ref() == id,
        _ => false,
    }
}
