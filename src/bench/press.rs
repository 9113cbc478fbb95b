//! A press on a card's button as the platform sends it, signed and spelled out before any clock runs.

use std::net::SocketAddr;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::Sha256;

use super::BenchError;
use crate::clock::{Clock as _, SystemClock};

/// With what presses are signed.
pub const SECRET: &str = "bench-signing-secret-0123456789ab";
/// Who presses.
pub const USER: &str = "U024BE7LH";
/// Where.
pub const CHAT: &str = "C0123456789";

/// The whole HTTP request of one press. `message` is the message with the button, `value` what the button carries.
pub fn press(
    to: SocketAddr,
    path: &str,
    message: &str,
    value: &str,
    number: usize,
) -> Result<Vec<u8>, BenchError> {
    let at = SystemClock.now().as_secs();
    let payload = json!({
        "type": "block_actions",
        "user": {"id": USER, "username": "dana", "name": "dana", "team_id": "T0001"},
        "api_app_id": "A0001",
        "token": "legacy-verification-token",
        "container": {"type": "message", "message_ts": message, "channel_id": CHAT, "is_ephemeral": false},
        "team": {"id": "T0001", "domain": "bench"},
        "channel": {"id": CHAT, "name": "bench"},
        "actions": [{
            "action_id": "approve", "block_id": "decide", "type": "button", "value": value,
            "action_ts": format!("{at}.{number:06}"),
        }],
    })
    .to_string();
    let body: String = std::iter::once("payload=".to_owned())
        .chain(url::form_urlencoded::byte_serialize(payload.as_bytes()).map(str::to_owned))
        .collect();
    let mut mac =
        Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).map_err(|error| BenchError::other(&error))?;
    mac.update(format!("v0:{at}:{body}").as_bytes());
    let signature = hex::encode(mac.finalize().into_bytes());
    Ok(format!(
        "POST {path} HTTP/1.1\r\nHost: {to}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         X-Slack-Request-Timestamp: {at}\r\nX-Slack-Signature: v0={signature}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes())
}
