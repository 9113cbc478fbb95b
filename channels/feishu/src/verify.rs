//! From the bytes of a callback to an authentic document, or a refusal: signature, freshness, cipher, token, app; in this order.
//!
//! The digest covers the outer bytes, so it is checked before anything is parsed. The cipher has no MAC and the digest no
//! separators, so every later reading is strict (see [`crate::document`]) and nothing outside the sealed document is believed.

use gatepost_channel::{RawRequest, Refusal, Secret, UtcMillis, same_bytes};

use crate::config::CallbackSecrets;
use crate::crypto;
use crate::document::{self, NotADocument, Object, text};
use crate::legacy::{self, Legacy};

/// How far the signed timestamp may lie from now, in seconds, either way.
const WINDOW_SECONDS: i64 = 300;
/// An unsigned body longer than this cannot be the challenge and is not opened, in bytes.
const LONGEST_UNSIGNED: usize = 8 * 1024;

const SUBSCRIBE: &str = "this is a card callback of the first generation, which decides nothing: in the developer console under \
    Events & callbacks > Callback configuration subscribe to card.action.trigger, remove card.action.trigger_v1 and the bot's \
    message card request URL, and publish a version";

/// What an authentic document is.
#[derive(Debug, PartialEq)]
pub(crate) enum Document {
    /// The platform probes the address and wants this back.
    Challenge(String),
    /// A card was clicked.
    CardAction(Object),
    /// Somebody wrote to the bot, or in a group of it.
    Message(Object),
    /// Some other event; none is of use here.
    OtherEvent,
}

/// What stands behind a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Nothing but the cipher: good for the challenge only.
    None,
    /// The signature of this request, or the connection it came through.
    Sender,
}

/// Checks the callbacks of one app.
#[derive(Debug)]
pub(crate) struct CallbackVerifier {
    app_id: String,
    secrets: CallbackSecrets,
}

impl CallbackVerifier {
    /// A verifier for one app with both of its secrets.
    pub(crate) const fn new(app_id: String, secrets: CallbackSecrets) -> Self {
        Self { app_id, secrets }
    }

    /// Verifies the request and reads its document.
    pub(crate) fn document(&self, request: &RawRequest, now: UtcMillis) -> Result<Document, Refusal> {
        let proof = match self.proof(request, now) {
            Err(refusal) if self.is_legacy_press(request, now) => {
                return Err(Refusal {
                    reason: "legacy_card_callback",
                    ..refusal
                }
                .with_hint(SUBSCRIBE));
            }
            proof => proof?,
        };
        if proof == Proof::None && request.body.len() > LONGEST_UNSIGNED {
            return Err(Refusal::inauthentic("signature_missing"));
        }
        let outer = document::parse(&request.body).map_err(|why| match why {
            NotADocument::Json => Refusal::unreadable("body_not_json"),
            NotADocument::Deep => Refusal::unreadable("body_too_deep"),
            NotADocument::Object => Refusal::inauthentic("body_not_object"),
        })?;
        let Some(sealed) = outer.get("encrypt") else {
            return Err(refuse_clear(&outer, proof));
        };
        let opened = sealed
            .as_str()
            .and_then(|sealed| crypto::open(&self.secrets.encrypt_key, sealed).ok())
            .ok_or(Refusal::inauthentic("decrypt_failed"))?;
        let opened = std::str::from_utf8(&opened).map_err(|_| Refusal::inauthentic("plaintext_not_utf8"))?;
        let document = document::parse(opened.as_bytes()).map_err(|why| match (why, proof) {
            // Only a sender who has signed is told that it was understood so far.
            (NotADocument::Deep, Proof::Sender) => Refusal::unreadable("plaintext_too_deep"),
            (NotADocument::Deep, Proof::None) => Refusal::inauthentic("plaintext_too_deep"),
            (NotADocument::Json, _) => Refusal::inauthentic("plaintext_not_json"),
            (NotADocument::Object, _) => Refusal::inauthentic("plaintext_not_object"),
        })?;
        judge(
            document,
            &self.app_id,
            Some(&self.secrets.verification_token),
            proof,
        )
    }

    /// Checks the signature, when there is one.
    fn proof(&self, request: &RawRequest, now: UtcMillis) -> Result<Proof, Refusal> {
        let Some(headers) = SignatureHeaders::of(request)? else {
            return Ok(Proof::None);
        };
        let key = &self.secrets.encrypt_key;
        let expected = crypto::signature(headers.timestamp, headers.nonce, key, &request.body);
        if !same_bytes(expected.as_bytes(), headers.signature) {
            return Err(Refusal::inauthentic("signature_mismatch"));
        }
        is_fresh(headers.timestamp, now)?;
        Ok(Proof::Sender)
    }

