//! Bringing the schema up to date: one transaction under one advisory lock, so replicas that start together come up together.

use gatepost_channel::UtcMillis;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Executor as _};

use super::describe;
use crate::storage::migrate::{Applied, POSTGRES, pending};
use crate::storage::open::OpenError;

/// "gatepost", as eight bytes.
const LOCK: i64 = 0x6761_7465_706f_7374;
const TRY: &str = "SELECT pg_try_advisory_xact_lock($1)";
const WAIT: &str = "SELECT pg_advisory_xact_lock($1)";
const CREATE_LEDGER: &str = "CREATE TABLE IF NOT EXISTS schema_migration (
  version BIGINT NOT NULL CONSTRAINT schema_migration_pk PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL
)";
const IS_THERE: &str = "SELECT to_regclass('schema_migration') IS NOT NULL";
const LEDGER: &str = "SELECT version, checksum FROM schema_migration ORDER BY version";
const NOTE: &str =
    "INSERT INTO schema_migration (version, name, checksum, applied_at) VALUES ($1, $2, $3, $4)";

/// Applies what the database lacks, or refuses when it lacks something and that is not allowed.
pub(super) async fn run(
    connection: &mut PgConnection,
    allowed: bool,
    now: UtcMillis,
) -> Result<(), OpenError> {
    let failed = |error: sqlx::Error| OpenError::Unusable(describe(&error));
    if pending(&POSTGRES, &applied(connection).await.map_err(failed)?)?.is_empty() {
        return Ok(());
    }
    if !allowed {
        return Err(OpenError::NotMigrated);
    }
    let mut transaction = connection.begin().await.map_err(failed)?;
    // Another migration may take longer than any of our own statements.
    transaction
        .execute("SET LOCAL lock_timeout = 0")
        .await
        .map_err(failed)?;
    let free: bool = sqlx::query_scalar(TRY)
        .bind(LOCK)
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed)?;
    if !free {
        tracing::info!("another gatepost brings the schema up to date: waiting for its lock");
        sqlx::query(WAIT)
            .bind(LOCK)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
    }
    transaction.execute(CREATE_LEDGER).await.map_err(failed)?;
    // What the other one did meanwhile is seen now.
    for migration in pending(&POSTGRES, &applied(&mut transaction).await.map_err(failed)?)? {
        tracing::info!(migration = migration.name, "the schema is brought up to date");
        sqlx::raw_sql(migration.sql)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        sqlx::query(NOTE)
            .bind(migration.version)
            .bind(migration.name)
            .bind(migration.checksum())
            .bind(now.0)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}

/// What the database remembers.
async fn applied(connection: &mut PgConnection) -> Result<Vec<Applied>, sqlx::Error> {
    if !sqlx::query_scalar(IS_THERE).fetch_one(&mut *connection).await? {
        return Ok(Vec::new());
    }
    let rows: Vec<(i64, String)> = sqlx::query_as(LEDGER).fetch_all(connection).await?;
    Ok(rows
        .into_iter()
        .map(|(version, checksum)| Applied { version, checksum })
        .collect())
}
