//! Writing the difference: one statement for each list that is not empty, each over one JSON array, all of them and the commit
//! handed to the driver at once: each hand-over wakes its thread and ours, which costs a small commit more than the statements do.

use std::sync::LazyLock;

use futures_util::TryStreamExt as _;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Either, Executor as _};

use super::fault;
use crate::storage::batch::{Fault, Trouble};
use crate::storage::difference::{Step, puts};
use crate::storage::rows::grant::GrantRow;
use crate::storage::rows::log::{EventRow, HeadRow, ReplayMemory, TallyRow};
use crate::storage::rows::note::NoteRow;
use crate::storage::rows::request::{ConfirmationRow, DeliveryRow, VoteRow};
use crate::storage::rows::work::{JobRow, OutboxRow};
use crate::storage::sql::{HEAD_MOVES, NOTE_REPLACES, OUTBOX_REPLACES, TALLY_REPLACES};
use crate::storage::{Changes, StoreError};

/// The one UPDATE of a request. What leaves `pending` leaves it here, under the bound that its new state needs; anything else
/// keeps its status. `$2` is the clock of the batch.
const CHANGE_CONFIRMATIONS: &str = "UPDATE confirmation SET
    status = new.status, decided_at = new.decided_at, permit = new.permit, consumed_at = new.consumed_at, woken_at = new.woken_at,
    resumed_at = new.resumed_at, executed_at = new.executed_at, outcome = new.outcome, progress = new.progress,
    revision = new.revision,
    edition = new.edition, version = new.version
  FROM (SELECT value->>'id' AS id, value->>'stored' AS stored, value->>'settles' AS settles, value->>'status' AS status,
      value->>'decided_at' AS decided_at, value->>'permit' AS permit, value->>'consumed_at' AS consumed_at,
      value->>'woken_at' AS woken_at, value->>'resumed_at' AS resumed_at, value->>'executed_at' AS executed_at,
      value->>'outcome' AS outcome, value->>'progress' AS progress, value->>'revision' AS revision, value->>'edition' AS edition, value->>'version' AS version
    FROM jsonb_each($1)) AS new
  WHERE confirmation.id = new.id AND confirmation.version = new.stored AND CASE
    WHEN NOT new.settles THEN confirmation.status = new.status
    WHEN new.status = 'expired' THEN confirmation.status = 'pending' AND confirmation.expires_at <= $2
    WHEN new.status = 'undeliverable' THEN confirmation.status = 'pending'
    ELSE confirmation.status = 'pending' AND confirmation.expires_at > $2 END";
/// A job is changed only from the version that was read.
const CHANGE_JOBS: &str = "UPDATE job SET
    status = new.body->>'status', worker = new.body->>'worker', lease_until = new.body->>'lease_until',
    wait_reason = new.body->>'wait_reason', resume_movement = new.body->>'resume_movement', result = new.body->>'result',
    movement = new.body->>'movement', waiting_on = new.body->>'waiting_on', children = new.body->>'children',
    confirmations = new.body->>'confirmations',
    memory = new.body->>'memory', priority = new.body->>'priority', attempts = new.body->>'attempts',
    run_at = new.body->>'run_at', due_at = new.body->>'due_at', fence = new.body->>'fence',
    updated_at = new.body->>'updated_at', version = new.body->>'version'
  FROM (SELECT value->>'id' AS id, value->>'stored' AS stored, value AS body FROM jsonb_each($1)) AS new
  WHERE job.id = new.id AND job.version = new.stored";
const CHANGE_DELIVERIES: &str = "UPDATE delivery SET
    host = new.body->>'host', state = new.body->>'state', nonce = new.body->>'nonce', token_hash = new.body->>'token_hash',
    approvable = new.body->>'approvable', unheard = new.body->>'unheard', standing = new.body->>'standing', error = new.body->>'error',
    lost = new.body->>'lost'
  FROM (SELECT value->>'confirmation' AS confirmation, value->>'id' AS id, value AS body FROM jsonb_each($1)) AS new
  WHERE delivery.confirmation = new.confirmation AND delivery.id = new.id";
/// A grant is changed only from the version that was read.
const CHANGE_GRANTS: &str = "UPDATE standing_grant SET
    live_until = new.body->>'live_until', body = new.body->>'body', version = new.body->>'version'
  FROM (SELECT value->>'id' AS id, value->>'stored' AS stored, value AS body FROM jsonb_each($1)) AS new
  WHERE standing_grant.id = new.id AND standing_grant.version = new.stored";
