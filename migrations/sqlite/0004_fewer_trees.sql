-- Every tree that a row stands in is written with it and takes room: what no question needs goes, and what stays gets narrow.

-- Kinds that every call leaves are found soon by reading the log itself; only the others are worth a tree.
DROP INDEX audit_event_kind;
CREATE INDEX audit_event_rare ON audit_event (kind, org, seq) WHERE kind NOT IN ('call.allowed', 'confirmation.approved', 'confirmation.created', 'job.parked', 'job.resumed', 'job.submitted', 'permit.consumed', 'tool.executed', 'vote.cast');

-- Rows of one instant are few, and are put in order when they are read.
DROP INDEX confirmation_deadline;
CREATE INDEX confirmation_deadline ON confirmation (expires_at) WHERE status = 'pending';
DROP INDEX confirmation_listing;
CREATE INDEX confirmation_listing ON confirmation (created_at);

-- What may be forgotten is found by walking the memory in small steps.
DROP INDEX replay_forget;

-- A card is always reached through its request or by its token: the table itself stands in that order.
CREATE TABLE delivery_of_request (
  id           TEXT    NOT NULL,
  confirmation TEXT    NOT NULL CONSTRAINT delivery_confirmation_fk REFERENCES confirmation (id),
  channel      TEXT    NOT NULL,
  state        TEXT    NOT NULL CONSTRAINT delivery_state_known CHECK (state IN ('queued', 'sending', 'posted', 'settled', 'failed')),
  nonce        TEXT    NOT NULL,
  token_hash   TEXT    NOT NULL CONSTRAINT delivery_token_unique UNIQUE,
  approvable   INTEGER NOT NULL CONSTRAINT delivery_approvable_flag CHECK (approvable IN (0, 1)),
  unheard      INTEGER NOT NULL CONSTRAINT delivery_unheard_flag CHECK (unheard IN (0, 1)),
  standing     TEXT    NOT NULL,
  error        TEXT,
  CONSTRAINT delivery_pk PRIMARY KEY (confirmation, id)
) STRICT, WITHOUT ROWID;
INSERT INTO delivery_of_request (id, confirmation, channel, state, nonce, token_hash, approvable, unheard, standing, error)
SELECT id, confirmation, channel, state, nonce, token_hash, approvable, unheard, standing, error FROM delivery ORDER BY confirmation, id;
DROP TABLE delivery;
ALTER TABLE delivery_of_request RENAME TO delivery;

-- The row of a card has the card's digits, so it is found through the card.
CREATE TABLE outbox_by_id (
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
) STRICT, WITHOUT ROWID;
INSERT INTO outbox_by_id (id, confirmation, channel, card, errand, attempts, not_before, worker, lease_until, due_at, fence, created_at)
SELECT id, confirmation, channel, card, errand, attempts, not_before, worker, lease_until, due_at, fence, created_at FROM outbox ORDER BY id;
DROP TABLE outbox;
ALTER TABLE outbox_by_id RENAME TO outbox;
CREATE INDEX outbox_due ON outbox (due_at, id);
