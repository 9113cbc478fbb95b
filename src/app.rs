//! The composition root: puts concrete parts together, starts them and stops them. The only file that names them all.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tracing::info;

use crate::agent::Agents;
use crate::agent::agents::AgentError;
use crate::callback::Intake;
use crate::clock::{Clock, SystemClock};
use crate::config::server_key::{self, KeyError};
use crate::config::{Config, KeySource, Loaded};
use crate::confirmation::sweeper;
use crate::console::Console;
use crate::delivery::button::ServerKey;
use crate::delivery::card::CardMaker;
use crate::delivery::phrase::{PhraseError, Phrasebook};
use crate::delivery::sender::Sender;
use crate::gatekeeper::{self, Gatekeeper, Journal};
use crate::hook;
use crate::http::auth::Tokens;
use crate::http::body::BodyBudget;
use crate::http::guard::Crowd;
use crate::http::origin::Names;
use crate::http::serve::Doors;
use crate::http::{self, Api};
use crate::ids::{Ids, SystemIds};
use crate::lifecycle::Tasks;
use crate::storage::open::{ClockOffset, OpenError, Settings, open};

pub mod channels;
mod jobs;
mod observers;
pub mod people;

/// How long a stop waits for what was accepted.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// What a server takes from outside its configuration.
pub struct Outside {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Moves PostgreSQL's clock; zero outside tests.
    pub offset: ClockOffset,
    /// Ids and chance.
    pub ids: Arc<dyn Ids>,
    /// What the metrics are read from.
    pub metrics: Option<PrometheusHandle>,
}

impl Default for Outside {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            offset: ClockOffset::default(),
            ids: Arc::new(SystemIds),
            metrics: None,
        }
    }
}

