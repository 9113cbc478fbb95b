//! The keeper of one server: connects in the background, asks for its tools, connects again after a loss with growing pauses,
//! and carries calls out. A server that is down holds up nothing: its tools are absent until it is back.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::{counter, gauge, histogram};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::call::{Called, Parcel};
use super::link::{Line, Link, Means};
use super::offer::{Fingerprint, Offer};
use super::watcher::{Moment, Watcher};
use crate::config::mcp::McpServer;
use crate::lifecycle::Tasks;

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Start and handshake; the first start of a packaged server may have to fetch it.
    pub handshake: Duration,
    /// A list of tools, or the answer to a ping.
    pub list: Duration,
    /// How long a call waits for a server that is not there.
    pub absence: Duration,
    /// The end of a process between TERM and KILL.
    pub grace: Duration,
    /// How long the runs that may call it have to end when the server stops.
    pub linger: Duration,
    /// The pause after the second failure in a row; it doubles from there.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// How long a connection must last to be none that failed.
    pub steady: Duration,
    /// The least time between two lists that the server asks for by saying that its tools changed.
    pub breath: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(30),
            list: Duration::from_secs(10),
            absence: Duration::from_secs(20),
            grace: Duration::from_secs(1),
            linger: Duration::from_secs(7),
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(30),
            steady: Duration::from_secs(10),
            breath: Duration::from_millis(250),
        }
    }
}

/// How a server is, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// The first try to connect is under way.
    Starting,
    /// It is connected.
    Ready {
        /// What it says that it is.
        server: String,
        /// The names of its tools.
        tools: Vec<String>,
        /// Why some of its tools are left out, one line each.
        left_out: Vec<String>,
    },
    /// It is not there.
    Down(String),
}

#[derive(Clone)]
enum State {
    Starting,
    Ready(Arc<Ready>),
    Down(Arc<str>),
}

/// The end of the server's own life.
type Over<'a> = std::pin::Pin<&'a mut (dyn Future<Output = ()> + Send)>;

/// How a connection ended.
enum End {
    /// The server stops.
    Over,
    /// We gave it up, for this reason.
    Ours(String),
    /// It was lost.
    Theirs,
}

struct Ready {
    line: Line,
    offer: Arc<Offer>,
    server: String,
    /// Counts the lists, so that whoever asked for a fresh one knows it.
    lists: u64,
    /// Which connection it is.
    connection: u64,
}

/// See the module.
pub struct Server {
    config: McpServer,
    http: reqwest::Client,
    limits: Limits,
    state: watch::Sender<State>,
    /// Somebody wants a fresh list.
    wanted: Notify,
    /// A call was not answered in time: perhaps nothing is any more.
    suspect: Notify,
    /// Somebody waits for the server: a pause ends early.
    missed: Notify,
    /// Nobody calls it any more.
    released: CancellationToken,
    watcher: OnceLock<Arc<dyn Watcher>>,
}

impl Server {
    /// A keeper; nothing is started yet. `http` must follow no redirect.
    pub fn new(config: McpServer, http: reqwest::Client, limits: Limits) -> Self {
        Self {
            config,
            http,
            limits,
            state: watch::Sender::new(State::Starting),
            wanted: Notify::new(),
            suspect: Notify::new(),
            missed: Notify::new(),
            released: CancellationToken::new(),
            watcher: OnceLock::new(),
        }
    }

    /// Has whoever watches told what happens to it. Once, before it is kept.
    pub fn watched_by(&self, watcher: Arc<dyn Watcher>) {
        // The first one stays.
        let _ = self.watcher.set(watcher);
    }

    fn tell(&self, moment: Moment<'_>) {
        if let Some(watcher) = self.watcher.get() {
            watcher.told(&self.config.name, moment);
        }
    }

    /// Says that nobody calls it any more, so that a stop need not wait for calls.
    pub fn release(&self) {
        self.released.cancel();
    }

    /// Resolves when the server stops and the runs that may call this one have ended.
    async fn over(&self, tasks: &Tasks) {
        tasks.stopping().await;
        let _ = timeout(self.limits.linger, self.released.cancelled()).await;
    }

    /// Its name in the configuration.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// What the configuration says of it.
    pub const fn config(&self) -> &McpServer {
        &self.config
    }

    /// What it offers; nothing while it is not there.
    pub fn offer(&self) -> Option<Arc<Offer>> {
        match &*self.state.borrow() {
            State::Ready(ready) => Some(Arc::clone(&ready.offer)),
            State::Starting | State::Down(_) => None,
        }
    }

