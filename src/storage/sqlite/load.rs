//! Reading what a batch touches: one statement for everything that was named, one more for each kind that the store chooses.

use std::sync::LazyLock;

use gatepost_channel::UtcMillis;
use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteConnection;

use super::fault;
use crate::clock::Clock;
use crate::storage::batch::Fault;
use crate::storage::gather::{Due, Gathered, Kind, chooses, gather};
use crate::storage::rows::grant::GrantRow;
use crate::storage::rows::log::{HeadRow, ReplayMemory, TallyRow};
use crate::storage::rows::note::NoteRow;
use crate::storage::rows::request::{ConfirmationRow, DeliveryRow, VoteRow};
use crate::storage::rows::spell;
use crate::storage::rows::work::{JobRow, OutboxRow};
use crate::storage::wanted::Wanted;
use crate::storage::{Loaded, StoreError, Touches};

/// The parts of the statement that reads. `$1` is a JSON object with the lists of [`Wanted`]; what comes back is one JSON array
/// for each kind of row, since handing over a row costs more than reading it. The writer is alone, so nothing needs a lock of
/// its own. Only the parts whose lists hold something are asked: most batches are of one kind.
const OF_CONFIRMATIONS: &str = "SELECT value FROM json_each($1, '$.confirmations')";
const OF_CALLS: &str =
    "SELECT confirmation.id FROM json_each($1, '$.calls') AS wanted CROSS JOIN confirmation
  ON org = wanted.value->>0 AND token = wanted.value->>1 AND coalesce(session_id, '') = wanted.value->>2
  AND tool_call_id = wanted.value->>3";
const OF_TWINS: &str =
    "SELECT confirmation.id FROM json_each($1, '$.twins') AS wanted CROSS JOIN confirmation
  ON org = wanted.value->>0 AND token = wanted.value->>1 AND coalesce(session_id, '') = wanted.value->>2
  AND digest = wanted.value->>3 AND status IN ('pending', 'approved') AND executed_at IS NULL";
const OF_TOKENS: &str = "SELECT confirmation FROM json_each($1, '$.tokens') AS wanted CROSS JOIN delivery ON token_hash = wanted.value";
const OF_OUTBOX: &str = "SELECT confirmation FROM json_each($1, '$.outbox') AS wanted CROSS JOIN outbox
  ON outbox.id = wanted.value AND confirmation IS NOT NULL";
const OF_ALIKES: &str = "SELECT (SELECT id FROM confirmation WHERE confirmation.alike = wanted.value AND confirmation.alike IS NOT NULL ORDER BY created_at DESC LIMIT 1)
  FROM json_each($1, '$.alikes') AS wanted";
/// Every request brings the set that it is in.
const OF_SETS: &str = "SELECT id FROM named UNION SELECT fellow.id FROM named
  CROSS JOIN confirmation AS own ON own.id = named.id AND own.set_first IS NOT NULL
  CROSS JOIN confirmation AS fellow ON fellow.set_first = own.set_first AND fellow.set_first IS NOT NULL";
const OF_REPLAYS: &str = "SELECT confirmation FROM json_each($1, '$.replays') AS wanted CROSS JOIN replay
  ON app_kind = wanted.value->>0 AND app_id = wanted.value->>1 AND press = wanted.value->>2 AND confirmation IS NOT NULL";
