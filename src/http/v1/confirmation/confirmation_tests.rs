//! Confirmation requests as clients meet them, over a real store.

use serde_json::{Value, json};

use crate::http::fixture::Bench;

#[tokio::test]
async fn a_verdict_has_its_documented_shape() {
    let bench = Bench::new().await;
    let ask = |tool: &'static str| json!({ "tool_name": tool, "tool_args": { "b": 1e2, "a": 0.10 } });
    let heard = bench.post("/api/confirmations", "agent", ask("free__look")).await;
    let digest = heard.json()["args_digest"].clone();
    assert_eq!(digest.as_str().unwrap().len(), 64);
    assert_eq!(
        heard.json(),
        json!({
            "verdict": "allow", "confirmation_id": null, "status": null, "reason": null, "reason_code": null,
            "rule": "free", "args_digest": digest, "expires_at": null, "edited": false,
        })
    );
    let heard = bench
        .post("/api/confirmations", "agent", ask("never__drop"))
        .await;
    let json = heard.json();
    assert_eq!(heard.status, 200);
    assert_eq!(
        (&json["verdict"], &json["reason_code"], &json["rule"]),
        (&json!("deny"), &json!("denied_by_rule"), &json!("never"))
    );
    assert!(json["reason"].as_str().unwrap().contains("because of never"));
    let heard = bench.post("/api/confirmations", "agent", ask("pay")).await;
    let json = heard.json();
    assert_eq!(
        (&json["verdict"], &json["status"], &json["reason_code"]),
        (&json!("pending"), &json!("pending"), &Value::Null)
    );
    assert_eq!(json["expires_at"], "2026-01-31T12:02:00.000Z");
    let heard = bench.post("/api/confirmations", "agent", ask("nowhere__x")).await;
    assert_eq!(heard.json()["reason_code"], "undeliverable");
}

