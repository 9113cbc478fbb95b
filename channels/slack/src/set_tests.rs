//! The card of several requests: how it looks, that it fits whatever stands in it, and what its presses say.

use gatepost_channel::{ButtonToken, Decision, Fact, Inbound, Inert, OnceMore, SetCode, Tone};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::card;
use crate::card_tests::{action_ids, assert_fits, hostile, preformatted};
use crate::fixture::{card as one, interaction, open_actions, press, verify};

/// The words of a language that the layout shows.
struct Spoken {
    name: &'static str,
    title: &'static str,
    approve: &'static str,
    reject: &'static str,
    approve_all: &'static str,
    reject_all: &'static str,
    until: &'static str,
    by: &'static str,
    approved: &'static str,
}

const SPOKEN: [Spoken; 3] = [
    Spoken {
        name: "en",
        title: "2 of 3 calls need approval",
        approve: "Approve",
        reject: "Reject",
        approve_all: "Approve all 2",
        reject_all: "Reject all 2",
        until: "Decide before",
        by: "Decided by",
        approved: "Approved",
    },
    Spoken {
        name: "zh",
        title: "3 个调用中有 2 个需要审批",
        approve: "批准",
        reject: "拒绝",
        approve_all: "全部批准（2 个）",
        reject_all: "全部拒绝（2 个）",
        until: "截止时间",
        by: "决定者",
        approved: "已批准",
    },
    Spoken {
        name: "ja",
        title: "3 件中 2 件の承認が必要です",
        approve: "承認",
        reject: "却下",
        approve_all: "2 件すべて承認",
        reject_all: "2 件すべて却下",
        until: "期限",
        by: "決定者",
        approved: "承認済み",
    },
];

fn fact(label: &str, value: &str) -> Fact {
    Fact {
        label: label.to_owned(),
        value: Inert::new(value),
    }
}

/// A card of these requests; `open` tells which can still be answered.
fn together(items: Vec<Card>) -> Card {
    let open = items.iter().filter(|item| item.tone == Tone::Pending).count();
    let mut card = one(
        if open > 0 { Tone::Pending } else { Tone::Approved },
        "",
        Actions::None,
    );
    let all = (open > 1).then(|| All {
        value: ButtonValue::all(ButtonToken::new([0xa5; 16]), SetCode::new([0x5e; 12])),
        approve: format!("Approve all {open}"),
        reject: format!("Reject all {open}"),
        once_more: None,
    });
    card.set = Some(CardSet { items, all });
    card
}

fn item(number: u8, arguments: &str, open: bool) -> Card {
    let (tone, actions) = if open {
        (Tone::Pending, open_actions(None))
    } else {
        (Tone::Approved, Actions::None)
    };
    let mut card = one(tone, arguments, actions);
    card.request_id = format!("cr_{number:032x}");
    if let Actions::Decide { token, .. } = &mut card.actions {
        *token = ButtonToken::new([number; 16]);
    }
    card.facts = vec![fact("Until", "2026-11-29 12:02 UTC")];
    card
}

fn speaking(spoken: &Spoken) -> Card {
    let mut items = vec![
        item(1, "{\n  \"amount\": 50000\n}", false),
        item(2, "{\n  \"amount\": 60000\n}", true),
        item(3, "{\n  \"payee\": \"R&D <!channel>\"\n}", true),
    ];
    for item in &mut items {
        item.words.approve = spoken.approve.into();
        item.words.reject = spoken.reject.into();
        item.facts = vec![fact(spoken.until, "2026-11-29 12:02:00 UTC")];
    }
    items[0].title = spoken.approved.into();
    items[0].facts = vec![fact(spoken.by, "Dana Kim")];
    let mut card = together(items);
    card.title = spoken.title.into();
    if let Some(all) = card.set.as_mut().and_then(|set| set.all.as_mut()) {
        all.approve = spoken.approve_all.into();
        all.reject = spoken.reject_all.into();
    }
    card
}

fn laid(card: &Card) -> Value {
    serde_json::to_value(card::full(card)).unwrap()
}

#[test]
fn it_looks_so_in_every_language() {
    insta::with_settings!({ snapshot_path => "../tests/golden", prepend_module_to_snapshot => false }, {
        for spoken in &SPOKEN {
            let card = speaking(spoken);
            assert!(card::shows_all(&card));
            insta::assert_json_snapshot!(format!("set_{}", spoken.name), card::full(&card));
        }
        let settled = together(vec![item(1, "{}", false), item(2, "{}", false)]);
        insta::assert_json_snapshot!("set_settled", card::full(&settled));
    });
}

#[test]
fn every_open_row_has_its_own_buttons_and_a_settled_one_none() {
    let message = laid(&speaking(&SPOKEN[0]));
    assert_eq!(
        action_ids(&message),
        [
            "approve",
            "reject",
            "show_everything",
            "approve",
            "reject",
            "show_everything",
            "approve_all",
            "reject_all"
        ]
    );
    assert_fits(&message);
    let settled = laid(&together(vec![item(1, "{}", false), item(2, "{}", false)]));
    assert_eq!(action_ids(&settled), [""; 0]);
    assert!(
        settled.to_string().contains("rich_text"),
        "an edit may not take the last one away"
    );
}

