//! Messages to one person: all of it, in order, within the budget, with answers on the last alone; and what comes back from them.

use gatepost_channel::{
    ButtonToken, ButtonValue, Decision, DialogWords, FullView, Inbound, Inert, MessageRef, Seen, Tone,
    Vantage, Wants,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::callback;
use crate::card::BUDGET;
use crate::elements::CardJson;
use crate::fixture::{card, press};
use crate::page;

const SEEN: Seen = Seen::new([0x5e; 16]);

fn view(tone: Tone, arguments: &str) -> FullView {
    FullView {
        card: card(tone, arguments, true),
        arguments: Inert::new(arguments),
        at: MessageRef {
            chat: "oc_demo_approvals".into(),
            message: "om_demo_0001".into(),
        },
        seen: Some(SEEN),
        edit: None,
        words: DialogWords {
            close: "Close".into(),
            send: "Send".into(),
            answer: "Your answer".into(),
            part: "Part {part} of {parts}".into(),
        },
    }
}

fn pages(view: &FullView) -> Vec<Value> {
    let count = page::count(view).expect("not too long");
    let page = |number| page::lay_out(view, number).expect("a page");
    assert!(page::lay_out(view, count).is_none(), "no page beyond the last");
    (0..count).map(|number| json(&page(number))).collect()
}

fn json(card: &CardJson) -> Value {
    // The card travels as text inside the body.
    assert!(Value::from(card.content()).to_string().len() <= BUDGET);
    assert!(card.count() <= 200);
    serde_json::from_str(&card.content()).unwrap()
}

/// Every object of a card.
fn walk(value: &Value, see: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            see(map);
            map.values().for_each(|value| walk(value, see));
        }
        Value::Array(list) => list.iter().for_each(|value| walk(value, see)),
        _ => {}
    }
}

/// What the buttons of a card send.
fn sends(card: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    walk(card, &mut |map| {
        let behaviors = map.get("behaviors").and_then(Value::as_array);
        found.extend(
            behaviors
                .into_iter()
                .flatten()
                .map(|behavior| behavior["value"].clone()),
        );
    });
    found.retain(|value| !value.is_null());
    found
}

/// The text in the grey boxes.
pub(crate) fn boxed(card: &Value) -> String {
    let mut texts = Vec::new();
    walk(card, &mut |map| {
        if map.get("background_style").is_some_and(|style| style == "grey") {
            let text = map["columns"][0]["elements"][0]["text"]["content"]
                .as_str()
                .unwrap();
            texts.push(text.to_owned());
        }
    });
    texts.concat()
}

#[test]
fn all_of_it_comes_in_order_and_the_answers_come_last() {
    let long = "step: copy <at id=all></at> to \"archive\" 支払い\n".repeat(2_000);
    let sent = pages(&view(Tone::Pending, &long));
    assert!(sent.len() > 3, "{}", sent.len());
    assert_eq!(sent.iter().map(boxed).collect::<String>(), long);
    let (last, parts) = sent.split_last().unwrap();
    assert!(
        parts.iter().all(|part| sends(part).is_empty()),
        "no part can be answered"
    );
    let said: Vec<_> = sends(last)
        .iter()
        .map(|value| value["decision"].clone())
        .collect();
    assert_eq!(said, ["approve", "reject"]);
    assert!(sends(last).iter().all(|value| value["seen"] == SEEN.to_string()));
    assert_eq!(
        parts[1]["header"]["title"]["content"],
        format!("Part 2 of {}", parts.len())
    );

    assert_eq!(page::count(&view(Tone::Pending, &"x".repeat(2_000_000))), None);
    let mut nameless = view(Tone::Pending, "x");
    nameless.card.tool = Inert::new(&"t".repeat(4_000));
    assert_eq!(page::count(&nameless), None, "a name that cannot be shown whole");
}

#[test]
fn without_a_proof_or_an_open_request_nothing_can_be_answered() {
    let mut blind = view(Tone::Pending, "x");
    blind.seen = None;
    for view in [blind, view(Tone::Approved, "x")] {
        assert!(pages(&view).iter().all(|page| sends(page).is_empty()));
    }
}

