//! The published vectors, the reported faults, and forgeries.

use gatepost_channel::{RawRequest, Refusal, RefusalKind, Secret, UtcMillis};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::callback;
use crate::fixture::{self, now, press, sealed, secret, signed, signed_with, unsigned, verifier};

/// The words of the vectors.
fn word(outcome: &Result<Document, Refusal>) -> &'static str {
    match outcome {
        Ok(Document::Challenge(_)) => "challenge",
        Ok(Document::CardAction(event)) => match callback::read(event) {
            gatepost_channel::Inbound::Ignored {
                why: "value_missing" | "operator_missing",
                ..
            } => "ignore",
            _ => "accept",
        },
        Ok(Document::Message(_) | Document::OtherEvent) => "ignore",
        Err(_) => "refuse",
    }
}

fn vector_request(vector: &Value) -> RawRequest {
    let headers = vector["headers"].as_object().unwrap();
    RawRequest {
        headers: headers
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap().as_bytes().to_vec()))
            .collect(),
        body: vector["body"].as_str().unwrap().as_bytes().to_vec(),
    }
}

/// The reason for a setting that no channel can have: the constructor refuses it.
fn not_configured() -> Refusal {
    Refusal::inauthentic("verification_token_not_configured")
}

/// What we say to a vector of the new pipeline. Without an Encrypt Key no webhook can be made; such a document is judged as it
/// is on a long connection, where it comes in the clear.
fn new_pipeline(vector: &Value, app_id: &str, now: UtcMillis) -> Result<Document, Refusal> {
    let request = vector_request(vector);
    let token = Secret::new(vector["verification_token"].as_str().unwrap()).ok();
    let Ok(key) = Secret::new(vector["encrypt_key"].as_str().unwrap()) else {
        let document = document::parse(&request.body).unwrap();
        return judge(document, app_id, token.as_ref(), Proof::Sender);
    };
    let secrets = CallbackSecrets::new(Some(key), token).map_err(|_| not_configured())?;
    CallbackVerifier::new(app_id.to_owned(), secrets).document(&request, now)
}

/// What the recogniser of the first generation says.
fn old_pipeline(vector: &Value, now: UtcMillis) -> Result<Legacy, Refusal> {
    let token = Secret::new(vector["verification_token"].as_str().unwrap()).map_err(|_| not_configured())?;
    legacy::verify(&vector_request(vector), &token, now)
}

#[test]
fn every_vector_comes_out_as_it_says() {
    let file: Value = serde_json::from_str(include_str!("../tests/vectors/webhook.json")).unwrap();
    let now = UtcMillis::from_secs(file["clock"].as_i64().unwrap());
    let app_id = file["app_id"].as_str().unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    assert_eq!(vectors.len(), 59);
    for vector in vectors {
        let (name, expect) = (&vector["name"], &vector["expect"]);
        let (word, challenge, reason) = if vector["pipeline"] == "event" {
            let outcome = new_pipeline(vector, app_id, now);
            let challenge = match &outcome {
                Ok(Document::Challenge(text)) => Some(text.clone()),
                _ => None,
            };
            (word(&outcome), challenge, outcome.err().map(|r| r.reason))
        } else {
            match old_pipeline(vector, now) {
                Ok(Legacy::Press) => ("accept", None, None),
                Ok(Legacy::Challenge(text)) => ("challenge", Some(text), None),
                Err(refusal) => ("refuse", None, Some(refusal.reason)),
            }
        };
        assert_eq!(word, expect["strict"], "{name}");
        assert_eq!(reason, expect["reason"].as_str(), "{name}");
        assert_eq!(challenge.as_deref(), expect["challenge"].as_str(), "{name}");
    }
}

#[test]
fn what_is_accepted_is_the_decrypted_document() {
    let file: Value = serde_json::from_str(include_str!("../tests/vectors/webhook.json")).unwrap();
    let now = UtcMillis::from_secs(file["clock"].as_i64().unwrap());
    let mut seen = 0;
    for vector in file["vectors"].as_array().unwrap() {
        if vector["pipeline"] != "event" {
            continue;
        }
        if let Ok(Document::CardAction(event)) = new_pipeline(vector, "cli_a1b2c3d4e5f60718", now) {
            let plain: Value = serde_json::from_str(vector["expect"]["plaintext"].as_str().unwrap()).unwrap();
            assert_eq!(Value::Object(event), plain, "{}", vector["name"]);
            seen += 1;
        }
    }
    assert!(seen >= 15, "{seen}");
}

