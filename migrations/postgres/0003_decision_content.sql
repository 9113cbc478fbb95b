-- How far a decision got beyond its votes, and what a vote says beside yes or no: JSON objects, never queried inside.
ALTER TABLE confirmation ADD COLUMN progress TEXT COLLATE "C" NOT NULL DEFAULT '{}';
ALTER TABLE vote ADD COLUMN content TEXT COLLATE "C" NOT NULL DEFAULT '{}';
