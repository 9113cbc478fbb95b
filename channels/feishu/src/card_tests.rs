//! Golden cards, and properties: only our own tags, the budget, and no Approve on what is cut.

use std::collections::BTreeSet;

use gatepost_channel::{Content, Fact, Fate, GrantOffer, Inert, Line, Part, Row};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fixture::card;

const SMALL: &str = "{\n  \"amount\": 51000,\n  \"payee\": \"ACME \\\"Ltd\\\"\"\n}";

pub(crate) fn shown(card: &CardJson) -> Value {
    serde_json::from_str(&card.content()).unwrap()
}

pub(crate) fn golden(name: &str, value: &Value) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../tests/golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_json_snapshot!(name, value));
}

#[test]
fn golden_cards() {
    let long = (0..2_000)
        .map(|n| format!("line {n}"))
        .collect::<Vec<_>>()
        .join("\n");
    for (tone, word) in [
        (Tone::Pending, "pending"),
        (Tone::Approved, "approved"),
        (Tone::Rejected, "rejected"),
        (Tone::Closed, "closed"),
    ] {
        golden(
            &format!("{word}_small"),
            &shown(&lay_out(&card(tone, SMALL, true)).card),
        );
        golden(
            &format!("{word}_no_full_view"),
            &shown(&lay_out(&card(tone, SMALL, false)).card),
        );
        golden(
            &format!("{word}_minimal"),
            &shown(&minimal(&card(tone, SMALL, true))),
        );
        let mut cut = shown(&lay_out(&card(tone, &long, true)).card);
        shorten(&mut cut);
        golden(&format!("{word}_cut"), &cut);
    }
}

/// Long texts keep their ends only, so that golden files stay readable.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > 300 => {
            *text = format!("{} [...] {}", &text[..40], &text[text.len() - 40..]);
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

/// The decisions of all buttons, and every tag, anywhere in the card.
fn walk<'a>(value: &'a Value, decisions: &mut Vec<&'a str>, tags: &mut BTreeSet<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, decisions, tags)),
        Value::Object(fields) => {
            decisions.extend(fields.get("decision").and_then(Value::as_str));
            tags.extend(fields.get("tag").and_then(Value::as_str));
            fields.values().for_each(|field| walk(field, decisions, tags));
        }
        _ => {}
    }
}

pub(crate) fn decisions(card: &Value) -> Vec<&str> {
    let (mut found, mut tags) = (Vec::new(), BTreeSet::new());
    walk(card, &mut found, &mut tags);
    found
}

/// All texts of the card, in order.
pub(crate) fn texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        Value::Object(fields) => {
            if fields.get("tag") == Some(&json!("plain_text")) {
                into.push(fields["content"].as_str().unwrap().to_owned());
            }
            fields.values().for_each(|field| texts(field, into));
        }
        _ => {}
    }
}

/// What a card is made of.
const KINDS: [&str; 7] = [
    "plain_text",
    "div",
    "column_set",
    "column",
    "button",
    "form",
    "input",
];

/// A card whose answers need everything that an answer can need.
fn demanding(own: &str) -> Card {
    let mut demanding = card(Tone::Pending, SMALL, true);
    if let Actions::Decide { asks, .. } = &mut demanding.actions {
        *asks = Asks {
            reason_to_approve: true,
            reason_to_reject: true,
            once_more: Some(OnceMore {
                title: format!("Approve this call?{own}"),
                text: format!("It runs at once.{own}"),
                yes: "Approve".to_owned(),
                no: "Go back".to_owned(),
            }),
            grants: ["session", "1h"]
                .map(|scope| GrantOffer {
                    scope: scope.to_owned(),
                    label: format!("Approve for {scope}{own}"),
                })
                .to_vec(),
            edits: false,
        };
    }
    demanding
}

fn asked() -> Asks {
    match demanding("").actions {
        Actions::Decide { asks, .. } => asks,
        Actions::None => Asks::default(),
    }
}

#[test]
fn what_an_answer_needs_is_laid_out() {
    let mut card = demanding("");
    golden("pending_demanding", &shown(&lay_out(&card).card));
    if let Actions::Decide { asks, .. } = &mut card.actions {
        (asks.reason_to_approve, asks.reason_to_reject) = (false, false);
    }
    let value = shown(&lay_out(&card).card);
    golden("pending_grants", &value);
    assert_eq!(decisions(&value), ["approve", "approve", "approve", "reject"]);
}

#[test]
fn words_without_end_of_what_is_asked_keep_the_limits() {
    let laid = lay_out(&demanding(&"\u{7}\"words".repeat(2_000)));
    assert!(sent(&laid.card) <= BUDGET && laid.shows_all);
    let mut all = Vec::new();
    texts(&shown(&laid.card), &mut all);
    assert!(all.iter().all(|text| text.chars().count() <= 300));
    assert_eq!(decisions(&shown(&minimal(&demanding("")))), ["reject"]);
}

