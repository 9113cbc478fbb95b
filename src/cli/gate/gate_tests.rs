use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc::channel;
use tokio::task::JoinSet;

use super::*;

const ID: &str = "cr_0123456789abcdef0123456789abcdef";

/// A server that says what it is told, in order, and then the last of it for ever. It keeps what it was asked.
struct Scripted {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

/// One answer: a status, the id of a pending request, a body.
#[derive(Clone)]
struct Said(u16, Option<&'static str>, String);

async fn serve(script: Vec<Said>) -> Scripted {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let mut serving = JoinSet::new();
    let log = Arc::clone(&asked);
    serving.spawn(async move {
        let mut next = 0;
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = request(&mut stream).await;
            let is_hook = request.starts_with("POST /api/hooks/");
            log.lock().unwrap().push(request);
            let Said(status, pending, body) = script[next.min(script.len() - 1)].clone();
            if is_hook {
                next += 1;
            }
            let pending = pending.map(|id| format!("gatepost-pending: {id}\r\n")).unwrap_or_default();
            let head = format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\nlocation: http://127.0.0.1:1/\r\n{pending}content-length: {}\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all((head + &body).as_bytes()).await;
        }
    });
    Scripted {
        url,
        asked,
        _serving: serving,
    }
}

async fn request(stream: &mut tokio::net::TcpStream) -> String {
    let mut got = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        got.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&got).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.split("\r\n").next());
        if read == 0 || body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return String::from_utf8(got).unwrap();
        }
    }
}

fn args(url: &str) -> GateArgs {
    GateArgs {
        host: Host::ClaudeCode,
        deadline: 540,
        verbose: false,
        agent_pid: None,
        server: ServerArgs {
            url: url.to_owned(),
            token: "0123456789abcdef".to_owned(),
        },
    }
}

