use proptest::prelude::*;

use super::{Misplaced, Outgoing, Plan};
use crate::config::http_tool::{ArgPath, Body, Place, Placed};
use crate::gate::Json;
use crate::gate::json::ReadLimits;

fn placed(place: Place, name: &str) -> Placed {
    Placed {
        place,
        name: name.to_owned(),
        arg: ArgPath::top(name),
    }
}

fn items(body: Body) -> Plan {
    Plan {
        address: "https://api.example.com/v1/items/{id}".parse().unwrap(),
        placed: vec![
            placed(Place::Path, "id"),
            placed(Place::Query, "tag"),
            placed(Place::Query, "filter"),
            placed(Place::Header, "X-Trace"),
        ],
        body,
    }
}

fn read(text: &str) -> Json {
    Json::read(text.as_bytes(), ReadLimits::bytes(100_000)).unwrap()
}

fn sent(plan: &Plan, args: &str) -> Result<Outgoing, Misplaced> {
    plan.request(&read(args), args)
}

#[test]
fn every_argument_goes_where_it_belongs() {
    let args =
        r#"{"X-Trace":"a b","filter":{"from":1e21,"open":true},"id":"a/b","lines":[1],"tag":["x","y&z=1"]}"#;
    let Outgoing { url, headers, body } = sent(&items(Body::Rest), args).unwrap();
    assert_eq!(
        url.as_str(),
        "https://api.example.com/v1/items/a%2Fb?tag=x&tag=y%26z%3D1&from=1e%2B21&open=true"
    );
    assert_eq!(headers.len(), 1);
    assert_eq!(
        (headers[0].0.as_str(), headers[0].1.as_bytes()),
        ("x-trace", &b"a b"[..])
    );
    assert_eq!(body.as_deref(), Some(r#"{"lines":[1]}"#));
    let bare = sent(&items(Body::Nothing), r#"{"id":7,"tag":null}"#).unwrap();
    assert_eq!(bare.url.as_str(), "https://api.example.com/v1/items/7");
    assert_eq!((bare.headers.len(), bare.body), (0, None));
}

#[test]
fn without_a_place_the_body_is_what_is_stored() {
    let plan = Plan {
        address: "https://api.example.com/pay".parse().unwrap(),
        placed: Vec::new(),
        body: Body::Rest,
    };
    let args = r#"{ "z":1, "a":1E21 }"#;
    assert_eq!(sent(&plan, args).unwrap().body.as_deref(), Some(args));
}

#[test]
fn groups_of_arguments_are_taken_apart() {
    let plan = Plan {
        address: "https://api.example.com/v1/items/{id}".parse().unwrap(),
        placed: vec![
            Placed {
                arg: ArgPath::below("path", "id"),
                ..placed(Place::Path, "id")
            },
            Placed {
                arg: ArgPath::below("query", "id"),
                ..placed(Place::Query, "id")
            },
        ],
        body: Body::Member(ArgPath::top("body")),
    };
    let both = sent(&plan, r#"{"body":{"id":3},"path":{"id":1},"query":{"id":2}}"#).unwrap();
    assert_eq!(both.url.as_str(), "https://api.example.com/v1/items/1?id=2");
    assert_eq!(both.body.as_deref(), Some(r#"{"id":3}"#));
    assert_eq!(sent(&plan, r#"{"path":{"id":1}}"#).unwrap().body, None);
    for (args, left) in [
        (r#"{"path":{"id":1},"id":2}"#, "/id"),
        (r#"{"path":{"id":1,"x":2}}"#, "/path/x"),
        (r#"{"path":{"id":1},"query":5}"#, "/query"),
    ] {
        assert_eq!(
            sent(&plan, args),
            Err(Misplaced::Unplaced(left.to_owned())),
            "{args}"
        );
    }
}

#[test]
fn what_cannot_be_sent_is_told_without_its_value() {
    let plan = items(Body::Nothing);
    for args in [
        "{}",
        r#"{"id":null}"#,
        r#"{"id":""}"#,
        r#"{"id":".."}"#,
        r#"{"id":["secret-value"]}"#,
        r#"{"id":1,"tag":[["secret-value"]]}"#,
        r#"{"id":1,"tag":[null]}"#,
        r#"{"id":1,"filter":{"tag":"secret-value"}}"#,
        r#"{"id":1,"filter":{"a":{"b":"secret-value"}}}"#,
        r#"{"id":1,"X-Trace":"secret-value\r\nX-Admin: 1"}"#,
        r#"{"id":1,"X-Trace":"secret-value\n"}"#,
        r#"{"id":1,"X-Trace":" secret-value"}"#,
        r#"{"id":1,"X-Trace":"secret-value\u0000"}"#,
        r#"{"id":1,"X-Trace":"\u00e9"}"#,
        r#"{"id":1,"X-Trace":""}"#,
        r#"{"id":1,"X-Trace":{"a":1}}"#,
        r#"{"id":1,"other":"secret-value"}"#,
    ] {
        let why = sent(&plan, args).expect_err(args).to_string();
        assert!(!why.contains("secret-value"), "{why}");
    }
    let many = format!("{{\"id\":1,\"tag\":[{}1]}}", "1,".repeat(600));
    assert_eq!(sent(&plan, &many), Err(Misplaced::ManyPairs));
    assert_eq!(sent(&plan, "[]"), Err(Misplaced::NotAnObject));
}

fn value() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        Just("..".to_owned()),
        Just("../../admin?x=1#y".to_owned()),
        Just("a\r\nHost: evil.example".to_owned()),
        Just("@evil.example/".to_owned()),
        any::<String>(),
    ];
    let scalar = prop_oneof![
        text.prop_map(|text| Json::from(text).canonical()),
        any::<i64>().prop_map(|number| number.to_string()),
        Just("true".to_owned()),
        Just("null".to_owned()),
    ];
    let list =
        proptest::collection::vec(scalar.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(",")));
    let object = (any::<String>(), scalar.clone())
        .prop_map(|(key, value)| format!("{{{}:{value}}}", Json::from(key).canonical()));
    prop_oneof![scalar, list, object]
}

proptest! {
    /// Method and host are no part of what arguments lead to at all; the rest keeps its structure whatever they are.
    #[test]
    fn no_arguments_change_host_path_or_headers(
        id in value(), tag in value(), filter in value(), trace in value(), key in any::<String>(), rest in value()
    ) {
        let text = format!(
            "{{\"id\":{id},\"tag\":{tag},\"filter\":{filter},\"X-Trace\":{trace},{}:{rest}}}",
            Json::from(format!("k{key}")).canonical()
        );
        let args = read(&text);
        if let Ok(out) = items(Body::Rest).request(&args, &text) {
            prop_assert_eq!(out.url.origin().ascii_serialization(), "https://api.example.com");
            prop_assert!(out.url.fragment().is_none() && out.url.username().is_empty());
            let segments: Vec<&str> = out.url.path_segments().unwrap().collect();
            prop_assert_eq!(&segments[..2], &["v1", "items"]);
            prop_assert_eq!(segments.len(), 3);
            prop_assert!(!matches!(segments[2], "" | "." | ".."));
            prop_assert!(out.headers.len() <= 1);
            for (name, value) in &out.headers {
                prop_assert_eq!(name.as_str(), "x-trace");
                prop_assert!(value.as_bytes().iter().all(|byte| (0x20..0x7f).contains(byte)));
            }
            let body = read(out.body.as_deref().unwrap());
            prop_assert_eq!(body.as_object().unwrap().len(), 1);
            prop_assert_eq!(items(Body::Rest).request(&args, &text), Ok(out));
        }
    }
}
