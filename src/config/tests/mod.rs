//! The example loads, every start-up error names its line, and no input makes the loader panic or tell a secret.

use std::path::{Path, PathBuf};

use super::{Config, Loaded, Problem, ProblemKind, Problems};

mod after;
mod authority;
mod duty;
mod example;
mod group;
mod hostile;
mod key;
mod refused;
mod schema;
mod secrets;
mod sections;

const EXAMPLE: &str = include_str!("../../../examples/gatepost.yaml");

/// A small configuration that is in order, to be spoilt in one place.
const BASE: &str = "\
server: {listen: 127.0.0.1:8460, public_url: 'https://gate.example.com'}
auth:
  tokens:
    - name: agent
      secret: agent-secret-0123456789
      role: agent
    - {name: dana-cli, secret: dana-secret-0123456789, role: operator, operator: dana}
operators:
  - id: dana
    email: dana@example.com
    roles: [finance]
    identities: {slack: U024BE7LH}
  - id: noor
    roles: [finance]
    identities: {slack: U061F7AUR}
channels:
  - name: ops
    kind: slack
    bot_token: xoxb-bot-of-ops
    signing_secret: d0c5e1f2a3b4c5d6e7f8091a2b3c4d5e
    channel: C0123456789
  - name: pay
    kind: feishu
    app_id: cli_a1b2c3d4e5f60718
    app_secret: app-secret-of-pay
    encrypt_key: encrypt-key-of-pay
    verification_token: verification-token-of-pay
    chat_id: oc_84983ff6
  - {name: desk, kind: local}
policy:
  default: deny
  confirm: {channels: [ops, desk], approvers: {roles: [finance]}, timeout: 2m}
  rules:
    - name: payments
      tools: [pay_*]
      effect: confirm
      quorum: 2
    - name: rest
      tools: [read_*]
      effect: allow
";

fn no_env(_: &str) -> Option<String> {
    None
}

fn parse(text: &str) -> Result<Loaded, Problems> {
    Config::parse(text, "gatepost.yaml", Path::new(""), &no_env)
}

fn loaded(text: &str) -> Loaded {
    parse(text).unwrap_or_else(|problems| panic!("{problems}\nin:\n{text}"))
}

/// The base with one text replaced by another.
fn spoilt(from: &str, to: &str) -> String {
    assert_eq!(
        BASE.matches(from).count(),
        1,
        "`{from}` must stand once in the base"
    );
    BASE.replacen(from, to, 1)
}

fn refusals(text: &str) -> Vec<Problem> {
    match parse(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(problems) => problems.as_slice().to_vec(),
    }
}

/// The one problem of a text: its line, key and family.
fn refusal(text: &str) -> Problem {
    let problems = refusals(text);
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.into_iter().next().unwrap()
}

fn line_of(problem: &Problem) -> usize {
    problem.at.map_or(0, |at| at.line)
}

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "gatepost-config-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_base_is_in_order() {
    assert_eq!(loaded(BASE).warnings, []);
    assert!(matches!(refusal("").kind, ProblemKind::Syntax));
}
