//! The one connection of this process that writes.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection as _, Executor as _};

use super::hint::Hints;
use super::load::{self, NOW};
use super::{failed, fault, silent, write, writing};
use crate::storage::batch::{Engine, Fault};
use crate::storage::{Changes, ClockOffset, Loaded, StoreError, Touches, Wake};

/// Accepted callbacks forgotten in one bite; `$1` is the clock.
const FORGET: &str = "DELETE FROM replay WHERE (app_kind, app_id, press) IN (
  SELECT app_kind, app_id, press FROM replay WHERE forget_at <= $1 ORDER BY forget_at LIMIT 500 FOR UPDATE SKIP LOCKED)";
/// Between two attempts to connect: doubled up to the longest, so that a server that is down is not hammered.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Attempts before the waiting items are failed; they must not wait longer than their callers.
const ATTEMPTS: u32 = 3;

pub(super) struct PostgresWriter {
    /// `None` only between a lost connection and the next.
    connection: Option<PgConnection>,
    options: PgConnectOptions,
    offset: ClockOffset,
    hints: Hints,
    pause: Duration,
    /// How long one step may take.
    patience: Duration,
    /// Rows that make no sense; they are not chosen again.
    spoiled: Vec<String>,
}

/// A step whose end does not come has lost its connection.
async fn within<T>(patience: Duration, step: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    tokio::time::timeout(patience, step)
        .await
        .unwrap_or_else(|_| Err(Fault::Lost(silent())))
}

impl PostgresWriter {
    pub(super) const fn new(
        connection: PgConnection,
        options: PgConnectOptions,
        offset: ClockOffset,
        hints: Hints,
        patience: Duration,
    ) -> Self {
        Self {
            connection: Some(connection),
            options,
            offset,
            hints,
            pause: FIRST_PAUSE,
            patience,
            spoiled: Vec::new(),
        }
    }

    fn connection(&mut self) -> Result<&mut PgConnection, Fault> {
        self.connection
            .as_mut()
            .ok_or_else(|| Fault::Lost(StoreError::Database("no connection".to_owned())))
    }

    async fn order(&mut self, sql: &'static str) -> Result<(), Fault> {
        let patience = self.patience;
        let connection = self.connection()?;
        let ordered = async {
            match connection.execute(sql).await {
                Ok(_) => Ok(()),
                Err(error) => Err(Fault::Lost(failed(&error))),
            }
        };
        within(patience, ordered).await
    }
}

impl Engine for PostgresWriter {
    async fn begin(&mut self, touches: &Touches) -> Result<Loaded, Fault> {
        self.order("BEGIN").await?;
        let (offset, patience) = (self.offset.get(), self.patience);
        let mut spoiled = std::mem::take(&mut self.spoiled);
        let loaded = match self.connection() {
            Ok(connection) => within(patience, load::load(connection, touches, offset, &mut spoiled)).await,
            Err(fault) => Err(fault),
        };
        self.spoiled = spoiled;
        loaded
    }

    async fn write(&mut self, changes: &Changes) -> Result<(), Fault> {
        within(self.patience, write::write(self.connection()?, changes)).await
    }

    async fn commit(&mut self) -> Result<(), Fault> {
        self.order("COMMIT").await
    }

    async fn rollback(&mut self) -> Result<(), Fault> {
        self.order("ROLLBACK").await
    }

    async fn reopen(&mut self) -> Result<(), Fault> {
        if let Some(old) = self.connection.take() {
            // What an old connection says when it is let go no longer matters.
            drop(old.close_hard().await);
        }
        let mut attempts = ATTEMPTS;
        loop {
            attempts -= 1;
            match writing(&self.options).await {
                Ok(fresh) => {
                    self.connection = Some(fresh);
                    self.pause = FIRST_PAUSE;
                    return Ok(());
                }
                Err(error) if attempts == 0 => return Err(Fault::Lost(failed(&error))),
                Err(_) => tokio::time::sleep(self.pause).await,
            }
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn tidy(&mut self) -> Result<(), Fault> {
        let (offset, patience) = (self.offset.get(), self.patience);
        let connection = self.connection()?;
        let tidied = async {
            let now = sqlx::query_scalar(NOW)
                .bind(offset)
                .fetch_one(&mut *connection)
                .await;
            let now: i64 = now.map_err(|error| fault(&error))?;
            let done = sqlx::query(FORGET).bind(now).execute(connection).await;
            done.map(drop).map_err(|error| fault(&error))
        };
        within(patience, tidied).await
    }

    fn committed(&self, _wakes: &[Wake]) {
        self.hints.ring();
    }

    async fn close(self) {
        if let Some(connection) = self.connection
            && let Err(error) = connection.close().await
        {
            tracing::warn!(error = %failed(&error), "the database was not left cleanly");
        }
    }
}
