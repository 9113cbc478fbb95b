//! Reading messages to the bot.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixture::{self, group_message, message, now, sealed, signed, unsigned};

fn judged(event: &Value) -> Inbound {
    read(event.as_object().unwrap())
}

fn command(event: &Value) -> Command {
    match judged(event) {
        Inbound::Command(command) => command,
        other => panic!("not a command: {other:?}"),
    }
}

fn ignored(event: &Value) -> &'static str {
    match judged(event) {
        Inbound::Ignored { why, .. } => why,
        other => panic!("not ignored: {other:?}"),
    }
}

#[test]
fn a_message_is_read_from_the_platforms_own_fields() {
    let mut event = message("approve K7QF-2M9X looks fine");
    event["event"]["sender"]["sender_id"]["user_id"] = json!("mira01");
    assert_eq!(
        command(&event),
        Command {
            app: Some(fixture::APP.into()),
            place: Place::Private {
                chat: "oc_demo_mira".into()
            },
            user: PlatformUser {
                ids: vec!["ou_demo_mira".into(), "on_demo_mira".into(), "mira01".into()],
                tenant: Some("tk_demo_0001".into()),
                from_elsewhere: false,
            },
            called: "/gatepost".into(),
            words: "approve K7QF-2M9X looks fine".into(),
            said_at: Some(UtcMillis(1_795_953_600_100)),
            answered: Answered::Apart,
            replay_key: "message|om_said_0001".into(),
        }
    );
}

#[test]
fn the_same_message_sent_again_has_the_key_of_the_first() {
    let first = command(&message("pending"));
    let mut again = message("pending");
    again["header"]["event_id"] = json!("ev_0102");
    again["header"]["create_time"] = json!("1795953615000");
    assert_eq!(command(&again).replay_key, first.replay_key);
    again["event"]["message"]["message_id"] = json!("om_said_0002");
    assert_ne!(command(&again).replay_key, first.replay_key);
}

#[test]
fn the_name_of_the_bot_and_mentions_are_no_words() {
    for (said, words) in [
        ("pending", "pending"),
        ("/gatepost pending", "pending"),
        ("  /Gatepost   show x ", "show x"),
        ("gatepost help", "help"),
        ("/gatepost", ""),
        ("/gatepostal x", "/gatepostal x"),
    ] {
        assert_eq!(command(&message(said)).words, words, "{said}");
    }
    for (said, words) in [
        ("@_user_1 pending", "pending"),
        ("@_user_1 /gatepost pending", "pending"),
        (
            "@_user_1\u{a0}reject x ask @_user_2 first",
            "reject x ask   first",
        ),
        ("@_user_10@_user_1 help", "help"),
    ] {
        let all = ["ou_bot"; 10];
        assert_eq!(command(&group_message(said, &all)).words, words, "{said}");
    }
}

#[test]
fn in_a_group_only_a_mention_makes_a_command() {
    let event = group_message("@_user_1 pending", &["ou_bot", "ou_demo_noor"]);
    assert_eq!(
        command(&event).place,
        Place::Group {
            chat: "oc_demo_approvals".into(),
            message: "om_said_0001".into(),
            mentioned: vec!["ou_bot".into(), "ou_demo_noor".into()],
        }
    );
    assert_eq!(
        ignored(&group_message("/gatepost approve x", &[])),
        "not_addressed"
    );
    let mut of_nobody = group_message("@_all approve x", &["ou_bot"]);
    of_nobody["event"]["message"]["mentions"] = json!([{ "key": "@_all", "id": {}, "name": "all" }]);
    assert_eq!(ignored(&of_nobody), "not_addressed");
    let mut topic = group_message("@_user_1 pending", &["ou_bot"]);
    topic["event"]["message"]["chat_type"] = json!("topic_group");
    assert!(
        matches!(command(&topic).place, Place::Group { .. }),
        "what is unknown is read along"
    );
}

#[test]
fn what_no_person_said_in_text_has_no_effect() {
    let changed = |place: &str, value: Value| {
        let mut event = message("approve x");
        *event.pointer_mut(place).unwrap() = value;
        ignored(&event)
    };
    assert_eq!(
        changed("/event/sender/sender_type", json!("app")),
        "not_of_a_person"
    );
    assert_eq!(
        changed("/event/sender/sender_type", json!(null)),
        "not_of_a_person"
    );
    assert_eq!(changed("/event/message/message_type", json!("post")), "not_text");
    assert_eq!(changed("/event/message/content", json!("{")), "content_malformed");
    assert_eq!(
        changed("/event/message/content", json!("{\"text\":1}")),
        "content_malformed"
    );
    assert_eq!(
        changed("/event/message/content", json!("{\"text\":\"a\",\"text\":\"b\"}")),
        "content_malformed"
    );
    assert_eq!(
        changed("/event/sender/tenant_key", json!("tk_other")),
        "tenant_disagrees"
    );
    assert_eq!(
        changed("/event/sender/sender_id", json!({"user_id": "x"})),
        "sender_missing"
    );
    assert_eq!(changed("/event/message/message_id", json!("")), "message_missing");
    assert_eq!(changed("/event/message/chat_type", json!(7)), "chat_type_missing");
}

#[test]
fn an_id_that_a_tenant_chose_does_not_pass_for_another_kind() {
    let mut event = message("pending");
    event["event"]["sender"]["sender_id"] =
        json!({ "open_id": "ou_demo_mira", "union_id": "ou_boss", "user_id": "ou_boss" });
    assert_eq!(command(&event).user.ids, ["ou_demo_mira"]);
}

#[test]
fn a_message_has_a_time() {
    let at = |message_time: Value, header_time: Value| {
        let mut event = message("pending");
        event["event"]["message"]["create_time"] = message_time;
        event["header"]["create_time"] = header_time;
        match judged(&event) {
            Inbound::Command(command) => command.said_at.unwrap().0,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(at(json!("1795953600100"), json!("1")), 1_795_953_600_100);
    assert_eq!(at(json!(null), json!("1795953600120000")), 1_795_953_600_120);
    for nonsense in ["", "soon", "-95953600100", "17959536001", "99999999999999999999"] {
        let mut event = message("pending");
        event["event"]["message"]["create_time"] = json!(nonsense);
        event["header"]["create_time"] = json!(null);
        if nonsense.len() == 13 {
            continue;
        }
        assert_eq!(ignored(&event), "time_missing", "{nonsense}");
    }
}

#[test]
fn a_message_is_let_in_by_the_same_proof_as_a_click() {
    let verifier = fixture::verifier();
    let body = sealed(message("pending").to_string().as_bytes());
    assert!(matches!(
        verifier.document(&signed(&body), now()),
        Ok(crate::verify::Document::Message(_))
    ));
    assert_eq!(
        verifier.document(&unsigned(&body), now()).unwrap_err().reason,
        "signature_missing"
    );
    let mut foreign = message("pending");
    foreign["header"]["app_id"] = json!("cli_another");
    let body = sealed(foreign.to_string().as_bytes());
    assert_eq!(
        verifier.document(&signed(&body), now()).unwrap_err().reason,
        "app_id_mismatch"
    );
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(said in any::<String>(), keys in proptest::collection::vec(any::<String>(), 0..4)) {
        let mut event = group_message(&said, &["ou_bot"]);
        let more = keys.iter().map(|key| json!({ "key": key, "id": { "open_id": "ou_x" } }));
        event["event"]["message"]["mentions"].as_array_mut().unwrap().extend(more);
        let command = command(&event);
        prop_assert!(command.words.chars().count() <= LONGEST_WORDS);
        prop_assert!(!command.words.contains("@_user_1"));
    }
}