/// A server that cannot start. The texts say what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error(
        "server.listen: {address} cannot be listened on: {source}; free the address, or choose another one there"
    )]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The database cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The server's key cannot be had.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A channel cannot be built.
    #[error(transparent)]
    Channel(#[from] channels::ChannelError),
    /// The words of the cards cannot be used.
    #[error(transparent)]
    Phrases(#[from] PhraseError),
    /// A page of the console cannot be used.
    #[error("a template of the console cannot be read: {0}")]
    Console(#[from] minijinja::Error),
    /// The agents cannot be set up.
    #[error(transparent)]
    Agents(#[from] AgentError),
    /// The hooks cannot be built.
    #[error(transparent)]
    Hooks(#[from] hook::BuildError),
    /// The HTTP client cannot be built.
    #[error("outgoing HTTP cannot be set up: {0}")]
    Http(String),
}

/// A server that runs.
pub struct Server {
    addresses: Vec<SocketAddr>,
    gatekeeper: Gatekeeper,
    hooks: Arc<hook::Hooks>,
    tasks: Tasks,
    journal_tasks: Tasks,
    store_tasks: Tasks,
}

impl Server {
    /// Starts everything. When this returns, requests are answered.
    pub async fn start(loaded: &Loaded, outside: Outside) -> Result<Self, StartError> {
        let Outside {
            clock,
            offset,
            ids,
            metrics,
        } = outside;
        let config = &loaded.config;
        let listeners = listen(config).await?;
        let bound = listeners.iter();
        let addresses: Vec<_> = bound.filter_map(|listener| listener.local_addr().ok()).collect();
        let key = server_key(&config.server.key, &*ids)?;
        let http_client = http_client()?;
        let registry = channels::build(&config.channels, &http_client, &clock)?;
        let roll = Arc::new(people::roll(config));
        let phrases = Arc::new(Phrasebook::load()?);
        let (tasks, journal_tasks, store_tasks) = (Tasks::new(), Tasks::new(), Tasks::new());
        let people = Arc::new(people::people(config));
        let directories = people::directories(config, &registry, &people, &clock, &tasks);
        let maker = CardMaker::new(phrases, key, Arc::clone(&roll), public_url(config))
            .mentioning(people::mentions(config, &directories));

        let mut settings = Settings::new(config.storage.url.expose(), Arc::clone(&clock));
        settings.offset = offset;
        let store = open(&settings, &store_tasks).await?;
        let (journal, scribe) = Journal::open();
        let meter = people::meter(config, &store, &people);
        let outside = hook::Outside::new(&journal, meter, &ids, &clock, &tasks);
        let hooks = Arc::new(hook::build(&[&config.hooks], &outside)?);
        observers::starting(&hooks, &registry);
        let gatekeeper = Gatekeeper::new(gatekeeper::Parts {
            directories,
            store: store.clone(),
            policy: Arc::clone(&loaded.policy),
            roll,
            people,
            registry: registry.clone(),
            maker: maker.clone(),
            ids: Arc::clone(&ids),
            journal,
            council: Arc::new(hook::Chamber::open(Arc::clone(&hooks), &tasks)),
            shapes: gatekeeper::KnownShapes::default(),
        });
        let agents = Agents::open(
            config,
            gatekeeper.clone(),
            &http_client,
            Arc::clone(&hooks),
            &outside,
        )?;
        let sender = Sender::new(store.clone(), registry, maker, Arc::clone(&clock), &ids);
        observers::watch(&hooks, &sender);
        tasks.spawn(Arc::clone(&sender).run(tasks.clone()));
        journal_tasks.spawn(scribe.run(store.clone(), Arc::clone(&clock), journal_tasks.clone()));
        tasks.spawn(sweeper::run(store.clone(), Arc::clone(&clock), tasks.clone()));
        agents.start(config.job, &tasks);
        if let Some(handle) = metrics.clone() {
            tasks.spawn(crate::telemetry::metrics::upkeep(handle, tasks.clone()));
        }

        let intake = Intake::new(gatekeeper.clone(), Arc::clone(&clock), tasks.clone());
        connect(&gatekeeper, &intake, &tasks);
        let (doors, crowd) = room(config.server.max_connections, config.server.max_waits_per_token);
        let api = Api::new(http::Parts {
            gatekeeper: gatekeeper.clone(),
            intake,
            sender,
            clock,
            tokens: Tokens::of_config(&config.tokens, gatekeeper.people()),
            names: Names::new(&addresses, config.server.public_url.as_ref()),
            public_url: config.server.public_url.clone(),
            zone: config.server.time_zone.clone(),
            desk: agents
                .desk()
                .map(|desk| Arc::new(desk.clone()) as Arc<dyn http::v1::job::Desk>),
            console: Some(Console::new(None)?),
            metrics,
            tasks: tasks.clone(),
            crowd,
            bodies: BodyBudget::default(),
        });
        for listener in listeners {
            tasks.spawn(http::serve::serve(
                listener,
                http::router(api.clone()),
                doors.clone(),
                tasks.clone(),
            ));
        }
        observers::ready(&hooks, gatekeeper.registry());
        for address in &addresses {
            info!(%address, "listening");
        }
        Ok(Self {
            addresses,
            gatekeeper,
            hooks,
            tasks,
            journal_tasks,
            store_tasks,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What callers may do, for those in the same process.
    pub const fn gatekeeper(&self) -> &Gatekeeper {
        &self.gatekeeper
    }

    /// Stops: takes nothing new, finishes what was accepted, commits what is queued. Tells whether all of it ended in time.
    ///
    /// In this order, because each may still write to the next: who answers and works, then the journal, then the store.
    pub async fn stop(self) -> bool {
        observers::stopping(&self.hooks, self.gatekeeper.registry());
        let mut ended = true;
        for tasks in [self.tasks, self.journal_tasks, self.store_tasks] {
            tasks.ask_to_stop();
            ended &= tasks.drain(PATIENCE).await;
        }
        ended
    }
}

/// The client of everything that goes out.
fn http_client() -> Result<reqwest::Client, StartError> {
    channels::http_client().map_err(|error| StartError::Http(error.without_url().to_string()))
}

/// How people reach the console, if the configuration says so; without the last slash.
fn public_url(config: &Config) -> Option<String> {
    let url = config.server.public_url.as_ref();
    url.map(|url| url.join("").trim_end_matches('/').to_owned())
}

/// Holds the connections of channels that need one.
fn connect(gatekeeper: &Gatekeeper, intake: &Intake, tasks: &Tasks) {
    for connection in channels::connections(gatekeeper.registry()) {
        let (intake, stop) = (Arc::new(intake.clone()), tasks.clone());
        tasks.spawn(async move {
            connection
                .run(intake, Box::pin(async move { stop.stopping().await }))
                .await;
        });
    }
}

/// How many may come in, and how many of them may wait for people.
fn room(connections: Option<u32>, waits_per_token: Option<u32>) -> (Doors, Crowd) {
    let count = |number: Option<u32>| number.and_then(|number| usize::try_from(number).ok());
    let connections = count(connections).unwrap_or_else(http::serve::usual_connections);
    let crowd = Crowd::of(connections);
    let crowd = match count(waits_per_token) {
        Some(most) => crowd.with_waits_per_token(most),
        None => crowd,
    };
    (Doors::of(connections), crowd)
}

async fn listen(config: &Config) -> Result<Vec<TcpListener>, StartError> {
    let mut listeners = Vec::new();
    let mut refused = None;
    for address in config.server.listen.addresses() {
        match TcpListener::bind(address).await {
            Ok(listener) => listeners.push(listener),
            Err(source) => refused = Some(StartError::Listen { address, source }),
        }
    }
    // `localhost` names two addresses, and a machine may lack one of them.
    match refused {
        Some(error) if listeners.is_empty() => Err(error),
        _ => Ok(listeners),
    }
}

/// The server's key: read, or made at the first start.
fn server_key(source: &KeySource, ids: &dyn Ids) -> Result<ServerKey, KeyError> {
    let key = match source {
        KeySource::Given(key) => key.clone(),
        KeySource::File(path) => load_key(path, ids)?,
    };
    Ok(ServerKey::new(*key.expose()))
}

fn load_key(path: &Path, ids: &dyn Ids) -> Result<server_key::ServerKey, KeyError> {
    server_key::load_or_create(path, &|into| ids.random(into))
}
