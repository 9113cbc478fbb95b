//! A pooler in transaction mode breaks prepared statements and LISTEN at random moments. So it is found at the start, and
//! refused with the setting that is needed.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection as _, Executor as _};

use super::{connect, describe};
use crate::storage::open::OpenError;

const WHO: &str = "SELECT pg_backend_pid()";

/// Refuses a database behind a pooler in transaction mode.
///
/// Two connections of ours share a server process only behind a pooler; and while the second holds it, the first is handed
/// another one. The statements are simple ones, which every pooler lets through.
pub(super) async fn refuse(first: &mut PgConnection, options: &PgConnectOptions) -> Result<(), OpenError> {
    let unusable = |error: sqlx::Error| OpenError::Unusable(describe(&error));
    let before = process(first).await.map_err(unusable)?;
    let mut second = connect(options).await.map_err(unusable)?;
    second.execute("BEGIN").await.map_err(unusable)?;
    let other = process(&mut second).await.map_err(unusable)?;
    let after = process(first).await.map_err(unusable)?;
    second.execute("ROLLBACK").await.map_err(unusable)?;
    second.close().await.map_err(unusable)?;
    if before == other || before != after {
        return Err(OpenError::Pooler);
    }
    Ok(())
}

async fn process(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    use sqlx::Row as _;
    let row = sqlx::raw_sql(WHO).fetch_one(connection).await?;
    // Text form, as simple statements answer.
    row.try_get_unchecked::<i32, _>(0)
}
