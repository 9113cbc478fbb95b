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
