use proptest::prelude::*;

use super::{FillError, Template, TemplateError, escaped};

fn template(text: &str) -> Template {
    text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
}

fn filled(text: &str, value: &str) -> Result<String, FillError> {
    let filled = template(text).fill(|_| Some(value), "");
    filled.map(|url| url.to_string()).map_err(|(_, why)| why)
}

#[test]
fn an_address_is_shown_as_it_was_written() {
    for text in [
        "http://127.0.0.1:9002/pay",
        "https://api.example.com/",
        "https://api.example.com/v1/items/{id}",
        "https://api.example.com/v1/items/{id}/",
        "https://[::1]:8443/a/{from}..{to}.json",
        "https://api.example.com/a%2Fb/c;d=1/@me",
    ] {
        assert_eq!(template(text).to_string(), text);
    }
    assert_eq!(
        template("https://Example.COM").to_string(),
        "https://example.com/"
    );
    assert_eq!(template("https://h/caf\u{e9}").to_string(), "https://h/caf%C3%A9");
}

#[test]
fn what_is_no_address_is_refused() {
    for (text, why) in [
        ("/items/{id}", TemplateError::Scheme),
        ("ftp://h/", TemplateError::Scheme),
        ("https://{host}/items", TemplateError::Slot),
        ("https://api.{zone}.example.com/", TemplateError::Slot),
        ("https://h:{port}/", TemplateError::Slot),
        ("https://user:pw@h/", TemplateError::Credentials),
        ("https://user@h/", TemplateError::Credentials),
        ("https://h/a?key=1", TemplateError::Query),
        ("https://h?key=1", TemplateError::Query),
        ("https://h/a#b", TemplateError::Query),
        ("https://h/{a", TemplateError::Slot),
        ("https://h/a}", TemplateError::Slot),
        ("https://h/{}", TemplateError::Slot),
        ("https://h/{a{b}}", TemplateError::Slot),
        ("https://h/{a}/{a}", TemplateError::Twice),
        ("https://h//evil.example/x", TemplateError::Path),
        ("https://h/a//b", TemplateError::Path),
        ("https://h/../admin", TemplateError::Path),
        ("https://h/./a", TemplateError::Path),
        ("https://h/%2e%2E/a", TemplateError::Path),
        ("https://h/a b", TemplateError::Path),
        ("https://h/a\\b", TemplateError::Path),
        ("https://h\\evil/b", TemplateError::Path),
        ("https://h/a%zz", TemplateError::Path),
        ("https://h/a%2", TemplateError::Path),
        ("https://h/a\u{7}", TemplateError::Path),
        ("https://h\n/a", TemplateError::Path),
    ] {
        assert_eq!(text.parse::<Template>(), Err(why), "{text}");
    }
    assert!(matches!(
        "https://".parse::<Template>(),
        Err(TemplateError::Address(_))
    ));
}

#[test]
fn a_value_stays_in_its_segment() {
    let at = "https://h/v1/items/{id}/lines";
    for (value, path) in [
        ("42", "42"),
        ("a/b", "a%2Fb"),
        ("a?x=1#y", "a%3Fx%3D1%23y"),
        ("a%2Fb", "a%252Fb"),
        ("@evil.example", "%40evil.example"),
        ("//evil.example", "%2F%2Fevil.example"),
        ("a b+c", "a%20b%2Bc"),
        ("1..2", "1..2"),
        ("\u{e9}", "%C3%A9"),
        ("...", "..."),
        ("{id}", "%7Bid%7D"),
    ] {
        assert_eq!(
            filled(at, value).as_deref(),
            Ok(&*format!("https://h/v1/items/{path}/lines"))
        );
    }
    for (value, why) in [
        ("", FillError::Empty),
        (".", FillError::Climbs),
        ("..", FillError::Climbs),
        ("../admin", FillError::Climbs),
        ("a/../../admin", FillError::Climbs),
        ("a\\..\\b", FillError::Climbs),
        ("..;x=1/admin", FillError::Climbs),
        ("%2e%2e", FillError::Climbs),
        ("%2E%2e%2fadmin", FillError::Climbs),
        ("%252e%252e%252fadmin", FillError::Climbs),
        ("%25252525252525252e", FillError::Climbs),
        ("a\r\nHost: evil", FillError::Control),
        ("a%0d%0ab", FillError::Control),
        ("a\0", FillError::Control),
        (&"x".repeat(9_000), FillError::Long),
    ] {
        assert_eq!(filled(at, value), Err(why), "{value:?}");
    }
    let two = template("https://h/{a}{b}");
    let (_, why) = two.fill(|_| Some("."), "").unwrap_err();
    assert_eq!(why, FillError::Climbs, "each is judged alone already");
    assert_eq!(
        two.fill(|name| (name == "a").then_some("x"), ""),
        Err(("b".to_owned(), FillError::Missing))
    );
}

#[test]
fn a_path_goes_behind_the_one_of_the_server() {
    let base = template("https://h/v1/");
    assert_eq!(
        base.joined("/items/{id}").unwrap().to_string(),
        "https://h/v1/items/{id}"
    );
    assert_eq!(
        template("https://h").joined("/items/{id}").unwrap().to_string(),
        "https://h/items/{id}"
    );
    for path in ["items", "//evil.example/x", "/../x", "/a?b=1", "@evil/x", ""] {
        assert!(base.joined(path).is_err(), "{path}");
    }
}

/// Values that look like the parts of addresses, and any other.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("..".to_owned()),
        Just("/".to_owned()),
        Just("%2f".to_owned()),
        Just("%2e".to_owned()),
        Just("?".to_owned()),
        Just("#".to_owned()),
        Just("\\".to_owned()),
        Just("@h".to_owned()),
        Just(":80".to_owned()),
        any::<char>().prop_map(String::from),
        "[a-z0-9.]{0,3}",
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_value_changes_host_path_structure_or_query(one in hostile(), other in hostile(), asked in hostile()) {
        let template = template("https://api.example.com:8443/v1/{a}/x-{b}.json");
        let query = format!("q={}", escaped(&asked));
        let values = |name: &str| Some(if name == "a" { one.as_str() } else { other.as_str() });
        if let Ok(url) = template.fill(values, &query) {
            prop_assert_eq!(url.host_str(), Some("api.example.com"));
            prop_assert_eq!(url.port(), Some(8443));
            prop_assert_eq!(url.scheme(), "https");
            prop_assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
            let segments: Vec<&str> = url.path_segments().unwrap().collect();
            prop_assert_eq!(segments.len(), 3);
            prop_assert_eq!(segments[0], "v1");
            prop_assert!(segments[2].strip_prefix("x-").is_some_and(|rest| rest.strip_suffix(".json").is_some()));
            prop_assert_eq!(segments[1], escaped(&one));
            prop_assert_eq!(url.query_pairs().collect::<Vec<_>>(), vec![("q".into(), asked.as_str().into())]);
        }
    }
}
