//! Reading what a batch touches: one statement for everything that was named, one more for each kind that the store chooses.

use std::sync::LazyLock;

use gatepost_channel::UtcMillis;
use sqlx::sqlite::SqliteConnection;

use super::fault;
use crate::storage::batch::Fault;
use crate::storage::gather::{Due, Gathered, Kind, gather};
use crate::storage::rows::log::{HeadRow, ReplayMemory};
use crate::storage::rows::request::{ConfirmationRow, DeliveryRow, VoteRow};
use crate::storage::rows::spell;
use crate::storage::rows::work::{JobRow, OutboxRow};
use crate::storage::wanted::Wanted;
use crate::storage::{Loaded, StoreError, Touches};

/// `$1` is a JSON object with the lists of [`Wanted`]; what comes back is one JSON array for each kind of row, since handing
/// over a row costs more than reading it. The writer is alone, so nothing needs a lock of its own.
static LOAD: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH request(id) AS MATERIALIZED (
           SELECT value FROM json_each($1, '$.confirmations')
           UNION SELECT confirmation.id FROM json_each($1, '$.calls') AS wanted CROSS JOIN confirmation
             ON org = wanted.value->>0 AND token = wanted.value->>1 AND coalesce(session_id, '') = wanted.value->>2
             AND tool_call_id = wanted.value->>3
           UNION SELECT confirmation.id FROM json_each($1, '$.twins') AS wanted CROSS JOIN confirmation
             ON org = wanted.value->>0 AND token = wanted.value->>1 AND coalesce(session_id, '') = wanted.value->>2
             AND digest = wanted.value->>3 AND status IN ('pending', 'approved') AND consumed_at IS NULL
           UNION SELECT confirmation FROM json_each($1, '$.tokens') AS wanted CROSS JOIN delivery ON token_hash = wanted.value
           UNION SELECT confirmation FROM json_each($1, '$.outbox') AS wanted CROSS JOIN outbox ON outbox.id = wanted.value
             AND confirmation IS NOT NULL
           UNION SELECT confirmation FROM json_each($1, '$.replays') AS wanted CROSS JOIN replay
             ON app_kind = wanted.value->>0 AND app_id = wanted.value->>1 AND press = wanted.value->>2 AND confirmation IS NOT NULL
         ),
         errand(id) AS MATERIALIZED (
           SELECT value FROM json_each($1, '$.outbox')
           UNION SELECT outbox.id FROM request CROSS JOIN outbox ON outbox.confirmation = request.id AND card IS NOT NULL
         ),
         work(id) AS MATERIALIZED (
           SELECT value FROM json_each($1, '$.jobs')
           UNION SELECT confirmation.job FROM request CROSS JOIN confirmation ON confirmation.id = request.id AND confirmation.job IS NOT NULL
         ),
         chain(org) AS MATERIALIZED (
           SELECT value FROM json_each($1, '$.orgs')
           UNION SELECT confirmation.org FROM request CROSS JOIN confirmation ON confirmation.id = request.id
           UNION SELECT job.org FROM work CROSS JOIN job ON job.id = work.id
         )
         SELECT 'confirmation', json_group_array({confirmation}) FROM request CROSS JOIN confirmation ON confirmation.id = request.id
         UNION ALL SELECT 'vote', json_group_array({vote}) FROM request CROSS JOIN vote ON vote.confirmation = request.id
         UNION ALL SELECT 'delivery', json_group_array({delivery}) FROM request CROSS JOIN delivery ON delivery.confirmation = request.id
         UNION ALL SELECT 'outbox', json_group_array({outbox}) FROM errand CROSS JOIN outbox ON outbox.id = errand.id
         UNION ALL SELECT 'job', json_group_array({job}) FROM work CROSS JOIN job ON job.id = work.id
         UNION ALL SELECT 'chain_head', json_group_array({head}) FROM chain CROSS JOIN chain_head ON chain_head.org = chain.org
         UNION ALL SELECT 'replay', json_group_array({replay}) FROM json_each($1, '$.replays') AS wanted CROSS JOIN replay
             ON app_kind = wanted.value->>0 AND app_id = wanted.value->>1 AND press = wanted.value->>2",
        confirmation = ConfirmationRow::SQLITE,
        vote = VoteRow::SQLITE,
        delivery = DeliveryRow::SQLITE,
        outbox = OutboxRow::SQLITE,
        job = JobRow::SQLITE,
        head = HeadRow::SQLITE,
        replay = ReplayMemory::SQLITE,
    )
});

