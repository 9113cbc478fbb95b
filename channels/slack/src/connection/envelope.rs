//! What Slack sends in Socket Mode, frame by frame: the greeting, envelopes to be acknowledged, the notice before it closes.
//!
//! An acknowledgement is what the presser sees as success, so a press gets one only when its outcome is stored; so does a slash
//! command, whose acknowledgement holds the answer where Slack takes one there. Everything
//! else that carries an id is acknowledged at once; nothing in it is of use here.

use std::time::Duration;

use gatepost_channel::connection::keep::End;
use gatepost_channel::connection::session::{Dialect, Step, Tempo};
use gatepost_channel::connection::websocket::{Frame, Outgoing};
use gatepost_channel::{Answer, Answered, FrameVerifier, Inbound, Opened, Refusal, Vantage, Verified};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::CROWDED;
use crate::callback::{self, AppId};
use crate::command;

/// Slack's own clients ping every five seconds and give a silent connection up after thirty.
const TEMPO: Tempo = Tempo {
    ping_every: Duration::from_secs(5),
    silent_after: Duration::from_secs(30),
    pong_within: None,
};
/// Longest id of an envelope, in bytes; Slack's are UUIDs.
const LONGEST_ID: usize = 128;

/// A frame, as loose as Slack may make it.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default, rename = "envelope_id")]
    id: Option<String>,
    #[serde(default, borrow)]
    payload: Option<&'a RawValue>,
    #[serde(default)]
    accepts_response_payload: bool,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    num_connections: Option<u32>,
    #[serde(default)]
    connection_info: Option<ConnectionInfo>,
}

#[derive(Deserialize)]
struct ConnectionInfo {
    #[serde(default)]
    app_id: Option<String>,
}

/// What the acknowledgement of a press, an ask or a command needs.
#[derive(Debug)]
pub(super) struct Slip {
    id: String,
    /// What may be sent with it.
    room: Room,
}

/// What an acknowledgement may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// Nothing.
    Nothing,
    /// The reply to a command.
    Reply,
    /// That a modal stays open, where Slack takes something with the acknowledgement.
    Modal { vantage: Vantage, takes_payload: bool },
}

/// One session of Socket Mode.
pub(super) struct SocketMode {
    /// The id by which the channels of the app are found.
    key: String,
    /// The configured app id.
    expected: Option<String>,
    /// There once Slack greeted.
    greeted: Option<Greeted>,
}

/// Reads payloads of a connection that Slack opened for one app.
struct Greeted {
    /// The app that Slack named in its greeting.
    app_id: String,
    click: AppId,
}

impl SocketMode {
    /// A session of the app that is known here by `key`; `expected` is its configured Slack id.
    pub(super) const fn new(key: String, expected: Option<String>) -> Self {
        Self {
            key,
            expected,
            greeted: None,
        }
    }

    fn greet(&mut self, envelope: Envelope<'_>) -> Step<Slip> {
        let Some(app_id) = envelope.connection_info.and_then(|info| info.app_id) else {
            return Step::End(End::lost("greeting_without_app"));
        };
        if self.expected.as_ref().is_some_and(|expected| *expected != app_id) {
            return Step::End(End::Stop {
                why: "app_token belongs to another app than app_id: set both of one app and restart"
                    .to_owned(),
            });
        }
        let click = match self.expected {
            Some(_) => AppId::Named,
            None => AppId::Proven(self.key.clone()),
        };
        self.greeted = Some(Greeted { app_id, click });
        Step::Greeted {
            counted: envelope.num_connections,
        }
    }

    fn interaction(&self, id: String, payload: Option<&RawValue>, room: bool) -> Step<Slip> {
        match &self.greeted {
            Some(greeted) => Self::judge(greeted, id, payload, room),
            None => Step::Refused(Refusal::inauthentic("before_greeting"), None),
        }
    }

    /// `room` says whether the acknowledgement may hold the answer.
    fn command(&self, id: String, payload: Option<&RawValue>, room: bool) -> Step<Slip> {
        let answered = if room { Answered::There } else { Answered::Apart };
        match &self.greeted {
            Some(greeted) => Self::judge(&Commands { greeted, answered }, id, payload, room),
            None => Step::Refused(Refusal::inauthentic("before_greeting"), None),
        }
    }

