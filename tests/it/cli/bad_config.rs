//! `gatepost check` on files that must not be started: every problem with its line, key and remedy.

use serde_json::Value;

use super::gatepost_in;
use crate::support::temp_dir::TempDir;

const GOOD: &str = "\
storage: {url: 'sqlite://gatepost.db'}
auth:
  tokens:
    - {name: agent, secret: agent-token-of-a-test, role: agent}
    - {name: dana-cli, secret: operator-token-of-a-test, role: operator, operator: dana}
operators:
  - {id: dana, name: Dana Kim, roles: [finance]}
channels:
  - {name: desk, kind: local}
policy:
  confirm: {channels: [desk], approvers: {roles: [finance]}, quorum: 1, timeout: 2m}
";

fn folder(text: &str) -> TempDir {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("gatepost.yaml"), text).expect("a written file");
    dir
}

#[test]
fn a_good_file_is_fine() {
    let dir = folder(GOOD);
    let ran = gatepost_in(&dir, &["check"]);
    assert_eq!(
        (ran.code, ran.out.lines().last()),
        (0, Some("gatepost.yaml is fine.")),
        "{}",
        ran.out
    );
    let left: Vec<_> = std::fs::read_dir(dir.path()).expect("the folder").collect();
    assert_eq!(
        left.len(),
        1,
        "checking starts nothing and leaves nothing: {left:?}"
    );
}

#[test]
fn warnings_alone_are_no_failure() {
    let without_operator: Vec<_> = GOOD.lines().filter(|line| !line.contains("dana-cli")).collect();
    let ran = gatepost_in(&folder(&without_operator.join("\n")), &["check"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(
        ran.out.starts_with("warning: gatepost.yaml:") && ran.out.ends_with("can be used; 1 warning.\n"),
        "{}",
        ran.out
    );
}

#[test]
fn all_problems_are_told_at_once_with_line_key_and_remedy() {
    let bad = GOOD
        .replace("secret: agent-token-of-a-test", "secret: short")
        .replace("kind: local", "kind: pigeon")
        .replace("quorum: 1", "quorum: 0, colour: red");
    let dir = folder(&bad);
    let ran = gatepost_in(&dir, &["check"]);
    assert_eq!(ran.code, 1);
    for (line, key) in [
        (4, "auth.tokens[0].secret"),
        (9, "channels[0].kind"),
        (11, "policy.confirm.quorum"),
        (11, "colour"),
    ] {
        let named =
            |told: &str| told.starts_with(&format!("error: gatepost.yaml:{line}:")) && told.contains(key);
        assert!(
            ran.out.lines().any(named),
            "no problem at line {line} for {key}:\n{}",
            ran.out
        );
    }
    assert!(ran.out.contains("remedy: "));
    assert!(!ran.out.contains("short\""), "a secret is not repeated");

    let as_json = gatepost_in(&dir, &["check", "--json"]);
    let told: Value = serde_json::from_str(&as_json.out).expect("JSON on stdout");
    assert_eq!((as_json.code, &told["ok"]), (1, &Value::Bool(false)));
    let problems = told["problems"].as_array().expect("problems");
    assert!(
        problems
            .iter()
            .all(|problem| problem["file"] == "gatepost.yaml" && problem["line"].is_u64())
    );
    assert!(
        problems
            .iter()
            .any(|problem| problem["line"] == 9 && problem["key"] == "channels[0].kind")
    );
}

#[test]
fn a_file_that_is_not_there_is_named_with_a_remedy() {
    let ran = gatepost_in(&TempDir::new(), &["check", "--config", "other.yaml"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.contains("other.yaml") && ran.out.contains("--config"),
        "{}",
        ran.out
    );
}

#[test]
fn pieces_are_checked_with_their_own_file_and_line() {
    let dir = folder(&format!(
        "{GOOD}agent: {{model: {{base_url: 'http://127.0.0.1:9/v1', model: any}}, pieces: ./pieces}}\n"
    ));
    std::fs::create_dir(dir.path().join("pieces")).expect("a folder");
    let piece = "name: pay\ninitial_movement: pay\nmovements:\n  - name: pay\n    instruction: Pay.\n    allowed_tools: [no_such_tool]\n";
    std::fs::write(dir.path().join("pieces/pay.yaml"), piece).expect("a written file");
    let ran = gatepost_in(&dir, &["check"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(
        ran.out.contains("pay.yaml:6:") && ran.out.contains("no_such_tool"),
        "{}",
        ran.out
    );
}

#[test]
fn hooks_of_pieces_are_checked_and_events_that_never_occur_are_told() {
    let observing = "hooks: { processes: { look: { command: ['true'], observe: [tool_exec_start, session_summarize] } } }\n";
    let dir = folder(&format!(
        "{GOOD}{observing}agent: {{model: {{base_url: 'http://127.0.0.1:9/v1', model: any}}, pieces: ./pieces}}\n"
    ));
    let ran = gatepost_in(&dir, &["check"]);
    assert_eq!(ran.code, 1, "the folder of pieces is not there: {}", ran.out);
    std::fs::create_dir(dir.path().join("pieces")).expect("a folder");
    let write = |hooks: &str| {
        let piece = format!(
            "name: pay\ninitial_movement: pay\nmovements:\n  - {{ name: pay, instruction: Pay. }}\nhooks: {hooks}\n"
        );
        std::fs::write(dir.path().join("pieces/pay.yaml"), piece).expect("a written file");
    };
    write("{ processes: { more: { command: ['true'], observe: [gateway.reload.started] } } }");
    let ran = gatepost_in(&dir, &["check"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    for told in [
        "hooks.processes.look.observe: `session_summarize` never occurs: ",
        "piece pay: hooks.processes.more.observe: `gateway.reload.started` never occurs: ",
    ] {
        assert!(ran.out.contains(told), "{told}: {}", ran.out);
    }
    assert!(!ran.out.contains("tool_exec_start"), "{}", ran.out);
    // A piece whose hooks cannot be built runs nothing: the server does not even start.
    write("{ builtins: { result_truncate: { config: { limit: none } } } }");
    let ran = gatepost_in(&dir, &["check"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(
        ran.out
            .contains("pieces/pay.yaml:5:1: hooks: hooks.builtins.result_truncate.config"),
        "{}",
        ran.out
    );
    let ran = gatepost_in(&dir, &["serve"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.err.contains("result_truncate"), "{}", ran.err);
}

#[test]
fn migrate_makes_the_database_and_may_be_repeated() {
    let dir = folder(GOOD);
    for _ in 0..2 {
        let ran = gatepost_in(&dir, &["migrate"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains("gatepost.db is up to date"), "{}", ran.out);
    }
    assert!(dir.path().join("gatepost.db").exists());
    let elsewhere = folder(&GOOD.replace("gatepost.db", "no/such/folder/gatepost.db"));
    let ran = gatepost_in(&elsewhere, &["migrate"]);
    assert!(
        ran.code == 1 && ran.err.contains("gatepost.db"),
        "{}: {}",
        ran.code,
        ran.err
    );
}

#[test]
fn what_stands_in_a_file_cannot_steer_the_terminal() {
    let dir = folder(&GOOD.replace("kind: local", "kind: \"\\e[2Jlocal\""));
    let ran = gatepost_in(&dir, &["check"]);
    assert_eq!(ran.code, 1);
    assert!(!ran.out.contains('\u{1b}'), "{:?}", ran.out);
}
