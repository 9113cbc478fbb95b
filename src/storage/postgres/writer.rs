//! The one connection of this process that writes.

use std::sync::LazyLock;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection as _, Executor as _};

use super::hint::Hints;
use super::load::{self, NOW};
use super::plans::{self, Plans};
use super::{failed, fault, silent, write, writing};
use crate::storage::batch::{Engine, Fault, Trouble};
use crate::storage::{Changes, ClockOffset, Loaded, StoreError, Touches, Wake};

/// Accepted callbacks forgotten in one bite.
static FORGET: LazyLock<String> = LazyLock::new(|| {
    format!(
        "DELETE FROM replay WHERE (app_kind, app_id, press) IN (
           SELECT app_kind, app_id, press FROM replay WHERE forget_at <= ({NOW}) ORDER BY forget_at LIMIT 500 FOR UPDATE SKIP LOCKED)"
    )
});
/// Tallies of which nothing counts any more, forgotten in one bite.
static FORGET_TALLIES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "DELETE FROM tally WHERE (org, counter, scope, token, person) IN (
           SELECT org, counter, scope, token, person FROM tally WHERE forget_at <= ({NOW}) ORDER BY forget_at LIMIT 500
           FOR UPDATE SKIP LOCKED)"
    )
});
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
    plans: Plans,
    /// Rows that make no sense; they are not chosen again.
    spoiled: Vec<String>,
}

/// A step whose end does not come has lost its connection.
async fn within<T>(patience: Duration, step: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    tokio::time::timeout(patience, step)
        .await
        .unwrap_or_else(|_| Err(Fault::Lost(silent())))
}

async fn fresh(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    let mut connection = writing(options).await?;
    connection.execute(plans::BY_KEY).await?;
    Ok(connection)
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
            plans: Plans::fresh(),
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
        let begin = self.plans.begin();
        self.order(begin).await?;
        let (offset, patience) = (self.offset.get(), self.patience);
        let mut spoiled = std::mem::take(&mut self.spoiled);
        let loaded = match self.connection() {
            Ok(connection) => within(patience, load::load(connection, touches, offset, &mut spoiled)).await,
            Err(fault) => Err(fault),
        };
        self.spoiled = spoiled;
        loaded
    }

    async fn conclude(&mut self, changes: &Changes) -> Result<(), Trouble> {
        let patience = self.patience;
        let connection = self.connection().map_err(Trouble::Before)?;
        let written = within(patience, write::write(connection, changes)).await;
        self.plans.wrote(written.map_err(Trouble::Before)?);
        self.order("COMMIT").await.map_err(Trouble::Commit)
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
            match fresh(&self.options).await {
                Ok(fresh) => {
                    self.connection = Some(fresh);
                    self.plans = Plans::fresh();
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
        self.plans.paused();
        let (offset, patience) = (self.offset.get(), self.patience);
        let connection = self.connection()?;
        let tidied = async {
            for forget in [&FORGET, &FORGET_TALLIES] {
                let forget = sqlx::query(forget.as_str()).bind(offset);
                let done = forget.execute(&mut *connection).await;
                done.map_err(|error| fault(&error))?;
            }
            Ok(())
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
