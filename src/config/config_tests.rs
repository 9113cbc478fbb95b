//! The example loads, every start-up error names its line, and no input makes the loader panic or speak a secret.

use std::path::{Path, PathBuf};

use super::{Backend, Config, FeishuMode, Kind, Loaded, Platform, PlatformId, Problems, Role, SlackMode};

const EXAMPLE: &str = include_str!("../../examples/gatepost.yaml");
const SECRET: &str = "d0c5e1f2a3b4c5d6e7f8091a2b3c4d5e";

/// Every variable of the example, each with a value of its own.
fn example_env(name: &str) -> Option<String> {
    Some(format!("value-of-{}-0123456789", name.to_lowercase()))
}

fn example_folder() -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.0.join("dana.token"), "dana-token-0123456789\n").unwrap();
    folder
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
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn parse(text: &str) -> Result<Loaded, Problems> {
    Config::parse(text, "gatepost.yaml", Path::new(""), &example_env)
}

#[test]
fn the_example_loads_as_it_says() {
    let folder = example_folder();
    let path = folder.0.join("gatepost.yaml");
    std::fs::write(&path, EXAMPLE).unwrap();
    let Loaded { config, warnings } =
        Config::load(&path, &example_env).unwrap_or_else(|problems| panic!("{problems}"));
    let warned: Vec<String> = warnings.iter().map(|warning| warning.key.clone()).collect();
    assert_eq!(
        warned,
        ["auth.tokens[1].secret"],
        "the line end of dana.token, and nothing else"
    );
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8460");
    assert_eq!(config.storage.backend, Backend::Sqlite);
    assert_eq!(config.tokens[1].secret.expose(), "dana-token-0123456789");
    assert_eq!(
        config.tokens[1].role,
        Role::Operator {
            operator: "dana".into()
        }
    );
    assert_eq!(config.orgs(), ["acme"]);
    assert_eq!(config.operators_of("acme").count(), 2);
    let feishu = config.channel("finance-feishu").unwrap();
    assert_eq!(feishu.kind(), Kind::Feishu);
    assert!(matches!(&feishu.platform, Platform::Feishu(f) if matches!(f.mode, FeishuMode::Webhook { .. })));
    let slack = config.channel("ops-slack").unwrap();
    assert!(matches!(&slack.platform, Platform::Slack(s)
        if matches!(&s.mode, SlackMode::Webhook { signing_secrets } if signing_secrets.len() == 2)));
    assert_eq!(config.policy.rules[2].confirm.quorum, Some(2));
    assert_eq!(config.hooks.commands[0].name, "path-check");
    assert_eq!(config.agent.tools.len(), 3);
    let shown = format!("{config:?}");
    assert!(!shown.contains("value-of-"), "a secret shows in Debug");
    let clicker = [PlatformId::of(Kind::Feishu, "ou_51c0de")];
    assert_eq!(config.operator_by_identity(feishu, &clicker).unwrap().id, "noor");
    assert!(config.operator_by_identity(slack, &clicker).is_none());
    assert_eq!(SECRET.len(), 32);
}
