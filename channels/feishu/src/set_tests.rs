//! The card of several requests: how it looks, that it fits whatever stands in it, and what its presses say.

use gatepost_channel::{ButtonToken, Fact, Inert, SetCode, Tone};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::card::lay_out as lay_out_card;
use crate::card::tests::{decisions, golden, hostile, sent, shown, texts};
use crate::elements::unspelled;
use crate::fixture::card as one;

fn fact(label: &str, value: &str) -> Fact {
    Fact {
        label: label.to_owned(),
        value: Inert::new(value),
    }
}

fn item(number: u8, arguments: &str, open: bool) -> Card {
    let mut card = one(
        if open { Tone::Pending } else { Tone::Approved },
        arguments,
        false,
    );
    card.request_id = format!("cr_{number:032x}");
    if let Actions::Decide { token, .. } = &mut card.actions {
        *token = ButtonToken::new([number; 16]);
    }
    card.facts = vec![fact("Until", "2026-11-29 12:02 UTC")];
    card
}

fn together(items: Vec<Card>) -> Card {
    let open = items.iter().filter(|item| item.tone == Tone::Pending).count();
    let mut card = one(if open > 0 { Tone::Pending } else { Tone::Approved }, "", false);
    card.actions = Actions::None;
    let all = (open > 1).then(|| All {
        value: ButtonValue::all(ButtonToken::new([0xa5; 16]), SetCode::new([0x5e; 12])),
        approve: format!("Approve all {open}"),
        reject: format!("Reject all {open}"),
        once_more: None,
    });
    card.set = Some(CardSet { items, all });
    card
}

/// In English, Chinese and Japanese: title, both labels, both labels for all, the fact of an open and of a settled request, and
/// the title of a settled one.
const SPOKEN: [(&str, [&str; 8]); 3] = [
    (
        "en",
        [
            "2 of 3 calls need approval",
            "Approve",
            "Reject",
            "Approve all 2",
            "Reject all 2",
            "Decide before",
            "Decided by",
            "Approved",
        ],
    ),
    (
        "zh",
        [
            "3 个调用中有 2 个需要审批",
            "批准",
            "拒绝",
            "全部批准（2 个）",
            "全部拒绝（2 个）",
            "截止时间",
            "决定者",
            "已批准",
        ],
    ),
    (
        "ja",
        [
            "3 件中 2 件の承認が必要です",
            "承認",
            "却下",
            "2 件すべて承認",
            "2 件すべて却下",
            "期限",
            "決定者",
            "承認済み",
        ],
    ),
];

fn speaking(
    [
        title,
        approve,
        reject,
        approve_all,
        reject_all,
        until,
        by,
        approved,
    ]: [&str; 8],
) -> Card {
    let mut items = vec![
        item(1, "{\n  \"amount\": 50000\n}", false),
        item(2, "{\n  \"amount\": 60000\n}", true),
        item(3, "{\n  \"payee\": \"<at id=all></at>\"\n}", true),
    ];
    for item in &mut items {
        item.words.approve = approve.into();
        item.words.reject = reject.into();
        item.facts = vec![fact(until, "2026-11-29 12:02:00 UTC")];
    }
    items[0].title = approved.into();
    items[0].facts = vec![fact(by, "Dana Kim")];
    let mut card = together(items);
    card.title = title.into();
    if let Some(all) = card.set.as_mut().and_then(|set| set.all.as_mut()) {
        all.approve = approve_all.into();
        all.reject = reject_all.into();
    }
    card
}

#[test]
fn it_looks_so_in_every_language() {
    for (name, words) in SPOKEN {
        let laid = lay_out_card(&speaking(words));
        assert!(laid.shows_all);
        golden(&format!("set_{name}"), &shown(&laid.card));
    }
    let settled = together(vec![item(1, "{}", false), item(2, "{}", false)]);
    let settled = shown(&lay_out_card(&settled).card);
    golden("set_settled", &settled);
    assert_eq!(decisions(&settled), [""; 0]);
}