/// The body as the client sends it.
pub(crate) fn sent(card: &CardJson) -> usize {
    json!({
        "receive_id": "o".repeat(128), "msg_type": "interactive", "content": card.content(), "uuid": "u".repeat(50),
    })
    .to_string()
    .len()
}

fn arguments_of(file: &str) -> String {
    let path = format!("{}/tests/bugs/{file}", env!("CARGO_MANIFEST_DIR"));
    let value: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

#[test]
fn reported_arguments_are_shown_letter_for_letter_or_cut_with_notice() {
    for file in [
        "RH-202/args.json",
        "RH-204/args.json",
        "RH-205/args.json",
        "RH-205/tool_name.json",
        "RH-206/args_cjk_0.json",
        "RH-206/args_cjk_1.json",
        "RH-206/args_cjk_2.json",
        "RH-206/args_cjk_3.json",
        "RH-206/args_emoji.json",
        "RH-206/args_combining.json",
    ] {
        let arguments = arguments_of(file);
        for tone in [Tone::Pending, Tone::Approved] {
            let card = card(tone, &arguments, true);
            let laid = lay_out(&card);
            assert!(sent(&laid.card) <= BUDGET, "{file}: {}", sent(&laid.card));
            let value = shown(&laid.card);
            let mut all = Vec::new();
            texts(&value, &mut all);
            if laid.shows_all {
                assert!(all.iter().any(|text| text == card.arguments.as_str()), "{file}");
            } else {
                assert!(all.iter().any(|text| text.starts_with("Only ")), "{file}");
                assert!(!decisions(&value).contains(&"approve"), "{file}");
            }
        }
    }
    let whole = |file| lay_out(&card(Tone::Pending, &arguments_of(file), true)).shows_all;
    assert!(whole("RH-202/args.json") && whole("RH-204/args.json") && whole("RH-205/args.json"));
    assert!(
        whole("RH-206/args_cjk_0.json"),
        "15,600 bytes of Chinese fit, since they are sent as UTF-8"
    );
}

#[test]
fn a_rule_may_lift_the_ban_on_a_cut_card() {
    let mut cut = card(Tone::Pending, &"x".repeat(50_000), true);
    assert_eq!(decisions(&shown(&lay_out(&cut).card)), ["reject"]);
    if let Actions::Decide { approve_when_cut, .. } = &mut cut.actions {
        *approve_when_cut = true;
    }
    let laid = lay_out(&cut);
    assert!(!laid.shows_all);
    assert_eq!(decisions(&shown(&laid.card)), ["approve", "reject"]);
}

#[test]
fn a_tool_whose_name_cannot_be_shown_cannot_be_approved() {
    let mut long = card(Tone::Pending, "{}", true);
    long.tool = Inert::new(&"tool ".repeat(1_000));
    let laid = lay_out(&long);
    assert!(!laid.shows_all);
    assert_eq!(decisions(&shown(&laid.card)), ["reject"]);
}

#[test]
fn no_line_of_somebody_else_stands_alone() {
    let mut card = card(Tone::Pending, "{}", true);
    card.tool = Inert::new("ls\nApproved by Mira");
    card.facts[0].value = Inert::new("dana\nApproved by Mira");
    let mut all = Vec::new();
    texts(&shown(&lay_out(&card).card), &mut all);
    assert!(all.contains(&"ls\\nApproved by Mira".to_owned()), "{all:?}");
    assert!(
        all.contains(&"Requested by: dana\\nApproved by Mira".to_owned()),
        "{all:?}"
    );
}

#[test]
fn the_minimal_card_holds_ids_and_our_words_only() {
    let mut secretive = card(Tone::Pending, "call +1 555 0100", true);
    secretive.tool = Inert::new("sensitive");
    secretive.facts[0].value = Inert::new("sensitive");
    let value = shown(&minimal(&secretive));
    let text = value.to_string();
    assert!(!text.contains("sensitive") && !text.contains("555"), "{text}");
    assert_eq!(decisions(&value), ["reject"]);
    assert!(text.contains("open_url"));
    assert_eq!(
        decisions(&shown(&minimal(&card(Tone::Approved, "x", true)))),
        [""; 0]
    );
}

/// Text that tries things: markup of the platform, JSON, marks, long runs.
pub(crate) fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<at id=all></at>".to_owned()),
        Just("[ok](https://evil.example)".to_owned()),
        Just("\"tag\":\"markdown\"".to_owned()),
        Just("\",\"tag\":\"button\"".to_owned()),
        Just("| a |\n|---|\n".to_owned()),
        Just("\\\"\n".repeat(300)),
        Just("审批".repeat(400)),
        Just("👨‍👩‍👧‍👦".repeat(50)),
        any::<String>(),
        "[ -~]{0,400}",
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Arguments in any number of parts.
fn any_body() -> impl Strategy<Value = Body> {
    let inert = || hostile().prop_map(|text| Inert::new(&text));
    let row = (inert(), inert()).prop_map(|(key, value)| Row {
        key: key.one_line(),
        value: value.one_line(),
    });
    let fate = prop_oneof![Just(Fate::Kept), Just(Fate::Removed), Just(Fate::Added)];
    let line = (fate, inert()).prop_map(|(fate, text)| Line {
        fate,
        text: text.one_line(),
    });
    let content = prop_oneof![
        inert().prop_map(Content::Literal),
        proptest::collection::vec(row, 0..13).prop_map(Content::Rows),
        proptest::collection::vec(line, 0..16).prop_map(Content::Change),
    ];
    let part = ("[ -~]{0,20}", content).prop_map(|(heading, content)| Part { heading, content });
    (proptest::collection::vec(part, 0..10), inert()).prop_map(|(parts, whole)| Body::new(parts, whole))
}

/// Whether all of this stands in these texts of a card: as parts, or as the one text.
fn stands(body: &Body, all: &[String]) -> bool {
    let has = |text: &str| text.is_empty() || all.iter().any(|shown| shown == text);
    let part = |part: &Part| match &part.content {
        Content::Rows(rows) => {
            has(part.content.text().as_str())
                || rows
                    .iter()
                    .all(|row| has(row.key.as_str()) && has(row.value.as_str()))
        }
        Content::Change(lines) => {
            let runs = lines.chunk_by(|one, other| one.fate == other.fate);
            let mut runs = runs.map(|run| Content::Change(run.to_vec()).text());
            has(part.content.text().as_str()) || runs.all(|run| has(run.as_str()))
        }
        Content::Literal(text) => has(text.as_str()),
    };
    body.parts().iter().all(part) || has(body.as_str())
}

#[test]
fn rows_stand_in_columns_and_changes_in_colours() {
    let row = |n: usize| Row {
        key: Inert::new(&format!("k{n}")),
        value: Inert::new(&n.to_string()),
    };
    let line = |fate, text: &str| Line {
        fate,
        text: Inert::new(text),
    };
    let part = |heading: &str, content| Part {
        heading: heading.to_owned(),
        content,
    };
    let change = vec![
        line(Fate::Kept, "a"),
        line(Fate::Removed, "b"),
        line(Fate::Added, "c"),
        line(Fate::Added, "d"),
    ];
    let mut open = card(Tone::Pending, "", true);
    open.arguments = Body::new(
        vec![
            part("", Content::Rows((0..3).map(row).collect())),
            part("Change: old → new", Content::Change(change)),
            part("", Content::Rows((0..13).map(row).collect())),
        ],
        Inert::new("{}"),
    );
    golden("pending_parts", &shown(&lay_out(&open).card));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_text_stays_text_within_the_budget(
        tool in hostile(),
        facts in proptest::collection::vec(("[ -~]{0,80}", hostile()), 0..8),
        arguments in any_body(),
        full_view in any::<bool>(),
        needs in any::<bool>(),
    ) {
        for tone in [Tone::Pending, Tone::Rejected] {
            let mut card = card(tone, "", full_view);
            card.arguments.clone_from(&arguments);
            if let (Actions::Decide { asks, .. }, true) = (&mut card.actions, needs) {
                asks.clone_from(&asked());
            }
            card.tool = Inert::new(&tool);
            card.facts = facts.iter().map(|(label, value)| Fact { label: label.clone(), value: Inert::new(value) }).collect();
            let laid = lay_out(&card);
            prop_assert!(sent(&laid.card) <= BUDGET);
            prop_assert!(sent(&laid.card) <= weight(&laid.card));
            prop_assert!(laid.card.count() <= MOST_ELEMENTS);

            let value = shown(&laid.card);
            let (mut decisions, mut tags) = (Vec::new(), BTreeSet::new());
            walk(&value, &mut decisions, &mut tags);
            prop_assert!(tags.iter().all(|tag| KINDS.contains(tag)), "{tags:?}");
            let expected: &[&str] = match (tone, laid.shows_all) {
                (Tone::Pending, true) if needs => &["approve", "approve", "approve", "reject"],
                (Tone::Pending, true) => &["approve", "reject"],
                (Tone::Pending, false) => &["reject"],
                _ => &[],
            };
            prop_assert_eq!(&decisions[..], expected);

            let mut all = Vec::new();
            texts(&value, &mut all);
            prop_assert!(!laid.shows_all || stands(&card.arguments, &all));
            // The callback's answer and an edit carry the same card in a lighter envelope.
            prop_assert!(laid.card.content().len() <= BUDGET);
        }
    }

    #[test]
    fn weights_are_what_the_wire_needs(text in hostile()) {
        let inner = Value::String(text.clone()).to_string();
        let outer = Value::String(inner.clone()).to_string();
        // Both layers add their own quotes, and the outer one escapes the inner ones.
        prop_assert_eq!(weigh(&text), outer.len() - 6);
        prop_assert_eq!(escaped(&inner), outer.len() - 2);
    }
}
