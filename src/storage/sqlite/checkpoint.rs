//! Moving the log into the file, beside the writer: a commit that had to do it would take as long as thousands of pages take, and
//! everybody who waits for it with it.
//!
//! A passive checkpoint blocks neither the writer nor the readers. Under steady writing it never reaches the end of the log, so the
//! log never begins anew; that is left to the writer ([`FULL_LOG`]), which then finds little left to move.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::Notify;

use super::describe;
use crate::lifecycle::Tasks;

/// Pages in the log that are worth moving.
const WORTH_MOVING: i64 = 1_000;
/// Pages in the log at which the writer moves what is left, after a commit, so that the log begins anew: 64 MiB.
pub(super) const FULL_LOG: &str = "16384";
/// How long the log grows before it is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How much of the log stands there and how much of it was moved; moves nothing.
const MEASURE: &str = "PRAGMA wal_checkpoint(NOOP)";
const MOVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// Tells that the log grew. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Log(Arc<Notify>);

impl Log {
    /// A commit was added.
    pub(super) fn grew(&self) {
        self.0.notify_one();
    }
}

/// Watches the log until the store is asked to stop.
pub(super) async fn watch(mut connection: SqliteConnection, log: Log, tasks: Tasks) {
    loop {
        tokio::select! {
            () = tasks.stopping() => break,
            () = log.0.notified() => {}
        }
        tokio::select! {
            () = tasks.stopping() => break,
            () = tokio::time::sleep(LOOK) => {}
        }
        if let Err(error) = look(&mut connection).await {
            // The writer moves the log itself when it is full.
            tracing::warn!(error = %describe(&error), "the log could not be moved into the file");
        }
    }
    // The writer may be emptying the log at this very moment; what this one says then no longer matters.
    drop(connection.close().await);
}

async fn look(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let (_, all, moved): (i64, i64, i64) = sqlx::query_as(MEASURE).fetch_one(&mut *connection).await?;
    if all - moved >= WORTH_MOVING {
        sqlx::query(MOVE).execute(connection).await?;
    }
    Ok(())
}
