//! One session with a server: the handshake, the list of its tools, calls. What it ends on is said in words that people may
//! see.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, ErrorCode,
    Extensions, Implementation, ListToolsRequest, ListToolsRequestMethod, PaginatedRequestParams,
    PingRequest, PingRequestMethod, ProtocolVersion, RequestMetaObject, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, NotificationContext, Peer,
    PeerRequestOptions, RequestContext, RoleClient, RunningService, ServiceError,
};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::answer::{bounded, shown, told};
use super::call::{Called, Fate, Parcel};
use super::http::Http;
use super::offer::{MAX_TOOLS, Offer};
use super::stdio::{self, Process};
use crate::child::NotStarted;
use crate::config::mcp::McpReach;
use crate::lifecycle::Tasks;

/// The most pages of a list of tools.
const MAX_PAGES: usize = 64;
/// How long a server is told that nobody waits for an answer any more.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long what a process wrote may still arrive after it ended, when somebody else holds its pipes open.
const LAST_ANSWER: Duration = Duration::from_millis(250);

/// Why there is no session, or no list. The texts are for people and hold nothing secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    NotStarted(#[from] NotStarted),
    #[error("it did not answer within {} ms", .0.as_millis())]
    Late(Duration),
    #[error("it refused: {0}")]
    Refused(String),
    #[error("{0}")]
    Ended(String),
    #[error("its answer is not one of MCP")]
    Unreadable,
    #[error("it names too many tools")]
    TooMany,
}

/// What of the SDK's service is ours: we ask, and answer nothing but pings.
struct Ear {
    changed: Arc<Notify>,
}

impl ClientHandler for Ear {
    #[expect(
        deprecated,
        reason = "roots are asked for by servers of the revisions up to 2025-11-25"
    )]
    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        // Nothing of this machine is told.
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            "roots/list is not offered",
            None,
        ))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("gatepost", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

/// A session. Dropping it ends the process, if there is one.
pub(super) struct Link {
    service: RunningService<RoleClient, Ear>,
    process: Option<Process>,
    changed: Arc<Notify>,
    closed: CancellationToken,
    why: Arc<OnceLock<String>>,
}

/// The part of a session that calls are made with.
#[derive(Clone)]
pub(super) struct Line {
    peer: Peer<RoleClient>,
    why: Arc<OnceLock<String>>,
}

/// What a session is opened with.
pub(super) struct Means<'a> {
    pub(super) reach: &'a McpReach,
    /// Follows no redirect.
    pub(super) http: &'a reqwest::Client,
    pub(super) tasks: &'a Tasks,
    /// For the start and the handshake.
    pub(super) limit: Duration,
    /// For the end of a process.
    pub(super) grace: Duration,
}

