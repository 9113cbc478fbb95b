//! The documented example is a configuration that starts.

use std::path::Path;

use super::super::agent::ToolConfig;
use super::super::{Backend, FeishuMode, Kind, Loaded, Platform, PlatformId, Role, SlackMode};
use super::{Config, EXAMPLE, Folder};

/// Every variable has a value of its own.
pub(super) fn env(name: &str) -> Option<String> {
    let prefix = match () {
        () if name.ends_with("BOT_TOKEN") => "xoxb-",
        () if name.ends_with("APP_TOKEN") => "xapp-",
        () => "",
    };
    (name != "UNSET").then(|| format!("{prefix}value-of-{}-0123456789", name.to_lowercase()))
}

pub(super) fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("dana.token", "dana-token-0123456789\n");
    folder.write("dana.totp", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
    std::fs::create_dir(folder.0.join("openapi")).unwrap();
    let shop = include_str!("../../../examples/openapi/shop.yaml");
    folder.write("openapi/shop.yaml", shop);
    folder
}

#[test]
fn the_local_one_loads_without_a_warning() {
    let text = include_str!("../../../examples/local.yaml");
    let Loaded { config, warnings, .. } = Config::parse(text, "local.yaml", Path::new(""), &env).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(config.channels.len(), 1);
}

#[test]
fn loads_as_it_says() {
    let folder = folder();
    let path = folder.write("gatepost.yaml", EXAMPLE);
    let Loaded { config, warnings, .. } =
        Config::load(&path, &env).unwrap_or_else(|problems| panic!("{problems}"));
    let warned: Vec<&str> = warnings.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(
        warned,
        ["auth.tokens[1].secret"],
        "the line end of dana.token, and nothing else"
    );
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8460");
    assert_eq!(config.storage.backend, Backend::Sqlite);
    assert_eq!(
        config.storage.url.expose(),
        format!("sqlite://{}/gatepost.db", folder.0.display())
    );
    assert_eq!(config.tokens[1].secret.expose(), "dana-token-0123456789");
    assert_eq!(
        config.tokens[1].role,
        Role::Operator {
            operator: "dana".into()
        }
    );
    assert_eq!(config.orgs(), ["acme"]);
    assert_eq!(config.operators_of("acme").count(), 4);
    assert_eq!(config.policy.rules[2].confirm.quorum, Some(2));
    assert_eq!(config.hooks.commands[0].name, "path-check");
    let tools: Vec<String> = config.agent.tools.iter().map(ToolConfig::name).collect();
    let shop = [
        "createOrder",
        "getOrder",
        "changeOrder",
        "cancelOrder",
        "payOrder",
    ];
    assert_eq!(tools.len(), 5 + shop.len(), "{tools:?}");
    assert_eq!(tools[2..7], shop.map(|id| format!("shop__{id}")));
    assert_eq!(
        config.source.locate("policy.rules[2].when").map(|at| at.column),
        Some(7)
    );
}

#[test]
fn the_mode_of_a_channel_carries_its_secrets() {
    let folder = folder();
    let config = Config::load(&folder.write("gatepost.yaml", EXAMPLE), &env)
        .unwrap()
        .config;
    let feishu = config.channel("finance-feishu").unwrap();
    assert!(matches!(&feishu.platform, Platform::Feishu(f) if matches!(f.mode, FeishuMode::Webhook { .. })));
    assert!(
        matches!(&config.channel("ops-slack").unwrap().platform, Platform::Slack(s)
        if matches!(&s.mode, SlackMode::Webhook { signing_secrets } if signing_secrets.len() == 2))
    );
    assert!(
        matches!(&config.channel("oncall-slack").unwrap().platform, Platform::Slack(s)
        if matches!(s.mode, SlackMode::Socket { .. }))
    );
    assert!(
        !format!("{config:?}").contains("value-of-"),
        "a secret shows in Debug"
    );
}

#[test]
fn a_click_leads_to_the_person_of_that_kind_of_id() {
    let folder = folder();
    let config = Config::load(&folder.write("gatepost.yaml", EXAMPLE), &env)
        .unwrap()
        .config;
    let (feishu, slack) = (
        config.channel("finance-feishu").unwrap(),
        config.channel("ops-slack").unwrap(),
    );
    let who = |channel, kind, id| {
        config
            .operator_by_identity(channel, &[PlatformId::of(kind, id)])
            .map(|operator| operator.id.as_str())
    };
    assert_eq!(who(feishu, Kind::Feishu, "ou_51c0de"), Some("noor"));
    assert_eq!(who(slack, Kind::Slack, "U024BE7LH"), Some("dana"));
    assert_eq!(who(slack, Kind::Feishu, "ou_51c0de"), None);
    assert_eq!(who(feishu, Kind::Feishu, "ou_51C0DE"), None);
    let both = [
        PlatformId::of(Kind::Feishu, "ou_51c0de"),
        PlatformId::of(Kind::Feishu, "ou_7d8a6e"),
    ];
    assert!(
        config.operator_by_identity(feishu, &both).is_none(),
        "ids of two persons are nobody"
    );
    // An open_id that happens to spell a user_id is still an open_id.
    assert_ne!(
        PlatformId::FeishuUser("ou_7d8a6e".into()),
        PlatformId::of(Kind::Feishu, "ou_7d8a6e")
    );
    let handle = |handle| {
        config
            .operator_by_handle("acme", handle)
            .map(|operator| operator.id.as_str())
    };
    assert_eq!(handle("DANA@example.com"), Some("dana"));
    assert_eq!(handle("U061F7AUR"), Some("noor"));
    assert_eq!(handle("somebody"), None);
}
