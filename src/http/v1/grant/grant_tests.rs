use serde_json::{Value, json};

use crate::http::fixture::Bench;

async fn ask(bench: &Bench, token: &str, project: &str) -> Value {
    let body = json!({
        "tool_name": "grants__update", "tool_args": { "project": project, "text": "hello" }, "session_id": "s1",
    });
    bench.post("/api/confirmations", token, body).await.json()
}

fn path(verdict: &Value) -> String {
    format!(
        "/api/confirmations/{}",
        verdict["confirmation_id"].as_str().expect("an id")
    )
}

#[tokio::test]
async fn an_approval_may_cover_later_calls_until_it_is_taken_back() {
    let bench = Bench::new().await;
    let first = path(&ask(&bench, "agent", "x").await);
    let shown = bench.get(&first, "mira").await.json();
    assert_eq!(shown["grants_offered"], json!(["session", "1h"]));
    let respond = format!("{first}/respond");
    let forever = json!({ "decision": "approve", "grant": "always" });
    assert_eq!(
        bench.post(&respond, "mira", forever).await.code(),
        "grant_not_offered"
    );
    let body = json!({ "decision": "approve", "grant": "1h" });
    let approved = bench.post(&respond, "mira", body).await.json();
    assert_eq!(
        (&approved["status"], &approved["votes"][0]["grant"]),
        (&json!("approved"), &json!("1h"))
    );
    let grant = approved["grant_id"].as_str().expect("a grant").to_owned();
    let listed = bench.get("/api/grants?active=true", "auditor").await.json();
    assert_eq!(
        listed["items"],
        json!([{
            "id": grant, "org": "acme", "status": "active", "scope": "1h", "rule": "grants", "tool_name": "grants__update",
            "token": "agent", "agent_id": null, "session_id": null, "requester": null, "arguments": ["/project"],
            "operators": ["mira"], "confirmation_id": approved["id"], "uses": 0, "max_uses": 2,
            "created_at": "2026-01-31T12:00:00.000Z", "expires_at": "2026-01-31T13:00:00.000Z", "ended_at": null,
            "revoked_by": null,
        }])
    );
    // A later call like it is approved at once, and only its own permit lets it run.
    let verdict = ask(&bench, "agent", "x").await;
    assert_eq!(
        (&verdict["verdict"], &verdict["status"]),
        (&json!("allow"), &json!("approved"))
    );
    let second = path(&verdict);
    assert_eq!(
        bench.get(&second, "dana").await.json()["approved_by_grant"],
        json!(grant)
    );
    let call = json!({ "tool_name": "grants__update", "tool_args": { "project": "x", "text": "hello" } });
    let consume = format!("{second}/consume");
    assert_eq!(bench.post(&consume, "agent", call.clone()).await.status, 200);
    assert_eq!(
        bench.post(&consume, "agent", call.clone()).await.code(),
        "already_consumed"
    );
    // Nothing else is covered.
    for (token, project) in [("agent", "y"), ("other", "x")] {
        assert_eq!(
            ask(&bench, token, project).await["verdict"],
            "pending",
            "{token} {project}"
        );
    }
    // Taken back, it covers nothing any more, not even what it approved before.
    let third = path(&ask(&bench, "agent", "x").await);
    let address = format!("/api/grants/{grant}");
    for (who, code) in [
        ("agent", "not_authorised"),
        ("auditor", "not_authorised"),
        ("admin", "not_authorised"),
        ("gus", "not_found"),
    ] {
        assert_eq!(
            bench.send("DELETE", &address, who, "").await.code(),
            code,
            "{who}"
        );
    }
    for _ in 0..2 {
        let heard = bench.send("DELETE", &address, "ines", "").await.json();
        assert_eq!(
            (&heard["status"], &heard["revoked_by"], &heard["uses"]),
            (&json!("revoked"), &json!("ines"), &json!(2))
        );
    }
    let late = bench.post(&format!("{third}/consume"), "agent", call).await;
    assert_eq!(
        (late.status.as_u16(), late.code().as_str()),
        (409, "not_authorised")
    );
    assert_eq!(ask(&bench, "agent", "x").await["verdict"], "pending");
    assert_eq!(
        bench.get("/api/grants?active=true", "dana").await.json()["items"],
        json!([])
    );
    assert_eq!(bench.get("/api/grants", "gus").await.json()["items"], json!([]));
}