/// A reported fault: `RH-…/name`.
fn case(folder: &str, name: &str) -> RawRequest {
    let path = format!("{}/tests/bugs/{folder}/{name}", env!("CARGO_MANIFEST_DIR"));
    let case: Value = serde_json::from_slice(&std::fs::read(format!("{path}.case.json")).unwrap()).unwrap();
    assert_eq!(case["clock"], fixture::CLOCK);
    RawRequest {
        headers: case["headers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| {
                (
                    pair[0].as_str().unwrap().to_owned(),
                    pair[1].as_str().unwrap().as_bytes().to_vec(),
                )
            })
            .collect(),
        body: std::fs::read(format!("{path}.body.bin")).unwrap(),
    }
}

#[test]
fn reported_faults_do_not_happen_here() {
    for (folder, name, expected) in [
        ("RH-103", "challenge_encrypted_unsigned", "challenge"),
        (
            "RH-103",
            "challenge_plain_unsigned_key_set",
            "plaintext_while_encrypt_key_set",
        ),
        ("RH-103", "challenge_wrong_token", "token_mismatch"),
        // The mixed body echoes and decides nothing.
        ("RH-103", "challenge_wrapping_a_card_event", "challenge"),
        ("RH-104", "fresh", "accept"),
        ("RH-104", "replay_after_restart", "accept"),
        ("RH-104", "old_6h", "stale_timestamp"),
        ("RH-104", "future_6h", "stale_timestamp"),
        ("RH-104", "fresh_in_ms", "stale_timestamp"),
        ("RH-104", "not_a_number", "timestamp_malformed"),
        ("RH-107", "new_style_sha256", "accept"),
        ("RH-107", "new_style_sha1", "signature_mismatch"),
        ("RH-107", "old_style_sha1", "legacy_card_callback"),
        ("RH-107", "old_style_sha256", "plaintext_while_encrypt_key_set"),
        ("RH-306", "with_user_id", "accept"),
        ("RH-306", "without_user_id", "accept"),
        ("RH-306", "other_app_open_id", "app_id_mismatch"),
    ] {
        let outcome = verifier().document(&case(folder, name), now());
        let said = match &outcome {
            Err(refusal) => {
                assert_eq!(refusal.kind, RefusalKind::Inauthentic, "{name}");
                refusal.reason
            }
            ok => word(ok),
        };
        assert_eq!(said, expected, "{folder}/{name}");
    }
}

#[test]
fn the_log_says_how_to_leave_the_first_generation() {
    let refusal = verifier()
        .document(&case("RH-107", "old_style_sha1"), now())
        .unwrap_err();
    assert!(
        refusal.hint.unwrap().contains("card.action.trigger"),
        "{refusal:?}"
    );
}

fn refused(request: &RawRequest) -> &'static str {
    verifier().document(request, now()).unwrap_err().reason
}

