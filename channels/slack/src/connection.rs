//! Socket Mode: two connections to Slack, over which the same presses come in as over signed HTTP.
//!
//! Each connection starts with a single-use address from `apps.connections.open`, which proves the app by its app-level token.
//! Slack gives each press to one arbitrary connection of the app and repeats none, so dead connections must be noticed and
//! replaced before they go. Facts: Slack, "Using Socket Mode"; method reference of `apps.connections.open`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gatepost_channel::connection::keep::{Board, Departure, End, Ended, Seat, keep};
use gatepost_channel::connection::session;
use gatepost_channel::connection::websocket::{Socket, dial};
use gatepost_channel::{
    AppKey, Connection, ConnectionState, ConnectionStatus, Failure, Health, Intake, Means, Stop,
};

use crate::client::{Api, Arguments};
use crate::error::CallError;

mod envelope;

use envelope::SocketMode;

/// Connections that are held, so that one may be renewed or lost while the other takes the presses. Slack allows ten per app.
const HELD: usize = 2;
/// How long Slack is left alone when it says that the app has too many connections: dead ones must first be forgotten there.
pub(crate) const CROWDED: Duration = Duration::from_secs(30);

/// The codes of `apps.connections.open` after which no other try can succeed until somebody has acted.
const FINAL: [&str; 15] = [
    "not_authed",
    "invalid_auth",
    "account_inactive",
    "user_removed_from_team",
    "team_disabled",
    "token_revoked",
    "token_expired",
    "missing_scope",
    "no_permission",
    "not_allowed_token_type",
    "org_login_required",
    "ekm_access_denied",
    "access_denied",
    "accesslimited",
    "two_factor_setup_required",
];

/// The connections of one Slack app.
pub struct SlackConnection {
    key: AppKey,
    app_id: Option<String>,
    api: Api,
    means: Means,
    board: Board,
}

impl SlackConnection {
    /// The connections of the app behind `api`, which is called with the app-level token. `app_id` is the configured one.
    pub(crate) fn new(key: AppKey, app_id: Option<String>, api: Api, means: Means) -> Self {
        Self {
            key,
            app_id,
            api,
            board: Board::new(HELD, Arc::clone(&means.now)),
            means,
        }
    }

    /// The channel's health with that of its connections. Where the server does not run, the token is tried instead; that
    /// opens nothing.
    pub(crate) async fn check(&self, health: Health) -> Health {
        let status = self.status();
        let (healthy, detail) = match status.state {
            ConnectionState::Idle => match self.address().await {
                Ok(_) => (true, "app_token is fine".to_owned()),
                Err(End::Stop { why } | End::Lost { why } | End::Later { why, .. }) => (false, why),
                Err(End::LetGo | End::Refreshed) => (false, "not connected".to_owned()),
            },
            _ => (status.healthy(), status.detail()),
        };
        Health {
            healthy: health.healthy && healthy,
            detail: format!("{}; Socket Mode: {detail}", health.detail),
        }
    }

    /// A fresh address. It holds a ticket, so it is neither logged nor kept.
    async fn address(&self) -> Result<String, End> {
        let answer = self
            .api
            .call("apps.connections.open", Arguments::Form(&[]))
            .await
            .map_err(refused)?;
        answer
            .body
            .get("url")
            .and_then(serde_json::Value::as_str)
            .map(str::to_owned)
            .ok_or_else(|| End::lost("no_address_in_answer"))
    }

    async fn open(&self) -> Result<Socket, End> {
        let address = self.address().await?;
        dial(&self.means.http, &address)
            .await
            .map_err(|error| End::lost(error.to_string()))
    }

    async fn session(&self, seat: Seat, intake: &Arc<dyn Intake>) -> Ended {
        let opened = tokio::select! {
            biased;
            () = seat.stopping() => return End::LetGo.into(),
            opened = self.open() => opened,
        };
        match opened {
            Ok(socket) => {
                let dialect = SocketMode::new(self.key.id.clone(), self.app_id.clone());
                session::serve(socket, dialect, &seat, &self.key, intake).await
            }
            Err(end) => end.into(),
        }
    }

    fn wait(&self, departure: &Departure) -> Duration {
        match departure.end {
            End::Refreshed if departure.failures == 0 => Duration::ZERO,
            _ => departure.backoff(&self.means.chance),
        }
    }
}

#[async_trait]
impl Connection for SlackConnection {
    fn key(&self) -> AppKey {
        self.key.clone()
    }

    fn status(&self) -> ConnectionStatus {
        self.board.status()
    }

    async fn run(&self, intake: Arc<dyn Intake>, stop: Stop) {
        let open = |seat| self.session(seat, &intake);
        keep(&self.board, stop, |departure| self.wait(departure), open).await;
    }
}

/// What a refused `apps.connections.open` means for the connection.
fn refused(error: CallError) -> End {
    match error {
        CallError::Unclear(why) => End::lost(why),
        CallError::Refused(Failure::Retry { after, why }) => match after {
            Some(after) => End::Later { after, why },
            None => End::lost(why),
        },
        CallError::Refused(
            Failure::Setup { why }
            | Failure::Target { why }
            | Failure::Content { why }
            | Failure::Gone { why },
        ) => {
            let code = why.split([' ', ':', '(']).next().unwrap_or_default();
            if FINAL.contains(&code) {
                End::Stop {
                    why: format!(
                        "{why}: make an app-level token with connections:write (Basic Information), set app_token and restart"
                    ),
                }
            } else {
                End::lost(why)
            }
        }
    }
}
