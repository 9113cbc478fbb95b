//! A PostgreSQL whose tables were empty when its statistics were gathered, and grow while its plans are kept.

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use super::*;

/// How often an index was gone through, now that whoever did has left.
const LOOKS: &str = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = $1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_for_empty_tables_do_not_outlive_them() {
    let place = Place::postgres().await;
    // To the planner every index on an empty table is as good as its primary key, also one that must be read from end to end.
    for order in [
        "VACUUM ANALYZE",
        "ALTER TABLE confirmation SET (autovacuum_enabled = off)",
    ] {
        let done = place.by_the_back_door(order).await;
        done.expect("statistics of nothing");
    }
    let (store, tasks) = place
        .neighbour_with(|settings| settings.idle = Duration::from_mins(5))
        .await;
    let mut requests = 0;
    for _ in 0..5 {
        let asked = (0..100).map(|_| {
            let (store, create) = (store.clone(), Ask::default().create(&place));
            async move { store.run(create).await.expect("create") }
        });
        for created in side_by_side(asked).await {
            let Created::Fresh(dossier) = created else {
                panic!("nobody asked before");
            };
            let decided = store.run(decide(&dossier.confirmation.id, "dana", Decision::Approve));
            decided.await.expect("decide");
            requests += 1;
        }
    }
    drop(store);
    tasks.ask_to_stop();
    assert!(tasks.drain(Duration::from_secs(20)).await);
    let mut back_door = PgConnection::connect(&place.url()).await.expect("a connection");
    let mut looks = Vec::new();
    for index in ["confirmation_pk", "confirmation_listing"] {
        let seen: i64 = sqlx::query_scalar(LOOKS)
            .bind(index)
            .fetch_one(&mut back_door)
            .await
            .expect("how often");
        looks.push(seen);
    }
    back_door.close().await.expect("closed");
    assert!(
        looks[0] > 3 * requests && looks[1] < requests,
        "the key's own index is asked: {looks:?} for {requests} requests"
    );
    place.close().await;
}
