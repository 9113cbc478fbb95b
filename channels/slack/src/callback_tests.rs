//! What becomes of a verified interaction.

use gatepost_channel::{
    ButtonToken, ButtonValue, Click, Decision, HttpAnswer, Inbound, Refusal, UtcMillis, Verifier, Wants,
};
use serde_json::{Value, json};

use crate::callback::AppId;
use crate::fixture::{NOW, SECRET, interaction, press, signed, verifier, verify};

fn click(payload: &Value) -> Click {
    match verify(&interaction(payload)) {
        Ok(Inbound::Click(click)) => click,
        other => panic!("{other:?}"),
    }
}

fn with(pointer: &str, value: Value) -> Value {
    let mut payload = press();
    *payload.pointer_mut(pointer).unwrap() = value;
    payload
}

fn without(parent: &str, key: &str) -> Value {
    let mut payload = press();
    payload
        .pointer_mut(parent)
        .unwrap()
        .as_object_mut()
        .unwrap()
        .remove(key);
    payload
}

#[test]
fn a_press_is_read_whole() {
    let click = click(&press());
    assert_eq!(click.app.as_deref(), Some("A0DEMO0001"));
    assert_eq!(
        (click.chat.as_str(), click.message.as_str()),
        ("C0APPROVE1", "1795953000.000100")
    );
    assert_eq!(click.user.ids, ["U0AAAA1111"]);
    assert_eq!(click.user.tenant.as_deref(), Some("T0DEMO0001"));
    assert_eq!(click.decision, Decision::Approve);
    assert_eq!(
        click.button,
        Some(ButtonValue::one(ButtonToken::new([0xa5; 16]), 2))
    );
    let (message, press) = click.replay_key.split_once('|').expect("message and press");
    assert_eq!((message, press.len()), (click.message.as_str(), 64));
}

#[test]
fn the_replay_key_names_the_press_and_nothing_else() {
    let first = click(&press()).replay_key;
    assert_eq!(first, click(&with("/message/text", json!("other"))).replay_key);
    for (pointer, value) in [
        ("/actions/0/action_ts", "1795953601.000000"),
        ("/actions/0/action_id", "reject"),
        ("/actions/0/value", "g1.a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5.3"),
        ("/container/message_ts", "1795953000.000200"),
        ("/user/id", "U0BBBB2222"),
        ("/team/id", "T0OTHER001"),
    ] {
        assert_ne!(first, click(&with(pointer, json!(value))).replay_key, "{pointer}");
    }
}

#[test]
fn what_is_offered_comes_with_the_press() {
    let granted = click(&with("/actions/0/action_id", json!("approve:1h")));
    assert_eq!(
        (granted.decision, granted.grant.as_deref()),
        (Decision::Approve, Some("1h"))
    );
    assert_eq!(click(&press()).grant, None);
    for other in ["approve_1h", "reject:1h", &format!("approve:{}", "h".repeat(99))] {
        let press = with("/actions/0/action_id", json!(other));
        assert!(matches!(
            verify(&interaction(&press)).unwrap(),
            Inbound::Ignored {
                why: "other_action",
                ..
            }
        ));
    }
}

#[test]
fn the_clicker_comes_from_their_own_workspace() {
    let guest = with("/user/team_id", json!("T0GUEST001"));
    assert_eq!(click(&guest).user.tenant.as_deref(), Some("T0GUEST001"));
    let grid = with("/team", Value::Null);
    assert_eq!(click(&grid).user.tenant.as_deref(), Some("T0DEMO0001"));
    assert!(click(&guest).user.from_elsewhere, "the app lives in another one");
    let mut grid = guest.clone();
    grid["enterprise"] = json!({"id": "E0GRID0001"});
    assert!(
        !click(&grid).user.from_elsewhere,
        "workspaces of one organisation"
    );
    assert!(!click(&crate::fixture::press()).user.from_elsewhere);
    let old = without("/user", "team_id");
    assert_eq!(click(&old).user.tenant.as_deref(), Some("T0DEMO0001"));
    let enterprise = with("/user/id", json!("W0FAKE0001"));
    assert_eq!(click(&enterprise).user.ids, ["W0FAKE0001"]);
}

#[test]
fn a_foreign_value_is_no_button_of_ours() {
    for value in [json!("cr_0002"), json!(null), json!(7), json!("批准")] {
        assert_eq!(click(&with("/actions/0/value", value)).button, None);
    }
}

#[test]
fn the_message_is_found_beside_a_bare_container() {
    let payload = with("/container", json!({ "type": "something_new" }));
    let click = click(&payload);
    assert_eq!(
        (click.chat.as_str(), click.message.as_str()),
        ("C0APPROVE1", "1795953000.000100")
    );
}

