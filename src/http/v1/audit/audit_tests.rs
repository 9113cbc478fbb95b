//! The audit log as auditors meet it, over a real store.

use axum::http::header;
use serde_json::{Value, json};

use crate::http::fixture::Bench;

#[tokio::test]
async fn the_audit_log_is_listed_verified_and_exported() {
    let bench = Bench::new().await;
    let id = bench.ask("card__x").await;
    bench.respond(&id, "dana", "approve").await;
    let list = bench.get("/api/audit?limit=2", "auditor").await.json();
    let first = &list["items"][0];
    assert_eq!(
        (&first["seq"], &first["kind"], &first["actor"]),
        (&json!(1), &json!("confirmation.created"), &json!("token:agent"))
    );
    assert_eq!(first["data"]["tool_args"], json!({ "amount": 1 }));
    let shown = bench
        .get(&format!("/api/confirmations/{id}"), "dana")
        .await
        .json();
    assert_eq!(first["data"]["expires_at"], shown["expires_at"]);
    assert!(list["next_cursor"].is_string());
    let verified = bench.get("/api/audit/verify", "auditor").await.json();
    assert_eq!((&verified["ok"], verified.get("first_bad")), (&json!(true), None));
    let events = verified["events"].as_u64().unwrap();
    assert!(events >= 3);
    let head = verified["head"]["hash"].as_str().unwrap();
    let kept = format!("/api/audit/verify?head=acme:{events}:{head}");
    assert_eq!(bench.get(&kept, "auditor").await.json()["ok"], true);
    for (head, what) in [
        (format!("acme:{events}:{}", "0".repeat(64)), "head_differs"),
        (format!("acme:1:{}", "0".repeat(64)), "head_differs"),
        (format!("acme:{}:{head}", events + 1), "cut_tail"),
    ] {
        let bad = bench
            .get(&format!("/api/audit/verify?head={head}"), "auditor")
            .await
            .json();
        assert_eq!(
            (&bad["ok"], &bad["first_bad"]["what"]),
            (&json!(false), &json!(what))
        );
    }
    let other = bench
        .get(&format!("/api/audit/verify?head=globex:1:{head}"), "auditor")
        .await;
    assert_eq!(other.code(), "invalid_request");
    let export = bench.get("/api/audit/export", "auditor").await;
    assert_eq!(export.headers[header::CONTENT_TYPE], "application/x-ndjson");
    let lines: Vec<Value> = export
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len() as u64, events);
    assert!(lines.iter().all(|line| line["proof"]["org"] == "acme"));
    let votes = bench.get("/api/audit/export?kind=vote.cast", "auditor").await;
    assert_eq!(votes.text.lines().count(), 1);
    assert_eq!(
        bench
            .get("/api/audit/export?kind=vote.cast&x=1", "auditor")
            .await
            .code(),
        "invalid_request"
    );
}
