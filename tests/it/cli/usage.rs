//! Help, wrong usage, and what the commands say when they cannot reach a server.

use std::net::TcpListener;

use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::http::StatusCode;
use axum::routing::{any, get, post};
use serde_json::{Value, json};

use super::{Ran, gatepost};
use crate::support::loopback::Server;

const COMMANDS: &[&[&str]] = &[
    &["demo"],
    &["serve"],
    &["check"],
    &["doctor"],
    &["pending"],
    &["show"],
    &["approve"],
    &["reject"],
    &["job", "submit"],
    &["job", "list"],
    &["job", "show"],
    &["job", "answer"],
    &["job", "cancel"],
    &["audit", "list"],
    &["audit", "verify"],
    &["audit", "export"],
    &["migrate"],
    &["openapi"],
    &["schema"],
];

#[test]
fn every_command_has_help_with_examples() {
    let overview = gatepost(&["--help"]);
    assert_eq!(overview.code, 0);
    for command in COMMANDS {
        assert!(
            overview.out.contains(&format!("\n  {}", command[0])),
            "{} is not in the overview",
            command[0]
        );
        let help = gatepost(&[command, &["--help"][..]].concat());
        assert_eq!(help.code, 0, "{command:?}");
        let example = format!("\n  gatepost {}", command.join(" "));
        assert!(
            help.out.contains("Examples:") && help.out.contains(&example),
            "{command:?} shows no example:\n{}",
            help.out
        );
        assert!(help.out.contains("--json"), "{command:?}");
    }
}

#[test]
fn wrong_usage_is_2_and_says_why() {
    for (arguments, told) in [
        (&["frobnicate"][..], "frobnicate"),
        (&[], "Usage"),
        (&["approve", "--token", "t"], "<ID>"),
        (&["reject", "cr_1", "--token", "t"], "--reason"),
        (&["reject", "cr_1", "--token", "t", "--reason", "  "], "--reason"),
        (&["job", "submit", "--piece", "p", "--token", "t"], "--input"),
        (
            &[
                "job",
                "submit",
                "--piece",
                "p",
                "--input",
                "a",
                "--input-file",
                "b",
            ],
            "cannot be used with",
        ),
        (&["job", "list", "--status", "sleeping"], "waiting_human"),
        (&["pending", "--token", "t", "--since", "yesterday"], "RFC 3339"),
        (&["audit", "verify", "--head", "acme:1:xyz"], "ORG:SEQ:HASH"),
        (&["schema", "everything"], "config"),
        (
            &["pending", "--token", "t", "--url", "file:///etc/passwd"],
            "--url",
        ),
    ] {
        let ran = gatepost(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(told), "{arguments:?}: {}", ran.err);
        assert_eq!(ran.out, "", "{arguments:?}");
    }
}

