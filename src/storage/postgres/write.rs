//! Writing the difference: one statement for each list that is not empty, each over one JSON array.

use std::sync::LazyLock;

use sqlx::postgres::PgConnection;

use super::fault;
use crate::storage::Changes;
use crate::storage::batch::Fault;
use crate::storage::difference::{Step, puts};
use crate::storage::rows::log::{EventRow, HeadRow, ReplayMemory};
use crate::storage::rows::request::{ConfirmationRow, DeliveryRow, VoteRow};
use crate::storage::rows::work::{JobRow, OutboxRow};
use crate::storage::sql::{HEAD_MOVES, OUTBOX_REPLACES};

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
    state = new.state, nonce = new.nonce, token_hash = new.token_hash, approvable = new.approvable, unheard = new.unheard, standing = new.standing,
    error = new.error
  FROM json_populate_recordset(NULL::delivery, $1::json) AS new
  WHERE delivery.id = new.id";
const REMOVE_OUTBOX: &str = "DELETE FROM outbox WHERE id IN (SELECT json_array_elements_text($1::json))";
static PUT_OUTBOX: LazyLock<String> =
    LazyLock::new(|| format!("{} {OUTBOX_REPLACES}", OutboxRow::POSTGRES_INSERT));
static MOVE_HEADS: LazyLock<String> = LazyLock::new(|| format!("{} {HEAD_MOVES}", HeadRow::POSTGRES_INSERT));

/// Writes everything.
pub(super) async fn write(connection: &mut PgConnection, changes: &Changes) -> Result<(), Fault> {
    for put in puts(changes) {
        let mut query = sqlx::query(statement(put.step)).bind(put.set.as_str());
        if put.step.judges() {
            query = query.bind(changes.now.0);
        }
        let done = query
            .execute(&mut *connection)
            .await
            .map_err(|error| fault(&error))?;
        put.check(done.rows_affected())?;
    }
    Ok(())
}

fn statement(step: Step) -> &'static str {
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
        Step::InsertEvents => EventRow::POSTGRES_INSERT,
        Step::MoveHeads => &MOVE_HEADS,
    }
}
