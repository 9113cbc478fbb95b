-- Every tree that a row stands in is written with it and takes room: what no question needs goes, and what stays gets narrow.

-- Kinds that every call leaves are found soon by reading the log itself; only the others are worth a tree.
DROP INDEX audit_event_kind;
CREATE INDEX audit_event_rare ON audit_event (kind, org, seq) WHERE kind NOT IN ('call.allowed', 'confirmation.approved', 'confirmation.created', 'job.parked', 'job.resumed', 'job.submitted', 'permit.consumed', 'tool.executed', 'vote.cast');

-- Rows of one instant are few, and are put in order when they are read.
DROP INDEX confirmation_deadline;
CREATE INDEX confirmation_deadline ON confirmation (expires_at) WHERE status = 'pending';
DROP INDEX confirmation_listing;
CREATE INDEX confirmation_listing ON confirmation (created_at);

-- A card is always reached through its request or by its token.
ALTER TABLE delivery DROP CONSTRAINT delivery_pk;
ALTER TABLE delivery ADD CONSTRAINT delivery_pk PRIMARY KEY (confirmation, id);
DROP INDEX delivery_of_confirmation;

-- A card's row changes soon after it was made: room beside it lets the change stay on its page and out of the trees.
ALTER TABLE delivery SET (fillfactor = 50);
-- Rows of the outbox come and go: their room is given back soon.
ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);
