-- Cards that only tell, and how often a card was deleted while people were asked.
ALTER TABLE delivery ADD COLUMN told BIGINT NOT NULL DEFAULT 0 CONSTRAINT delivery_told_flag CHECK (told IN (0, 1));
ALTER TABLE delivery ADD COLUMN lost BIGINT NOT NULL DEFAULT 0;
