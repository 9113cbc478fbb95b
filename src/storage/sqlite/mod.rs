//! SQLite: one file, one process, one writing connection, readers apart.
//!
//! WAL with `synchronous = FULL`: what was acknowledged survives a power cut. Every writing transaction begins IMMEDIATE, so it
//! never has to be upgraded from a reader and never meets a stale snapshot.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};

use super::batch::{Fault, Queue};
use super::open::{OpenError, Settings};
use super::reader::Reader;
use super::{Store, StoreError, Wakes};
use crate::lifecycle::Tasks;

mod checkpoint;
mod file;
mod load;
mod migrate;
mod read;
mod write;
mod writer;

/// How long a statement waits for somebody outside (a backup, a shell) who holds the file.
const BUSY: Duration = Duration::from_secs(5);
/// Prepared statements kept by each connection; all of ours fit.
const STATEMENTS: usize = 64;

/// The writer's page cache, in KiB as SQLite spells it: the open requests and the ends of all indexes fit.
const CACHE: &str = "-16384";

/// Opens the file, creating it at the first start, brings its schema up to date and starts the writer.
pub(super) async fn open(path: &Path, settings: &Settings, tasks: &Tasks) -> Result<Store, OpenError> {
    let lock = file::claim(path)?;
    let fresh = file::create(path)?;
    let mut connection = writing(path)
        .connect()
        .await
        .map_err(|error| OpenError::Unusable(describe(&error)))?;
    migrate::run(&mut connection, path, fresh, settings.clock.now()).await?;
    let readers = SqlitePoolOptions::new()
        .max_connections(settings.readers)
        // A file does not go away as a server does: asking before each use would only cost.
        .test_before_acquire(false)
        .connect_with(reading(path))
        .await
        .map_err(|error| OpenError::Unusable(describe(&error)))?;
    let clock = Arc::clone(&settings.clock);
    let wakes = Wakes::new();
    let log = checkpoint::Log::default();
    let mover = writing(path)
        .thread_name(|_| "gatepost-sqlite-checkpoint".to_owned())
        .connect()
        .await
        .map_err(|error| OpenError::Unusable(describe(&error)))?;
    tasks.spawn(checkpoint::watch(mover, log.clone(), tasks.clone()));
    let engine = writer::SqliteWriter::new(connection, writing(path), Arc::clone(&clock), log, lock);
    let queue = Queue::before(engine, wakes.clone(), settings.idle, tasks);
    let reader = Reader(read::Sqlites::new(readers, clock));
    Ok(Store::new(Arc::new(queue), Arc::new(reader), wakes))
}

/// Brings the schema up to date and nothing else.
pub(super) async fn migrate(path: &Path, settings: &Settings) -> Result<(), OpenError> {
    use sqlx::Connection as _;
    let _lock = file::claim(path)?;
    let fresh = file::create(path)?;
    let unusable = |error: sqlx::Error| OpenError::Unusable(describe(&error));
    let mut connection = writing(path).connect().await.map_err(unusable)?;
    migrate::run(&mut connection, path, fresh, settings.clock.now()).await?;
    connection.close().await.map_err(unusable)
}

fn writing(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY)
        .statement_cache_capacity(STATEMENTS)
        .pragma("wal_autocheckpoint", checkpoint::FULL_LOG)
        .pragma("cache_size", CACHE)
        .pragma("temp_store", "MEMORY")
        .pragma("trusted_schema", "OFF")
        .thread_name(|_| "gatepost-sqlite-writer".to_owned())
        .disable_statement_logging()
}

fn reading(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .read_only(true)
        .busy_timeout(BUSY)
        .statement_cache_capacity(STATEMENTS)
        .pragma("query_only", "ON")
        .pragma("trusted_schema", "OFF")
        .thread_name(|n| format!("gatepost-sqlite-reader-{n}"))
        .disable_statement_logging()
}

/// The driver's words for a failure. SQLite's messages name tables, columns and constraints, never values.
fn describe(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(database) => match database.code() {
            Some(code) => format!("SQLite {code}: {}", database.message()),
            None => database.message().to_owned(),
        },
        sqlx::Error::ColumnDecode { index, .. } => format!("column {index} has another type"),
        other => other.to_string(),
    }
}

fn failed(error: &sqlx::Error) -> StoreError {
    StoreError::Database(describe(error))
}

/// Sorts a failure: does it say something about the rows, or about the file and the connection?
fn fault(error: &sqlx::Error) -> Fault {
    /// Primary result codes that concern one statement: ERROR, ABORT, TOOBIG, CONSTRAINT, MISMATCH, RANGE.
    const OF_THE_STATEMENT: [i64; 6] = [1, 4, 18, 19, 20, 25];
    let store_error = failed(error);
    let sqlx::Error::Database(database) = error else {
        return Fault::Lost(store_error);
    };
    let primary = database
        .code()
        .and_then(|code| code.parse::<i64>().ok())
        .map(|code| code & 0xff);
    match primary {
        Some(code) if OF_THE_STATEMENT.contains(&code) => Fault::Refused(store_error),
        _ => Fault::Lost(store_error),
    }
}

/// A connection that is being replaced is closed first; what it says then no longer matters.
async fn reconnect(
    old: Option<SqliteConnection>,
    options: &SqliteConnectOptions,
) -> Result<SqliteConnection, Fault> {
    use sqlx::Connection as _;
    if let Some(old) = old {
        let _ = old.close().await;
    }
    options
        .connect()
        .await
        .map_err(|error| Fault::Lost(failed(&error)))
}
