//! Opening a store: the URL's scheme chooses the database, and what cannot be used is refused with the right spelling.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::{Store, postgres, sqlite};
use crate::clock::Clock;
use crate::lifecycle::Tasks;

/// Where the store lives and what it needs from outside.
#[derive(Clone)]
pub struct Settings {
    /// `sqlite://PATH` or `postgres://USER@HOST/DATABASE`. May hold a password: it is never shown.
    pub url: String,
    /// Judges deadlines on SQLite, and dates migrations.
    pub clock: Arc<dyn Clock>,
    /// Moves PostgreSQL's clock, by which deadlines are judged there.
    pub offset: ClockOffset,
    /// Connections for reading at most.
    pub readers: u32,
    /// How long nothing must come before the store is tidied.
    pub idle: Duration,
    /// How long PostgreSQL may take over one step before the connection counts as lost: one that died without a word must not
    /// hold up everybody for as long as the kernel believes in it.
    pub patience: Duration,
    /// Whether a PostgreSQL database may be migrated at the start. SQLite always is.
    pub migrate: bool,
}

impl Settings {
    /// The usual settings over a URL.
    pub fn new(url: impl Into<String>, clock: Arc<dyn Clock>) -> Self {
        Self {
            url: url.into(),
            clock,
            offset: ClockOffset::default(),
            readers: 4,
            idle: Duration::from_secs(5),
            patience: Duration::from_secs(30),
            migrate: true,
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("url", &shown(&self.url))
            .field("readers", &self.readers)
            .field("migrate", &self.migrate)
            .finish_non_exhaustive()
    }
}

/// Milliseconds added to the database's own clock. Zero outside tests. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ClockOffset(Arc<AtomicI64>);

impl ClockOffset {
    /// The offset in milliseconds.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Moves the clock.
    pub fn set(&self, millis: i64) {
        self.0.store(millis, Ordering::SeqCst);
    }
}

/// The store could not be opened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OpenError {
    /// The URL names no database that we know; the text says how it is spelled.
    #[error("storage.url: {0}")]
    Url(&'static str),
    /// Another server process has the file.
    #[error("{} is in use by another gatepost process: one SQLite file serves one process, PostgreSQL serves many", .0.display())]
    InUse(PathBuf),
    /// The file cannot be made or read.
    #[error("{}: {what}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// A migration was applied that this program does not know.
    #[error(
        "the database has migration {0}, which this program does not know: it was used by a newer gatepost"
    )]
    NewerSchema(i64),
    /// A migration was applied in another wording.
    #[error("migration {0} was applied to the database in another wording")]
    OtherSchema(&'static str),
    /// The database lacks migrations and may not be migrated at the start.
    #[error("the database lacks migrations: run `gatepost migrate`")]
    NotMigrated,
    /// The database is reached through a pooler that hands out a server for one transaction only.
    #[error(
        "the database is reached through a pooler in transaction mode: point storage.url at the database itself, or set pool_mode = session for it"
    )]
    Pooler,
    /// The database refused or could not be reached; the text is the driver's, without values.
    #[error("the database cannot be used: {0}")]
    Unusable(String),
}

impl OpenError {
    pub(super) fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            what: error.to_string(),
        }
    }
}

/// Opens the store that the URL names.
///
/// Its writer runs on `tasks`: give the store tasks of its own and stop them last, so that whoever else still has something to
/// write can. When they are asked to stop, the writer commits and acknowledges what was queued, and takes nothing more.
pub async fn open(settings: &Settings, tasks: &Tasks) -> Result<Store, OpenError> {
    match Place::parse(&settings.url)? {
        Place::Sqlite(path) => sqlite::open(&path, settings, tasks).await,
        Place::Postgres => postgres::open(settings, tasks).await,
    }
}

/// Brings the schema of the database up to date and nothing else: `gatepost migrate`.
pub async fn migrate(settings: &Settings) -> Result<(), OpenError> {
    match Place::parse(&settings.url)? {
        Place::Sqlite(path) => sqlite::migrate(&path, settings).await,
        Place::Postgres => postgres::migrate(settings).await,
    }
}

/// What a URL names.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Sqlite(PathBuf),
    Postgres,
}

impl Place {
    fn parse(url: &str) -> Result<Self, OpenError> {
        const SQLITE: &str = "spell it sqlite://PATH, for example sqlite://gatepost.db or sqlite:///var/lib/gatepost/gatepost.db";
        const EITHER: &str = "spell it sqlite://PATH or postgres://USER@HOST/DATABASE";
        if let Some(rest) = url.strip_prefix("sqlite:") {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            if path.is_empty() || path.contains(['?', '#', '\0']) {
                return Err(OpenError::Url(SQLITE));
            }
            if path.starts_with(':') {
                return Err(OpenError::Url(
                    "what waits for a person must outlive the process: name a file, sqlite://PATH",
                ));
            }
            return Ok(Self::Sqlite(PathBuf::from(path)));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Postgres);
        }
        Err(OpenError::Url(EITHER))
    }
}

/// The URL without its password, for logs and errors.
pub fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return "(not a URL)".to_owned();
    };
    // The password may hold a slash or an at sign: what stands after the last at sign is the host.
    let (user, place) = rest
        .rsplit_once('@')
        .map_or((None, rest), |(user, place)| (Some(user), place));
    let place = place.split('?').next().unwrap_or_default();
    match user.map(|user| user.split(':').next().unwrap_or_default()) {
        Some(user) => format!("{scheme}://{user}@{place}"),
        None => format!("{scheme}://{place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_scheme_names_a_store() {
        assert_eq!(
            Place::parse("sqlite://a.db").expect("relative"),
            Place::Sqlite("a.db".into())
        );
        assert_eq!(
            Place::parse("sqlite:///v/a.db").expect("absolute"),
            Place::Sqlite("/v/a.db".into())
        );
        assert_eq!(
            Place::parse("postgresql://h/d").expect("long name"),
            Place::Postgres
        );
        for wrong in [
            "gatepost.db",
            "",
            "sqlite://",
            "sqlite::memory:",
            "mysql://h/d",
            "sqlite://a.db?mode=ro",
            "/v/a.db",
        ] {
            let error = Place::parse(wrong).expect_err(wrong).to_string();
            assert!(error.contains("sqlite://"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in [
            "postgres://gate:s3cret@h:5432/d",
            "postgres://gate:s3/cr@et@h:5432/d?password=s3cret",
        ] {
            assert_eq!(shown(url), "postgres://gate@h:5432/d");
        }
        assert_eq!(shown("sqlite://a.db"), "sqlite://a.db");
        assert!(!shown("s3cret").contains("s3cret"));
    }
}
