-- The sub-tasks that a job began, in order: ids as JSON. Whatever ends the job ends them with it.
ALTER TABLE job ADD COLUMN children TEXT COLLATE "C" NOT NULL DEFAULT '[]';