#[test]
fn forgeries_around_a_good_signature_are_refused() {
    let body = sealed(press(&json!({"decision": "approve"})).to_string().as_bytes());
    assert!(matches!(
        verifier().document(&signed(&body), now()),
        Ok(Document::CardAction(_))
    ));

    // The digest has no separators: these concatenate to the same bytes.
    let moved = |timestamp: &str, nonce: &str| {
        let mut request = signed(&body);
        for (name, value) in &mut request.headers {
            match name.as_str() {
                "X-Lark-Request-Timestamp" => *value = timestamp.into(),
                "X-Lark-Request-Nonce" => *value = nonce.into(),
                _ => {}
            }
        }
        request
    };
    assert_eq!(refused(&moved("179595360", "0n0nce-01")), "stale_timestamp");
    assert_eq!(refused(&moved("1795953600n", "0nce-01")), "timestamp_malformed");

    // Headers that stand twice prove nothing, whichever value is right.
    for name in [
        "X-Lark-Signature",
        "x-lark-request-nonce",
        "X-LARK-REQUEST-TIMESTAMP",
    ] {
        let mut request = signed(&body);
        request.headers.push((name.to_owned(), b"1795953600".to_vec()));
        assert_eq!(refused(&request), "signature_missing");
    }

    // The document must be all there is: a key twice, bytes behind it, blanks are the only play.
    for (plaintext, why) in [
        (
            r#"{"type":"url_verification","challenge":"x","token":"vt-Heron-7731","token":"y"}"#,
            "plaintext_not_json",
        ),
        (r#"{"schema":"2.0"}{}"#, "plaintext_not_json"),
        ("{\"schema\":\"2.0\"}\u{0}", "plaintext_not_json"),
        (r#"["schema"]"#, "plaintext_not_object"),
        (r#"{"schema":"1.0"}"#, "wrong_pipeline"),
        (r#"{"schema":"2.0","header":{}}"#, "token_missing"),
        (
            r#"{"schema":"2.0","header":{"token":["vt-Heron-7731"]}}"#,
            "token_missing",
        ),
        (
            r#"{"schema":"2.0","header":{"token":"vt-Heron-7731"}}"#,
            "app_id_mismatch",
        ),
    ] {
        assert_eq!(
            refused(&signed(&sealed(plaintext.as_bytes()))),
            why,
            "{plaintext}"
        );
    }
    let deep = format!(
        "{{\"schema\":\"2.0\",\"x\":{}{}}}",
        "[".repeat(4000),
        "]".repeat(4000)
    );
    let deep = sealed(deep.as_bytes());
    let kind = |request: &RawRequest| verifier().document(request, now()).unwrap_err().kind;
    assert_eq!(
        kind(&signed(&deep)),
        RefusalKind::Unreadable,
        "RH-207: a signed one is told"
    );
    assert_eq!(
        kind(&unsigned(&deep)),
        RefusalKind::Inauthentic,
        "an unsigned one learns nothing"
    );

    // An outer key that stands twice, and a body that goes on behind the object (length extension).
    let twice = body.replacen('{', "{\"encrypt\":\"\",", 1);
    assert_eq!(refused(&signed(&twice)), "body_not_json");
    assert_eq!(refused(&signed(&format!("{body}\u{80}"))), "body_not_json");
}

#[test]
fn only_the_challenge_is_excused_from_the_signature() {
    let challenge = json!({"type": "url_verification", "challenge": "a\"b", "token": fixture::TOKEN});
    let body = sealed(challenge.to_string().as_bytes());
    assert_eq!(
        verifier().document(&unsigned(&body), now()),
        Ok(Document::Challenge("a\"b".to_owned()))
    );
    let click = sealed(press(&json!({"decision": "approve"})).to_string().as_bytes());
    assert_eq!(refused(&unsigned(&click)), "signature_missing");
    let padded = json!({"type": "url_verification", "challenge": "x".repeat(9000), "token": fixture::TOKEN});
    assert_eq!(
        refused(&unsigned(&sealed(padded.to_string().as_bytes()))),
        "signature_missing",
        "long unsigned bodies are not even opened"
    );
}

#[test]
fn a_token_is_not_needed_where_connecting_is_the_proof() {
    let document = document::parse(press(&json!({})).to_string().as_bytes()).unwrap();
    assert!(matches!(
        judge(document.clone(), fixture::APP, None, Proof::Sender),
        Ok(Document::CardAction(_))
    ));
    let other = secret("another");
    assert_eq!(
        judge(document, fixture::APP, Some(&other), Proof::Sender)
            .unwrap_err()
            .reason,
        "token_mismatch"
    );
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..300)
}

proptest! {
    #[test]
    fn nothing_from_outside_panics_or_passes(
        headers in proptest::collection::vec((prop_oneof![
            Just("X-Lark-Signature".to_owned()), Just("X-Lark-Request-Timestamp".to_owned()),
            Just("X-Lark-Request-Nonce".to_owned()), "[a-z-]{0,12}"], bytes()), 0..6),
        body in bytes(),
    ) {
        let request = RawRequest { headers, body };
        prop_assert!(verifier().document(&request, now()).is_err());
    }

    #[test]
    fn a_sealed_and_signed_anything_never_panics(plaintext in bytes()) {
        prop_assert!(verifier().document(&signed(&sealed(&plaintext)), now()).is_err());
    }

    #[test]
    fn a_changed_byte_is_noticed(at in any::<proptest::sample::Index>(), bit in 0_u8..8) {
        let body = sealed(press(&json!({"decision": "approve"})).to_string().as_bytes());
        let mut request = signed(&body);
        let at = at.index(request.body.len());
        request.body[at] ^= 1 << bit;
        prop_assert_eq!(verifier().document(&request, now()).unwrap_err().reason, "signature_mismatch");
    }

    #[test]
    fn only_near_timestamps_pass(offset in -100_000_i64..100_000) {
        let body = sealed(press(&json!({"decision": "approve"})).to_string().as_bytes());
        let request = signed_with(&body, &(fixture::CLOCK + offset).to_string(), "n");
        prop_assert_eq!(verifier().document(&request, now()).is_ok(), offset.abs() <= 300);
    }
}
