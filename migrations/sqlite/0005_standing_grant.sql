-- Approvals that let later calls run too. The body is JSON and is never queried inside.
CREATE TABLE standing_grant (
  id         TEXT NOT NULL CONSTRAINT standing_grant_pk PRIMARY KEY,
  org        TEXT NOT NULL,
  token      TEXT NOT NULL,
  tool       TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- When its time passes; nothing once it has ended.
  live_until INTEGER,
  body       TEXT NOT NULL,
  version    INTEGER NOT NULL
) STRICT;

CREATE INDEX standing_grant_live ON standing_grant (org, token, tool) WHERE live_until IS NOT NULL;
CREATE INDEX standing_grant_due ON standing_grant (live_until) WHERE live_until IS NOT NULL;
CREATE INDEX standing_grant_listing ON standing_grant (created_at, id);
