-- Times are milliseconds since the Unix epoch, UTC. JSON is text and is never queried inside, except job.waiting_on.

CREATE TABLE job (
  id          TEXT COLLATE "C"    NOT NULL CONSTRAINT job_pk PRIMARY KEY,
  org         TEXT COLLATE "C"    NOT NULL,
  token       TEXT COLLATE "C"    NOT NULL,
  piece       TEXT COLLATE "C"    NOT NULL,
  input       TEXT COLLATE "C"    NOT NULL,
  agent_id    TEXT COLLATE "C",
  session_id  TEXT COLLATE "C",
  requester   TEXT COLLATE "C",
  persons     TEXT COLLATE "C"    NOT NULL,
  parent      TEXT COLLATE "C"    CONSTRAINT job_parent_fk REFERENCES job (id),
  status      TEXT COLLATE "C"    NOT NULL CONSTRAINT job_status_known CHECK (status IN ('queued', 'running', 'waiting_human', 'waiting_subtasks', 'completed', 'aborted', 'cancelled', 'error')),
  -- Who runs it and until when that is believed.
  worker      TEXT COLLATE "C",
  lease_until BIGINT,
  -- Why it is parked, and where it goes on.
  wait_reason TEXT COLLATE "C"    CONSTRAINT job_wait_reason_known CHECK (wait_reason IN ('tool_approval', 'tool_request', 'user_input', 'browser_login', 'outcome_unknown')),
  resume_movement TEXT COLLATE "C",
  -- What it handed over, or the fault that ended it.
  result      TEXT COLLATE "C",
  movement    TEXT COLLATE "C"    NOT NULL,
  waiting_on  TEXT COLLATE "C"    NOT NULL,
  confirmations TEXT COLLATE "C"  NOT NULL,
  memory      TEXT COLLATE "C"    NOT NULL,
  priority    BIGINT NOT NULL,
  attempts    BIGINT NOT NULL,
  run_at      BIGINT NOT NULL,
  -- When a worker may take it: run_at of a queued job, the end of the lease of a running one, nothing for all others.
  due_at      BIGINT,
  fence       BIGINT NOT NULL,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  version     BIGINT NOT NULL,
  CONSTRAINT job_due_iff_runnable CHECK ((due_at IS NOT NULL) = (status IN ('queued', 'running'))),
  CONSTRAINT job_leased_iff_running CHECK ((status = 'running') = (worker IS NOT NULL) AND (status = 'running') = (lease_until IS NOT NULL)),
  CONSTRAINT job_reason_iff_waiting CHECK ((status = 'waiting_human') = (wait_reason IS NOT NULL)),
  CONSTRAINT job_resumes_iff_parked CHECK ((status IN ('waiting_human', 'waiting_subtasks')) = (resume_movement IS NOT NULL)),
  CONSTRAINT job_result_iff_ended CHECK ((status IN ('completed', 'aborted', 'error')) = (result IS NOT NULL))
);

