//! What comes in over the long connection, frame by frame: pongs, and events whose card actions become clicks.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gatepost_channel::connection::session::{Dialect, Step, Tempo};
use gatepost_channel::connection::websocket::{self, Outgoing};
use gatepost_channel::{Answer, FrameVerifier, Inbound, Opened, Refusal, Secret, Verified};
use prost::Message as _;
use tokio::time::Instant;

use super::advice::Advice;
use super::fragments::Fragments;
use crate::callback;
use crate::document;
use crate::frame::{CONTROL, DATA, Frame};
use crate::message;
use crate::verify::{Document, Proof, judge};

/// A ping that is not answered within this means a dead connection.
const PONG_WITHIN: Duration = Duration::from_secs(20);
/// On top of the ping interval: a connection that is silent for longer is dead.
const GRACE: Duration = Duration::from_secs(30);

/// Reads the payloads of a connection that the platform opened for one app. They come in the clear and unsigned; connecting
/// with the app's secret is the proof.
pub(crate) struct Reader {
    pub(crate) app_id: String,
    /// Compared with the token of each event when it is configured.
    pub(crate) verification_token: Option<Secret>,
}

impl FrameVerifier for Reader {
    fn verify_frame(&self, payload: &[u8]) -> Result<Inbound, Refusal> {
        let document = document::parse(payload).map_err(|_| Refusal::unreadable("payload_not_json"))?;
        let token = self.verification_token.as_ref();
        Ok(match judge(document, &self.app_id, token, Proof::Sender)? {
            Document::CardAction(event) => callback::read(&event),
            Document::Message(event) => message::read(&event),
            Document::Challenge(_) | Document::OtherEvent => Inbound::Ignored {
                answer: callback::nothing(),
                why: "other_event",
            },
        })
    }
}

/// What the answer to a click or a message needs.
#[derive(Debug, Clone)]
pub(crate) struct Slip {
    /// Its last frame, without its payload.
    frame: Frame,
    /// Whether the reply is sent with it.
    speaks: bool,
}

/// One session of the long connection.
pub(crate) struct LongConnection {
    /// From the address; pings carry it.
    pub(crate) service: i32,
    pub(crate) reader: Arc<Reader>,
    /// Shared by the sessions of the app.
    pub(crate) advice: Arc<Mutex<Advice>>,
    pub(crate) fragments: Fragments,
}

impl LongConnection {
    fn control(&self, frame: &Frame) -> Step<Slip> {
        if frame.single("type") != Some("pong") {
            return Step::Nothing;
        }
        if let Some(config) = frame.payload.as_deref().filter(|payload| !payload.is_empty())
            && let Ok(config) = serde_json::from_slice(config)
        {
            self.advice
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .update(&config);
        }
        Step::Pong
    }

    fn data(&mut self, mut frame: Frame, now: Instant) -> Step<Slip> {
        match frame.single("type") {
            Some("event") => {}
            Some("card") => tracing::warn!(
                "the platform sends callbacks as card frames: subscribe to card.action.trigger in the developer console and publish a version"
            ),
            _ => return Step::Nothing,
        }
        let number = |key: &str| frame.single(key).and_then(|text| text.parse::<usize>().ok());
        let numbers = match (number("seq"), number("sum")) {
            (Some(seq), Some(sum)) => (seq, sum),
            (None, None) => (0, 1),
            _ => (0, 0),
        };
        let id = frame.single("message_id").unwrap_or_default().to_owned();
        let part = frame.payload.take().unwrap_or_default();
        match self.fragments.join(&id, numbers, part, now) {
            Ok(Some(payload)) => self.event(frame, &payload),
            Ok(None) => Step::Nothing,
            Err(why) => {
                tracing::warn!(why, "parts of a callback were dropped");
                Step::Nothing
            }
        }
    }

    fn event(&self, frame: Frame, payload: &[u8]) -> Step<Slip> {
        match Verified::frame(&*self.reader, payload) {
            Err(refusal) => Step::Refused(refusal, Some(outgoing(&frame.failed()))),
            Ok(verified) => match verified.open() {
                Opened::Click(click) => Step::Click(click, Slip { frame, speaks: true }),
                Opened::Ask(ask) => Step::Ask(ask, Slip { frame, speaks: true }),
                Opened::Command(command) => Step::Command(command, Slip { frame, speaks: false }),
                Opened::Answered { answer, ignored } => {
                    tracing::debug!(why = ignored, "a callback had no effect");
                    // An empty object says nothing: only callbacks are answered with something.
                    let body = Some(&answer.body[..]).filter(|body| *body != b"{}");
                    Step::Write(outgoing(&frame.taken(body, 0)))
                }
            },
        }
    }
}

impl Dialect for LongConnection {
    type Slip = Slip;
    const GREETS: bool = false;

    fn read(&mut self, frame: websocket::Frame, now: Instant) -> Step<Slip> {
        let websocket::Frame::Binary(bytes) = frame else {
            return Step::Nothing;
        };
        let Ok(frame) = Frame::decode(bytes) else {
            tracing::warn!("a frame of the long connection cannot be read");
            return Step::Nothing;
        };
        match frame.method {
            CONTROL => self.control(&frame),
            DATA => self.data(frame, now),
            _ => Step::Nothing,
        }
    }

    fn answer(&self, slip: Slip, answer: Option<Answer>, took: Duration) -> Option<Outgoing> {
        let Slip { frame, speaks } = slip;
        Some(outgoing(&match answer {
            // What was not stored is said in the reply itself, which the platform shows as ours.
            Some(answer) if speaks => {
                frame.taken(Some(&callback::answer(&answer.reply).body), took.as_millis())
            }
            // The person is answered by a message; an event that failed comes again.
            Some(answer) if answer.stored => frame.taken(None, took.as_millis()),
            Some(_) | None => frame.failed(),
        }))
    }

    fn ping(&self) -> Outgoing {
        outgoing(&Frame::ping(self.service))
    }

    fn tempo(&self) -> Tempo {
        let ping = self.advice.lock().unwrap_or_else(PoisonError::into_inner).ping;
        Tempo {
            ping_every: ping,
            silent_after: ping + GRACE,
            pong_within: Some(PONG_WITHIN),
        }
    }
}

fn outgoing(frame: &Frame) -> Outgoing {
    Outgoing::Binary(frame.encode_to_vec())
}

#[cfg(test)]
#[path = "talk_tests.rs"]
mod tests;
