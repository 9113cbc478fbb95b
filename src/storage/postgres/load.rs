//! Locking and reading what a batch touches, in two statements, in the order that every process keeps.
//!
//! The first finds the organisations and locks their chain heads. Every writer of every process does this first, so once it
//! returns nobody else changes a row of those organisations. The second begins after that, so what it sees is what holds: it
//! finds the rows anew, locks them (requests, then jobs, then outbox rows), and reads what hangs on them.

use std::sync::LazyLock;

use gatepost_channel::UtcMillis;
use sqlx::postgres::PgConnection;

use super::fault;
use super::find::{Ask, Keys, beginning};
use crate::audit::chain::GENESIS;
use crate::storage::batch::Fault;
use crate::storage::gather::{Due, Gathered, Kind, gather};
use crate::storage::rows::grant::GrantRow;
use crate::storage::rows::log::{HeadRow, ReplayMemory, TallyRow};
use crate::storage::rows::note::NoteRow;
use crate::storage::rows::request::{ConfirmationRow, DeliveryRow, VoteRow};
use crate::storage::rows::spell;
use crate::storage::rows::work::{JobRow, OutboxRow};
use crate::storage::wanted::Wanted;
use crate::storage::{Loaded, StoreError, Touches};

/// The one clock of the store: the server's, moved by `$1` milliseconds.
pub(super) const NOW: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1";

/// Whose the rows are, as `('org', …)`, and the locked chain heads.
static LOCK_HEADS: LazyLock<[String; 2]> = LazyLock::new(|| [heads(false), heads(true)]);
/// Every row, as its kind and its JSON object; what the store chose, as its list and the id; and the clock.
static LOCK_ROWS: LazyLock<[String; 2]> = LazyLock::new(|| [rows(false), rows(true)]);

/// Grants lie behind the chain head of their organisation, which is locked before them.
static LOCK_GRANTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT 'standing_grant', {} FROM standing_grant WHERE id IN (
           SELECT json_array_elements_text($1::json)
           UNION SELECT found.id FROM json_array_elements($2::json) AS wanted CROSS JOIN LATERAL (
             SELECT id FROM standing_grant WHERE org = wanted->>0 AND token = wanted->>1 AND tool = wanted->>2
               AND live_until IS NOT NULL OFFSET 0) AS found)
           AND org = ANY ($3)
         ORDER BY id COLLATE \"C\" FOR UPDATE",
        GrantRow::POSTGRES
    )
});

const START_CHAINS: &str = "INSERT INTO chain_head (org, seq, hash)
  SELECT org, 0, $2 FROM unnest($1::text[]) AS new(org) ORDER BY org ON CONFLICT DO NOTHING";

