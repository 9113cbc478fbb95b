//! What may be edited, what stays hidden, and how changes read.

use proptest::prelude::*;

use super::*;
use crate::gate::json::ReadLimits;
use crate::gate::redact;

fn json(text: &str) -> Json {
    Json::read(text.as_bytes(), ReadLimits::bytes(10_000)).unwrap()
}

fn args(text: &str) -> Arguments {
    Arguments::read(text.as_bytes(), ReadLimits::bytes(10_000)).unwrap()
}

fn pointers(written: &[&str]) -> Vec<Pointer> {
    written.iter().map(|pointer| pointer.parse().unwrap()).collect()
}

fn terms(scope: EditScope) -> EditTerms {
    EditTerms { scope, carried: true }
}

#[test]
fn what_may_not_differ_is_named_with_what_may() {
    let proposed =
        json(r#"{"a":1,"b":{"c":2,"d":3},"card":{"number":"4111222233334444"},"items":[{"q":1}]}"#);
    let at = terms(EditScope::At(pointers(&["/b/c", "/items/*/q"])));
    let hidden = pointers(&["/card/number"]);
    let seen = redact(&proposed, &hidden).unwrap().canonical();
    for (edited, outside) in [
        (
            seen.replace(r#""a":1"#, r#""a":2"#)
                .replace(r#""c":2"#, r#""c":9"#),
            vec!["/a"],
        ),
        (
            seen.replace(r#""d":3"#, r#""d":4,"e~/f":5"#),
            vec!["/b/d", "/b/e~0~1f"],
        ),
        (
            seen.replace(r#"[{"q":1}]"#, r#"[{"q":1},{"q":2}]"#),
            vec!["/items"],
        ),
        (seen.replace(r#""q":1"#, r#""q":7"#), vec![]),
    ] {
        let (found, may) = at.outside(&proposed, &args(&edited), &hidden);
        assert_eq!(found, outside, "{edited}");
        assert_eq!(may, ["/b/c", "/items/*/q"]);
        assert_eq!(
            at.apply(&proposed, &args(&edited), &hidden).is_err(),
            !outside.is_empty()
        );
    }
    let any = terms(EditScope::Any).outside(&proposed, &args("{}"), &[]);
    assert_eq!(any, (vec![], vec![]));
}

#[test]
fn only_what_the_rule_names_may_differ() {
    let proposed = r#"{"a":1,"b":{"c":2,"d":3},"items":[{"n":1,"q":1},{"n":2,"q":2}]}"#;
    for (scope, edited, fine) in [
        (
            &["/a"][..],
            r#"{"a":9,"b":{"c":2,"d":3},"items":[{"n":1,"q":1},{"n":2,"q":2}]}"#,
            true,
        ),
        (
            &["/a"],
            r#"{"b":{"c":2,"d":3},"items":[{"n":1,"q":1},{"n":2,"q":2}]}"#,
            true,
        ),
        (
            &["/a"],
            r#"{"a":1,"b":{"c":9,"d":3},"items":[{"n":1,"q":1},{"n":2,"q":2}]}"#,
            false,
        ),
        (
            &["/a"],
            r#"{"a":1,"b":{"c":2,"d":3},"items":[{"n":1,"q":1},{"n":2,"q":2}],"z":1}"#,
            false,
        ),
        (
            &["/z"],
            r#"{"a":1,"b":{"c":2,"d":3},"items":[{"n":1,"q":1},{"n":2,"q":2}],"z":1}"#,
            true,
        ),
        (
            &["/b"],
            r#"{"a":1,"b":{"x":[]},"items":[{"n":1,"q":1},{"n":2,"q":2}]}"#,
            true,
        ),
        (
            &["/b/c"],
            r#"{"a":1,"b":{"c":[7],"d":3},"items":[{"n":1,"q":1},{"n":2,"q":2}]}"#,
            true,
        ),
        (
            &["/b/c"],
            r#"{"a":1,"b":7,"items":[{"n":1,"q":1},{"n":2,"q":2}]}"#,
            false,
        ),
        (
            &["/items/*/q"],
            r#"{"a":1,"b":{"c":2,"d":3},"items":[{"n":1,"q":7},{"n":2,"q":8}]}"#,
            true,
        ),
        (
            &["/items/*/q"],
            r#"{"a":1,"b":{"c":2,"d":3},"items":[{"n":7,"q":1},{"n":2,"q":2}]}"#,
            false,
        ),
        (
            &["/items/*/q"],
            r#"{"a":1,"b":{"c":2,"d":3},"items":[{"n":1,"q":1}]}"#,
            false,
        ),
        (
            &["/items/1/q", "/a"],
            r#"{"a":2,"b":{"c":2,"d":3},"items":[{"n":1,"q":1},{"n":2,"q":9}]}"#,
            true,
        ),
    ] {
        let applied = terms(EditScope::At(pointers(scope))).apply(&json(proposed), &args(edited), &[]);
        if fine {
            assert_eq!(applied.unwrap().canonical(), args(edited).canonical());
        } else {
            assert_eq!(applied, Err(EditProblem::OutOfScope), "{scope:?} {edited}");
        }
        let any = terms(EditScope::Any).apply(&json(proposed), &args(edited), &[]);
        assert_eq!(any.unwrap().canonical(), args(edited).canonical());
    }
}

#[test]
fn hidden_values_stay_as_they_are_and_where_they_are() {
    let proposed =
        json(r#"{"card":{"cvc":123,"number":"4111"},"to":["a","b"],"keys":[{"k":"x1"},{"k":"x2"}]}"#);
    let hidden = pointers(&["/card/number", "/keys/*/k", "/note"]);
    let shown = redact(&proposed, &hidden).unwrap();
    let any = terms(EditScope::Any);
    // What people see is sent back, one thing changed.
    let edited = shown.canonical().replace("123", "456");
    let applied = any.apply(&proposed, &args(&edited), &hidden).unwrap();
    assert_eq!(applied.canonical(), proposed.canonical().replace("123", "456"));
    // So is what stands there, by who sees it.
    let whole = proposed.canonical().replace("123", "456");
    assert_eq!(
        any.apply(&proposed, &args(&whole), &hidden).unwrap().canonical(),
        whole
    );
    for bad in [
        // Another value, none, one where none was.
        proposed.canonical().replace("4111", "4112"),
        proposed.canonical().replace(r#","number":"4111""#, ""),
        proposed.canonical().replace(r#""to""#, r#""note":"x","to""#),
        // A list of hidden values neither grows nor shrinks nor is anything else.
        proposed
            .canonical()
            .replace(r#"[{"k":"x1"},{"k":"x2"}]"#, r#"[{"k":"x2"}]"#),
        proposed
            .canonical()
            .replace(r#"[{"k":"x1"},{"k":"x2"}]"#, r#"[{"k":"x2"},{"k":"x1"}]"#),
        proposed.canonical().replace(r#"[{"k":"x1"},{"k":"x2"}]"#, "[]"),
        proposed.canonical().replace(r#"[{"k":"x1"},{"k":"x2"}]"#, "7"),
        proposed
            .canonical()
            .replace(r#"{"cvc":123,"number":"4111"}"#, "null"),
        r"{}".to_owned(),
    ] {
        assert_eq!(
            any.apply(&proposed, &args(&bad), &hidden),
            Err(EditProblem::Hidden),
            "{bad}"
        );
    }
    // A placeholder where nothing was hidden is a text like any other.
    let odd = shown
        .canonical()
        .replace("123", r#""‹hidden: string, 4 characters›""#);
    assert!(
        any.apply(&proposed, &args(&odd), &hidden)
            .unwrap()
            .canonical()
            .contains("‹hidden")
    );
}

#[test]
fn what_two_rules_let_people_change_is_what_both_name() {
    let at = |written: &[&str]| terms(EditScope::At(pointers(written)));
    let any = terms(EditScope::Any);
    assert_eq!(any.and(&any), Some(any.clone()));
    assert_eq!(any.and(&at(&["/a"])), Some(at(&["/a"])));
    assert_eq!(at(&["/a"]).and(&any), Some(at(&["/a"])));
    assert_eq!(at(&["/a", "/b"]).and(&at(&["/b", "/c"])), Some(at(&["/b"])));
    assert_eq!(at(&["/a"]).and(&at(&["/a/b"])), Some(at(&["/a/b"])));
    assert_eq!(
        at(&["/x/*/y"]).and(&at(&["/x/0"])),
        None,
        "neither lies within the other"
    );
    assert_eq!(at(&["/x/*"]).and(&at(&["/x/0/y"])), Some(at(&["/x/0/y"])));
    assert_eq!(at(&["/a"]).and(&at(&["/b"])), None);
    let deaf = EditTerms {
        carried: false,
        ..any.clone()
    };
    assert!(!any.and(&deaf).unwrap().carried);
}

#[test]
fn changes_read_as_lines_that_went_and_lines_that_came() {
    for (before, after, expected) in [
        (r#"{"a":1}"#, r#"{"a":1}"#, ""),
        (r#"{"a":1}"#, r#"{"a":2}"#, "- /a: 1\n+ /a: 2"),
        (r#"{"a":1}"#, r#"{"b":2}"#, "- /a: 1\n+ /b: 2"),
        (
            r#"{"a/b":{"~":"x"}}"#,
            r#"{"a/b":{"~":"y"}}"#,
            "- /a~1b/~0: \"x\"\n+ /a~1b/~0: \"y\"",
        ),
        (r#"{"l":[1,2]}"#, r#"{"l":[1,3]}"#, "- /l/1: 2\n+ /l/1: 3"),
        (r#"{"l":[1,2]}"#, r#"{"l":[1]}"#, "- /l: [1,2]\n+ /l: [1]"),
        (
            r#"{"t":"one\ntwo\nthree"}"#,
            r#"{"t":"one\nzwei\nthree"}"#,
            "  /t:\n- two\n+ zwei",
        ),
        (r#"{"t":"a"}"#, r#"{"t":"a\n"}"#, "  /t:\n+ "),
    ] {
        assert_eq!(
            diff(&changes(&json(before), &json(after))),
            expected.trim_end_matches('\n'),
            "{after}"
        );
    }
}

fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        (0_i64..5).prop_map(Json::from),
        "[a-c]{0,2}".prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Json::Array),
            prop::collection::vec(("[a-c]", inner), 0..3).prop_map(Json::object),
        ]
    })
}

fn object() -> impl Strategy<Value = Json> {
    prop::collection::vec(("[a-c]", value()), 0..4).prop_map(Json::object)
}

fn places() -> impl Strategy<Value = Vec<Pointer>> {
    let place = prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "0", "1", "*"]), 1..4);
    let place = place.prop_map(|segments| format!("/{}", segments.join("/")).parse().unwrap());
    prop::collection::vec(place, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// Whatever is edited: what is taken differs from what was proposed only where it may, and in nothing that is hidden.
    #[test]
    fn no_edit_reaches_beyond_its_places(before in object(), after in object(), scope in places(), hidden in places()) {
        prop_assume!(redact(&before, &hidden).is_ok());
        let edited = Arguments::try_from(after).unwrap();
        let scoped = terms(EditScope::At(scope.clone())).apply(&before, &edited, &hidden);
        if let Ok(applied) = scoped {
            let was = redact(&before, &hidden).unwrap();
            let is = redact(applied.json(), &hidden).expect("what is taken can be shown");
            // What differs differs where people can see it, and only where they may change it.
            for change in changes(&before, applied.json()) {
                let at: Pointer = change.at.parse().unwrap();
                prop_assert!(scope.iter().any(|place| covers(place, &at) || covers_some(place, &at)), "{} beyond {scope:?}", change.at);
                prop_assert!(!hidden.iter().any(|place| covers(place, &at) && place.segments().len() == at.segments().len()));
            }
            prop_assert_eq!(was == is, &before == applied.json(), "no change is unseen");
        }
        // Nothing changed is always taken.
        let same = Arguments::try_from(redact(&before, &hidden).unwrap()).unwrap();
        let unchanged = terms(EditScope::At(scope)).apply(&before, &same, &hidden).unwrap();
        prop_assert_eq!(unchanged.json(), &before);
    }
}

/// Whether a place lies below a change of a whole value: the change is then told for the value, and its parts were compared.
fn covers_some(place: &Pointer, changed: &Pointer) -> bool {
    covers(changed, place)
}
