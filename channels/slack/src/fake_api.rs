//! A scripted Web API on loopback, and the cards and calls that the tests send to it.

use std::collections::VecDeque;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use gatepost_channel::{Actions, Card, CardForm, Channel, Failure, MessageRef, PostKey, Posted, Tone};
use serde_json::{Value, json};

use crate::SlackChannel;
use crate::fixture::{card, channel, open_actions};

/// One answer of the scripted Web API.
#[derive(Clone)]
pub(crate) struct Scripted {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

pub(crate) fn says(status: u16, body: impl Into<Spelled>) -> Scripted {
    Scripted {
        status,
        headers: vec![],
        body: body.into().0,
    }
}

/// A body, as text or as JSON.
pub(crate) struct Spelled(String);

impl From<&str> for Spelled {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Spelled {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<Value> for Spelled {
    fn from(json: Value) -> Self {
        Self(json.to_string())
    }
}

pub(crate) fn refuses(code: &str) -> Scripted {
    says(200, json!({ "ok": false, "error": code }))
}

pub(crate) fn posted() -> Scripted {
    says(
        200,
        json!({ "ok": true, "channel": "C0APPROVE1", "ts": "1795953000.000100" }),
    )
}

/// A call that the scripted Web API saw.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) authorization: String,
    pub(crate) body: Value,
}

#[derive(Clone)]
struct Script {
    answers: Arc<Mutex<VecDeque<Scripted>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// Runs `test` against a Web API that gives these answers in order, then closes; returns its result and the calls.
pub(crate) async fn with_api<T>(
    answers: Vec<Scripted>,
    test: impl AsyncFnOnce(SlackChannel) -> T,
) -> (T, Vec<Seen>) {
    let script = Script {
        answers: Arc::new(Mutex::new(answers.into())),
        seen: Arc::default(),
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/api", listener.local_addr().unwrap());
    let router = axum::Router::new().fallback(answer).with_state(script.clone());
    let out = tokio::select! {
        _ = axum::serve(listener, router).into_future() => panic!("the fake stopped"),
        out = test(channel(&base)) => out,
    };
    assert!(
        script.answers.lock().unwrap().is_empty(),
        "answers were left over"
    );
    let seen = script.seen.lock().unwrap().clone();
    (out, seen)
}

async fn answer(State(script): State<Script>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    script.seen.lock().unwrap().push(Seen {
        path: uri.path().to_owned(),
        authorization: text("authorization").unwrap_or_default(),
        body: serde_json::from_slice(&body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned())),
    });
    let next = script.answers.lock().unwrap().pop_front();
    let Some(next) = next else {
        return (StatusCode::IM_A_TEAPOT, "one call too many").into_response();
    };
    let mut response = (StatusCode::from_u16(next.status).unwrap(), next.body).into_response();
    for (name, value) in next.headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

pub(crate) fn key() -> PostKey {
    PostKey("attempt-1".into())
}

pub(crate) fn at() -> MessageRef {
    MessageRef {
        chat: "C0APPROVE1".into(),
        message: "1795953000.000100".into(),
    }
}

pub(crate) fn open_card() -> Card {
    card(Tone::Pending, "amount: 50000", open_actions(None))
}

pub(crate) fn settled_card() -> Card {
    card(Tone::Approved, "amount: 50000", Actions::None)
}

pub(crate) async fn post(answers: Vec<Scripted>) -> (Posted, Vec<Seen>) {
    with_api(answers, async |channel| channel.post(&open_card(), &key()).await).await
}

pub(crate) async fn edit(answers: Vec<Scripted>, card: &Card) -> (Result<CardForm, Failure>, Vec<Seen>) {
    with_api(answers, async |channel| channel.edit(&at(), card).await).await
}

pub(crate) fn retry(after: Option<u64>, why: &str) -> Failure {
    Failure::Retry {
        after: after.map(Duration::from_secs),
        why: why.into(),
    }
}
