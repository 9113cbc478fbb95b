//! What the tests share: a configuration, cards and signed requests.

use std::sync::Arc;

use gatepost_channel::{
    Actions, Asks, ButtonToken, Card, Fact, Inert, Means, RawRequest, Secret, Tone, UtcMillis, Verifier as _,
    Words,
};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::SlackChannel;
use crate::callback::AppId;
use crate::config::{Mode, SlackConfig};
use crate::verify::SlackVerifier;

pub(crate) const SECRET: &str = "d0c5e1f2a3b4c5d6e7f8091a2b3c4d5e";
pub(crate) const NOW: i64 = 1_795_953_600;

/// A valid configuration against `base_url`.
pub(crate) fn config(base_url: &str) -> SlackConfig {
    SlackConfig {
        name: "ops-slack".into(),
        base_url: base_url.into(),
        bot_token: Secret::new("xoxb-canary-slack-77aa").unwrap(),
        mode: Mode::Webhook {
            signing_secrets: vec![Secret::new(SECRET).unwrap()],
        },
        channel: "C0APPROVE1".into(),
        app_id: Some("A0DEMO0001".into()),
        teams: vec![],
    }
}

/// A client as `app.rs` builds it.
pub(crate) fn http() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap()
}

/// What connections need: HTTP/1.1, a still clock, and no spreading of waits.
pub(crate) fn means() -> Means {
    Means {
        http: http(),
        now: Arc::new(|| UtcMillis::from_secs(NOW)),
        chance: Arc::new(|bytes| bytes.fill(0)),
    }
}

pub(crate) fn channel(base_url: &str) -> SlackChannel {
    SlackChannel::new(&config(base_url), http(), &means()).unwrap()
}

pub(crate) fn words() -> Words {
    Words {
        approve: "Approve".into(),
        reject: "Reject".into(),
        show_everything: "Show everything".into(),
        arguments: "Arguments".into(),
        cut: "{shown} of {total} characters are shown".into(),
        approve_in_full_view: "Not everything fits here. Approve it where everything can be seen.".into(),
        reason: "Reason".into(),
        reject_with_reason: "Reject with a reason".into(),
        open_console: "Open in the console".into(),
    }
}

pub(crate) fn open_actions(full_view: Option<&str>) -> Actions {
    Actions::Decide {
        token: ButtonToken::new([0xa5; 16]),
        revision: 2,
        approve_when_cut: false,
        full_view: full_view.map(str::to_owned),
        asks: Asks::default(),
    }
}

pub(crate) fn card(tone: Tone, arguments: &str, actions: Actions) -> Card {
    Card {
        request_id: "cr_01hzy3v7k9".into(),
        tone,
        risk: None,
        title: match tone {
            Tone::Pending => "Approval needed".into(),
            Tone::Approved => "Approved".into(),
            Tone::Rejected => "Rejected".into(),
            Tone::Closed => "Expired".into(),
        },
        preview: "Approval needed: cr_01hzy3v7k9".into(),
        tool: Inert::new("oa__purchase_pay"),
        facts: vec![
            Fact {
                label: "Agent".into(),
                value: Inert::new("build-agent"),
            },
            Fact {
                label: "Until".into(),
                value: Inert::new("2026-11-29 12:02 UTC"),
            },
        ],
        arguments: Inert::new(arguments).into(),
        actions,
        words: words(),
        set: None,
    }
}

/// A request with Slack's headers and this body, signed with `secret`.
pub(crate) fn signed(secret: &str, content_type: &str, body: &[u8]) -> RawRequest {
    signed_at(NOW, secret, content_type, body)
}

/// The same, signed at this second.
pub(crate) fn signed_at(at: i64, secret: &str, content_type: &str, body: &[u8]) -> RawRequest {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("v0:{at}:").as_bytes());
    mac.update(body);
    let signature = format!("v0={}", hex::encode(mac.finalize().into_bytes()));
    RawRequest {
        headers: vec![
            ("Content-Type".into(), content_type.into()),
            ("X-Slack-Request-Timestamp".into(), at.to_string().into_bytes()),
            ("X-Slack-Signature".into(), signature.into_bytes()),
        ],
        body: body.to_vec(),
    }
}

/// The form that carries an interaction.
pub(crate) fn interaction(payload: &Value) -> RawRequest {
    let body = form_urlencoded::Serializer::new(String::new())
        .append_pair("payload", &payload.to_string())
        .finish();
    signed(SECRET, "application/x-www-form-urlencoded", body.as_bytes())
}

pub(crate) fn verifier(secrets: &[&str], app: AppId) -> SlackVerifier {
    let secrets: Vec<Secret> = secrets.iter().map(|text| Secret::new(*text).unwrap()).collect();
    SlackVerifier::new(&secrets, app).unwrap()
}

/// What the verifier of [`config`] makes of a request at [`NOW`].
pub(crate) fn verify(request: &RawRequest) -> Result<gatepost_channel::Inbound, gatepost_channel::Refusal> {
    verifier(&[SECRET], AppId::Named).verify(request, gatepost_channel::UtcMillis::from_secs(NOW))
}

/// A press on Approve as Slack sends it.
pub(crate) fn press() -> Value {
    json!({
        "type": "block_actions",
        "user": { "id": "U0AAAA1111", "username": "mira", "team_id": "T0DEMO0001" },
        "api_app_id": "A0DEMO0001",
        "container": { "type": "message", "message_ts": "1795953000.000100", "channel_id": "C0APPROVE1" },
        "team": { "id": "T0DEMO0001" },
        "channel": { "id": "C0APPROVE1", "name": "approvals" },
        "message": { "ts": "1795953000.000100", "text": "Approval needed" },
        "actions": [{
            "action_id": "approve",
            "value": "g1.a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5.2",
            "type": "button",
            "action_ts": "1795953600.115616",
        }],
    })
}