/// The outbox row of a card has the card's digits ([`OutboxId::of_card`](crate::ids::OutboxId::of_card)), so no tree leads from a
/// request to its rows.
const OF_CARDS: &str = "SELECT 'ob_' || substr(delivery.id, 4) FROM request CROSS JOIN delivery ON delivery.confirmation = request.id";
/// What hangs on the requests that were found.
static OF_REQUESTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT 'confirmation', json_group_array({confirmation}) FROM request CROSS JOIN confirmation ON confirmation.id = request.id
         UNION ALL SELECT 'vote', json_group_array({vote}) FROM request CROSS JOIN vote ON vote.confirmation = request.id
         UNION ALL SELECT 'delivery', json_group_array({delivery}) FROM request CROSS JOIN delivery ON delivery.confirmation = request.id",
        confirmation = ConfirmationRow::SQLITE,
        vote = VoteRow::SQLITE,
        delivery = DeliveryRow::SQLITE,
    )
});
static ERRANDS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT 'outbox', json_group_array({}) FROM errand CROSS JOIN outbox ON outbox.id = errand.id",
        OutboxRow::SQLITE
    )
});
static WORK: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT 'job', json_group_array({}) FROM work CROSS JOIN job ON job.id = work.id",
        JobRow::SQLITE
    )
});
static HEADS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT 'chain_head', json_group_array({}) FROM chain CROSS JOIN chain_head ON chain_head.org = chain.org",
        HeadRow::SQLITE
    )
});
static REPLAYS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT 'replay', json_group_array({}) FROM json_each($1, '$.replays') AS wanted CROSS JOIN replay
         ON app_kind = wanted.value->>0 AND app_id = wanted.value->>1 AND press = wanted.value->>2",
        ReplayMemory::SQLITE
    )
});

static GRANTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT 'standing_grant', json_group_array({}) FROM standing_grant WHERE id IN (
           SELECT value FROM json_each($1, '$.grants')
           UNION SELECT found.id FROM json_each($1, '$.grant_keys') AS wanted CROSS JOIN standing_grant AS found
             ON found.org = wanted.value->>0 AND found.token = wanted.value->>1 AND found.tool = wanted.value->>2
             AND found.live_until IS NOT NULL)",
        GrantRow::SQLITE
    )
});

static TALLIES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT 'tally', json_group_array({}) FROM json_each($1, '$.tallies') AS wanted CROSS JOIN tally
         ON org = wanted.value->>0 AND counter = wanted.value->>1 AND scope = wanted.value->>2 AND token = wanted.value->>3
           AND person = wanted.value->>4",
        TallyRow::SQLITE
    )
});

static NOTES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT 'note', json_group_array({}) FROM json_each($1, '$.notes') AS wanted CROSS JOIN note
         ON org = wanted.value->>0 AND kind = wanted.value->>1",
        NoteRow::SQLITE
    )
});

/// The statement for what is wanted.
fn reading(wanted: &Wanted) -> String {
    let requests: Vec<&str> = [
        (OF_CONFIRMATIONS, wanted.confirmations.is_empty()),
        (OF_CALLS, wanted.calls.is_empty()),
        (OF_TWINS, wanted.twins.is_empty()),
        (OF_ALIKES, wanted.alikes.is_empty()),
        (OF_TOKENS, wanted.tokens.is_empty()),
        (OF_OUTBOX, wanted.outbox.is_empty()),
        (OF_REPLAYS, wanted.replays.is_empty()),
    ]
    .into_iter()
    .filter_map(|(part, empty)| (!empty).then_some(part))
    .collect();
    let (mut errand, mut work) = (Vec::new(), Vec::new());
    let mut chain = vec!["SELECT value FROM json_each($1, '$.orgs')"];
    let (mut found, mut parts) = (Vec::new(), Vec::new());
    if !wanted.outbox.is_empty() {
        errand.push("SELECT value FROM json_each($1, '$.outbox')");
    }
    if !wanted.jobs.is_empty() {
        work.push("SELECT value FROM json_each($1, '$.jobs')");
    }
    if !requests.is_empty() {
        errand.push(OF_CARDS);
        work.push("SELECT confirmation.job FROM request CROSS JOIN confirmation ON confirmation.id = request.id AND confirmation.job IS NOT NULL");
        chain.push(
            "SELECT confirmation.org FROM request CROSS JOIN confirmation ON confirmation.id = request.id",
        );
        found.push(("named", requests));
        found.push(("request", vec![OF_SETS]));
        parts.push(OF_REQUESTS.as_str());
    }
    if !errand.is_empty() {
        found.push(("errand", errand));
        parts.push(&ERRANDS);
    }
    if !work.is_empty() {
        chain.push("SELECT job.org FROM work CROSS JOIN job ON job.id = work.id");
        found.push(("work", work));
        parts.push(&WORK);
    }
    found.push(("chain", chain));
    parts.push(&HEADS);
    if !wanted.replays.is_empty() {
        parts.push(&REPLAYS);
    }
    if !wanted.grants.is_empty() || !wanted.grant_keys.is_empty() {
        parts.push(&GRANTS);
    }
    if !wanted.tallies.is_empty() {
        parts.push(&TALLIES);
    }
    if !wanted.notes.is_empty() {
        parts.push(&NOTES);
    }
    let found: Vec<String> = found
        .into_iter()
        .map(|(name, members)| {
            let column = if name == "chain" { "org" } else { "id" };
            // UNION even over one member: a request of two cards is found twice, and must be read once.
            let members = members.join(" UNION ");
            format!("{name}({column}) AS MATERIALIZED (SELECT NULL WHERE false UNION {members})")
        })
        .collect();
    format!("WITH {} {}", found.join(", "), parts.join(" UNION ALL "))
}

