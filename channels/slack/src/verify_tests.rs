//! Signature vectors, reported bugs, and hostile bytes against the verifier.

use gatepost_channel::{
    HttpAnswer, Inbound, RawRequest, Refusal, RefusalKind, Secret, UtcMillis, Verified, Verifier,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::callback::{self, AppId, Decoded};
use crate::fixture::{self, NOW, SECRET, interaction, press, signed, verifier, verify};
use crate::verify::SlackVerifier;

const FORM: &str = "application/x-www-form-urlencoded";

fn vectors(text: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).unwrap();
    file["vectors"].as_array().unwrap().clone()
}

fn headers(list: &Value) -> Vec<(String, Vec<u8>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    list.as_array()
        .unwrap()
        .iter()
        .map(|pair| (text(&pair[0]), text(&pair[1]).into_bytes()))
        .collect()
}

fn request_of(vector: &Value) -> RawRequest {
    RawRequest {
        headers: headers(&vector["headers"]),
        body: vector["body"].as_str().unwrap().as_bytes().to_vec(),
    }
}

fn judge(vector: &Value) -> Result<Inbound, Refusal> {
    let secret = vector["signing_secret"].as_str().unwrap();
    let now = UtcMillis::from_secs(vector["now_epoch"].as_i64().unwrap());
    verifier(&[secret], AppId::Named).verify(&request_of(vector), now)
}

/// The body of an accepted vector as its JSON or its fields.
fn decoded(request: &RawRequest) -> Value {
    match callback::decode(request) {
        Ok(Decoded::Interaction(value) | Decoded::Event(value)) => value,
        _ => callback::fields(std::str::from_utf8(&request.body).unwrap())
            .into_iter()
            .map(|(key, value)| (key, Value::String(value)))
            .collect(),
    }
}

#[test]
fn accepted_vectors_verify_and_decode() {
    for vector in vectors(include_str!("../tests/vectors/accept.json")) {
        let name = vector["name"].as_str().unwrap();
        match (name, judge(&vector)) {
            ("empty_body_signed", judged) => {
                assert_eq!(judged, Err(Refusal::unreadable("payload_missing")), "{name}");
            }
            ("url_verification_signed", judged) => assert_eq!(
                judged,
                Ok(Inbound::Handshake(HttpAnswer::json(
                    &json!({ "challenge": "3eZbrw1aBfakeChallenge" })
                ))),
            ),
            ("slash_command", Ok(Inbound::Command(command))) => {
                assert_eq!(
                    (command.called.as_str(), command.words.as_str()),
                    ("/approvals", "list --all +mine")
                );
                assert_eq!(command.user.ids, ["U0FAKE0001"]);
            }
            // Their buttons are not named like ours, so they are acknowledged and dropped.
            (_, Ok(Inbound::Ignored { answer, .. })) => assert_eq!(answer, HttpAnswer::empty(), "{name}"),
            (_, judged) => panic!("{name}: {judged:?}"),
        }
        assert_eq!(decoded(&request_of(&vector)), vector["decoded"], "{name}");
    }
}

#[test]
fn the_large_vector_verifies() {
    for vector in vectors(include_str!("../tests/vectors/large.json")) {
        assert!(matches!(judge(&vector), Ok(Inbound::Ignored { .. })));
    }
}

#[test]
fn rejected_vectors_are_inauthentic_for_the_named_reason() {
    for file in [
        include_str!("../tests/vectors/reject-signature.json"),
        include_str!("../tests/vectors/reject-timestamp.json"),
        include_str!("../tests/vectors/reject-headers.json"),
    ] {
        for vector in vectors(file) {
            let name = vector["name"].as_str().unwrap();
            let refusal = judge(&vector).expect_err(name);
            assert_eq!(refusal.kind, RefusalKind::Inauthentic, "{name}");
            let expected = match name {
                // Thirteen digits are no timestamp in seconds, whichever side of now they would lie on.
                "timestamp_milliseconds" => "timestamp_future",
                _ => vector["expect"]["reason"].as_str().unwrap(),
            };
            assert_eq!(refusal.reason, expected, "{name}");
        }
    }
}

