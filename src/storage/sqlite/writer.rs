//! The one connection that writes.

use std::sync::Arc;

use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use super::checkpoint::Log;
use super::file::Claim;
use super::{failed, fault, load, reconnect, write};
use crate::clock::Clock;
use crate::storage::batch::{Engine, Fault, Trouble};
use crate::storage::{Changes, Loaded, StoreError, Touches, Wake};

/// Accepted callbacks looked at in one bite.
const BITE: i64 = 5_000;
/// Where the bite ends that begins behind `$1`, `$2`, `$3`; nothing when it reaches the end of the memory.
const END_OF_BITE: &str =
    "SELECT app_kind, app_id, press FROM replay WHERE (app_kind, app_id, press) > ($1, $2, $3)
  ORDER BY app_kind, app_id, press LIMIT 1 OFFSET $4";
/// Forgets what may be forgotten by `$1` behind one key and up to another.
const FORGET: &str = "DELETE FROM replay WHERE forget_at <= $1
  AND (app_kind, app_id, press) > ($2, $3, $4) AND (app_kind, app_id, press) <= ($5, $6, $7)";
const FORGET_TO_THE_END: &str =
    "DELETE FROM replay WHERE forget_at <= $1 AND (app_kind, app_id, press) > ($2, $3, $4)";

/// A key of the replay memory.
type Press = (String, String, String);

/// Tallies of which nothing counts any more.
const FORGET_TALLIES: &str = "DELETE FROM tally WHERE (org, counter, scope, token, person) IN (
  SELECT org, counter, scope, token, person FROM tally WHERE forget_at <= $1 ORDER BY forget_at LIMIT 500)";

pub(super) struct SqliteWriter {
    /// `None` only between a lost connection and the next.
    connection: Option<SqliteConnection>,
    options: SqliteConnectOptions,
    clock: Arc<dyn Clock>,
    log: Log,
    /// Rows that make no sense; they are not chosen again.
    spoiled: Vec<String>,
    /// How far the replay memory was walked.
    walked: Press,
    _claim: Claim,
}

impl SqliteWriter {
    pub(super) const fn new(
        connection: SqliteConnection,
        options: SqliteConnectOptions,
        clock: Arc<dyn Clock>,
        log: Log,
        claim: Claim,
    ) -> Self {
        Self {
            connection: Some(connection),
            options,
            clock,
            log,
            spoiled: Vec::new(),
            walked: (String::new(), String::new(), String::new()),
            _claim: claim,
        }
    }

    fn connection(&mut self) -> Result<&mut SqliteConnection, Fault> {
        self.connection
            .as_mut()
            .ok_or_else(|| Fault::Lost(StoreError::Database("no connection".to_owned())))
    }

    /// Walks on through the replay memory and forgets what may be forgotten on the way.
    async fn forget(&mut self) -> Result<(), Fault> {
        let now = self.clock.now();
        let from = std::mem::take(&mut self.walked);
        let connection = self.connection()?;
        let end: Option<Press> = sqlx::query_as(END_OF_BITE)
            .bind(&from.0)
            .bind(&from.1)
            .bind(&from.2)
            .bind(BITE - 1)
            .fetch_optional(&mut *connection)
            .await
            .map_err(|error| fault(&error))?;
        let statement = if end.is_some() { FORGET } else { FORGET_TO_THE_END };
        let mut forget = sqlx::query(statement)
            .bind(now.0)
            .bind(from.0)
            .bind(from.1)
            .bind(from.2);
        if let Some(end) = &end {
            forget = forget.bind(&end.0).bind(&end.1).bind(&end.2);
        }
        forget.execute(connection).await.map_err(|error| fault(&error))?;
        self.walked = end.unwrap_or_default();
        Ok(())
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

    async fn conclude(&mut self, changes: &Changes) -> Result<(), Trouble> {
        let connection = self.connection().map_err(Trouble::Before)?;
        write::conclude(connection, changes).await?;
        self.log.grew();
        Ok(())
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
        self.forget().await?;
        let now = self.clock.now();
        let tallies = sqlx::query(FORGET_TALLIES).bind(now.0);
        let done = tallies.execute(self.connection()?).await;
        done.map_err(|error| fault(&error))?;
        self.order("PRAGMA wal_checkpoint(PASSIVE)").await
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
