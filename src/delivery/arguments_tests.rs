//! What arguments look like, and that nothing of them is hidden.

use gatepost_channel::{Body, Content, Fate, Inert};
use proptest::prelude::*;

use super::*;
use crate::delivery::phrase::{Language, Phrasebook};

fn laid_out(args: &str, hidden: &[&str]) -> Body {
    let book = Phrasebook::load().unwrap();
    let hidden: Vec<Pointer> = hidden.iter().map(|pointer| pointer.parse().unwrap()).collect();
    let json = Json::read(args.as_bytes(), ReadLimits::bytes(args.len())).unwrap();
    body(&json.canonical(), &hidden, &book.of(Language::En).parts)
}

/// Headings and contents, one below the other.
fn text(body: &Body) -> String {
    let parts = body
        .parts()
        .iter()
        .map(|part| format!("[{}]\n{}", part.heading, part.content.text()));
    parts.collect::<Vec<_>>().join("\n")
}

#[test]
fn flat_arguments_stand_in_rows() {
    let args = r#"{"amount": 51000.5, "payee": "R&D <b>", "urgent": true, "note": null, "tags": ["a", 1], "card": "4111"}"#;
    assert_eq!(
        text(&laid_out(args, &["/card"])),
        "[]\namount: 51000.5\ncard:   ‹hidden: string, 4 characters›\nnote:   null\npayee:  R&D <b>\ntags:   [\"a\",1]\nurgent: true"
    );
}

#[test]
fn a_text_cannot_pass_for_anything_else() {
    let args = r#"{"a": "50000", "b": "null", "c": "", "d": " x", "e": "[1]", "f": "\"q", "g": "1 and more", "a: b": 1, "é": "\u202e"}"#;
    assert_eq!(
        text(&laid_out(args, &[])),
        "[]\na:      \"50000\"\n\"a: b\": 1\nb:      \"null\"\nc:      \"\"\nd:      \" x\"\ne:      \"[1]\"\nf:      \"\\\"q\"\ng:      1 and more\né:      \\u{202E}"
    );
}

#[test]
fn a_command_comes_first_and_as_it_is() {
    let args = r#"{"description": "Restart", "command": "kubectl -n prod \\\n  rollout \"restart\"", "timeout": 60}"#;
    assert_eq!(
        text(&laid_out(args, &[])),
        "[Arguments: command (text, 37 characters)]\nkubectl -n prod \\\n  rollout \"restart\"\n[]\ndescription: Restart\ntimeout:     60"
    );
}

#[test]
fn an_edit_shows_what_it_changes() {
    let args = r#"{"file_path": "/etc/hosts", "old_string": "a\nb\nc", "new_string": "a\nc\nd", "replace_all": false}"#;
    assert_eq!(
        text(&laid_out(args, &[])),
        "[]\nfile_path:   /etc/hosts\nreplace_all: false\n[Change: old_string → new_string]\n  a\n- b\n  c\n+ d"
    );
    let args = r#"{"file_path": "x", "edits": [{"old_string": "a", "new_string": "b", "replace_all": true}, {"oldText": "c", "newText": "c"}]}"#;
    assert_eq!(
        text(&laid_out(args, &[])),
        "[]\nedits[0].replace_all: true\nfile_path:        x\n[Change: edits[0]: old_string → new_string]\n- a\n+ b\n[Change: edits[1]: oldText → newText]\n  c"
    );
}

#[test]
fn a_hidden_half_of_an_edit_stays_hidden() {
    let args = r#"{"old_string": "secret", "new_string": "b"}"#;
    let shown = text(&laid_out(args, &["/old_string"]));
    assert!(
        !shown.contains("secret") && shown.contains("- ‹hidden: string, 6 characters›"),
        "{shown}"
    );
}

#[test]
fn documents_and_structures_get_parts_of_their_own() {
    let args = r#"{"file_path": "x", "content": "one\ntwo\n", "meta": {"deep": [{"a": 1}]}}"#;
    assert_eq!(
        text(&laid_out(args, &[])),
        "[]\nfile_path: x\n[Arguments: content (text, 8 characters)]\none\ntwo\n\n[Arguments: meta]\n{\n  \"deep\": [\n    {\n      \"a\": 1\n    }\n  ]\n}"
    );
}

