//! Faults that a test puts into a fake: answers that are not the platform's own, or none at all.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use serde_json::Value;
use tokio::sync::watch;

/// A door in front of a call: it waits there until the test opens it.
#[derive(Clone, Debug)]
pub struct Door(Arc<watch::Sender<bool>>);

impl Door {
    /// A closed door.
    pub fn closed() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Lets all through, now and later.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    async fn pass(&self) {
        let mut seen = self.0.subscribe();
        seen.wait_for(|open| *open)
            .await
            .expect("this door holds its sender");
    }
}

#[derive(Clone, Debug)]
enum Outcome {
    Usual,
    Answer {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    Silence,
    Cut,
}

/// What happens to one call instead of, or before, the usual.
#[derive(Clone, Debug)]
pub struct Fault {
    takes_effect: bool,
    behind: Option<Door>,
    after: Duration,
    outcome: Outcome,
}

impl Fault {
    fn new(outcome: Outcome) -> Self {
        Self {
            takes_effect: false,
            behind: None,
            after: Duration::ZERO,
            outcome,
        }
    }

    /// A JSON answer; the call has no effect.
    pub fn answer(status: u16, body: &Value) -> Self {
        Self::text(status, &body.to_string()).header("content-type", "application/json; charset=utf-8")
    }

    /// Any text as the answer; the call has no effect.
    pub fn text(status: u16, body: &str) -> Self {
        Self::new(Outcome::Answer {
            status,
            headers: Vec::new(),
            body: body.to_owned(),
        })
    }

    /// The request is accepted and never answered.
    pub fn silence() -> Self {
        Self::new(Outcome::Silence)
    }

    /// The request is accepted, then the connection breaks.
    pub fn cut() -> Self {
        Self::new(Outcome::Cut)
    }

    /// The usual answer, once the test opens the door.
    pub fn held(door: &Door) -> Self {
        Self {
            behind: Some(door.clone()),
            ..Self::new(Outcome::Usual)
        }
    }

    /// The usual answer, late by `by` of real time.
    pub fn late(by: Duration) -> Self {
        Self {
            after: by,
            ..Self::new(Outcome::Usual)
        }
    }

    /// One more header of the answer.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Outcome::Answer { headers, .. } = &mut self.outcome {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// The call does take effect; only its answer is lost or replaced.
    pub fn after_effect(mut self) -> Self {
        self.takes_effect = true;
        self
    }
}

/// The faults that wait in a fake, in order, per method or path.
#[derive(Debug, Default)]
pub struct Faults(Mutex<HashMap<String, VecDeque<Fault>>>);

impl Faults {
    /// The next call of `on` that has none waiting before it meets this fault.
    pub fn push(&self, on: &str, fault: Fault) {
        self.0
            .lock()
            .unwrap()
            .entry(on.to_owned())
            .or_default()
            .push_back(fault);
    }

    /// Runs `effect` for a call of `on`, or what waits for it.
    pub async fn around(&self, on: &str, effect: impl FnOnce() -> Response) -> Response {
        let waiting = self.0.lock().unwrap().get_mut(on).and_then(VecDeque::pop_front);
        let Some(fault) = waiting else { return effect() };
        if let Some(door) = &fault.behind {
            door.pass().await;
        }
        if !fault.after.is_zero() {
            tokio::time::sleep(fault.after).await;
        }
        if fault.takes_effect || matches!(fault.outcome, Outcome::Usual) {
            let usual = effect();
            if matches!(fault.outcome, Outcome::Usual) {
                return usual;
            }
        }
        match fault.outcome {
            Outcome::Usual => unreachable!("answered above"),
            Outcome::Answer {
                status,
                headers,
                body,
            } => {
                let mut answer = Response::builder().status(status);
                for (name, value) in headers {
                    answer = answer.header(name, value);
                }
                answer
                    .body(Body::from(body))
                    .expect("a status and headers that HTTP knows")
            }
            Outcome::Silence => match std::future::pending::<Infallible>().await {},
            Outcome::Cut => broken(),
        }
    }
}

/// A response whose body breaks before its first byte: the server closes the connection on the client.
fn broken() -> Response {
    let body = futures_util::stream::once(async {
        Err::<Bytes, io::Error>(io::Error::new(io::ErrorKind::ConnectionReset, "cut by the test"))
    });
    let answer = Response::builder()
        .header("content-length", "1000")
        .body(Body::from_stream(body));
    answer.expect("a plain response")
}
