//! The API as clients meet it, over a real store.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use futures_util::stream;
use serde_json::{Value, json};

use super::body::BodyBudget;
use super::fixture::{Bench, HOST, TOKENS, secret};
use super::guard::Crowd;
use super::problem::MEDIA_TYPE;
use super::route::{ROUTES, Who};

const NO_ID: &str = "cr_00000000000000000000000000000000";

fn filled(path: &str) -> String {
    path.replace("{id}", NO_ID)
        .replace("{name}", "chat")
        .replace("{host}", "claude-code")
        .replace("{secret}", "x")
}

#[tokio::test]
async fn every_route_is_open_to_its_roles_and_to_nobody_else() {
    let bench = Bench::new().await;
    for route in ROUTES {
        let Who::Roles(roles) = route.who else { continue };
        let path = filled(route.path);
        let heard = bench.send(route.method, &path, "", "{}").await;
        assert_eq!(heard.status, 401, "{} {path}", route.method);
        assert_eq!(heard.code(), "unauthenticated");
        assert_eq!(heard.headers[header::WWW_AUTHENTICATE], "Bearer");
        let unknown = Request::builder()
            .method(route.method)
            .uri(&path)
            .header(header::HOST, HOST)
            .header(header::AUTHORIZATION, "Bearer not-a-token-of-ours")
            .body(Body::empty())
            .unwrap();
        assert_eq!(bench.raw(unknown).await.status, 401);
        for (token, _, role) in TOKENS {
            let heard = bench.send(route.method, &path, token, "{}").await;
            let refused = heard.status == StatusCode::FORBIDDEN
                && heard.code() == "not_authorised"
                && heard.json()["refusal"] == "wrong_role";
            assert_eq!(
                refused,
                !roles.contains(&role),
                "{} {path} as {role}: {}",
                route.method,
                heard.text
            );
        }
    }
}

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
            "rule": "free", "args_digest": digest, "expires_at": null,
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
    assert_eq!(
        json,
        json!({
            "id": id, "org": "acme", "status": "pending", "tool_name": "card__charge", "tool_args": null,
            "tool_args_redacted": true, "args_digest": null, "token": "agent", "agent_id": "a1", "session_id": "s1",
            "tool_call_id": "c1", "requester": "someone", "job_id": null, "rule": "card",
            "reason": "because of card", "quorum": 1, "created_at": "2026-01-31T12:00:00.000Z",
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

fn callback(name: &str) -> axum::http::request::Builder {
    Request::builder()
        .method("POST")
        .uri(format!("/api/channels/{name}/callback"))
        .header(header::HOST, HOST)
        .header("x-signature", "good")
}

#[tokio::test]
async fn callbacks_are_bounded_and_say_nothing_to_strangers() {
    let bench = Bench::new().await;
    let big = "x".repeat(1024 * 1024 + 1);
    let chunks = stream::iter((0..64).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 1024 * 1024])));
    for (request, status) in [
        (
            callback("chat").body(Body::from(big)).unwrap(),
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
        (
            callback("chat").body(Body::from_stream(chunks)).unwrap(),
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
        (
            callback("chat")
                .header(header::CONTENT_ENCODING, "gzip")
                .body(Body::from("x"))
                .unwrap(),
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ),
        (
            callback("chat").body(Body::from("not json")).unwrap(),
            StatusCode::BAD_REQUEST,
        ),
        (
            callback("nobody").body(Body::from("{}")).unwrap(),
            StatusCode::NOT_FOUND,
        ),
    ] {
        assert_eq!(bench.raw(request).await.status, status);
    }
    let heard = bench.send("POST", "/api/channels/chat/callback", "", "{}").await;
    assert_eq!((heard.status.as_u16(), heard.text.as_str()), (401, ""));
    let shake = callback("chat").body(Body::from(r#"{"challenge":"c"}"#)).unwrap();
    assert_eq!(bench.raw(shake).await.json(), json!({ "challenge": "c" }));
    let slashed = Request::builder()
        .method("POST")
        .uri("/api/channels/chat/callback/")
        .header(header::HOST, HOST)
        .header("x-signature", "good")
        .body(Body::from(r#"{"challenge":"c"}"#))
        .unwrap();
    assert_eq!(bench.raw(slashed).await.status, 200, "no redirect");
}

#[tokio::test]
async fn a_dripping_body_is_given_up() {
    let bodies = BodyBudget::within(std::time::Duration::from_millis(20));
    let bench = Bench::with(Crowd::default(), bodies).await;
    let drip = stream::unfold(0_u8, |n| async move {
        if n > 0 {
            std::future::pending::<()>().await;
        }
        Some((Ok::<_, std::io::Error>(vec![b'{']), n + 1))
    });
    let request = callback("chat").body(Body::from_stream(drip)).unwrap();
    assert_eq!(bench.raw(request).await.code(), "body_timeout");
}

#[tokio::test]
async fn a_click_decides_and_a_repeat_gets_the_first_answer() {
    let bench = Bench::new().await;
    let id = bench.ask("pay").await;
    bench.deliver().await;
    let press = bench.press(&id, "u-dana", "approve", "k1").await;
    let stranger = bench.press(&id, "u-nobody", "approve", "k2").await;
    let heard = bench
        .raw(callback("chat").body(Body::from(stranger.to_string())).unwrap())
        .await;
    assert_eq!(heard.status, 200);
    let mut answers = Vec::new();
    for _ in 0..2 {
        let request = callback("chat").body(Body::from(press.to_string())).unwrap();
        let heard = bench.raw(request).await;
        assert_eq!(heard.status, 200);
        answers.push(heard.text);
    }
    assert_eq!(answers[0], answers[1]);
    let shown = bench
        .get(&format!("/api/confirmations/{id}"), "dana")
        .await
        .json();
    assert_eq!(shown["status"], "approved");
    assert_eq!(shown["votes"][0]["operator"], "dana");
    assert_eq!(shown["votes"][0]["channel"], "chat");
    let channels = bench.get("/api/channels", "admin").await.json();
    assert_eq!(
        channels,
        json!({ "items": [{
            "name": "chat", "kind": "fake", "healthy": true, "detail": "fine",
            "last_post_at": "2026-01-31T12:00:00.000Z", "last_click_at": "2026-01-31T12:00:00.000Z",
        }], "next_cursor": null })
    );
}

#[tokio::test]
async fn a_test_card_is_throttled_and_stays_in_its_organisation() {
    let bench = Bench::new().await;
    let heard = bench.send("POST", "/api/channels/chat/test", "admin", "").await;
    assert_eq!(
        heard.json(),
        json!({ "channel": "chat", "posted": true, "detail": "the card stands" })
    );
    let heard = bench.send("POST", "/api/channels/chat/test", "admin", "").await;
    assert_eq!(heard.code(), "throttled");
    assert_eq!(heard.headers[header::RETRY_AFTER], "11");
    let heard = bench
        .send("POST", "/api/channels/chat-globex/test", "admin", "")
        .await;
    assert_eq!(heard.code(), "not_found");
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
            let path = format!("/api/confirmations?limit={limit}&cursor={cursor}");
            let page = bench.get(&path, "dana").await.json();
            seen.extend(
                page["items"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|item| item["id"].as_str().unwrap().to_owned()),
            );
            match page["next_cursor"].as_str() {
                Some(next) => next.clone_into(&mut cursor),
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

#[tokio::test]
async fn other_names_and_other_sites_are_refused_everywhere() {
    let bench = Bench::new().await;
    for route in ROUTES {
        let request = |host: &str, origin: Option<&str>| {
            let mut request = Request::builder()
                .method(route.method)
                .uri(filled(route.path))
                .header(header::HOST, host);
            if let Some(origin) = origin {
                request = request.header(header::ORIGIN, origin);
            }
            request.body(Body::empty()).unwrap()
        };
        let foreign = bench.raw(request("evil.example:8460", None)).await;
        let cross = bench.raw(request(HOST, Some("https://evil.example"))).await;
        if route.who == Who::Hook {
            for heard in [foreign, cross] {
                assert_eq!(heard.status, 200);
                assert_eq!(heard.json()["hookSpecificOutput"]["permissionDecision"], "deny");
            }
        } else {
            assert_eq!(foreign.code(), "wrong_host", "{}", route.path);
            assert_eq!(cross.code(), "foreign_origin", "{}", route.path);
        }
    }
}

#[tokio::test]
async fn whatever_a_host_sends_is_answered_with_its_own_denial() {
    let bench = Bench::new().await;
    let big = "x".repeat(5 * 1024 * 1024);
    for (method, path, token, body) in [
        ("POST", "/api/hooks/claude-code", "", "{}"),
        ("POST", "/api/hooks/claude-code", "dana", "{}"),
        ("POST", "/api/hooks/claude-code", "agent", "not json"),
        ("POST", "/api/hooks/claude-code", "agent", big.as_str()),
        ("POST", "/api/hooks/claude-code?token=x", "agent", "{}"),
        ("POST", "/api/hooks/nobody", "agent", "{}"),
        ("POST", "/api/hooks/claude-code/", "agent", "{}"),
        ("GET", "/api/hooks/claude-code", "agent", ""),
    ] {
        let heard = bench.send(method, path, token, body.to_owned()).await;
        assert_eq!(heard.status, 200, "{method} {path}");
        assert_eq!(
            heard.json()["hookSpecificOutput"]["permissionDecision"],
            "deny",
            "{method} {path}: {}",
            heard.text
        );
    }
    let full = Bench::with(Crowd::of(0), BodyBudget::default()).await;
    let heard = full.send("POST", "/api/hooks/claude-code", "agent", "{}").await;
    assert_eq!(heard.json()["hookSpecificOutput"]["permissionDecision"], "deny");
}

#[tokio::test]
async fn overload_is_said_with_a_time_to_come_back() {
    let bench = Bench::with(Crowd::of(0), BodyBudget::default()).await;
    let heard = bench.get("/healthz", "").await;
    assert_eq!((heard.status.as_u16(), heard.code()), (503, "overloaded".into()));
    assert!(heard.headers.contains_key(header::RETRY_AFTER));
}

#[tokio::test]
async fn probes_need_no_token_and_a_stopping_server_is_not_ready() {
    let bench = Bench::new().await;
    assert_eq!(bench.get("/healthz", "").await.status, 200);
    assert_eq!(bench.get("/readyz", "").await.status, 200);
    assert_eq!(bench.get("/metrics", "").await.status, 200);
    bench.tasks.ask_to_stop();
    assert_eq!(bench.get("/healthz", "").await.status, 200);
    assert_eq!(bench.get("/readyz", "").await.code(), "unavailable");
}

#[tokio::test]
async fn what_is_not_there_and_what_is_not_allowed_are_problems() {
    let bench = Bench::new().await;
    assert_eq!(bench.get("/api/nothing", "agent").await.code(), "not_found");
    assert_eq!(bench.get("/", "").await.code(), "not_found");
    let heard = bench.send("DELETE", "/api/confirmations", "agent", "").await;
    assert_eq!(heard.code(), "method_not_allowed");
    assert_eq!(heard.headers[header::CONTENT_TYPE], MEDIA_TYPE);
    let two = Request::builder()
        .uri("/api/confirmations")
        .header(header::HOST, HOST)
        .header(header::AUTHORIZATION, format!("Bearer {}", secret("dana")))
        .header(header::AUTHORIZATION, format!("Bearer {}", secret("dana")))
        .body(Body::empty())
        .unwrap();
    assert_eq!(bench.raw(two).await.code(), "unauthenticated");
}

#[test]
fn the_description_and_the_routes_agree() {
    let document: Value = serde_json::from_str(super::OPENAPI).unwrap();
    let described: std::collections::BTreeSet<_> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| {
            item.as_object()
                .unwrap()
                .keys()
                .filter(|key| ["get", "post", "put", "patch", "delete"].contains(&key.as_str()))
                .map(move |method| (path.clone(), method.to_uppercase()))
        })
        .collect();
    let served: std::collections::BTreeSet<_> = ROUTES
        .iter()
        .filter(|route| !route.path.starts_with("/console"))
        // The same endpoint under its second spelling.
        .filter(|route| !route.path.ends_with("/callback/"))
        .map(|route| (route.path.to_owned(), route.method.to_owned()))
        .collect();
    assert_eq!(described, served);
    let codes: std::collections::BTreeSet<_> =
        document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]
            .as_array()
            .unwrap()
            .iter()
            .map(|code| code.as_str().unwrap())
            .collect();
    assert_eq!(
        codes,
        super::problem::Code::ALL
            .iter()
            .map(|code| code.as_str())
            .collect()
    );
    for route in ROUTES {
        if let Who::Roles(roles) = route.who {
            let operation = &document["paths"][route.path][route.method.to_lowercase()];
            assert_eq!(
                operation["x-roles"],
                json!(roles),
                "{} {}",
                route.method,
                route.path
            );
        }
    }
}

#[test]
fn every_reference_of_the_description_leads_somewhere() {
    fn walk<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    match (key.as_str(), value) {
                        ("$ref", Value::String(to)) => found.push(to),
                        _ => walk(value, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            _ => {}
        }
    }
    let document: Value = serde_json::from_str(super::OPENAPI).unwrap();
    let mut found = Vec::new();
    walk(&document, &mut found);
    assert!(found.len() > 50);
    for to in found {
        assert!(document.pointer(to.trim_start_matches('#')).is_some(), "{to}");
    }
}
