//! The bare writer's SQLite: the settings of the product's writing connection, two tables, two statements.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _};

use super::writer::Engine;

const TABLES: &[&str] = &[
    "CREATE TABLE request (id TEXT NOT NULL PRIMARY KEY, args TEXT NOT NULL, status TEXT NOT NULL, expires_at INTEGER NOT NULL, decided_at INTEGER) STRICT",
    "CREATE TABLE event (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, actor TEXT NOT NULL, request TEXT NOT NULL, data TEXT NOT NULL) STRICT",
];
const FILL: &str =
    "INSERT INTO request (id, args, status, expires_at) SELECT value, $2, 'pending', $3 FROM json_each($1)";
const DECIDE: &str = "UPDATE request SET status = 'approved', decided_at = $2 FROM json_each($1) AS wanted
  WHERE request.id = wanted.value AND request.status = 'pending' AND request.expires_at > $2";
const AUDIT: &str = "INSERT INTO event (at, kind, actor, request, data)
  SELECT $2, 'confirmation.approved', 'operator:dana', value, '{\"decision\":\"approve\",\"surface\":\"card\"}' FROM json_each($1)";

/// A bare connection over a fresh file.
pub struct Sqlite(SqliteConnection);

impl Sqlite {
    /// Opens it.
    pub async fn open(path: &Path) -> Result<Self, sqlx::Error> {
        let mut connection = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5))
            .statement_cache_capacity(64)
            .pragma("wal_autocheckpoint", "4000")
            .disable_statement_logging()
            .connect()
            .await?;
        for table in TABLES {
            sqlx::query(*table).execute(&mut connection).await?;
        }
        Ok(Self(connection))
    }

    /// Adds undecided requests of 600 B arguments.
    pub async fn fill(&mut self, ids: &[String]) -> Result<(), sqlx::Error> {
        let args = "x".repeat(600);
        for some in ids.chunks(1000) {
            sqlx::query(FILL)
                .bind(serde_json::to_string(some).unwrap_or_default())
                .bind(&args)
                .bind(i64::MAX)
                .execute(&mut self.0)
                .await?;
        }
        Ok(())
    }
}

impl Engine for Sqlite {
    async fn decide(&mut self, ids: &[String]) -> Result<u64, sqlx::Error> {
        let set = serde_json::to_string(ids).unwrap_or_default();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut self.0).await?;
        let decided = sqlx::query(DECIDE)
            .bind(&set)
            .bind(1_i64)
            .execute(&mut self.0)
            .await?;
        sqlx::query(AUDIT)
            .bind(&set)
            .bind(1_i64)
            .execute(&mut self.0)
            .await?;
        sqlx::query("COMMIT").execute(&mut self.0).await?;
        Ok(decided.rows_affected())
    }

    async fn close(self) {
        drop(self.0.close().await);
    }
}
