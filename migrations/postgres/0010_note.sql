-- What is known at run time about something that the configuration names: the absences that people set themselves, and how channels
-- took their last cards. The body is JSON and is never queried inside.
CREATE TABLE note (
  org  TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  body TEXT COLLATE "C" NOT NULL,
  CONSTRAINT note_pk PRIMARY KEY (org, kind, name)
);
