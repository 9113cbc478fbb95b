//! The bare PostgreSQL: the batching writer with `unnest` (L2), single updates over many connections (L5), and one statement for
//! 256 decisions on one connection (L6).

use std::time::Instant;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::task::JoinSet;

use super::writer::{BATCH, Engine};
use crate::bench::BenchError;
use crate::bench::sample::Sample;

const TABLES: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS request (id TEXT PRIMARY KEY, args TEXT NOT NULL, status TEXT NOT NULL, expires_at BIGINT NOT NULL, decided_at BIGINT)",
    "CREATE TABLE IF NOT EXISTS event (seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at BIGINT NOT NULL, kind TEXT NOT NULL, actor TEXT NOT NULL, request TEXT NOT NULL, data TEXT NOT NULL)",
];
const FILL: &str = "INSERT INTO request (id, args, status, expires_at) SELECT id, $2, 'pending', $3 FROM unnest($1::text[]) AS new(id)";
const DECIDE: &str =
    "UPDATE request SET status = 'approved', decided_at = $2 FROM unnest($1::text[]) AS wanted(id)
  WHERE request.id = wanted.id AND request.status = 'pending' AND request.expires_at > $2";
const AUDIT: &str = "INSERT INTO event (at, kind, actor, request, data)
  SELECT $2, 'confirmation.approved', 'operator:dana', id, '{\"decision\":\"approve\",\"surface\":\"card\"}' FROM unnest($1::text[]) AS new(id)";
const ONE: &str = "UPDATE request SET status = 'approved', decided_at = $2 WHERE id = $1 AND status = 'pending' AND expires_at > $2";

/// A bare connection.
pub struct Postgres(PgConnection);

impl Postgres {
    /// Opens it.
    pub async fn open(options: &PgConnectOptions) -> Result<Self, sqlx::Error> {
        let mut connection = options.clone().disable_statement_logging().connect().await?;
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
                .bind(some)
                .bind(&args)
                .bind(i64::MAX)
                .execute(&mut self.0)
                .await?;
        }
        Ok(())
    }

    /// L6: one statement decides up to 256, committed by itself, one after the other.
    pub async fn unnest(&mut self, ids: &[String]) -> Result<f64, sqlx::Error> {
        let began = Instant::now();
        for some in ids.chunks(BATCH) {
            sqlx::query(DECIDE)
                .bind(some)
                .bind(1_i64)
                .execute(&mut self.0)
                .await?;
        }
        Ok(super::super::sample::float(ids.len()) / began.elapsed().as_secs_f64())
    }
}

/// L5: single updates, each committed by itself, over so many connections.
pub async fn updates(
    options: &PgConnectOptions,
    ids: Vec<String>,
    connections: usize,
) -> Result<Sample, BenchError> {
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(options.clone().disable_statement_logging().connect().await?);
    }
    let share = ids.len().div_ceil(connections).max(1);
    let mut lanes = JoinSet::new();
    let began = Instant::now();
    for (mut connection, ids) in open.into_iter().zip(ids.chunks(share).map(<[String]>::to_vec)) {
        lanes.spawn(async move {
            let mut times = Vec::new();
            for id in ids {
                let start = Instant::now();
                sqlx::query(ONE)
                    .bind(id)
                    .bind(1_i64)
                    .execute(&mut connection)
                    .await?;
                times.push(start.elapsed());
            }
            Ok::<_, sqlx::Error>(times)
        });
    }
    let mut times = Vec::new();
    while let Some(lane) = lanes.join_next().await {
        times.extend(lane.map_err(|error| BenchError::other(&error))??);
    }
    Ok(Sample::new(times, began.elapsed()))
}

impl Engine for Postgres {
    async fn decide(&mut self, ids: &[String]) -> Result<u64, sqlx::Error> {
        sqlx::query("BEGIN").execute(&mut self.0).await?;
        let decided = sqlx::query(DECIDE)
            .bind(ids)
            .bind(1_i64)
            .execute(&mut self.0)
            .await?;
        sqlx::query(AUDIT)
            .bind(ids)
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
