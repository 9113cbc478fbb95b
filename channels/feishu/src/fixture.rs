//! What the tests share: sealing and signing as the platform does, and cards.

use aes::Aes256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cbc::Encryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeEncrypt as _, KeyIvInit as _};
use gatepost_channel::{
    Actions, Asks, ButtonToken, Card, Fact, Inert, RawRequest, Secret, Tone, UtcMillis, Words,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::config::CallbackSecrets;
use crate::crypto;
use crate::verify::CallbackVerifier;

pub(crate) const ENCRYPT_KEY: &str = "enc-key-Kestrel-42";
pub(crate) const TOKEN: &str = "vt-Heron-7731";
pub(crate) const APP: &str = "cli_demo000000000001";
pub(crate) const CLOCK: i64 = 1_795_953_600;

pub(crate) fn now() -> UtcMillis {
    UtcMillis::from_secs(CLOCK)
}

pub(crate) fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

pub(crate) fn secrets() -> CallbackSecrets {
    CallbackSecrets::new(Some(secret(ENCRYPT_KEY)), Some(secret(TOKEN))).unwrap()
}

pub(crate) fn verifier() -> CallbackVerifier {
    CallbackVerifier::new(APP.to_owned(), secrets())
}

/// `{"encrypt": …}` around the text.
pub(crate) fn sealed(plaintext: &[u8]) -> String {
    let key = Sha256::digest(ENCRYPT_KEY.as_bytes());
    let iv = [7_u8; 16];
    let cipher = Encryptor::<Aes256>::new_from_slices(&key, &iv).unwrap();
    let mut bytes = iv.to_vec();
    bytes.extend(cipher.encrypt_padded_vec::<Pkcs7>(plaintext));
    json!({ "encrypt": STANDARD.encode(bytes) }).to_string()
}

/// A request without signature headers.
pub(crate) fn unsigned(body: &str) -> RawRequest {
    RawRequest {
        headers: vec![("content-type".into(), b"application/json; charset=utf-8".to_vec())],
        body: body.as_bytes().to_vec(),
    }
}

/// A request signed now.
pub(crate) fn signed(body: &str) -> RawRequest {
    signed_with(body, &CLOCK.to_string(), "n0nce-01")
}

/// A request signed with this timestamp and nonce.
pub(crate) fn signed_with(body: &str, timestamp: &str, nonce: &str) -> RawRequest {
    let mut request = unsigned(body);
    let key = secret(ENCRYPT_KEY);
    let signature = crypto::signature(timestamp.as_bytes(), nonce.as_bytes(), &key, body.as_bytes());
    request.headers.extend([
        (
            "X-Lark-Request-Timestamp".to_owned(),
            timestamp.as_bytes().to_vec(),
        ),
        ("X-Lark-Request-Nonce".to_owned(), nonce.as_bytes().to_vec()),
        ("X-Lark-Signature".to_owned(), signature.into_bytes()),
    ]);
    request
}

/// A click on a button with this value.
pub(crate) fn press(value: &Value) -> Value {
    json!({
        "schema": "2.0",
        "header": {
            "event_id": "ev_0001", "token": TOKEN, "create_time": "1795953600000000",
            "event_type": "card.action.trigger", "tenant_key": "tk_demo_0001", "app_id": APP,
        },
        "event": {
            "operator": { "tenant_key": "tk_demo_0001", "open_id": "ou_demo_mira", "union_id": "on_demo_mira" },
            "token": "c-demo-update-token",
            "action": { "tag": "button", "value": value },
            "host": "im_message",
            "context": { "open_message_id": "om_demo_0001", "open_chat_id": "oc_demo_approvals" },
        },
    })
}

/// A text that Mira writes to the bot.
pub(crate) fn message(said: &str) -> Value {
    json!({
        "schema": "2.0",
        "header": {
            "event_id": "ev_0101", "token": TOKEN, "create_time": "1795953600120",
            "event_type": "im.message.receive_v1", "tenant_key": "tk_demo_0001", "app_id": APP,
        },
        "event": {
            "sender": {
                "sender_id": { "open_id": "ou_demo_mira", "union_id": "on_demo_mira" },
                "sender_type": "user", "tenant_key": "tk_demo_0001",
            },
            "message": {
                "message_id": "om_said_0001", "create_time": "1795953600100", "chat_id": "oc_demo_mira",
                "chat_type": "p2p", "message_type": "text", "content": json!({ "text": said }).to_string(),
            },
        },
    })
}

/// The same in a group, where these are mentioned, each as `@_user_1`, `@_user_2`, ….
pub(crate) fn group_message(said: &str, mentioned: &[&str]) -> Value {
    let mut event = message(said);
    event["event"]["message"]["chat_id"] = json!("oc_demo_approvals");
    event["event"]["message"]["chat_type"] = json!("group");
    event["event"]["message"]["mentions"] = mentioned
        .iter()
        .enumerate()
        .map(|(at, id)| {
            json!({ "key": format!("@_user_{}", at + 1), "id": { "open_id": id }, "name": "Gatepost", "tenant_key": "tk_demo_0001" })
        })
        .collect();
    event
}

pub(crate) fn words() -> Words {
    Words {
        approve: "Approve".into(),
        reject: "Reject".into(),
        show_everything: "Show everything".into(),
        arguments: "Arguments".into(),
        cut: "Only {shown} of {total} characters are shown".into(),
        approve_in_full_view: "This card cannot show everything: approve in the full view".into(),
        reason: "Reason".into(),
        reject_with_reason: "Reject with a reason".into(),
        open_console: "Open in the console".into(),
    }
}

/// A card of this tone with these arguments; pending ones can be decided.
pub(crate) fn card(tone: Tone, arguments: &str, full_view: bool) -> Card {
    Card {
        request_id: "cr_01JE0000000000000000000001".into(),
        tone,
        risk: None,
        title: match tone {
            Tone::Pending => "Approval needed",
            Tone::Approved => "Approved",
            Tone::Rejected => "Rejected",
            Tone::Closed => "Expired",
        }
        .into(),
        preview: "Approval needed: cr_01JE0000000000000000000001".into(),
        tool: Inert::new("oa__purchase_pay"),
        facts: vec![
            Fact {
                label: "Requested by".into(),
                value: Inert::new("dana"),
            },
            Fact {
                label: "Until".into(),
                value: Inert::new("2026-11-29 12:02 UTC"),
            },
        ],
        arguments: Inert::new(arguments).into(),
        actions: match tone {
            Tone::Pending => Actions::Decide {
                token: ButtonToken::new([0xa5; 16]),
                revision: 3,
                approve_when_cut: false,
                full_view: full_view.then(|| "https://gate.example.com/console/requests/cr_01JE".to_owned()),
                asks: Asks::default(),
            },
            _ => Actions::None,
        },
        words: words(),
        set: None,
    }
}