    /// How it is.
    pub fn health(&self) -> Health {
        match &*self.state.borrow() {
            State::Starting => Health::Starting,
            State::Down(why) => Health::Down(why.to_string()),
            State::Ready(ready) => Health::Ready {
                server: ready.server.clone(),
                tools: ready.offer.tools.keys().cloned().collect(),
                left_out: ready.offer.left_out.clone(),
            },
        }
    }

    /// Waits until the first try to connect has ended, whichever way.
    pub async fn settled(&self) {
        let mut state = self.state.subscribe();
        // The sender lives as long as we do.
        let _ = state.wait_for(|state| !matches!(state, State::Starting)).await;
    }

    /// Waits a while for a server that is not there.
    pub async fn present(&self) {
        // Whoever needs it finds out whether it came.
        let _ = self.ready(Instant::now() + self.limits.absence, None).await;
    }

    /// Asks for the tools anew, for as long as that may take. A server that is not there, or that is lost over the question,
    /// names them when it is back, for which a while is waited.
    pub async fn refresh(&self) {
        self.list_anew().await;
        self.present().await;
    }

    async fn list_anew(&self) {
        let before = match &*self.state.borrow() {
            State::Ready(ready) => (ready.connection, ready.lists),
            State::Starting | State::Down(_) => return,
        };
        self.wanted.notify_one();
        let mut state = self.state.subscribe();
        let newer = |state: &State| match state {
            State::Ready(ready) => (ready.connection, ready.lists) != before,
            State::Starting | State::Down(_) => true,
        };
        let _ = timeout(self.limits.list, state.wait_for(newer)).await;
    }

    /// Sends one call, if the tool is still the one of this fingerprint. A call that certainly did not arrive is sent again
    /// over a new connection, once.
    pub async fn call(&self, tool: &str, known: &Fingerprint, args: &str, permit: &str) -> Called {
        let began = Instant::now();
        let deadline = began + self.config.timeout;
        let mut called = Called::NotMade(String::new());
        let mut used = None;
        for _ in 0..2 {
            let ready = match self.ready(deadline, used).await {
                Ok(ready) => ready,
                Err(why) => {
                    if used.is_none() {
                        called = Called::NotMade(format!(
                            "the server is not there ({why}); the call was not made"
                        ));
                    }
                    break;
                }
            };
            match ready.offer.tools.get(tool) {
                None => {
                    called = Called::NotMade("the server does not offer the tool any more".to_owned());
                    break;
                }
                Some(found) if found.fingerprint != *known => {
                    called = Called::Changed;
                    break;
                }
                Some(_) => {}
            }
            used = Some(ready.connection);
            called = ready.line.call(tool, &Parcel::new(args, permit), deadline).await;
            if !matches!(called, Called::NotMade(_)) {
                break;
            }
        }
        if matches!(called, Called::Unknown(_)) && Instant::now() >= deadline {
            self.suspect.notify_one();
        }
        counter!("gatepost_mcp_calls_total", "server" => self.config.name.clone(), "outcome" => called.word())
            .increment(1);
        histogram!("gatepost_mcp_call_duration_seconds", "server" => self.config.name.clone())
            .record(began.elapsed().as_secs_f64());
        called
    }

    /// The connection; another one than `used`, when one was tried.
    async fn ready(&self, deadline: Instant, used: Option<u64>) -> Result<Arc<Ready>, String> {
        let mut state = self.state.subscribe();
        let deadline = deadline.min(Instant::now() + self.limits.absence);
        self.missed.notify_one();
        let usable = |state: &State| matches!(state, State::Ready(ready) if Some(ready.connection) != used);
        if let Ok(found) = timeout_at(deadline, state.wait_for(usable)).await {
            return match found.as_deref() {
                Ok(State::Ready(ready)) => Ok(Arc::clone(ready)),
                _ => Err("it is being stopped".to_owned()),
            };
        }
        Err(match &*self.state.borrow() {
            State::Down(why) => why.to_string(),
            State::Starting | State::Ready(_) => "it is still starting".to_owned(),
        })
    }

    /// Keeps it connected until the server stops.
    pub async fn keep(self: Arc<Self>, tasks: Tasks) {
        let mut failures = 0_u32;
        let mut connection = 0;
        let over = std::pin::pin!(self.over(&tasks));
        let mut over: Over<'_> = over;
        loop {
            connection += 1;
            let began = Instant::now();
            self.tell(Moment::Connecting);
            let Some(why) = self.connection(connection, &tasks, &mut over).await else {
                break;
            };
            failures = if began.elapsed() >= self.limits.steady {
                1
            } else {
                failures.saturating_add(1)
            };
            self.down(&why);
            if failures > 1 {
                let pause = self.pause(failures);
                tokio::select! {
                    () = sleep(pause) => {}
                    () = self.hurried(pause) => {}
                    () = over.as_mut() => break,
                }
            }
        }
        self.state.send_replace(State::Down("the server stops".into()));
    }

