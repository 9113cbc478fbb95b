//! Refusals say what would be taken, and the code of a call is told to people only.

use serde_json::json;

use crate::http::fixture::Bench;

#[tokio::test]
async fn who_may_decide_is_named_to_who_may_not() {
    let bench = Bench::new().await;
    for (tool, token, told) in [
        (
            "glass__pay",
            "ines",
            "this operator may not decide the request; it asks the role finance",
        ),
        (
            "staged__pay",
            "mira",
            "other people are asked in this stage of the request; it asks the operator dana",
        ),
    ] {
        let id = bench.ask(tool).await;
        let body = json!({ "decision": "approve", "reason": "because" });
        let path = format!("/api/confirmations/{id}/respond");
        let heard = bench.post(&path, token, body).await;
        assert_eq!(heard.status, 403, "{}", heard.text);
        assert_eq!(heard.json()["detail"], told);
    }
}

#[tokio::test]
async fn the_grants_there_are_are_named() {
    let bench = Bench::new().await;
    for (tool, told) in [
        (
            "grants__pay",
            "it offers 1h; name one of them in `grant`, or answer without it; nothing was changed",
        ),
        (
            "glass__pay",
            "the request offers none; answer without `grant`; nothing was changed",
        ),
    ] {
        let id = bench.ask(tool).await;
        let path = format!("/api/confirmations/{id}/respond");
        let heard = bench
            .post(&path, "dana", json!({ "decision": "approve", "grant": "7d" }))
            .await
            .json();
        assert_eq!(
            (&heard["code"], &heard["detail"]),
            (&json!("grant_not_offered"), &json!(told))
        );
    }
}

#[tokio::test]
async fn the_code_of_a_call_is_for_people() {
    let bench = Bench::new().await;
    let id = bench.ask("glass__pay").await;
    let path = format!("/api/confirmations/{id}");
    let code = bench.get(&path, "dana").await.json()["short_code"].clone();
    assert_eq!(code.as_str().map(str::len), Some(9), "{code}");
    assert_eq!(bench.get(&path, "auditor").await.json()["short_code"], code);
    assert_eq!(
        bench.get("/api/confirmations", "mira").await.json()["items"][0]["short_code"],
        code
    );
    assert!(bench.get(&path, "agent").await.json()["short_code"].is_null());
    assert_eq!(
        bench.respond(&id, "dana", "approve").await.json()["short_code"],
        code
    );
}
