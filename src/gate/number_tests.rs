//! Spellings of numbers, against RFC 8785 appendix B and the limits that `gatepost openapi` states.

use super::*;

fn canonical(text: &str) -> String {
    Number::parse(text).map_or_else(|problem| format!("{problem:?}"), |number| number.to_string())
}

#[test]
fn spells_what_a_double_holds_as_ecmascript_does() {
    let table = [
        ("0", "0"),
        ("-0", "0"),
        ("-0.0e7", "0"),
        ("1.0", "1"),
        ("1e2", "100"),
        ("50000.00", "50000"),
        ("6E+4", "60000"),
        ("0.1", "0.1"),
        ("1e-6", "0.000001"),
        ("1e-7", "1e-7"),
        ("0.00000012", "1.2e-7"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("1000000000000000000000", "1e+21"),
        ("-1.5E21", "-1.5e+21"),
        ("5e-324", "5e-324"),
        ("-5e-324", "-5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("9007199254740992", "9007199254740992"),
        ("-9007199254740992", "-9007199254740992"),
        ("295147905179352830000", "295147905179352830000"),
        ("9.999999999999997e22", "9.999999999999997e+22"),
        ("1e23", "1e+23"),
        ("1.0000000000000001e23", "1.0000000000000001e+23"),
        ("999999999999999700000", "999999999999999700000"),
        ("0.000001", "0.000001"),
        ("333333333.3333332", "333333333.3333332"),
        ("-0.0000033333333333333333", "-0.0000033333333333333333"),
        ("1424953923781206.2", "1424953923781206.2"),
        ("1.7881393432617188e-7", "1.7881393432617188e-7"),
    ];
    for (written, expected) in table {
        assert_eq!(canonical(written), expected, "{written}");
        assert!(
            Number::parse(written).unwrap().as_held_f64().is_some(),
            "{written}"
        );
    }
}

#[test]
fn keeps_what_no_double_holds_as_plain_digits() {
    let table = [
        ("9007199254740993", "9007199254740993"),
        ("12345678901234567890123", "12345678901234567890123"),
        ("1.2345678901234567890123e22", "12345678901234567890123"),
        ("295147905179352825856", "295147905179352825856"),
        ("50000.000000000000000001", "50000.000000000000000001"),
        ("0.10000000000000000000100", "0.100000000000000000001"),
        (
            "-1234567890123456789012345678901234567890",
            "-1234567890123456789012345678901234567890",
        ),
        ("1.2345678901234567890e-7", "0.0000001234567890123456789"),
    ];
    for (written, expected) in table {
        assert_eq!(canonical(written), expected, "{written}");
        assert_eq!(Number::parse(written).unwrap().as_held_f64(), None, "{written}");
    }
}

#[test]
fn counts_forty_digits_as_written_and_written_out() {
    let held = |count: usize| format!("1{}", "0".repeat(count - 1));
    assert_eq!(canonical(&held(40)), "1e+39");
    assert_eq!(canonical(&held(41)), "TooManyDigits");
    assert_eq!(
        canonical(&format!("0.{}", "1".repeat(40))),
        format!("0.{}", "1".repeat(40))
    );
    for refused in [
        format!("0.{}", "1".repeat(41)),
        format!("1.{}", "0".repeat(40)),
        format!("0.{}1", "0".repeat(40)),
        "1e400".to_owned(),
        "-1e400".to_owned(),
        "1e-400".to_owned(),
        "1e99999999999999999999999".to_owned(),
        "1e-99999999999999999999999".to_owned(),
        "12345678901234567890123e20".to_owned(),
        "1.2345678901234567890123e-30".to_owned(),
    ] {
        assert_eq!(canonical(&refused), "TooManyDigits", "{refused}");
    }
    assert_eq!(canonical("0e99999999999999999999999"), "0");
    assert_eq!(
        canonical("1e0000000000000000000000000000000000000000000001"),
        "10"
    );
}

#[test]
fn refuses_what_the_grammar_does_not_know() {
    for malformed in [
        "", "-", "+1", "01", "-01", "00", ".5", "1.", "1.e3", "1e", "1e+", "0x1", "1_0", "NaN", "Infinity",
        "1 ",
    ] {
        assert_eq!(canonical(malformed), "Malformed", "{malformed}");
    }
}

#[test]
fn tells_whole_numbers() {
    assert_eq!(Number::parse("1e3").unwrap().as_i64(), Some(1000));
    assert_eq!(
        Number::parse("-9223372036854775808").unwrap().as_i64(),
        Some(i64::MIN)
    );
    assert_eq!(Number::parse("9223372036854775808").unwrap().as_i64(), None);
    assert_eq!(Number::parse("0.5").unwrap().as_i64(), None);
    for value in [0, -1, i64::MIN, i64::MAX, 9_007_199_254_740_993] {
        assert_eq!(Number::from(value), Number::parse(&value.to_string()).unwrap());
    }
}
