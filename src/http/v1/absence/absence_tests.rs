//! Absences over the API: who may set whose, what it changes, and how it is refused.

use serde_json::{Value, json};

use crate::http::fixture::Bench;

async fn set(bench: &Bench, token: &str, body: Value) -> (u16, Value) {
    let heard = bench.post("/api/absences", token, body).await;
    (heard.status.as_u16(), heard.json())
}

async fn listed(bench: &Bench, token: &str) -> Vec<Value> {
    let list = bench.get("/api/absences", token).await.json();
    list["items"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn an_operator_is_away_and_the_substitute_decides_until_they_are_back() {
    let bench = Bench::new().await;
    let id = bench.ask("pay").await;
    assert_eq!(
        bench.respond(&id, "ines", "approve").await.code(),
        "not_authorised"
    );
    let until = json!({ "until": "2026-02-01T12:00:00+01:00" });
    let (status, absence) = set(&bench, "dana", until.clone()).await;
    assert_eq!(status, 200, "{absence}");
    assert_eq!(
        absence,
        json!({
            "operator": "dana", "from": "2026-01-31T12:00:00.000Z", "until": "2026-02-01T11:00:00.000Z",
            "substitute": "ines", "source": "operator",
        })
    );
    for who in ["auditor", "admin", "ines"] {
        assert_eq!(listed(&bench, who).await, std::slice::from_ref(&absence), "{who}");
    }
    assert_eq!(
        listed(&bench, "gus").await,
        [Value::Null; 0],
        "of another organisation"
    );
    let decided = bench.respond(&id, "ines", "approve").await.json();
    assert_eq!(
        (&decided["status"], &decided["votes"][0]["acting_for"]),
        (&json!("approved"), &json!("dana"))
    );
    let ended = bench.post("/api/absences/end", "dana", json!({})).await.json();
    assert_eq!(ended["until"], "2026-01-31T12:00:00.000Z");
    let next = bench.ask("pay").await;
    assert_eq!(
        bench.respond(&next, "ines", "approve").await.code(),
        "not_authorised"
    );
    let heard = bench.post("/api/absences/end", "dana", json!({})).await;
    assert_eq!(
        (heard.code(), &heard.json()["refusal"]),
        ("away_refused".to_owned(), &json!("not_away"))
    );
    for (kind, who) in [
        ("operator.away", "operator:dana"),
        ("operator.back", "operator:dana"),
    ] {
        let log = bench
            .get(&format!("/api/audit?kind={kind}"), "auditor")
            .await
            .json();
        assert_eq!(log["items"][0]["actor"], who, "{log}");
        assert_eq!(log["items"][0]["data"]["substitute"], "ines", "{log}");
    }
}

#[tokio::test]
async fn only_ones_own_and_an_admin_that_of_others() {
    let bench = Bench::new().await;
    let until = "2026-02-01T12:00:00Z";
    for (token, body, code, refusal) in [
        (
            "mira",
            json!({"until": until, "operator": "dana"}),
            "not_authorised",
            json!("not_oneself"),
        ),
        (
            "mira",
            json!({"until": until}),
            "away_refused",
            json!("no_substitute"),
        ),
        (
            "dana",
            json!({"until": until, "substitute": "mira"}),
            "away_refused",
            json!("not_a_substitute"),
        ),
        (
            "dana",
            json!({"until": until, "substitute": "nobody"}),
            "away_refused",
            json!("not_a_substitute"),
        ),
        (
            "dana",
            json!({"until": "2026-01-31T11:00:00Z"}),
            "away_refused",
            json!("in_the_past"),
        ),
        (
            "dana",
            json!({"until": "2027-01-31T11:00:00Z"}),
            "away_refused",
            json!("too_long"),
        ),
        (
            "dana",
            json!({"until": "tomorrow"}),
            "invalid_request",
            Value::Null,
        ),
        ("dana", json!({}), "invalid_request", Value::Null),
        (
            "dana",
            json!({"until": until, "for": "mira"}),
            "invalid_request",
            Value::Null,
        ),
        ("admin", json!({"until": until}), "invalid_request", Value::Null),
        (
            "admin",
            json!({"until": until, "operator": "gus"}),
            "away_refused",
            json!("unknown_operator"),
        ),
        (
            "agent",
            json!({"until": until}),
            "not_authorised",
            json!("wrong_role"),
        ),
        (
            "auditor",
            json!({"until": until}),
            "not_authorised",
            json!("wrong_role"),
        ),
    ] {
        let (status, told) = set(&bench, token, body.clone()).await;
        assert!(status >= 400, "{token} {body}: {told}");
        assert_eq!(
            (&told["code"], &told["refusal"]),
            (&json!(code), &refusal),
            "{token} {body}"
        );
    }
    assert_eq!(listed(&bench, "admin").await, [Value::Null; 0]);
    // By whatever they are called here; the admin's token is on record.
    let (_, absence) = set(
        &bench,
        "admin",
        json!({"until": until, "operator": "DANA", "substitute": "Ines"}),
    )
    .await;
    assert_eq!(absence["operator"], "dana", "{absence}");
    let log = bench.get("/api/audit?kind=operator.away", "auditor").await.json();
    assert_eq!(log["items"][0]["actor"], "token:admin", "{log}");
    let ended = bench
        .post("/api/absences/end", "admin", json!({"operator": "dana"}))
        .await;
    assert_eq!(ended.status, 200, "{}", ended.text);
}