fn heads(choosing: bool) -> String {
    let jobs = if choosing {
        "SELECT unnest($16::text[]) UNION SELECT id FROM runnable_job UNION SELECT id FROM stranded_job"
    } else {
        "SELECT unnest($16::text[])"
    };
    format!(
        "{beginning},
  met(org) AS MATERIALIZED (
    SELECT unnest($2::text[])
    UNION SELECT row.org FROM request CROSS JOIN LATERAL (SELECT org FROM confirmation WHERE id = request.id OFFSET 0) AS row
    UNION SELECT row.org FROM ({jobs}) AS wanted(id) CROSS JOIN LATERAL (SELECT org FROM job WHERE job.id = wanted.id OFFSET 0) AS row)
  SELECT 'org', org FROM met
  UNION ALL SELECT 'chain_head', locked.body FROM (SELECT org FROM met ORDER BY org COLLATE \"C\") AS wanted
    CROSS JOIN LATERAL (SELECT {head} AS body FROM chain_head WHERE chain_head.org = wanted.org FOR UPDATE) AS locked",
        beginning = beginning(choosing),
        head = HeadRow::POSTGRES,
    )
}

fn rows(choosing: bool) -> String {
    let (stranded, not_runnable, not_due) = if choosing {
        (
            " UNION SELECT id FROM stranded_job",
            " EXCEPT SELECT id FROM runnable_job",
            " EXCEPT SELECT id FROM due_outbox",
        )
    } else {
        ("", "", "")
    };
    // What the store chose and somebody else holds is passed over.
    let (free, chosen) = if choosing {
        (
            format!(
                "free_job(body) AS MATERIALIZED (
    SELECT locked.body FROM (SELECT id FROM runnable_job ORDER BY id COLLATE \"C\") AS wanted
    CROSS JOIN LATERAL (SELECT {job} AS body FROM job WHERE job.id = wanted.id AND org = ANY ($2) FOR UPDATE SKIP LOCKED) AS locked),
  free_item(body) AS MATERIALIZED (
    SELECT locked.body FROM (SELECT id FROM due_outbox ORDER BY id COLLATE \"C\") AS wanted
    CROSS JOIN LATERAL (SELECT {item} AS body FROM outbox WHERE outbox.id = wanted.id FOR UPDATE SKIP LOCKED) AS locked),
  ",
                job = JobRow::POSTGRES,
                item = OutboxRow::POSTGRES,
            ),
            "
  UNION ALL SELECT 'job', body FROM free_job
  UNION ALL SELECT 'outbox', body FROM free_item
  UNION ALL SELECT 'due_confirmation', id FROM due_confirmation
  UNION ALL SELECT 'due_outbox', id FROM due_outbox
  UNION ALL SELECT 'runnable_job', id FROM runnable_job
  UNION ALL SELECT 'stranded_job', id FROM stranded_job",
        )
    } else {
        (String::new(), "")
    };
    format!(
        "{beginning},
  asked(id, job, body) AS MATERIALIZED (
    SELECT wanted.id, locked.job, locked.body FROM (SELECT id FROM request ORDER BY id COLLATE \"C\") AS wanted
    CROSS JOIN LATERAL (SELECT job, {confirmation} AS body FROM confirmation WHERE confirmation.id = wanted.id AND org = ANY ($2)
      FOR UPDATE) AS locked),
  named_job(id) AS MATERIALIZED (
    (SELECT job FROM asked WHERE job IS NOT NULL UNION SELECT unnest($16::text[]){stranded}){not_runnable}),
  held_job(body) AS MATERIALIZED (
    SELECT locked.body FROM (SELECT id FROM named_job ORDER BY id COLLATE \"C\") AS wanted
    CROSS JOIN LATERAL (SELECT {job} AS body FROM job WHERE job.id = wanted.id AND org = ANY ($2) FOR UPDATE) AS locked),
  named_item(id) AS MATERIALIZED (
    (SELECT card.id FROM asked CROSS JOIN LATERAL (
      SELECT id FROM outbox WHERE outbox.confirmation = asked.id AND card IS NOT NULL OFFSET 0) AS card
    UNION SELECT unnest($17::text[])){not_due}),
  held_item(body) AS MATERIALIZED (
    SELECT locked.body FROM (SELECT id FROM named_item WHERE (SELECT count(*) FROM held_job) >= 0 ORDER BY id COLLATE \"C\") AS wanted
    CROSS JOIN LATERAL (SELECT {item} AS body FROM outbox WHERE outbox.id = wanted.id FOR UPDATE) AS locked),
  {free}last(now) AS (SELECT (({NOW}))::text WHERE (SELECT count(*) FROM held_item) >= 0)
  SELECT 'confirmation', body FROM asked
  UNION ALL SELECT 'job', body FROM held_job
  UNION ALL SELECT 'outbox', body FROM held_item{chosen}
  UNION ALL SELECT 'vote', voice.body FROM asked
    CROSS JOIN LATERAL (SELECT {vote} AS body FROM vote WHERE vote.confirmation = asked.id OFFSET 0) AS voice
  UNION ALL SELECT 'delivery', card.body FROM asked
    CROSS JOIN LATERAL (SELECT {delivery} AS body FROM delivery WHERE delivery.confirmation = asked.id OFFSET 0) AS card
  UNION ALL SELECT 'replay', known.body FROM unnest($13::text[], $14::text[], $15::text[]) AS wanted(kind, app, press)
    CROSS JOIN LATERAL (SELECT {replay} AS body FROM replay WHERE app_kind = wanted.kind AND app_id = wanted.app
      AND press = wanted.press OFFSET 0) AS known
  UNION ALL SELECT 'clock', now FROM last",
        beginning = beginning(choosing),
        confirmation = ConfirmationRow::POSTGRES,
        job = JobRow::POSTGRES,
        item = OutboxRow::POSTGRES,
        vote = VoteRow::POSTGRES,
        delivery = DeliveryRow::POSTGRES,
        replay = ReplayMemory::POSTGRES,
    )
}

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
    let keys = Keys::of(touches);
    let mut round = 1;
    loop {
        let mut rows = Rows::new();
        let orgs = lock_heads(connection, &keys, offset, spoiled, &mut rows).await?;
        lock_grants(connection, &keys, &orgs, &mut rows).await?;
        lock_notes(connection, touches, &orgs, &mut rows).await?;
        lock_tallies(connection, touches, &mut rows).await?;
        let (now, due) = lock_rows(connection, &keys, offset, &orgs, spoiled, &mut rows).await?;
        let Gathered { loaded, spoiled: new } = gather(touches, now, &rows, &due)?;
        if new.is_empty() || round == ROUNDS {
            return Ok(loaded);
        }
        spoiled.extend(new);
        round += 1;
    }
}

/// Locks the chain heads in order of organisation, starting the chains that have none. Whose heads are locked is the answer.
async fn lock_heads(
    c: &mut PgConnection,
    keys: &Keys,
    offset: i64,
    spoiled: &[String],
    rows: &mut Rows,
) -> Result<Vec<String>, Fault> {
    let statement = LOCK_HEADS[usize::from(keys.choosing())].as_str();
    let (orgs, heads) = heads_of(c, keys.ask(statement, offset, &keys.orgs, spoiled)).await?;
    if orgs.len() == heads.len() {
        rows.extend(heads);
        return Ok(orgs);
    }
    let start = sqlx::query(START_CHAINS).bind(&orgs).bind(GENESIS);
    start.execute(&mut *c).await.map_err(|error| fault(&error))?;
    // Of these organisations only: what came up meanwhile is served next time.
    let no_keys = Keys::default();
    let (started, heads) = heads_of(c, no_keys.ask(&LOCK_HEADS[0], offset, &orgs, &[])).await?;
    if started.len() != heads.len() {
        return Err(odd("a chain that does not start"));
    }
    rows.extend(heads);
    Ok(started)
}

/// The organisations that were met, and their heads as far as there are some.
async fn heads_of(c: &mut PgConnection, met: Ask<'_>) -> Result<(Vec<String>, Rows), Fault> {
    let found = met.fetch_all(c).await.map_err(|error| fault(&error))?;
    let (orgs, heads): (Vec<_>, Vec<_>) = found.into_iter().partition(|(word, _)| word == "org");
    let heads = heads.into_iter().map(|(_, body)| (Kind::Head, body));
    Ok((orgs.into_iter().map(|(_, org)| org).collect(), heads.collect()))
}

/// Locks the grants of these organisations that are wanted; most batches want none.
async fn lock_grants(
    c: &mut PgConnection,
    keys: &Keys,
    orgs: &[String],
    rows: &mut Rows,
) -> Result<(), Fault> {
    let (ids, covering) = keys.grants();
    if ids.is_empty() && covering.is_empty() {
        return Ok(());
    }
    let found: Vec<(String, String)> = sqlx::query_as(LOCK_GRANTS.as_str())
        .bind(spell(ids))
        .bind(spell(covering))
        .bind(orgs)
        .fetch_all(c)
        .await
        .map_err(|error| fault(&error))?;
    rows.extend(found.into_iter().map(|(_, body)| (Kind::Grant, body)));
    Ok(())
}

/// Tallies, each locked or begun, in their order.
static TALLIES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO tally (org, counter, scope, token, person, marks, forget_at)
         SELECT wanted->>0, wanted->>1, wanted->>2, wanted->>3, wanted->>4, '[]', 0 FROM json_array_elements($1::json) AS wanted
         ORDER BY 1, 2, 3, 4, 5
         ON CONFLICT (org, counter, scope, token, person) DO UPDATE SET forget_at = tally.forget_at
         RETURNING {}",
        TallyRow::POSTGRES
    )
});

/// Locks the tallies, beginning those that are not there yet.
async fn lock_tallies(c: &mut PgConnection, touches: &Touches, rows: &mut Rows) -> Result<(), Fault> {
    if touches.tallies.is_empty() {
        return Ok(());
    }
    let locked: Vec<String> = sqlx::query_scalar(TALLIES.as_str())
        .bind(spell(&Wanted::from(touches).tallies))
        .fetch_all(c)
        .await
        .map_err(|error| fault(&error))?;
    rows.extend(locked.into_iter().map(|body| (Kind::Tally, body)));
    Ok(())
}

/// Notes lie behind the chain head of their organisation, as grants do.
static NOTES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {} FROM note CROSS JOIN json_array_elements($1::json) AS wanted
         WHERE org = wanted->>0 AND kind = wanted->>1 AND org = ANY ($2)
         ORDER BY org, kind, name FOR UPDATE OF note",
        NoteRow::POSTGRES
    )
});