#[tokio::test]
async fn a_request_has_its_documented_shape() {
    let bench = Bench::new().await;
    let body = r#"{"tool_name":"card__charge","tool_args":{"amount":12345678901234567890.10,"card":{"number":"4111"}},
        "agent_id":"a1","session_id":"s1","tool_call_id":"c1","requester":"someone","metadata":{"x":1}}"#;
    let heard = bench.send("POST", "/api/confirmations", "agent", body).await;
    let id = heard.json()["confirmation_id"].as_str().unwrap().to_owned();
    let path = format!("/api/confirmations/{id}");
    let own = bench.get(&path, "agent").await;
    assert!(
        own.text
            .contains(r#"{"amount":12345678901234567890.1,"card":{"number":"4111"}}"#),
        "{}",
        own.text
    );
    let shown = bench.get(&path, "dana").await;
    assert!(shown.text.contains(r#""amount":12345678901234567890.1"#) && !shown.text.contains("4111"));
    let mut json = shown.json();
    let digest = json["args_digest"].take();
    assert_eq!(digest, own.json()["args_digest"]);
    let args = json["tool_args"].take();
    assert_eq!(args["card"]["number"], "‹hidden: string, 4 characters›");
    let whole = json.as_object_mut().unwrap();
    for (name, expected) in [
        ("short_code", json!("89R0-S0EN")),
        ("step_up", json!(null)),
        ("armed", json!([])),
        ("break_glass_offered", json!(false)),
        ("break_glass", json!(null)),
    ] {
        assert_eq!(whole.remove(name), Some(expected), "{name}");
    }
    assert_eq!(
        json,
        json!({
            "id": id, "org": "acme", "status": "pending", "tool_name": "card__charge", "tool_args": null,
            "tool_args_redacted": true, "args_digest": null, "token": "agent", "agent_id": "a1", "session_id": "s1",
            "tool_call_id": "c1", "requester": "someone", "job_id": null, "risk": null, "rule": "card",
            "reason": "because of card", "quorum": 1, "require_reason": null, "confirm_step": false,
            "stages": [], "stage": null, "grants_offered": [], "approved_by_grant": null, "grant_id": null, "edits_accepted": false,
            "edit": null, "created_at": "2026-01-31T12:00:00.000Z",
            "expires_at": "2026-01-31T12:02:00.000Z", "decided_at": null, "consumed_at": null, "resumed_at": null,
            "executed_at": null, "outcome": null, "votes": [],
            "deliveries": [{ "channel": "chat", "state": "queued" }],
        })
    );
}

#[tokio::test]
async fn looking_at_everything_is_for_deciders_and_on_record() {
    let bench = Bench::new().await;
    let id = bench.ask("card__charge").await;
    let path = format!("/api/confirmations/{id}?full=true");
    assert_eq!(bench.get(&path, "ines").await.code(), "not_authorised");
    assert_eq!(bench.get(&path, "auditor").await.code(), "not_authorised");
    let heard = bench.get(&path, "dana").await;
    assert_eq!(heard.json()["tool_args_redacted"], false);
    let events = bench.get("/api/audit?kind=args.viewed", "auditor").await.json();
    let events = events["items"].as_array().unwrap().clone();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["actor"], "operator:dana");
    assert_eq!(events[0]["confirmation_id"], id);
}

#[tokio::test]
async fn what_belongs_to_others_is_not_there() {
    let bench = Bench::new().await;
    let id = bench.ask("pay").await;
    let path = format!("/api/confirmations/{id}");
    for token in ["other", "stranger", "gus"] {
        assert_eq!(bench.get(&path, token).await.code(), "not_found", "{token}");
    }
    let call = json!({ "tool_name": "pay", "tool_args": { "amount": 1 } });
    for (act, body) in [
        ("cancel", json!({})),
        ("consume", call),
        ("outcome", json!({ "status": "failed" })),
    ] {
        for token in ["other", "stranger"] {
            let heard = bench.post(&format!("{path}/{act}"), token, body.clone()).await;
            assert_eq!(heard.code(), "not_found", "{act} as {token}");
        }
    }
    assert_eq!(bench.respond(&id, "gus", "approve").await.code(), "not_found");
    let list = bench.get("/api/confirmations", "gus").await.json();
    assert_eq!(list, json!({ "items": [], "next_cursor": null }));
    for bad in [
        "cr_1",
        "x",
        "job_00000000000000000000000000000000",
        "%00",
        "..%2f",
    ] {
        let heard = bench.get(&format!("/api/confirmations/{bad}"), "dana").await;
        assert_eq!(heard.code(), "not_found", "{bad}");
    }
}

#[tokio::test]
async fn an_approved_call_is_consumed_once_and_only_as_it_was() {
    let bench = Bench::new().await;
    let id = bench.ask("pay").await;
    let consume = format!("/api/confirmations/{id}/consume");
    let call = json!({ "tool_name": "pay", "tool_args": { "amount": 1 } });
    let heard = bench.post(&consume, "agent", call.clone()).await;
    assert_eq!(heard.code(), "not_approved");
    assert_eq!(heard.json()["confirmation_status"], "pending");
    assert_eq!(bench.respond(&id, "dana", "approve").await.status, 200);
    let changed = json!({ "tool_name": "pay", "tool_args": { "amount": 2 } });
    assert_eq!(
        bench.post(&consume, "agent", changed).await.code(),
        "args_changed"
    );
    let heard = bench
        .send(
            "POST",
            &consume,
            "agent",
            r#"{"tool_name":"pay","tool_args":{"amount":1.0}}"#,
        )
        .await;
    let granted = heard.json();
    assert_eq!(granted["tool_args"], json!({ "amount": 1 }));
    assert_eq!(granted["expires_at"], "2026-01-31T13:00:00.000Z");
    assert!(granted["permit"].as_str().unwrap().starts_with("pm_"));
    assert_eq!(
        bench.post(&consume, "agent", call.clone()).await.code(),
        "already_consumed"
    );
    let outcome = format!("/api/confirmations/{id}/outcome");
    let done = json!({ "status": "succeeded", "detail": "paid" });
    for _ in 0..2 {
        let heard = bench.post(&outcome, "agent", done.clone()).await;
        assert_eq!(
            heard.json()["outcome"],
            json!({ "status": "succeeded", "detail": "paid" })
        );
    }
    let other = json!({ "status": "failed" });
    assert_eq!(
        bench.post(&outcome, "agent", other).await.code(),
        "outcome_contradicts"
    );
}

#[tokio::test]
async fn asking_again_finds_the_same_request() {
    let bench = Bench::new().await;
    let call = |amount: i32| json!({ "tool_name": "pay", "tool_args": { "amount": amount }, "session_id": "s", "tool_call_id": "c" });
    let first = bench.post("/api/confirmations", "agent", call(1)).await.json();
    let again = bench.post("/api/confirmations", "agent", call(1)).await.json();
    assert_eq!(first, again);
    let heard = bench.post("/api/confirmations", "agent", call(2)).await;
    assert_eq!(
        (heard.status.as_u16(), heard.code()),
        (409, "call_id_conflict".into())
    );
    let id = first["confirmation_id"].as_str().unwrap();
    bench.respond(id, "dana", "approve").await;
    let again = bench.post("/api/confirmations", "agent", call(1)).await.json();
    assert_eq!(
        (&again["verdict"], &again["status"]),
        (&json!("allow"), &json!("approved"))
    );
    let consume = json!({ "tool_name": "pay", "tool_args": { "amount": 1 } });
    bench
        .post(&format!("/api/confirmations/{id}/consume"), "agent", consume)
        .await;
    let again = bench.post("/api/confirmations", "agent", call(1)).await.json();
    assert_eq!(
        (&again["verdict"], &again["reason_code"]),
        (&json!("deny"), &json!("already_consumed"))
    );
}

#[tokio::test]
async fn a_lapsed_permit_is_a_denial() {
    let bench = Bench::new().await;
    let call = json!({ "tool_name": "pay", "tool_args": {}, "tool_call_id": "c" });
    let asked = bench
        .post("/api/confirmations", "agent", call.clone())
        .await
        .json();
    let id = asked["confirmation_id"].as_str().unwrap();
    bench.respond(id, "dana", "approve").await;
    bench.clock.advance(std::time::Duration::from_hours(1));
    let again = bench.post("/api/confirmations", "agent", call).await.json();
    assert_eq!(again["reason_code"], "permit_expired");
    let consume = json!({ "tool_name": "pay", "tool_args": {} });
    let heard = bench
        .post(&format!("/api/confirmations/{id}/consume"), "agent", consume)
        .await;
    assert_eq!(heard.code(), "permit_expired");
}

#[tokio::test]
async fn who_may_not_decide_is_told_so() {
    let bench = Bench::new().await;
    let id = bench.ask("pay").await;
    let heard = bench.respond(&id, "ines", "approve").await;
    assert_eq!(
        (heard.status.as_u16(), heard.code()),
        (403, "not_authorised".into())
    );
    assert_eq!(heard.json()["refusal"], "not_authorised");
    // Dana runs the token `other`.
    let body = json!({ "tool_name": "pay", "tool_args": {} });
    let heard = bench.post("/api/confirmations", "other", body).await;
    let own = heard.json()["confirmation_id"].as_str().unwrap().to_owned();
    let heard = bench.respond(&own, "dana", "approve").await;
    assert_eq!(heard.json()["refusal"], "self_approval");
    assert_eq!(bench.respond(&own, "dana", "reject").await.status, 200);
    let heard = bench.respond(&own, "mira", "approve").await;
    assert_eq!(
        (heard.status.as_u16(), heard.code()),
        (409, "already_settled".into())
    );
    assert_eq!(heard.json()["confirmation_status"], "rejected");
    bench.deliver().await;
    bench.clock.advance(std::time::Duration::from_mins(2));
    let heard = bench.respond(&id, "dana", "approve").await;
    assert_eq!(heard.code(), "already_settled");
    assert_eq!(heard.json()["confirmation_status"], "expired");
    assert_eq!(heard.json()["decided_at"], "2026-01-31T12:02:00.000Z");
}

#[tokio::test]
async fn two_must_agree_where_two_are_asked() {
    let bench = Bench::new().await;
    let id = bench.ask("two__x").await;
    let heard = bench.respond(&id, "dana", "approve").await;
    assert_eq!(heard.json()["status"], "pending");
    assert_eq!(
        bench.respond(&id, "dana", "approve").await.code(),
        "already_voted"
    );
    let heard = bench.respond(&id, "mira", "approve").await;
    assert_eq!(heard.json()["status"], "approved");
    assert_eq!(heard.json()["votes"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_rejection_says_who_and_why_and_what_next() {
    let bench = Bench::new().await;
    let call = json!({ "tool_name": "pay", "tool_args": {}, "tool_call_id": "c" });
    let asked = bench
        .post("/api/confirmations", "agent", call.clone())
        .await
        .json();
    let path = format!(
        "/api/confirmations/{}/respond",
        asked["confirmation_id"].as_str().unwrap()
    );
    let no = json!({ "decision": "reject", "reason": "wrong account" });
    assert_eq!(bench.post(&path, "dana", no).await.status, 200);
    let told = bench.post("/api/confirmations", "agent", call).await.json();
    assert_eq!(told["reason_code"], "rejected_by_operator");
    let reason = told["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("Rejected by DANA Doe: wrong account. ") && reason.contains("final"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_wait_ends_with_the_decision() {
    let bench = Bench::new().await;
    let id = bench.ask("pay").await;
    let path = format!("/api/confirmations/{id}?wait=60");
    let waiting = bench.get(&path, "agent");
    let deciding = async {
        tokio::task::yield_now().await;
        bench.respond(&id, "dana", "approve").await
    };
    let (heard, _) = tokio::join!(waiting, deciding);
    assert_eq!(heard.json()["status"], "approved");
}

#[tokio::test]
async fn withdrawing_is_for_who_asked() {
    let bench = Bench::new().await;
    let id = bench.ask("pay").await;
    let path = format!("/api/confirmations/{id}/cancel");
    for _ in 0..2 {
        let heard = bench.send("POST", &path, "agent", "").await;
        assert_eq!(heard.json()["status"], "cancelled");
    }
    let id = bench.ask("pay").await;
    bench.respond(&id, "dana", "approve").await;
    let heard = bench
        .send("POST", &format!("/api/confirmations/{id}/cancel"), "agent", "")
        .await;
    assert_eq!(heard.code(), "already_settled");
}

#[tokio::test]
async fn hostile_bodies_are_refused_with_a_problem() {
    let bench = Bench::new().await;
    let deep = |levels: usize| {
        format!(
            r#"{{"tool_name":"pay","tool_args":{}1{}}}"#,
            r#"{"a":"#.repeat(levels),
            "}".repeat(levels)
        )
    };
    let digits = "1".repeat(41);
    for (body, status, code) in [
        (String::new(), 400, "invalid_request"),
        ("{".into(), 400, "invalid_request"),
        ("[]".into(), 400, "invalid_request"),
        (r#"{"tool_name":"x"}"#.into(), 400, "invalid_request"),
        (
            r#"{"tool_name":"x","tool_args":[]}"#.into(),
            400,
            "invalid_arguments",
        ),
        (
            r#"{"tool_name":"","tool_args":{}}"#.into(),
            400,
            "invalid_arguments",
        ),
        (
            r#"{"tool_name":"x","tool_args":{"a":1,"a":2}}"#.into(),
            400,
            "invalid_arguments",
        ),
        (
            r#"{"tool_name":"x","tool_args":{"a":"\ud800"}}"#.into(),
            400,
            "invalid_arguments",
        ),
        (
            format!(r#"{{"tool_name":"x","tool_args":{{"a":{digits}}}}}"#),
            400,
            "invalid_arguments",
        ),
        (
            r#"{"tool_name":"x","tool_args":{},"tool_args":{}}"#.into(),
            400,
            "invalid_request",
        ),
        (
            r#"{"tool_name":"x","tool_args":{},"approve":true}"#.into(),
            400,
            "invalid_request",
        ),
        (
            r#"{"tool_name":"x","tool_args":{},"wait":61}"#.into(),
            400,
            "invalid_request",
        ),
        (deep(129), 400, "invalid_arguments"),
        (deep(100_000), 400, "invalid_arguments"),
        ("x".repeat(1024 * 1024 + 1), 413, "body_too_large"),
    ] {
        let short: String = body.chars().take(60).collect();
        let heard = bench.send("POST", "/api/confirmations", "agent", body).await;
        assert_eq!(
            (heard.status.as_u16(), heard.code().as_str()),
            (status, code),
            "{short}"
        );
    }
    assert_eq!(
        bench
            .send("POST", "/api/confirmations", "agent", deep(128))
            .await
            .status,
        200
    );
    let list = bench.get("/api/confirmations", "dana").await.text;
    assert_eq!(
        list.matches(r#"{"id":"cr_"#).count(),
        1,
        "nothing refused was written"
    );
}

#[tokio::test]
async fn nul_in_arguments_is_kept_and_shown() {
    let bench = Bench::new().await;
    let body = r#"{"tool_name":"pay","tool_args":{"a":"x\u0000y","b":"\\u0000"}}"#;
    let heard = bench.send("POST", "/api/confirmations", "agent", body).await;
    let id = heard.json()["confirmation_id"].as_str().unwrap().to_owned();
    let heard = bench.get(&format!("/api/confirmations/{id}"), "dana").await;
    assert!(
        heard.text.contains(r#"{"a":"x\u0000y","b":"\\u0000"}"#),
        "{}",
        heard.text
    );
}

#[tokio::test]
async fn lists_are_filtered_and_paged_without_gaps() {
    let bench = Bench::new().await;
    let mut ids = Vec::new();
    for n in 0..7 {
        ids.push(bench.ask(if n % 2 == 0 { "pay" } else { "card__x" }).await);
    }
    ids.reverse();
    for limit in [1, 3, 7] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/api/confirmations?limit={limit}{cursor}");
            let page = bench.get(&path, "dana").await.json();
            seen.extend(
                page["items"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|item| item["id"].as_str().unwrap().to_owned()),
            );
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen, ids, "limit {limit}");
    }
    for (query, count) in [
        ("tool=pay", 4),
        ("status=pending", 7),
        ("status=approved,rejected", 0),
        ("channel=chat", 7),
        ("operator=dana", 0),
        ("since=2026-01-31T12:00:01Z", 0),
        ("q=card", 3),
        ("stuck=true", 0),
    ] {
        let page = bench
            .get(&format!("/api/confirmations?{query}"), "auditor")
            .await
            .json();
        assert_eq!(
            page["items"].as_array().map(Vec::len),
            Some(count),
            "{query}: {page}"
        );
    }
    for (query, code) in [
        ("cursor=nonsense", "bad_cursor"),
        ("cursor=", "bad_cursor"),
        ("status=open", "invalid_request"),
        ("limit=0", "invalid_request"),
        ("colour=red", "invalid_request"),
        ("token=x", "token_in_query"),
        ("since=now", "invalid_request"),
    ] {
        let heard = bench.get(&format!("/api/confirmations?{query}"), "dana").await;
        assert_eq!(heard.code(), code, "{query}");
    }
}

#[tokio::test]
async fn a_rule_may_ask_for_a_reason_and_for_one_group_after_the_other() {
    let bench = Bench::new().await;
    let body = json!({ "tool_name": "staged__pay", "tool_args": {} });
    let heard = bench.post("/api/confirmations", "agent", body).await.json();
    let id = heard["confirmation_id"].as_str().unwrap().to_owned();
    let path = format!("/api/confirmations/{id}");
    let shown = bench.get(&path, "dana").await.json();
    assert_eq!(
        (&shown["require_reason"], &shown["confirm_step"], &shown["stage"]),
        (&json!("both"), &json!(true), &json!(1))
    );
    assert_eq!(
        shown["stages"],
        json!([{ "name": "first", "quorum": 1, "approvals": 0 }, { "name": "second", "quorum": 1, "approvals": 0 }])
    );
    let respond = format!("{path}/respond");
    let answer = async |who: &str, body: Value| bench.post(&respond, who, body).await;
    for reason in [json!(null), json!("  "), json!("…")] {
        let heard = answer("dana", json!({ "decision": "approve", "reason": reason })).await;
        assert_eq!(
            (heard.status.as_u16(), heard.code().as_str()),
            (422, "reason_required")
        );
    }
    let early = answer("mira", json!({ "decision": "approve", "reason": "fine" })).await;
    assert_eq!(early.status, 403);
    assert_eq!(early.json()["refusal"], "not_this_stage");
    let heard = answer("dana", json!({ "decision": "approve", "reason": "checked" })).await;
    let json = heard.json();
    assert_eq!((&json["status"], &json["stage"]), (&json!("pending"), &json!(2)));
    assert_eq!(json["stages"][0]["approvals"], 1);
    assert_eq!(
        (&json["votes"][0]["stage"], &json["votes"][0]["reason"]),
        (&json!(1), &json!("checked"))
    );
    let heard = answer("mira", json!({ "decision": "approve", "reason": "fine" })).await;
    assert_eq!(heard.json()["status"], "approved");
}

#[tokio::test]
async fn a_consumption_that_cannot_be_read_says_what_it_takes() {
    let bench = Bench::new().await;
    let asked = bench
        .post(
            "/api/confirmations",
            "agent",
            json!({ "tool_name": "pay", "tool_args": {} }),
        )
        .await
        .json();
    let path = format!(
        "/api/confirmations/{}/consume",
        asked["confirmation_id"].as_str().unwrap()
    );
    for body in [
        json!({}),
        json!({ "tool_name": "pay" }),
        json!({ "tool_name": 7, "tool_args": {} }),
        json!({ "tool_name": "pay", "tool_args": [] }),
        json!({ "tool_name": "pay", "tool_args": {}, "args_digest": "x" }),
    ] {
        let heard = bench.post(&path, "agent", body.clone()).await;
        assert_eq!(heard.status, 400, "{body}");
        let detail = heard.json()["detail"].as_str().unwrap().to_owned();
        assert!(
            detail.contains("tool_name") && detail.contains("tool_args"),
            "{detail}"
        );
    }
    let odd = json!({ "tool_name": "pay", "tool_args": {}, "args_digest": "x" });
    let detail = bench.post(&path, "agent", odd).await.json()["detail"].to_string();
    assert!(
        detail.contains("`args_digest` is not known here; accepted are `tool_name`, `tool_args`"),
        "{detail}"
    );
}
