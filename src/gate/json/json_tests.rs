//! The reader, the spellings and the pointers, with the inputs of RFC 8785 and of reported faults.

use proptest::prelude::*;

use super::*;
use crate::gate::number::NumberProblem;

const LIMITS: ReadLimits = ReadLimits::bytes(1 << 20);

fn read(text: &str) -> Json {
    Json::read(text.as_bytes(), LIMITS).unwrap()
}

fn problem(bytes: impl AsRef<[u8]>) -> (JsonProblem, usize) {
    let error = Json::read(bytes.as_ref(), LIMITS).unwrap_err();
    (error.problem, error.at)
}

#[test]
fn follows_the_example_of_rfc_8785() {
    let written = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    // 333333333.33333329 is not what its nearest double spells, so here it keeps its digits.
    let expected = r#"{"literals":[null,true,false],"numbers":[333333333.33333329,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
    assert_eq!(read(written).canonical(), expected);
}

#[test]
fn sorts_keys_by_utf16_code_units() {
    let written = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
    assert_eq!(
        read(written).canonical(),
        "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}"
    );
}

#[test]
fn spells_strings_with_the_shortest_escapes() {
    let written = r#""\u0000\u0001\b\t\n\u000b\f\r\u001f\u007f\u2028\ud834\udd1e\/""#;
    assert_eq!(
        read(written).canonical(),
        "\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\u{7f}\u{2028}𝄞/\""
    );
}

