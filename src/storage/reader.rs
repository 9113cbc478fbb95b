//! The reading side, once for both databases: a backend only says how it is asked ([`Ask`]). No connection here can write.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use gatepost_channel::UtcMillis;
use sqlx::{Database, QueryBuilder};

use super::cursor::{self, List};
use super::gather::{Dossiers, Kind};
use super::rows::grant::GrantRow;
use super::rows::log::{EventRow, HeadRow};
use super::rows::note::NoteRow;
use super::rows::work::JobRow;
use super::rows::{Text, parse, spell};
use super::{
    AuditFilter, ConfirmationFilter, Counts, GrantFilter, JobFilter, Note, NoteKind, Page, Read, ReadError,
    StoreError, TokenHash, select, sql,
};
use crate::audit::{ChainHead, Event, opening};
use crate::confirmation::Dossier;
use crate::confirmation::grant::Grant;
use crate::ids::ConfirmationId;
use crate::ids::JobId;
use crate::job::Job;

/// Rows of a page of requests or jobs at most.
const PAGE: usize = 200;
/// Rows of a page of grants at most.
const GRANT_PAGE: usize = 256;
/// Rows of a page of audit events at most.
const AUDIT_PAGE: usize = 1000;

/// Something to bind.
pub(super) enum Value {
    Text(String),
    Number(i64),
}

/// A number, a name, and the row's JSON where one was asked for.
pub(super) type Keyed = (i64, String, String);

/// How one database is asked.
#[async_trait]
pub(super) trait Ask: Send + Sync + 'static {
    /// The driver.
    type Db: Database;
    /// The function that finds a text in another: position from 1, or 0.
    const CONTAINS: &'static str;
    /// A row of `job` as JSON.
    const JOB: &'static str;
    /// A row of `standing_grant` as JSON.
    const GRANT: &'static str;
    /// A row of `note` as JSON.
    const NOTE: &'static str;
    /// A row of `audit_event` as JSON.
    const EVENT: &'static str;
    /// A row of `chain_head` as JSON.
    const HEAD: &'static str;
    /// Before and after the JSON array of ids whose dossiers are wanted: kind of row, and the row as JSON.
    fn dossiers() -> (&'static str, &'static str);
    /// Binds a value.
    fn bind(query: &mut QueryBuilder<Self::Db>, value: Value);
    /// Rows of number, name and JSON.
    async fn keyed(&self, query: QueryBuilder<Self::Db>) -> Result<Vec<Keyed>, StoreError>;
    /// Rows of number and name; the number may be absent.
    async fn numbers(&self, query: QueryBuilder<Self::Db>) -> Result<Vec<(Option<i64>, String)>, StoreError>;
    /// Rows of kind and JSON.
    async fn bodies(&self, query: QueryBuilder<Self::Db>) -> Result<Vec<(String, String)>, StoreError>;
    /// The store's clock.
    async fn now(&self) -> Result<UtcMillis, StoreError>;
    /// The last migration that this program knows.
    fn schema() -> i64;
}

/// The questions over one database.
pub(super) struct Reader<A>(pub(super) A);