    fn judge(
        reader: &dyn FrameVerifier,
        id: String,
        payload: Option<&RawValue>,
        takes_payload: bool,
    ) -> Step<Slip> {
        let payload = payload.map_or("", RawValue::get);
        match Verified::frame(reader, payload.as_bytes()) {
            Err(refusal) => Step::Refused(refusal, None),
            Ok(verified) => match verified.open() {
                Opened::Click(click) => {
                    let vantage = click.get().vantage;
                    let room = Room::Modal {
                        vantage,
                        takes_payload,
                    };
                    Step::Click(click, Slip { id, room })
                }
                Opened::Ask(ask) => {
                    let room = Room::Nothing;
                    Step::Ask(ask, Slip { id, room })
                }
                Opened::Command(command) => {
                    let room = match command.get().answered {
                        Answered::There => Room::Reply,
                        Answered::Apart => Room::Nothing,
                    };
                    Step::Command(command, Slip { id, room })
                }
                Opened::Answered { ignored, .. } => {
                    tracing::debug!(why = ignored, "an interaction had no effect");
                    Step::Write(acknowledge(&id))
                }
            },
        }
    }
}

impl Greeted {
    /// The payload, once it names the app of the connection.
    fn payload(&self, payload: &[u8]) -> Result<Value, Refusal> {
        let payload: Value =
            serde_json::from_slice(payload).map_err(|_| Refusal::unreadable("payload_not_json"))?;
        if payload.get("api_app_id").and_then(Value::as_str) == Some(self.app_id.as_str()) {
            Ok(payload)
        } else {
            Err(Refusal::inauthentic("app_id_mismatch"))
        }
    }
}

/// Reads slash commands of such a connection.
struct Commands<'a> {
    greeted: &'a Greeted,
    answered: Answered,
}

impl FrameVerifier for Greeted {
    fn verify_frame(&self, payload: &[u8]) -> Result<Inbound, Refusal> {
        callback::read_interaction(&self.payload(payload)?, &self.click)
    }
}

impl FrameVerifier for Commands<'_> {
    fn verify_frame(&self, payload: &[u8]) -> Result<Inbound, Refusal> {
        match self.greeted.payload(payload)? {
            Value::Object(payload) => command::read(
                &command::fields_of(&payload),
                &self.greeted.click,
                "",
                self.answered,
            ),
            _ => Err(Refusal::unreadable("payload_not_json")),
        }
    }
}

impl Dialect for SocketMode {
    type Slip = Slip;
    const GREETS: bool = true;

    fn read(&mut self, frame: Frame, _now: Instant) -> Step<Slip> {
        let Frame::Text(text) = frame else {
            // Slack sends text only; pings are answered below.
            return Step::Nothing;
        };
        let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(text.as_str()) else {
            tracing::warn!(bytes = text.len(), "a frame of Socket Mode cannot be read");
            return Step::Nothing;
        };
        match envelope.kind.as_str() {
            "hello" => return self.greet(envelope),
            "disconnect" => return farewell(envelope.reason.as_deref().unwrap_or_default()),
            _ => {}
        }
        let Some(id) = envelope.id.filter(|id| is_plain(id)) else {
            return Step::Nothing;
        };
        match envelope.kind.as_str() {
            "interactive" => self.interaction(id, envelope.payload, envelope.accepts_response_payload),
            "slash_commands" => self.command(id, envelope.payload, envelope.accepts_response_payload),
            "events_api" => Step::Write(acknowledge(&id)),
            _ => {
                tracing::info!("an envelope of a kind that is not known here was acknowledged");
                Step::Write(acknowledge(&id))
            }
        }
    }

    fn answer(&self, slip: Slip, answer: Option<Answer>, _took: Duration) -> Option<Outgoing> {
        let answer = answer?;
        let with = |payload: Value| {
            Outgoing::Text(json!({ "envelope_id": slip.id, "payload": payload }).to_string())
        };
        match slip.room {
            Room::Modal {
                vantage,
                takes_payload,
            } => match callback::stays_open(vantage, &answer.reply) {
                // Without a way to say so in the modal, it is shown as failed rather than closed.
                Some(body) => takes_payload.then(|| with(body)),
                None => answer.stored.then(|| acknowledge(&slip.id)),
            },
            Room::Reply => answer.stored.then(|| with(command::answer(&answer.reply))),
            Room::Nothing => answer.stored.then(|| acknowledge(&slip.id)),
        }
    }

    fn ping(&self) -> Outgoing {
        Outgoing::Ping
    }

    fn tempo(&self) -> Tempo {
        TEMPO
    }
}

/// Why Slack will close the connection, and what that asks of us.
fn farewell(reason: &str) -> Step<Slip> {
    match reason {
        "link_disabled" => Step::End(End::Stop {
            why: "link_disabled: Socket Mode is switched off; switch it on in the app's settings and restart"
                .to_owned(),
        }),
        "too_many_websockets" => Step::End(End::Later {
            after: CROWDED,
            why: "too_many_websockets".to_owned(),
        }),
        // `warning`, `refresh_requested`, and what may come one day: it goes soon.
        _ => Step::Leave,
    }
}

fn acknowledge(id: &str) -> Outgoing {
    Outgoing::Text(json!({ "envelope_id": id }).to_string())
}

fn is_plain(id: &str) -> bool {
    (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod tests;
