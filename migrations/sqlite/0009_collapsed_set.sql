-- Like requests share one message: what they have in common, and the first of them, which names their set. Neither ever changes.
ALTER TABLE confirmation ADD COLUMN alike TEXT;
ALTER TABLE confirmation ADD COLUMN set_first TEXT;
CREATE INDEX confirmation_alike ON confirmation (alike, created_at) WHERE alike IS NOT NULL;
CREATE INDEX confirmation_set ON confirmation (set_first) WHERE set_first IS NOT NULL;
-- The card in whose message this one stands.
ALTER TABLE delivery ADD COLUMN host TEXT;
