//! The product as it is served: the whole server on a free port of the loopback, with one channel whose platform is a stub that
//! takes every card at once.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use gatepost_channel::{ButtonValue, CardForm, MessageRef};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;
use tokio::net::TcpListener;

use super::BenchError;
use super::press::{CHAT, SECRET, USER, press};
use crate::app::{Outside, Server};
use crate::config::{Config, Loaded};
use crate::confirmation::Dossier;
use crate::delivery::plan::Spares;
use crate::delivery::record::{Record, Sent};
use crate::delivery::{Errand, OutboxItem};
use crate::gate::json::ReadLimits;
use crate::gate::policy::Voices;
use crate::gate::{Arguments, ToolName};
use crate::gatekeeper::{Answer, Caller, Gatekeeper, Question, Via};
use crate::ids::{ConfirmationId, JobId, Org, OutboxId, TokenName};
use crate::lifecycle::Tasks;

/// The person who decides.
pub const OPERATOR: &str = "dana";
/// Requests that are made at the same time when many are needed.
const MAKERS: usize = 256;

/// A configuration with one channel at this address of the platform.
pub fn configuration(store: &str, dir: &Path, platform: SocketAddr) -> Result<Loaded, BenchError> {
    let text = json!({
        "server": {"listen": "127.0.0.1:0", "key": {"file": dir.join("bench.key")}},
        "storage": {"url": store},
        "auth": {"tokens": [{"name": "bench", "secret": "bench-agent-secret-0123456789ab", "role": "agent"}]},
        "operators": [{"id": OPERATOR, "name": "Dana Kim", "roles": ["bench"], "identities": {"slack": USER}}],
        "channels": [{
            "name": "bench", "kind": "slack", "mode": "webhook", "base_url": format!("http://{platform}/api"),
            "bot_token": "xoxb-0000-0000-bench", "signing_secret": SECRET, "channel": CHAT,
        }],
        "policy": {
            "default": "confirm",
            "confirm": {"channels": ["bench"], "approvers": {"roles": ["bench"]}, "timeout": "24h"},
        },
    })
    .to_string();
    Config::parse(&text, "bench", dir, &|_| None).map_err(|problems| BenchError::other(&problems))
}

/// A platform that says yes to everything.
pub async fn platform(tasks: &Tasks) -> Result<SocketAddr, BenchError> {
    async fn yes(State(sent): State<Arc<AtomicU64>>) -> String {
        let number = sent.fetch_add(1, Ordering::Relaxed);
        json!({"ok": true, "channel": CHAT, "ts": format!("1600000000.{number:06}")}).to_string()
    }
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .map_err(BenchError::net)?;
    let address = listener.local_addr().map_err(BenchError::net)?;
    let router = Router::new()
        .route("/api/{method}", post(yes))
        .with_state(Arc::new(AtomicU64::new(0)));
    let stopping = tasks.clone();
    tasks.spawn(async move {
        tokio::select! {
            served = axum::serve(listener, router).into_future() => drop(served),
            () = stopping.stopping() => {}
        }
    });
    Ok(address)
}

/// The running server.
pub struct Product {
    server: Server,
    address: SocketAddr,
}

/// A request whose card stands on the platform, ready to be pressed.
#[derive(Debug, Clone)]
pub struct Parked {
    /// The request.
    pub id: ConfirmationId,
    /// What its button carries.
    pub button: ButtonValue,
    /// The message with the button.
    pub message: String,
}

impl Product {
    /// Starts it over an empty database.
    pub async fn start(
        store: &str,
        dir: &Path,
        platform: SocketAddr,
        metrics: Option<PrometheusHandle>,
    ) -> Result<Self, BenchError> {
        let loaded = configuration(store, dir, platform)?;
        let outside = Outside {
            metrics,
            ..Outside::default()
        };
        let server = Server::start(&loaded, outside)
            .await
            .map_err(|error| BenchError::other(&error))?;
        let address = *server
            .addresses()
            .first()
            .ok_or_else(|| BenchError::Answer("the server listens nowhere".to_owned()))?;
        Ok(Self { server, address })
    }

    /// Where it answers.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What callers may do.
    pub const fn gatekeeper(&self) -> &Gatekeeper {
        self.server.gatekeeper()
    }

