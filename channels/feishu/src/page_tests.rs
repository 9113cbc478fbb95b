//! Messages to one person: all of it, in order, within the budget, with answers on the last alone; and what comes back from them.

use gatepost_channel::{
    ButtonToken, ButtonValue, Decision, DialogWords, EditForm, FullView, Inbound, Inert, MessageRef, Seen,
    Tone, Vantage, Wants,
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
fn what_is_left_where_the_platform_refuses_the_rest_holds_nothing_of_the_request_and_no_answer() {
    for tone in [Tone::Pending, Tone::Approved] {
        let view = view(tone, "canary");
        let bare = json(&page::bare(&view));
        assert!(sends(&bare).is_empty(), "{bare}");
        let text = bare.to_string();
        assert!(text.contains(&view.card.request_id), "{text}");
        assert!(
            !text.contains("canary") && !text.contains(view.card.tool.as_str()),
            "{text}"
        );
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

fn editor(view: FullView, text: &str) -> FullView {
    FullView {
        edit: Some(EditForm {
            text: text.to_owned(),
            label: "Arguments".into(),
            approve: "Approve with these arguments".into(),
            elsewhere: "They can be changed in the console.".into(),
        }),
        ..view
    }
}

/// The fields of a card, by name.
fn fields(card: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    walk(card, &mut |map| {
        if map.get("tag").is_some_and(|tag| tag == "input") {
            found.push(Value::Object(map.clone()));
        }
    });
    found
}

#[test]
fn arguments_stand_in_a_field_whole_or_not_at_all() {
    for (text, fits) in [
        ("{\"to\": \"<at id=all></at> 支払い\"}".to_owned(), true),
        ("支".repeat(1_000), true),
        ("支".repeat(1_001), false),
        ("🚀".repeat(501), false),
    ] {
        let sent = pages(&editor(view(Tone::Pending, "x"), &text));
        let (last, parts) = sent.split_last().unwrap();
        assert!(parts.iter().all(|part| fields(part).is_empty()));
        let fields = fields(last);
        let field = fields.iter().find(|field| field["name"] == "arguments");
        assert_eq!(
            field.map(|field| field["default_value"].as_str().unwrap()),
            fits.then_some(text.as_str())
        );
        assert_eq!(
            last.to_string().contains("changed in the console"),
            !fits,
            "what does not fit is said where else"
        );
        let edits: Vec<_> = sends(last)
            .into_iter()
            .filter(|value| value["edited"] == true)
            .collect();
        assert_eq!(edits.len(), usize::from(fits));
        assert!(
            edits
                .iter()
                .all(|value| value["decision"] == "approve" && value["seen"] == SEEN.to_string())
        );
    }
    // Nor where the message would become too heavy.
    let mut heavy = editor(view(Tone::Pending, "x"), &"\"".repeat(1_000));
    heavy.card.tool = Inert::new(&"\"".repeat(499));
    let fact = heavy.card.facts[0].clone();
    heavy.card.facts = vec![
        gatepost_channel::Fact {
            value: Inert::new(&"x".repeat(1_400)),
            ..fact
        };
        40
    ];
    if let gatepost_channel::Actions::Decide { asks, .. } = &mut heavy.card.actions {
        asks.grants = (0..4)
            .map(|number| gatepost_channel::GrantOffer {
                scope: format!("{number}h{}", "x".repeat(60)),
                label: "\"".repeat(100),
            })
            .collect();
        asks.once_more = Some(gatepost_channel::OnceMore {
            title: "\"".repeat(100),
            text: "\"".repeat(300),
            yes: String::new(),
            no: String::new(),
        });
    }
    let sent = pages(&heavy);
    let last = &sent[sent.len() - 1];
    assert!(fields(last).iter().all(|field| field["name"] != "arguments"));
    assert!(last.to_string().contains("changed in the console"));
}

#[test]
fn changed_arguments_are_read_with_the_press_or_it_is_none() {
    let button = ButtonValue::one(ButtonToken::new([9; 16]), 7);
    let seen = SEEN.to_string();
    let value = json!({"decision": "approve", "b": button.to_string(), "seen": seen, "edited": true});
    let by_name = || {
        let mut event = press(&json!({}));
        let name = format!("edit_{button}_{seen}").replace('.', "_");
        event["event"]["action"]["name"] = json!(name);
        event
    };
    let typed = " {\"a\": 1}\n";
    for mut event in [press(&value), by_name()] {
        event["event"]["action"]["form_value"] =
            json!({"arguments": typed, "reason_to_edit": " because ", "reason_to_approve": "not this"});
        let Inbound::Click(click) = callback::read(event.as_object().unwrap()) else {
            panic!("a click: {event}")
        };
        assert_eq!(
            (click.decision, click.button, click.vantage),
            (
                Decision::Approve,
                Some(button),
                Vantage::Alone { seen: Some(SEEN) }
            )
        );
        assert_eq!(click.edited.as_deref(), Some(typed), "as it came");
        assert_eq!(click.reason.as_deref(), Some("because"));
        for missing in [json!(null), json!({}), json!({"arguments": 7})] {
            event["event"]["action"]["form_value"] = missing;
            assert!(
                matches!(
                    callback::read(event.as_object().unwrap()),
                    Inbound::Ignored {
                        why: "arguments_missing",
                        ..
                    }
                ),
                "{event}"
            );
        }
    }
    for (decision, edited) in [
        ("approve", json!(false)),
        ("approve", json!("true")),
        ("reject", json!(true)),
    ] {
        let odd =
            press(&json!({"decision": decision, "b": button.to_string(), "seen": seen, "edited": edited}));
        assert!(matches!(
            callback::read(odd.as_object().unwrap()),
            Inbound::Ignored {
                why: "edit_malformed",
                ..
            }
        ));
    }
    // What stands in a field of that name is no edit where the button does not say so.
    let mut plain = press(&json!({"decision": "approve", "b": button.to_string(), "seen": seen}));
    plain["event"]["action"]["form_value"] = json!({"arguments": typed});
    assert!(
        matches!(callback::read(plain.as_object().unwrap()), Inbound::Click(click) if click.edited.is_none())
    );
}

#[test]
fn where_arguments_may_be_changed_every_card_opens_everything() {
    let mut open = card(Tone::Pending, "line", true);
    if let gatepost_channel::Actions::Decide { asks, .. } = &mut open.actions {
        asks.edits = true;
    }
    let laid_out = crate::card::lay_out(&open);
    assert!(laid_out.shows_all);
    let sent = sends(&json(&laid_out.card));
    assert_eq!(
        sent.iter().filter(|value| value["show"] == "everything").count(),
        1
    );
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
