//! The program's runner and the PostgreSQL helper.

use sqlx::{Connection, PgConnection};

use crate::support::pg;
use crate::support::program::{Place, Program};

#[tokio::test]
async fn a_program_that_does_not_start_is_reported_with_its_end() {
    let place = Place::new();
    let folder = place.file("");
    let written = place.write("pieces/pay.yaml", "name: pay");
    assert!(written.starts_with(&folder) && written.is_file());
    assert!(place.callback_url("ops").ends_with("/api/channels/ops/callback"));
    assert!(place.url("/x").contains(&place.listen()));
    let refused = Program::try_start(place, "no_such_key: true\n", &[("NAME", "value")]).await;
    let refused = refused.err().expect("an unknown key is a start-up error");
    assert!(refused.status.is_some(), "it ended by itself: {}", refused.output);
    assert!(!folder.exists(), "the folder went with the program");
}

#[tokio::test]
async fn every_database_is_empty_and_its_own() {
    let (first, second) = (pg::fresh_database().await, pg::fresh_database().await);
    assert_ne!(first, second);
    let mut database = PgConnection::connect(&first).await.unwrap();
    let tables = "select count(*) from information_schema.tables where table_schema = 'public'";
    let count: i64 = sqlx::query_scalar(tables).fetch_one(&mut database).await.unwrap();
    assert_eq!(count, 0);
}
