//! The API as clients meet it, over a real store.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::{Value, json};

use super::body::BodyBudget;
use super::fixture::{Bench, HOST, TOKENS, secret};
use super::guard::Crowd;
use super::problem::MEDIA_TYPE;
use super::route::{ROUTES, Who};
use crate::confirmation::decide::Surface;

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
    // A host that nobody knows is told which ones are.
    let heard = bench
        .send("POST", "/api/hooks/nobody", "agent", "{}".to_owned())
        .await;
    for name in crate::host::Host::NAMES {
        assert!(heard.text.contains(name), "{}", heard.text);
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
async fn agents_who_wait_keep_nobody_out() {
    let bench = Bench::with(Crowd::of(8), BodyBudget::default()).await;
    let ask = json!({ "tool_name": "pay", "tool_args": {} });
    let id = bench.post("/api/confirmations", "agent", ask).await.json()["confirmation_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let waits: Vec<_> = ["agent", "other", "dana", "auditor"]
        .into_iter()
        .flat_map(|token| std::iter::from_fn(|| bench.api.crowd().may_wait(&token.into()).ok()))
        .collect();
    assert_eq!(waits.len(), 4);
    let path = format!("/api/confirmations/{id}");
    let within = std::time::Duration::from_secs(30);
    let long = format!("{path}?wait=60");
    let heard = tokio::time::timeout(within, bench.get(&long, "agent"));
    assert_eq!(heard.await.expect("no wait").json()["status"], "pending");
    let call = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "pay", "tool_input": {}, "tool_use_id": "t",
    });
    let heard = tokio::time::timeout(within, bench.post("/api/hooks/claude-code", "agent", call));
    let heard = heard.await.expect("no wait");
    assert_eq!(heard.json()["hookSpecificOutput"]["permissionDecision"], "deny");
    assert!(heard.headers.contains_key("gatepost-pending"));
    let respond = json!({ "decision": "approve" });
    let heard = bench.post(&format!("{path}/respond"), "mira", respond).await;
    assert_eq!(heard.json()["status"], "approved");
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
    assert_eq!(bench.get("/nothing", "").await.code(), "not_found");
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
        .filter(|route| route.path != "/" && !route.path.starts_with("/console"))
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
fn the_description_lists_every_surface() {
    let document: Value = serde_json::from_str(super::OPENAPI).unwrap();
    let vote = "/components/schemas/Confirmation/properties/votes/items/properties/surface/enum";
    let listed = document.pointer(vote).and_then(Value::as_array).unwrap();
    let words = Surface::ALL.map(|surface| json!(surface.as_str()));
    assert!(words.iter().all(|word| listed.contains(word)), "{listed:?}");
}

#[test]
fn what_is_sent_and_not_described_is_found() {
    let document: Value = serde_json::from_str(super::OPENAPI).unwrap();
    let faults =
        |answer: Value| super::described::faults(&document, ("GET", "/api/absences?limit=1"), 200, &answer);
    let mut absence = json!({
        "operator": "dana", "from": "2026-01-31T12:00:00.000Z", "until": "2026-02-01T11:00:00.000Z",
        "substitute": "ines", "source": "operator",
    });
    assert_eq!(faults(json!({"items": [absence], "next_cursor": null})), [""; 0]);
    absence["source"] = json!("somebody");
    absence["more"] = json!(1);
    let found = faults(json!({"items": [absence], "next_cursor": 3}));
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(faults(json!({"items": []})).len(), 1, "what must be there");
    let unknown = super::described::faults(&document, ("GET", "/nowhere"), 404, &json!({}));
    assert_eq!(unknown, [""; 0]);
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
