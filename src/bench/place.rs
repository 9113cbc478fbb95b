//! Where the databases of a run live: files in a folder of its own, or databases of their own names on a server. Both go when
//! the run is over.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};

use super::BenchError;
use crate::ids::{Ids as _, SystemIds};

/// A folder that is removed with the value.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes one below `base`.
    pub fn below(base: &Path) -> Result<Self, BenchError> {
        let path = base.join(format!("gatepost-bench-{}", SystemIds.fresh()));
        std::fs::create_dir(&path).map_err(BenchError::file)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed is no reason to lose the figures.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A database of its own.
pub struct Database {
    /// As the product is told.
    pub url: String,
    kind: Kind,
}

enum Kind {
    File(PathBuf),
    Server {
        maintenance: Box<PgConnectOptions>,
        name: String,
    },
}

impl Database {
    /// A file that is not there yet.
    pub fn file(folder: &Path) -> Self {
        let path = folder.join(format!("{}.db", SystemIds.fresh()));
        Self {
            url: format!("sqlite://{}", path.display()),
            kind: Kind::File(path),
        }
    }

    /// An empty database on the server of this URL, whose own database stays as it is.
    pub async fn on_server(url: &str) -> Result<Self, BenchError> {
        let maintenance = Box::new(PgConnectOptions::from_str(url)?);
        let name = format!("gatepost_bench_{}", SystemIds.fresh());
        let mut connection = (*maintenance)
            .clone()
            .disable_statement_logging()
            .connect()
            .await?;
        connection
            .execute(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .await?;
        connection.close().await?;
        let mut own = url::Url::parse(url).map_err(|error| BenchError::other(&error))?;
        own.set_path(&name);
        Ok(Self {
            url: own.into(),
            kind: Kind::Server { maintenance, name },
        })
    }

    /// The file, when it is one.
    pub fn path(&self) -> Option<&Path> {
        match &self.kind {
            Kind::File(path) => Some(path),
            Kind::Server { .. } => None,
        }
    }

    /// How to connect, when it is on a server.
    pub fn options(&self) -> Option<PgConnectOptions> {
        match &self.kind {
            Kind::File(_) => None,
            Kind::Server { maintenance, name } => Some((**maintenance).clone().database(name)),
        }
    }

    /// How much of the disk its tables and indexes take, in bytes; a log that is not moved yet included.
    pub async fn size(&self) -> Result<i64, BenchError> {
        Ok(match &self.kind {
            Kind::File(path) => {
                let mut connection = sqlx::sqlite::SqliteConnectOptions::new()
                    .filename(path)
                    .read_only(true)
                    .connect()
                    .await?;
                let size = sqlx::query_scalar(
                    "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
                )
                .fetch_one(&mut connection)
                .await?;
                connection.close().await?;
                size
            }
            Kind::Server { maintenance, name } => {
                let mut connection: PgConnection = (**maintenance).clone().database(name).connect().await?;
                let size = sqlx::query_scalar("SELECT pg_database_size(current_database())")
                    .fetch_one(&mut connection)
                    .await?;
                connection.close().await?;
                size
            }
        })
    }

    /// Removes it. Whoever used it must have let it go.
    pub async fn drop(self) -> Result<(), BenchError> {
        if let Kind::Server { maintenance, name } = self.kind {
            let mut connection = maintenance.disable_statement_logging().connect().await?;
            connection
                .execute(AssertSqlSafe(format!(
                    "DROP DATABASE IF EXISTS {name} WITH (FORCE)"
                )))
                .await?;
            connection.close().await?;
        }
        Ok(())
    }
}
