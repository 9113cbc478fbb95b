//! Bringing a file's schema up to date: after a copy, in one transaction.

use std::path::Path;

use gatepost_channel::UtcMillis;
use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;

use super::{describe, file};
use crate::storage::migrate::{Applied, Known, SQLITE, pending};
use crate::storage::open::OpenError;

const CREATE_LEDGER: &str = "CREATE TABLE IF NOT EXISTS schema_migration (
  version INTEGER NOT NULL CONSTRAINT schema_migration_pk PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL
) STRICT";
const LEDGER: &str = "SELECT version, checksum FROM schema_migration ORDER BY version";
const NOTE: &str =
    "INSERT INTO schema_migration (version, name, checksum, applied_at) VALUES ($1, $2, $3, $4)";

/// Applies what the file lacks.
pub(super) async fn run(
    connection: &mut SqliteConnection,
    path: &Path,
    fresh: bool,
    now: UtcMillis,
) -> Result<(), OpenError> {
    let failed = |error: sqlx::Error| OpenError::Unusable(describe(&error));
    sqlx::query(CREATE_LEDGER)
        .execute(&mut *connection)
        .await
        .map_err(failed)?;
    let lacking = pending(&SQLITE, &applied(connection).await.map_err(failed)?)?;
    let Some(next) = lacking.first() else {
        return Ok(());
    };
    if !fresh {
        copy(connection, path, next).await?;
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
    for migration in lacking {
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

/// What the file remembers.
pub(super) async fn applied(connection: &mut SqliteConnection) -> Result<Vec<Applied>, sqlx::Error> {
    let rows: Vec<(i64, String)> = sqlx::query_as(LEDGER).fetch_all(connection).await?;
    Ok(rows
        .into_iter()
        .map(|(version, checksum)| Applied { version, checksum })
        .collect())
}

async fn copy(connection: &mut SqliteConnection, path: &Path, next: &Known) -> Result<(), OpenError> {
    let copy = file::place_for_copy(path, &format!("before-{:04}", next.version))?;
    let Some(name) = copy.to_str() else {
        return Err(OpenError::Unusable(
            "the path of the database is not UTF-8".to_owned(),
        ));
    };
    sqlx::query("VACUUM INTO $1")
        .bind(name)
        .execute(connection)
        .await
        .map_err(|error| OpenError::Unusable(describe(&error)))?;
    tracing::info!(copy = name, "the database was copied before its schema changes");
    Ok(())
}
