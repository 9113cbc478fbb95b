//! Locking and reading what a batch touches, in the order that every process keeps.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use gatepost_channel::UtcMillis;
use sqlx::postgres::PgConnection;

use super::fault;
use super::find::{Found, find};
use crate::audit::chain::GENESIS;
use crate::storage::batch::Fault;
use crate::storage::gather::{Gathered, Kind, chooses, gather};
use crate::storage::rows::log::{HeadRow, ReplayMemory};
use crate::storage::rows::request::{ConfirmationRow, DeliveryRow, VoteRow};
use crate::storage::rows::spell;
use crate::storage::rows::work::{JobRow, OutboxRow};
use crate::storage::wanted::Wanted;
use crate::storage::{Loaded, StoreError, Touches};

/// The one clock of the store: the server's, moved by `$1` milliseconds.
pub(super) const NOW: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1";

static HEADS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT 'chain_head', {} FROM chain_head WHERE org = ANY ($1) ORDER BY org FOR UPDATE",
        HeadRow::POSTGRES
    )
});
const START_CHAINS: &str = "INSERT INTO chain_head (org, seq, hash)
  SELECT org, 0, $2 FROM unnest($1::text[]) AS new(org) ORDER BY org ON CONFLICT DO NOTHING";
static CONFIRMATIONS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT 'confirmation', {} FROM confirmation WHERE id = ANY ($1) ORDER BY id FOR UPDATE",
        ConfirmationRow::POSTGRES
    )
});
static JOBS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT 'job', {} FROM job WHERE id = ANY ($1) ORDER BY id FOR UPDATE",
        JobRow::POSTGRES
    )
});
/// Jobs that the store chose: somebody else's are passed over.
static FREE_JOBS: LazyLock<String> = LazyLock::new(|| format!("{} SKIP LOCKED", *JOBS));
static CARDS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT 'outbox', {} FROM outbox WHERE (confirmation = ANY ($1) AND card IS NOT NULL OR id = ANY ($2)) AND id <> ALL ($3)
         ORDER BY id FOR UPDATE",
        OutboxRow::POSTGRES
    )
});
/// Outbox rows that the store chose: somebody else's are passed over.
static FREE_OUTBOX: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT 'outbox', {} FROM outbox WHERE id = ANY ($1) ORDER BY id FOR UPDATE SKIP LOCKED",
        OutboxRow::POSTGRES
    )
});
/// What hangs on locked requests, and what is only remembered; and the clock, now that the locks are held.
static REST: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT 'clock', ({NOW_OFFSET})::text
         UNION ALL SELECT 'vote', {vote} FROM vote WHERE confirmation = ANY ($2)
         UNION ALL SELECT 'delivery', {delivery} FROM delivery WHERE confirmation = ANY ($2)
         UNION ALL SELECT 'replay', {replay} FROM replay JOIN json_array_elements($3::json) AS wanted
           ON app_kind = wanted->>0 AND app_id = wanted->>1 AND press = wanted->>2",
        NOW_OFFSET = NOW.trim_start_matches("SELECT "),
        vote = VoteRow::POSTGRES,
        delivery = DeliveryRow::POSTGRES,
        replay = ReplayMemory::POSTGRES,
    )
});

type Rows = Vec<(Kind, String)>;

/// Locks and reads everything that the batch touches, inside the writing transaction.
pub(super) async fn load(
    connection: &mut PgConnection,
    touches: &Touches,
    offset: i64,
    spoiled: &mut Vec<String>,
) -> Result<Loaded, Fault> {
    /// How often rows that make no sense are passed over before the batch is served with what is left.
    const ROUNDS: usize = 3;
    let mut round = 1;
    loop {
        let Gathered { loaded, spoiled: new } = load_once(connection, touches, offset, spoiled).await?;
        if new.is_empty() || round == ROUNDS {
            return Ok(loaded);
        }
        spoiled.extend(new);
        round += 1;
    }
}

async fn load_once(
    c: &mut PgConnection,
    touches: &Touches,
    offset: i64,
    spoiled: &[String],
) -> Result<Gathered, Fault> {
    let mut rows = Rows::new();
    let before = now(c, touches, offset).await?;
    let mut found = find(c, touches, before, spoiled).await?;
    lock_heads(c, &found.orgs, &mut rows).await?;
    // What is looked up by more than an id may have come up while the locks were waited for.
    if chooses(touches) || !touches.calls.is_empty() || !touches.twins.is_empty() {
        let locked = std::mem::take(&mut found.orgs);
        let since = now(c, touches, offset).await?;
        found = find(c, touches, since, spoiled).await?;
        found.keep_only(&locked);
    }
    let now = lock_rows(c, touches, &found, offset, &mut rows).await?;
    Ok(gather(touches, now, &rows, &found.due)?)
}

