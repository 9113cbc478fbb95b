//! The SQL that both databases understand: one text for both.

/// After an insert into `outbox`: a row that is there already is replaced.
pub(super) const OUTBOX_REPLACES: &str = "ON CONFLICT (id) DO UPDATE SET channel = excluded.channel, card = excluded.card,
  errand = excluded.errand, attempts = excluded.attempts, not_before = excluded.not_before, worker = excluded.worker,
  lease_until = excluded.lease_until, due_at = excluded.due_at, fence = excluded.fence";

/// After an insert into `chain_head`: a head that is there already moves on.
pub(super) const HEAD_MOVES: &str =
    "ON CONFLICT (org) DO UPDATE SET seq = excluded.seq, hash = excluded.hash";

/// After an insert into `tally`: a row that is there already is replaced.
pub(super) const TALLY_REPLACES: &str =
    "ON CONFLICT (org, counter, scope, token, person) DO UPDATE SET marks = excluded.marks,
  forget_at = excluded.forget_at";

/// After an insert into `note`: a row that is there already is replaced.
pub(super) const NOTE_REPLACES: &str = "ON CONFLICT (org, kind, name) DO UPDATE SET body = excluded.body";

/// The next deadline of an undecided request.
pub(super) const NEXT_DEADLINE: &str =
    "SELECT min(expires_at), '' FROM confirmation WHERE status = 'pending'";

/// When the next outbox row becomes due.
pub(super) const NEXT_OUTBOX: &str = "SELECT min(due_at), '' FROM outbox";

/// What the metrics show, as number and name.
pub(super) const COUNTS: &str = "SELECT count(*), 'pending' FROM confirmation WHERE status = 'pending'
  UNION ALL SELECT min(created_at), 'oldest_pending' FROM confirmation WHERE status = 'pending'
  UNION ALL SELECT count(*), 'unresumed' FROM confirmation WHERE job IS NOT NULL AND decided_at IS NOT NULL AND resumed_at IS NULL
  UNION ALL SELECT count(*), 'outbox' FROM outbox
  UNION ALL SELECT count(*), 'job ' || status FROM job GROUP BY status";

/// The last migration that was applied.
pub(super) const SCHEMA: &str = "SELECT max(version), '' FROM schema_migration";

/// Audit events that are worth a tree by kind, spelled as `audit_event_rare` spells it: not what every call leaves behind.
pub(super) const RARE: &str = "kind NOT IN ('call.allowed', 'confirmation.approved', 'confirmation.created', 'job.parked', \
'job.resumed', 'job.submitted', 'permit.consumed', 'tool.executed', 'vote.cast')";

/// Whether events of this kind stand in no tree by kind.
pub(super) fn is_common(kind: &str) -> bool {
    RARE.split('\'').skip(1).step_by(2).any(|common| common == kind)
}
