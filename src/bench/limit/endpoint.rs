//! L4: the bare endpoint. A signature is verified over the raw bytes, the form and its JSON are parsed, the bare writer decides,
//! and the answer is an empty 200.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use tokio::net::TcpListener;

use super::writer::Writer;
use crate::bench::BenchError;
use crate::bench::press::SECRET;
use crate::lifecycle::Tasks;

/// Where it answers.
pub const PATH: &str = "/callback";

#[derive(Clone)]
struct Bare {
    key: Hmac<Sha256>,
    writer: Writer,
}

/// Serves it on a free port of the loopback until the tasks are asked to stop.
pub async fn start(writer: Writer, tasks: &Tasks) -> Result<SocketAddr, BenchError> {
    let key = Hmac::new_from_slice(SECRET.as_bytes()).map_err(|error| BenchError::other(&error))?;
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .map_err(BenchError::net)?;
    let address = listener.local_addr().map_err(BenchError::net)?;
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let router = Router::new()
        .route(PATH, post(callback))
        .with_state(Bare { key, writer });
    let stopping = tasks.clone();
    tasks.spawn(async move {
        tokio::select! {
            served = axum::serve(listener, router).into_future() => drop(served),
            () = stopping.stopping() => {}
        }
    });
    Ok(address)
}

async fn callback(State(bare): State<Bare>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let Some(id) = verified(&bare.key, &headers, &body) else {
        return StatusCode::UNAUTHORIZED;
    };
    if bare.writer.decide(id).await {
        StatusCode::OK
    } else {
        StatusCode::CONFLICT
    }
}

fn verified(key: &Hmac<Sha256>, headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let timestamp = headers.get("x-slack-request-timestamp")?.as_bytes();
    let signature = headers
        .get("x-slack-signature")?
        .as_bytes()
        .strip_prefix(b"v0=")?;
    let mut presented = [0_u8; 32];
    hex::decode_to_slice(signature, &mut presented).ok()?;
    let mut mac = key.clone();
    mac.update(b"v0:");
    mac.update(timestamp);
    mac.update(b":");
    mac.update(body);
    if !bool::from(mac.finalize().into_bytes().as_slice().ct_eq(&presented)) {
        return None;
    }
    let (_, payload) = url::form_urlencoded::parse(body).find(|(key, _)| key == "payload")?;
    let payload: Value = serde_json::from_str(&payload).ok()?;
    Some(payload.pointer("/actions/0/value")?.as_str()?.to_owned())
}