// In each, `$1` is the clock, `$2` the rows to pass over, and the last one how many.
const DUE_CONFIRMATIONS: &str =
    "SELECT 'confirmation', id FROM confirmation WHERE status = 'pending' AND expires_at <= $1
  AND id NOT IN (SELECT value FROM json_each($2)) ORDER BY expires_at, id LIMIT $3";
const DUE_OUTBOX: &str = "SELECT 'outbox', id FROM outbox WHERE due_at <= $1
  AND id NOT IN (SELECT value FROM json_each($2)) ORDER BY due_at, id LIMIT $4";
const RUNNABLE_JOBS: &str = "SELECT 'runnable', id FROM job WHERE due_at <= $1
  AND id NOT IN (SELECT value FROM json_each($2)) ORDER BY priority DESC, due_at, id LIMIT $5";
/// Starts from what was decided and not resumed, and from waits for sub-tasks: never from all that is parked.
const STRANDED_JOBS: &str = "WITH parked(id) AS (
    SELECT job FROM confirmation WHERE job IS NOT NULL AND decided_at IS NOT NULL AND resumed_at IS NULL
    UNION SELECT id FROM job WHERE status = 'waiting_subtasks')
  SELECT 'stranded', job.id FROM parked CROSS JOIN job ON job.id = parked.id
  WHERE job.status IN ('waiting_human', 'waiting_subtasks') AND job.waiting_on <> '[]' AND job.updated_at <= $1
    AND job.id NOT IN (SELECT value FROM json_each($2))
    AND NOT EXISTS (SELECT 1 FROM json_each(job.waiting_on) AS waited
      WHERE NOT EXISTS (SELECT 1 FROM confirmation AS c WHERE c.id = waited.value AND c.decided_at IS NOT NULL)
        AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.id = waited.value AND j.status IN ('completed', 'aborted', 'cancelled', 'error')))
  ORDER BY job.id LIMIT $6";
/// What stranded jobs wait for.
const WAITED_FOR: &str = "SELECT waited.value FROM job, json_each(job.waiting_on) AS waited
  WHERE job.id IN (SELECT value FROM json_each($1)) AND substr(waited.value, 1, 3) = 'cr_'";

/// How every writing transaction begins: it never has to be upgraded from a reader.
const BEGIN: &str = "BEGIN IMMEDIATE";

/// Begins the writing transaction and reads everything that the batch touches. Deadlines are judged by the clock as it is
/// when the file is ours.
pub(super) async fn begin(
    connection: &mut SqliteConnection,
    touches: &Touches,
    clock: &dyn Clock,
    spoiled: &mut Vec<String>,
) -> Result<Loaded, Fault> {
    if !chooses(touches) {
        // One hand-over to the driver's thread instead of two.
        let wanted = Wanted::from(touches);
        let rows = rows(connection, format!("{BEGIN};\n{}", reading(&wanted)), &wanted).await?;
        return Ok(gather(touches, clock.now(), &rows, &Due::default())?.loaded);
    }
    // Before the lock the clock only helps to choose; what is no longer due under it is passed over.
    let due = due(connection, Some(BEGIN), touches, clock.now(), spoiled).await?;
    load(connection, touches, due, clock.now(), spoiled).await
}

