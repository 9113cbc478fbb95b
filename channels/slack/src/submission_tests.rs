//! What becomes of an answer in a modal, and how the modal is answered.

use gatepost_channel::{
    ButtonToken, ButtonValue, Channel as _, Click, Decision, Field, HttpAnswer, Inbound, Inert, Refusal,
    Reply, ReplyTone, Seen, Vantage,
};
use serde_json::{Value, json};

use crate::fixture::{channel, interaction, verify};

/// An answer as Slack sends it, from a modal that was opened with this baggage.
fn submission(baggage: &Value, state: &Value) -> Value {
    json!({
        "type": "view_submission",
        "team": { "id": "T0DEMO0001" },
        "user": { "id": "U0AAAA1111", "team_id": "T0DEMO0001" },
        "api_app_id": "A0DEMO0001",
        "trigger_id": "7.8.abc",
        "view": {
            "id": "V0001", "type": "modal", "callback_id": "gatepost_answer",
            "private_metadata": baggage.to_string(), "hash": "1.abc",
            "state": { "values": state },
        },
    })
}

fn baggage() -> Value {
    json!({
        "b": "g1.a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5.2", "c": "C0APPROVE1", "m": "1795953000.000100",
        "s": Seen::new([0x5e; 16]).to_string(),
    })
}

fn chosen(value: &str, why: &Value) -> Value {
    json!({
        "answer": { "answer": { "type": "radio_buttons", "selected_option": { "value": value } } },
        "why": { "reason": { "type": "plain_text_input", "value": why } },
    })
}

