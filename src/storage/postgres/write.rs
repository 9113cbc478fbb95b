//! Writing the difference: one statement with a part for each list that is not empty, each over one JSON array.

use std::sync::LazyLock;

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use super::fault;
use crate::storage::batch::Fault;
use crate::storage::difference::{Put, Step, puts};
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
  FROM json_to_recordset($1::json) AS new(id text, stored bigint, settles int, status text, decided_at bigint, permit text,
    consumed_at bigint, woken_at bigint, resumed_at bigint, executed_at bigint, outcome text, progress text, revision bigint, edition bigint,
    version bigint)
  WHERE confirmation.id = new.id AND confirmation.version = new.stored AND CASE
    WHEN new.settles = 0 THEN confirmation.status = new.status
    WHEN new.status = 'expired' THEN confirmation.status = 'pending' AND confirmation.expires_at <= $2
    WHEN new.status = 'undeliverable' THEN confirmation.status = 'pending'
    ELSE confirmation.status = 'pending' AND confirmation.expires_at > $2 END";
/// A job is changed only from the version that was read.
const CHANGE_JOBS: &str = "UPDATE job SET
    status = new.status, worker = new.worker, lease_until = new.lease_until, wait_reason = new.wait_reason,
    resume_movement = new.resume_movement, result = new.result, movement = new.movement, waiting_on = new.waiting_on,
    children = new.children, confirmations = new.confirmations, memory = new.memory, priority = new.priority, attempts = new.attempts,
    run_at = new.run_at, due_at = new.due_at, fence = new.fence, updated_at = new.updated_at, version = new.version
  FROM json_to_recordset($1::json) AS new(id text, stored bigint, status text, worker text, lease_until bigint, wait_reason text,
    resume_movement text, result text, movement text, waiting_on text, children text, confirmations text, memory text, priority bigint,
    attempts bigint, run_at bigint, due_at bigint, fence bigint, updated_at bigint, version bigint)
  WHERE job.id = new.id AND job.version = new.stored";
const CHANGE_DELIVERIES: &str = "UPDATE delivery SET
    host = new.host, state = new.state, nonce = new.nonce, token_hash = new.token_hash, approvable = new.approvable, unheard = new.unheard, standing = new.standing,
    error = new.error, lost = new.lost
  FROM json_populate_recordset(NULL::delivery, $1::json) AS new
  WHERE delivery.confirmation = new.confirmation AND delivery.id = new.id";
/// A grant is changed only from the version that was read.
const CHANGE_GRANTS: &str = "UPDATE standing_grant SET
    live_until = new.live_until, body = new.body, version = new.version
  FROM json_to_recordset($1::json) AS new(id text, stored bigint, live_until bigint, body text, version bigint)
  WHERE standing_grant.id = new.id AND standing_grant.version = new.stored";
const REMOVE_OUTBOX: &str = "DELETE FROM outbox WHERE id IN (SELECT json_array_elements_text($1::json))";
static PUT_OUTBOX: LazyLock<String> =
    LazyLock::new(|| format!("{} {OUTBOX_REPLACES}", OutboxRow::POSTGRES_INSERT));
static PUT_TALLIES: LazyLock<String> =
    LazyLock::new(|| format!("{} {TALLY_REPLACES}", TallyRow::POSTGRES_INSERT));
static PUT_NOTES: LazyLock<String> =
    LazyLock::new(|| format!("{} {NOTE_REPLACES}", NoteRow::POSTGRES_INSERT));
static MOVE_HEADS: LazyLock<String> = LazyLock::new(|| format!("{} {HEAD_MOVES}", HeadRow::POSTGRES_INSERT));

/// The end that every step of the statement has: what it reached is counted.
const REACHED: &str = "RETURNING 1";

/// Writes everything: one statement, in which every step is a part of its own. The steps touch different rows, so none needs to
/// see what another did; what refers to each other is checked by the database when all of it is done. The answer is how many rows
/// were written.
pub(super) async fn write(connection: &mut PgConnection, changes: &Changes) -> Result<u64, Fault> {
    let puts = puts(changes);
    // Text of ours alone, and one of few: the driver keeps each combination prepared.
    let mut query = sqlx::query_scalar(AssertSqlSafe(statement(&puts))).bind(changes.now.0);
    for step in Step::ALL {
        let put = puts.iter().find(|put| put.step == step);
        query = query.bind(put.map(|put| put.set.as_str()));
    }
    let reached: Vec<i64> = query.fetch_one(connection).await.map_err(|error| fault(&error))?;
    if reached.len() != puts.len() {
        let unheard = "the database did not answer every step once".to_owned();
        return Err(Fault::Refused(StoreError::Database(unheard)));
    }
    let mut written = 0;
    for (put, reached) in puts.iter().zip(reached) {
        let reached = u64::try_from(reached).unwrap_or(0);
        put.check(reached)?;
        written += reached;
    }
    Ok(written)
}

/// The steps that have a set, as one statement that answers how many rows each of them reached.
fn statement(puts: &[Put]) -> String {
    let name = |put: &Put| format!("step_{}", put.step as usize);
    let parts: Vec<String> = puts
        .iter()
        .map(|put| format!("{} AS ({})", name(put), PARTS[put.step as usize]))
        .collect();
    let counts: Vec<String> = puts
        .iter()
        .map(|put| format!("(SELECT count(*) FROM {})", name(put)))
        .collect();
    format!("WITH {} SELECT ARRAY[{}]", parts.join(",\n"), counts.join(", "))
}

/// The steps, each over a parameter of its own: `$1` is the clock, the set of a step stands at its place after it.
static PARTS: LazyLock<[String; Step::ALL.len()]> = LazyLock::new(|| {
    Step::ALL.map(|step| {
        let set = format!("${}", step as usize + 2);
        let part = part(step)
            .replace("$2", "$now")
            .replace("$1", &set)
            .replace("$now", "$1");
        format!("{part} {REACHED}")
    })
});

fn part(step: Step) -> &'static str {
    match step {
        Step::InsertJobs => JobRow::POSTGRES_INSERT,
        Step::InsertConfirmations => ConfirmationRow::POSTGRES_INSERT,
        Step::ChangeConfirmations => CHANGE_CONFIRMATIONS,
        Step::ChangeJobs => CHANGE_JOBS,
        Step::InsertVotes => VoteRow::POSTGRES_INSERT,
        Step::InsertDeliveries => DeliveryRow::POSTGRES_INSERT,
        Step::ChangeDeliveries => CHANGE_DELIVERIES,
        Step::PutOutbox => &PUT_OUTBOX,
        Step::RemoveOutbox => REMOVE_OUTBOX,
        Step::InsertReplays => ReplayMemory::POSTGRES_INSERT,
        Step::InsertGrants => GrantRow::POSTGRES_INSERT,
        Step::ChangeGrants => CHANGE_GRANTS,
        Step::PutTallies => &PUT_TALLIES,
        Step::PutNotes => &PUT_NOTES,
        Step::InsertEvents => EventRow::POSTGRES_INSERT,
        Step::MoveHeads => &MOVE_HEADS,
    }
}