#[test]
fn without_a_token_a_command_says_how_to_give_one() {
    for arguments in [
        &["pending"][..],
        &["show", "cr_1"],
        &["approve", "cr_1"],
        &["job", "list"],
        &["audit", "verify"],
    ] {
        let ran = gatepost(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}");
        assert!(
            ran.err.contains("--token") && ran.err.contains("GATEPOST_TOKEN"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn a_server_that_is_not_there_is_a_failure_that_names_it() {
    let closed = {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let ran = gatepost(&["pending", "--token", "a-token-of-a-test", "--url", &closed]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains(&closed) && ran.err.contains("gatepost serve"),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("a-token-of-a-test"));
}

/// Runs the program against a server of the test, off the runtime's threads.
async fn against(router: Router, arguments: &'static [&'static str]) -> Ran {
    let server = Server::start(router).await;
    let url = server.url("");
    let run = move || gatepost(&[arguments, &["--token", "a-token-of-a-test", "--url", &url]].concat());
    tokio::task::spawn_blocking(run).await.expect("a run")
}

#[tokio::test]
async fn a_problem_document_becomes_one_sentence_with_its_code() {
    let refuse = || async {
        let problem = json!({"type": "about:blank", "title": "The request is settled", "status": 409, "code": "already_settled",
            "detail": "dana rejected it\u{1b}[31m"});
        (StatusCode::CONFLICT, problem.to_string())
    };
    let ran = against(Router::new().fallback(any(refuse)), &["approve", "cr_0"]).await;
    assert_eq!(ran.code, 1);
    assert_eq!(ran.err, "gatepost: dana rejected it\\x1b[31m (already_settled)\n");
    assert_eq!(ran.out, "");
}

#[tokio::test]
async fn something_else_than_gatepost_is_not_believed() {
    let page = || async { "<html>welcome</html>" };
    let ran = against(Router::new().fallback(any(page)), &["pending"]).await;
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("not Gatepost's"), "{}", ran.err);
    let moved = || async { (StatusCode::FOUND, [("location", "http://127.0.0.1:1/")], "") };
    let ran = against(Router::new().fallback(any(moved)), &["pending"]).await;
    assert!(
        ran.code == 1 && ran.err.contains("302"),
        "a redirect is not followed: {}",
        ran.err
    );
}

#[tokio::test]
async fn requests_of_one_set_are_listed_side_by_side() {
    let list = || async {
        let item = |id: &str, set: Value| json!({"id": id, "set": set, "tool_name": "t", "tool_args": {}, "votes": []});
        let alone = Value::Null;
        let items = [
            item("cr_5", json!("cr_2")),
            item("cr_4", alone),
            item("cr_3", json!("cr_3")),
            item("cr_2", json!("cr_2")),
        ];
        json!({"items": items, "next_cursor": null}).to_string()
    };
    let ran = against(Router::new().fallback(any(list)), &["pending"]).await;
    let lines: Vec<Vec<&str>> = ran
        .out
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let ends: Vec<_> = lines.iter().map(|line| (line[0], line[line.len() - 1])).collect();
    assert_eq!(
        ends,
        [
            ("ID", "SET"),
            ("cr_5", "1"),
            ("cr_2", "1"),
            ("cr_4", "0"),
            ("cr_3", "0")
        ],
        "{}",
        ran.out
    );
}

#[tokio::test]
async fn a_request_is_named_by_its_code_or_by_how_its_id_begins_and_never_by_a_guess() {
    const ONE: &str = "cr_0198aaaa000000000000000000000012";
    const TWO: &str = "cr_0198aaaa000000000000000000000002";
    let server = || {
        let list = |RawQuery(query): RawQuery| async move {
            let waits = query.is_some_and(|query| query.contains("status=pending"));
            let item = |id: &str, code: &str| json!({"id": id, "short_code": code, "tool_name": "pay"});
            let items = if waits {
                vec![item(ONE, "K7QF-2M9X"), item(TWO, "K7QF-2M9Y")]
            } else {
                vec![item("cr_0198bbbb000000000000000000000003", "K7QF-2M9Z")]
            };
            json!({"items": items, "next_cursor": null}).to_string()
        };
        let decided =
            |Path(id): Path<String>| async move { json!({"id": id, "status": "approved"}).to_string() };
        Router::new()
            .route("/api/confirmations", get(list))
            .route("/api/confirmations/{id}/respond", post(decided))
    };
    for (arguments, told) in [
        (&["approve", "k7qf-2m9y"][..], format!("{TWO} is approved.\n")),
        (
            &["reject", "0198AAAA00000000000000000000001", "--reason", "no"],
            format!("{ONE} is approved.\n"),
        ),
        (
            &["approve", "cr_0198bb"],
            "cr_0198bbbb000000000000000000000003 is approved.\n".to_owned(),
        ),
    ] {
        let ran = against(server(), arguments).await;
        assert_eq!((ran.code, ran.out), (0, told), "{arguments:?}: {}", ran.err);
    }
    let ran = against(server(), &["approve", "cr_0198aa"]).await;
    assert!(
        ran.code == 1
            && ran.err.contains("names 2 requests")
            && ran.err.contains(ONE)
            && ran.err.contains(TWO),
        "{}",
        ran.err
    );
    // Whoever may list nothing hears what to do.
    let refuse = || async {
        let problem = json!({"title": "Not authorised", "status": 403, "code": "not_authorised"});
        (StatusCode::FORBIDDEN, problem.to_string())
    };
    let ran = against(Router::new().fallback(any(refuse)), &["show", "K7QF-2M9X"]).await;
    assert!(
        ran.code == 1 && ran.err.contains("name the request by its id"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn an_id_cannot_lead_to_another_path() {
    let everything = || async {
        json!({"items": [], "next_cursor": null, "id": "cr_1", "status": "approved"}).to_string()
    };
    for arguments in [
        &["show", ".."][..],
        &["show", "a/b"],
        &["approve", "../x"],
        &["show", ""],
        &["job", "cancel", "x?y"],
    ] {
        let ran = against(Router::new().fallback(any(everything)), arguments).await;
        assert!(
            ran.code == 1 && ran.err.contains("is not an id"),
            "{arguments:?}: {} {}",
            ran.code,
            ran.err
        );
    }
}

fn page(items: &Value, next: Option<&str>) -> String {
    json!({"items": items, "next_cursor": next}).to_string()
}

#[tokio::test]
async fn pending_follows_pages_and_shows_hostile_names_as_text() {
    let list = |uri: axum::http::Uri| async move {
        let query = uri.query().unwrap_or_default().to_owned();
        assert!(
            query.contains("status=pending") && query.contains("tool=pay"),
            "{query}"
        );
        if query.contains("cursor=two") {
            page(
                &json!([{"id": "cr_2", "tool_name": "pay", "deliveries": [{"channel": "desk", "state": "posted"}], "votes": []}]),
                None,
            )
        } else {
            page(
                &json!([{"id": "cr_1", "tool_name": "pay", "tool_args": {"amount": 7}, "requester": "eve\u{202e}\u{1b}[2J\nroot", "deliveries": [], "votes": []}]),
                Some("two"),
            )
        }
    };
    let router = Router::new().route("/api/confirmations", get(list));
    let ran = against(router.clone(), &["pending", "--tool", "pay"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<_> = ran.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", ran.out);
    assert!(
        lines[1].starts_with(r#"cr_1  pay   {"amount":7}"#)
            && lines[1].contains("eve\\u{202E}\\x1b[2J\\nroot"),
        "{}",
        ran.out
    );
    let as_json = against(router, &["pending", "--tool", "pay", "--json"]).await;
    let told: Value = serde_json::from_str(&as_json.out).expect("JSON on stdout");
    assert_eq!(told["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(told["next_cursor"], Value::Null);
}

#[tokio::test]
async fn a_broken_chain_is_exit_code_1_and_named() {
    let broken = || async {
        json!({"ok": false, "events": 40, "first_bad": {"org": "acme", "seq": 17, "what": "gap"}}).to_string()
    };
    let router = Router::new().route("/api/audit/verify", get(broken));
    let ran = against(router.clone(), &["audit", "verify"]).await;
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (1, "The chain is broken at event 17 of acme: gap.\n")
    );
    let as_json = against(router, &["audit", "verify", "--json"]).await;
    assert_eq!(as_json.code, 1);
    assert_eq!(
        serde_json::from_str::<Value>(&as_json.out).expect("JSON")["ok"],
        false
    );
}

#[test]
fn schemas_and_the_api_description_are_json() {
    let api: Value = serde_json::from_str(&gatepost(&["openapi"]).out).expect("JSON");
    assert!(
        api["openapi"]
            .as_str()
            .is_some_and(|version| version.starts_with("3.1"))
    );
    assert!(api["paths"]["/api/confirmations"]["post"].is_object());
    let schema: Value = serde_json::from_str(&gatepost(&["schema"]).out).expect("JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(schema["properties"]["policy"].is_object());
}