impl<A: Ask> Reader<A>
where
    <A::Db as Database>::Arguments: Default,
{
    async fn dossiers(
        &self,
        ids: &[String],
    ) -> Result<HashMap<String, Result<Dossier, StoreError>>, StoreError> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let (before, after) = A::dossiers();
        let mut query = QueryBuilder::new(before);
        A::bind(&mut query, Value::Text(spell(ids)));
        query.push(after);
        let mut dossiers = Dossiers::default();
        for (word, body) in self.0.bodies(query).await? {
            if let Some(kind) = Kind::parse(&word) {
                dossiers.take(kind, &body)?;
            }
        }
        Ok(dossiers.read().into_iter().collect())
    }

    /// Puts arguments that stand in their request where the events refer to them.
    async fn fill_in(&self, events: &mut [Event]) -> Result<(), StoreError> {
        let refers = |event: &&Event| opening::stands_elsewhere(event);
        let ids = events
            .iter()
            .filter(refers)
            .filter_map(|event| event.confirmation.as_ref());
        let ids: BTreeSet<String> = ids.map(|id| id.as_str().to_owned()).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let rows = self.0.keyed(select::args::<A>(&ids)).await?;
        let args: HashMap<String, Option<String>> = rows
            .into_iter()
            .map(|(_, id, args)| (id, Text::kept(args).give()))
            .collect();
        for event in events.iter_mut().filter(|event| opening::stands_elsewhere(event)) {
            let id = event.confirmation.as_ref().map(ConfirmationId::as_str);
            let args = id.and_then(|id| args.get(id)?.clone());
            opening::fill_in(event, args.as_deref());
        }
        Ok(())
    }

    async fn number(&self, sql: &'static str) -> Result<Option<i64>, StoreError> {
        let rows = self.0.numbers(QueryBuilder::new(sql)).await?;
        Ok(rows.into_iter().next().and_then(|(number, _)| number))
    }
}

/// Cuts the row too many, and says where the next page starts.
fn cut(rows: &mut Vec<Keyed>, size: usize, list: List) -> Option<String> {
    let more = rows.len() > size;
    rows.truncate(size);
    let (number, name, _) = rows.last()?;
    more.then(|| cursor::write(list, *number, name))
}

/// A senseless row does not hide the others.
fn sensible<T>(id: &str, read: Result<T, StoreError>) -> Option<T> {
    read.inspect_err(|error| tracing::error!(%id, %error, "a row makes no sense and is left out of a list"))
        .ok()
}

