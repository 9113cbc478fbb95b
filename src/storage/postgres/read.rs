//! How PostgreSQL is asked: by connections whose transactions are read-only.

use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use gatepost_channel::UtcMillis;
use sqlx::{PgPool, Postgres, QueryBuilder};

use super::load::NOW;
use super::{failed, silent};
use crate::storage::migrate::POSTGRES;
use crate::storage::reader::{Ask, Keyed, Value};
use crate::storage::rows::log::{EventRow, HeadRow};
use crate::storage::rows::request::{ConfirmationRow, DeliveryRow, VoteRow};
use crate::storage::rows::work::JobRow;
use crate::storage::{ClockOffset, StoreError};

static DOSSIERS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "::json)) SELECT 'confirmation', {confirmation} FROM confirmation WHERE id IN (SELECT id FROM request)
         UNION ALL SELECT 'vote', {vote} FROM vote WHERE confirmation IN (SELECT id FROM request)
         UNION ALL SELECT 'delivery', {delivery} FROM delivery WHERE confirmation IN (SELECT id FROM request)",
        confirmation = ConfirmationRow::POSTGRES,
        vote = VoteRow::POSTGRES,
        delivery = DeliveryRow::POSTGRES,
    )
});

pub(super) struct Postgreses {
    pool: PgPool,
    offset: ClockOffset,
    patience: Duration,
}

impl Postgreses {
    pub(super) const fn new(pool: PgPool, offset: ClockOffset, patience: Duration) -> Self {
        Self {
            pool,
            offset,
            patience,
        }
    }

    async fn within<T>(&self, asked: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, StoreError> {
        match tokio::time::timeout(self.patience, asked).await {
            Ok(answer) => answer.map_err(|error| failed(&error)),
            Err(_) => Err(silent()),
        }
    }
}

#[async_trait]
impl Ask for Postgreses {
    type Db = Postgres;
    const CONTAINS: &'static str = "strpos";
    const JOB: &'static str = JobRow::POSTGRES;
    const EVENT: &'static str = EventRow::POSTGRES;
    const HEAD: &'static str = HeadRow::POSTGRES;

    fn dossiers() -> (&'static str, &'static str) {
        let before = "WITH request(id) AS MATERIALIZED (SELECT json_array_elements_text(";
        (before, DOSSIERS.as_str())
    }

    fn bind(query: &mut QueryBuilder<Postgres>, value: Value) {
        match value {
            Value::Text(text) => query.push_bind(text),
            Value::Number(number) => query.push_bind(number),
        };
    }

    async fn keyed(&self, mut query: QueryBuilder<Postgres>) -> Result<Vec<Keyed>, StoreError> {
        self.within(query.build_query_as().fetch_all(&self.pool)).await
    }

    async fn numbers(
        &self,
        mut query: QueryBuilder<Postgres>,
    ) -> Result<Vec<(Option<i64>, String)>, StoreError> {
        self.within(query.build_query_as().fetch_all(&self.pool)).await
    }

    async fn bodies(&self, mut query: QueryBuilder<Postgres>) -> Result<Vec<(String, String)>, StoreError> {
        self.within(query.build_query_as().fetch_all(&self.pool)).await
    }

    async fn now(&self) -> Result<UtcMillis, StoreError> {
        let now = sqlx::query_scalar(NOW)
            .bind(self.offset.get())
            .fetch_one(&self.pool);
        self.within(now).await.map(UtcMillis)
    }

    fn schema() -> i64 {
        POSTGRES.last().map_or(0, |migration| migration.version)
    }
}