#[test]
fn what_fits_no_heading_or_has_too_many_parts_is_shown_as_json() {
    let odd = format!(
        "{{\"Approved by Mira\\nx\": {{\"a\": 1}}, \"b\": \"{}\"}}",
        "y".repeat(200)
    );
    let many = (0..9).map(|n| format!("\"k{n}\": {{\"a\": {n}}}"));
    let many = format!("{{{}}}", many.collect::<Vec<_>>().join(","));
    for args in [&odd, &many, "{}"] {
        let body = laid_out(args, &[]);
        assert_eq!(body, Body::from(body.whole().clone()), "{args}");
    }
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z0-9\"\\[{ .:\n]{0,12}",
        "[ab\n]{0,400}",
        Just("null".to_owned())
    ]
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z]{1,6}",
        Just("command".to_owned()),
        Just("old_string".to_owned()),
        Just("new_string".to_owned()),
        Just("content".to_owned()),
        Just("edits".to_owned()),
    ]
}

fn any_json() -> impl Strategy<Value = Json> {
    let scalar = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any_text().prop_map(Json::from),
    ];
    scalar.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Json::Array),
            proptest::collection::vec((any_key(), inner), 0..5).prop_map(Json::object),
        ]
    })
}

fn any_arguments() -> impl Strategy<Value = Json> {
    proptest::collection::vec((any_key(), any_json()), 0..7).prop_map(Json::object)
}

/// Every text, number and word in it, and every name.
fn scalars(json: &Json, into: &mut Vec<Json>) {
    match json {
        Json::Array(items) => items.iter().for_each(|item| scalars(item, into)),
        Json::Object(object) => object.iter().for_each(|(key, value)| {
            into.push(key.into());
            scalars(value, into);
        }),
        single => into.push(single.clone()),
    }
}

/// Every way in which a layout may spell a single value, as inert text.
fn spellings(value: &Json) -> Vec<String> {
    let json = Inert::new(&value.canonical());
    let mut all = vec![json.one_line().to_string(), json.to_string()];
    if let Json::String(text) = value {
        // The pretty form spells the text the same way between its quotes.
        all.push(Inert::new(text).to_string());
        all.push(Inert::new(text).one_line().to_string());
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_value_stands_in_what_is_shown(args in any_arguments()) {
        let book = Phrasebook::load().unwrap();
        let body = body(&args.canonical(), &[], &book.of(Language::En).parts);
        let shown = text(&body);
        let sides = |gone: Fate| {
            let lines = body.parts().iter().flat_map(|part| match &part.content {
                Content::Change(lines) => lines.as_slice(),
                _ => &[],
            });
            let kept = lines.filter(|line| line.fate != gone);
            kept.map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
        };
        let (before, after) = (sides(Fate::Added), sides(Fate::Removed));
        let mut all = Vec::new();
        scalars(&args, &mut all);
        for value in &all {
            let found = spellings(value).iter().any(|text| shown.contains(text.as_str()))
                || value.as_str().is_some_and(|text| {
                    // A change spells each line by itself.
                    let lines: Vec<_> = text.split('\n').map(|line| Inert::new(line).to_string()).collect();
                    let text = lines.join("\n");
                    before.contains(&text) || after.contains(&text)
                })
                // Inside of JSON, company can explain a letter that would be spelled out alone.
                || shown.contains(&value.canonical());
            prop_assert!(found, "{} of {}", value.canonical(), args.canonical());
        }
    }

    #[test]
    fn two_calls_that_differ_never_look_the_same(one in any_arguments(), other in any_arguments()) {
        let book = Phrasebook::load().unwrap();
        let words = &book.of(Language::En).parts;
        let shown = |args: &Json| text(&body(&args.canonical(), &[], words));
        if one != other && shown(&one) == shown(&other) {
            // Only what stands for something else can be meant here: the signs of `Inert` and long runs.
            let plain = |json: &Json| json.canonical().chars().all(|c| (' '..='~').contains(&c) && c != '\\');
            prop_assert!(!plain(&one) || !plain(&other), "{} and {}", one.canonical(), other.canonical());
        }
    }
}
