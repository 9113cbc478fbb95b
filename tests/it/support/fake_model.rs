//! A scripted model behind the OpenAI-compatible `POST /v1/chat/completions`.
//!
//! The turn to play is the number of assistant messages in the request, so the fake remembers nothing about a
//! conversation and a restarted program continues where the script stands. It refuses histories that real providers
//! refuse. An answer is made as a [`Turn`] first and only then written down, so that streaming is one more writer.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use serde_json::{Value, json};

use super::fault::{Fault, Faults};
use super::loopback::Server;
use super::news::News;

/// What the model says in one turn.
#[derive(Clone, Debug)]
pub enum Turn {
    /// Plain text.
    Text(String),
    /// One or more calls as `(name, arguments)`.
    Calls(Vec<(String, Value)>),
    /// A whole response body, for answers that no good model gives.
    Raw(Value),
}

impl Turn {
    /// A single call.
    pub fn call(name: &str, arguments: Value) -> Self {
        Self::Calls(vec![(name.to_owned(), arguments)])
    }

    /// Plain text.
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

struct Script {
    mark: String,
    turns: Vec<Turn>,
}

#[derive(Default)]
struct Shared {
    faults: Faults,
    news: News,
    scripts: Mutex<Vec<Script>>,
    requests: Mutex<Vec<Value>>,
}

/// The running fake. It ends with the value.
pub struct FakeModel {
    /// What `agent.model.base_url` is set to.
    pub base_url: String,
    shared: Arc<Shared>,
    _server: Server,
}

impl FakeModel {
    /// A model without a script.
    pub async fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let router = Router::new()
            .route("/v1/chat/completions", post(serve))
            .with_state(Arc::clone(&shared));
        let server = Server::start(router).await;
        Self {
            base_url: server.url("/v1"),
            shared,
            _server: server,
        }
    }

    /// Plays `turns` in each conversation of which some user or system message holds `mark` (an empty mark: in all).
    /// The first script that fits is played.
    pub fn script(&self, mark: &str, turns: Vec<Turn>) {
        self.shared.scripts.lock().unwrap().push(Script {
            mark: mark.to_owned(),
            turns,
        });
    }

    /// The next request meets this fault.
    pub fn fail_next(&self, fault: Fault) {
        self.shared.faults.push("completion", fault);
    }

    /// The bodies of all requests so far, refused ones included.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Waits until the model was asked `count` times.
    pub async fn wait_for_requests(&self, count: usize, patience: Duration) -> Vec<Value> {
        let look = || Some(self.requests()).filter(|requests| requests.len() >= count);
        self.shared
            .news
            .until(&format!("{count} model requests"), patience, look)
            .await
    }
}

async fn serve(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    shared.requests.lock().unwrap().push(request.clone());
    shared.news.ring();
    let answer = shared.faults.around("completion", || {
        let (status, body) = match next_turn(&shared, &request) {
            Ok((number, turn)) => (200, completion(number, &turn)),
            Err(problem) => (
                400,
                json!({"error": {"message": problem, "type": "invalid_request_error", "code": null}}),
            ),
        };
        let answer = Response::builder()
            .status(status)
            .header("content-type", "application/json");
        answer
            .body(Body::from(body.to_string()))
            .expect("a plain response")
    });
    answer.await
}

fn next_turn(shared: &Shared, request: &Value) -> Result<(usize, Turn), String> {
    let messages = request["messages"].as_array().filter(|list| !list.is_empty());
    let messages = messages.ok_or("`messages` must be an array with at least one message")?;
    if request["stream"] == true {
        return Err("this fake does not stream yet".to_owned());
    }
    check_history(messages)?;
    let number = messages
        .iter()
        .filter(|message| message["role"] == "assistant")
        .count();
    let said = |mark: &str| {
        let marked = |message: &Value| {
            (message["role"] == "user" || message["role"] == "system")
                && message["content"].to_string().contains(mark)
        };
        messages.iter().any(marked)
    };
    let scripts = shared.scripts.lock().unwrap();
    let script = scripts
        .iter()
        .find(|script| said(&script.mark))
        .ok_or("no script fits this conversation")?;
    let turn = script
        .turns
        .get(number)
        .ok_or_else(|| format!("the script has no turn {number}"))?;
    Ok((number, turn.clone()))
}

/// Every call is answered once, right after the message that made it, and every answer has its call.
fn check_history(messages: &[Value]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let mut open: BTreeSet<String> = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                return Err(format!(
                    "messages[{index}]: tool result `{id}` does not follow its tool call"
                ));
            }
            continue;
        }
        if let Some(id) = open.first() {
            return Err(format!(
                "messages[{index}]: tool call `{id}` has no result before it"
            ));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let id = call["id"]
                .as_str()
                .filter(|id| !id.is_empty())
                .ok_or("a tool call has no id")?;
            let arguments = call["function"]["arguments"].as_str().unwrap_or("no text");
            if !serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
                return Err(format!(
                    "messages[{index}]: the arguments of `{id}` are not the text of a JSON object"
                ));
            }
            if !seen.insert(id.to_owned()) {
                return Err(format!("messages[{index}]: duplicate tool call id `{id}`"));
            }
            open.insert(id.to_owned());
        }
    }
    match open.first() {
        Some(id) => Err(format!("tool call `{id}` has no result")),
        None => Ok(()),
    }
}

fn completion(number: usize, turn: &Turn) -> Value {
    let (message, finish) = match turn {
        Turn::Raw(body) => return body.clone(),
        Turn::Text(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Turn::Calls(calls) => {
            let calls: Vec<_> = calls
                .iter()
                .enumerate()
                .map(|(index, (name, arguments))| {
                    json!({
                        "id": format!("call_{number}_{index}"), "type": "function",
                        "function": {"name": name, "arguments": arguments.to_string()},
                    })
                })
                .collect();
            (
                json!({"role": "assistant", "content": null, "tool_calls": calls}),
                "tool_calls",
            )
        }
    };
    json!({
        "id": format!("chatcmpl-{number}"), "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    })
}
