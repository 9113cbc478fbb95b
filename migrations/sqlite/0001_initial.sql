-- Times are milliseconds since the Unix epoch, UTC. JSON is text and is never queried inside, except job.waiting_on.

CREATE TABLE job (
  id          TEXT    NOT NULL CONSTRAINT job_pk PRIMARY KEY,
  org         TEXT    NOT NULL,
  token       TEXT    NOT NULL,
  piece       TEXT    NOT NULL,
  input       TEXT    NOT NULL,
  agent_id    TEXT,
  session_id  TEXT,
  requester   TEXT,
  persons     TEXT    NOT NULL,
  parent      TEXT    CONSTRAINT job_parent_fk REFERENCES job (id),
  status      TEXT    NOT NULL CONSTRAINT job_status_known CHECK (status IN ('queued', 'running', 'waiting_human', 'waiting_subtasks', 'completed', 'aborted', 'cancelled', 'error')),
  -- Who runs it and until when that is believed.
  worker      TEXT,
  lease_until INTEGER,
  -- Why it is parked, and where it goes on.
  wait_reason TEXT    CONSTRAINT job_wait_reason_known CHECK (wait_reason IN ('tool_approval', 'tool_request', 'user_input', 'browser_login', 'outcome_unknown')),
  resume_movement TEXT,
  -- What it handed over, or the fault that ended it.
  result      TEXT,
  movement    TEXT    NOT NULL,
  waiting_on  TEXT    NOT NULL,
  confirmations TEXT  NOT NULL,
  memory      TEXT    NOT NULL,
  priority    INTEGER NOT NULL,
  attempts    INTEGER NOT NULL,
  run_at      INTEGER NOT NULL,
  -- When a worker may take it: run_at of a queued job, the end of the lease of a running one, nothing for all others.
  due_at      INTEGER,
  fence       INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  version     INTEGER NOT NULL,
  CONSTRAINT job_due_iff_runnable CHECK ((due_at IS NOT NULL) = (status IN ('queued', 'running'))),
  CONSTRAINT job_leased_iff_running CHECK ((status = 'running') = (worker IS NOT NULL) AND (status = 'running') = (lease_until IS NOT NULL)),
  CONSTRAINT job_reason_iff_waiting CHECK ((status = 'waiting_human') = (wait_reason IS NOT NULL)),
  CONSTRAINT job_resumes_iff_parked CHECK ((status IN ('waiting_human', 'waiting_subtasks')) = (resume_movement IS NOT NULL)),
  CONSTRAINT job_result_iff_ended CHECK ((status IN ('completed', 'aborted', 'error')) = (result IS NOT NULL))
) STRICT;

