//! What is hidden, and what denies the call.

use super::*;
use crate::gate::json::ReadLimits;

fn redacted(text: &str, pointers: &[&str]) -> Result<String, Kind> {
    let value = Json::read(text.as_bytes(), ReadLimits::bytes(10_000)).unwrap();
    let pointers: Vec<Pointer> = pointers.iter().map(|pointer| pointer.parse().unwrap()).collect();
    redact(&value, &pointers)
        .map(|json| json.canonical())
        .map_err(|problem| problem.kind)
}

#[test]
fn shows_type_and_length_of_what_is_hidden() {
    let card =
        r#"{"card":{"number":"4111111111111111","cvc":123,"ok":true,"no":null,"pin":"審"},"amount":5}"#;
    assert_eq!(
        redacted(
            card,
            &["/card/number", "/card/cvc", "/card/ok", "/card/no", "/card/pin"]
        )
        .unwrap(),
        concat!(
            r#"{"amount":5,"card":{"cvc":"‹hidden: number, 3 characters›","no":"‹hidden: null›","#,
            r#""number":"‹hidden: string, 16 characters›","ok":"‹hidden: boolean›","pin":"‹hidden: string, 1 character›"}}"#
        )
    );
}

#[test]
fn reaches_each_item_with_a_star() {
    let cards = r#"{"cards":[{"n":"11"},{"n":"2222","m":1},{}],"by":{"a":{"n":"x"}}}"#;
    assert_eq!(
        redacted(cards, &["/cards/*/n", "/cards/1/n", "/by/*/n"]).unwrap(),
        concat!(
            r#"{"by":{"a":{"n":"‹hidden: string, 1 character›"}},"cards":[{"n":"‹hidden: string, 2 characters›"},"#,
            r#"{"m":1,"n":"‹hidden: string, 4 characters›"},{}]}"#
        )
    );
    assert_eq!(redacted(cards, &["/cards/*"]), Err(Kind::Object));
    assert_eq!(
        redacted(r#"{"*":"ab"}"#, &["/*"]).unwrap(),
        r#"{"*":"‹hidden: string, 2 characters›"}"#
    );
}

#[test]
fn refuses_what_is_not_a_single_value() {
    let table = [("", Kind::Object), ("/a", Kind::Object), ("/a/b", Kind::Array)];
    for (pointer, kind) in table {
        assert_eq!(
            redacted(r#"{"a":{"b":[]}}"#, &["/nothing", pointer]),
            Err(kind),
            "{pointer}"
        );
    }
}

#[test]
fn passes_over_what_is_not_there() {
    let value = r#"{"a":{"b":[1]},"c":"x"}"#;
    for pointer in ["/b", "/a/c", "/a/b/1", "/a/b/-", "/a/b/00", "/c/d", "/c/*", "/"] {
        assert_eq!(redacted(value, &[pointer]).unwrap(), value, "{pointer}");
    }
}

fn said(text: &str, arguments: &str, pointers: &[&str]) -> String {
    let value = Json::read(arguments.as_bytes(), ReadLimits::bytes(10_000)).unwrap();
    let pointers: Vec<Pointer> = pointers.iter().map(|pointer| pointer.parse().unwrap()).collect();
    out_of(text, &value, &pointers)
}

#[test]
fn takes_what_is_hidden_out_of_free_text() {
    let card = r#"{"card":{"number":"4111111111111111","cvc":123,"ok":true,"name":" Dana "},"n":["4111","41111111"]}"#;
    let hidden = ["/card/number", "/card/cvc", "/card/ok", "/card/name", "/n/*"];
    for (text, left) in [
        (
            "card 4111111111111111, code 123.",
            "card ‹hidden: string, 16 characters›, code ‹hidden: number, 3 characters›.",
        ),
        ("x4111111111111111x", "x‹hidden: string, 16 characters›x"),
        ("1234 and 0123 are true", "1234 and 0123 are true"),
        ("123123 123", "123123 ‹hidden: number, 3 characters›"),
        ("for Dana", "for ‹hidden: string, 6 characters›"),
        ("審123審 (123)", "審123審 (‹hidden: number, 3 characters›)"),
        ("", ""),
    ] {
        assert_eq!(said(text, card, &hidden), left, "{text}");
        assert_eq!(said(text, card, &[]), text, "nothing is hidden");
    }
}