/// The names and values of all deciding buttons.
fn buttons(value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| buttons(item, found)),
        Value::Object(fields) => {
            let pressed = fields
                .get("behaviors")
                .map(|behaviors| behaviors[0]["value"].clone());
            if let (Some(name), Some(pressed)) = (fields.get("name").and_then(Value::as_str), pressed) {
                found.push((name.to_owned(), pressed));
            }
            fields.values().for_each(|field| buttons(field, found));
        }
        _ => {}
    }
}

#[test]
fn every_button_has_a_name_of_its_own_that_says_what_its_value_says() {
    let card = speaking(SPOKEN[0].1);
    let value = shown(&lay_out_card(&card).card);
    assert_eq!(
        decisions(&value),
        ["approve", "reject", "approve", "reject", "approve", "reject"]
    );
    let mut found = Vec::new();
    buttons(&value, &mut found);
    let mut names: Vec<_> = found.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 6);
    for (name, pressed) in found {
        let said = unspelled(&name).unwrap();
        assert_eq!(
            json!({"decision": said.decision, "b": said.button.to_string()}),
            pressed
        );
        assert!(said.scope.is_none() && name.len() <= 100, "{name}");
    }
}

/// Whatever votes add, the answer to whether all is shown stays as it is, and the card fits.
#[test]
fn what_is_shown_whole_stays_so() {
    let mut items: Vec<_> = (0..7).map(|n| item(n, &"line\n".repeat(60), true)).collect();
    assert!(lay_out_card(&together(items.clone())).shows_all);
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
        .map(|label| fact(label, &"words \"and\" more words\n".repeat(40)))
        .to_vec();
    }
    let mut card = together(items);
    card.facts = vec![fact("Why", &"a \"long\" reason\n".repeat(200)); 20];
    let laid = lay_out_card(&card);
    assert!(laid.shows_all && sent(&laid.card) <= BUDGET);
    assert!(laid.card.count() <= MOST_ELEMENTS);
    let many = together((0..10).map(|n| item(n, &"x".repeat(2_500), true)).collect());
    assert!(!lay_out_card(&many).shows_all);
}

#[test]
fn what_is_cut_is_not_approved_and_nothing_is_approved_at_once() {
    let card = together(vec![item(1, &"x".repeat(50_000), true), item(2, "{}", true)]);
    let laid = lay_out_card(&card);
    assert!(!laid.shows_all && sent(&laid.card) <= BUDGET);
    assert_eq!(decisions(&shown(&laid.card)), ["reject", "approve", "reject"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn whatever_stands_in_it_fits_and_stays_text(
        tool in hostile(),
        rows in proptest::collection::vec((hostile(), any::<bool>(), hostile()), 2..11),
    ) {
        let items = rows.iter().enumerate().map(|(at, (arguments, open, said))| {
            let mut item = item(u8::try_from(at).unwrap(), arguments, *open);
            item.facts.extend(vec![fact("Reason given", said); at]);
            item
        });
        let mut card = together(items.collect());
        card.tool = Inert::new(&tool);
        let laid = lay_out_card(&card);
        prop_assert!(sent(&laid.card) <= BUDGET);
        prop_assert!(laid.card.count() <= MOST_ELEMENTS);
        if laid.shows_all {
            let mut all = Vec::new();
            texts(&shown(&laid.card), &mut all);
            for item in card.set.iter().flat_map(|set| &set.items) {
                let text = item.arguments.as_str();
                prop_assert!(text.is_empty() || all.iter().any(|shown| shown == text));
            }
        }
        let open = rows.iter().filter(|(_, open, _)| *open).count();
        let value = shown(&laid.card);
        let approvals = decisions(&value).into_iter().filter(|decision| *decision == "approve").count();
        prop_assert!(approvals <= open + usize::from(open > 1));
    }
}
