//! Slack's request signature, scheme v0: is this from Slack, and is it fresh? Nothing is parsed before both are answered.
//!
//! The signature covers the header text of the timestamp and the raw bytes of the body (Slack, "Verifying requests from
//! Slack"). Where the official SDKs differ the stricter reading holds: one value per header, plain digits, the exact shape.

use gatepost_channel::{HttpAnswer, Inbound, RawRequest, Refusal, Secret, UtcMillis, Verifier};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

use crate::callback::{self, AppId};
use crate::config::ConfigError;

/// How far a timestamp may lie from now, on either side and inclusive, in seconds.
const WINDOW: u64 = 300;
/// A probe of the address is a few bytes long.
const MAX_PROBE: usize = 1024;

const SIGNATURE: &str = "x-slack-signature";
const TIMESTAMP: &str = "x-slack-request-timestamp";

/// Verifies the callbacks of one app.
pub(crate) struct SlackVerifier {
    keys: Vec<Hmac<Sha256>>,
    app: AppId,
}

impl SlackVerifier {
    /// A verifier that takes any of `secrets`, each tried on every request, so that a secret can be rotated.
    pub(crate) fn new(secrets: &[Secret], app: AppId) -> Result<Self, ConfigError> {
        if secrets.is_empty() {
            return Err(ConfigError::NoSigningSecret);
        }
        let keys = secrets
            .iter()
            .map(|secret| Hmac::new_from_slice(secret.expose().as_bytes()))
            .collect::<Result<_, _>>()
            .map_err(|_| ConfigError::SigningSecret)?;
        Ok(Self { keys, app })
    }

    /// Whether Slack signed these bytes within the window.
    fn authenticate(&self, request: &RawRequest, now: UtcMillis) -> Result<(), Refusal> {
        let signature = header(request, SIGNATURE, "signature_missing")?;
        let timestamp = header(request, TIMESTAMP, "timestamp_missing")?;
        let presented = digest_of(signature)?;
        fresh(timestamp, now)?;
        let mut matched = Choice::from(0);
        for key in &self.keys {
            let mut mac = key.clone();
            mac.update(b"v0:");
            mac.update(timestamp);
            mac.update(b":");
            mac.update(&request.body);
            matched |= mac.finalize().into_bytes().as_slice().ct_eq(&presented);
        }
        if bool::from(matched) {
            Ok(())
        } else {
            Err(Refusal::inauthentic("signature_mismatch")
                .with_hint("compare signing_secret with the app's Basic Information page"))
        }
    }
}

impl Verifier for SlackVerifier {
    fn verify(&self, request: &RawRequest, now: UtcMillis) -> Result<Inbound, Refusal> {
        if is_probe(request) {
            return Ok(Inbound::Handshake(HttpAnswer::empty()));
        }
        self.authenticate(request, now)?;
        callback::read(request, &self.app)
    }
}

/// The header's one value: none is missing, two are ambiguous.
fn header<'a>(request: &'a RawRequest, name: &'a str, missing: &'static str) -> Result<&'a [u8], Refusal> {
    if request.values(name).next().is_none() {
        return Err(Refusal::inauthentic(missing));
    }
    request
        .single(name)
        .ok_or(Refusal::inauthentic("header_duplicated"))
}

/// The 32 bytes of `v0=` and 64 lower-case hex digits; no other spelling is read.
fn digest_of(signature: &[u8]) -> Result<[u8; 32], Refusal> {
    let digits = signature
        .strip_prefix(b"v0=")
        .ok_or(Refusal::inauthentic("unknown_version"))?;
    if digits.len() != 64 {
        return Err(Refusal::inauthentic("signature_malformed"));
    }
    let mut digest = [0_u8; 32];
    let plain = digits
        .iter()
        .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if !plain || hex::decode_to_slice(digits, &mut digest).is_err() {
        return Err(Refusal::inauthentic("signature_mismatch"));
    }
    Ok(digest)
}

/// Whether the timestamp, 1 to 20 ASCII digits in seconds, lies within the window. One in milliseconds is far in the future.
fn fresh(timestamp: &[u8], now: UtcMillis) -> Result<(), Refusal> {
    if !(1..=20).contains(&timestamp.len()) || !timestamp.iter().all(u8::is_ascii_digit) {
        return Err(Refusal::inauthentic("timestamp_malformed"));
    }
    let seconds = timestamp.iter().fold(0_i64, |sum, digit| {
        sum.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    });
    let now = now.as_secs();
    if now.abs_diff(seconds) <= WINDOW {
        return Ok(());
    }
    let reason = if seconds < now {
        "timestamp_stale"
    } else {
        "timestamp_future"
    };
    Err(Refusal::inauthentic(reason).with_hint("compare this host's clock with a time server"))
}

/// Slack's unsigned probe of the address: `ssl_check` is exactly `1` and nothing rides along that anybody could act on.
/// A request that carries a signature is judged by it.
fn is_probe(request: &RawRequest) -> bool {
    if request.values(SIGNATURE).next().is_some()
        || request.values(TIMESTAMP).next().is_some()
        || request.body.len() > MAX_PROBE
        || callback::media_type(request) != Some(callback::MediaType::Form)
    {
        return false;
    }
    let mut probes = 0;
    for (key, value) in form_urlencoded::parse(&request.body) {
        match &*key {
            "ssl_check" if value == "1" => probes += 1,
            "token" => {}
            _ => return false,
        }
    }
    probes == 1
}
