//! The cards: how they look, that they fit, and that nothing untrusted takes effect in them.

use gatepost_channel::{
    Actions, Asks, Body, Card, Content, Fact, Fate, GrantOffer, Inert, Line, OnceMore, Part, Risk, Row, Tone,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::blocks::cost;
use crate::card::{self, Message};
use crate::fixture::{card, open_actions};

const VIEW: &str = "https://gate.example.com/console/requests/cr_01hzy3v7k9";

fn json(message: &Message) -> Value {
    serde_json::to_value(message).unwrap()
}

#[test]
fn every_tone_has_its_look() {
    let long = "step: copy <shard> to <archive> && verify\n".repeat(300);
    let small = "amount: 50000\npayee: R&D <!channel>";
    insta::with_settings!({ snapshot_path => "../tests/golden", prepend_module_to_snapshot => false }, {
        for (name, tone) in [
            ("pending", Tone::Pending),
            ("approved", Tone::Approved),
            ("rejected", Tone::Rejected),
            ("closed", Tone::Closed),
        ] {
            let actions = |view| if tone == Tone::Pending { open_actions(view) } else { Actions::None };
            for (case, arguments, view) in
                [("small", small, Some(VIEW)), ("cut", &long, Some(VIEW)), ("no_full_view", &long, None)]
            {
                let card = card(tone, arguments, actions(view));
                insta::assert_json_snapshot!(format!("{name}_{case}"), card::full(&card));
            }
            insta::assert_json_snapshot!(
                format!("{name}_minimal"),
                card::minimal(&card(tone, small, actions(Some(VIEW))))
            );
        }
    });
}

/// All texts and types in a message, wherever they stand.
fn walk(value: &Value, seen: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                seen(key, value);
                walk(value, seen);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| walk(value, seen)),
        _ => {}
    }
}

pub(crate) fn action_ids(message: &Value) -> Vec<String> {
    let mut ids = Vec::new();
    walk(message, &mut |key, value| {
        if key == "action_id" {
            ids.push(value.as_str().unwrap().to_owned());
        }
    });
    ids
}

/// The limits of Slack's own documents and the budget over all texts.
pub(crate) fn assert_fits(message: &Value) {
    let blocks = message["blocks"].as_array().unwrap();
    assert!(blocks.len() <= 50);
    let mut total = message["text"].as_str().unwrap().encode_utf16().count();
    for block in blocks {
        let limit = match block["type"].as_str().unwrap() {
            "header" => 150,
            "section" if block["fields"].is_array() => {
                assert!((1..=10).contains(&block["fields"].as_array().unwrap().len()));
                2_000
            }
            "section" | "rich_text" | "context" => 3_000,
            "actions" => {
                assert!((1..=25).contains(&block["elements"].as_array().unwrap().len()));
                assert!(block["block_id"].as_str().unwrap().len() <= 255);
                let mut ids = action_ids(block);
                ids.sort_unstable();
                assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
                for button in block["elements"].as_array().unwrap() {
                    assert!(cost(button["text"]["text"].as_str().unwrap()) <= 75);
                    for (part, most) in [("title", 100), ("text", 300), ("confirm", 30), ("deny", 30)] {
                        let text = button["confirm"][part]["text"].as_str().unwrap_or_default();
                        assert!(cost(text) <= most, "{text}");
                    }
                }
                300
            }
            other => panic!("{other} is no block of ours"),
        };
        walk(block, &mut |key, value| match (key, value) {
            ("text", Value::String(text)) => {
                assert!(!text.is_empty());
                assert!(cost(text) <= limit, "{} in {}", cost(text), block["type"]);
                total += cost(text);
            }
            ("type", Value::String(kind)) => assert!(
                [
                    "header",
                    "section",
                    "rich_text",
                    "rich_text_preformatted",
                    "text",
                    "plain_text",
                    "context",
                    "actions",
                    "button",
                    "input",
                    "plain_text_input",
                ]
                .contains(&kind.as_str()),
                "{kind}"
            ),
            ("emoji", emoji) => assert_eq!(emoji, &Value::Bool(false)),
            ("max_length", most) => assert_eq!(most, &Value::from(1_000)),
            ("value", value) => assert!(value.as_str().unwrap().len() <= 64),
            _ => {}
        });
    }
    assert!(total <= card::TOTAL, "{total}");
}