// In each, `$1` is the clock, `$2` how many, `$3` the rows to pass over.
const DUE_CONFIRMATIONS: &str = "SELECT id FROM confirmation WHERE status = 'pending' AND expires_at <= $1
  AND id NOT IN (SELECT value FROM json_each($3)) ORDER BY expires_at, id LIMIT $2";
const DUE_OUTBOX: &str = "SELECT id FROM outbox WHERE due_at <= $1
  AND id NOT IN (SELECT value FROM json_each($3)) ORDER BY due_at, id LIMIT $2";
const RUNNABLE_JOBS: &str = "SELECT id FROM job WHERE due_at <= $1
  AND id NOT IN (SELECT value FROM json_each($3)) ORDER BY priority DESC, due_at, id LIMIT $2";
/// Starts from what was decided and not resumed, and from waits for sub-tasks: never from all that is parked.
const STRANDED_JOBS: &str = "WITH parked(id) AS (
    SELECT job FROM confirmation WHERE job IS NOT NULL AND decided_at IS NOT NULL AND resumed_at IS NULL
    UNION SELECT id FROM job WHERE status = 'waiting_subtasks')
  SELECT job.id FROM parked CROSS JOIN job ON job.id = parked.id
  WHERE job.status IN ('waiting_human', 'waiting_subtasks') AND job.waiting_on <> '[]' AND job.updated_at <= $1
    AND job.id NOT IN (SELECT value FROM json_each($3))
    AND NOT EXISTS (SELECT 1 FROM json_each(job.waiting_on) AS waited
      WHERE NOT EXISTS (SELECT 1 FROM confirmation AS c WHERE c.id = waited.value AND c.decided_at IS NOT NULL)
        AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.id = waited.value AND j.status IN ('completed', 'aborted', 'cancelled', 'error')))
  ORDER BY job.id LIMIT $2";
/// What stranded jobs wait for.
const WAITED_FOR: &str = "SELECT waited.value FROM job, json_each(job.waiting_on) AS waited
  WHERE job.id IN (SELECT value FROM json_each($1)) AND substr(waited.value, 1, 3) = 'cr_'";

/// Reads everything that the batch touches, inside the writing transaction.
pub(super) async fn load(
    connection: &mut SqliteConnection,
    touches: &Touches,
    now: UtcMillis,
    spoiled: &mut Vec<String>,
) -> Result<Loaded, Fault> {
    /// How often rows that make no sense are passed over before the batch is served with what is left.
    const ROUNDS: usize = 3;
    let mut round = 1;
    loop {
        let due = due(connection, touches, now, spoiled).await?;
        let mut wanted = Wanted::from(touches);
        wanted.confirmations.extend(due.confirmations.iter().cloned());
        wanted.outbox.extend(due.outbox.iter().cloned());
        wanted
            .jobs
            .extend(due.runnable.iter().chain(&due.stranded).cloned());
        if !due.stranded.is_empty() {
            let requests = sqlx::query_scalar::<_, String>(WAITED_FOR)
                .bind(spell(&due.stranded))
                .fetch_all(&mut *connection)
                .await
                .map_err(|error| fault(&error))?;
            wanted.confirmations.extend(requests);
        }
        let rows = rows(connection, &wanted).await?;
        let gathered = gather(touches, now, &rows, &due)?;
        let Gathered { loaded, spoiled: new } = gathered;
        if new.is_empty() || round == ROUNDS {
            return Ok(loaded);
        }
        spoiled.extend(new);
        round += 1;
    }
}

async fn due(
    connection: &mut SqliteConnection,
    touches: &Touches,
    now: UtcMillis,
    spoiled: &[String],
) -> Result<Due, Fault> {
    let mut due = Due::default();
    for (statement, limit, into) in [
        (
            DUE_CONFIRMATIONS,
            touches.due_confirmations,
            &mut due.confirmations,
        ),
        (DUE_OUTBOX, touches.due_outbox, &mut due.outbox),
        (RUNNABLE_JOBS, touches.runnable_jobs, &mut due.runnable),
        (STRANDED_JOBS, touches.stranded_jobs, &mut due.stranded),
    ] {
        if limit == 0 {
            continue;
        }
        *into = sqlx::query_scalar(statement)
            .bind(now.0)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .bind(spell(spoiled))
            .fetch_all(&mut *connection)
            .await
            .map_err(|error| fault(&error))?;
    }
    Ok(due)
}

async fn rows(connection: &mut SqliteConnection, wanted: &Wanted) -> Result<Vec<(Kind, String)>, Fault> {
    let found: Vec<(String, String)> = sqlx::query_as(LOAD.as_str())
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
