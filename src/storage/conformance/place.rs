//! Where a test runs: a fresh store on one of the databases, its clock, and a way in by the back door.

use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use super::*;
use crate::ids::SystemIds;
use crate::storage::{ClockOffset, open};

/// When every test begins: 2026-01-01T00:00:00Z.
pub(super) const START: UtcMillis = UtcMillis(1_767_225_600_000);

enum Time {
    Stands(ManualClock),
    /// PostgreSQL's own clock runs; only its distance is set.
    Runs(ClockOffset),
}

enum Base {
    Sqlite(std::path::PathBuf),
    Postgres { maintenance: String, database: String },
}

/// A fresh store.
pub(super) struct Place {
    pub(super) store: Store,
    pub(super) ids: Arc<SeededIds>,
    pub(super) tasks: Tasks,
    time: Time,
    base: Base,
}

impl Place {
    pub(super) async fn sqlite() -> Self {
        let name = format!("gatepost-{}", SystemIds.fresh());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).expect("a folder");
        let path = folder.join("gatepost.db");
        let clock = ManualClock::at(START);
        let tasks = Tasks::new();
        let url = format!("sqlite://{}", path.display());
        let settings = Settings {
            idle: Duration::from_millis(10),
            ..Settings::new(url, Arc::new(clock.clone()))
        };
        let store = open(&settings, &tasks).await.expect("a store");
        Self {
            store,
            ids: Arc::default(),
            tasks,
            time: Time::Stands(clock),
            base: Base::Sqlite(path),
        }
    }

    pub(super) fn url(&self) -> String {
        self.base.url()
    }

    /// Stops the store and leaves what it kept; tells where it is.
    pub(super) async fn stopped(&self) -> (Tasks, String) {
        self.tasks.ask_to_stop();
        assert!(self.tasks.drain(Duration::from_secs(20)).await, "the writer ends");
        (Tasks::new(), self.base.url())
    }

    /// The same place after a stop, with the same clock.
    pub(super) async fn opened_again(self) -> Self {
        let tasks = Tasks::new();
        let (mut settings, _) = self.base.settings();
        match &self.time {
            Time::Stands(clock) => settings.clock = Arc::new(clock.clone()),
            Time::Runs(offset) => settings.offset = offset.clone(),
        }
        let store = open(&settings, &tasks).await.expect("it comes up again");
        Self { store, tasks, ..self }
    }

    pub(super) async fn postgres_unmigrated() -> Empty {
        let base = Base::fresh_postgres();
        base.administer("CREATE DATABASE").await;
        Empty(base)
    }

    pub(super) async fn postgres() -> Self {
        let base = Base::fresh_postgres();
        base.administer("CREATE DATABASE").await;
        let tasks = Tasks::new();
        let (settings, offset) = base.settings();
        let store = open(&settings, &tasks).await.expect("a store");
        let place = Self {
            store,
            ids: Arc::default(),
            tasks,
            time: Time::Runs(offset),
            base,
        };
        place.set(START).await;
        place
    }

    /// Another process on the same database, with the same clock.
    pub(super) async fn neighbour(&self) -> (Store, Tasks) {
        self.neighbour_with(|_| {}).await
    }

    /// The same, with some of its settings changed.
    pub(super) async fn neighbour_with(&self, change: impl FnOnce(&mut Settings)) -> (Store, Tasks) {
        let (mut settings, _) = self.base.settings();
        change(&mut settings);
        if let Time::Runs(offset) = &self.time {
            settings.offset = offset.clone();
        }
        let tasks = Tasks::new();
        (open(&settings, &tasks).await.expect("a second store"), tasks)
    }

    /// Whether the clock stands still, so that a test may be exact to the millisecond.
    pub(super) const fn stands(&self) -> bool {
        matches!(self.time, Time::Stands(_))
    }

    /// Sets the store's clock; a running one goes on from there.
    pub(super) async fn set(&self, at: UtcMillis) {
        match &self.time {
            Time::Stands(clock) => clock.set(at),
            Time::Runs(offset) => {
                let now = self.store.read().now().await.expect("now");
                offset.set(offset.get() + (at.0 - now.0));
            }
        }
    }

    pub(super) async fn advance(&self, by: Duration) {
        let now = self.store.read().now().await.expect("now");
        self.set(now.plus(by)).await;
    }

    /// Runs SQL past the store.
    pub(super) async fn by_the_back_door(&self, sql: &str) -> Result<(), String> {
        let sql = AssertSqlSafe(sql.to_owned());
        let done = match &self.base {
            Base::Sqlite(path) => {
                let options = SqliteConnectOptions::new().filename(path).foreign_keys(false);
                let mut connection = options.connect().await.expect("a connection");
                let done = sqlx::raw_sql(sql).execute(&mut connection).await.map(drop);
                connection.close().await.expect("closed");
                done
            }
            Base::Postgres { .. } => {
                let mut connection = PgConnection::connect(&self.base.url())
                    .await
                    .expect("a connection");
                let done = sqlx::raw_sql(sql).execute(&mut connection).await.map(drop);
                connection.close().await.expect("closed");
                done
            }
        };
        done.map_err(|error| error.to_string())
    }

    /// Resolves when the writer has tidied away what may be forgotten.
    pub(super) async fn tidied(&self) {
        self.tidied_of("replay").await;
    }

    /// The same, of one table.
    pub(super) async fn tidied_of(&self, table: &str) {
        while self.count(table).await > 0 {
            tokio::task::yield_now().await;
        }
    }

    pub(super) async fn count(&self, table: &str) -> i64 {
        let sql = AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        match &self.base {
            Base::Sqlite(path) => {
                let options = SqliteConnectOptions::new().filename(path);
                let mut connection = options.connect().await.expect("a connection");
                sqlx::query_scalar(sql)
                    .fetch_one(&mut connection)
                    .await
                    .expect("a count")
            }
            Base::Postgres { .. } => {
                let mut connection = PgConnection::connect(&self.base.url())
                    .await
                    .expect("a connection");
                sqlx::query_scalar(sql)
                    .fetch_one(&mut connection)
                    .await
                    .expect("a count")
            }
        }
    }

    /// Makes the next write of this kind fail, as a full disk or a broken rule would.
    pub(super) async fn sabotage(&self, table: &str, operation: &str) {
        let sql = match &self.base {
            Base::Sqlite(_) => format!(
                "CREATE TRIGGER sabotage BEFORE {operation} ON {table} BEGIN SELECT RAISE(ABORT, 'sabotage'); END"
            ),
            Base::Postgres { .. } => format!(
                "CREATE TRIGGER sabotage BEFORE {operation} ON {table} FOR EACH ROW EXECUTE FUNCTION gatepost_refuse()"
            ),
        };
        self.by_the_back_door(&sql).await.expect("sabotaged");
    }

    /// Makes changes of this table miss their rows without a word.
    pub(super) async fn swallow(&self, table: &str) {
        let sql = match &self.base {
            Base::Sqlite(_) => {
                format!("CREATE TRIGGER sabotage BEFORE UPDATE ON {table} BEGIN SELECT RAISE(IGNORE); END")
            }
            Base::Postgres { .. } => format!(
                "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
                 CREATE TRIGGER sabotage BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION swallow()"
            ),
        };
        self.by_the_back_door(&sql).await.expect("sabotaged");
    }

    pub(super) async fn repair(&self, table: &str) {
        let sql = match &self.base {
            Base::Sqlite(_) => "DROP TRIGGER sabotage".to_owned(),
            Base::Postgres { .. } => format!("DROP TRIGGER sabotage ON {table}"),
        };
        self.by_the_back_door(&sql).await.expect("repaired");
    }

    /// Stops the store and removes what it kept.
    pub(super) async fn close(self) {
        self.tasks.ask_to_stop();
        assert!(self.tasks.drain(Duration::from_secs(20)).await, "the writer ends");
        drop(self.store);
        match &self.base {
            Base::Sqlite(path) => drop(std::fs::remove_dir_all(path.parent().expect("a folder"))),
            Base::Postgres { .. } => self.base.administer("DROP DATABASE").await,
        }
    }
}

