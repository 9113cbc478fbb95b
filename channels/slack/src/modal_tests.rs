//! Modals: how they look, that they fit, that nothing is left out of them, and that nothing untrusted takes effect in them.

use gatepost_channel::{
    Actions, Asks, Card, Decision, Dialog, DialogWords, EditForm, FullView, GrantOffer, Inert, Link,
    MessageRef, OnceMore, ReasonForm, Say, Seen, Tone,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::blocks::cost;
use crate::fixture::{card, open_actions};
use crate::modal::{self, Baggage};

fn words() -> DialogWords {
    DialogWords {
        close: "Close".into(),
        send: "Send".into(),
        answer: "Your answer".into(),
        part: "Part {part} of {parts}".into(),
    }
}

fn at() -> MessageRef {
    MessageRef {
        chat: "C0APPROVE1".into(),
        message: "1795953000.000100".into(),
    }
}

pub(crate) fn view(card: Card, arguments: &str) -> FullView {
    FullView {
        card,
        arguments: Inert::new(arguments),
        at: at(),
        seen: Some(Seen::new([0x5e; 16])),
        edit: None,
        words: words(),
    }
}

pub(crate) fn form(card: Card, decision: Decision, grant: Option<&str>, required: bool) -> ReasonForm {
    ReasonForm {
        card,
        at: at(),
        decision,
        grant: grant.map(str::to_owned),
        required,
        words: words(),
    }
}

fn edit(text: &str) -> EditForm {
    EditForm {
        text: text.to_owned(),
        label: "Arguments (JSON)".into(),
        approve: "Approve with these arguments".into(),
        elsewhere: "They can be changed in the console.".into(),
    }
}

fn say(text: &str, url: Option<&str>) -> Say {
    Say {
        title: "Show everything".into(),
        text: Inert::new(text),
        link: url.map(|url| Link {
            label: "Open in the console".into(),
            url: url.to_owned(),
        }),
        words: words(),
    }
}

fn demanding() -> Actions {
    let Actions::Decide { token, revision, .. } = open_actions(None) else {
        unreachable!("an open request")
    };
    Actions::Decide {
        token,
        revision,
        approve_when_cut: false,
        full_view: None,
        asks: Asks {
            reason_to_approve: true,
            reason_to_reject: true,
            once_more: Some(OnceMore {
                title: "Approve this call?".into(),
                text: "It runs as soon as enough people approve.".into(),
                yes: "Approve".into(),
                no: "Go back".into(),
            }),
            grants: vec![GrantOffer {
                scope: "1h".into(),
                label: "Approve calls like this for 1h".into(),
            }],
            edits: false,
        },
    }
}

fn laid_out(dialog: &Dialog) -> Value {
    serde_json::to_value(modal::lay_out(dialog)).unwrap()
}

fn everything(view: FullView) -> Value {
    laid_out(&Dialog::Everything(Box::new(view)))
}

/// All literal text of the modal, put together.
pub(crate) fn literally(modal: &Value) -> String {
    let blocks = modal["blocks"].as_array().unwrap();
    let literal = blocks.iter().filter(|block| block["type"] == "rich_text");
    literal
        .flat_map(|block| block["elements"][0]["elements"].as_array().unwrap())
        .map(|element| element["text"].as_str().unwrap())
        .collect()
}

/// Slack's own limits, and no element that reads markup.
pub(crate) fn assert_fits(modal: &Value) {
    assert_eq!(modal["type"], "modal");
    assert!(modal.to_string().len() <= 250_000);
    for label in ["title", "submit", "close"] {
        let text = modal[label]["text"].as_str().unwrap_or_default();
        assert!(cost(text) <= 24, "{label}: {text}");
    }
    assert!(modal["private_metadata"].as_str().unwrap_or_default().len() <= 3_000);
    let blocks = modal["blocks"].as_array().unwrap();
    assert!((1..=100).contains(&blocks.len()), "{}", blocks.len());
    let mut ids: Vec<_> = blocks
        .iter()
        .filter_map(|block| block["block_id"].as_str())
        .collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
    walk(modal, &mut |key, value| match (key, value) {
        ("text", Value::String(text)) => assert!((1..=3_000).contains(&cost(text)), "{}", cost(text)),
        ("type", kind) => assert!(
            [
                "modal",
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
                "radio_buttons",
            ]
            .contains(&kind.as_str().unwrap()),
            "{kind}"
        ),
        ("initial_value", text) => assert!(cost(text.as_str().unwrap()) <= 3_000),
        ("max_length", most) => assert!((1..=3_000).contains(&most.as_u64().unwrap())),
        ("emoji", emoji) => assert_eq!(emoji, &Value::Bool(false)),
        ("options", options) => {
            assert!((1..=10).contains(&options.as_array().unwrap().len()));
            for option in options.as_array().unwrap() {
                assert!(cost(option["text"]["text"].as_str().unwrap()) <= 75);
                assert!(option["value"].as_str().unwrap().len() <= 75);
            }
        }
        _ => {}
    });
}

fn walk(value: &Value, seen: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            seen(key, value);
            walk(value, seen);
        }),
        Value::Array(list) => list.iter().for_each(|value| walk(value, seen)),
        _ => {}
    }
}