-- Holds queued and running jobs only: a parked job costs the queue nothing.
CREATE INDEX job_runnable ON job (priority DESC, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX job_on_subtasks ON job (id) WHERE status = 'waiting_subtasks';
CREATE INDEX job_status ON job (status, created_at, id);
CREATE INDEX job_listing ON job (created_at, id);

CREATE TABLE confirmation (
  id           TEXT COLLATE "C"    NOT NULL CONSTRAINT confirmation_pk PRIMARY KEY,
  org          TEXT COLLATE "C"    NOT NULL,
  token        TEXT COLLATE "C"    NOT NULL,
  tool         TEXT COLLATE "C"    NOT NULL,
  args         TEXT COLLATE "C"    NOT NULL,
  digest       TEXT COLLATE "C"    NOT NULL,
  agent_id     TEXT COLLATE "C",
  session_id   TEXT COLLATE "C",
  tool_call_id TEXT COLLATE "C",
  requester    TEXT COLLATE "C",
  metadata     TEXT COLLATE "C",
  persons      TEXT COLLATE "C"    NOT NULL,
  job          TEXT COLLATE "C"    CONSTRAINT confirmation_job_fk REFERENCES job (id),
  rule         TEXT COLLATE "C",
  reason       TEXT COLLATE "C",
  terms        TEXT COLLATE "C"    NOT NULL,
  created_at   BIGINT NOT NULL,
  expires_at   BIGINT NOT NULL,
  status       TEXT COLLATE "C"    NOT NULL CONSTRAINT confirmation_status_known CHECK (status IN ('pending', 'approved', 'rejected', 'expired', 'cancelled', 'undeliverable')),
  decided_at   BIGINT,
  permit       TEXT COLLATE "C",
  consumed_at  BIGINT,
  woken_at     BIGINT,
  resumed_at   BIGINT,
  executed_at  BIGINT,
  outcome      TEXT COLLATE "C",
  revision     BIGINT NOT NULL,
  edition      BIGINT NOT NULL,
  version      BIGINT NOT NULL,
  CONSTRAINT confirmation_decided_iff_settled CHECK ((status = 'pending') = (decided_at IS NULL)),
  CONSTRAINT confirmation_permit_whole CHECK ((permit IS NULL) = (consumed_at IS NULL)),
  CONSTRAINT confirmation_only_approved_runs CHECK (permit IS NULL OR status = 'approved')
);

CREATE INDEX confirmation_deadline ON confirmation (expires_at, id) WHERE status = 'pending';
CREATE UNIQUE INDEX confirmation_call ON confirmation (org, token, coalesce(session_id, ''), tool_call_id) WHERE tool_call_id IS NOT NULL;
-- Over columns that never change, so that a decision leaves it alone.
CREATE INDEX confirmation_twin ON confirmation (org, token, coalesce(session_id, ''), digest);
CREATE INDEX confirmation_unresumed ON confirmation (job) WHERE job IS NOT NULL AND decided_at IS NOT NULL AND resumed_at IS NULL;
CREATE INDEX confirmation_of_job ON confirmation (job) WHERE job IS NOT NULL;
CREATE INDEX confirmation_listing ON confirmation (created_at, id);

CREATE TABLE vote (
  confirmation TEXT COLLATE "C"    NOT NULL CONSTRAINT vote_confirmation_fk REFERENCES confirmation (id),
  person       TEXT COLLATE "C"    NOT NULL,
  decision     TEXT COLLATE "C"    NOT NULL CONSTRAINT vote_decision_known CHECK (decision IN ('approve', 'reject')),
  channel      TEXT COLLATE "C",
  surface      TEXT COLLATE "C"    NOT NULL,
  reason       TEXT COLLATE "C",
  at           BIGINT NOT NULL,
  -- A person's first vote stands.
  CONSTRAINT vote_pk PRIMARY KEY (confirmation, person)
);

CREATE TABLE delivery (
  id           TEXT COLLATE "C"    NOT NULL CONSTRAINT delivery_pk PRIMARY KEY,
  confirmation TEXT COLLATE "C"    NOT NULL CONSTRAINT delivery_confirmation_fk REFERENCES confirmation (id),
  channel      TEXT COLLATE "C"    NOT NULL,
  state        TEXT COLLATE "C"    NOT NULL CONSTRAINT delivery_state_known CHECK (state IN ('queued', 'sending', 'posted', 'settled', 'failed')),
  nonce        TEXT COLLATE "C"    NOT NULL,
  token_hash   TEXT COLLATE "C"    NOT NULL CONSTRAINT delivery_token_unique UNIQUE,
  approvable   BIGINT NOT NULL CONSTRAINT delivery_approvable_flag CHECK (approvable IN (0, 1)),
  unheard      BIGINT NOT NULL CONSTRAINT delivery_unheard_flag CHECK (unheard IN (0, 1)),
  standing     TEXT COLLATE "C"    NOT NULL,
  error        TEXT COLLATE "C"
);

CREATE INDEX delivery_of_confirmation ON delivery (confirmation);

CREATE TABLE outbox (
  id           TEXT COLLATE "C"    NOT NULL CONSTRAINT outbox_pk PRIMARY KEY,
  confirmation TEXT COLLATE "C" CONSTRAINT outbox_confirmation_fk REFERENCES confirmation (id),
  channel      TEXT COLLATE "C"    NOT NULL,
  -- The card that the row keeps true; nothing for a notice.
  card         TEXT COLLATE "C",
  errand       TEXT COLLATE "C"    NOT NULL,
  attempts     BIGINT NOT NULL,
  not_before   BIGINT NOT NULL,
  worker       TEXT COLLATE "C",
  lease_until  BIGINT,
  -- The later of not_before and the end of the lease.
  due_at       BIGINT NOT NULL,
  fence        BIGINT NOT NULL,
  created_at   BIGINT NOT NULL,
  CONSTRAINT outbox_lease_whole CHECK ((worker IS NULL) = (lease_until IS NULL))
);

CREATE INDEX outbox_due ON outbox (due_at, id);
CREATE INDEX outbox_of_confirmation ON outbox (confirmation);

CREATE TABLE replay (
  app_kind     TEXT COLLATE "C"    NOT NULL,
  app_id       TEXT COLLATE "C"    NOT NULL,
  press        TEXT COLLATE "C"    NOT NULL,
  confirmation TEXT COLLATE "C",
  answer       TEXT COLLATE "C"    NOT NULL,
  forget_at    BIGINT NOT NULL,
  CONSTRAINT replay_pk PRIMARY KEY (app_kind, app_id, press)
);

CREATE INDEX replay_forget ON replay (forget_at);

CREATE TABLE chain_head (
  org  TEXT COLLATE "C"    NOT NULL CONSTRAINT chain_head_pk PRIMARY KEY,
  seq  BIGINT NOT NULL CONSTRAINT chain_head_counts CHECK (seq >= 0),
  hash TEXT COLLATE "C"    NOT NULL
);

CREATE TABLE audit_event (
  org          TEXT COLLATE "C"    NOT NULL,
  seq          BIGINT NOT NULL CONSTRAINT audit_event_counts CHECK (seq >= 1),
  at           BIGINT NOT NULL,
  kind         TEXT COLLATE "C"    NOT NULL,
  actor        TEXT COLLATE "C"    NOT NULL,
  confirmation TEXT COLLATE "C",
  job          TEXT COLLATE "C",
  channel      TEXT COLLATE "C",
  data         TEXT COLLATE "C"    NOT NULL,
  commitments  TEXT COLLATE "C"    NOT NULL,
  openings     TEXT COLLATE "C"    NOT NULL,
  prev_hash    TEXT COLLATE "C"    NOT NULL,
  hash         TEXT COLLATE "C"    NOT NULL,
  CONSTRAINT audit_event_pk PRIMARY KEY (org, seq)
);

CREATE INDEX audit_event_of_confirmation ON audit_event (confirmation, org, seq) WHERE confirmation IS NOT NULL;
CREATE INDEX audit_event_of_job ON audit_event (job, org, seq) WHERE job IS NOT NULL;
CREATE INDEX audit_event_kind ON audit_event (kind, org, seq);

-- The log is append-only: only the openings of commitments may be erased.
CREATE FUNCTION gatepost_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END
$$;

CREATE TRIGGER audit_event_unchanged
BEFORE UPDATE OF org, seq, at, kind, actor, confirmation, job, channel, data, commitments, prev_hash, hash ON audit_event
FOR EACH ROW EXECUTE FUNCTION gatepost_refuse();

CREATE TRIGGER audit_event_kept BEFORE DELETE ON audit_event
FOR EACH ROW EXECUTE FUNCTION gatepost_refuse();

CREATE TRIGGER audit_event_not_emptied BEFORE TRUNCATE ON audit_event
FOR EACH STATEMENT EXECUTE FUNCTION gatepost_refuse();

CREATE TRIGGER chain_head_grows BEFORE UPDATE ON chain_head
FOR EACH ROW WHEN (new.org <> old.org OR new.seq <= old.seq) EXECUTE FUNCTION gatepost_refuse();

CREATE TRIGGER chain_head_kept BEFORE DELETE ON chain_head
FOR EACH ROW EXECUTE FUNCTION gatepost_refuse();

CREATE TRIGGER chain_head_not_emptied BEFORE TRUNCATE ON chain_head
FOR EACH STATEMENT EXECUTE FUNCTION gatepost_refuse();
