//! What the tests share.

use gatepost_channel::Secret;

use crate::config::SlackConfig;

/// A valid configuration against `base_url`.
pub(crate) fn config(base_url: &str) -> SlackConfig {
    SlackConfig {
        name: "ops-slack".into(),
        base_url: base_url.into(),
        bot_token: Secret::new("xoxb-canary-slack-77aa").unwrap(),
        signing_secrets: vec![Secret::new("d0c5e1f2a3b4c5d6e7f8091a2b3c4d5e").unwrap()],
        channel: "C0APPROVE1".into(),
        app_id: Some("A0DEMO0001".into()),
        teams: vec![],
    }
}
