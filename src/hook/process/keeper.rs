//! The keeper of a process: starts it at the first question, asks one question at a time, ends it when it is late or talks
//! nonsense, and starts it again, after a failure that follows a failure only after a pause.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tracing::warn;

use super::connection::Connection;
use super::dialect::{Dialect, Question};
use super::modes;
use crate::config::child::ChildConfig;
use crate::gate::Json;
use crate::hook::event::Event;
use crate::hook::{HookError, Point};
use crate::lifecycle::Tasks;

/// How long a process may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// To take note of an event.
    pub observer: Duration,
    /// To answer as an interceptor, or to the greeting.
    pub interceptor: Duration,
    /// To answer as an approver.
    pub approval: Duration,
    /// To end between TERM and KILL.
    pub grace: Duration,
}

/// The pause before a start that follows failures: none after the first, then doubling.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    /// After the second failure in a row.
    pub first: Duration,
    /// At most.
    pub most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(250),
            most: Duration::from_secs(30),
        }
    }
}

impl Backoff {
    fn after(self, failures: u32) -> Duration {
        match failures {
            0 | 1 => Duration::ZERO,
            more => self
                .first
                .saturating_mul(2_u32.saturating_pow((more - 2).min(16)))
                .min(self.most),
        }
    }
}

/// See the module.
pub struct Keeper {
    name: String,
    child: ChildConfig,
    modes: Vec<&'static str>,
    limits: Limits,
    backoff: Backoff,
    tasks: Tasks,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    failures: u32,
    not_before: Option<Instant>,
}

impl Keeper {
    /// A keeper; nothing is started yet.
    pub fn new(
        name: &str,
        child: ChildConfig,
        points: &[Point],
        observes: bool,
        limits: Limits,
        backoff: Backoff,
        tasks: Tasks,
    ) -> Self {
        Self {
            name: name.to_owned(),
            child,
            modes: modes(points, observes),
            limits,
            backoff,
            tasks,
            state: Mutex::default(),
        }
    }

    /// Asks, within the limit once it is our turn, and waiting no longer than that for it.
    pub(super) async fn ask(
        &self,
        limit: Duration,
        question: &Question<'_>,
    ) -> Result<(Dialect, Json), HookError> {
        let mut state = timeout(limit, self.state.lock())
            .await
            .map_err(|_| HookError::Busy(limit))?;
        let mut connection = self.connected(&mut state).await?;
        // Whoever drops this future drops the connection with it: a half-asked question spoils it.
        let asked = timeout(limit, connection.ask(question)).await;
        match asked {
            Ok(Ok(result)) => {
                let dialect = connection.dialect();
                state.connection = Some(connection);
                state.failures = 0;
                Ok((dialect, result))
            }
            // It said an error in good form: it is well.
            Ok(Err(error @ HookError::Answered(_))) => {
                state.connection = Some(connection);
                Err(error)
            }
            Ok(Err(error)) => Err(self.failed(&mut state, connection, error).await),
            Err(_) => Err(self
                .failed(&mut state, connection, HookError::TimedOut(limit))
                .await),
        }
    }

    /// Tells of an event. A hook that takes long over it keeps running; only its answer is not waited for.
    pub(super) async fn tell(&self, limit: Duration, event: &Event, dropped: u64) -> Result<(), HookError> {
        let mut state = timeout(limit, self.state.lock())
            .await
            .map_err(|_| HookError::Busy(limit))?;
        let mut connection = self.connected(&mut state).await?;
        match timeout(limit, connection.tell(event, dropped)).await {
            Ok(Ok(())) => {
                state.connection = Some(connection);
                Ok(())
            }
            Ok(Err(error @ HookError::Answered(_))) => {
                state.connection = Some(connection);
                Err(error)
            }
            Ok(Err(error)) => Err(self.failed(&mut state, connection, error).await),
            Err(_) if connection.is_written() => {
                connection.give_up();
                state.connection = Some(connection);
                Err(HookError::TimedOut(limit))
            }
            Err(_) => Err(self
                .failed(&mut state, connection, HookError::TimedOut(limit))
                .await),
        }
    }

    /// Ends the process, if there is one.
    pub async fn stop(&self) {
        let connection = self.state.lock().await.connection.take();
        if let Some(connection) = connection {
            connection.end(self.limits.grace).await;
        }
    }

    /// The running process, or a new one.
    async fn connected(&self, state: &mut State) -> Result<Connection, HookError> {
        if let Some(mut connection) = state.connection.take() {
            if connection.is_alive() {
                return Ok(connection);
            }
            warn!(hook = %self.name, "a hook process ended between two questions");
            self.count(state);
            connection.end(self.limits.grace).await;
        }
        if let Some(pause) = state
            .not_before
            .map(|at| at.saturating_duration_since(Instant::now()))
            .filter(|pause| !pause.is_zero())
        {
            return Err(HookError::BackingOff(pause));
        }
        let limit = self.limits.interceptor;
        let opening = Connection::open(&self.name, &self.modes, &self.child, &self.tasks);
        match timeout(limit, opening).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => {
                self.count(state);
                Err(error)
            }
            // The process is killed as the future is dropped.
            Err(_) => {
                self.count(state);
                Err(HookError::TimedOut(limit))
            }
        }
    }

    async fn failed(&self, state: &mut State, connection: Connection, error: HookError) -> HookError {
        self.count(state);
        connection.end(self.limits.grace).await;
        error
    }

    fn count(&self, state: &mut State) {
        state.failures = state.failures.saturating_add(1);
        state.not_before = Some(Instant::now() + self.backoff.after(state.failures));
    }
}