    /// Stops it.
    pub async fn stop(self) {
        self.server.stop().await;
    }

    /// The presses on these cards.
    pub fn presses(&self, cards: &[Parked]) -> Result<Vec<Vec<u8>>, BenchError> {
        let cards = cards.iter().enumerate();
        let spelled = cards.map(|(number, card)| {
            press(
                self.address,
                "/api/channels/bench/callback",
                &card.message,
                &card.button.to_string(),
                number,
            )
        });
        spelled.collect()
    }
}

/// Who asks.
pub fn caller() -> Caller {
    Caller {
        token: TokenName("bench".to_owned()),
        org: Org::default(),
        owner: None,
    }
}

/// A call with 600 B of arguments, unlike every other.
pub fn question(number: usize, job: Option<JobId>) -> Result<Question, BenchError> {
    let text = json!({
        "amount": number, "currency": "EUR", "payee": "Northwind Traders", "memo": "m".repeat(520),
    })
    .to_string();
    let other = |error: &dyn std::error::Error| BenchError::other(error);
    Ok(Question {
        via: Via::Api,
        tool: "oa__purchase_pay"
            .parse::<ToolName>()
            .map_err(|error| other(&error))?,
        args: Arguments::read(text.as_bytes(), ReadLimits::bytes(text.len()))
            .map_err(|error| other(&error))?,
        agent_id: Some("bench-agent".to_owned()),
        session_id: Some("bench-session".to_owned()),
        tool_call_id: Some(format!("call_{number:020}")),
        requester: None,
        metadata: None,
        job,
        lineage: Vec::new(),
        voices: Voices::default(),
        carries_edits: false,
        join_twin: false,
    })
}

/// Asks, and insists that a person is asked.
pub async fn ask(gatekeeper: &Gatekeeper, question: Question) -> Result<Dossier, BenchError> {
    match gatekeeper.ask(&caller(), question).await {
        Ok(Answer::Asked(dossier)) => Ok(*dossier),
        Ok(other) => Err(BenchError::Answer(format!("the gate said {other:?}"))),
        Err(error) => Err(BenchError::other(&error)),
    }
}

/// Makes requests and lets their cards stand, through the transactions of the product. `first` numbers them.
pub async fn park(gatekeeper: &Gatekeeper, first: usize, count: usize) -> Result<Vec<Parked>, BenchError> {
    let made = stream::iter(first..first + count).map(|number| async move {
        let dossier = ask(gatekeeper, question(number, None)?).await?;
        let card = dossier
            .deliveries
            .first()
            .ok_or_else(|| BenchError::Answer("a request without a card".to_owned()))?;
        let message = format!("1700000000.{number:06}");
        let record = Record {
            item: OutboxItem {
                id: OutboxId::of_card(&card.id),
                confirmation: Some(dossier.confirmation.id.clone()),
                channel: card.channel.clone(),
                errand: Errand::Card {
                    delivery: card.id.clone(),
                    posts: 0,
                },
                attempts: 0,
                not_before: dossier.confirmation.created_at,
                lease: None,
                fence: 0,
                created_at: dossier.confirmation.created_at,
            },
            sent: Sent::Posted {
                at: MessageRef {
                    chat: CHAT.to_owned(),
                    message: message.clone(),
                },
                form: CardForm::LaidOut,
                edition: dossier.confirmation.edition,
                alone: true,
            },
            beside: Vec::new(),
            spares: Spares::new(),
        };
        gatekeeper
            .store()
            .run(record)
            .await
            .map_err(|error| BenchError::other(&error))?;
        let button = ButtonValue::one(
            gatekeeper.maker().key().button(&card.id, &card.nonce),
            dossier.confirmation.revision,
        );
        Ok(Parked {
            id: dossier.confirmation.id,
            button,
            message,
        })
    });
    made.buffer_unordered(MAKERS).try_collect().await
}

/// How many requests wait for a person.
pub async fn pending(gatekeeper: &Gatekeeper) -> Result<u64, BenchError> {
    let counts = gatekeeper.store().read().counts().await;
    Ok(counts.map_err(|error| BenchError::other(&error))?.pending)
}
