-- Approvals that let later calls run too. The body is JSON and is never queried inside.
CREATE TABLE standing_grant (
  id         TEXT COLLATE "C" NOT NULL CONSTRAINT standing_grant_pk PRIMARY KEY,
  org        TEXT COLLATE "C" NOT NULL,
  token      TEXT COLLATE "C" NOT NULL,
  tool       TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  -- When its time passes; nothing once it has ended.
  live_until BIGINT,
  body       TEXT COLLATE "C" NOT NULL,
  version    BIGINT NOT NULL
);

CREATE INDEX standing_grant_live ON standing_grant (org, token, tool) WHERE live_until IS NOT NULL;
CREATE INDEX standing_grant_due ON standing_grant (live_until) WHERE live_until IS NOT NULL;
CREATE INDEX standing_grant_listing ON standing_grant (created_at, id);
