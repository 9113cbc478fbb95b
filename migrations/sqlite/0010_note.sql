-- What is known at run time about something that the configuration names: the absences that people set themselves, and how channels
-- took their last cards. The body is JSON and is never queried inside.
CREATE TABLE note (
  org  TEXT NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  body TEXT NOT NULL,
  CONSTRAINT note_pk PRIMARY KEY (org, kind, name)
) STRICT, WITHOUT ROWID;
