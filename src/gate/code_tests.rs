use proptest::prelude::*;

use super::*;

/// The secret of RFC 6238, appendix B, for SHA-1: the ASCII text 12345678901234567890.
const RFC: &str = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

fn key() -> CodeKey {
    CodeKey::from_base32(RFC).unwrap()
}

fn at(seconds: i64) -> UtcMillis {
    UtcMillis(seconds * 1_000)
}

#[test]
fn the_codes_are_those_of_the_rfc() {
    // RFC 6238, appendix B, its eight digits cut to the last six (RFC 4226, section 5.3).
    for (seconds, code) in [
        (59, "287082"),
        (1_111_111_109, "081804"),
        (1_111_111_111, "050471"),
        (1_234_567_890, "005924"),
        (2_000_000_000, "279037"),
        (20_000_000_000, "353130"),
    ] {
        assert_eq!(key().shown_at(at(seconds)), code, "{seconds}");
        assert_eq!(key().step_of(code, at(seconds)), Some(seconds / 30));
    }
}

#[test]
fn a_code_is_good_for_its_step_and_one_on_each_side() {
    let now = at(1_111_111_110);
    let code = key().shown_at(now);
    for (steps, good) in [(-2, false), (-1, true), (0, true), (1, true), (2, false)] {
        let then = UtcMillis(now.0 + steps * STEP_MS);
        assert_eq!(key().step_of(&code, then).is_some(), good, "{steps}");
        if good {
            assert_eq!(
                key().step_of(&code, then),
                Some(now.0 / STEP_MS),
                "it keeps its own step"
            );
        }
    }
}

#[test]
fn what_is_no_code_is_none() {
    let now = at(59);
    for code in [
        "",
        "287",
        "28708",
        "2870822",
        "28708a",
        "287-082",
        "-287082",
        "+28708",
        "２８７０８２",
        "287082\n",
        "4294967296",
    ] {
        assert_eq!(key().step_of(code, now), None, "{code:?}");
    }
    assert_eq!(key().step_of(" 287 082 ", now), Some(1));
    for instant in [i64::MIN, -1, 0, i64::MAX] {
        let _no_panic = key().step_of("287082", UtcMillis(instant));
    }
}

#[test]
fn a_secret_is_read_as_apps_show_it_or_refused() {
    let spaced = "gezd gnbv gy3t qojq gezd gnbv gy3t qojq";
    assert_eq!(CodeKey::from_base32(spaced), Ok(key()));
    assert_eq!(CodeKey::from_base32(&format!("{RFC}======")), Ok(key()));
    for (text, why) in [
        ("", NotACodeKey::TooShort),
        ("GEZDGNBVGY3TQOJQGEZDGNBV", NotACodeKey::TooShort),
        ("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJ1", NotACodeKey::NotBase32),
        ("GEZDGNBVGY3TQOJQ=GEZDGNBVGY3TQOJQ", NotACodeKey::NotBase32),
    ] {
        assert_eq!(CodeKey::from_base32(text), Err(why), "{text}");
    }
    assert_eq!(
        CodeKey::from_base32(&"A".repeat(1_000)),
        Err(NotACodeKey::TooLong)
    );
    assert_eq!(format!("{:?}", key()), "CodeKey(…)");
}

proptest! {
    #[test]
    fn anything_is_read_or_refused(text in "\\PC{0,40}", code in "\\PC{0,12}", now in any::<i64>()) {
        let _no_panic = CodeKey::from_base32(&text);
        if let Some(step) = key().step_of(&code, UtcMillis(now)) {
            prop_assert!((step - now.div_euclid(STEP_MS)).abs() <= DRIFT);
        }
    }
}
