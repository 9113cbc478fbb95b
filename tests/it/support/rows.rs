//! The rows of a server that was killed, seen from beside it: time passes for them while nobody runs, and nobody writes while
//! the test holds them. What a real clock and a slow disk would do, without waiting for either.

use std::path::PathBuf;

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, SqliteConnection};

use super::world::World;

/// How far apart two looks at the locks of PostgreSQL are.
const LOOK: std::time::Duration = std::time::Duration::from_millis(5);

/// The store of a world.
#[derive(Clone, Debug)]
pub enum Rows {
    /// A file.
    Sqlite(PathBuf),
    /// A database.
    Postgres(String),
}

/// A store that nobody else can write jobs into.
pub enum Held {
    /// Holds the one write lock of the file.
    Sqlite(SqliteConnection),
    /// Holds the table of jobs.
    Postgres(PgConnection),
}

impl Rows {
    /// Of this world.
    pub fn of(world: &World) -> Self {
        match world.store.strip_prefix("sqlite://") {
            Some(file) => Self::Sqlite(world.place.file(file)),
            None => Self::Postgres(world.store.clone()),
        }
    }

    /// So much time passes that every lease is over: of jobs and of cards that were being sent.
    pub async fn lapse(&self) {
        self.run("UPDATE job SET lease_until = 1, due_at = 1 WHERE status = 'running'")
            .await;
        self.run("UPDATE outbox SET lease_until = 1, due_at = not_before WHERE lease_until IS NOT NULL")
            .await;
    }

    /// So much time passes that the request is over.
    pub async fn outlive(&self, request: &str) {
        assert!(
            request
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        );
        let sql = format!("UPDATE confirmation SET expires_at = created_at WHERE id = '{request}'");
        assert_eq!(self.run(&sql).await, 1);
    }

    /// From now on no change of a job is committed, until [`Held::lose`].
    pub async fn hold(&self) -> Held {
        match self {
            Self::Sqlite(_) => {
                let mut held = self.sqlite().await;
                let begun = sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut held).await;
                begun.expect("the write lock");
                Held::Sqlite(held)
            }
            Self::Postgres(url) => {
                let mut held = PgConnection::connect(url).await.expect("the database");
                let begun = sqlx::raw_sql("BEGIN; LOCK TABLE job IN EXCLUSIVE MODE")
                    .execute(&mut held)
                    .await;
                begun.expect("the lock");
                Held::Postgres(held)
            }
        }
    }

    /// Carries out one statement; how many rows it changed.
    async fn run(&self, sql: &str) -> u64 {
        match self {
            Self::Sqlite(_) => {
                let mut file = self.sqlite().await;
                let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut file).await;
                let changed = done.expect("a change").rows_affected();
                file.close().await.expect("a closed file");
                changed
            }
            Self::Postgres(url) => {
                let mut database = PgConnection::connect(url).await.expect("the database");
                let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut database).await;
                let changed = done.expect("a change").rows_affected();
                database.close().await.expect("a closed connection");
                changed
            }
        }
    }

    async fn sqlite(&self) -> SqliteConnection {
        let Self::Sqlite(file) = self else {
            unreachable!("asked for a file")
        };
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
        options.connect().await.expect("the file")
    }
}

/// Stops whoever makes a certain change of a job in the middle of its transaction: the change never comes to be committed.
pub struct Trap {
    rows: Rows,
    /// PostgreSQL only: holds what the trapped one waits for.
    lock: Option<PgConnection>,
}

/// How long a SQLite file may be written into before that counts as for ever. A look that errs springs the trap a little early.
const FOR_EVER_MS: u32 = 250;

const SQLITE_TRAP: &str = "CREATE TABLE trap (changes INTEGER NOT NULL); INSERT INTO trap VALUES (0);
    CREATE VIEW trap_for_ever AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n;
    CREATE TRIGGER trap_counts AFTER UPDATE ON job BEGIN UPDATE trap SET changes = changes + 1; END;
    CREATE TRIGGER trap_springs AFTER UPDATE ON trap WHEN new.changes = CHANGE
      BEGIN SELECT count(*) FROM trap_for_ever; END;";
