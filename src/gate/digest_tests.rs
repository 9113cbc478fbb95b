//! Names, arguments, digests and codes.

use proptest::prelude::*;

use super::*;
use crate::gate::{arguments::InvalidArguments, json::ReadLimits};

fn arguments(text: &str) -> Arguments {
    Arguments::read(text.as_bytes(), ReadLimits::bytes(1 << 16)).unwrap()
}

fn digest(tool: &str, text: &str) -> Digest {
    Digest::of(&tool.parse().unwrap(), &arguments(text))
}

#[test]
fn is_sha_256_over_the_canonical_call() {
    let expected =
        Sha256::digest(br#"{"tool_args":{"amount":60000,"payee":"Kestrel"},"tool_name":"oa__purchase_pay"}"#);
    let found = digest(
        "oa__purchase_pay",
        r#" { "payee" : "\u004bestrel", "amount": 6e4 } "#,
    );
    assert_eq!(found.to_string(), hex::encode(expected));
    assert_ne!(
        found,
        digest("oa__purchase_pa", r#"{"payee":"Kestrel","amount":60000}"#)
    );
    assert_ne!(
        found,
        digest(
            "oa__purchase_pay",
            r#"{"payee":"Kestrel","amount":60000.000000000000000001}"#
        )
    );
    assert_ne!(
        digest("t", r#"{"a":9007199254740993}"#),
        digest("t", r#"{"a":9007199254740992}"#)
    );
}

#[test]
fn a_name_cannot_reach_into_the_arguments() {
    let tool: ToolName = r#"x","tool_args":{}"#.parse().unwrap();
    let spelled = r#"{"tool_args":{},"tool_name":"x\",\"tool_args\":{}"}"#;
    assert_eq!(
        Digest::of(&tool, &Arguments::none()).to_string(),
        hex::encode(Sha256::digest(spelled))
    );
}

#[test]
fn is_written_in_one_way() {
    let found = digest("t", "{}");
    let text = found.to_string();
    assert_eq!(text.parse::<Digest>(), Ok(found));
    assert_eq!(
        serde_json::from_str::<Digest>(&serde_json::to_string(&found).unwrap()).unwrap(),
        found
    );
    for malformed in [
        "",
        "00",
        &text.to_uppercase(),
        &format!("{text}0"),
        &format!("{text}00"),
        &"g".repeat(64),
    ] {
        assert_eq!(malformed.parse::<Digest>(), Err(MalformedDigest), "{malformed}");
    }
    assert!(!format!("{found:?}").contains(&text));
}

#[test]
fn a_code_depends_on_key_and_digest() {
    let found = digest("t", "{}");
    let code = ShortCode::of(&[7; 32], &found);
    assert_eq!(code, ShortCode::of(&[7; 32], &found));
    assert_ne!(code, ShortCode::of(&[8; 32], &found));
    assert_ne!(code, ShortCode::of(&[7; 32], &digest("t", r#"{"a":1}"#)));
    let text = code.to_string();
    assert_eq!((text.len(), text.find('-')), (9, Some(4)));
    assert!(
        text.bytes().all(|byte| byte == b'-' || ALPHABET.contains(&byte)),
        "{text}"
    );
}

#[test]
fn tool_names_are_short_and_visible() {
    assert!("a".repeat(256).parse::<ToolName>().is_ok());
    assert!("審".repeat(256).parse::<ToolName>().is_ok());
    assert_eq!(
        "a".repeat(257).parse::<ToolName>(),
        Err(InvalidArguments::ToolNameLength)
    );
    assert_eq!("".parse::<ToolName>(), Err(InvalidArguments::ToolNameLength));
    for control in ["a\0b", "a\n", "\u{7f}", "\u{85}"] {
        assert_eq!(
            control.parse::<ToolName>(),
            Err(InvalidArguments::ToolNameControl)
        );
    }
    assert!(serde_json::from_str::<ToolName>("\"\"").is_err());
}

#[test]
fn arguments_are_an_object() {
    for other in ["[]", "null", "1", "\"{}\"", "true"] {
        let refused = Arguments::read(other.as_bytes(), ReadLimits::bytes(100)).unwrap_err();
        assert!(matches!(refused, InvalidArguments::NotAnObject(_)), "{other}");
        assert_eq!(refused.code(), "invalid_arguments");
    }
    let secret = Arguments::read(br#"{"hunter2":1,"hunter2":2}"#, ReadLimits::bytes(100)).unwrap_err();
    assert!(!secret.to_string().contains("hunter2"), "{secret}");
    assert_eq!(
        format!("{:?}", arguments(r#"{"a":"hunter2"}"#)),
        "Arguments(15 bytes)"
    );
    assert_eq!(
        serde_json::to_string(&arguments(r#"{"b":1.0,"a":1e2}"#)).unwrap(),
        r#"{"a":100,"b":1}"#
    );
}

proptest! {
    #[test]
    fn does_not_depend_on_key_order(mut members in prop::collection::btree_map("[a-z\u{e000}-\u{10ffff}]{1,4}", any::<i64>(), 0..8)
        .prop_map(|map| map.into_iter().collect::<Vec<_>>())) {
        let spell = |members: &[(String, i64)]| {
            let inner: Vec<_> = members.iter().map(|(key, value)| format!("{}:{value}", Json::from(key.as_str()))).collect();
            format!("{{{}}}", inner.join(","))
        };
        let first = digest("t", &spell(&members));
        members.reverse();
        prop_assert_eq!(first, digest("t", &spell(&members)));
    }
}
