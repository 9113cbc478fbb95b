//! Where a test runs: a fresh store on one of the databases, its clock, and a way in by the back door.

use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use super::*;
use crate::storage::{ClockOffset, open};

/// When every test begins: 2026-01-01T00:00:00Z.
pub(super) const START: UtcMillis = UtcMillis(1_767_225_600_000);

enum Time {
    Stands(ManualClock),
    /// PostgreSQL's own clock runs; only its distance is set.
    #[expect(dead_code, reason = "until the other backend is there")]
    Runs(ClockOffset),
}

enum Base {
    Sqlite(std::path::PathBuf),
    #[expect(dead_code, reason = "until the other backend is there")]
    Postgres(String),
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
        let name = format!("gatepost-{}", uuid::Uuid::now_v7().simple());
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
        let Base::Sqlite(path) = &self.base else {
            panic!("the other backend is not there yet");
        };
        let options = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(path)
            .foreign_keys(false);
        let mut connection = options.connect().await.expect("a connection");
        let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
            .execute(&mut connection)
            .await;
        connection.close().await.expect("closed");
        done.map(drop).map_err(|error| error.to_string())
    }

    /// Resolves when the writer has tidied away what may be forgotten.
    pub(super) async fn tidied(&self) {
        while self.count("replay").await > 0 {
            tokio::task::yield_now().await;
        }
    }

    async fn count(&self, table: &str) -> i64 {
        let Base::Sqlite(path) = &self.base else {
            panic!("the other backend is not there yet");
        };
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
        let mut connection = options.connect().await.expect("a connection");
        let count = sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {table}")));
        count.fetch_one(&mut connection).await.expect("a count")
    }

    /// Makes the next write of this kind fail, as a full disk or a broken rule would.
    pub(super) async fn sabotage(&self, table: &str, operation: &str) {
        let sql = format!(
            "CREATE TRIGGER sabotage BEFORE {operation} ON {table} BEGIN SELECT RAISE(ABORT, 'sabotage'); END"
        );
        self.by_the_back_door(&sql).await.expect("sabotaged");
    }

    pub(super) async fn repair(&self, _table: &str) {
        self.by_the_back_door("DROP TRIGGER sabotage")
            .await
            .expect("repaired");
    }

    /// Stops the store and removes what it kept.
    pub(super) async fn close(self) {
        self.tasks.ask_to_stop();
        assert!(self.tasks.drain(Duration::from_secs(20)).await, "the writer ends");
        if let Base::Sqlite(path) = &self.base {
            let _ = std::fs::remove_dir_all(path.parent().expect("a folder"));
        }
    }
}