fn question(event: &str) -> String {
    json!({"hook_event_name": event, "session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}})
        .to_string()
}

fn input(text: &str) -> Receiver<Chunk> {
    let (sender, chunks) = channel(1);
    sender.try_send(Ok(text.as_bytes().to_vec())).unwrap();
    chunks
}

/// What the command prints for this input, read as the host reads it.
async fn printed(args: &GateArgs, text: &str) -> Value {
    let said = answer(args, input(text), std::future::pending()).await;
    serde_json::from_str(&said).unwrap()
}

fn decision(said: &Value) -> &str {
    said["hookSpecificOutput"]["permissionDecision"].as_str().unwrap()
}

fn reason(said: &Value) -> &str {
    said["hookSpecificOutput"]["permissionDecisionReason"]
        .as_str()
        .unwrap()
}

fn spoken(allow: bool) -> String {
    let reason = "because".to_owned();
    let verdict = if allow {
        HookVerdict::Allow {
            reason,
            changed: None,
        }
    } else {
        HookVerdict::Deny { reason }
    };
    Host::ClaudeCode.dialect().speak(Asking::BeforeTool, &verdict)
}

#[tokio::test]
async fn it_asks_until_somebody_decided_and_keeps_to_the_request() {
    let server = serve(vec![
        Said(200, Some(ID), spoken(false)),
        Said(200, Some(ID), spoken(false)),
        Said(200, None, spoken(true)),
    ])
    .await;
    let said = printed(&args(&server.url), &question("PreToolUse")).await;
    assert_eq!((decision(&said), reason(&said)), ("allow", "because"));
    let asked = server.asked.lock().unwrap();
    assert_eq!(asked.len(), 3);
    assert!(
        asked[0].starts_with("POST /api/hooks/claude-code?hold=0 "),
        "{}",
        asked[0]
    );
    assert!(
        asked[1].starts_with("POST /api/hooks/claude-code?hold=25 "),
        "{}",
        asked[1]
    );
    let call = |request: &str| {
        let line = request.lines().find(|line| line.starts_with("gatepost-call: "));
        line.unwrap().to_owned()
    };
    for request in asked.iter() {
        assert!(request.contains("authorization: Bearer 0123456789abcdef\r\n"));
        assert!(request.ends_with(&question("PreToolUse")));
        assert_eq!(call(request), call(&asked[0]), "one id for all of them");
    }
    assert!(!asked[0].contains("gatepost-pending"));
    assert!(asked[1].contains(&format!("gatepost-pending: {ID}\r\n")));
}

#[tokio::test]
async fn nothing_but_an_answer_of_gatepost_lets_a_call_run() {
    for said in [
        Said(200, None, "{}".to_owned()),
        Said(200, None, String::new()),
        Said(200, None, "{\"ok\":true}".to_owned()),
        Said(200, None, format!("log line\n{}", spoken(true))),
        Said(200, Some(ID), spoken(true)),
        Said(200, Some("cr_1"), spoken(true)),
        Said(201, None, spoken(true)),
        Said(302, None, spoken(true)),
        Said(401, None, spoken(true)),
        Said(404, None, spoken(true)),
        Said(500, None, spoken(true)),
        Said(
            200,
            None,
            format!("{}{}", spoken(true), " ".repeat(crate::host::MAX_BODY + 70_000)),
        ),
    ] {
        let server = serve(vec![said.clone()]).await;
        let printed = printed(&args(&server.url), &question("PreToolUse")).await;
        assert_eq!(decision(&printed), "deny", "{} {}", said.0, said.2.trim_end());
        assert_eq!(
            server.asked.lock().unwrap().len(),
            1,
            "no redirect, no second try"
        );
    }
}

#[tokio::test]
async fn a_server_that_comes_back_is_asked_again() {
    let server = serve(vec![
        Said(200, Some(ID), spoken(false)),
        Said(503, None, String::new()),
        Said(200, None, spoken(true)),
    ])
    .await;
    let said = printed(&args(&server.url), &question("PreToolUse")).await;
    assert_eq!(decision(&said), "allow");
}

#[tokio::test]
async fn without_address_or_token_there_is_a_denial() {
    for (url, token, word) in [
        ("", "0123456789abcdef", "GATEPOST_URL"),
        ("ftp://127.0.0.1/", "0123456789abcdef", "GATEPOST_URL"),
        ("http://127.0.0.1:1", " ", "GATEPOST_TOKEN"),
        ("http://127.0.0.1:1", "a\nb", "GATEPOST_TOKEN"),
    ] {
        let mut args = args(url);
        token.clone_into(&mut args.server.token);
        let said = printed(&args, &question("PreToolUse")).await;
        assert_eq!(decision(&said), "deny");
        assert!(reason(&said).contains(word), "{said}");
    }
}

#[tokio::test]
async fn a_question_that_cannot_be_read_is_denied_without_asking() {
    for text in ["", "[]", "hello", "{\"a\":"] {
        let said = printed(&args("http://127.0.0.1:1"), text).await;
        assert_eq!(decision(&said), "deny", "{text}");
    }
}

#[tokio::test]
async fn a_permission_request_is_denied_in_its_own_form() {
    let said = printed(&args(""), &question("PermissionRequest")).await;
    assert_eq!(said["hookSpecificOutput"]["decision"]["behavior"], "deny");
}

#[tokio::test]
async fn an_event_that_asks_nothing_is_passed_on_and_gets_no_opinion() {
    let server = serve(vec![Said(500, None, String::new())]).await;
    let said = printed(&args(&server.url), &question("PostToolUse")).await;
    assert_eq!(said, json!({}));
    assert_eq!(server.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn at_its_deadline_the_call_is_left_parked() {
    let server = serve(vec![Said(200, Some(ID), spoken(false))]).await;
    let mut args = args(&server.url);
    args.deadline = 1;
    let said = printed(&args, &question("PreToolUse")).await;
    assert_eq!((decision(&said), reason(&said)), ("deny", "because"));
}

#[tokio::test]
async fn when_the_agent_is_gone_the_request_is_withdrawn() {
    let server = serve(vec![Said(200, Some(ID), spoken(false))]).await;
    let asked = Arc::clone(&server.asked);
    let gone = async move {
        // Only when the id has been told and it is asked about by its name.
        while asked.lock().unwrap().len() < 2 {
            tokio::task::yield_now().await;
        }
        Gone::Died
    };
    let said = answer(&args(&server.url), input(&question("PreToolUse")), gone).await;
    assert_eq!(decision(&serde_json::from_str(&said).unwrap()), "deny");
    let asked = server.asked.lock().unwrap();
    let last = asked.last().unwrap();
    assert!(
        last.starts_with(&format!("POST /api/confirmations/{ID}/cancel ")),
        "{last}"
    );
}

#[tokio::test]
async fn told_to_end_before_the_question_came_it_still_denies() {
    let (_open, chunks) = channel(1);
    let said = answer(&args("http://127.0.0.1:1"), chunks, async { Gone::Told }).await;
    assert_eq!(decision(&serde_json::from_str(&said).unwrap()), "deny");
}
