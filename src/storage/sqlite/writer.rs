//! The one connection that writes.

use std::sync::Arc;

use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use super::file::Claim;
use super::{failed, fault, load, reconnect, write};
use crate::clock::Clock;
use crate::storage::batch::{Engine, Fault};
use crate::storage::{Changes, Loaded, StoreError, Touches, Wake};

/// Accepted callbacks forgotten in one bite.
const FORGET: &str = "DELETE FROM replay WHERE (app_kind, app_id, press) IN (
  SELECT app_kind, app_id, press FROM replay WHERE forget_at <= $1 ORDER BY forget_at LIMIT 500)";

pub(super) struct SqliteWriter {
    /// `None` only between a lost connection and the next.
    connection: Option<SqliteConnection>,
    options: SqliteConnectOptions,
    clock: Arc<dyn Clock>,
    /// Rows that make no sense; they are not chosen again.
    spoiled: Vec<String>,
    _claim: Claim,
}

impl SqliteWriter {
    pub(super) const fn new(
        connection: SqliteConnection,
        options: SqliteConnectOptions,
        clock: Arc<dyn Clock>,
        claim: Claim,
    ) -> Self {
        Self {
            connection: Some(connection),
            options,
            clock,
            spoiled: Vec::new(),
            _claim: claim,
        }
    }

    fn connection(&mut self) -> Result<&mut SqliteConnection, Fault> {
        self.connection
            .as_mut()
            .ok_or_else(|| Fault::Lost(StoreError::Database("no connection".to_owned())))
    }

    async fn order(&mut self, sql: &'static str) -> Result<(), Fault> {
        let connection = self.connection()?;
        match sqlx::query(sql).execute(connection).await {
            Ok(_) => Ok(()),
            Err(error) => Err(Fault::Lost(failed(&error))),
        }
    }
}

impl Engine for SqliteWriter {
    async fn begin(&mut self, touches: &Touches) -> Result<Loaded, Fault> {
        let clock = Arc::clone(&self.clock);
        let mut spoiled = std::mem::take(&mut self.spoiled);
        let loaded = match self.connection() {
            Ok(connection) => load::begin(connection, touches, &*clock, &mut spoiled).await,
            Err(fault) => Err(fault),
        };
        self.spoiled = spoiled;
        loaded
    }

    async fn write(&mut self, changes: &Changes) -> Result<(), Fault> {
        write::write(self.connection()?, changes).await
    }

    async fn commit(&mut self) -> Result<(), Fault> {
        self.order("COMMIT").await
    }

    async fn rollback(&mut self) -> Result<(), Fault> {
        self.order("ROLLBACK").await
    }

    async fn reopen(&mut self) -> Result<(), Fault> {
        let old = self.connection.take();
        self.connection = Some(reconnect(old, &self.options).await?);
        Ok(())
    }

    async fn tidy(&mut self) -> Result<(), Fault> {
        let now = self.clock.now();
        let connection = self.connection()?;
        for (statement, bound) in [(FORGET, Some(now.0)), ("PRAGMA wal_checkpoint(PASSIVE)", None)] {
            let mut query = sqlx::query(statement);
            if let Some(bound) = bound {
                query = query.bind(bound);
            }
            query
                .execute(&mut *connection)
                .await
                .map_err(|error| fault(&error))?;
        }
        Ok(())
    }

    fn committed(&self, _wakes: &[Wake]) {
        // The file serves this process alone: nobody else waits.
    }

    async fn close(self) {
        let Some(mut connection) = self.connection else {
            return;
        };
        // The file alone holds everything after a stop, so that a copy of it is a backup.
        let emptied = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
            .execute(&mut connection)
            .await;
        if let Err(error) = emptied.and(connection.close().await) {
            tracing::warn!(error = %failed(&error), "the database was not closed cleanly");
        }
    }
}