#[test]
fn refuses_what_two_readers_could_understand_differently() {
    use JsonProblem::*;
    let table: &[(&[u8], JsonProblem, usize)] = &[
        (b"", Ends, 0),
        (b"  ", Ends, 2),
        (b"\xef\xbb\xbf{}", Unexpected, 0),
        (b"{\"a\":\"\xff\"}", NotUtf8, 6),
        (b"\"\xed\xa0\x80\"", NotUtf8, 1),
        (br#"{"a":1,"a":2}"#, DuplicateKey, 7),
        (br#"{"a":1,"b":{"c":0,"\u0063":0}}"#, DuplicateKey, 18),
        (br#"["\ud83d"]"#, LoneSurrogate, 2),
        (br#"["\udc00\ud83d"]"#, LoneSurrogate, 2),
        (br#"["\ud83d\u0041"]"#, LoneSurrogate, 2),
        (br#"["\ud83dxxxxxx"]"#, LoneSurrogate, 2),
        (br#"["\ud83d\ud83d\ude00"]"#, LoneSurrogate, 2),
        (b"\"a\x00\"", ControlCharacter, 2),
        (b"\"a\nb\"", ControlCharacter, 2),
        (br#""\x41""#, Escape, 1),
        (br#""\u12"#, Escape, 1),
        (br#""\u12g4""#, Escape, 1),
        (br#""\"#, Ends, 1),
        (br#""open"#, Ends, 5),
        (b"{} {}", Trailing, 3),
        (b"1 2", Trailing, 2),
        (b"{}\0", Trailing, 2),
        (b"nul", Unexpected, 0),
        (b"True", Unexpected, 0),
        (b"NaN", Unexpected, 0),
        (b"[1,]", Unexpected, 3),
        (b"{\"a\":1,}", Unexpected, 7),
        (b"{a:1}", Unexpected, 1),
        (b"{'a':1}", Unexpected, 1),
        (b"{\"a\" 1}", Unexpected, 5),
        (b"[1 2]", Unexpected, 3),
        (b"[1", Ends, 2),
        (b"[1}", Unexpected, 2),
        (b"[/**/1]", Unexpected, 1),
        (b"[\x0b1]", Unexpected, 1),
        (b"[01]", Number(NumberProblem::Malformed), 1),
        (b"{\"a\": 1e400}", Number(NumberProblem::TooManyDigits), 6),
    ];
    for (bytes, expected, at) in table {
        assert_eq!(
            problem(bytes),
            (*expected, *at),
            "{}",
            String::from_utf8_lossy(bytes)
        );
    }
}

#[test]
fn holds_to_its_limits() {
    let limits = ReadLimits::bytes(10).shallower(2);
    assert!(Json::read(b"[[1234567]]"[..].as_ref(), limits).is_err());
    assert_eq!(
        Json::read(b"[[123456]]", limits).unwrap().canonical(),
        "[[123456]]"
    );
    assert_eq!(
        Json::read(b"[[[1]]]", limits).unwrap_err(),
        JsonError {
            problem: JsonProblem::TooDeep(2),
            at: 2
        }
    );
    assert_eq!(ReadLimits::bytes(1).shallower(1000), ReadLimits::bytes(1));
}

#[test]
fn reads_128_levels_and_no_more() {
    let fixture = |name: &str| {
        let path = format!(
            "{}/tests/fixtures/bugs/RH-207/args_{name}.json",
            env!("CARGO_MANIFEST_DIR")
        );
        Json::read(&std::fs::read(path).unwrap(), LIMITS).map_err(|error| error.problem)
    };
    for name in ["depth_127", "depth_128"] {
        let value = fixture(name).unwrap();
        assert_eq!(read(&value.canonical()), value);
        assert_eq!(read(&value.pretty()), value);
    }
    for name in ["depth_129", "depth_5000", "object_depth_200"] {
        assert_eq!(fixture(name), Err(JsonProblem::TooDeep(128)), "{name}");
    }
    assert_eq!(problem("[".repeat(500_000)).0, JsonProblem::TooDeep(128));
    assert_eq!(problem("{\"a\":".repeat(100_000)).0, JsonProblem::TooDeep(128));
}

#[test]
fn keeps_nul_and_its_look_alike_apart() {
    let fixture = |name: &str| {
        let path = format!("{}/tests/fixtures/bugs/RH-201/{name}", env!("CARGO_MANIFEST_DIR"));
        Json::read(std::fs::read(path).unwrap().trim_ascii_end(), LIMITS)
    };
    let nul = fixture("args_nul_escape.json").unwrap();
    assert_eq!(nul.get("note").unwrap().as_str(), Some("a\0b"));
    assert_eq!(
        nul.canonical(),
        r#"{"note":"a\u0000b","path":"/srv/in\u0000box.txt"}"#
    );
    let literal = fixture("args_literal_backslash.json").unwrap();
    assert_eq!(literal.get("regex").unwrap().as_str(), Some("\\u0000"));
    assert!(literal.canonical().contains(r#""regex":"\\u0000""#));
    assert_eq!(
        fixture("args_lone_surrogate.json").unwrap_err().problem,
        JsonProblem::LoneSurrogate
    );
    assert_eq!(
        fixture("args_raw_control.bin").unwrap_err().problem,
        JsonProblem::ControlCharacter
    );
}

#[test]
fn keeps_long_texts_of_any_width() {
    for name in ["cjk_0", "cjk_1", "cjk_2", "cjk_3", "emoji", "combining"] {
        let path = format!(
            "{}/tests/fixtures/bugs/RH-206/args_{name}.json",
            env!("CARGO_MANIFEST_DIR")
        );
        let bytes = std::fs::read(path).unwrap();
        let value = Json::read(&bytes, LIMITS).unwrap();
        assert_eq!(value.canonical().as_bytes(), bytes.trim_ascii_end(), "{name}");
        for cut in 0..64 {
            assert!(Json::read(&bytes[..bytes.len() / 2 + cut], LIMITS).is_err());
        }
    }
}

#[test]
fn keeps_composed_and_decomposed_text_apart() {
    assert_ne!(read(r#""\u00e9""#), read(r#""e\u0301""#));
}

#[test]
fn lays_out_for_people() {
    let value = read(r#"{"b":[1,{"c":[]}],"a":{}}"#);
    assert_eq!(
        value.pretty(),
        "{\n  \"a\": {},\n  \"b\": [\n    1,\n    {\n      \"c\": []\n    }\n  ]\n}"
    );
}

#[test]
fn serializes_numbers_as_they_are() {
    let value = read(r#"{"n":12345678901234567890123,"s":"\u0000"}"#);
    assert_eq!(serde_json::to_string(&value).unwrap(), value.canonical());
}

#[test]
fn follows_the_pointers_of_rfc_6901() {
    let value = read(
        r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8,"*":9}"#,
    );
    let table = [
        ("/foo/0", Some("\"bar\"")),
        ("/foo", Some("[\"bar\",\"baz\"]")),
        ("/", Some("0")),
        ("/a~1b", Some("1")),
        ("/c%d", Some("2")),
        ("/ ", Some("7")),
        ("/m~0n", Some("8")),
        ("/*", Some("9")),
        ("/foo/2", None),
        ("/foo/00", None),
        ("/foo/-", None),
        ("/foo/+1", None),
        ("/foo/", None),
        ("/foo/99999999999999999999999", None),
        ("/foo/0/x", None),
        ("foo", None),
        ("/m~2n", None),
        ("/m~", None),
    ];
    for (pointer, expected) in table {
        assert_eq!(
            value.pointer(pointer).map(Json::canonical).as_deref(),
            expected,
            "{pointer}"
        );
    }
    assert_eq!(value.pointer(""), Some(&value));
}

#[test]
fn refuses_malformed_pointers() {
    assert_eq!("a".parse::<Pointer>(), Err(PointerProblem::NoSlash));
    assert_eq!("/a~".parse::<Pointer>(), Err(PointerProblem::Escape));
    assert_eq!("/a~2".parse::<Pointer>(), Err(PointerProblem::Escape));
    assert_eq!("/a".repeat(129).parse::<Pointer>(), Err(PointerProblem::TooLong));
    assert_eq!("/a~01/b".parse::<Pointer>().unwrap().to_string(), "/a~01/b");
}

/// JSON texts in many spellings of the same values: blanks, escapes and key order vary.
fn json() -> impl Strategy<Value = Json> {
    let number = prop_oneof![
        any::<i64>().prop_map(Json::from),
        "-?(0|[1-9][0-9]{0,19})(\\.[0-9]{1,20})?([eE][+-]?[0-9])?"
            .prop_filter_map("too many digits", |text| Number::parse(&text)
                .ok()
                .map(Json::Number)),
    ];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        number,
        any::<String>().prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::vec((any::<String>(), inner), 0..6).prop_map(Json::object),
        ]
    })
}

fn respell(value: &Json) -> String {
    match value {
        Json::Object(object) => {
            let members: Vec<_> = object
                .iter()
                .rev()
                .map(|(key, value)| format!("\t{} :\r\n{}", respell(&key.into()), respell(value)))
                .collect();
            format!("{{ {} }}", members.join(" , "))
        }
        Json::Array(items) => format!(
            "[ {} ]",
            items.iter().map(respell).collect::<Vec<_>>().join("\n,")
        ),
        Json::String(text) => {
            let units: Vec<_> = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
            format!("\"{}\"", units.concat())
        }
        Json::Number(number) => match number.as_i64() {
            Some(0) => "-0.00E3".to_owned(),
            Some(whole) if whole.abs() < 1 << 50 => format!("{whole}0.0e-1"),
            _ => number.to_string(),
        },
        other => other.canonical(),
    }
}

proptest! {
    #[test]
    fn canonical_form_is_a_fixed_point(value in json()) {
        let canonical = value.canonical();
        let again = read(&canonical);
        prop_assert_eq!(again.canonical(), canonical);
        prop_assert_eq!(again, value);
    }

    #[test]
    fn every_spelling_has_one_canonical_form(value in json()) {
        prop_assert_eq!(read(&respell(&value)).canonical(), value.canonical());
        prop_assert_eq!(read(&value.pretty()), value);
    }

    #[test]
    fn never_panics_on_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Json::read(&bytes, LIMITS);
    }

    #[test]
    fn agrees_with_another_reader_where_it_accepts(text in r#"([\[\]{}:," \\u0-9aeE+.-]|"a"|"\\ud83d"|null|true){0,40}"#) {
        if let Ok(value) = Json::read(text.as_bytes(), LIMITS) {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
            prop_assert_eq!(read(&value.canonical()), value);
        }
    }

    #[test]
    fn doubles_are_spelled_as_the_shortest(bits in any::<u64>()) {
        let double = f64::from_bits(bits);
        prop_assume!(double.is_finite());
        let number = Number::parse(&format!("{double:e}")).unwrap();
        prop_assert_eq!(number.as_str().parse::<f64>().unwrap().to_bits(), (double + 0.0).to_bits());
    }
}