impl Link {
    /// Connects: with the handshake of the revisions up to 2025-11-25, and if that is refused with that of 2026-07-28.
    pub(super) async fn open(means: &Means<'_>) -> Result<Self, Fault> {
        let modern = || ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        };
        match Self::shake(means, ClientLifecycleMode::Initialize).await {
            Err(Fault::Refused(why)) => match Self::shake(means, modern()).await {
                Err(Fault::Refused(_)) => Err(Fault::Refused(why)),
                other => other,
            },
            other => other,
        }
    }

    async fn shake(means: &Means<'_>, mode: ClientLifecycleMode) -> Result<Self, Fault> {
        let changed = Arc::new(Notify::new());
        let ear = Ear {
            changed: Arc::clone(&changed),
        };
        let (closed, why) = (CancellationToken::new(), Arc::new(OnceLock::new()));
        let (served, process) = match means.reach {
            McpReach::Child(child) => {
                let (process, streams) = stdio::open(child, means.tasks, &closed, &why)?;
                let served = timeout(means.limit, ear.serve_with_lifecycle(streams, mode)).await;
                (served, Some(process))
            }
            McpReach::Http { url, headers } => {
                let transport = Http::open(url, headers, means.http, means.tasks, &closed, &why);
                (
                    timeout(means.limit, ear.serve_with_lifecycle(transport, mode)).await,
                    None,
                )
            }
        };
        let fault = match served {
            Ok(Ok(service)) => {
                return Ok(Self {
                    service,
                    process,
                    changed,
                    closed,
                    why,
                });
            }
            Ok(Err(error)) => initialize_fault(&error, &why),
            Err(_) => Fault::Late(means.limit),
        };
        let last_words = match process {
            Some(process) => process.end(means.grace).await,
            None => String::new(),
        };
        Err(match fault {
            Fault::Ended(said) if said.is_empty() => Fault::Ended(last_words),
            fault => fault,
        })
    }

    pub(super) fn line(&self) -> Line {
        Line {
            peer: self.service.peer().clone(),
            why: Arc::clone(&self.why),
        }
    }

    /// What the server says that it is, for people.
    pub(super) fn server(&self) -> String {
        let info = self.service.peer().peer_info();
        let named = info.as_deref().and_then(|info| {
            let server = info.server_info.as_ref()?;
            let words = format!("{} {}", shown(&server.name), shown(&server.version));
            Some(words.trim().to_owned())
        });
        let revision = info.map(|info| shown(&info.protocol_version.to_string()));
        format!(
            "{}, MCP {}",
            named.as_deref().unwrap_or("a server without a name"),
            revision.as_deref().unwrap_or("of an unknown revision")
        )
    }

    /// Rings when the server says that its tools changed.
    pub(super) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// Resolves when the session has ended.
    pub(super) async fn ended(&mut self) {
        let process = async {
            match &mut self.process {
                Some(process) => process.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.closed.cancelled() => return,
            () = process => {}
        }
        // Its last answer may still lie in the pipe.
        let _ = timeout(LAST_ANSWER, self.closed.cancelled()).await;
    }

    /// Ends it, and says why it ended if it did so by itself.
    pub(super) async fn end(mut self, grace: Duration) -> String {
        let _ = self.service.close_with_timeout(grace).await;
        let last_words = match self.process {
            Some(process) => process.end(grace).await,
            None => "the connection was lost".to_owned(),
        };
        self.why.get().cloned().unwrap_or(last_words)
    }

    /// Whether it answers at all. A server without pings that says so is well.
    pub(super) async fn is_alive(&self, limit: Duration) -> bool {
        let ping = ClientRequest::PingRequest(PingRequest {
            method: PingRequestMethod,
            extensions: Extensions::new(),
        });
        matches!(
            timeout(limit, self.service.peer().send_request(ping)).await,
            Ok(Ok(_) | Err(ServiceError::McpError(_)))
        )
    }

    /// All tools, over all pages.
    pub(super) async fn tools(&self, server: &str, limit: Duration) -> Result<Offer, Fault> {
        let listed = timeout(limit, self.pages()).await;
        Ok(Offer::judge(server, listed.map_err(|_| Fault::Late(limit))??))
    }

    async fn pages(&self) -> Result<Vec<Value>, Fault> {
        let mut named: Vec<Value> = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let request = ClientRequest::ListToolsRequest(ListToolsRequest {
                method: ListToolsRequestMethod,
                params: Some(PaginatedRequestParams::default().with_cursor(cursor.clone())),
                extensions: Extensions::new(),
            });
            let result = self.service.peer().send_request(request).await;
            let (tools, next) = page(result.map_err(|error| service_fault(&error, &self.why))?)?;
            named.extend(tools);
            if named.len() > MAX_TOOLS * 4 {
                return Err(Fault::TooMany);
            }
            match next.filter(|next| !next.is_empty()) {
                None => return Ok(named),
                same if same == cursor => return Ok(named),
                next => cursor = next,
            }
        }
        Err(Fault::TooMany)
    }
}