#[test]
fn every_modal_has_its_look() {
    let open = |actions| card(Tone::Pending, "amount: 50000", actions);
    let cases = [
        ("wait", Dialog::Wait(say("One moment …", None))),
        (
            "tell",
            Dialog::Tell(say(
                "Too long <!channel>.",
                Some("https://gate.example.com/console/requests/cr_1"),
            )),
        ),
        (
            "reason",
            Dialog::Reason(Box::new(form(
                open(open_actions(None)),
                Decision::Reject,
                None,
                false,
            ))),
        ),
        (
            "reason_needed",
            Dialog::Reason(Box::new(form(
                open(demanding()),
                Decision::Approve,
                Some("1h"),
                true,
            ))),
        ),
        (
            "reason_settled",
            Dialog::Reason(Box::new(form(
                card(Tone::Rejected, "x", Actions::None),
                Decision::Reject,
                None,
                false,
            ))),
        ),
        (
            "everything",
            Dialog::Everything(Box::new(view(
                open(open_actions(None)),
                "amount: 50000\npayee: R&D <!channel>",
            ))),
        ),
        (
            "everything_demanding",
            Dialog::Everything(Box::new(view(open(demanding()), "amount: 50000"))),
        ),
        (
            "everything_edit",
            Dialog::Everything(Box::new(FullView {
                edit: Some(edit("{\n  \"payee\": \"R&amp;D 🚀 <!channel>\"\n}")),
                ..view(open(open_actions(None)), "payee: R&amp;D 🚀 <!channel>")
            })),
        ),
        (
            "everything_edit_too_long",
            Dialog::Everything(Box::new(FullView {
                edit: Some(edit(&"1,\n".repeat(1_001))),
                ..view(open(open_actions(None)), "as long as you like")
            })),
        ),
        (
            "everything_settled",
            Dialog::Everything(Box::new(FullView {
                seen: None,
                ..view(card(Tone::Approved, "x", Actions::None), "amount: 50000")
            })),
        ),
    ];
    insta::with_settings!({ snapshot_path => "../tests/golden", prepend_module_to_snapshot => false }, {
        for (name, dialog) in cases {
            let modal = modal::lay_out(&dialog);
            assert_fits(&serde_json::to_value(&modal).unwrap());
            insta::assert_json_snapshot!(format!("modal_{name}"), modal);
        }
    });
}

#[test]
fn what_is_held_is_shown_letter_for_letter() {
    let line = "step: copy <shard> to <archive> && verify; 支払い\n";
    for times in [1, 100, 2_000] {
        let view = view(card(Tone::Pending, "", open_actions(None)), &line.repeat(times));
        assert!(modal::holds(&view), "{times}");
        let modal = everything(view.clone());
        assert_fits(&modal);
        assert_eq!(literally(&modal), view.arguments.as_str());
    }
    let endless = view(card(Tone::Pending, "", open_actions(None)), &line.repeat(100_000));
    assert!(!modal::holds(&endless));
    let mut nameless = view(card(Tone::Pending, "", open_actions(None)), "x");
    nameless.card.tool = Inert::new(&"t".repeat(4_000));
    assert!(!modal::holds(&nameless), "a name that cannot be shown whole");
}

