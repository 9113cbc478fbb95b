//! Finding, without any lock, which rows a batch is about and whose they are.

use std::collections::BTreeSet;

use gatepost_channel::UtcMillis;
use sqlx::postgres::PgConnection;

use super::fault;
use crate::storage::Touches;
use crate::storage::batch::Fault;
use crate::storage::gather::Due;
use crate::storage::rows::spell;
use crate::storage::wanted::Wanted;

/// `$1` is a JSON object with the lists of [`Wanted`]. What comes back: the kind, the id, and the organisation.
const FIND: &str = "WITH request(id) AS MATERIALIZED (
    SELECT json_array_elements_text($1::json->'confirmations')
    UNION SELECT confirmation.id FROM json_array_elements($1::json->'calls') AS wanted JOIN confirmation
      ON org = wanted->>0 AND token = wanted->>1 AND coalesce(session_id, '') = wanted->>2 AND tool_call_id = wanted->>3
    UNION SELECT confirmation.id FROM json_array_elements($1::json->'twins') AS wanted JOIN confirmation
      ON org = wanted->>0 AND token = wanted->>1 AND coalesce(session_id, '') = wanted->>2 AND digest = wanted->>3
      AND status IN ('pending', 'approved') AND consumed_at IS NULL
    UNION SELECT confirmation FROM json_array_elements_text($1::json->'tokens') AS wanted JOIN delivery ON token_hash = wanted
    UNION SELECT confirmation FROM json_array_elements_text($1::json->'outbox') AS wanted JOIN outbox
      ON outbox.id = wanted AND confirmation IS NOT NULL
    UNION SELECT confirmation FROM json_array_elements($1::json->'replays') AS wanted JOIN replay
      ON app_kind = wanted->>0 AND app_id = wanted->>1 AND press = wanted->>2 AND confirmation IS NOT NULL
    UNION SELECT waited.id FROM json_array_elements_text($1::json->'jobs') AS wanted JOIN job ON job.id = wanted,
      json_array_elements_text(job.waiting_on::json) AS waited(id) WHERE $2 AND substr(waited.id, 1, 3) = 'cr_'
  ),
  met AS MATERIALIZED (
    SELECT confirmation.id, confirmation.org, confirmation.job FROM confirmation WHERE id IN (SELECT id FROM request)
  )
  SELECT 'confirmation', id, org FROM met
  UNION ALL SELECT 'job', id, org FROM job WHERE id IN (SELECT job FROM met WHERE job IS NOT NULL
    UNION SELECT json_array_elements_text($1::json->'jobs'))";

// In each, `$1` is the clock, `$2` how many, `$3` the rows to pass over.
const DUE_CONFIRMATIONS: &str = "SELECT id FROM confirmation WHERE status = 'pending' AND expires_at <= $1
  AND id <> ALL ($3) ORDER BY expires_at, id LIMIT $2";
const DUE_OUTBOX: &str = "SELECT id FROM outbox WHERE due_at <= $1
  AND id <> ALL ($3) ORDER BY due_at, id LIMIT $2";
const RUNNABLE_JOBS: &str = "SELECT id FROM job WHERE due_at <= $1
  AND id <> ALL ($3) ORDER BY priority DESC, due_at, id LIMIT $2";
/// Starts from what was decided and not resumed, and from waits for sub-tasks: never from all that is parked.
const STRANDED_JOBS: &str = "WITH parked(id) AS MATERIALIZED (
    SELECT job FROM confirmation WHERE job IS NOT NULL AND decided_at IS NOT NULL AND resumed_at IS NULL
    UNION SELECT id FROM job WHERE status = 'waiting_subtasks')
  SELECT job.id FROM job WHERE id IN (SELECT id FROM parked)
    AND status IN ('waiting_human', 'waiting_subtasks') AND waiting_on <> '[]' AND updated_at <= $1 AND id <> ALL ($3)
    AND NOT EXISTS (SELECT 1 FROM json_array_elements_text(job.waiting_on::json) AS waited(id)
      WHERE NOT EXISTS (SELECT 1 FROM confirmation AS c WHERE c.id = waited.id AND c.decided_at IS NOT NULL)
        AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.id = waited.id AND j.status IN ('completed', 'aborted', 'cancelled', 'error')))
  ORDER BY id LIMIT $2";

/// The rows of a batch, in the order in which they are locked.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) orgs: BTreeSet<String>,
    pub(super) confirmations: BTreeSet<String>,
    pub(super) jobs: BTreeSet<String>,
    pub(super) outbox: BTreeSet<String>,
    pub(super) due: Due,
    /// Whose each row is, for those that must be passed over when their organisation was not locked.
    owners: Vec<(String, String)>,
}

impl Found {
    /// Keeps only what belongs to these organisations: the rest came up after the locks were taken, and is served next time.
    pub(super) fn keep_only(&mut self, locked: &BTreeSet<String>) {
        for (id, org) in &self.owners {
            if !locked.contains(org) {
                self.confirmations.remove(id);
                self.jobs.remove(id);
            }
        }
        self.orgs.clone_from(locked);
    }
}

/// Finds the rows.
pub(super) async fn find(
    connection: &mut PgConnection,
    touches: &Touches,
    now: UtcMillis,
    spoiled: &[String],
) -> Result<Found, Fault> {
    let due = due(connection, touches, now, spoiled).await?;
    let mut wanted = Wanted::from(touches);
    wanted.confirmations.extend(due.confirmations.iter().cloned());
    wanted.outbox.extend(due.outbox.iter().cloned());
    wanted
        .jobs
        .extend(due.runnable.iter().chain(&due.stranded).cloned());
    let rows: Vec<(String, String, String)> = sqlx::query_as(FIND)
        .bind(spell(&wanted))
        .bind(!due.stranded.is_empty())
        .fetch_all(connection)
        .await
        .map_err(|error| fault(&error))?;
    let mut found = Found {
        orgs: wanted
            .orgs
            .into_iter()
            .map(crate::storage::rows::Text::into_kept)
            .collect(),
        outbox: wanted.outbox.into_iter().collect(),
        due,
        ..Found::default()
    };
    for (kind, id, org) in rows {
        let ids = if kind == "job" {
            &mut found.jobs
        } else {
            &mut found.confirmations
        };
        ids.insert(id.clone());
        found.orgs.insert(org.clone());
        found.owners.push((id, org));
    }
    Ok(found)
}

async fn due(
    connection: &mut PgConnection,
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
            .bind(spoiled)
            .fetch_all(&mut *connection)
            .await
            .map_err(|error| fault(&error))?;
    }
    Ok(due)
}