/// The largest that a rule allows fits, in the words of a card that was voted on.
#[test]
fn ten_requests_fit_into_one_message() {
    let mut items: Vec<_> = (0..10).map(|n| item(n, &"x".repeat(200), true)).collect();
    let card = together(items.clone());
    assert!(card::shows_all(&card));
    for item in &mut items {
        item.facts = [
            "Approvals",
            "Stage",
            "Reason given",
            "Decided by",
            "Decided at",
            "Outcome",
            "Code",
        ]
        .map(|label| fact(label, &"words and more words ".repeat(20)))
        .to_vec();
    }
    let grown = together(items);
    assert!(card::shows_all(&grown), "what is shown whole stays so");
    let message = laid(&grown);
    assert_fits(&message);
    assert_eq!(preformatted(&message).len(), 10);
    let mut items: Vec<_> = (0..10).map(|n| item(n, &"x".repeat(400), true)).collect();
    assert!(!card::shows_all(&together(items.clone())));
    items.push(item(11, "{}", true));
    assert!(!card::shows_all(&together(items)));
}

#[test]
fn what_is_cut_is_not_approved_and_nothing_is_approved_at_once() {
    let message = laid(&together(vec![
        item(1, &"x".repeat(9_000), true),
        item(2, "{}", true),
    ]));
    assert_eq!(
        action_ids(&message),
        [
            "reject",
            "show_everything",
            "approve",
            "reject",
            "show_everything"
        ]
    );
    assert!(message.to_string().contains("characters are shown"));
}

#[test]
fn ten_that_are_cut_fit_as_well() {
    let items = (0..10).map(|n| item(n, &"x\n".repeat(5_000), true)).collect();
    let message = laid(&together(items));
    assert_fits(&message);
    assert_eq!(action_ids(&message), ["reject", "show_everything"].repeat(10));
}

#[test]
fn the_question_stands_before_each_approve() {
    let asked = OnceMore {
        title: "Approve?".into(),
        text: "At once.".into(),
        yes: "Yes".into(),
        no: "No".into(),
    };
    let mut card = together(vec![item(1, "{}", true), item(2, "{}", true)]);
    let set = card.set.as_mut().unwrap();
    set.all.as_mut().unwrap().once_more = Some(asked.clone());
    for item in &mut set.items {
        if let Actions::Decide { asks, .. } = &mut item.actions {
            asks.once_more = Some(asked.clone());
        }
    }
    let message = laid(&card);
    assert_fits(&message);
    assert_eq!(message.to_string().matches("\"At once.\"").count(), 3);
}

#[test]
fn a_press_says_which_request_or_which_set() {
    let one = ButtonValue::one(ButtonToken::new([3; 16]), 2);
    let all = ButtonValue::all(ButtonToken::new([3; 16]), SetCode::new([9; 12]));
    for (action_id, value, decision) in [
        ("approve", one, Decision::Approve),
        ("reject", one, Decision::Reject),
        (APPROVE_ALL, all, Decision::Approve),
        (REJECT_ALL, all, Decision::Reject),
    ] {
        let mut payload = press();
        payload["actions"][0]["action_id"] = json!(action_id);
        payload["actions"][0]["value"] = json!(value.to_string());
        let Ok(Inbound::Click(click)) = verify(&interaction(&payload)) else {
            panic!("{action_id}")
        };
        assert_eq!(
            (click.decision, click.button, click.grant),
            (decision, Some(value), None)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_stands_in_it_fits_and_stays_text(
        tool in hostile(),
        common in proptest::collection::vec((any::<String>(), hostile()), 0..12),
        rows in proptest::collection::vec((hostile(), any::<bool>(), hostile(), any::<String>()), 2..12),
    ) {
        let fact = |(label, value): &(String, String)| fact(label, value);
        let items = rows.iter().enumerate().map(|(at, (arguments, open, said, own))| {
            let mut item = item(u8::try_from(at).unwrap(), arguments, *open);
            item.facts.extend(vec![fact(&(own.clone(), said.clone())); at]);
            item.title.clone_from(own);
            item
        });
        let mut card = together(items.collect());
        card.tool = Inert::new(&tool);
        card.facts = common.iter().map(fact).collect();
        let message = laid(&card);
        assert_fits(&message);
        let whole = card::shows_all(&card);
        let ids = action_ids(&message);
        let shown = &rows[..rows.len().min(10)];
        let open = shown.iter().filter(|(_, open, _, _)| *open).count();
        prop_assert_eq!(ids.iter().filter(|id| *id == "reject").count(), open);
        if whole {
            let literal: Vec<_> = card.set.iter().flat_map(|set| &set.items).map(|item| item.arguments.as_str()).collect();
            let literal: String = literal.iter().map(|text| if text.is_empty() { "—" } else { text }).collect();
            prop_assert_eq!(preformatted(&message).concat(), literal);
            prop_assert_eq!(ids.iter().filter(|id| *id == "approve").count(), open);
        } else {
            prop_assert!(!ids.contains(&APPROVE_ALL.to_owned()));
        }
    }
}