/// Where the tests may make databases.
#[expect(
    clippy::disallowed_methods,
    reason = "tests are told of the server by the environment"
)]
pub(super) fn maintenance() -> String {
    std::env::var("GATEPOST_TEST_POSTGRES").expect(
        "GATEPOST_TEST_POSTGRES is not set: give the URL of a PostgreSQL server on which databases may be made, \
         for example postgres://postgres@127.0.0.1:5432/postgres",
    )
}

/// A database without a schema.
pub(super) struct Empty(Base);

impl Empty {
    /// As a process does at its start.
    pub(super) async fn open(&self) -> (Store, Tasks) {
        let tasks = Tasks::new();
        (
            open(&self.0.settings().0, &tasks).await.expect("it comes up"),
            tasks,
        )
    }

    pub(super) async fn drop_database(&self) {
        self.0.administer("DROP DATABASE").await;
    }
}

impl Base {
    fn fresh_postgres() -> Self {
        Self::Postgres {
            maintenance: maintenance(),
            database: format!("gatepost_{}", SystemIds.fresh()),
        }
    }

    fn url(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite://{}", path.display()),
            Self::Postgres {
                maintenance,
                database,
            } => {
                let mut url = url::Url::parse(maintenance).expect("a URL");
                url.set_path(database);
                url.into()
            }
        }
    }

    fn settings(&self) -> (Settings, ClockOffset) {
        let clock = ManualClock::at(START);
        let settings = Settings {
            idle: Duration::from_millis(10),
            ..Settings::new(self.url(), Arc::new(clock))
        };
        let offset = settings.offset.clone();
        (settings, offset)
    }

    /// Makes or drops the database of the test.
    async fn administer(&self, order: &str) {
        let Self::Postgres {
            maintenance,
            database,
        } = self
        else {
            return;
        };
        let force = if order.starts_with("DROP") {
            "WITH (FORCE)"
        } else {
            ""
        };
        let mut connection = PgConnection::connect(maintenance).await.expect("the server");
        let sql = AssertSqlSafe(format!("{order} {database} {force}"));
        sqlx::raw_sql(sql)
            .execute(&mut connection)
            .await
            .expect("administered");
        connection.close().await.expect("closed");
    }
}
