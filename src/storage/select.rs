//! The lists as SQL: filters and order, once for both databases. Whatever comes from outside is bound, never spelled.

use std::collections::BTreeSet;
use std::fmt::Display;

use sqlx::{Database, QueryBuilder};

use super::cursor::{self, List};
use super::reader::{Ask, Value};
use super::rows::Text;
use super::sql;
use super::{AuditFilter, ConfirmationFilter, GrantFilter, JobFilter, ReadError};
use crate::confirmation::Status;
use crate::ids::{ConfirmationId, JobId, Org, TokenName};
use crate::job::JobStatus;

/// A statement that is being put together.
struct Select<A: Ask> {
    query: QueryBuilder<A::Db>,
    filtered: bool,
}

impl<A: Ask> Select<A> {
    fn new(head: impl Into<String>) -> Self
    where
        <A::Db as Database>::Arguments: Default,
    {
        Self {
            query: QueryBuilder::new(head),
            filtered: false,
        }
    }

    /// Opens a condition.
    fn and(&mut self, condition: impl Display) -> &mut Self {
        self.query.push(if self.filtered { " AND " } else { " WHERE " });
        self.query.push(condition);
        self.filtered = true;
        self
    }

    fn push(&mut self, sql: impl Display) -> &mut Self {
        self.query.push(sql);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        A::bind(&mut self.query, Value::Text(Text::keep(text).into_kept()));
        self
    }

    fn number(&mut self, number: i64) -> &mut Self {
        A::bind(&mut self.query, Value::Number(number));
        self
    }

    /// `column = value`, when there is one.
    fn equal(&mut self, column: &'static str, value: Option<&str>) -> &mut Self {
        if let Some(value) = value {
            self.and(column).push(" = ").text(value);
        }
        self
    }

    /// `column` is one of these; none means any.
    fn among<'v>(&mut self, column: &'static str, values: impl IntoIterator<Item = &'v str>) -> &mut Self {
        let mut values = values.into_iter();
        let Some(first) = values.next() else {
            return self;
        };
        self.and(column).push(" IN (").text(first);
        for value in values {
            self.push(", ").text(value);
        }
        self.push(")")
    }

    /// `column` lies in the half-open span.
    fn within(&mut self, column: &'static str, since: Option<i64>, until: Option<i64>) -> &mut Self {
        if let Some(since) = since {
            self.and(column).push(" >= ").number(since);
        }
        if let Some(until) = until {
            self.and(column).push(" < ").number(until);
        }
        self
    }
}

/// How many rows to ask for: one more than the page holds tells whether there is another.
pub(super) fn page_size(limit: usize, cap: usize) -> usize {
    if limit == 0 { cap } else { limit.min(cap) }
}

fn orgs(orgs: &[Org]) -> impl Iterator<Item = &str> {
    orgs.iter().map(Org::as_str)
}

fn newest_first<A: Ask>(
    select: &mut Select<A>,
    list: List,
    cursor: Option<&str>,
    size: usize,
) -> Result<(), ReadError> {
    if let Some(cursor) = cursor {
        let (at, id) = cursor::read(list, cursor)?;
        select
            .and("(created_at, id) < (")
            .number(at)
            .push(", ")
            .text(&id)
            .push(")");
    }
    select.push(" ORDER BY created_at DESC, id DESC LIMIT ");
    select.number(i64::try_from(size).unwrap_or(i64::MAX).saturating_add(1));
    Ok(())
}