#[test]
fn what_is_missing_or_odd_is_unreadable() {
    for (payload, reason) in [
        (without("", "type"), "payload_incomplete"),
        (without("/user", "id"), "payload_incomplete"),
        (without("", "container"), "payload_incomplete"),
        (with("/actions", json!([])), "payload_incomplete"),
        (
            with(
                "/actions",
                json!([{ "action_id": "reject" }, { "action_id": "approve" }]),
            ),
            "actions_ambiguous",
        ),
        (
            with("/actions", json!([{ "value": "approve" }])),
            "payload_incomplete",
        ),
        (without("", "api_app_id"), "payload_incomplete"),
        (with("/user/id", json!("U0\u{0}")), "id_malformed"),
        (with("/user/id", json!("")), "id_malformed"),
        (with("/user/id", json!(["U0AAAA1111"])), "id_malformed"),
        (
            with("/container/message_ts", json!(1_795_953_000)),
            "id_malformed",
        ),
        (
            with("/container/channel_id", json!("C".repeat(300))),
            "id_malformed",
        ),
    ] {
        assert_eq!(
            verify(&interaction(&payload)),
            Err(Refusal::unreadable(reason)),
            "{payload}"
        );
    }
}

#[test]
fn a_button_that_opens_something_decides_nothing() {
    for (action_id, wants) in [
        ("show_everything", Wants::Everything),
        ("reject_with_reason", Wants::Reason(Decision::Reject)),
    ] {
        let mut payload = with("/actions/0/action_id", json!(action_id));
        payload["trigger_id"] = json!("1.2.abc");
        let Ok(Inbound::Ask(ask)) = verify(&interaction(&payload)) else {
            panic!("{action_id} opens something")
        };
        assert_eq!(ask.wants, wants);
        assert_eq!(
            ask.opener.as_ref().map(gatepost_channel::Opener::as_str),
            Some("1.2.abc")
        );
        assert!(
            !format!("{ask:?}").contains("1.2.abc"),
            "the trigger does not print"
        );
        assert_eq!(
            (ask.chat.as_str(), ask.message.as_str()),
            ("C0APPROVE1", "1795953000.000100")
        );
        assert_eq!(ask.user.ids, ["U0AAAA1111"]);
        assert!(ask.button.is_some());
    }
    let without = with("/actions/0/action_id", json!("show_everything"));
    assert!(matches!(verify(&interaction(&without)), Ok(Inbound::Ask(ask)) if ask.opener.is_none()));
    for odd in [json!(7), json!(""), json!("x".repeat(600)), json!(null)] {
        let mut payload = press();
        payload["trigger_id"] = odd;
        assert_eq!(click(&payload).opener, None);
    }
}

#[test]
fn everything_else_is_acknowledged_and_dropped() {
    for (payload, expected) in [
        (
            with("/actions/0/action_id", json!("open_console")),
            "other_action",
        ),
        (with("/actions/0/action_id", json!("Approve")), "other_action"),
        (
            json!({ "type": "view_submission", "user": { "id": "U1" }, "view": { "callback_id": "other" } }),
            "other_view",
        ),
        (
            json!({ "type": "view_closed", "user": { "id": "U1" } }),
            "view_closed",
        ),
        (json!({ "type": "shortcut" }), "shortcut"),
        (json!({ "type": "something_new" }), "unknown_interaction"),
    ] {
        let judged = verify(&interaction(&payload)).unwrap();
        assert_eq!(
            judged,
            Inbound::Ignored {
                answer: HttpAnswer::empty(),
                why: expected
            }
        );
    }
    let mut view = with("/container", json!({ "type": "view", "view_id": "V1" }));
    view.as_object_mut()
        .unwrap()
        .retain(|key, _| key != "message" && key != "channel");
    assert!(matches!(
        verify(&interaction(&view)),
        Ok(Inbound::Ignored {
            why: "not_on_a_message",
            ..
        })
    ));
}

#[test]
fn a_form_has_one_payload_and_a_known_type() {
    let twice = signed(
        SECRET,
        "application/x-www-form-urlencoded",
        b"payload=%7B%7D&payload=%7B%7D",
    );
    assert_eq!(verify(&twice), Err(Refusal::unreadable("payload_duplicated")));
    let plain = signed(SECRET, "text/plain", b"payload=%7B%7D");
    assert_eq!(verify(&plain), Err(Refusal::unreadable("content_type")));
    let latin = signed(SECRET, "application/x-www-form-urlencoded", b"payload=\xe9");
    assert_eq!(verify(&latin), Err(Refusal::unreadable("not_utf8")));
    let charset = signed(
        SECRET,
        "Application/X-WWW-Form-Urlencoded; charset=utf-8",
        b"command=%2Fapprovals",
    );
    assert!(matches!(
        verify(&charset),
        Ok(Inbound::Ignored {
            why: "command_incomplete",
            ..
        })
    ));
}

#[test]
fn without_a_configured_app_the_secret_proves_it() {
    let judged = verifier(&[SECRET], AppId::Proven("fingerprint".into()))
        .verify(&interaction(&press()), UtcMillis::from_secs(NOW));
    match judged {
        Ok(Inbound::Click(click)) => assert_eq!(click.app.as_deref(), Some("fingerprint")),
        other => panic!("{other:?}"),
    }
}