pub(crate) fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z<>&*_`~:@!|\n ]{0,400}",
        ("[<&é支🚀a\u{301}\n]{1,3}", 0_usize..6_000).prop_map(|(unit, times)| unit.repeat(times)),
    ]
}

/// What an answer can need, in words of any length.
fn any_asks() -> impl Strategy<Value = Asks> {
    let offers = proptest::collection::vec("[ab]{1,2}", 0..9);
    (any::<bool>(), any::<bool>(), any::<bool>(), offers, hostile()).prop_map(
        |(reason_to_approve, reason_to_reject, once_more, scopes, own)| Asks {
            reason_to_approve,
            reason_to_reject,
            once_more: once_more.then(|| question(&own)),
            edits: reason_to_approve,
            grants: scopes
                .into_iter()
                .map(|scope| GrantOffer {
                    label: own.clone(),
                    scope,
                })
                .collect(),
        },
    )
}

fn question(own: &str) -> OnceMore {
    OnceMore {
        title: format!("Approve this call?{own}"),
        text: format!("It runs at once.{own}"),
        yes: format!("Approve{own}"),
        no: format!("Go back{own}"),
    }
}

/// A card with these demands on an answer.
fn asking(asked: Asks) -> Card {
    let mut card = card(Tone::Pending, "amount: 50000", open_actions(None));
    if let Actions::Decide { asks, .. } = &mut card.actions {
        *asks = asked;
    }
    card
}

fn offers() -> Vec<GrantOffer> {
    let offer = |scope: &str| GrantOffer {
        scope: scope.to_owned(),
        label: format!("Approve for {scope}"),
    };
    ["session", "1h"].map(offer).to_vec()
}

#[test]
fn what_an_answer_needs_is_laid_out() {
    let message = card::full(&asking(Asks {
        edits: false,
        reason_to_approve: false,
        reason_to_reject: true,
        once_more: Some(question("")),
        grants: offers(),
    }));
    insta::with_settings!({ snapshot_path => "../tests/golden", prepend_module_to_snapshot => false }, {
        insta::assert_json_snapshot!("pending_demanding", message);
    });
    assert_eq!(
        action_ids(&json(&message)),
        [
            "approve",
            "approve:session",
            "approve:1h",
            "reject",
            "show_everything"
        ]
    );
}

#[test]
fn words_are_asked_for_in_a_modal_and_never_on_the_card() {
    for (asks, expected) in [
        (
            Asks {
                reason_to_approve: true,
                ..Asks::default()
            },
            &["approve", "reject", "reject_with_reason", "show_everything"][..],
        ),
        // The press on Reject opens the form itself.
        (
            Asks {
                reason_to_reject: true,
                ..Asks::default()
            },
            &["approve", "reject", "show_everything"],
        ),
    ] {
        let mut asked = asking(asks);
        assert_eq!(action_ids(&json(&card::full(&asked))), expected);
        asked.arguments = Inert::new(&"x".repeat(9_000)).into();
        assert_eq!(action_ids(&json(&card::full(&asked))), expected[1..]);
    }
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
        proptest::collection::vec(row, 0..6).prop_map(Content::Rows),
        proptest::collection::vec(line, 0..6).prop_map(Content::Change),
    ];
    let part = ("[ -~]{0,20}", content).prop_map(|(heading, content)| Part { heading, content });
    (proptest::collection::vec(part, 0..10), inert()).prop_map(|(parts, whole)| Body::new(parts, whole))
}

fn any_card() -> impl Strategy<Value = Card> {
    let facts = proptest::collection::vec((any::<String>(), hostile()), 0..40);
    let actions = prop_oneof![
        Just(Actions::None),
        (
            any::<bool>(),
            proptest::option::of(prop_oneof![Just(VIEW.to_owned()), any::<String>()]),
            any_asks(),
        )
            .prop_map(|(approve_when_cut, full_view, asks)| match open_actions(None) {
                Actions::Decide { token, revision, .. } => {
                    Actions::Decide {
                        token,
                        revision,
                        approve_when_cut,
                        full_view,
                        asks,
                    }
                }
                Actions::None => Actions::None,
            }),
    ];
    (hostile(), facts, any_body(), any::<String>(), actions).prop_map(
        |(tool, facts, arguments, own, actions)| {
            let mut card = card(Tone::Pending, "", actions);
            card.arguments = arguments;
            card.tool = Inert::new(&tool);
            card.title.clone_from(&own);
            card.preview.clone_from(&own);
            card.words.approve_in_full_view = own.repeat(20);
            card.facts = facts
                .into_iter()
                .map(|(label, value)| Fact {
                    label,
                    value: Inert::new(&value),
                })
                .collect();
            card
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_card_fits_and_holds_only_our_kinds(card in any_card()) {
        assert_fits(&json(&card::full(&card)));
        assert_fits(&json(&card::minimal(&card)));
        assert_fits(&json(&card::one_line(&card)));
    }

    #[test]
    fn approve_stands_where_everything_is_shown_and_only_there(card in any_card()) {
        let ids = action_ids(&json(&card::full(&card)));
        let (decides, lifted) = match card.actions {
            Actions::Decide { approve_when_cut, .. } => (true, approve_when_cut),
            Actions::None => (false, false),
        };
        let approvable = decides && (card::shows_all(&card) || lifted);
        prop_assert_eq!(ids.contains(&"approve".to_owned()), approvable);
        prop_assert_eq!(ids.contains(&"reject".to_owned()), decides);
        prop_assert!(!action_ids(&json(&card::minimal(&card))).contains(&"approve".to_owned()));
    }

    #[test]
    fn what_counts_as_shown_is_shown_letter_for_letter(card in any_card()) {
        let message = json(&card::full(&card));
        let literal: String = preformatted(&message).concat();
        if card::shows_all(&card) {
            let parts = card.arguments.parts().iter().map(|part| part.content.text().to_string());
            // Slack takes no empty text: a dash stands in its place.
            let parts = parts.map(|text| if text.is_empty() { "—".to_owned() } else { text });
            prop_assert_eq!(literal, parts.collect::<String>());
        }
    }
}

/// The texts of all preformatted elements, in order.
pub(crate) fn preformatted(message: &Value) -> Vec<&str> {
    message["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|block| block["type"] == "rich_text")
        .flat_map(|block| block["elements"][0]["elements"].as_array().unwrap())
        .map(|element| element["text"].as_str().unwrap())
        .collect()
}

fn shown_arguments(file: &str) -> Card {
    let arguments: Value = serde_json::from_str(file).unwrap();
    let text = serde_json::to_string_pretty(&arguments).unwrap();
    card(Tone::Pending, &text, open_actions(Some(VIEW)))
}

#[test]
fn rh_202_the_settled_card_fits_as_well() {
    let mut card = shown_arguments(include_str!("../tests/bugs/RH-202/args.json"));
    let open = json(&card::full(&card));
    assert_fits(&open);
    let ids = ["reject", "reject_with_reason", "show_everything", "open_console"];
    assert_eq!(action_ids(&open), ids);
    card.actions = Actions::None;
    card.tone = Tone::Approved;
    let settled = json(&card::full(&card));
    assert_fits(&settled);
    assert!(action_ids(&settled).is_empty());
    let cut_line = settled.to_string();
    assert!(cut_line.contains(&format!(
        "of {} characters are shown",
        card.arguments.characters()
    )));
}

#[test]
fn rh_205_markup_stays_text() {
    let mut card = shown_arguments(include_str!("../tests/bugs/RH-205/args.json"));
    let name: Value = serde_json::from_str(include_str!("../tests/bugs/RH-205/tool_name.json")).unwrap();
    card.tool = Inert::new(name["name"].as_str().unwrap());
    let message = json(&card::full(&card));
    assert_eq!(preformatted(&message).concat(), card.arguments.as_str());
    assert_eq!(message["blocks"][1]["text"]["text"], card.tool.as_str());
    assert_eq!(message["blocks"][1]["text"]["type"], "plain_text");
    assert!(!message.to_string().contains("mrkdwn"));
}

#[test]
fn rh_206_cuts_fall_between_characters() {
    for file in [
        include_str!("../tests/bugs/RH-206/args_cjk_0.json"),
        include_str!("../tests/bugs/RH-206/args_cjk_1.json"),
        include_str!("../tests/bugs/RH-206/args_cjk_2.json"),
        include_str!("../tests/bugs/RH-206/args_cjk_3.json"),
        include_str!("../tests/bugs/RH-206/args_emoji.json"),
        include_str!("../tests/bugs/RH-206/args_combining.json"),
    ] {
        let mut card = shown_arguments(file);
        card.tool = card.arguments.whole().clone();
        card.facts = vec![
            Fact {
                label: "Requester".into(),
                value: card.arguments.whole().clone()
            };
            12
        ];
        assert_fits(&json(&card::full(&card)));
    }
}

#[test]
fn untrusted_lines_cannot_start_a_fact() {
    let mut card = card(Tone::Pending, "{}", open_actions(None));
    card.facts = vec![Fact {
        label: "Agent".into(),
        value: Inert::new("x\nStatus\napproved"),
    }];
    let message = json(&card::full(&card));
    assert_eq!(
        message["blocks"][2]["fields"][0]["text"],
        "Agent\nx\\nStatus\\napproved"
    );
}

#[test]
fn a_page_that_is_no_web_address_gets_no_button() {
    for view in ["javascript:alert(1)", "ftp://x", ""] {
        let card = card(Tone::Pending, "{}", open_actions(Some(view)));
        assert_eq!(
            action_ids(&json(&card::full(&card))),
            ["approve", "reject", "reject_with_reason", "show_everything"],
            "{view}"
        );
    }
}

#[test]
fn what_is_at_stake_shows_at_first_glance() {
    for (risk, sign, style) in [
        (None, '🟡', "primary"),
        (Some(Risk::Low), '🔵', "primary"),
        (Some(Risk::Medium), '🟡', "primary"),
        (Some(Risk::High), '🟠', "danger"),
        (Some(Risk::Critical), '🔴', "danger"),
    ] {
        let mut card = card(Tone::Pending, "{}", open_actions(None));
        card.risk = risk;
        let message = json(&card::full(&card));
        assert!(
            message["blocks"][0]["text"]["text"]
                .as_str()
                .unwrap()
                .starts_with(sign),
            "{risk:?}"
        );
        let row = message["blocks"]
            .as_array()
            .unwrap()
            .iter()
            .find(|block| block["type"] == "actions");
        assert_eq!(row.unwrap()["elements"][0]["style"], style, "{risk:?}");
    }
}

#[test]
fn the_block_id_names_request_and_revision() {
    let message = json(&card::full(&card(Tone::Pending, "{}", open_actions(None))));
    let row = message["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|block| block["type"] == "actions");
    assert_eq!(row.unwrap()["block_id"], "cr_01hzy3v7k9:v2");
}
