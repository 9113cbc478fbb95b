//! `gatepost serve` from start to stop, and `gatepost doctor` beside it.

use serde_json::Value;

use super::{Ran, command, gatepost_in};
use crate::support::program::{Place, Program};
use crate::support::temp_dir::TempDir;

const TOKEN: &str = "agent-token-of-a-test";

fn config(listen: &str) -> String {
    format!(
        "server: {{listen: '{listen}'}}
storage: {{url: 'sqlite://gatepost.db'}}
auth:
  tokens:
    - {{name: agent, secret: {TOKEN}, role: agent}}
    - {{name: dana-cli, secret: operator-token-of-a-test, role: operator, operator: dana}}
    - {{name: audit, secret: auditor-token-of-a-test, role: auditor}}
operators:
  - {{id: dana, name: Dana Kim, roles: [finance]}}
channels:
  - {{name: desk, kind: local}}
policy:
  confirm: {{channels: [desk], approvers: {{roles: [finance]}}, quorum: 1, timeout: 2m}}
"
    )
}

/// The program against the running server, with this token; off the runtime's threads.
async fn ask(program: &Program, token: &str, arguments: &[&str]) -> Ran {
    let mut command = command(arguments);
    command
        .env("GATEPOST_URL", program.place.url(""))
        .env("GATEPOST_TOKEN", token);
    let run = move || command.output().expect("a started program").into();
    tokio::task::spawn_blocking(run).await.expect("a run")
}

#[tokio::test]
async fn an_operator_decides_from_the_command_line_and_the_server_stops_cleanly() {
    const OPERATOR: &str = "operator-token-of-a-test";
    let place = Place::new();
    let listen = place.listen();
    let mut program = Program::start(place, &config(&listen), &[]).await;
    // Numbers that no double holds are shown as they were asked.
    let question = r#"{"tool_name": "pay", "tool_args": {"amount": 9007199254740993, "payee": "\u202eEve"}, "session_id": "s", "tool_call_id": "1"}"#;
    let asked = program
        .api(TOKEN)
        .post(
            "/api/confirmations",
            &serde_json::from_str(question).expect("JSON"),
        )
        .await;
    let id = asked.1["confirmation_id"].as_str().expect("a request").to_owned();

    let pending = ask(&program, OPERATOR, &["pending"]).await;
    assert!(
        pending.code == 0 && pending.out.contains(&id) && pending.out.contains("0 of 1"),
        "{}{}",
        pending.out,
        pending.err
    );
    let shown = ask(&program, OPERATOR, &["show", &id]).await;
    assert!(
        shown.out.contains("\"amount\": 9007199254740993"),
        "{}",
        shown.out
    );
    assert!(
        shown.out.contains("\\u{202E}Eve") && !shown.out.contains('\u{202e}'),
        "{}",
        shown.out
    );
    let full = ask(&program, OPERATOR, &["show", &id, "--full", "--json"]).await;
    assert_eq!(
        serde_json::from_str::<Value>(&full.out).expect("JSON")["id"],
        id.as_str()
    );

    let refused = ask(&program, TOKEN, &["approve", &id]).await;
    assert!(
        refused.code == 1 && refused.err.contains("(not_authorised)"),
        "{}",
        refused.err
    );
    let approved = ask(&program, OPERATOR, &["approve", &id, "--reason", "checked"]).await;
    assert_eq!((approved.code, approved.out), (0, format!("{id} is approved.\n")));
    let late = ask(&program, OPERATOR, &["reject", &id, "--reason", "too late"]).await;
    assert!(
        late.code == 1 && late.err.contains("(already_settled)"),
        "{}",
        late.err
    );

    let verified = ask(&program, "auditor-token-of-a-test", &["audit", "verify"]).await;
    assert!(
        verified.code == 0 && verified.out.starts_with("The chain holds: "),
        "{}{}",
        verified.out,
        verified.err
    );
    let head = verified
        .out
        .lines()
        .find_map(|line| line.strip_prefix("head "))
        .expect("a head")
        .to_owned();
    let kept = ask(
        &program,
        "auditor-token-of-a-test",
        &["audit", "verify", "--head", &head],
    )
    .await;
    assert_eq!(kept.code, 0, "{}{}", kept.out, kept.err);
    let exported = ask(
        &program,
        "auditor-token-of-a-test",
        &["audit", "export", "--kind", "vote.cast"],
    )
    .await;
    let events: Vec<Value> = exported
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON lines"))
        .collect();
    assert_eq!((exported.code, events.len()), (0, 1), "{}", exported.out);

    assert!(program.terminate().await.success(), "{}", program.output());
    assert!(program.output().contains("stopped"), "{}", program.output());
}

#[tokio::test]
async fn a_server_that_cannot_start_says_everything_and_exits_with_1() {
    let place = Place::new();
    let bad = config(&place.listen())
        .replace(TOKEN, "short")
        .replace("quorum: 1", "quorum: 0");
    let not_ready = Program::try_start(place, &bad, &[])
        .await
        .err()
        .expect("no start");
    assert_eq!(
        not_ready.status.and_then(|status| status.code()),
        Some(1),
        "{}",
        not_ready.output
    );
    for told in [
        "gatepost.yaml:5:",
        "auth.tokens[0].secret",
        "gatepost.yaml:13:",
        "quorum",
        "remedy: ",
    ] {
        assert!(
            not_ready.output.contains(told),
            "{told} is not in:\n{}",
            not_ready.output
        );
    }
}

#[test]
fn doctor_looks_at_everything_and_touches_nothing() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("gatepost.yaml"), config("127.0.0.1:0")).expect("a written file");
    let ran = gatepost_in(&dir, &["doctor", "--json"]);
    let told: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(
        (ran.code, &told["healthy"]),
        (0, &Value::Bool(true)),
        "{}{}",
        ran.out,
        ran.err
    );
    let names: Vec<_> = told["checks"]
        .as_array()
        .expect("checks")
        .iter()
        .map(|check| check["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            Some("clock"),
            Some("server key"),
            Some("database"),
            Some("channel desk")
        ]
    );
    assert_eq!(
        std::fs::read_dir(dir.path()).expect("the folder").count(),
        1,
        "nothing was made"
    );

    std::fs::write(dir.path().join("gatepost.key"), "not a key").expect("a written file");
    let ran = gatepost_in(&dir, &["doctor"]);
    assert!(
        ran.code == 1 && ran.out.contains("server key") && ran.out.contains("ILL"),
        "{}",
        ran.out
    );
}