    fn is_legacy_press(&self, request: &RawRequest, now: UtcMillis) -> bool {
        matches!(
            legacy::verify(request, &self.secrets.verification_token, now),
            Ok(Legacy::Press)
        )
    }
}

/// Says what a decrypted (or, on a long connection, delivered) document is, once its token and app are ours.
pub(crate) fn judge(
    document: Object,
    app_id: &str,
    token: Option<&Secret>,
    proof: Proof,
) -> Result<Document, Refusal> {
    if text(&document, &["type"]) == Some("url_verification") {
        check_token(text(&document, &["token"]), token)?;
        let challenge = text(&document, &["challenge"]).ok_or(Refusal::inauthentic("challenge_missing"))?;
        return Ok(Document::Challenge(challenge.to_owned()));
    }
    if proof == Proof::None {
        return Err(Refusal::inauthentic("signature_missing"));
    }
    if text(&document, &["schema"]) != Some("2.0") {
        return Err(Refusal::inauthentic("wrong_pipeline").with_hint(SUBSCRIBE));
    }
    check_token(text(&document, &["header", "token"]), token)?;
    if text(&document, &["header", "app_id"]) != Some(app_id) {
        return Err(Refusal::inauthentic("app_id_mismatch").with_hint(
            "another app of the platform calls this address: compare app_id here with the developer console",
        ));
    }
    match text(&document, &["header", "event_type"]) {
        Some("card.action.trigger") => Ok(Document::CardAction(document)),
        Some("im.message.receive_v1") => Ok(Document::Message(document)),
        _ => Ok(Document::OtherEvent),
    }
}

/// The document's token must be ours. Without a configured token (long connection only) there is nothing to compare.
fn check_token(given: Option<&str>, ours: Option<&Secret>) -> Result<(), Refusal> {
    let Some(ours) = ours else { return Ok(()) };
    let given = given.ok_or(Refusal::inauthentic("token_missing"))?;
    if same_bytes(given.as_bytes(), ours.expose().as_bytes()) {
        Ok(())
    } else {
        Err(Refusal::inauthentic("token_mismatch")
            .with_hint("compare verification_token with the developer console under Events & callbacks"))
    }
}

/// Why a body in the clear is refused; it always is.
fn refuse_clear(outer: &Object, proof: Proof) -> Refusal {
    let challenge = text(outer, &["type"]) == Some("url_verification");
    if proof == Proof::None && !challenge {
        Refusal::inauthentic("signature_missing")
    } else {
        Refusal::inauthentic("plaintext_while_encrypt_key_set")
            .with_hint("the platform sends clear bodies while an encrypt_key is configured here: set the same Encrypt Key in the developer console")
    }
}

/// The three headers of a signature.
pub(crate) struct SignatureHeaders<'a> {
    pub(crate) timestamp: &'a [u8],
    pub(crate) nonce: &'a [u8],
    pub(crate) signature: &'a [u8],
}

impl<'a> SignatureHeaders<'a> {
    /// The headers of this request: none at all, or all three exactly once and filled; anything between is refused.
    pub(crate) fn of(request: &'a RawRequest) -> Result<Option<Self>, Refusal> {
        const NAMES: [&str; 3] = [
            "x-lark-request-timestamp",
            "x-lark-request-nonce",
            "x-lark-signature",
        ];
        if NAMES.iter().all(|name| request.values(name).next().is_none()) {
            return Ok(None);
        }
        let missing = Refusal::inauthentic("signature_missing");
        let one = |name| {
            request
                .single(name)
                .filter(|value| !value.is_empty())
                .ok_or(missing)
        };
        Ok(Some(Self {
            timestamp: one(NAMES[0])?,
            nonce: one(NAMES[1])?,
            signature: one(NAMES[2])?,
        }))
    }
}

/// The timestamp must be ten digits of seconds, near now. The form is pinned because the digest has no separators: with a free
/// form, digits could move between timestamp and nonce. Milliseconds are not read as seconds, they are refused.
pub(crate) fn is_fresh(timestamp: &[u8], now: UtcMillis) -> Result<(), Refusal> {
    let text = std::str::from_utf8(timestamp)
        .ok()
        .filter(|text| text.bytes().all(|b| b.is_ascii_digit()))
        .ok_or(Refusal::inauthentic("timestamp_malformed"))?;
    let stale = Refusal::inauthentic("stale_timestamp");
    if text.len() != 10 {
        return Err(stale);
    }
    let seconds: i64 = text.parse().map_err(|_| stale)?;
    if seconds.saturating_sub(now.as_secs()).saturating_abs() <= WINDOW_SECONDS {
        Ok(())
    } else {
        Err(stale.with_hint("when all callbacks are stale, set this machine's clock by NTP"))
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
