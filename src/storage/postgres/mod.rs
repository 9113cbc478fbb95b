//! PostgreSQL: many processes, each with one writing connection, one that listens, one that tells, and readers apart.
//!
//! Locks are taken in one order everywhere: chain heads by organisation, then requests, then jobs, then outbox rows. All locks
//! are the transaction's own; nothing depends on the session but LISTEN, and that is a hint only.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};

use super::batch::{Fault, Queue};
use super::open::{OpenError, Settings};
use super::reader::Reader;
use super::{Store, StoreError, Wakes};
use crate::lifecycle::Tasks;

mod find;
mod hint;
mod load;
mod migrate;
mod plans;
mod pooler;
mod read;
mod write;
mod writer;

/// How long a connection may take to be made, and a reader to become free.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a writing connection is told first. An abandoned transaction must not hold its locks, a commit must last.
const WRITES: &str = "SET default_transaction_isolation = 'read committed'; SET lock_timeout = '10s';
  SET idle_in_transaction_session_timeout = '60s'; SET synchronous_commit = 'on'";
/// What a reading connection is told first.
const READS: &str = "SET default_transaction_read_only = on; SET statement_timeout = '30s'";

/// Connects, brings the schema up to date if that is allowed, and starts the writer and the tasks of the hints.
pub(super) async fn open(settings: &Settings, tasks: &Tasks) -> Result<Store, OpenError> {
    let options = options(&settings.url)?;
    let unusable = |error: sqlx::Error| OpenError::Unusable(describe(&error));
    let mut connection = writing(&options).await.map_err(unusable)?;
    pooler::refuse(&mut connection, &options).await?;
    migrate::run(&mut connection, settings.migrate, settings.clock.now()).await?;
    connection.execute(plans::BY_KEY).await.map_err(unusable)?;
    let readers = PgPoolOptions::new()
        .max_connections(settings.readers)
        .acquire_timeout(PATIENCE)
        .after_connect(|connection, _| Box::pin(async move { connection.execute(READS).await.map(drop) }))
        .connect_with(options.clone())
        .await
        .map_err(unusable)?;
    let wakes = Wakes::new();
    let hints = hint::start(&options, &wakes, tasks);
    let patience = settings.patience;
    let engine = writer::PostgresWriter::new(connection, options, settings.offset.clone(), hints, patience);
    let queue = Queue::before(engine, wakes.clone(), settings.idle, tasks);
    let reader = Reader(read::Postgreses::new(readers, settings.offset.clone(), patience));
    Ok(Store::new(Arc::new(queue), Arc::new(reader), wakes))
}

/// Brings the schema up to date and nothing else.
pub(super) async fn migrate(settings: &Settings) -> Result<(), OpenError> {
    let unusable = |error: sqlx::Error| OpenError::Unusable(describe(&error));
    let mut connection = writing(&options(&settings.url)?).await.map_err(unusable)?;
    migrate::run(&mut connection, true, settings.clock.now()).await?;
    connection.close().await.map_err(unusable)
}

fn options(url: &str) -> Result<PgConnectOptions, OpenError> {
    let options = PgConnectOptions::from_str(url).map_err(|_| {
        OpenError::Url("spell it postgres://USER:PASSWORD@HOST:5432/DATABASE, special characters of the password percent-encoded")
    })?;
    // Poolers refuse parameters that they do not know before we could say what is wrong with them.
    Ok(options
        .application_name("gatepost")
        .extra_float_digits(None)
        .disable_statement_logging())
}

async fn writing(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    let mut connection = connect(options).await?;
    connection.execute(WRITES).await?;
    Ok(connection)
}

async fn connect(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    tokio::time::timeout(PATIENCE, options.connect())
        .await
        .unwrap_or_else(|_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))
}

/// The driver's words for a failure, without values: PostgreSQL's own messages may hold some, its codes and names do not.
fn describe(error: &sqlx::Error) -> String {
    let sqlx::Error::Database(database) = error else {
        return match error {
            sqlx::Error::Configuration(_) => "the address cannot be used".to_owned(),
            sqlx::Error::ColumnDecode { index, .. } => format!("column {index} has another type"),
            other => other.to_string(),
        };
    };
    let code = database.code().unwrap_or_default();
    let about_us = ["08", "28", "3D", "53", "55", "57"]
        .iter()
        .any(|class| code.starts_with(class));
    match (database.constraint(), database.table()) {
        _ if about_us => format!("PostgreSQL {code}: {}", database.message()),
        (Some(constraint), _) => format!("PostgreSQL {code}: constraint {constraint}"),
        (None, Some(table)) => format!("PostgreSQL {code}: table {table}"),
        (None, None) => format!("PostgreSQL {code}"),
    }
}

/// Nothing came back within the patience of the settings.
fn silent() -> StoreError {
    StoreError::Database("PostgreSQL did not answer in time".to_owned())
}

fn failed(error: &sqlx::Error) -> StoreError {
    StoreError::Database(describe(error))
}

/// Sorts a failure: does it say something about the rows, about the moment, or about the server and the connection?
fn fault(error: &sqlx::Error) -> Fault {
    let store_error = failed(error);
    let sqlx::Error::Database(database) = error else {
        return Fault::Lost(store_error);
    };
    let code = database.code().unwrap_or_default();
    match &*code {
        "40001" | "40P01" => Fault::Again(store_error),
        // Data, integrity, syntax and access, raised by a trigger of ours.
        code if ["22", "23", "42", "P0"]
            .iter()
            .any(|class| code.starts_with(class)) =>
        {
            Fault::Refused(store_error)
        }
        _ => Fault::Lost(store_error),
    }
}