-- Holds queued and running jobs only: a parked job costs the queue nothing.
CREATE INDEX job_runnable ON job (priority DESC, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX job_on_subtasks ON job (id) WHERE status = 'waiting_subtasks';
CREATE INDEX job_status ON job (status, created_at, id);
CREATE INDEX job_listing ON job (created_at, id);

CREATE TABLE confirmation (
  id           TEXT    NOT NULL CONSTRAINT confirmation_pk PRIMARY KEY,
  org          TEXT    NOT NULL,
  token        TEXT    NOT NULL,
  tool         TEXT    NOT NULL,
  args         TEXT    NOT NULL,
  digest       TEXT    NOT NULL,
  agent_id     TEXT,
  session_id   TEXT,
  tool_call_id TEXT,
  requester    TEXT,
  metadata     TEXT,
  persons      TEXT    NOT NULL,
  job          TEXT    CONSTRAINT confirmation_job_fk REFERENCES job (id),
  rule         TEXT,
  reason       TEXT,
  terms        TEXT    NOT NULL,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  status       TEXT    NOT NULL CONSTRAINT confirmation_status_known CHECK (status IN ('pending', 'approved', 'rejected', 'expired', 'cancelled', 'undeliverable')),
  decided_at   INTEGER,
  permit       TEXT,
  consumed_at  INTEGER,
  woken_at     INTEGER,
  resumed_at   INTEGER,
  executed_at  INTEGER,
  outcome      TEXT,
  revision     INTEGER NOT NULL,
  edition      INTEGER NOT NULL,
  version      INTEGER NOT NULL,
  CONSTRAINT confirmation_decided_iff_settled CHECK ((status = 'pending') = (decided_at IS NULL)),
  CONSTRAINT confirmation_permit_whole CHECK ((permit IS NULL) = (consumed_at IS NULL)),
  CONSTRAINT confirmation_only_approved_runs CHECK (permit IS NULL OR status = 'approved')
) STRICT;

CREATE INDEX confirmation_deadline ON confirmation (expires_at, id) WHERE status = 'pending';
CREATE UNIQUE INDEX confirmation_call ON confirmation (org, token, coalesce(session_id, ''), tool_call_id) WHERE tool_call_id IS NOT NULL;
-- Over columns that never change, so that a decision leaves it alone.
CREATE INDEX confirmation_twin ON confirmation (org, token, coalesce(session_id, ''), digest);
CREATE INDEX confirmation_unresumed ON confirmation (job) WHERE job IS NOT NULL AND decided_at IS NOT NULL AND resumed_at IS NULL;
CREATE INDEX confirmation_of_job ON confirmation (job) WHERE job IS NOT NULL;
CREATE INDEX confirmation_listing ON confirmation (created_at, id);

CREATE TABLE vote (
  confirmation TEXT    NOT NULL CONSTRAINT vote_confirmation_fk REFERENCES confirmation (id),
  person       TEXT    NOT NULL,
  decision     TEXT    NOT NULL CONSTRAINT vote_decision_known CHECK (decision IN ('approve', 'reject')),
  channel      TEXT,
  surface      TEXT    NOT NULL,
  reason       TEXT,
  at           INTEGER NOT NULL,
  -- A person's first vote stands.
  CONSTRAINT vote_pk PRIMARY KEY (confirmation, person)
) STRICT, WITHOUT ROWID;

CREATE TABLE delivery (
  id           TEXT    NOT NULL CONSTRAINT delivery_pk PRIMARY KEY,
  confirmation TEXT    NOT NULL CONSTRAINT delivery_confirmation_fk REFERENCES confirmation (id),
  channel      TEXT    NOT NULL,
  state        TEXT    NOT NULL CONSTRAINT delivery_state_known CHECK (state IN ('queued', 'sending', 'posted', 'settled', 'failed')),
  nonce        TEXT    NOT NULL,
  token_hash   TEXT    NOT NULL CONSTRAINT delivery_token_unique UNIQUE,
  approvable   INTEGER NOT NULL CONSTRAINT delivery_approvable_flag CHECK (approvable IN (0, 1)),
  unheard      INTEGER NOT NULL CONSTRAINT delivery_unheard_flag CHECK (unheard IN (0, 1)),
  standing     TEXT    NOT NULL,
  error        TEXT
) STRICT;

CREATE INDEX delivery_of_confirmation ON delivery (confirmation);

CREATE TABLE outbox (
  id           TEXT    NOT NULL CONSTRAINT outbox_pk PRIMARY KEY,
  confirmation TEXT CONSTRAINT outbox_confirmation_fk REFERENCES confirmation (id),
  channel      TEXT    NOT NULL,
  -- The card that the row keeps true; nothing for a notice.
  card         TEXT,
  errand       TEXT    NOT NULL,
  attempts     INTEGER NOT NULL,
  not_before   INTEGER NOT NULL,
  worker       TEXT,
  lease_until  INTEGER,
  -- The later of not_before and the end of the lease.
  due_at       INTEGER NOT NULL,
  fence        INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  CONSTRAINT outbox_lease_whole CHECK ((worker IS NULL) = (lease_until IS NULL))
) STRICT;

CREATE INDEX outbox_due ON outbox (due_at, id);
CREATE INDEX outbox_of_confirmation ON outbox (confirmation);

CREATE TABLE replay (
  app_kind     TEXT    NOT NULL,
  app_id       TEXT    NOT NULL,
  press        TEXT    NOT NULL,
  confirmation TEXT,
  answer       TEXT    NOT NULL,
  forget_at    INTEGER NOT NULL,
  CONSTRAINT replay_pk PRIMARY KEY (app_kind, app_id, press)
) STRICT, WITHOUT ROWID;

CREATE INDEX replay_forget ON replay (forget_at);

CREATE TABLE chain_head (
  org  TEXT    NOT NULL CONSTRAINT chain_head_pk PRIMARY KEY,
  seq  INTEGER NOT NULL CONSTRAINT chain_head_counts CHECK (seq >= 0),
  hash TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_event (
  org          TEXT    NOT NULL,
  seq          INTEGER NOT NULL CONSTRAINT audit_event_counts CHECK (seq >= 1),
  at           INTEGER NOT NULL,
  kind         TEXT    NOT NULL,
  actor        TEXT    NOT NULL,
  confirmation TEXT,
  job          TEXT,
  channel      TEXT,
  data         TEXT    NOT NULL,
  commitments  TEXT    NOT NULL,
  openings     TEXT    NOT NULL,
  prev_hash    TEXT    NOT NULL,
  hash         TEXT    NOT NULL,
  CONSTRAINT audit_event_pk PRIMARY KEY (org, seq)
) STRICT;

CREATE INDEX audit_event_of_confirmation ON audit_event (confirmation, org, seq) WHERE confirmation IS NOT NULL;
CREATE INDEX audit_event_of_job ON audit_event (job, org, seq) WHERE job IS NOT NULL;
CREATE INDEX audit_event_kind ON audit_event (kind, org, seq);

-- The log is append-only: only the openings of commitments may be erased.
CREATE TRIGGER audit_event_unchanged
BEFORE UPDATE OF org, seq, at, kind, actor, confirmation, job, channel, data, commitments, prev_hash, hash ON audit_event
BEGIN SELECT RAISE(ABORT, 'audit_event is append-only'); END;

CREATE TRIGGER audit_event_kept BEFORE DELETE ON audit_event
BEGIN SELECT RAISE(ABORT, 'audit_event is append-only'); END;

CREATE TRIGGER chain_head_grows BEFORE UPDATE ON chain_head WHEN new.org <> old.org OR new.seq <= old.seq
BEGIN SELECT RAISE(ABORT, 'chain_head only grows'); END;

CREATE TRIGGER chain_head_kept BEFORE DELETE ON chain_head
BEGIN SELECT RAISE(ABORT, 'chain_head only grows'); END;
