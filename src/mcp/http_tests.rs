//! Servers behind HTTP: a real one on loopback, with the answers that break clients.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::call::Called;
use super::fixture::{Kept, PERMIT, entry, limits};
use super::server::Health;
use crate::config::Secret;
use crate::config::mcp::McpReach;
use crate::job::fixture::Folder;
use crate::lifecycle::Tasks;

const LONG: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Place {
    calls: Mutex<Vec<(HeaderMap, String)>>,
    sessions: AtomicUsize,
    described: Mutex<String>,
    changed: Notify,
    /// The tool `later` answers once this is told.
    later: Notify,
    refuse_handshake: bool,
}

fn json_answer(message: &Value) -> Response {
    let body = message.to_string();
    ([("content-type", "application/json")], body).into_response()
}

fn stream(text: String) -> Response {
    ([("content-type", "text/event-stream")], text).into_response()
}

async fn serve(State(place): State<Arc<Place>>, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    let session = format!("session-{}", place.sessions.load(Ordering::SeqCst));
    let knows = headers
        .get("mcp-session-id")
        .is_some_and(|id| id.as_bytes() == session.as_bytes());
    if method == Method::GET {
        place.changed.notified().await;
        let told = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        return stream(format!("data: {told}\n\n"));
    }
    if method == Method::DELETE {
        return StatusCode::OK.into_response();
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    let id = message["id"].clone();
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    if message["method"] == "initialize" {
        if place.refuse_handshake {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        let answer = result(
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "till", "version": "3"}}),
        );
        let mut answer = json_answer(&answer);
        answer
            .headers_mut()
            .insert("mcp-session-id", session.parse().unwrap());
        return answer;
    }
    if !knows {
        return StatusCode::NOT_FOUND.into_response();
    }
    assert_eq!(headers["mcp-protocol-version"], "2025-06-18");
    assert_eq!(headers["authorization"], "Bearer of-the-server");
    match message["method"].as_str().unwrap() {
        "tools/list" => {
            let described = place.described.lock().unwrap().clone();
            let names = [
                "pay",
                "cut",
                "broken",
                "gateway",
                "denied",
                "elsewhere",
                "vast",
                "slow",
                "later",
            ];
            let tools: Vec<Value> = names
                .iter()
                .map(
                    |name| json!({"name": name, "description": described, "inputSchema": {"type": "object"}}),
                )
                .collect();
            json_answer(&result(json!({"tools": tools})))
        }
        "tools/call" => {
            place
                .calls
                .lock()
                .unwrap()
                .push((headers, String::from_utf8(body.to_vec()).unwrap()));
            let paid = result(json!({"content": [{"type": "text", "text": "paid"}]}));
            match message["params"]["name"].as_str().unwrap() {
                "cut" => stream("data: {\"jsonrpc\"".to_owned()),
                "broken" => ([("content-type", "application/json")], "{\"jsonrpc\"").into_response(),
                "gateway" => StatusCode::BAD_GATEWAY.into_response(),
                "denied" => StatusCode::FORBIDDEN.into_response(),
                "elsewhere" => {
                    (StatusCode::TEMPORARY_REDIRECT, [("location", "/elsewhere")], "").into_response()
                }
                "vast" => (
                    [("content-type", "application/json")],
                    Body::from("x".repeat(5_000_000)),
                )
                    .into_response(),
                "slow" => std::future::pending().await,
                "later" => {
                    place.later.notified().await;
                    json_answer(&paid)
                }
                _ => {
                    let told = json!({"jsonrpc": "2.0", "method": "notifications/message",
                        "params": {"level": "info", "data": "working"}});
                    stream(format!(
                        ": hello\n\nid: 1\ndata:\n\nevent: message\ndata: {told}\n\ndata: {paid}\n\n"
                    ))
                }
            }
        }
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

async fn open(place: Place, timeout: Duration) -> (Arc<Place>, Kept, Tasks) {
    let (place, tasks) = (Arc::new(place), Tasks::new());
    let router = Router::new().fallback(serve).with_state(Arc::clone(&place));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tasks.spawn(async move {
        let _ = axum::serve(listener, router).await;
    });
    let headers = BTreeMap::from([(
        "authorization".to_owned(),
        Secret::verbatim("Bearer of-the-server"),
    )]);
    let reach = McpReach::Http {
        url: url.parse().unwrap(),
        headers,
    };
    let kept = Kept::of(entry(reach, timeout), Folder::new(), limits());
    kept.server.settled().await;
    (place, kept, tasks)
}

#[tokio::test]
async fn a_call_arrives_once_and_exactly_as_it_is_stored() {
    let (place, kept, _tasks) = open(Place::default(), LONG).await;
    let args = r#"{"amount":123456789012345678901.05}"#;
    assert_eq!(kept.call("pay", args).await, Called::Done("paid".to_owned()));
    let calls = place.calls.lock().unwrap();
    assert_eq!(calls.len(), 1);
    let (headers, body) = &calls[0];
    assert!(body.contains(&format!("\"arguments\":{args}")), "{body}");
    assert_eq!(headers["idempotency-key"], PERMIT);
    assert_eq!(headers["mcp-session-id"], "session-0");
    assert_eq!(
        (&headers["mcp-method"], &headers["mcp-name"]),
        (&"tools/call".parse().unwrap(), &"pay".parse().unwrap())
    );
}

#[tokio::test]
async fn what_may_have_arrived_is_unknown_and_what_was_refused_is_not() {
    let (place, kept, _tasks) = open(Place::default(), Duration::from_secs(2)).await;
    for (tool, unknown) in [
        ("cut", true),
        ("broken", true),
        ("gateway", true),
        ("vast", true),
        ("slow", true),
        ("denied", false),
        ("elsewhere", false),
    ] {
        let called = kept.call(tool, "{}").await;
        assert_eq!(
            matches!(called, Called::Unknown(_)),
            unknown,
            "{tool}: {called:?}"
        );
        assert_eq!(
            matches!(called, Called::Failed(_)),
            !unknown,
            "{tool}: {called:?}"
        );
        assert_eq!(
            kept.call("pay", "{}").await,
            Called::Done("paid".to_owned()),
            "after {tool}"
        );
    }
    assert_eq!(place.calls.lock().unwrap().len(), 14, "nothing is sent twice");
}

/// A server that was started anew between two calls does not know the session: the call is made in the next one.
/// The runs of a server that stops have a while to end; an answer that comes in it is heard.
#[tokio::test]
async fn an_answer_that_comes_after_the_stop_is_heard() {
    let (place, kept, _tasks) = open(Place::default(), LONG).await;
    let mut call = std::pin::pin!(kept.call("later", "{}"));
    let arrived = async {
        while place.calls.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        called = &mut call => panic!("it is not answered yet: {called:?}"),
        () = arrived => {}
    }
    kept.tasks.ask_to_stop();
    // Whoever ends at the stop has ended before the answer leaves.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    place.later.notify_one();
    assert_eq!(call.await, Called::Done("paid".to_owned()));
}

#[tokio::test]
async fn a_forgotten_session_is_opened_anew() {
    let (place, kept, _tasks) = open(Place::default(), LONG).await;
    assert_eq!(kept.call("pay", "{}").await, Called::Done("paid".to_owned()));
    place.sessions.fetch_add(1, Ordering::SeqCst);
    assert_eq!(kept.call("pay", "{}").await, Called::Done("paid".to_owned()));
    // The same when the loss is found by asking for the tools.
    place.sessions.fetch_add(1, Ordering::SeqCst);
    kept.server.refresh().await;
    assert!(
        matches!(kept.server.health(), Health::Ready { .. }),
        "back again when the question ends"
    );
    assert_eq!(kept.call("pay", "{}").await, Called::Done("paid".to_owned()));
    let calls = place.calls.lock().unwrap();
    let sessions: Vec<&str> = calls
        .iter()
        .map(|(headers, _)| headers["mcp-session-id"].to_str().unwrap())
        .collect();
    assert_eq!(sessions, ["session-0", "session-1", "session-2"]);
}

#[tokio::test]
async fn a_server_says_by_itself_that_its_tools_changed() {
    let (place, kept, _tasks) = open(Place::default(), LONG).await;
    let known = kept.until_there().await.tools["pay"].fingerprint.clone();
    *place.described.lock().unwrap() = "Pays twice".to_owned();
    place.changed.notify_one();
    for _ in 0..500 {
        if kept.until_there().await.tools["pay"].fingerprint != known {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        kept.server.call("pay", &known, "{}", PERMIT).await,
        Called::Changed
    );
    assert!(place.calls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_server_that_refuses_or_is_not_there_is_down() {
    let refusing = Place {
        refuse_handshake: true,
        ..Place::default()
    };
    let (_, kept, _tasks) = open(refusing, LONG).await;
    assert_eq!(
        kept.server.health(),
        Health::Down("it refused: HTTP 401".to_owned())
    );
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", closed.local_addr().unwrap());
    drop(closed);
    let reach = McpReach::Http {
        url: url.parse().unwrap(),
        headers: BTreeMap::new(),
    };
    let kept = Kept::of(entry(reach, LONG), Folder::new(), limits());
    kept.server.settled().await;
    assert_eq!(
        kept.server.health(),
        Health::Down("it could not be reached".to_owned())
    );
}