/// The entries of one page. One tool that the SDK cannot read must not hide the others.
fn page(result: ServerResult) -> Result<(Vec<Value>, Option<String>), Fault> {
    match result {
        ServerResult::ListToolsResult(list) => {
            let tools = list.tools.iter().map(serde_json::to_value);
            let tools = tools.collect::<Result<_, _>>().map_err(|_| Fault::Unreadable)?;
            Ok((tools, list.next_cursor))
        }
        ServerResult::CustomResult(custom) => {
            let mut whole = custom.0;
            let next = whole.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            match whole.get_mut("tools").map(Value::take) {
                Some(Value::Array(tools)) => Ok((tools, next)),
                _ => Err(Fault::Unreadable),
            }
        }
        _ => Err(Fault::Unreadable),
    }
}

impl Line {
    /// Sends one call. Its end is known for certain unless it is [`Called::Unknown`].
    pub(super) async fn call(&self, tool: &str, parcel: &Parcel, deadline: Instant) -> Called {
        let mut request = CallToolRequest::new(CallToolRequestParams::new(tool.to_owned()));
        request.extensions.insert(parcel.clone());
        let mut meta = RequestMetaObject::new();
        meta.insert("gatepost/permit".to_owned(), Value::from(&*parcel.permit));
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let sending = self
            .peer
            .send_cancellable_request(ClientRequest::CallToolRequest(request), options);
        let mut handle = match timeout_at(deadline, sending).await {
            Ok(Ok(handle)) => handle,
            Ok(Err(_)) => return self.unanswered(parcel, "the connection was lost"),
            Err(_) => return self.unanswered(parcel, "no answer came in time"),
        };
        let answer = match timeout_at(deadline, &mut handle.rx).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => return self.unanswered(parcel, "the connection was lost"),
            Err(_) => {
                let called = self.unanswered(parcel, "no answer came in time");
                let _ = timeout(FAREWELL, handle.cancel(Some("nobody waits any more".to_owned()))).await;
                return called;
            }
        };
        match answer {
            Ok(ServerResult::CallToolResult(result)) => told(&result),
            Ok(ServerResult::InputRequiredResult(_)) => {
                Called::Failed("the tool wants input from a person, which it does not get".to_owned())
            }
            Ok(ServerResult::CreateTaskResult(_)) => {
                Called::Unknown("the server made a task of the call, and nobody follows it".to_owned())
            }
            Ok(ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_)) => Called::Done(String::new()),
            Ok(_) => Called::Unknown("the answer is not one of a tool".to_owned()),
            Err(ServiceError::McpError(error)) => match parcel.fate() {
                Fate::Lost | Fate::Refused => self.unanswered(parcel, &shown(&error.message)),
                _ => Called::Failed(bounded(&format!(
                    "the server refused the call ({}): {}",
                    error.code.0, error.message
                ))),
            },
            Err(_) => self.unanswered(parcel, "the connection was lost"),
        }
    }

    fn unanswered(&self, parcel: &Parcel, why: &str) -> Called {
        // From here on it must not leave any more.
        parcel.turn(Fate::Unsent, Fate::Withdrawn);
        let why = self.why.get().map_or(why, String::as_str);
        match parcel.fate() {
            Fate::Unsent | Fate::Withdrawn | Fate::Refused => {
                Called::NotMade(format!("{why}; the call was not made"))
            }
            Fate::Sent | Fate::Lost => Called::Unknown(format!("{why}; the call may have been carried out")),
        }
    }
}

fn initialize_fault(error: &ClientInitializeError, why: &OnceLock<String>) -> Fault {
    match error {
        ClientInitializeError::JsonRpcError(error) => Fault::Refused(shown(&error.message)),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            Fault::Refused("it speaks no revision of MCP that is spoken here".to_owned())
        }
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
            Fault::Ended(why.get().cloned().unwrap_or_default())
        }
        _ => Fault::Unreadable,
    }
}

fn service_fault(error: &ServiceError, why: &OnceLock<String>) -> Fault {
    match error {
        ServiceError::McpError(error) => Fault::Refused(shown(&error.message)),
        ServiceError::UnexpectedResponse => Fault::Unreadable,
        _ => Fault::Ended(
            why.get()
                .cloned()
                .unwrap_or_else(|| "the connection was lost".to_owned()),
        ),
    }
}
