//! How SQLite is asked: by connections that are read-only twice over (opened so, and `query_only`).

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use gatepost_channel::UtcMillis;
use sqlx::{QueryBuilder, Sqlite, SqlitePool};

use super::failed;
use crate::clock::Clock;
use crate::storage::StoreError;
use crate::storage::migrate::SQLITE;
use crate::storage::reader::{Ask, Keyed, Value};
use crate::storage::rows::grant::GrantRow;
use crate::storage::rows::log::{EventRow, HeadRow};
use crate::storage::rows::note::NoteRow;
use crate::storage::rows::request::{ConfirmationRow, DeliveryRow, VoteRow};
use crate::storage::rows::work::JobRow;

static DOSSIERS: LazyLock<String> = LazyLock::new(|| {
    format!(
        ")) SELECT 'confirmation', {confirmation} FROM request CROSS JOIN confirmation ON confirmation.id = request.id
         UNION ALL SELECT 'vote', {vote} FROM request CROSS JOIN vote ON vote.confirmation = request.id
         UNION ALL SELECT 'delivery', {delivery} FROM request CROSS JOIN delivery ON delivery.confirmation = request.id",
        confirmation = ConfirmationRow::SQLITE,
        vote = VoteRow::SQLITE,
        delivery = DeliveryRow::SQLITE,
    )
});

pub(super) struct Sqlites {
    pool: SqlitePool,
    clock: Arc<dyn Clock>,
}

impl Sqlites {
    pub(super) const fn new(pool: SqlitePool, clock: Arc<dyn Clock>) -> Self {
        Self { pool, clock }
    }
}

#[async_trait]
impl Ask for Sqlites {
    type Db = Sqlite;
    const CONTAINS: &'static str = "instr";
    const JOB: &'static str = JobRow::SQLITE;
    const GRANT: &'static str = GrantRow::SQLITE;
    const NOTE: &'static str = NoteRow::SQLITE;
    const EVENT: &'static str = EventRow::SQLITE;
    const HEAD: &'static str = HeadRow::SQLITE;

    fn dossiers() -> (&'static str, &'static str) {
        let before = "WITH request(id) AS MATERIALIZED (SELECT value FROM json_each(";
        (before, DOSSIERS.as_str())
    }

    fn bind(query: &mut QueryBuilder<Sqlite>, value: Value) {
        match value {
            Value::Text(text) => query.push_bind(text),
            Value::Number(number) => query.push_bind(number),
        };
    }

    async fn keyed(&self, mut query: QueryBuilder<Sqlite>) -> Result<Vec<Keyed>, StoreError> {
        let rows = query.build_query_as().fetch_all(&self.pool).await;
        rows.map_err(|error| failed(&error))
    }

    async fn numbers(
        &self,
        mut query: QueryBuilder<Sqlite>,
    ) -> Result<Vec<(Option<i64>, String)>, StoreError> {
        let rows = query.build_query_as().fetch_all(&self.pool).await;
        rows.map_err(|error| failed(&error))
    }

    async fn bodies(&self, mut query: QueryBuilder<Sqlite>) -> Result<Vec<(String, String)>, StoreError> {
        let rows = query.build_query_as().fetch_all(&self.pool).await;
        rows.map_err(|error| failed(&error))
    }

    async fn now(&self) -> Result<UtcMillis, StoreError> {
        Ok(self.clock.now())
    }

    fn schema() -> i64 {
        SQLITE.last().map_or(0, |migration| migration.version)
    }
}
