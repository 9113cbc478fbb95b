-- A vote is for one form of the arguments: where a person changed them, who answered before may answer again. 0 is the call as it
-- was proposed.
ALTER TABLE vote ADD COLUMN edit BIGINT NOT NULL DEFAULT 0;
-- A person's first vote on it stands.
ALTER TABLE vote DROP CONSTRAINT vote_pk;
ALTER TABLE vote ADD CONSTRAINT vote_pk PRIMARY KEY (confirmation, person, edit);
