//! The long connection: two WebSockets to the platform, over which the same callbacks come in as over HTTP.
//!
//! Each starts with an address for one use, fetched with the app's secret. The platform gives each callback to one arbitrary
//! connection of the app and queues none, so a dead connection must be noticed and replaced soon, and a second one stands
//! beside it. Facts: the platform's documentation of long connections and its official SDKs.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use gatepost_channel::connection::keep::{Board, Departure, End, Ended, Seat, keep, spread};
use gatepost_channel::connection::session;
use gatepost_channel::connection::websocket::{DialError, Socket, dial};
use gatepost_channel::{
    AppKey, Connection, ConnectionState, ConnectionStatus, Health, Intake, Means, Secret, Stop,
};
use reqwest::Url;

use crate::client::FeishuApp;
use crate::document::text;
use crate::error::{CallError, Class};

mod advice;
mod fragments;
mod talk;

use advice::Advice;
use fragments::Fragments;
use talk::{LongConnection, Reader};

/// Connections that are held. The platform allows fifty per app.
const HELD: usize = 2;
/// Codes after which no other try can succeed until somebody has acted: forbidden, no credential, too many connections, the
/// other cloud.
const FINAL: [i64; 4] = [403, 1_000_040_344, 1_000_040_350, 1_000_040_351];

/// The long connection of one app.
pub struct FeishuConnection {
    app: Arc<FeishuApp>,
    reader: Arc<Reader>,
    means: Means,
    board: Board,
    advice: Arc<Mutex<Advice>>,
}

impl fmt::Debug for FeishuConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FeishuConnection({})", self.app.app_id())
    }
}

impl FeishuConnection {
    /// The connection of `app`; made once and shared by the app's channels. Nothing is opened yet. `verification_token` is
    /// compared with that of each event when it is given.
    pub fn new(app: Arc<FeishuApp>, verification_token: Option<Secret>, means: Means) -> Arc<Self> {
        Arc::new(Self {
            reader: Arc::new(Reader {
                app_id: app.app_id().to_owned(),
                verification_token,
            }),
            app,
            board: Board::new(HELD, Arc::clone(&means.now)),
            means,
            advice: Arc::default(),
        })
    }

    /// The channel's health with that of the connection. Where the server does not run, an address is fetched instead; that
    /// opens nothing.
    pub(crate) async fn check(&self, health: Health) -> Health {
        let status = self.status();
        let (healthy, detail) = match status.state {
            ConnectionState::Idle => match self.address().await {
                Ok(_) => (true, "the app may connect".to_owned()),
                Err(End::Stop { why } | End::Lost { why } | End::Later { why, .. }) => (false, why),
                Err(End::LetGo | End::Refreshed) => (false, "not connected".to_owned()),
            },
            _ => (status.healthy(), status.detail()),
        };
        Health {
            healthy: health.healthy && healthy,
            detail: format!("{}; long connection: {detail}", health.detail),
        }
    }

    /// A fresh address and the service that it names. It holds a ticket, so it is neither logged nor kept.
    async fn address(&self) -> Result<(String, i32), End> {
        let answer = self.app.endpoint().await.map_err(refused)?;
        if let Some(config) = answer.get("data").and_then(|data| data.get("ClientConfig")) {
            self.advice
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .update(config);
        }
        let address = text(&answer, &["data", "URL"]).ok_or_else(|| End::lost("no_address_in_answer"))?;
        let service = Url::parse(address).ok().and_then(|url| {
            let (_, id) = url.query_pairs().find(|(key, _)| key == "service_id")?;
            id.parse().ok()
        });
        let service = service.ok_or_else(|| End::lost("no_service_in_address"))?;
        Ok((address.to_owned(), service))
    }

    async fn open(&self) -> Result<(Socket, i32), End> {
        let (address, service) = self.address().await?;
        match dial(&self.means.http, &address).await {
            Ok(socket) => Ok((socket, service)),
            Err(error) => Err(not_dialled(&error)),
        }
    }

    async fn session(&self, seat: Seat, intake: &Arc<dyn Intake>) -> Ended {
        let opened = tokio::select! {
            biased;
            () = seat.stopping() => return End::LetGo.into(),
            opened = self.open() => opened,
        };
        match opened {
            Ok((socket, service)) => {
                let dialect = LongConnection {
                    service,
                    reader: Arc::clone(&self.reader),
                    advice: Arc::clone(&self.advice),
                    fragments: Fragments::default(),
                };
                session::serve(socket, dialect, &seat, &self.app.key(), intake).await
            }
            Err(end) => end.into(),
        }
    }

    /// After a loss a random part of the platform's nonce, between failed tries its interval. Until it has said so, and when
    /// connections fall as soon as they stand, our own growing waits.
    fn wait(&self, departure: &Departure) -> Duration {
        let advice = *self.advice.lock().unwrap_or_else(PoisonError::into_inner);
        let chance = &self.means.chance;
        let asked = match departure.end {
            End::Later { after, .. } => after,
            _ => Duration::ZERO,
        };
        let wait = match (departure.was_live, departure.failures) {
            (true, 0 | 1) => spread(advice.nonce, chance),
            (false, _) if advice.given => advice.interval,
            _ => departure.backoff(chance),
        };
        wait.max(asked)
    }
}

#[async_trait]
impl Connection for FeishuConnection {
    fn key(&self) -> AppKey {
        self.app.key()
    }

    fn status(&self) -> ConnectionStatus {
        self.board.status()
    }

    async fn run(&self, intake: Arc<dyn Intake>, stop: Stop) {
        let open = |seat| self.session(seat, &intake);
        keep(&self.board, stop, |departure| self.wait(departure), open).await;
    }
}

/// What a refused address means for the connection.
fn refused(error: CallError) -> End {
    match error {
        CallError::NotAsked(why) => End::lost(why),
        CallError::Unclear(why) => End::lost(why),
        CallError::Refused(refused) | CallError::NoToken(refused) => match refused.code {
            Some(code) if FINAL.contains(&code) => stop(code),
            _ => match (refused.class(), refused.after) {
                (Class::Retry, Some(after)) => End::Later {
                    after,
                    why: refused.why(),
                },
                _ => End::lost(refused.why()),
            },
        },
    }
}

/// What a refused handshake means: the platform says why in headers of its own.
fn not_dialled(error: &DialError) -> End {
    let DialError::Refused { headers, .. } = error else {
        return End::lost(error.to_string());
    };
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
    match (number("handshake-status"), number("handshake-autherrcode")) {
        (_, Some(code)) if FINAL.contains(&code) => stop(code),
        (Some(403), _) => stop(403),
        (Some(status), _) => End::lost(format!("handshake_{status}")),
        (None, _) => End::lost(error.to_string()),
    }
}

fn stop(code: i64) -> End {
    let remedy = match code {
        1_000_040_344 => "the platform does not take app_id and app_secret",
        1_000_040_350 => "the app has too many connections: stop its other clients and restart",
        code => crate::error::advice(code).unwrap_or("the platform forbids the connection"),
    };
    End::Stop {
        why: format!("code {code}: {remedy}"),
    }
}
