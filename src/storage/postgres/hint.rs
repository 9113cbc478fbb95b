//! Hints between processes: an empty NOTIFY after commits, from a connection of its own, and one LISTEN for the whole process.
//!
//! A NOTIFY inside a deciding transaction would make all commits of the database queue behind each other; here it costs them
//! nothing. It carries nothing either, so no limit on its size is ever met. A hint may be lost: who waits polls.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use sqlx::Executor as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener, PgPoolOptions};
use tokio::sync::Notify;

use super::{connect, describe};
use crate::lifecycle::Tasks;
use crate::storage::{Wake, Wakes};

const CHANNEL: &str = "gatepost";
const TELL: &str = "NOTIFY gatepost";
const WHO: &str = "SELECT pg_backend_pid()";
/// A hint that is not told within this time finds a connection that hangs: it is given up and made anew.
const TELL_WITHIN: Duration = Duration::from_secs(5);
/// At most one hint in this time; the first goes out at once.
const SPACING: Duration = Duration::from_millis(5);
/// After so long without a hint the listening connection is asked whether it still lives.
const SILENCE: Duration = Duration::from_secs(30);
/// Before a lost connection is made anew: doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The writer's end: after a commit it rings once, however often.
#[derive(Debug, Clone)]
pub(super) struct Hints(Arc<Notify>);

impl Hints {
    pub(super) fn ring(&self) {
        self.0.notify_one();
    }
}

/// Starts the two tasks.
pub(super) fn start(options: &PgConnectOptions, wakes: &Wakes, tasks: &Tasks) -> Hints {
    let bell = Arc::new(Notify::new());
    // Our own hints come back to us; by the process of the telling connection they are known.
    let own = Arc::new(AtomicI32::new(0));
    let (stop_telling, stop_listening) = (tasks.clone(), tasks.clone());
    let teller = tell(options.clone(), Arc::clone(&bell), Arc::clone(&own), TELL_WITHIN);
    let listener = listen(options.clone(), own, wakes.clone());
    tasks.spawn(async move {
        tokio::select! {
            () = stop_telling.stopping() => {}
            () = teller => {}
        }
    });
    tasks.spawn(async move {
        tokio::select! {
            () = stop_listening.stopping() => {}
            () = listener => {}
        }
    });
    Hints(bell)
}

async fn tell(options: PgConnectOptions, bell: Arc<Notify>, own: Arc<AtomicI32>, patience: Duration) {
    let mut connection: Option<PgConnection> = None;
    let mut pause = FIRST_PAUSE;
    loop {
        bell.notified().await;
        while let Err(error) = within(patience, tell_once(&mut connection, &options, &own)).await {
            // Closing it could hang as well; dropping does not wait.
            connection = None;
            tracing::warn!(error = %describe(&error), "other processes cannot be told; they poll");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        pause = FIRST_PAUSE;
        tokio::time::sleep(SPACING).await;
    }
}

/// A question to a connection that may hang for ever.
async fn within<T>(
    patience: Duration,
    question: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    tokio::time::timeout(patience, question)
        .await
        .unwrap_or_else(|_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))
}

async fn tell_once(
    connection: &mut Option<PgConnection>,
    options: &PgConnectOptions,
    own: &AtomicI32,
) -> Result<(), sqlx::Error> {
    let telling = if let Some(telling) = connection {
        telling
    } else {
        let mut fresh = connect(options).await?;
        own.store(
            sqlx::query_scalar(WHO).fetch_one(&mut fresh).await?,
            Ordering::SeqCst,
        );
        connection.insert(fresh)
    };
    telling.execute(TELL).await.map(drop)
}

async fn listen(options: PgConnectOptions, own: Arc<AtomicI32>, wakes: Wakes) {
    let mut pause = FIRST_PAUSE;
    loop {
        if let Err(error) = listen_once(&options, &own, &wakes, &mut pause).await {
            tracing::warn!(error = %describe(&error), "hints of other processes are not heard; polling goes on");
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Listens until the connection is lost.
async fn listen_once(
    options: &PgConnectOptions,
    own: &AtomicI32,
    wakes: &Wakes,
    pause: &mut Duration,
) -> Result<(), sqlx::Error> {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .connect_with(options.clone())
        .await?;
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.listen(CHANNEL).await?;
    *pause = FIRST_PAUSE;
    // Whatever was told while nobody listened.
    wakes.publish(&[Wake::Everything]);
    loop {
        let Ok(heard) = tokio::time::timeout(SILENCE, listener.try_recv()).await else {
            // Nothing for long: nobody has said anything, or nothing comes through any more.
            within(TELL_WITHIN, listener.execute("SELECT 1")).await?;
            continue;
        };
        let heard = heard?;
        let Some(hint) = heard else { return Ok(()) };
        let sender = i32::try_from(hint.process_id()).unwrap_or(0);
        if sender != own.load(Ordering::SeqCst) {
            wakes.publish(&[Wake::Everything]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that takes connections and says nothing, for ever.
    #[tokio::test]
    async fn a_connection_that_hangs_is_given_up_and_made_anew() {
        let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = deaf.local_addr().unwrap().port();
        let options = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(port)
            .username("gatepost")
            .ssl_mode(sqlx::postgres::PgSslMode::Disable);
        let bell = Arc::new(Notify::new());
        bell.notify_one();
        let telling = tell(options, bell, Arc::default(), Duration::from_millis(1));
        let mut held = Vec::new();
        let third = async {
            while held.len() < 3 {
                held.push(deaf.accept().await.unwrap());
            }
        };
        tokio::select! {
            () = telling => panic!("it goes on trying"),
            () = third => {}
        }
    }
}
