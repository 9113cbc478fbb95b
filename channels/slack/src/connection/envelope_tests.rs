use proptest::prelude::*;
use serde_json::json;

use super::*;

fn greeted() -> SocketMode {
    let mut session = SocketMode::new("A0DEMO0001".into(), None);
    let hello =
        json!({ "type": "hello", "num_connections": 1, "connection_info": { "app_id": "A0DEMO0001" } });
    assert!(matches!(
        read(&mut session, &hello.to_string()),
        Step::Greeted { counted: Some(1) }
    ));
    session
}

fn read(session: &mut SocketMode, text: &str) -> Step<Slip> {
    session.read(Frame::Text(text.to_owned().into()), Instant::now())
}

#[test]
fn a_greeting_must_name_an_app_and_the_configured_one() {
    let hello = |app: Value| json!({ "type": "hello", "connection_info": app }).to_string();
    let mut session = SocketMode::new("k".into(), Some("A1".into()));
    assert!(matches!(
        read(&mut session, &hello(json!({ "app_id": "A2" }))),
        Step::End(End::Stop { .. })
    ));
    assert!(matches!(
        read(&mut session, &hello(json!({}))),
        Step::End(End::Lost { .. })
    ));
    assert!(matches!(
        read(&mut session, &hello(json!({ "app_id": "A1" }))),
        Step::Greeted { counted: None }
    ));
}

#[test]
fn without_a_configured_id_a_click_is_tied_to_the_app_by_its_connection() {
    let mut session = SocketMode::new("fingerprint".into(), None);
    read(
        &mut session,
        &json!({ "type": "hello", "connection_info": { "app_id": "A0DEMO0001" } }).to_string(),
    );
    let press = json!({ "type": "interactive", "envelope_id": "e", "payload": crate::fixture::press() });
    let Step::Click(click, slip) = read(&mut session, &press.to_string()) else {
        panic!("a click")
    };
    assert_eq!(
        (click.get().app.as_deref(), slip.id.as_str()),
        (Some("fingerprint"), "e")
    );
}

#[test]
fn ids_that_are_no_plain_words_are_not_echoed() {
    let mut session = greeted();
    for id in [
        json!(""),
        json!("a b"),
        json!("x".repeat(129)),
        json!("\u{202e}"),
        json!(7),
        json!(null),
    ] {
        let frame = json!({ "type": "events_api", "envelope_id": id }).to_string();
        assert!(matches!(read(&mut session, &frame), Step::Nothing), "{frame}");
    }
}

proptest! {
    #[test]
    fn no_text_breaks_a_session_or_makes_a_click(text in any::<String>(), kind in "[a-z_]{0,12}", reason in any::<String>()) {
        let mut session = greeted();
        prop_assert!(!matches!(read(&mut session, &text), Step::Click(..)));
        let frame = json!({ "type": kind, "envelope_id": "e", "reason": reason, "payload": { "type": text } }).to_string();
        prop_assert!(!matches!(read(&mut session, &frame), Step::Click(..)));
    }
}
