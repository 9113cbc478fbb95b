//! The payment endpoint of the demo. It writes down every request that arrives, so that "exactly once" can be counted.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

/// A request that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The body, as it came.
    pub body: String,
    /// The header `Idempotency-Key`; empty when there was none.
    pub key: String,
}

/// What arrived. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Bank(Arc<Mutex<Vec<Payment>>>);

impl Bank {
    /// The endpoint.
    pub fn router(&self) -> Router {
        Router::new().route("/pay", post(pay)).with_state(self.clone())
    }

    /// Every request so far.
    pub fn payments(&self) -> Vec<Payment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn pay(State(bank): State<Bank>, headers: HeaderMap, body: Bytes) -> Json<Value> {
    let key = headers
        .get("idempotency-key")
        .and_then(|key| key.to_str().ok())
        .unwrap_or_default();
    let payment = Payment {
        body: String::from_utf8_lossy(&body).into_owned(),
        key: key.to_owned(),
    };
    let mut payments = bank.0.lock().unwrap_or_else(PoisonError::into_inner);
    payments.push(payment);
    Json(json!({"status": "paid", "receipt": format!("R-{:04}", payments.len())}))
}
