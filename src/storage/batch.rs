//! The writer's contract, once for both databases: what is queued becomes one batch, one batch becomes one commit, and an item
//! hears of it only after the commit. This file must not know SQL: a backend is an [`Engine`].

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;

use super::{Changes, Item, Loaded, Refused, StoreError, Touches, Wake, Wakes, Workspace, Writer};
use crate::lifecycle::Tasks;

/// Items that may wait before the writer; one more is refused.
pub(super) const QUEUE: usize = 4096;
/// Items in one commit at most: more would make everybody wait longer than it saves.
pub(super) const BATCH: usize = 256;
/// How often one item is tried when the database asks for a repetition (deadlock, serialisation).
const ATTEMPTS: usize = 3;
/// The store is tidied when nothing came for [`Settings::idle`](super::Settings::idle), and at the latest after this long.
const TIDY: Duration = Duration::from_mins(1);

/// What went wrong in a backend.
#[derive(Debug)]
pub(super) enum Fault {
    /// The connection or the database is of no use now; nothing about the items is known to be wrong.
    Lost(StoreError),
    /// The database asks to do the same again.
    Again(StoreError),
    /// Something about these items was refused.
    Refused(StoreError),
}

impl Fault {
    fn into_error(self) -> StoreError {
        match self {
            Self::Lost(error) | Self::Again(error) | Self::Refused(error) => error,
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

/// A backend's one writing connection.
pub(super) trait Engine: Send + 'static {
    /// Opens a writing transaction, locks and reads what is touched.
    fn begin(&mut self, touches: &Touches) -> impl Future<Output = Result<Loaded, Fault>> + Send;
    /// Writes the difference, every list set-wise, and makes it last.
    fn conclude(&mut self, changes: &Changes) -> impl Future<Output = Result<(), Trouble>> + Send;
    /// Forgets it.
    fn rollback(&mut self) -> impl Future<Output = Result<(), Fault>> + Send;
    /// Replaces a connection that is of no more use; waits before it tries too often.
    fn reopen(&mut self) -> impl Future<Output = Result<(), Fault>> + Send;
    /// Housekeeping in small bites, in a transaction of its own.
    fn tidy(&mut self) -> impl Future<Output = Result<(), Fault>> + Send;
    /// After a commit: tells other processes.
    fn committed(&self, wakes: &[Wake]);
    /// Lets the connection go.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// The queue before the writer.
#[derive(Debug, Clone)]
pub(super) struct Queue(mpsc::Sender<Box<dyn Item>>);

impl std::fmt::Debug for dyn Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Queue {
    /// Starts the writer.
    pub(super) fn before<E: Engine>(engine: E, wakes: Wakes, idle: Duration, tasks: &Tasks) -> Self {
        let (sender, queue) = mpsc::channel(QUEUE);
        tasks.spawn(drive(engine, queue, wakes, idle, tasks.clone()));
        Self(sender)
    }
}

impl Writer for Queue {
    fn submit(&self, item: Box<dyn Item>) -> Result<(), Refused> {
        self.0.try_send(item).map_err(|refused| match refused {
            TrySendError::Full(item) => Refused {
                item,
                error: StoreError::Overloaded,
            },
            TrySendError::Closed(item) => Refused {
                item,
                error: StoreError::Closed,
            },
        })
    }
}

/// Serves the queue until the server stops, then what is left in it.
async fn drive<E: Engine>(
    mut engine: E,
    mut queue: mpsc::Receiver<Box<dyn Item>>,
    wakes: Wakes,
    patience: Duration,
    tasks: Tasks,
) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut tidied = Instant::now();
    let mut closed = false;
    loop {
        let idle = tokio::select! {
            biased;
            taken = queue.recv_many(&mut batch, BATCH) => {
                if taken == 0 {
                    break;
                }
                serve(&mut engine, std::mem::take(&mut batch), &wakes).await;
                false
            }
            () = tasks.stopping(), if !closed => {
                queue.close();
                closed = true;
                continue;
            }
            () = tokio::time::sleep(patience) => true,
        };
        if idle || tidied.elapsed() >= TIDY {
            if let Err(fault) = engine.tidy().await {
                tracing::warn!(error = %fault.into_error(), "the store could not be tidied");
                let _ = engine.rollback().await;
            }
            tidied = Instant::now();
        }
    }
    engine.close().await;
}

/// Why an attempt kept nothing.
#[derive(Debug)]
pub(super) enum Trouble {
    /// An item's own code panicked.
    Panicked,
    /// Before the commit.
    Before(Fault),
    /// In the commit: nobody knows what was kept.
    Commit(Fault),
}

/// One batch: together, or, when that fails, item by item.
async fn serve<E: Engine>(engine: &mut E, mut batch: Vec<Box<dyn Item>>, wakes: &Wakes) {
    metrics::histogram!("gatepost_store_batch_items")
        .record(f64::from(u32::try_from(batch.len()).unwrap_or(u32::MAX)));
    if batch.len() > 1 {
        match attempt_twice(engine, &mut batch).await {
            Ok(woken) => return acknowledge(engine, batch, &woken, wakes),
            Err(
                Trouble::Before(Fault::Lost(error))
                | Trouble::Commit(Fault::Lost(error) | Fault::Again(error) | Fault::Refused(error)),
            ) => {
                tracing::error!(%error, items = batch.len(), "the store failed a batch");
                for item in batch {
                    item.fail(error.clone());
                }
                return;
            }
            Err(Trouble::Panicked | Trouble::Before(Fault::Again(_) | Fault::Refused(_))) => {
                tracing::debug!(items = batch.len(), "a batch is repeated item by item");
            }
        }
    }
    for item in batch {
        serve_one(engine, item, wakes).await;
    }
}

/// One item in a commit of its own.
async fn serve_one<E: Engine>(engine: &mut E, item: Box<dyn Item>, wakes: &Wakes) {
    let name = item.name();
    let mut alone = vec![item];
    let mut attempts = ATTEMPTS;
    let error = loop {
        attempts -= 1;
        match attempt_twice(engine, &mut alone).await {
            Ok(woken) => return acknowledge(engine, alone, &woken, wakes),
            Err(Trouble::Before(Fault::Again(_))) if attempts > 0 => {}
            Err(Trouble::Panicked) => break StoreError::Panicked(name),
            Err(Trouble::Before(fault) | Trouble::Commit(fault)) => break fault.into_error(),
        }
    };
    tracing::error!(item = name, %error, "the store failed an item");
    for item in alone {
        item.fail(error.clone());
    }
}

fn acknowledge<E: Engine>(engine: &E, items: Vec<Box<dyn Item>>, woken: &[Wake], wakes: &Wakes) {
    for item in items {
        item.acknowledge();
    }
    if !woken.is_empty() {
        engine.committed(woken);
        wakes.publish(woken);
    }
}

/// An attempt, repeated once over a new connection when the old one turned out to be lost before the commit.
async fn attempt_twice<E: Engine>(engine: &mut E, items: &mut [Box<dyn Item>]) -> Result<Vec<Wake>, Trouble> {
    match attempt_cleanly(engine, items).await {
        Err(Trouble::Before(Fault::Lost(error))) => {
            tracing::warn!(%error, "the store connects anew");
            engine.reopen().await.map_err(Trouble::Before)?;
            attempt_cleanly(engine, items).await
        }
        other => other,
    }
}

/// An attempt after which the connection is usable again.
async fn attempt_cleanly<E: Engine>(
    engine: &mut E,
    items: &mut [Box<dyn Item>],
) -> Result<Vec<Wake>, Trouble> {
    let outcome = attempt(engine, items).await;
    let usable = match &outcome {
        Ok(_) | Err(Trouble::Before(Fault::Lost(_))) => true,
        // After a failed commit the pages in memory are not to be trusted either.
        Err(Trouble::Commit(_)) => false,
        Err(Trouble::Panicked | Trouble::Before(_)) => engine.rollback().await.is_ok(),
    };
    if !usable && let Err(fault) = engine.reopen().await {
        tracing::error!(error = %fault.into_error(), "the store cannot be reached");
    }
    outcome
}

async fn attempt<E: Engine>(engine: &mut E, items: &mut [Box<dyn Item>]) -> Result<Vec<Wake>, Trouble> {
    let touches = catch_unwind(AssertUnwindSafe(|| {
        let mut touches = Touches::default();
        for item in &*items {
            item.touches(&mut touches);
        }
        touches
    }))
    .map_err(|_| Trouble::Panicked)?;
    let loaded = engine.begin(&touches).await.map_err(Trouble::Before)?;
    let changes = catch_unwind(AssertUnwindSafe(|| {
        let mut workspace = Workspace::over(loaded);
        for item in items {
            item.apply(&mut workspace);
        }
        workspace.finish()
    }))
    .map_err(|_| Trouble::Panicked)?;
    if changes.is_empty() {
        engine.rollback().await.map_err(Trouble::Before)?;
        return Ok(Vec::new());
    }
    engine.conclude(&changes).await?;
    Ok(changes.wakes)
}
