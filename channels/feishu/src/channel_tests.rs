//! The channel as the port sees it.

use std::sync::Arc;

use gatepost_channel::{
    Channel as _, HttpAnswer, Inbound, Inert, Means, Opened, PlatformUser, Reply, ReplyTone, Verified,
    Verifier as _,
};
use serde_json::json;

use crate::channel::{FeishuChannel, FeishuWebhook};
use crate::client::FeishuApp;
use crate::config::{ConfigError, FeishuConfig, Mode};
use crate::connection::FeishuConnection;
use crate::fake::channel;
use crate::fixture::{self, press, sealed, signed};

#[test]
fn tenants_admit_only_their_own_people() {
    let closed = channel("http://127.0.0.1:1");
    let admits = |tenant: Option<&str>| {
        closed.admits(&PlatformUser {
            ids: vec!["ou_demo_mira".into()],
            tenant: tenant.map(str::to_owned),
            from_elsewhere: false,
        })
    };
    assert!(admits(Some("tk_demo_0001")));
    assert!(!admits(Some("tk_other")) && !admits(None) && !admits(Some("")));
}

#[test]
fn a_click_passes_from_bytes_to_answer() {
    let config = FeishuConfig {
        name: "finance-feishu".into(),
        chat_id: "oc_demo_approvals".into(),
        tenants: vec![],
        mode: Mode::Webhook(fixture::secrets()),
    };
    let app = |id: &str| {
        FeishuApp::new(
            reqwest::Client::builder().no_proxy().build().unwrap(),
            Arc::new(fixture::now),
            crate::FeishuAppConfig {
                base_url: "http://127.0.0.1:1".into(),
                app_id: id.into(),
                app_secret: fixture::secret("x"),
            },
        )
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    assert_eq!(app("").unwrap_err().key(), "app_id");
    let channel = FeishuChannel::new(app(fixture::APP).unwrap(), config.clone()).unwrap();
    let webhook = channel.webhook().unwrap();
    let request = signed(&sealed(
        press(&json!({"decision": "approve"})).to_string().as_bytes(),
    ));
    let opened = Verified::check(webhook, &request, fixture::now()).unwrap().open();
    let Opened::Click(click) = opened else {
        panic!("{opened:?}")
    };
    assert_eq!(click.get().app.as_deref(), Some(fixture::APP));
    let answer = webhook.answer(
        click.get(),
        &Reply {
            refused: false,
            field: gatepost_channel::Field::Answer,
            tone: ReplyTone::Info,
            text: Inert::new("already approved"),
            card: None,
        },
    );
    assert_eq!(answer.status, 200);

    let means = Means {
        http: reqwest::Client::builder().no_proxy().build().unwrap(),
        now: std::sync::Arc::new(fixture::now),
        chance: std::sync::Arc::new(|bytes| bytes.fill(0)),
    };
    let connection = FeishuConnection::new(app(fixture::APP).unwrap(), None, means);
    let silent = FeishuConfig {
        mode: Mode::LongConnection(connection),
        ..config
    };
    let connected = FeishuChannel::new(app(fixture::APP).unwrap(), silent.clone()).unwrap();
    assert!(connected.webhook().is_none() && connected.connection().is_some());
    assert_eq!(
        FeishuChannel::new(app("cli_another").unwrap(), silent).unwrap_err(),
        ConfigError::OtherApp
    );
}

#[test]
fn other_events_are_answered_with_an_empty_object() {
    let mut event = press(&json!({}));
    event["header"]["event_type"] = json!("im.chat.updated_v1");
    let request = signed(&sealed(event.to_string().as_bytes()));
    let webhook = FeishuWebhook {
        verifier: fixture::verifier(),
    };
    assert_eq!(
        webhook.verify(&request, fixture::now()),
        Ok(Inbound::Ignored {
            answer: HttpAnswer::json(&json!({})),
            why: "other_event"
        })
    );
}