#[test]
fn what_is_pressed_there_says_what_was_seen_by_value_and_by_name() {
    let button = ButtonValue::one(ButtonToken::new([9; 16]), 7);
    let spelled = button.to_string().replace('.', "_");
    let seen = SEEN.to_string();
    let by_value = |value: Value| press(&value);
    let by_name = |name: String| {
        let mut event = press(&json!({}));
        event["event"]["action"]["name"] = json!(name);
        event
    };
    let proof = seen.replace('.', "_");
    for (event, vantage, grant) in [
        (
            by_value(json!({"decision": "approve", "b": button.to_string(), "seen": seen})),
            Vantage::Alone { seen: Some(SEEN) },
            None,
        ),
        (
            by_value(json!({"decision": "approve", "b": button.to_string(), "seen": "s1.odd"})),
            Vantage::Card,
            None,
        ),
        (
            by_name(format!("approve_{spelled}_{proof}")),
            Vantage::Alone { seen: Some(SEEN) },
            None,
        ),
        (
            by_name(format!("approve_{spelled}_{proof}_1h")),
            Vantage::Alone { seen: Some(SEEN) },
            Some("1h"),
        ),
        (
            by_name(format!("approve_{spelled}_1h")),
            Vantage::Card,
            Some("1h"),
        ),
    ] {
        let Inbound::Click(click) = callback::read(event.as_object().unwrap()) else {
            panic!("a click: {event}")
        };
        assert_eq!(
            (click.decision, click.button),
            (Decision::Approve, Some(button)),
            "{event}"
        );
        assert_eq!(
            (click.vantage, click.grant.as_deref()),
            (vantage, grant),
            "{event}"
        );
    }
    let odd = by_name(format!("approve_{spelled}_s1_odd"));
    assert!(matches!(
        callback::read(odd.as_object().unwrap()),
        Inbound::Ignored { .. }
    ));
}

#[test]
fn the_button_of_a_cut_card_asks_for_everything_and_decides_nothing() {
    let cut = crate::card::lay_out(&card(Tone::Pending, &"line\n".repeat(20_000), true));
    assert!(!cut.shows_all);
    let sent = sends(&json(&cut.card));
    let show: Vec<_> = sent.iter().filter(|value| value["decision"].is_null()).collect();
    assert_eq!(show.len(), 1, "{sent:?}");
    let event = press(show[0]);
    let Inbound::Ask(ask) = callback::read(event.as_object().unwrap()) else {
        panic!("an ask")
    };
    assert_eq!((ask.wants, ask.opener), (Wants::Everything, None));
    assert!(ask.button.is_some());
    let whole = crate::card::lay_out(&card(Tone::Pending, "line", true));
    let sent = sends(&json(&whole.card));
    assert!(sent.iter().all(|value| value["decision"].is_string()), "{sent:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_text_stays_text_on_every_page(
        arguments in prop_oneof![
            any::<String>(),
            proptest::sample::select(gatepost_channel::contract::HOSTILE).prop_map(|text| text.repeat(200)),
            ("[<&é\"\\\\支🚀a\n]{1,3}", 0_usize..30_000).prop_map(|(unit, times)| unit.repeat(times)),
        ],
        tool in any::<String>(),
    ) {
        let mut view = view(Tone::Pending, &arguments);
        view.card.tool = Inert::new(&tool);
        if page::count(&view).is_some() {
            let sent = pages(&view);
            prop_assert_eq!(sent.iter().map(boxed).collect::<String>(), view.arguments.as_str());
            let ours = ["plain_text", "div", "column_set", "column", "button", "form", "input"];
            for page in &sent {
                walk(page, &mut |map| {
                    if let Some(tag) = map.get("tag") {
                        assert!(ours.contains(&tag.as_str().unwrap()), "{tag}");
                    }
                });
            }
        }
    }
}