#[test]
fn without_a_proof_or_an_open_request_there_is_nothing_to_send() {
    let mut blind = view(card(Tone::Pending, "", open_actions(None)), "x");
    blind.seen = None;
    let over = view(card(Tone::Approved, "", Actions::None), "x");
    for view in [blind, over] {
        let modal = everything(view);
        assert_eq!(
            (&modal["submit"], &modal["private_metadata"]),
            (&Value::Null, &Value::Null)
        );
        assert!(
            modal["blocks"]
                .as_array()
                .unwrap()
                .iter()
                .all(|block| block["type"] != "input")
        );
    }
}

#[test]
fn the_baggage_names_card_revision_place_and_proof() {
    let modal = everything(view(card(Tone::Pending, "", open_actions(None)), "x"));
    let baggage: Baggage = serde_json::from_str(modal["private_metadata"].as_str().unwrap()).unwrap();
    assert_eq!(
        baggage,
        Baggage {
            button: "g1.a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5.2".into(),
            chat: "C0APPROVE1".into(),
            message: "1795953000.000100".into(),
            seen: Some(Seen::new([0x5e; 16]).to_string()),
            answer: None,
        }
    );
    let offered = form(
        card(Tone::Pending, "", open_actions(None)),
        Decision::Approve,
        Some("1h"),
        true,
    );
    let modal = laid_out(&Dialog::Reason(Box::new(offered)));
    let baggage: Baggage = serde_json::from_str(modal["private_metadata"].as_str().unwrap()).unwrap();
    assert_eq!(
        (baggage.answer.as_deref(), baggage.seen),
        (Some("approve:1h"), None)
    );
}

#[test]
fn words_are_required_only_where_every_answer_needs_them() {
    let optional = |approve: bool, reject: bool| {
        let mut actions = demanding();
        if let Actions::Decide { asks, .. } = &mut actions {
            (asks.reason_to_approve, asks.reason_to_reject) = (approve, reject);
        }
        let modal = everything(view(card(Tone::Pending, "", actions), "x"));
        let blocks = modal["blocks"].as_array().unwrap().clone();
        blocks
            .into_iter()
            .find(|block| block["block_id"] == "why")
            .unwrap()["optional"]
            .clone()
    };
    assert_eq!(optional(true, true), json!(false));
    for (approve, reject) in [(true, false), (false, true), (false, false)] {
        assert_eq!(optional(approve, reject), json!(true));
    }
}

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        proptest::sample::select(gatepost_channel::contract::HOSTILE).prop_map(str::to_owned),
        "[a-z<>&*_`~:@!|\n ]{0,400}",
        ("[<&é支🚀a\u{301}\n]{1,3}", 0_usize..60_000).prop_map(|(unit, times)| unit.repeat(times)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_stays_text_in_every_modal(tool in hostile(), arguments in hostile(), fact in hostile(), own in any::<String>()) {
        let mut shown = card(Tone::Pending, "", demanding());
        shown.tool = Inert::new(&tool);
        shown.facts.iter_mut().for_each(|shown| shown.value = Inert::new(&fact));
        shown.title.clone_from(&own);
        shown.words.reason.clone_from(&own);
        let mut view = view(shown.clone(), &arguments);
        view.edit = Some(edit(&Value::from(tool.as_str()).to_string()));
        if modal::holds(&view) {
            let modal = everything(view.clone());
            assert_fits(&modal);
            prop_assert_eq!(literally(&modal), if view.arguments.as_str().is_empty() { "" } else { view.arguments.as_str() });
            let inputs = modal["blocks"].as_array().unwrap().iter().filter(|block| block["type"] == "input").count();
            let fits = modal["blocks"].as_array().unwrap().iter().any(|block| block["block_id"] == "args");
            prop_assert_eq!(inputs, 2 + usize::from(fits), "our fields and none of theirs");
        }
        assert_fits(&laid_out(&Dialog::Reason(Box::new(form(shown, Decision::Reject, None, true)))));
        assert_fits(&laid_out(&Dialog::Tell(say(&arguments, Some(&own)))));
    }
}