fn click(payload: &Value) -> Click {
    match verify(&interaction(payload)) {
        Ok(Inbound::Click(click)) => click,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_is_read_whole() {
    let click = click(&submission(
        &baggage(),
        &chosen("approve:1h", &json!("  checked\n")),
    ));
    assert_eq!(click.app.as_deref(), Some("A0DEMO0001"));
    assert_eq!(
        (click.chat.as_str(), click.message.as_str()),
        ("C0APPROVE1", "1795953000.000100")
    );
    assert_eq!(click.user.ids, ["U0AAAA1111"]);
    assert_eq!(click.user.tenant.as_deref(), Some("T0DEMO0001"));
    assert_eq!(
        (click.decision, click.grant.as_deref()),
        (Decision::Approve, Some("1h"))
    );
    assert_eq!(click.reason.as_deref(), Some("checked"));
    assert_eq!(
        click.button,
        Some(ButtonValue::one(ButtonToken::new([0xa5; 16]), 2))
    );
    let seen = Some(Seen::new([0x5e; 16]));
    assert_eq!((click.vantage, click.opener), (Vantage::Alone { seen }, None));
}

#[test]
fn the_answer_of_a_form_travels_with_it_and_cannot_be_chosen() {
    let mut fixed = baggage();
    fixed["d"] = json!("reject");
    fixed.as_object_mut().unwrap().remove("s");
    let click = click(&submission(&fixed, &chosen("approve", &json!("no"))));
    assert_eq!(
        (click.decision, click.vantage),
        (Decision::Reject, Vantage::Alone { seen: None })
    );
}

#[test]
fn blank_is_no_reason_and_a_long_one_is_capped() {
    let reason = |typed: Value| click(&submission(&baggage(), &chosen("reject", &typed))).reason;
    for nothing in [json!(null), json!(" \t"), json!(7), json!(["a"])] {
        assert_eq!(reason(nothing), None);
    }
    assert_eq!(reason(json!("批".repeat(9_000))).unwrap().chars().count(), 2_000);
}

#[test]
fn the_arguments_come_as_they_were_typed() {
    let with = |field: Value| {
        let mut state = chosen("approve", &json!(null));
        state["args"] = field;
        click(&submission(&baggage(), &state)).edited
    };
    let typed = "{\n  \"to\": \" <!channel> &amp; \"\n}\n";
    assert_eq!(
        with(json!({ "args": { "type": "plain_text_input", "value": typed } })).as_deref(),
        Some(typed)
    );
    // A field that was emptied is no field that was left alone.
    for emptied in [json!(null), json!(7), json!("")] {
        assert_eq!(
            with(json!({ "args": { "type": "plain_text_input", "value": emptied } })).as_deref(),
            Some("")
        );
    }
    for none in [json!(null), json!({}), json!("args")] {
        assert_eq!(with(none), None);
    }
}

#[test]
fn the_replay_key_names_the_submission() {
    let first = submission(&baggage(), &chosen("reject", &json!("a")));
    let key = click(&first).replay_key;
    assert_eq!(key, click(&first).replay_key);
    assert!(key.starts_with("1795953000.000100|"));
    for (pointer, value) in [
        ("/trigger_id", "7.9.abc"),
        ("/view/id", "V0002"),
        ("/user/id", "U0BBBB2222"),
        ("/view/state/values/why/reason/value", "b"),
    ] {
        let mut other = first.clone();
        *other.pointer_mut(pointer).unwrap() = json!(value);
        assert_ne!(key, click(&other).replay_key, "{pointer}");
    }
}

#[test]
fn what_is_not_ours_or_says_nothing_has_no_effect() {
    let good = || submission(&baggage(), &chosen("reject", &json!("a")));
    let with = |pointer: &str, value: Value| {
        let mut payload = good();
        *payload.pointer_mut(pointer).unwrap() = value;
        payload
    };
    for (payload, expected) in [
        (with("/view/callback_id", json!("another")), "other_view"),
        (with("/view/private_metadata", json!("")), "view_without_answer"),
        (with("/view/private_metadata", json!("{}")), "view_without_answer"),
        (
            with("/view/private_metadata", json!("x".repeat(20_000))),
            "view_without_answer",
        ),
        (
            with(
                "/view/private_metadata",
                json!({"b": "", "c": "a b", "m": "1"}).to_string().into(),
            ),
            "view_without_answer",
        ),
        (with("/view/state", json!({})), "view_without_answer"),
        (
            submission(&baggage(), &chosen("Approve", &json!(null))),
            "view_without_answer",
        ),
    ] {
        assert_eq!(
            verify(&interaction(&payload)).unwrap(),
            Inbound::Ignored {
                answer: HttpAnswer::empty(),
                why: expected
            },
            "{payload}"
        );
    }
    let odd = click(&with("/view/private_metadata", {
        let mut odd = baggage();
        odd["s"] = json!("s1.nonsense");
        odd["b"] = json!("nonsense");
        json!(odd.to_string())
    }));
    assert_eq!((odd.button, odd.vantage), (None, Vantage::Alone { seen: None }));
    for (pointer, value) in [
        ("/user/id", json!("a b")),
        ("/user/id", json!(null)),
        ("/api_app_id", json!(null)),
    ] {
        assert!(matches!(
            verify(&interaction(&with(pointer, value))),
            Err(Refusal { .. })
        ));
    }
}

#[test]
fn a_modal_stays_open_only_where_the_answer_did_not_count() {
    let channel = channel("http://127.0.0.1:1");
    let about = |click: &Click, refused: bool, field: Field| {
        let reply = Reply {
            tone: ReplyTone::Warning,
            text: Inert::new("Nothing was changed <!channel>."),
            refused,
            field,
            card: None,
        };
        channel.webhook().unwrap().answer(click, &reply)
    };
    let answer = |click: &Click, refused: bool| about(click, refused, Field::Answer);
    let mut alone = click(&submission(&baggage(), &chosen("reject", &json!("a"))));
    let said = |field: &str| {
        HttpAnswer::json(
            &json!({"response_action": "errors", "errors": {field: "Nothing was changed <!channel>."}}),
        )
    };
    assert_eq!(answer(&alone, false), HttpAnswer::empty());
    assert_eq!(answer(&alone, true), said("answer"));
    assert_eq!(about(&alone, true, Field::Reason), said("why"));
    assert_eq!(about(&alone, true, Field::Arguments), said("args"));
    alone.vantage = Vantage::Alone { seen: None };
    assert_eq!(answer(&alone, true), said("why"), "a form has the one field");
    alone.vantage = Vantage::Card;
    assert_eq!(answer(&alone, true), HttpAnswer::empty());
}
