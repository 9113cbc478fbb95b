//! A server of this process, asked the way agent hosts ask: over HTTP, in Claude Code's dialect, with people deciding.

use std::sync::Arc;
use std::time::Duration;

use gatepost::app::{Outside, Server};
use gatepost::clock::ManualClock;
use gatepost::config::Config;
use reqwest::Client;
use serde_json::{Value, json};

use super::support::loopback;
use super::support::temp_dir::TempDir;

const AGENT: &str = "agent-token-0123456789";
const OTHER: &str = "other-token-0123456789";
const DANA: &str = "dana-token-0123456789";

const CONFIG: &str = r#"
server: { listen: "127.0.0.1:0", key: { file: gatepost.key } }
storage: { url: "sqlite://gatepost.db" }
auth:
  tokens:
    - { name: build, secret: agent-token-0123456789, role: agent }
    - { name: other, secret: other-token-0123456789, role: agent }
    - { name: dana, secret: dana-token-0123456789, role: operator, operator: dana }
operators: [ { id: dana, name: Dana Kim, roles: [ops] } ]
channels: [ { name: inbox, kind: local } ]
policy:
  default: confirm
  confirm: { channels: [inbox], approvers: { roles: [ops] }, timeout: 2m }
  rules:
    - { name: reading, tools: [Read], effect: allow }
    - { name: no-web, tools: [WebFetch], effect: deny, reason: The web is closed }
"#;

/// A running server and its clock.
struct Gate {
    server: Server,
    clock: ManualClock,
    http: Client,
    url: String,
    _dir: TempDir,
}

/// What a host was told.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    body: Value,
    pending: Option<String>,
}

impl Told {
    fn decision(&self) -> &str {
        self.body["hookSpecificOutput"]["permissionDecision"]
            .as_str()
            .unwrap_or("none")
    }

    fn reason(&self) -> &str {
        self.body["hookSpecificOutput"]["permissionDecisionReason"]
            .as_str()
            .unwrap_or("")
    }
}

impl Gate {
    async fn start() -> Self {
        // It also chooses the TLS provider of the process.
        let http = loopback::client();
        let dir = TempDir::new();
        let env = |_: &str| None;
        let loaded = Config::parse(CONFIG, "gatepost.yaml", dir.path(), &env).expect("a configuration");
        let clock = ManualClock::at(gatepost::clock::UtcMillis(1_800_000_000_000));
        let outside = Outside {
            clock: Arc::new(clock.clone()),
            ..Outside::default()
        };
        let server = Server::start(&loaded, outside).await.expect("a started server");
        let url = format!("http://{}", server.addresses()[0]);
        Self {
            server,
            clock,
            http,
            url,
            _dir: dir,
        }
    }

    /// Sends a body as it is.
    async fn send(&self, path: &str, token: &str, body: String, headers: &[(&str, &str)]) -> Told {
        let mut request = self
            .http
            .post(format!("{}{path}", self.url))
            .bearer_auth(token)
            .body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200, "a host takes any other status as consent");
        assert_eq!(response.headers()["content-type"], "application/json");
        let pending = response.headers().get("gatepost-pending");
        let pending = pending.map(|id| id.to_str().expect("an id").to_owned());
        let body = response.bytes().await.expect("a whole answer");
        Told {
            body: serde_json::from_slice(&body).expect("JSON"),
            pending,
        }
    }

    /// Asks about a call and waits at most `hold` seconds.
    async fn ask(&self, hold: u32, call: &Value) -> Told {
        self.send(
            &format!("/api/hooks/claude-code?hold={hold}"),
            AGENT,
            call.to_string(),
            &[],
        )
        .await
    }

    async fn respond(&self, id: &str, decision: &Value) {
        let request = self
            .http
            .post(format!("{}/api/confirmations/{id}/respond", self.url));
        let response = request
            .bearer_auth(DANA)
            .json(decision)
            .send()
            .await
            .expect("an answer");
        assert_eq!(response.status(), 200, "{:?}", response.text().await);
    }

    async fn request(&self, id: &str) -> Value {
        let request = self.http.get(format!("{}/api/confirmations/{id}", self.url));
        let body = request
            .bearer_auth(DANA)
            .send()
            .await
            .expect("an answer")
            .bytes()
            .await;
        serde_json::from_slice(&body.expect("a whole answer")).expect("JSON")
    }
}

fn call(id: &str, command: &str) -> Value {
    json!({"session_id": "s1", "transcript_path": "/t.jsonl", "cwd": "/work", "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": id})
}

#[tokio::test]
async fn policy_answers_at_once() {
    let gate = Gate::start().await;
    let mut allowed = call("t1", "x");
    allowed["tool_name"] = json!("Read");
    let told = gate.ask(540, &allowed).await;
    assert_eq!(
        (told.decision(), told.reason()),
        ("allow", "allowed by rule reading")
    );
    let mut denied = call("t2", "x");
    denied["tool_name"] = json!("WebFetch");
    let told = gate.ask(540, &denied).await;
    assert_eq!(told.decision(), "deny");
    assert!(
        told.reason()
            .starts_with("denied by rule no-web: The web is closed. [denied_by_rule] "),
        "{told:?}"
    );
    assert_eq!(told.pending, None);
}

