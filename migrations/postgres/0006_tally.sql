-- The calls of the last while that fall under a limit: one row for each connector and user, the times as JSON that is never
-- queried inside.
CREATE TABLE tally (
  org       TEXT COLLATE "C" NOT NULL,
  counter   TEXT COLLATE "C" NOT NULL,
  scope     TEXT COLLATE "C" NOT NULL,
  token     TEXT COLLATE "C" NOT NULL,
  person    TEXT COLLATE "C" NOT NULL,
  marks     TEXT COLLATE "C" NOT NULL,
  forget_at BIGINT NOT NULL,
  CONSTRAINT tally_pk PRIMARY KEY (org, counter, scope, token, person)
);

CREATE INDEX tally_forget ON tally (forget_at);