    fn pause(&self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(2).min(16));
        self.limits
            .first_pause
            .saturating_mul(doubled)
            .min(self.limits.longest_pause)
    }

    /// Whoever waits for the server need not wait for the whole of a long pause.
    async fn hurried(&self, pause: Duration) {
        self.missed.notified().await;
        sleep(self.limits.first_pause.min(pause)).await;
    }

    fn down(&self, why: &str) {
        let name = &self.config.name;
        warn!(server = %name, why, "an MCP server is not there");
        gauge!("gatepost_mcp_server_up", "server" => name.clone()).set(0.0);
        gauge!("gatepost_mcp_tools", "server" => name.clone()).set(0.0);
        counter!("gatepost_mcp_losses_total", "server" => name.clone()).increment(1);
        self.state.send_replace(State::Down(why.into()));
        self.tell(Moment::Failed { why });
    }

    /// One connection from start to end; says why it ended, unless it was `over`.
    async fn connection(&self, number: u64, tasks: &Tasks, over: &mut Over<'_>) -> Option<String> {
        let means = Means {
            reach: &self.config.reach,
            http: &self.http,
            tasks,
            limit: self.limits.handshake,
            grace: self.limits.grace,
        };
        let opened = tokio::select! {
            opened = Link::open(&means) => opened,
            () = over.as_mut() => return None,
        };
        let mut link = match opened {
            Ok(link) => link,
            Err(fault) => return Some(fault.to_string()),
        };
        let end = self.serve(&mut link, number, over).await;
        let last_words = link.end(self.limits.grace).await;
        match end {
            End::Over => None,
            End::Ours(why) => Some(why),
            End::Theirs => Some(last_words),
        }
    }

    /// Lists and listens until the connection ends.
    async fn serve(&self, link: &mut Link, number: u64, over: &mut Over<'_>) -> End {
        let mut lists = 0;
        loop {
            let listed = tokio::select! {
                listed = link.tools(&self.config.name, self.limits.list) => listed,
                () = over.as_mut() => return End::Over,
            };
            match listed {
                Ok(offer) => {
                    lists += 1;
                    self.publish(link, offer, number, lists);
                }
                Err(super::link::Fault::Ended(_)) => return End::Theirs,
                Err(fault) => return End::Ours(fault.to_string()),
            }
            let (changed, breath) = (link.changed(), Instant::now() + self.limits.breath);
            let told = async {
                changed.notified().await;
                sleep_until(breath).await;
            };
            let alive = tokio::select! {
                () = link.ended() => return End::Theirs,
                () = over.as_mut() => return End::Over,
                () = self.wanted.notified() => true,
                () = told => true,
                () = self.suspect.notified() => false,
            };
            if !alive && !link.is_alive(self.limits.list).await {
                return End::Ours("it does not answer any more".to_owned());
            }
        }
    }

    fn publish(&self, link: &Link, offer: Offer, connection: u64, lists: u64) {
        let name = &self.config.name;
        let (before, again) = match &*self.state.borrow() {
            State::Ready(ready) => (Some(Arc::clone(&ready.offer)), true),
            State::Starting | State::Down(_) => (None, false),
        };
        let is_new = before
            .as_ref()
            .is_none_or(|before| before.tools != offer.tools || before.left_out != offer.left_out);
        if is_new {
            info!(server = %name, tools = offer.tools.len(), again, "an MCP server named its tools");
            for line in &offer.left_out {
                warn!(server = %name, tool = %line, "a tool of an MCP server is left out");
            }
        }
        gauge!("gatepost_mcp_server_up", "server" => name.clone()).set(1.0);
        gauge!("gatepost_mcp_tools", "server" => name.clone())
            .set(f64::from(u32::try_from(offer.tools.len()).unwrap_or(u32::MAX)));
        let offer = Arc::new(offer);
        self.state.send_replace(State::Ready(Arc::new(Ready {
            line: link.line(),
            offer: Arc::clone(&offer),
            server: link.server(),
            lists,
            connection,
        })));
        if !again {
            self.tell(Moment::Connected {
                tools: offer.tools.len(),
            });
        }
        let known = |tool: &str| before.as_ref().and_then(|before| before.tools.get(tool));
        for (name, tool) in &offer.tools {
            if known(name) != Some(tool) {
                self.tell(Moment::Discovered { tool: name });
            }
        }
    }
}
