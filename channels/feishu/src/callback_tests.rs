//! Reading clicks, and answering them.

use gatepost_channel::{ButtonToken, ButtonValue, Inert, Tone};
use proptest::prelude::*;

use super::*;
use crate::document;
use crate::fixture::{card, press};

fn read_value(event: &Value) -> Inbound {
    read(event.as_object().unwrap())
}

fn clicked(event: &Value) -> Click {
    match read_value(event) {
        Inbound::Click(click) => click,
        other => panic!("not a click: {other:?}"),
    }
}

#[test]
fn a_click_is_read_from_the_platforms_own_fields() {
    let button = ButtonValue::one(ButtonToken::new([9; 16]), 7);
    let mut event = press(&json!({"decision": "reject", "b": button.to_string(), "chat": "oc_forged"}));
    event["event"]["operator"]["user_id"] = json!("mira01");
    event["event"]["action"]["form_value"] = json!({"reason": "  too much  "});
    assert_eq!(
        clicked(&event),
        Click {
            app: Some("cli_demo000000000001".into()),
            chat: "oc_demo_approvals".into(),
            message: "om_demo_0001".into(),
            user: PlatformUser {
                ids: vec!["ou_demo_mira".into(), "on_demo_mira".into(), "mira01".into()],
                tenant: Some("tk_demo_0001".into()),
                from_elsewhere: false,
            },
            decision: Decision::Reject,
            button: Some(button),
            reason: Some("too much".into()),
            grant: None,
            edited: None,
            vantage: Vantage::Card,
            opener: None,
            replay_key: "ev_0001".into(),
        }
    );
}

#[test]
fn a_press_in_a_form_is_read_from_the_name_where_the_value_is_left_out() {
    let button = ButtonValue::one(ButtonToken::new([9; 16]), 7);
    let spelled = button.to_string().replace('.', "_");
    for (name, decision, grant) in [
        (format!("reject_{spelled}"), Decision::Reject, None),
        (format!("approve_{spelled}"), Decision::Approve, None),
        (
            format!("approve_{spelled}_session"),
            Decision::Approve,
            Some("session"),
        ),
    ] {
        for value in [json!({}), json!(null), json!("text")] {
            let mut event = press(&value);
            event["event"]["action"]["name"] = json!(name);
            let click = clicked(&event);
            assert_eq!((click.decision, click.button), (decision, Some(button)), "{name}");
            assert_eq!(click.grant.as_deref(), grant, "{name}");
        }
    }
    for name in [
        "reject",
        "approve_g1_00_7",
        "approve_session",
        &"approve_".repeat(90),
    ] {
        let mut event = press(&json!({}));
        event["event"]["action"]["name"] = json!(name);
        assert!(
            matches!(
                read_value(&event),
                Inbound::Ignored {
                    why: "value_missing",
                    ..
                }
            ),
            "{name}"
        );
    }
}

#[test]
fn a_scope_is_passed_on_and_one_that_cannot_be_read_approves_nothing() {
    let click = clicked(&press(&json!({"decision": "approve", "b": "x", "grant": "1h"})));
    assert_eq!(click.grant.as_deref(), Some("1h"));
    for grant in [
        json!(1),
        json!(null),
        json!({"scope": "1h"}),
        json!("h".repeat(500)),
    ] {
        let event = press(&json!({"decision": "approve", "b": "x", "grant": grant}));
        assert!(
            matches!(
                read_value(&event),
                Inbound::Ignored {
                    why: "grant_malformed",
                    ..
                }
            ),
            "{grant}"
        );
    }
}

#[test]
fn each_answer_reads_the_field_of_its_own_form() {
    let fields = json!({"reason": "too much", "reason_to_approve": "all \u{202e}fine"});
    for (decision, reason) in [("reject", "too much"), ("approve", "all \u{202e}fine")] {
        let mut event = press(&json!({"decision": decision, "b": "x"}));
        event["event"]["action"]["form_value"] = fields.clone();
        assert_eq!(clicked(&event).reason.as_deref(), Some(reason));
        for hostile in [json!(7), json!(["a"]), json!({}), json!(null), json!(" \n ")] {
            let fields = json!({"reason": hostile, "reason_to_approve": hostile});
            event["event"]["action"]["form_value"] = fields;
            assert_eq!(clicked(&event).reason, None);
        }
        event["event"]["action"]["form_value"] =
            json!({"reason": "批".repeat(9_000), "reason_to_approve": "批".repeat(9_000)});
        assert_eq!(clicked(&event).reason.unwrap().chars().count(), LONGEST_REASON);
    }
}

