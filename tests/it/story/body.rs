//! What arrives at the API and at the callback addresses and is not what it should be: a clear refusal, nothing
//! half-written, and no memory taken.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::loopback;
use crate::support::people::DANA;
use crate::support::world::{Storage, World, secret_of};

on_every_store!(
    what_is_no_question_is_refused_by_name,
    arguments_with_more_than_one_meaning_are_refused,
    odd_text_is_kept_or_refused_but_never_let_through,
    a_body_is_bounded_whether_it_says_its_length_or_not,
    a_slow_body_holds_nobody_up,
    a_foreign_host_or_origin_is_refused,
);

async fn nothing_was_written(world: &World) {
    let (_, list) = world.api("audit").get("/api/confirmations").await;
    assert_eq!(list["items"], json!([]));
    assert!(world.audit("confirmation.created").await.is_empty());
    world.verify().await;
}

async fn what_is_no_question_is_refused_by_name(storage: Storage) {
    let world = World::start(storage).await;
    let agent = world.api("build-agent");
    for (body, code) in [
        ("", "invalid_request"),
        ("{", "invalid_request"),
        ("nul", "invalid_request"),
        ("[]", "invalid_request"),
        ("\"tool\"", "invalid_request"),
        ("{}", "invalid_request"),
        ("\u{feff}{}", "invalid_request"),
        (r#"{"tool_name":"x"} {"#, "invalid_request"),
        (r#"{"tool_name":7,"tool_args":{}}"#, "invalid_request"),
        (
            r#"{"tool_name":"x","tool_args":{},"tool_arg":{}}"#,
            "invalid_request",
        ),
        (
            r#"{"tool_name":"x","tool_name":"y","tool_args":{}}"#,
            "invalid_request",
        ),
        (r#"{"tool_name":"x","tool_args":{},"wait":-1}"#, "invalid_request"),
        (r#"{"tool_name":"x","tool_args":{},"wait":61}"#, "invalid_request"),
        (
            r#"{"tool_name":"x","tool_args":{},"wait":1e400}"#,
            "invalid_request",
        ),
        (
            r#"{"tool_name":"x","tool_args":{},"metadata":[]}"#,
            "invalid_request",
        ),
        (r#"{"tool_name":"","tool_args":{}}"#, "invalid_arguments"),
        (r#"{"tool_name":"x","tool_args":[]}"#, "invalid_arguments"),
        (r#"{"tool_name":"x","tool_args":"{}"}"#, "invalid_arguments"),
    ] {
        let (status, text) = agent.post_text("/api/confirmations", body).await;
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{body}: {text}"));
        assert_eq!(
            (status, answer["code"].as_str()),
            (400, Some(code)),
            "{body}: {answer}"
        );
        for member in ["type", "title", "status", "detail"] {
            assert!(!answer[member].is_null(), "{body}: {answer}");
        }
    }
    nothing_was_written(&world).await;
}

/// RH-207 and the limits that `gatepost openapi` states: duplicate keys, lone surrogates, depth, digits.
async fn arguments_with_more_than_one_meaning_are_refused(storage: Storage) {
    let world = World::start(storage).await;
    let agent = world.api("build-agent");
    let nested = |depth: usize| format!("{}{}{}", r#"{"a":"#.repeat(depth), 1, "}".repeat(depth));
    let refused = [
        r#"{"a":1,"a":2}"#.to_owned(),
        r#"{"a":1,"\u0061":2}"#.to_owned(),
        r#"{"x":{"a":1,"a":1}}"#.to_owned(),
        r#"{"a":"\ud800"}"#.to_owned(),
        r#"{"\udc00":1}"#.to_owned(),
        r#"{"a":"\ud800\ud800"}"#.to_owned(),
        format!(r#"{{"a":{}}}"#, "9".repeat(41)),
        format!(r#"{{"a":0.{}1}}"#, "0".repeat(41)),
        r#"{"a":1e400}"#.to_owned(),
        nested(129),
        nested(5_000),
        r#"{"a":NaN}"#.to_owned(),
        r#"{"a":01}"#.to_owned(),
        "{\"a\":\"\u{1}\"}".to_owned(),
    ];
    for args in &refused {
        let body = format!(r#"{{"tool_name":"t__x","tool_args":{args}}}"#);
        let (status, text) = agent.post_text("/api/confirmations", body).await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        let code = answer["code"].as_str().unwrap();
        let start: String = args.chars().take(60).collect();
        assert_eq!(status, 400, "{start}: {answer}");
        assert!(
            ["invalid_arguments", "invalid_request"].contains(&code),
            "{start}: {answer}"
        );
    }
    nothing_was_written(&world).await;
    for args in [nested(127), nested(128), format!(r#"{{"a":{}}}"#, "9".repeat(40))] {
        let body = format!(r#"{{"tool_name":"t__x","tool_args":{args}}}"#);
        let (status, text) = agent.post_text("/api/confirmations", body).await;
        assert!(status == 200 && text.contains("pending"), "{text}");
    }
}

/// RH-201, RH-206: NUL, what only looks like it, control characters, many bytes a character, many accents a letter.
async fn odd_text_is_kept_or_refused_but_never_let_through(storage: Storage) {
    let world = World::start(storage).await;
    world.slack.limit_rate(false);
    world.feishu.limit_rate(false);
    let agent = world.api("build-agent");
    let cases = [
        json!({"s": "a\u{0}b"}),
        json!({"s": "a\\u0000b"}),
        json!({"s": "\u{1}\u{1f}\u{7f}\u{85}\u{2028}\u{202e}"}),
        json!({"s": "批".repeat(5_200)}),
        json!({"s": format!("a{}", "批".repeat(5_200))}),
        json!({"s": "👩‍👩‍👧‍👦".repeat(900)}),
        json!({"s": format!("e{}", "\u{301}".repeat(5_000))}),
        json!({"\u{0}": "key"}),
    ];
    for args in cases {
        let body = json!({"tool_name": "t__x", "tool_args": args, "agent_id": "a\u{7}gent", "requester": "\u{202e}r"});
        let (status, answer) = agent.post("/api/confirmations", &body).await;
        let start: String = args.to_string().chars().take(40).collect();
        if status == 400 {
            continue;
        }
        assert_eq!(
            (status, &answer["verdict"]),
            (200, &json!("pending")),
            "{start}: {answer}"
        );
        let id = answer["confirmation_id"].as_str().unwrap();
        world.until_deliveries(id, &["posted", "posted"]).await;
        let (_, own) = agent.get(&format!("/api/confirmations/{id}")).await;
        assert_eq!(own["tool_args"], args, "{start}: kept as it was");
        let reject = json!({"decision": "reject", "reason": "批\u{7}é\u{202e}"});
        let (status, answer) = world
            .api("dana-cli")
            .post(&format!("/api/confirmations/{id}/respond"), &reject)
            .await;
        assert_eq!(status, 200, "{start}: {answer}");
        world.until_deliveries(id, &["settled", "settled"]).await;
    }
    let (status, _) = world.api("audit").get_text("/api/audit/export").await;
    assert_eq!(status, 200);
    world.verify().await;
}

/// RH-106.
async fn a_body_is_bounded_whether_it_says_its_length_or_not(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (card, _) = world.cards(&id).await;
    let big = vec![b' '; 2 * 1024 * 1024];
    let (status, text) = world
        .api("build-agent")
        .post_text("/api/confirmations", big.clone())
        .await;
    assert!(
        status == 413 && text.contains("body_too_large"),
        "{status} {text}"
    );

    // 64 MiB in chunks, without a length: refused as soon as the limit is passed, whatever the route.
    for path in [
        "/api/confirmations",
        "/api/channels/ops-slack/callback",
        "/api/channels/finance-feishu/callback",
    ] {
        let status = chunked(&world, path, 64 * 1024 * 1024).await;
        assert_eq!(status, 413, "{path}");
    }
    let zipped = loopback::client()
        .post(world.callback("ops-slack"))
        .header("content-encoding", "gzip")
        .body(vec![0x1f, 0x8b, 8, 0])
        .send()
        .await
        .unwrap();
    assert_eq!(zipped.status().as_u16(), 415);
    let event = world.until_refused("too_large").await;
    assert_eq!(event["kind"], "callback.refused");
    let press = world.slack.click(&card, "approve", DANA.slack);
    assert!(press.post(&world.callback("ops-slack")).await.in_time());
    assert_eq!(world.request(&id).await["status"], "approved");
}

/// Sends a chunked body until the server answers or breaks off; its status.
async fn chunked(world: &World, path: &str, bytes: usize) -> u16 {
    let mut stream = TcpStream::connect(world.place.listen()).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\n\r\n",
        world.place.listen(),
        secret_of("build-agent"),
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut read, mut write) = stream.split();
    let chunk = [b"10000\r\n".as_slice(), vec![b'a'; 65_536].as_slice(), b"\r\n"].concat();
    let send = async {
        for _ in 0..bytes / 65_536 {
            // A server that has heard enough closes its end; that is what is tested.
            if write.write_all(&chunk).await.is_err() {
                return;
            }
        }
    };
    let receive = async {
        let mut answer = [0_u8; 12];
        read.read_exact(&mut answer)
            .await
            .expect("an answer before the connection ends");
        String::from_utf8_lossy(&answer[9..]).parse().unwrap()
    };
    let (status, ()) =
        tokio::time::timeout(Duration::from_secs(30), futures_util::future::join(receive, send))
            .await
            .expect("the server ends it");
    status
}

/// Fifty bodies that never end hold up neither a click nor each other.
async fn a_slow_body_holds_nobody_up(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (card, _) = world.cards(&id).await;
    let mut drips = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(world.place.listen()).await.unwrap();
        let head = format!(
            "POST /api/channels/ops-slack/callback HTTP/1.1\r\nHost: {}\r\nContent-Length: 100000\r\n\r\np",
            world.place.listen()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        drips.push(stream);
    }
    let press = world.slack.click(&card, "approve", DANA.slack);
    let start = Instant::now();
    assert!(press.post(&world.callback("ops-slack")).await.in_time());
    assert!(start.elapsed() < Duration::from_secs(2));
    assert_eq!(world.request(&id).await["status"], "approved");
    let mut answer = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(20), drips[0].read_buf(&mut answer)).await;
    ended.expect("a drip is given up").unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 408"),
        "{answer}"
    );
}

async fn a_foreign_host_or_origin_is_refused(storage: Storage) {
    let world = World::start(storage).await;
    let url = world.place.url("/api/audit");
    let ask = |header: &'static str, value: &'static str| {
        let request = loopback::client().get(&url).header(header, value);
        let request = request.bearer_auth(secret_of("audit"));
        async move { request.send().await.unwrap().status().as_u16() }
    };
    assert_eq!(ask("host", "evil.example").await, 421);
    assert_eq!(ask("origin", "https://evil.example").await, 403);
    assert_eq!(ask("origin", "null").await, 403);
    assert_eq!(ask("x-other", "1").await, 200);
    let in_query = world
        .place
        .api(&secret_of("audit"))
        .get(&format!("/api/audit?token={}", secret_of("audit")))
        .await;
    assert_eq!((in_query.0, &in_query.1["code"]), (400, &json!("token_in_query")));
}