#[test]
fn ambiguous_bodies_are_unreadable_and_unknown_kinds_are_acknowledged() {
    for vector in vectors(include_str!("../tests/vectors/parse.json")) {
        let judged = judge(&vector);
        match vector["expect"]["reason"].as_str().unwrap() {
            "parse_reject" => assert_eq!(judged.unwrap_err().kind, RefusalKind::Unreadable),
            "parse_ignore" => assert!(matches!(judged, Ok(Inbound::Ignored { .. }))),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_probe_is_answered_and_nothing_is_smuggled_in_beside_it() {
    for vector in vectors(include_str!("../tests/vectors/ssl-check.json")) {
        match vector["name"].as_str().unwrap() {
            "ssl_check_unsigned" => {
                assert_eq!(judge(&vector), Ok(Inbound::Handshake(HttpAnswer::empty())));
            }
            _ => assert_eq!(judge(&vector), Err(Refusal::inauthentic("signature_missing"))),
        }
    }
    for body in [
        "ssl_check=1&p%61yload=%7B%7D",
        "ssl_check=1&ssl_check=1",
        "ssl_check=01",
        "ssl_check=1&command=x",
    ] {
        let request = RawRequest {
            headers: vec![("Content-Type".into(), FORM.into())],
            body: body.into(),
        };
        assert_eq!(
            verify(&request),
            Err(Refusal::inauthentic("signature_missing")),
            "{body}"
        );
    }
    let payload = format!("ssl_check=1&payload={}", "%7B%7D");
    assert_eq!(
        verify(&signed(SECRET, FORM, payload.as_bytes())),
        Err(Refusal::unreadable("payload_beside_ssl_check")),
    );
    let wrong = signed("another", FORM, b"ssl_check=1");
    assert_eq!(verify(&wrong).unwrap_err().reason, "signature_mismatch");
}

/// The request of a reported bug: its headers from the case, its exact bytes.
fn case(case: &str, body: &[u8]) -> RawRequest {
    let case: Value = serde_json::from_str(case).unwrap();
    RawRequest {
        headers: headers(&case["headers"]),
        body: body.to_vec(),
    }
}

macro_rules! bug {
    ($name:literal) => {
        case(
            include_str!(concat!("../tests/bugs/", $name, ".case.json")),
            include_bytes!(concat!("../tests/bugs/", $name, ".body.bin")),
        )
    };
}

#[test]
fn rh_101_an_empty_secret_cannot_exist() {
    assert!(Secret::new("").is_err());
    assert!(Secret::new("   ").is_err());
    assert!(SlackVerifier::new(&[], AppId::Named).is_err());
    for request in [bug!("RH-101/empty"), bug!("RH-101/spaces")] {
        assert_eq!(verify(&request).unwrap_err().reason, "signature_mismatch");
    }
}

#[test]
fn rh_102_the_received_bytes_are_what_was_signed() {
    let as_sent = verify(&bug!("RH-102/as_sent")).unwrap();
    let respelled = verify(&bug!("RH-102/respelled_valid")).unwrap();
    assert!(matches!(as_sent, Inbound::Click(_)));
    assert_eq!(as_sent, respelled, "one press, so one replay key");
    assert_eq!(
        verify(&bug!("RH-102/respelled_reused_sig")).unwrap_err().kind,
        RefusalKind::Inauthentic
    );
}

#[test]
fn rh_105_a_malformed_header_is_a_plain_refusal() {
    for request in [
        bug!("RH-105/empty"),
        bug!("RH-105/hex_of_zeros"),
        bug!("RH-105/huge"),
        bug!("RH-105/long"),
        bug!("RH-105/non_ascii"),
        bug!("RH-105/not_hex"),
        bug!("RH-105/odd"),
        bug!("RH-105/only_prefix"),
        bug!("RH-105/other_version"),
        bug!("RH-105/short"),
        bug!("RH-105/spaces"),
        bug!("RH-105/two_headers"),
    ] {
        assert_eq!(verify(&request).unwrap_err().kind, RefusalKind::Inauthentic);
    }
    assert!(matches!(
        verify(&bug!("RH-105/odd_case_names")),
        Ok(Inbound::Click(_))
    ));
}

#[test]
fn rh_207_deep_nesting_is_unreadable() {
    assert_eq!(
        verify(&bug!("RH-207/webhook_deep")),
        Err(Refusal::unreadable("payload_not_json"))
    );
}

#[test]
fn rh_601_the_clean_secret_verifies() {
    assert!(matches!(verify(&bug!("RH-601/click")), Ok(Inbound::Click(_))));
}

#[test]
fn both_secrets_count_while_one_is_rotated() {
    let both = verifier(&["the-new-one", SECRET], AppId::Named);
    let now = UtcMillis::from_secs(NOW);
    for secret in ["the-new-one", SECRET] {
        assert!(
            both.verify(&signed(secret, FORM, b"command=%2Fx"), now).is_ok(),
            "{secret}"
        );
    }
    assert!(
        both.verify(&signed("the-old-one", FORM, b"command=%2Fx"), now)
            .is_err()
    );
}

#[test]
fn the_window_is_inclusive_on_both_sides() {
    let request = interaction(&press());
    let at = |seconds: i64| verifier(&[SECRET], AppId::Named).verify(&request, UtcMillis::from_secs(seconds));
    for (seconds, good) in [
        (NOW - 301, false),
        (NOW - 300, true),
        (NOW + 300, true),
        (NOW + 301, false),
    ] {
        assert_eq!(at(seconds).is_ok(), good, "{seconds}");
    }
    for seconds in [i64::MIN, i64::MAX] {
        assert_eq!(at(seconds).unwrap_err().kind, RefusalKind::Inauthentic);
    }
}

#[test]
fn an_accepted_request_verifies_again() {
    let request = interaction(&press());
    assert_eq!(verify(&request), verify(&request), "replay is the store's affair");
}

proptest! {
    #[test]
    fn unsigned_bytes_never_pass(
        headers in proptest::collection::vec(
            (
                prop_oneof![
                    Just("x-slack-signature".to_owned()),
                    Just("X-Slack-Request-Timestamp".to_owned()),
                    Just("content-type".to_owned()),
                    any::<String>(),
                ],
                prop_oneof![
                    any::<Vec<u8>>(),
                    Just(NOW.to_string().into_bytes()),
                    "v0=[0-9a-f]{64}".prop_map(String::into_bytes),
                    Just(FORM.as_bytes().to_vec()),
                ],
            ),
            0..6,
        ),
        body in any::<Vec<u8>>(),
    ) {
        let request = RawRequest { headers, body };
        match verify(&request) {
            Ok(Inbound::Handshake(answer)) => prop_assert_eq!(answer, HttpAnswer::empty()),
            Ok(other) => prop_assert!(false, "{:?}", other),
            Err(refusal) => prop_assert_eq!(refusal.kind, RefusalKind::Inauthentic),
        }
    }

    #[test]
    fn signed_nonsense_is_read_without_harm(
        body in any::<Vec<u8>>(),
        kind in prop_oneof![Just(FORM), Just("application/json; charset=utf-8"), Just("text/plain")],
    ) {
        let judged = Verified::check(
            &verifier(&[SECRET], AppId::Named),
            &signed(SECRET, kind, &body),
            UtcMillis::from_secs(NOW),
        );
        if let Err(refusal) = judged {
            prop_assert_eq!(refusal.kind, RefusalKind::Unreadable);
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_in_the_body_is_noticed(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let mut request = interaction(&fixture::press());
        let at = at.index(request.body.len());
        request.body[at] ^= 1 << bit;
        prop_assert_eq!(verify(&request).unwrap_err().reason, "signature_mismatch");
    }
}