#[async_trait]
impl<A: Ask> Read for Reader<A>
where
    <A::Db as Database>::Arguments: Default,
    QueryBuilder<A::Db>: Send,
{
    async fn dossier(&self, id: &ConfirmationId) -> Result<Option<Dossier>, StoreError> {
        let mut found = self.dossiers(&[id.as_str().to_owned()]).await?;
        found.remove(id.as_str()).transpose()
    }

    async fn dossier_of_button(&self, token: &TokenHash) -> Result<Option<Dossier>, StoreError> {
        let mut query =
            QueryBuilder::new("SELECT CAST(NULL AS BIGINT), confirmation FROM delivery WHERE token_hash = ");
        A::bind(&mut query, Value::Text(hex::encode(token)));
        let Some((_, id)) = self.0.numbers(query).await?.pop() else {
            return Ok(None);
        };
        let mut found = self.dossiers(std::slice::from_ref(&id)).await?;
        found.remove(&id).transpose()
    }

    async fn confirmations(&self, filter: &ConfirmationFilter) -> Result<Page<Dossier>, ReadError> {
        let size = select::page_size(filter.limit, PAGE);
        let mut keys = self.0.keyed(select::confirmations::<A>(filter, size)?).await?;
        let next_cursor = cut(&mut keys, size, List::Confirmations);
        let ids: Vec<String> = keys.into_iter().map(|(_, id, _)| id).collect();
        let mut found = self.dossiers(&ids).await?;
        let items = ids
            .iter()
            .filter_map(|id| sensible(id, found.remove(id)?))
            .collect();
        Ok(Page { items, next_cursor })
    }

    async fn job(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        let mut query = QueryBuilder::new(format!("SELECT created_at, id, {} FROM job WHERE id = ", A::JOB));
        A::bind(&mut query, Value::Text(id.as_str().to_owned()));
        match self.0.keyed(query).await?.pop() {
            Some((_, _, body)) => parse::<JobRow>("job", &body)?.read().map(Some),
            None => Ok(None),
        }
    }

    async fn jobs(&self, filter: &JobFilter) -> Result<Page<Job>, ReadError> {
        let size = select::page_size(filter.limit, PAGE);
        let mut rows = self.0.keyed(select::jobs::<A>(filter, size)?).await?;
        let next_cursor = cut(&mut rows, size, List::Jobs);
        let read = |(_, id, body): &Keyed| sensible(id, parse::<JobRow>("job", body).and_then(JobRow::read));
        let items = rows.iter().filter_map(read).collect();
        Ok(Page { items, next_cursor })
    }

    async fn grants(&self, filter: &GrantFilter) -> Result<Page<Grant>, ReadError> {
        let size = select::page_size(filter.limit, GRANT_PAGE);
        let mut rows = self.0.keyed(select::grants::<A>(filter, size)?).await?;
        let next_cursor = cut(&mut rows, size, List::Grants);
        let read = |(_, id, body): &Keyed| {
            sensible(
                id,
                parse::<GrantRow>("standing_grant", body).and_then(GrantRow::read),
            )
        };
        let items = rows.iter().filter_map(read).collect();
        Ok(Page { items, next_cursor })
    }

    async fn notes(&self, kind: NoteKind) -> Result<Vec<Note>, StoreError> {
        let mut query = QueryBuilder::new(format!("SELECT 'note', {} FROM note WHERE kind = ", A::NOTE));
        A::bind(&mut query, Value::Text(kind.as_str().to_owned()));
        query.push(" ORDER BY org, name");
        let rows = self.0.bodies(query).await?;
        rows.iter()
            .map(|(_, body)| parse::<NoteRow>("note", body)?.read())
            .collect()
    }

    async fn audit(&self, filter: &AuditFilter) -> Result<Page<Event>, ReadError> {
        let size = select::page_size(filter.limit, AUDIT_PAGE);
        let mut rows = self.0.keyed(select::audit::<A>(filter, size)?).await?;
        let next_cursor = cut(&mut rows, size, List::Audit);
        let read = |(_, _, body): &Keyed| parse::<EventRow>("audit_event", body).and_then(EventRow::read);
        // Nothing is left out here: an event that cannot be read is a finding.
        let mut items = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        self.fill_in(&mut items).await?;
        Ok(Page { items, next_cursor })
    }

    async fn heads(&self) -> Result<Vec<ChainHead>, StoreError> {
        let query = QueryBuilder::new(format!(
            "SELECT 'chain_head', {} FROM chain_head ORDER BY org",
            A::HEAD
        ));
        let rows = self.0.bodies(query).await?;
        rows.iter()
            .map(|(_, body)| parse::<HeadRow>("chain_head", body)?.read())
            .collect()
    }

    async fn next_deadline(&self) -> Result<Option<UtcMillis>, StoreError> {
        Ok(self.number(sql::NEXT_DEADLINE).await?.map(UtcMillis))
    }

    async fn next_outbox(&self) -> Result<Option<UtcMillis>, StoreError> {
        Ok(self.number(sql::NEXT_OUTBOX).await?.map(UtcMillis))
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let mut counts = Counts::default();
        for (number, name) in self.0.numbers(QueryBuilder::new(sql::COUNTS)).await? {
            let count = number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
            match name.as_str() {
                "pending" => counts.pending = count,
                "oldest_pending" => counts.oldest_pending = number.map(UtcMillis),
                "unresumed" => counts.unresumed = count,
                "outbox" => counts.outbox = count,
                other => counts.jobs.extend(
                    other
                        .strip_prefix("job ")
                        .map(|status| (status.to_owned(), count)),
                ),
            }
        }
        counts.jobs.sort();
        Ok(counts)
    }

    async fn now(&self) -> Result<UtcMillis, StoreError> {
        self.0.now().await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        let applied = self.number(sql::SCHEMA).await?;
        if applied == Some(A::schema()) {
            return Ok(());
        }
        Err(StoreError::Database(format!(
            "the schema is at migration {}, this program knows {}",
            applied.unwrap_or(0),
            A::schema()
        )))
    }
}