/// Locks the notes of these organisations that are wanted; most batches want none.
async fn lock_notes(
    c: &mut PgConnection,
    touches: &Touches,
    orgs: &[String],
    rows: &mut Rows,
) -> Result<(), Fault> {
    if touches.notes.is_empty() {
        return Ok(());
    }
    let locked: Vec<String> = sqlx::query_scalar(NOTES.as_str())
        .bind(spell(&Wanted::from(touches).notes))
        .bind(orgs)
        .fetch_all(c)
        .await
        .map_err(|error| fault(&error))?;
    rows.extend(locked.into_iter().map(|body| (Kind::Note, body)));
    Ok(())
}

/// Locks requests, jobs and outbox rows of these organisations, reads what hangs on them, and then the clock.
async fn lock_rows(
    c: &mut PgConnection,
    keys: &Keys,
    offset: i64,
    orgs: &[String],
    spoiled: &[String],
    rows: &mut Rows,
) -> Result<(UtcMillis, Due), Fault> {
    let statement = LOCK_ROWS[usize::from(keys.choosing())].as_str();
    let found = keys.ask(statement, offset, orgs, spoiled).fetch_all(c).await;
    let (mut now, mut due) = (None, Due::default());
    for (word, body) in found.map_err(|error| fault(&error))? {
        match word.as_str() {
            "clock" => now = body.parse().ok(),
            "due_confirmation" => due.confirmations.push(body),
            "due_outbox" => due.outbox.push(body),
            "runnable_job" => due.runnable.push(body),
            "stranded_job" => due.stranded.push(body),
            word => {
                let kind = Kind::parse(word).ok_or_else(|| odd("an unknown kind of row"))?;
                rows.push((kind, body));
            }
        }
    }
    now.map(|now| (UtcMillis(now), due))
        .ok_or_else(|| odd("no clock"))
}

fn odd(what: &str) -> Fault {
    Fault::Refused(StoreError::Database(what.to_owned()))
}
