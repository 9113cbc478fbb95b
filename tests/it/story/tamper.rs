//! The audit log: after everything the chain holds, and whoever edits the database file is found.

use std::path::Path;

use serde_json::{Value, json};
use sqlx::{ConnectOptions, Connection};

use crate::support::world::{Plan, Storage, World};

/// A few requests with everything that can happen to them.
async fn lived() -> World {
    let world = World::start(Storage::Sqlite).await;
    for (amount, decision) in [(60_000, "approve"), (70_000, "reject"), (80_000, "approve")] {
        let id = world.ask(amount).await;
        let path = format!("/api/confirmations/{id}/respond");
        let answer = json!({"decision": decision, "reason": "as agreed"});
        assert_eq!(world.api("dana-cli").post(&path, &answer).await.0, 200);
    }
    let ask = json!({"tool_name": "x", "tool_args": {}});
    world.api("umbrella-agent").post("/api/confirmations", &ask).await;
    world.verify().await;
    world
}

async fn verified(world: &World, against: &str) -> Value {
    let (status, answer) = world
        .api("audit")
        .get(&format!("/api/audit/verify{against}"))
        .await;
    assert_eq!(status, 200, "{answer}");
    answer
}

/// A world on a copy of the file on which `edit` was carried out.
async fn tampered(world: &World, edit: &str) -> World {
    let carry_out = async |file: &Path| {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
        let mut file = options.connect().await.unwrap();
        // Whoever edits the file takes the guards away first.
        let guards = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit_event'";
        let guards: Vec<String> = sqlx::query_scalar(guards).fetch_all(&mut file).await.unwrap();
        assert!(!guards.is_empty());
        for guard in guards {
            let drop = sqlx::AssertSqlSafe(format!("DROP TRIGGER {guard}"));
            sqlx::raw_sql(drop).execute(&mut file).await.unwrap();
        }
        let edit = sqlx::raw_sql(sqlx::AssertSqlSafe(edit)).execute(&mut file).await;
        assert!(edit.unwrap().rows_affected() > 0, "something was edited");
        file.close().await.unwrap();
    };
    Plan::on(Storage::Sqlite).start_on_copy_of(world, carry_out).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_file_is_found() {
    let mut world = lived().await;
    let head = verified(&world, "").await["head"].clone();
    world.stop().await;
    for edit in [
        "UPDATE audit_event SET kind = 'confirmation.approved' WHERE org = 'acme' AND kind = 'confirmation.rejected'",
        "UPDATE audit_event SET at = at + 1 WHERE org = 'acme' AND seq = 3",
        "UPDATE audit_event SET actor = replace(actor, 'dana', 'noor') WHERE org = 'acme' AND kind = 'vote.cast'",
        "DELETE FROM audit_event WHERE org = 'acme' AND seq = 2",
        "UPDATE audit_event SET hash = prev_hash WHERE org = 'acme' AND seq = 4",
    ] {
        let copy = tampered(&world, edit).await;
        let found = verified(&copy, "").await;
        assert_eq!(found["ok"], false, "{edit}: {found}");
        assert!(
            found["first_bad"].is_object() || found["first_bad"].is_number(),
            "{found}"
        );
    }
    // An event that means nothing any more is found like any other, and by its place.
    for edit in [
        "job = 'nonsense'",
        "confirmation = 'cr_0'",
        "data = CAST(x'00' AS TEXT)",
    ] {
        let edit = format!("UPDATE audit_event SET {edit} WHERE org = 'acme' AND seq = 3");
        let found = verified(&tampered(&world, &edit).await, "").await;
        assert_eq!(
            (&found["ok"], &found["first_bad"]["seq"]),
            (&json!(false), &json!(3)),
            "{edit}: {found}"
        );
    }
    // A tail that was cut off shows against a head kept elsewhere.
    let kept = format!("?head=acme:{}:{}", head["seq"], head["hash"].as_str().unwrap());
    let cut = tampered(
        &world,
        "DELETE FROM audit_event WHERE org = 'acme' AND seq = (SELECT max(seq) FROM audit_event WHERE org = 'acme')",
    )
    .await;
    assert_eq!(verified(&cut, &kept).await["ok"], false);
}
