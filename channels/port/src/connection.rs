//! Clicks without a public address: the adapter opens connections to the platform, clicks come in over them, and the core's
//! [`Intake`] answers.
//!
//! A connection belongs to an app, not to a channel: channels of one app share it. The parts, in reading order:
//!
//! 1. this file: the capability, what the core lends to it, and what it tells of itself;
//! 2. [`keep`]: holding several sessions at once, replacing them without a gap, backing off;
//! 3. [`session`]: one session from greeting to close, for any platform's [`session::Dialect`];
//! 4. [`websocket`]: the one way a WebSocket is opened here, with its caps and deadlines.
//!
//! Nothing here knows a platform, and nothing decides: correctness comes from the store, connections only carry.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;

use crate::ask::Ask;
use crate::channel::{AppKey, Reply};
use crate::command::Command;
use crate::inbound::Click;
use crate::time::UtcMillis;
use crate::verify::{Refusal, Verified};

pub mod keep;
pub mod session;
pub mod websocket;

/// Resolves when the server is asked to stop.
pub type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The connections of one app to its platform.
#[async_trait]
pub trait Connection: Send + Sync {
    /// The app. Channels whose [`AppKey`] is equal share this connection.
    fn key(&self) -> AppKey;

    /// How the connections stand now; cheap, for health.
    fn status(&self) -> ConnectionStatus;

    /// Holds the connections until `stop` resolves, then finishes the clicks that were taken and closes. Returns early never:
    /// trouble is told by [`Connection::status`].
    async fn run(&self, intake: Arc<dyn Intake>, stop: Stop);
}

/// What the core lends to connections: the way to a decision. Implemented by the callback room.
#[async_trait]
pub trait Intake: Send + Sync {
    /// Decides a click that came in over a connection of `app`. Resolves once the outcome is stored, or could not be in time;
    /// a caller that waits no longer than its platform does may drop the future.
    async fn click(&self, app: &AppKey, click: Verified<Click>) -> Answer;

    /// Obeys or refuses a command that came in over a connection of `app`; resolves as [`Intake::click`] does. Only the reply to a
    /// command that is [answered there](crate::Answered::There) is for the connection to send.
    async fn command(&self, app: &AppKey, command: Verified<Command>) -> Answer;

    /// Opens what a person asked for over a connection of `app`, or begins to; resolves as [`Intake::click`] does.
    async fn ask(&self, app: &AppKey, ask: Verified<Ask>) -> Answer;

    /// Writes down that a frame was refused, as for a callback that is not authentic.
    fn refused(&self, app: &AppKey, refusal: &Refusal);
}

/// What came of a click.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What the clicker is told.
    pub reply: Reply,
    /// Whether the outcome is stored. When it is not, the platform must show the press as failed wherever it can.
    pub stored: bool,
}

/// How the connections of an app stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionStatus {
    /// Whether they are held at all.
    pub state: ConnectionState,
    /// How many sessions take clicks now.
    pub connected: usize,
    /// How many are to be held.
    pub wanted: usize,
    /// When the last frame of any kind came in.
    pub last_inbound: Option<UtcMillis>,
    /// How many sessions were opened in place of an earlier one.
    pub reconnects: u64,
    /// Connections of the app that the platform counts and that are not ours: other processes, or dead ones that it still
    /// feeds with clicks. Zero where the platform does not count.
    pub strangers: u32,
    /// The last trouble since all sessions stood, as a word of ours or the platform's code; no secret.
    pub trouble: Option<String>,
}

/// Whether connections are held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionState {
    /// [`Connection::run`] was not called.
    Idle,
    /// Sessions are held or being opened.
    Running,
    /// The platform refused for good; an operator must act. Sessions that still stand are served to their end.
    Stopped {
        /// The platform's code and, where known, what to do.
        why: String,
    },
}

impl ConnectionStatus {
    /// Whether a click would come in now.
    pub fn healthy(&self) -> bool {
        self.state == ConnectionState::Running && self.connected > 0
    }

    /// One line for an operator.
    pub fn detail(&self) -> String {
        let mut line = match &self.state {
            ConnectionState::Idle => "not connected: the server does not run here".to_owned(),
            ConnectionState::Stopped { why } => format!("stopped, no clicks come in: {why}"),
            ConnectionState::Running if self.connected == 0 => "not connected, no clicks come in".to_owned(),
            ConnectionState::Running => {
                format!("{} of {} connections stand", self.connected, self.wanted)
            }
        };
        if let (ConnectionState::Running, Some(trouble)) = (&self.state, &self.trouble) {
            line = format!("{line} (last trouble: {trouble})");
        }
        if self.strangers > 0 {
            line = format!(
                "{line}; the platform counts {} more of this app: other servers, or dead connections that swallow clicks",
                self.strangers
            );
        }
        line
    }
}

/// Tells the time; a parameter so that a test can set it.
pub type Now = Arc<dyn Fn() -> UtcMillis + Send + Sync>;

/// Fills a buffer with unpredictable bytes; a parameter so that a test can choose them.
pub type Chance = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// What connections need from outside.
#[derive(Clone)]
pub struct Means {
    /// Opens WebSockets. It must speak HTTP/1.1 only, follow no redirect and give up connecting after two seconds.
    pub http: reqwest::Client,
    /// Stamps what is told in [`ConnectionStatus`]. Deadlines run on tokio's clock.
    pub now: Now,
    /// Spreads reconnects, so that many servers do not come back at one instant.
    pub chance: Chance,
}

impl fmt::Debug for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Means")
    }
}