async fn load(
    connection: &mut SqliteConnection,
    touches: &Touches,
    mut chosen: Due,
    now: UtcMillis,
    spoiled: &mut Vec<String>,
) -> Result<Loaded, Fault> {
    /// How often rows that make no sense are passed over before the batch is served with what is left.
    const ROUNDS: usize = 3;
    let mut round = 1;
    loop {
        let mut wanted = Wanted::from(touches);
        wanted.confirmations.extend(chosen.confirmations.iter().cloned());
        wanted.outbox.extend(chosen.outbox.iter().cloned());
        wanted
            .jobs
            .extend(chosen.runnable.iter().chain(&chosen.stranded).cloned());
        if !chosen.stranded.is_empty() {
            let requests = sqlx::query_scalar::<_, String>(WAITED_FOR)
                .bind(spell(&chosen.stranded))
                .fetch_all(&mut *connection)
                .await
                .map_err(|error| fault(&error))?;
            wanted.confirmations.extend(requests);
        }
        let rows = rows(connection, reading(&wanted), &wanted).await?;
        let gathered = gather(touches, now, &rows, &chosen)?;
        let Gathered { loaded, spoiled: new } = gathered;
        if new.is_empty() || round == ROUNDS {
            return Ok(loaded);
        }
        spoiled.extend(new);
        chosen = due(connection, None, touches, now, spoiled).await?;
        round += 1;
    }
}

/// What the store chooses, in one hand-over to the driver's thread; behind the order that begins the transaction, if there is one.
async fn due(
    connection: &mut SqliteConnection,
    begin: Option<&str>,
    touches: &Touches,
    now: UtcMillis,
    spoiled: &[String],
) -> Result<Due, Fault> {
    let limits = [
        (DUE_CONFIRMATIONS, touches.due_confirmations),
        (DUE_OUTBOX, touches.due_outbox),
        (RUNNABLE_JOBS, touches.runnable_jobs),
        (STRANDED_JOBS, touches.stranded_jobs),
    ];
    let wanted = limits
        .iter()
        .filter(|(_, limit)| *limit > 0)
        .map(|(statement, _)| *statement);
    let orders: Vec<&str> = begin.into_iter().chain(wanted).collect();
    let mut query = sqlx::query_as(AssertSqlSafe(orders.join(";\n")))
        .bind(now.0)
        .bind(spell(spoiled));
    for (_, limit) in limits {
        query = query.bind(i64::try_from(limit).unwrap_or(i64::MAX));
    }
    let found: Vec<(String, String)> = query.fetch_all(connection).await.map_err(|error| fault(&error))?;
    let mut due = Due::default();
    for (kind, id) in found {
        match kind.as_str() {
            "confirmation" => due.confirmations.push(id),
            "outbox" => due.outbox.push(id),
            "runnable" => due.runnable.push(id),
            _ => due.stranded.push(id),
        }
    }
    Ok(due)
}

async fn rows(
    connection: &mut SqliteConnection,
    statement: String,
    wanted: &Wanted,
) -> Result<Vec<(Kind, String)>, Fault> {
    let found: Vec<(String, String)> = sqlx::query_as(AssertSqlSafe(statement))
        .bind(spell(wanted))
        .fetch_all(connection)
        .await
        .map_err(|error| fault(&error))?;
    found
        .into_iter()
        .map(|(word, body)| match Kind::parse(&word) {
            Some(kind) => Ok((kind, body)),
            None => Err(Fault::Refused(StoreError::Database(
                "an unknown kind of row".to_owned(),
            ))),
        })
        .collect()
}