/// Before the locks the clock only helps to choose.
async fn now(c: &mut PgConnection, touches: &Touches, offset: i64) -> Result<UtcMillis, Fault> {
    if !chooses(touches) {
        return Ok(UtcMillis(0));
    }
    let now = sqlx::query_scalar(NOW).bind(offset).fetch_one(c).await;
    now.map(UtcMillis).map_err(|error| fault(&error))
}

/// Locks the chain heads in order of organisation, starting the chains that have none.
async fn lock_heads(c: &mut PgConnection, orgs: &BTreeSet<String>, rows: &mut Rows) -> Result<(), Fault> {
    if orgs.is_empty() {
        return Ok(());
    }
    let orgs: Vec<&str> = orgs.iter().map(String::as_str).collect();
    let mut heads = take(
        sqlx::query_as(HEADS.as_str())
            .bind(&orgs)
            .fetch_all(&mut *c)
            .await,
    )?;
    if heads.len() < orgs.len() {
        let started = sqlx::query(START_CHAINS)
            .bind(&orgs)
            .bind(GENESIS)
            .execute(&mut *c)
            .await;
        started.map_err(|error| fault(&error))?;
        heads = take(
            sqlx::query_as(HEADS.as_str())
                .bind(&orgs)
                .fetch_all(&mut *c)
                .await,
        )?;
    }
    rows.extend(heads);
    Ok(())
}

/// Locks requests, jobs and outbox rows in this order, then reads what hangs on them, and the clock.
async fn lock_rows(
    c: &mut PgConnection,
    touches: &Touches,
    found: &Found,
    offset: i64,
    rows: &mut Rows,
) -> Result<UtcMillis, Fault> {
    let requests: Vec<&str> = found.confirmations.iter().map(String::as_str).collect();
    if !requests.is_empty() {
        rows.extend(take(
            sqlx::query_as(CONFIRMATIONS.as_str())
                .bind(&requests)
                .fetch_all(&mut *c)
                .await,
        )?);
    }
    let chosen: BTreeSet<&str> = found.due.runnable.iter().map(String::as_str).collect();
    let (free, named): (Vec<&str>, Vec<&str>) = found
        .jobs
        .iter()
        .map(String::as_str)
        .partition(|id| chosen.contains(id));
    for (statement, ids) in [(&JOBS, named), (&FREE_JOBS, free)] {
        if !ids.is_empty() {
            rows.extend(take(
                sqlx::query_as(statement.as_str())
                    .bind(&ids)
                    .fetch_all(&mut *c)
                    .await,
            )?);
        }
    }
    let chosen: BTreeSet<&str> = found.due.outbox.iter().map(String::as_str).collect();
    let (free, named): (Vec<&str>, Vec<&str>) = found
        .outbox
        .iter()
        .map(String::as_str)
        .partition(|id| chosen.contains(id));
    if !requests.is_empty() || !named.is_empty() {
        let cards = sqlx::query_as(CARDS.as_str())
            .bind(&requests)
            .bind(&named)
            .bind(&free);
        rows.extend(take(cards.fetch_all(&mut *c).await)?);
    }
    if !free.is_empty() {
        rows.extend(take(
            sqlx::query_as(FREE_OUTBOX.as_str())
                .bind(&free)
                .fetch_all(&mut *c)
                .await,
        )?);
    }
    let replays = spell(&Wanted::from(touches).replays);
    let rest = sqlx::query_as(REST.as_str())
        .bind(offset)
        .bind(&requests)
        .bind(replays);
    let rest: Vec<(String, String)> = rest.fetch_all(c).await.map_err(|error| fault(&error))?;
    let (clock, rest): (Vec<_>, Vec<_>) = rest.into_iter().partition(|(word, _)| word == "clock");
    rows.extend(take(Ok(rest))?);
    let now = clock.first().and_then(|(_, now)| now.parse().ok());
    now.map(UtcMillis).ok_or_else(|| odd("no clock"))
}

fn take(found: Result<Vec<(String, String)>, sqlx::Error>) -> Result<Rows, Fault> {
    let kind = |(word, body): (String, String)| {
        let kind = Kind::parse(&word).ok_or_else(|| odd("an unknown kind of row"))?;
        Ok((kind, body))
    };
    found
        .map_err(|error| fault(&error))?
        .into_iter()
        .map(kind)
        .collect()
}

fn odd(what: &str) -> Fault {
    Fault::Refused(StoreError::Database(what.to_owned()))
}
