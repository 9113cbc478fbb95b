//! Whatever the bytes, the loader answers within bounds and without a panic.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::super::{ProblemKind, yaml};
use super::{BASE, Config, EXAMPLE, Folder, no_env, parse, refusals};

#[test]
fn a_billion_laughs_is_refused() {
    let mut text = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..12 {
        let alias = format!("*a{}", level - 1);
        writeln!(text, "a{level}: &a{level} [{}]", [alias.as_str(); 9].join(", ")).unwrap();
    }
    let problem = refusals(&text).swap_remove(0);
    assert_eq!(problem.kind, ProblemKind::TooLarge);
    let text = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(500_000),
        vec!["*a"; 5000].join(", ")
    );
    assert_eq!(refusals(&text).swap_remove(0).kind, ProblemKind::TooLarge);
}

#[test]
fn an_alias_is_read_where_it_stays_small() {
    let text = BASE
        .replace(
            "roles: [finance]\n    identities: {slack: U024BE7LH}",
            "roles: &roles [finance]\n    identities: {slack: U024BE7LH}",
        )
        .replace(
            "roles: [finance]\n    identities: {slack: U061F7AUR}",
            "roles: *roles\n    identities: {slack: U061F7AUR}",
        );
    assert!(text.contains("*roles"));
    assert_eq!(parse(&text).unwrap().config.operators[1].roles, ["finance"]);
}

#[test]
fn nesting_and_size_are_bounded() {
    for text in [
        "[".repeat(5000),
        "{a: ".repeat(5000),
        "- ".repeat(5000),
        "? ".repeat(5000),
        format!("a: {}", "x".repeat(yaml::MAX_BYTES)),
    ] {
        let problems = refusals(&text);
        assert!(
            matches!(problems[0].kind, ProblemKind::TooLarge | ProblemKind::Syntax),
            "{}",
            problems[0]
        );
    }
}

#[test]
fn tags_second_documents_and_odd_keys_are_refused() {
    for text in [
        "a: !!python/object x\n",
        "server: {}\n---\nserver: {}\n",
        "{a: 1}: b\n",
        "? [a]\n: b\n",
        "a: *b\n",
        "a: &a [*a]\n",
        "just text",
        "- a\n",
    ] {
        assert!(!refusals(text).is_empty(), "{text}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_told_by_its_name() {
    let folder = Folder::new();
    let latin = folder.write("latin.yaml", b"server: {listen: \xe9}");
    for (path, needle) in [
        (folder.0.join("missing.yaml"), "missing.yaml"),
        (folder.0.clone(), "folder"),
        (latin, "UTF-8"),
    ] {
        let problems = Config::load(&path, &no_env).unwrap_err();
        assert_eq!(problems.as_slice()[0].kind, ProblemKind::Unreadable);
        assert!(problems.to_string().contains(needle), "{problems}");
    }
    let bom = folder.write("bom.yaml", format!("\u{feff}{BASE}"));
    assert!(Config::load(&bom, &no_env).is_ok());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn arbitrary_yaml_like_text_never_panics(text in "[a-c:{}\\[\\],&*!?|>%@#'\"~ \\-\n\t0-9é]{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn a_damaged_example_never_panics_and_never_half_loads(
        at in 0..EXAMPLE.len(), length in 0usize..40, patch in "[a-z:{}\\[\\]&*'\" \n0-9-]{0,12}",
    ) {
        let (mut from, mut to) = (at, (at + length).min(EXAMPLE.len()));
        while !EXAMPLE.is_char_boundary(from) { from -= 1; }
        while !EXAMPLE.is_char_boundary(to) { to += 1; }
        let text = format!("{}{patch}{}", &EXAMPLE[..from], &EXAMPLE[to..]);
        let env = |name: &str| Some(format!("s3cr3t-{name}-0123456789"));
        if let Err(problems) = Config::parse(&text, "gatepost.yaml", std::path::Path::new(""), &env) {
            prop_assert!(!problems.as_slice().is_empty());
            prop_assert!(!problems.to_string().contains("s3cr3t-"));
        }
    }
}
