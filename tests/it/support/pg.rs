//! A fresh PostgreSQL database per test, on the server that `GATEPOST_TEST_POSTGRES` names.

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use url::Url;

use super::temp_dir::random_hex;

const MISSING: &str = "GATEPOST_TEST_POSTGRES is not set. It names the maintenance database of a throw-away PostgreSQL, \
for example postgres://postgres@127.0.0.1:5432/postgres. `eval \"$(scripts/postgres start)\"` starts one and sets it; \
`scripts/test` does so by itself. A missing database is a failure, never a skip.";

/// Creates an empty database of random name and returns its URL. The throw-away server takes it along when it stops.
///
/// # Panics
/// When the variable is missing or the server refuses.
pub async fn fresh_database() -> String {
    let Ok(maintenance) = std::env::var("GATEPOST_TEST_POSTGRES") else {
        panic!("{MISSING}")
    };
    let name = format!("it_{}", random_hex());
    let mut server = PgConnection::connect(&maintenance)
        .await
        .expect("the server of GATEPOST_TEST_POSTGRES");
    server
        .execute(AssertSqlSafe(format!("CREATE DATABASE {name}")))
        .await
        .expect("a new database");
    server.close().await.expect("a clean goodbye");
    let mut url = Url::parse(&maintenance).expect("GATEPOST_TEST_POSTGRES is a URL");
    url.set_path(&name);
    url.into()
}