const SQLITE_CLEAR: &str = "DROP TRIGGER trap_counts; DROP TABLE trap; DROP VIEW trap_for_ever;";

// A sequence counts on whatever is rolled back, so the trap springs once.
const POSTGRES_TRAP: &str = "CREATE SEQUENCE trap_changes;
    CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN IF nextval('trap_changes') = CHANGE THEN PERFORM pg_advisory_lock(1); END IF; RETURN NULL; END $$;
    CREATE TRIGGER trap_springs AFTER UPDATE ON job FOR EACH ROW EXECUTE FUNCTION trap();";
const POSTGRES_CLEAR: &str =
    "DROP TRIGGER trap_springs ON job; DROP FUNCTION trap; DROP SEQUENCE trap_changes;";

impl Trap {
    /// For the change of this number, counted over all jobs from now on and from 1.
    pub async fn at(change: u32, rows: &Rows) -> Self {
        let number = change.to_string();
        let lock = match rows {
            Rows::Sqlite(_) => {
                rows.run(&SQLITE_TRAP.replace("CHANGE", &number)).await;
                None
            }
            Rows::Postgres(url) => {
                rows.run(&POSTGRES_TRAP.replace("CHANGE", &number)).await;
                let mut lock = PgConnection::connect(url).await.expect("the database");
                let taken = sqlx::raw_sql("SELECT pg_advisory_lock(1)")
                    .execute(&mut lock)
                    .await;
                taken.expect("the lock");
                Some(lock)
            }
        };
        Self {
            rows: rows.clone(),
            lock,
        }
    }

    /// Whether somebody is in it now.
    pub async fn has_sprung(&mut self) -> bool {
        if let Some(lock) = &mut self.lock {
            let waiting = "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database \
                           WHERE NOT granted AND locktype = 'advisory' AND datname = current_database()";
            let count: i64 = sqlx::query_scalar(waiting)
                .fetch_one(lock)
                .await
                .expect("the locks");
            return count > 0;
        }
        let mut file = self.rows.sqlite().await;
        let patience = format!("PRAGMA busy_timeout = {FOR_EVER_MS}");
        let set = sqlx::raw_sql(AssertSqlSafe(patience)).execute(&mut file).await;
        set.expect("a time-out");
        let taken = sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut file).await;
        file.close().await.expect("a closed file");
        taken.is_err()
    }

    /// Takes it away, after whoever was in it was killed; what it was about to write is lost.
    pub async fn clear(self) {
        match self.lock {
            None => {
                self.rows.run(SQLITE_CLEAR).await;
            }
            Some(lock) => {
                Held::Postgres(lock).lose().await;
                self.rows.run(POSTGRES_CLEAR).await;
            }
        }
    }
}

impl Held {
    /// Waits until somebody waits for what is held. On SQLite nothing tells; there it returns at once.
    pub async fn until_wanted(&mut self) {
        let Self::Postgres(held) = self else { return };
        let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'job'::regclass";
        loop {
            let count: i64 = sqlx::query_scalar(waiting)
                .fetch_one(&mut *held)
                .await
                .expect("the locks");
            if count > 0 {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Lets go. What a killed server was about to write is lost, also where its half on the database's side lives on.
    pub async fn lose(self) {
        match self {
            Self::Sqlite(held) => held.close().await.expect("a closed file"),
            Self::Postgres(mut held) => {
                let orphans = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                               WHERE datname = current_database() AND pid <> pg_backend_pid()";
                let ended = sqlx::raw_sql(orphans).execute(&mut held).await;
                ended.expect("ended backends");
                held.close().await.expect("a closed connection");
            }
        }
    }
}