const REMOVE_OUTBOX: &str = "DELETE FROM outbox WHERE id IN (SELECT value FROM json_each($1))";
static PUT_OUTBOX: LazyLock<String> =
    LazyLock::new(|| format!("{} {}", OutboxRow::SQLITE_INSERT, OUTBOX_REPLACES));
static PUT_TALLIES: LazyLock<String> =
    LazyLock::new(|| format!("{} {TALLY_REPLACES}", TallyRow::SQLITE_INSERT));
static PUT_NOTES: LazyLock<String> = LazyLock::new(|| format!("{} {NOTE_REPLACES}", NoteRow::SQLITE_INSERT));
static MOVE_HEADS: LazyLock<String> = LazyLock::new(|| format!("{} {}", HeadRow::SQLITE_INSERT, HEAD_MOVES));

/// The statements, each over parameters of its own: `$1` is the clock; the set of a step stands at its place after it, and the
/// number of its rows as many places further on. A step that may miss a row is followed by a question that fails if it did, so
/// that nothing after it runs and the whole can end with its own commit.
static STATEMENTS: LazyLock<[String; Step::ALL.len()]> = LazyLock::new(|| {
    Step::ALL.map(|step| {
        let set = step as usize + 2;
        let statement = statement(step)
            .replace("$2", "$now")
            .replace("$1", &format!("${set}"))
            .replace("$now", "$1");
        if !step.may_miss() {
            return statement;
        }
        let rows = set + Step::ALL.len();
        format!("{statement};\nSELECT CASE WHEN changes() <> ${rows} THEN abs(-9223372036854775808) END")
    })
});
const COMMIT: &str = "COMMIT";

/// Writes everything and commits, in one hand-over to the driver's thread.
pub(super) async fn conclude(connection: &mut SqliteConnection, changes: &Changes) -> Result<(), Trouble> {
    let puts = puts(changes);
    let orders = puts.iter().map(|put| STATEMENTS[put.step as usize].as_str());
    let orders: Vec<&str> = orders.chain([COMMIT]).collect();
    let checks = puts.iter().filter(|put| put.step.may_miss()).count();
    let mut left = puts.len() + checks;
    // Text of ours alone, and one of few: the driver keeps each combination prepared.
    let mut query = sqlx::query(AssertSqlSafe(orders.join(";\n"))).bind(changes.now.0);
    let mut sets: [Option<(String, i64)>; Step::ALL.len()] = Default::default();
    for put in puts {
        let rows = i64::try_from(put.rows).unwrap_or(i64::MAX);
        sets[put.step as usize] = Some((put.set, rows));
    }
    let rows = sets.each_ref().map(|set| set.as_ref().map(|(_, rows)| *rows));
    for set in sets {
        query = query.bind(set.map(|(set, _)| set));
    }
    for rows in rows {
        query = query.bind(rows);
    }
    let mut done = connection.fetch_many(query);
    loop {
        match done.try_next().await {
            Ok(Some(Either::Left(_))) if left == 0 => return Ok(()),
            Ok(Some(Either::Left(_))) => left -= 1,
            Ok(Some(Either::Right(_))) => {}
            Ok(None) => return Err(Trouble::Commit(Fault::Lost(unheard()))),
            Err(error) if left == 0 => return Err(Trouble::Commit(fault(&error))),
            Err(error) => return Err(Trouble::Before(fault(&error))),
        }
    }
}

fn unheard() -> StoreError {
    StoreError::Database("the driver did not answer every statement once".to_owned())
}

fn statement(step: Step) -> &'static str {
    match step {
        Step::InsertJobs => JobRow::SQLITE_INSERT,
        Step::InsertConfirmations => ConfirmationRow::SQLITE_INSERT,
        Step::ChangeConfirmations => CHANGE_CONFIRMATIONS,
        Step::ChangeJobs => CHANGE_JOBS,
        Step::InsertVotes => VoteRow::SQLITE_INSERT,
        Step::InsertDeliveries => DeliveryRow::SQLITE_INSERT,
        Step::ChangeDeliveries => CHANGE_DELIVERIES,
        Step::PutOutbox => &PUT_OUTBOX,
        Step::RemoveOutbox => REMOVE_OUTBOX,
        Step::InsertReplays => ReplayMemory::SQLITE_INSERT,
        Step::InsertGrants => GrantRow::SQLITE_INSERT,
        Step::ChangeGrants => CHANGE_GRANTS,
        Step::PutTallies => &PUT_TALLIES,
        Step::PutNotes => &PUT_NOTES,
        Step::InsertEvents => EventRow::SQLITE_INSERT,
        Step::MoveHeads => &MOVE_HEADS,
    }
}