/// The keys of a page of requests.
pub(super) fn confirmations<A: Ask>(
    filter: &ConfirmationFilter,
    size: usize,
) -> Result<QueryBuilder<A::Db>, ReadError>
where
    <A::Db as Database>::Arguments: Default,
{
    let mut select = Select::<A>::new("SELECT created_at, id, '' FROM confirmation");
    select
        .among("org", orgs(&filter.orgs))
        .among(
            "status",
            filter.status.iter().map(|status: &Status| status.as_str()),
        )
        .equal("tool", filter.tool.as_deref())
        .equal("agent_id", filter.agent.as_deref())
        .equal("token", filter.token.as_ref().map(TokenName::as_str))
        .equal("requester", filter.requester.as_deref())
        .equal("job", filter.job.as_ref().map(JobId::as_str))
        .within(
            "created_at",
            filter.since.map(|at| at.0),
            filter.until.map(|at| at.0),
        );
    if let Some(operator) = &filter.operator {
        select
            .and("EXISTS (SELECT 1 FROM vote WHERE vote.confirmation = confirmation.id AND vote.person = ")
            .text(operator)
            .push(")");
    }
    if let Some(channel) = &filter.channel {
        select
            .and("EXISTS (SELECT 1 FROM delivery WHERE delivery.confirmation = confirmation.id AND delivery.channel = ")
            .text(channel.as_str())
            .push(")");
    }
    if let Some(prefix) = &filter.id_prefix {
        // Ids hold digits up to `f`, so whatever begins so lies before it with a `g`.
        select.and("id >= ").text(prefix);
        select.and("id < ").text(&format!("{prefix}g"));
    }
    if let Some(stuck) = filter.stuck_since {
        select
            .and("job IS NOT NULL AND decided_at IS NOT NULL AND resumed_at IS NULL AND decided_at < ")
            .number(stuck.0);
    }
    if let Some(q) = filter.q.as_deref().filter(|q| !q.is_empty()) {
        // Found by position, not by pattern: no character of it means anything.
        let q = q.to_ascii_lowercase();
        select.and("(");
        for (n, column) in ["tool", "rule", "reason", "requester", "id"]
            .into_iter()
            .enumerate()
        {
            select.push(if n == 0 { "" } else { " OR " });
            select
                .push(A::CONTAINS)
                .push("(lower(")
                .push(column)
                .push("), ")
                .text(&q)
                .push(") > 0");
        }
        select.push(")");
    }
    if filter.break_glass {
        // A text inside of the progress has its quotes escaped, so this stands where it is meant and nowhere else.
        let broken = r#""basis":{"break_glass":"#;
        select
            .and(A::CONTAINS)
            .push("(progress, ")
            .text(broken)
            .push(") > 0");
    }
    newest_first(&mut select, List::Confirmations, filter.cursor.as_deref(), size)?;
    Ok(select.query)
}

/// A page of jobs, as id and row.
pub(super) fn jobs<A: Ask>(filter: &JobFilter, size: usize) -> Result<QueryBuilder<A::Db>, ReadError>
where
    <A::Db as Database>::Arguments: Default,
{
    let mut select = Select::<A>::new(format!("SELECT created_at, id, {} FROM job", A::JOB));
    select
        .among("org", orgs(&filter.orgs))
        .equal("token", filter.token.as_ref().map(TokenName::as_str))
        .among(
            "status",
            filter.status.iter().map(|status: &JobStatus| status.as_str()),
        );
    newest_first(&mut select, List::Jobs, filter.cursor.as_deref(), size)?;
    Ok(select.query)
}

/// The arguments of requests, as id and text.
pub(super) fn args<A: Ask>(ids: &BTreeSet<String>) -> QueryBuilder<A::Db>
where
    <A::Db as Database>::Arguments: Default,
{
    // Number, name and text, as every keyed question is answered.
    let mut select = Select::<A>::new("SELECT created_at, id, args FROM confirmation");
    select.among("id", ids.iter().map(String::as_str));
    select.query
}

/// A page of grants, as id and row.
pub(super) fn grants<A: Ask>(filter: &GrantFilter, size: usize) -> Result<QueryBuilder<A::Db>, ReadError>
where
    <A::Db as Database>::Arguments: Default,
{
    let mut select = Select::<A>::new(format!("SELECT created_at, id, {} FROM standing_grant", A::GRANT));
    select.among("org", orgs(&filter.orgs));
    if filter.live || filter.due_at.is_some() {
        select.and("live_until IS NOT NULL");
    }
    if let Some(due) = filter.due_at {
        select.and("live_until <= ").number(due.0);
    }
    newest_first(&mut select, List::Grants, filter.cursor.as_deref(), size)?;
    Ok(select.query)
}

/// A page of audit events, as organisation and row.
pub(super) fn audit<A: Ask>(filter: &AuditFilter, size: usize) -> Result<QueryBuilder<A::Db>, ReadError>
where
    <A::Db as Database>::Arguments: Default,
{
    let mut select = Select::<A>::new(format!("SELECT seq, org, {} FROM audit_event", A::EVENT));
    select
        .among("org", orgs(&filter.orgs))
        .among("kind", filter.kind.iter().map(String::as_str));
    if !filter.kind.is_empty() && filter.kind.iter().all(|kind| !sql::is_common(kind)) {
        // Changes nothing about the answer, but lets the database use the tree that holds only these.
        select.and(sql::RARE);
    }
    select
        .equal("actor", filter.actor.as_deref())
        .equal(
            "confirmation",
            filter.confirmation.as_ref().map(ConfirmationId::as_str),
        )
        .equal("job", filter.job.as_ref().map(JobId::as_str))
        .equal("channel", filter.channel.as_deref())
        .within("at", filter.since.map(|at| at.0), filter.until.map(|at| at.0));
    if let Some(cursor) = &filter.cursor {
        let (seq, org) = cursor::read(List::Audit, cursor)?;
        select
            .and("(org, seq) > (")
            .text(&org)
            .push(", ")
            .number(seq)
            .push(")");
    }
    select.push(" ORDER BY org, seq LIMIT ");
    select.number(i64::try_from(size).unwrap_or(i64::MAX).saturating_add(1));
    Ok(select.query)
}
