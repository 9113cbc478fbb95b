//! An HTTP tool that counts: which path was called, with which body and `Idempotency-Key`, even when the answer is lost.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use serde_json::{Value, json};

use super::fault::{Fault, Faults};
use super::loopback::Server;
use super::news::News;

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// `POST`, …
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query as it was sent, without the `?`.
    pub query: String,
    /// The JSON body; null when there is none or it is not JSON.
    pub body: Value,
    /// The body as it was sent.
    pub text: String,
    /// The header of that name.
    pub idempotency_key: Option<String>,
}

#[derive(Default)]
struct Shared {
    faults: Faults,
    news: News,
    calls: Mutex<Vec<ToolCall>>,
    answers: Mutex<HashMap<String, (u16, Value)>>,
}

/// The running fake. It ends with the value.
pub struct FakeTool {
    shared: Arc<Shared>,
    server: Server,
}

impl FakeTool {
    /// A tool that answers every path with 200 and `{"ok": true}`.
    pub async fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let router = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        Self {
            shared,
            server: Server::start(router).await,
        }
    }

    /// The URL of a path, for the tool's configuration.
    pub fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// What `path` answers from now on.
    pub fn answer(&self, path: &str, status: u16, body: Value) {
        self.shared
            .answers
            .lock()
            .unwrap()
            .insert(path.to_owned(), (status, body));
    }

    /// The next call of `path` meets this fault, after it was counted.
    pub fn fail_next(&self, path: &str, fault: Fault) {
        self.shared.faults.push(path, fault);
    }

    /// The calls of `path` so far, whatever was answered.
    pub fn calls(&self, path: &str) -> Vec<ToolCall> {
        self.shared
            .calls
            .lock()
            .unwrap()
            .iter()
            .filter(|call| call.path == path)
            .cloned()
            .collect()
    }

    /// Waits until `path` was called `count` times.
    pub async fn wait_for_calls(&self, path: &str, count: usize, patience: Duration) -> Vec<ToolCall> {
        let look = || Some(self.calls(path)).filter(|calls| calls.len() >= count);
        self.shared
            .news
            .until(&format!("{count} calls of {path}"), patience, look)
            .await
    }
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path().to_owned();
    let key = headers
        .get("idempotency-key")
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    shared.calls.lock().unwrap().push(ToolCall {
        method: method.to_string(),
        path: path.clone(),
        query: uri.query().unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
        text: String::from_utf8_lossy(&body).into_owned(),
        idempotency_key: key,
    });
    shared.news.ring();
    let answer = shared.faults.around(&path, || {
        let set = shared.answers.lock().unwrap().get(&path).cloned();
        let (status, body) = set.unwrap_or_else(|| (200, json!({"ok": true})));
        let answer = Response::builder()
            .status(status)
            .header("content-type", "application/json");
        answer
            .body(Body::from(body.to_string()))
            .expect("a plain response")
    });
    answer.await
}
