//! The migrations that this program knows, and what a database that remembers others means. Applying them is for a backend.

use sha2::{Digest as _, Sha256};

use super::open::OpenError;

/// One file of `migrations/`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// Its number.
    pub(super) version: i64,
    /// Its name, for the log.
    pub(super) name: &'static str,
    /// Its text.
    pub(super) sql: &'static str,
}

macro_rules! known {
    ($folder:literal: $($version:literal $name:literal),*) => {
        [$(Known {
            version: $version,
            name: $name,
            sql: include_str!(concat!("../../migrations/", $folder, "/", $name, ".sql")),
        }),*]
    };
}

/// For SQLite, in order.
pub(super) const SQLITE: [Known; 10] = known!(
    "sqlite": 1 "0001_initial", 2 "0002_job_children", 3 "0003_decision_content", 4 "0004_fewer_trees", 5 "0005_standing_grant", 6 "0006_tally",
    7 "0007_vote_by_edit", 8 "0008_told", 9 "0009_collapsed_set", 10 "0010_note"
);
/// For PostgreSQL, in order; the same numbers and names.
pub(super) const POSTGRES: [Known; 10] = known!(
    "postgres": 1 "0001_initial", 2 "0002_job_children", 3 "0003_decision_content", 4 "0004_fewer_trees", 5 "0005_standing_grant", 6 "0006_tally",
    7 "0007_vote_by_edit", 8 "0008_told", 9 "0009_collapsed_set", 10 "0010_note"
);

impl Known {
    /// SHA-256 of the file's bytes.
    pub(super) fn checksum(&self) -> String {
        hex::encode(Sha256::digest(self.sql.as_bytes()))
    }
}

/// A migration that the database remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Applied {
    pub(super) version: i64,
    pub(super) checksum: String,
}

/// What is still to be applied. A database that went further than this program, or another way, is refused.
pub(super) fn pending<'k>(known: &'k [Known], applied: &[Applied]) -> Result<Vec<&'k Known>, OpenError> {
    for done in applied {
        let Some(ours) = known.iter().find(|ours| ours.version == done.version) else {
            return Err(OpenError::NewerSchema(done.version));
        };
        if ours.checksum() != done.checksum {
            return Err(OpenError::OtherSchema(ours.name));
        }
    }
    Ok(known
        .iter()
        .filter(|ours| applied.iter().all(|done| done.version != ours.version))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_have_the_same_numbers_and_names_and_every_file_its_checksum() {
        let sums = include_str!("../../migrations/CHECKSUMS");
        let names = |known: &[Known]| -> Vec<_> { known.iter().map(|k| (k.version, k.name)).collect() };
        assert_eq!(names(&SQLITE), names(&POSTGRES));
        for (folder, known) in [("sqlite", &SQLITE), ("postgres", &POSTGRES)] {
            for migration in known {
                assert!(migration.name.starts_with(&format!("{:04}_", migration.version)));
                let line = format!("{}  {folder}/{}.sql", migration.checksum(), migration.name);
                assert!(sums.lines().any(|sum| sum == line), "CHECKSUMS lacks: {line}");
                assert!(
                    !migration.sql.contains('\r'),
                    "{folder}/{} has CR LF",
                    migration.name
                );
            }
        }
        assert_eq!(sums.lines().count(), SQLITE.len() + POSTGRES.len());
    }

    #[test]
    fn a_newer_or_another_schema_is_refused() {
        let ours = Applied {
            version: 1,
            checksum: SQLITE[0].checksum(),
        };
        let left = pending(&SQLITE, std::slice::from_ref(&ours)).expect("ours");
        assert_eq!(left.len(), SQLITE.len() - 1);
        assert_eq!(pending(&SQLITE, &[]).expect("empty").len(), SQLITE.len());
        let newer = Applied {
            version: 99,
            ..ours.clone()
        };
        assert!(matches!(
            pending(&SQLITE, &[ours, newer]),
            Err(OpenError::NewerSchema(99))
        ));
        let edited = Applied {
            version: 1,
            checksum: "0".repeat(64),
        };
        assert!(matches!(
            pending(&SQLITE, &[edited]),
            Err(OpenError::OtherSchema("0001_initial"))
        ));
    }
}