#[tokio::test]
async fn an_approval_lets_the_call_run_once() {
    let gate = Gate::start().await;
    let parked = gate.ask(0, &call("t1", "make deploy")).await;
    assert_eq!(parked.decision(), "deny");
    let id = parked.pending.clone().expect("a pending request");
    assert!(
        parked.reason().contains(&id) && parked.reason().contains("[pending]"),
        "{parked:?}"
    );

    let waiting = call("t1", "make deploy");
    let approve = json!({"decision": "approve"});
    let (told, ()) = tokio::join!(gate.ask(60, &waiting), gate.respond(&id, &approve));
    assert_eq!(told.decision(), "allow", "{told:?}");
    assert!(
        told.reason().starts_with("approved by Dana Kim (api) 20"),
        "{told:?}"
    );
    assert_eq!(gate.request(&id).await["status"], "approved");
    assert!(
        gate.request(&id).await["consumed_at"].is_string(),
        "the allow is the consumption"
    );

    let again = gate.ask(60, &call("t1", "make deploy")).await;
    assert_eq!(again.decision(), "deny");
    assert!(again.reason().contains("[already_consumed]"), "{again:?}");
}

#[tokio::test]
async fn of_two_identical_calls_one_runs() {
    let gate = Gate::start().await;
    let first = gate.ask(0, &call("t1", "make deploy")).await;
    let second = gate.ask(0, &call("t2", "make deploy")).await;
    assert_eq!(first.pending, second.pending, "the second joins the first");
    let other = gate.ask(0, &call("t3", "make clean")).await;
    assert_ne!(first.pending, other.pending);
    gate.respond(&first.pending.expect("an id"), &json!({"decision": "approve"}))
        .await;
    let (one, two) = (call("t1", "make deploy"), call("t4", "make deploy"));
    let (one, two) = tokio::join!(gate.ask(60, &one), gate.ask(0, &two));
    let allowed = [&one, &two]
        .iter()
        .filter(|told| told.decision() == "allow")
        .count();
    assert_eq!(allowed, 1, "{one:?} {two:?}");
}

