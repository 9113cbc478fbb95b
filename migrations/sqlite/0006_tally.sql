-- The calls of the last while that fall under a limit: one row for each connector and user, the times as JSON that is never
-- queried inside.
CREATE TABLE tally (
  org       TEXT    NOT NULL,
  counter   TEXT    NOT NULL,
  scope     TEXT    NOT NULL,
  token     TEXT    NOT NULL,
  person    TEXT    NOT NULL,
  marks     TEXT    NOT NULL,
  forget_at INTEGER NOT NULL,
  CONSTRAINT tally_pk PRIMARY KEY (org, counter, scope, token, person)
) STRICT, WITHOUT ROWID;

CREATE INDEX tally_forget ON tally (forget_at);
