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
use crate::storage::rows::grant::GrantRow;
use crate::storage::rows::log::{EventRow, HeadRow};
use crate::storage::rows::note::NoteRow;
use crate::storage::rows::request::{ConfirmationRow, DeliveryRow, VoteRow};
use crate::storage::rows::work::JobRow;
use crate::storage::{ClockOffset, StoreError};

/// Each look is a subquery of its own for one request, so that it goes from key to key over an index however small the tables were
/// when it was planned.
static DOSSIERS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "::json)) SELECT 'confirmation', met.body FROM request
           CROSS JOIN LATERAL (SELECT {confirmation} AS body FROM confirmation WHERE confirmation.id = request.id OFFSET 0) AS met
         UNION ALL SELECT 'vote', met.body FROM request
           CROSS JOIN LATERAL (SELECT {vote} AS body FROM vote WHERE vote.confirmation = request.id OFFSET 0) AS met
         UNION ALL SELECT 'delivery', met.body FROM request
           CROSS JOIN LATERAL (SELECT {delivery} AS body FROM delivery WHERE delivery.confirmation = request.id OFFSET 0) AS met",
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
    const GRANT: &'static str = GrantRow::POSTGRES;
    const NOTE: &'static str = NoteRow::POSTGRES;
    const EVENT: &'static str = EventRow::POSTGRES;
    const HEAD: &'static str = HeadRow::POSTGRES;

    fn dossiers() -> (&'static str, &'static str) {
        let before = "WITH request(id) AS MATERIALIZED (SELECT DISTINCT json_array_elements_text(";
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