#[tokio::test]
async fn a_rejection_names_who_and_why() {
    let gate = Gate::start().await;
    let id = gate
        .ask(0, &call("t1", "make deploy"))
        .await
        .pending
        .expect("an id");
    let decision = json!({"decision": "reject", "reason": "change freeze\u{1b}[31m\nuntil Monday"});
    gate.respond(&id, &decision).await;
    let told = gate.ask(60, &call("t1", "make deploy")).await;
    assert_eq!(told.decision(), "deny");
    assert!(
        told.reason().starts_with(
            "denied by Dana Kim (api): change freeze\\x1b[31m\\nuntil Monday. [rejected_by_operator] "
        ),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_rejection_between_two_questions_is_not_asked_anew() {
    let gate = Gate::start().await;
    gate.ask(0, &call("t1", "make deploy")).await;
    let joined = gate
        .ask(0, &call("t2", "make deploy"))
        .await
        .pending
        .expect("an id");
    gate.respond(&joined, &json!({"decision": "reject"})).await;
    let told = gate
        .send(
            "/api/hooks/claude-code?hold=0",
            AGENT,
            call("t2", "make deploy").to_string(),
            &[("gatepost-pending", &joined)],
        )
        .await;
    assert!(told.reason().contains("[rejected_by_operator]"), "{told:?}");
    // The header of somebody else, or about another call, leads nowhere.
    for (token, command) in [(OTHER, "make deploy"), (AGENT, "make clean")] {
        let body = call("t9", command).to_string();
        let told = gate
            .send(
                "/api/hooks/claude-code?hold=0",
                token,
                body,
                &[("gatepost-pending", &joined)],
            )
            .await;
        assert!(told.pending.is_some_and(|id| id != joined), "{token}");
    }
}

#[tokio::test]
async fn silence_is_a_denial() {
    let gate = Gate::start().await;
    let id = gate
        .ask(0, &call("t1", "make deploy"))
        .await
        .pending
        .expect("an id");
    let waiting = call("t1", "make deploy");
    let (told, ()) = tokio::join!(gate.ask(60, &waiting), async {
        gate.clock.advance(Duration::from_mins(3));
    });
    assert_eq!(told.decision(), "deny");
    let status = gate.request(&id).await["status"].clone();
    assert!(
        told.reason()
            .contains(&format!("[{}]", status.as_str().expect("a status"))),
        "{told:?} {status}"
    );
}

#[tokio::test]
async fn an_approval_that_was_not_used_in_time_does_not_answer_for_ever() {
    let gate = Gate::start().await;
    let id = gate
        .ask(0, &call("t1", "make deploy"))
        .await
        .pending
        .expect("an id");
    gate.respond(&id, &json!({"decision": "approve"})).await;
    gate.clock.advance(Duration::from_hours(2));
    let told = gate.ask(0, &call("t1", "make deploy")).await;
    assert!(told.reason().contains("[permit_expired]"), "{told:?}");
    let told = gate.ask(0, &call("t2", "make deploy")).await;
    assert!(
        told.pending.is_some_and(|fresh| fresh != id),
        "people are asked anew"
    );
}

#[tokio::test]
async fn one_call_id_stands_for_one_call() {
    let gate = Gate::start().await;
    gate.ask(0, &call("t1", "make deploy")).await;
    let told = gate.ask(0, &call("t1", "rm -rf /")).await;
    assert_eq!(told.decision(), "deny");
    assert!(told.reason().contains("[args_changed]"), "{told:?}");
}

#[tokio::test]
async fn whatever_arrives_is_answered_with_a_denial() {
    let gate = Gate::start().await;
    let good = call("t1", "ls").to_string();
    let permission = json!({"hook_event_name": "PermissionRequest", "session_id": "s", "tool_name": "Bash",
        "tool_input": {}});
    let twice = good.replace("{\"command\"", "{\"command\":\"rm\",\"command\"");
    let path = "/api/hooks/claude-code";
    for (path, token, body, word) in [
        (path, "nobody-knows-this-one", good.clone(), "[not_authorised]"),
        (path, DANA, good.clone(), "[not_authorised]"),
        (path, AGENT, String::new(), "[invalid_arguments]"),
        (path, AGENT, "{".to_owned(), "[invalid_arguments]"),
        (path, AGENT, twice, "[invalid_arguments]"),
        (
            path,
            AGENT,
            format!("{good}{}", " ".repeat(9_000_000)),
            "[invalid_arguments]",
        ),
        ("/api/hooks/claude", AGENT, good.clone(), "[gate_error]"),
        (
            "/api/hooks/claude-code/x",
            AGENT,
            good.clone(),
            "[invalid_arguments]",
        ),
    ] {
        let told = gate.send(path, token, body, &[]).await;
        assert_eq!(told.decision(), "deny", "{path} {token}");
        assert!(told.reason().contains(word), "{path} {token} {told:?}");
    }
    let told = gate
        .send(path, "nobody-knows-this-one", permission.to_string(), &[])
        .await;
    assert_eq!(
        told.body["hookSpecificOutput"]["decision"]["behavior"], "deny",
        "{told:?}"
    );
}

#[tokio::test]
async fn a_permission_request_is_asked_under_the_id_of_our_client() {
    let gate = Gate::start().await;
    let body = json!({"hook_event_name": "PermissionRequest", "session_id": "s", "tool_name": "Bash",
        "tool_input": {"command": "make"}});
    let ask = || {
        let headers = [("gatepost-call", "0198aa")];
        let body = body.to_string();
        let gate = &gate;
        async move {
            gate.send("/api/hooks/claude-code?hold=0", AGENT, body, &headers)
                .await
        }
    };
    let id = ask().await.pending.expect("an id");
    gate.respond(&id, &json!({"decision": "approve"})).await;
    let told = ask().await;
    let decision = &told.body["hookSpecificOutput"];
    assert_eq!(
        decision,
        &json!({"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}})
    );
    assert_eq!(
        ask().await.body["hookSpecificOutput"]["decision"]["behavior"],
        "deny"
    );
}

#[tokio::test]
async fn what_ran_is_put_on_record() {
    let gate = Gate::start().await;
    let id = gate
        .ask(0, &call("t1", "make deploy"))
        .await
        .pending
        .expect("an id");
    let ran = json!({"hook_event_name": "PostToolUse", "session_id": "s1", "tool_use_id": "t1", "tool_response": "ok"});
    assert_eq!(gate.ask(0, &ran).await.body, json!({}));
    assert!(
        gate.request(&id).await["outcome"].is_null(),
        "nothing ran yet, whatever the host says"
    );
    gate.respond(&id, &json!({"decision": "approve"})).await;
    assert_eq!(gate.ask(0, &call("t1", "make deploy")).await.decision(), "allow");
    assert_eq!(gate.ask(0, &ran).await.body, json!({}));
    assert_eq!(gate.request(&id).await["outcome"]["status"], "succeeded");
}

#[tokio::test]
async fn a_server_that_stops_lets_nobody_wait_and_nothing_run() {
    let gate = Gate::start().await;
    let id = gate
        .ask(0, &call("t1", "make deploy"))
        .await
        .pending
        .expect("an id");
    let http = gate.http.clone();
    let url = format!("{}/api/hooks/claude-code?hold=540", gate.url);
    let waiting = http
        .post(url)
        .bearer_auth(AGENT)
        .body(call("t1", "make deploy").to_string())
        .send();
    let waiting = tokio::spawn(waiting);
    // It is held once the server has taken it; a stop before that refuses the connection, which is no consent either.
    tokio::task::yield_now().await;
    assert!(gate.server.stop().await, "the wait ended with the server");
    if let Ok(response) = waiting.await.expect("a task") {
        assert_eq!(response.headers()["gatepost-pending"], id.as_str());
        let body: Value = serde_json::from_slice(&response.bytes().await.expect("a body")).expect("JSON");
        assert_eq!(body["hookSpecificOutput"]["permissionDecision"], "deny");
    }
}