#[test]
fn a_foreign_button_value_is_kept_as_none() {
    let click = clicked(&press(
        &json!({"decision": "approve", "b": "g1.nonsense", "req": "cr_1"}),
    ));
    assert_eq!((click.button, click.reason), (None, None));
}

#[test]
fn what_decides_nothing_is_answered_with_a_toast() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change); 10] = [
        ("value_missing", |e| {
            e["event"]["action"].as_object_mut().unwrap().remove("value");
        }),
        ("value_missing", |e| {
            e["event"]["action"]["value"] = json!("approve");
        }),
        ("value_missing", |e| {
            e["event"]["action"] = json!(null);
        }),
        ("decision_missing", |e| {
            e["event"]["action"]["value"] = json!({"act": "approve"});
        }),
        ("decision_unknown", |e| {
            e["event"]["action"]["value"] = json!({"decision": "Approve"});
        }),
        ("operator_missing", |e| {
            e["event"]["operator"]["open_id"] = json!("");
        }),
        ("operator_missing", |e| {
            e["event"]["operator"]["open_id"] = json!("x".repeat(300));
        }),
        ("tenant_disagrees", |e| {
            e["header"]["tenant_key"] = json!("tk_other");
        }),
        ("message_missing", |e| {
            e["event"]["context"]["open_message_id"] = json!(5);
        }),
        ("event_id_missing", |e| {
            e["header"]["event_id"] = json!(null);
        }),
    ];
    for (expected, change) in cases {
        let mut event = press(&json!({"decision": "approve"}));
        change(&mut event);
        let Inbound::Ignored { answer, why } = read_value(&event) else {
            panic!("{expected}: it has an effect")
        };
        assert_eq!(why, expected);
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, &body["toast"]["type"]), (200, &json!("error")));
        assert!(body["toast"]["content"].is_string() && body["toast"]["i18n"]["zh_cn"].is_string());
    }
}

#[test]
fn an_answer_carries_the_toast_and_the_card_as_an_object() {
    let answer = answer(&Reply {
        refused: false,
        field: gatepost_channel::Field::Answer,
        tone: ReplyTone::Success,
        text: Inert::new("approved by <at id=all></at>"),
        card: Some(card(Tone::Approved, "{}", false)),
    });
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(
        body["toast"],
        json!({"type": "success", "content": "approved by <at id=all></at>"})
    );
    assert_eq!(body["card"]["type"], "raw");
    assert_eq!(body["card"]["data"]["schema"], "2.0");
    assert_eq!(body["card"]["data"]["header"]["template"], "green");
}

#[test]
fn an_answer_without_a_card_is_a_toast_alone() {
    let answer = answer(&Reply {
        refused: false,
        field: gatepost_channel::Field::Answer,
        tone: ReplyTone::Warning,
        text: Inert::new(&"x".repeat(5000)),
        card: None,
    });
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert!(body.get("card").is_none());
    assert_eq!(body["toast"]["content"].as_str().unwrap().len(), LONGEST_TOAST);
}

#[test]
fn a_challenge_is_encoded_not_pasted() {
    let answer = challenge("a\"b\\c");
    assert_eq!(
        serde_json::from_slice::<Value>(&answer.body).unwrap(),
        json!({"challenge": "a\"b\\c"})
    );
}

proptest! {
    #[test]
    fn no_document_panics(text in r#"\{("event"|"header"|"action"|"value"|"operator"|:|,|\{|\}|\[|\]|1|"x"|null){0,24}\}"#) {
        if let Ok(event) = document::parse(text.as_bytes()) {
            prop_assert!(matches!(read(&event), Inbound::Ignored { .. }), "it has an effect");
        }
    }
}
