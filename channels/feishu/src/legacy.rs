//! Card callbacks of the first generation (`card.action.trigger_v1`). They decide nothing here: they name no app and carry no
//! event id, and their recipe is SHA-1. They are recognised only so that the log can say which subscription to set.

use gatepost_channel::{RawRequest, Refusal, Secret, UtcMillis, same_bytes};

use crate::crypto::legacy_signature;
use crate::document::{self, text};
use crate::verify::{SignatureHeaders, is_fresh};

/// What an authentic request of the first generation says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Legacy {
    /// The address is being probed; the old and the new form are the same.
    Challenge(String),
    /// Somebody pressed a button.
    Press,
}

/// Verifies a request by the first generation's own recipe.
pub(crate) fn verify(request: &RawRequest, token: &Secret, now: UtcMillis) -> Result<Legacy, Refusal> {
    let body = document::parse(&request.body).map_err(|_| Refusal::inauthentic("body_not_object"))?;
    if body.contains_key("encrypt") || body.contains_key("schema") {
        return Err(Refusal::inauthentic("wrong_pipeline"));
    }
    if text(&body, &["type"]) == Some("url_verification") {
        let given = text(&body, &["token"]).ok_or(Refusal::inauthentic("token_missing"))?;
        if !same_bytes(given.as_bytes(), token.expose().as_bytes()) {
            return Err(Refusal::inauthentic("token_mismatch"));
        }
        let challenge = text(&body, &["challenge"]).ok_or(Refusal::inauthentic("challenge_missing"))?;
        return Ok(Legacy::Challenge(challenge.to_owned()));
    }
    let headers = SignatureHeaders::of(request)?.ok_or(Refusal::inauthentic("signature_missing"))?;
    let expected = legacy_signature(headers.timestamp, headers.nonce, token, &request.body);
    if !same_bytes(expected.as_bytes(), headers.signature) {
        return Err(Refusal::inauthentic("signature_mismatch"));
    }
    is_fresh(headers.timestamp, now)?;
    Ok(Legacy::Press)
}
