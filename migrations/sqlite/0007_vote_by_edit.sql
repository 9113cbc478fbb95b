-- A vote is for one form of the arguments: where a person changed them, who answered before may answer again. 0 is the call as it
-- was proposed.
CREATE TABLE vote_by_edit (
  confirmation TEXT    NOT NULL CONSTRAINT vote_confirmation_fk REFERENCES confirmation (id),
  person       TEXT    NOT NULL,
  decision     TEXT    NOT NULL CONSTRAINT vote_decision_known CHECK (decision IN ('approve', 'reject')),
  channel      TEXT,
  surface      TEXT    NOT NULL,
  reason       TEXT,
  at           INTEGER NOT NULL,
  content      TEXT    NOT NULL DEFAULT '{}',
  edit         INTEGER NOT NULL DEFAULT 0,
  -- A person's first vote on it stands.
  CONSTRAINT vote_pk PRIMARY KEY (confirmation, person, edit)
) STRICT, WITHOUT ROWID;

INSERT INTO vote_by_edit (confirmation, person, decision, channel, surface, reason, at, content)
SELECT confirmation, person, decision, channel, surface, reason, at, content FROM vote;
DROP TABLE vote;
ALTER TABLE vote_by_edit RENAME TO vote;
