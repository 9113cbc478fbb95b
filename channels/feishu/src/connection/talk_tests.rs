use gatepost_channel::{Inert, Reply, ReplyTone};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fixture::secret;

const VECTORS: &str = include_str!("../../tests/vectors/ws_frames.json");

fn vector(name: &str) -> Value {
    let all: Value = serde_json::from_str(VECTORS).unwrap();
    let key = if all["vectors"].is_array() {
        "vectors"
    } else {
        "frames"
    };
    all[key]
        .as_array()
        .unwrap()
        .iter()
        .find(|vector| vector["name"] == name)
        .unwrap()
        .clone()
}

fn frames(vector: &Value, key: &str) -> Vec<Frame> {
    let all = vector[key].as_array().unwrap();
    all.iter()
        .map(|hex| Frame::decode(&*hex::decode(hex.as_str().unwrap()).unwrap()).unwrap())
        .collect()
}

fn session() -> LongConnection {
    LongConnection {
        service: 33_554_678,
        reader: Arc::new(Reader {
            app_id: "cli_a1b2c3d4e5f60718".into(),
            verification_token: Some(secret("vt-vector-AAAABBBBCCCCDDDD")),
        }),
        advice: Arc::default(),
        fragments: Fragments::default(),
    }
}

/// What the session does with the frames of a vector, in order, without what asks for nothing.
fn play(session: &mut LongConnection, frames: &[Frame]) -> Vec<Step<Slip>> {
    let now = Instant::now();
    frames
        .iter()
        .map(|frame| session.read(websocket::Frame::Binary(frame.encode_to_vec().into()), now))
        .filter(|step| !matches!(step, Step::Nothing))
        .collect()
}

fn written(step: &Step<Slip>) -> Frame {
    let Step::Write(frame) = step else {
        panic!("{step:?}")
    };
    decoded(frame)
}

fn decoded(frame: &Outgoing) -> Frame {
    let Outgoing::Binary(bytes) = frame else {
        panic!("{frame:?}")
    };
    Frame::decode(&**bytes).unwrap()
}

fn payload(frame: &Frame) -> Value {
    serde_json::from_slice(frame.payload.as_ref().unwrap()).unwrap()
}

/// Everything of an answer but its payload.
fn envelope(frame: &Frame) -> Frame {
    Frame {
        payload: None,
        ..frame.clone()
    }
}

#[test]
fn every_vector_is_known_here() {
    let all: Value = serde_json::from_str(VECTORS).unwrap();
    let names: Vec<_> = all
        .as_object()
        .unwrap()
        .values()
        .filter_map(Value::as_array)
        .flatten()
        .map(|v| v["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "ping_frame",
            "event_card_single",
            "event_card_no_result",
            "event_card_handler_error",
            "event_card_three_fragments_in_order",
            "event_card_three_fragments_out_of_order",
            "event_card_fragment_missing",
            "card_type_frame_dropped",
            "pong_with_config",
            "pong_empty",
            "server_ping",
            "unknown_type",
        ]
    );
}

#[test]
fn a_ping_has_the_bytes_of_the_official_clients() {
    let vector = vector("ping_frame");
    let hex_ping = vector["outbound_hex"]
        .as_array()
        .map_or(&vector["outbound_hex"], |all| &all[0]);
    let Outgoing::Binary(bytes) = session().ping() else {
        panic!("binary")
    };
    assert_eq!(json!(hex::encode(bytes)), *hex_ping);
}

#[test]
fn frames_decode_to_the_fields_of_the_vectors_and_encode_back() {
    for name in [
        "event_card_single",
        "event_card_three_fragments_in_order",
        "pong_with_config",
        "unknown_type",
    ] {
        let vector = vector(name);
        for (frame, (told, hex)) in frames(&vector, "inbound_hex").iter().zip(
            vector["inbound_decoded"]
                .as_array()
                .unwrap()
                .iter()
                .zip(vector["inbound_hex"].as_array().unwrap()),
        ) {
            assert_eq!(json!(frame.seq_id), told["SeqID"]);
            assert_eq!(json!(frame.log_id), told["LogID"]);
            assert_eq!(json!(frame.service), told["service"]);
            assert_eq!(json!(frame.method), told["method"]);
            let headers: Vec<_> = frame
                .headers
                .iter()
                .map(|header| json!([header.key, header.value]))
                .collect();
            assert_eq!(json!(headers), told["headers"]);
            assert_eq!(json!(hex::encode(frame.encode_to_vec())), *hex);
        }
    }
}

#[test]
fn answers_have_the_frame_of_the_official_clients() {
    for name in [
        "event_card_single",
        "event_card_three_fragments_in_order",
        "event_card_three_fragments_out_of_order",
    ] {
        let vector = vector(name);
        let expected = &frames(&vector, "outbound_hex")[0];
        let steps = play(&mut session(), &frames(&vector, "inbound_hex"));
        assert_eq!(steps.len(), 1, "{name}: one answer, {steps:?}");
        let answer = written(&steps[0]);
        assert_eq!(envelope(&answer), envelope(expected), "{name}");
        // Its button names no decision of ours, so it says that it has no effect; the same in the official clients' form.
        let (ours, theirs) = (payload(&answer), payload(expected));
        assert_eq!(ours["code"], theirs["code"]);
        let toast: Value = serde_json::from_slice(&unbase64(ours["data"].as_str().unwrap())).unwrap();
        assert_eq!(toast["toast"]["type"], "error");
        let given = unbase64(theirs["data"].as_str().unwrap());
        let inbound = frames(&vector, "inbound_hex").pop().unwrap();
        assert_eq!(payload(&inbound.taken(Some(&given), 0)), theirs, "{name}");
    }
}

fn unbase64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

#[test]
fn an_answer_without_content_and_a_failure_have_the_form_of_the_official_clients() {
    let plain = vector("event_card_no_result");
    let ours = frames(&plain, "inbound_hex").pop().unwrap().taken(None, 0);
    let theirs = &frames(&plain, "outbound_hex")[0];
    assert_eq!(
        (envelope(&ours), payload(&ours)),
        (envelope(theirs), payload(theirs))
    );
    let failed = vector("event_card_handler_error");
    let ours = frames(&failed, "inbound_hex").pop().unwrap().failed();
    let theirs = &frames(&failed, "outbound_hex")[0];
    assert_eq!(
        (envelope(&ours), payload(&ours)),
        (envelope(theirs), payload(theirs))
    );
}

#[test]
fn frames_that_ask_for_nothing_get_nothing() {
    for name in ["event_card_fragment_missing", "server_ping", "unknown_type"] {
        let steps = play(&mut session(), &frames(&vector(name), "inbound_hex"));
        assert!(steps.is_empty(), "{name}: {steps:?}");
    }
}

#[test]
fn a_card_frame_is_taken_like_an_event() {
    let steps = play(
        &mut session(),
        &frames(&vector("card_type_frame_dropped"), "inbound_hex"),
    );
    assert_eq!(payload(&written(&steps[0]))["code"], 200);
}

#[test]
fn pongs_bring_new_wishes() {
    let mut session = session();
    assert!(matches!(
        play(&mut session, &frames(&vector("pong_empty"), "inbound_hex"))[..],
        [Step::Pong]
    ));
    assert_eq!(session.tempo().ping_every, Duration::from_mins(2));
    let with_config = vector("pong_with_config");
    assert!(matches!(
        play(&mut session, &frames(&with_config, "inbound_hex"))[..],
        [Step::Pong]
    ));
    let told = &with_config["sdk_config_after"];
    let advice = *session.advice.lock().unwrap();
    assert_eq!(json!(advice.ping.as_secs()), told["ping_interval"]);
    assert_eq!(json!(advice.interval.as_secs()), told["reconnect_interval"]);
    assert_eq!(json!(advice.nonce.as_secs()), told["reconnect_nonce"]);
    assert_eq!(session.tempo().silent_after, Duration::from_secs(90));
}

/// The vector's event with another button value.
fn press(change: impl Fn(&mut Value)) -> Frame {
    let mut frame = frames(&vector("event_card_single"), "inbound_hex").remove(0);
    let mut event = payload(&frame);
    event["event"]["action"]["value"] =
        json!({ "decision": "reject", "b": "g1.a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5.2" });
    change(&mut event);
    frame.payload = Some(event.to_string().into_bytes());
    frame
}

#[test]
fn a_press_becomes_a_click_and_its_answer_carries_toast_and_time() {
    let mut session = session();
    let mut steps = play(&mut session, &[press(|_| {})]);
    let Some(Step::Click(click, slip)) = steps.pop() else {
        panic!("a click")
    };
    assert_eq!(click.get().replay_key, "evt_vector_ws01");
    assert_eq!(click.get().user.ids[0], "ou_vector_approver_1");
    let reply = |text: &str| Answer {
        reply: Reply {
            refused: false,
            field: gatepost_channel::Field::Answer,
            tone: ReplyTone::Warning,
            text: Inert::new(text),
            card: None,
        },
        stored: false,
    };
    let took = Duration::from_millis(1_234);
    let answer = decoded(
        &session
            .answer(slip.clone(), Some(reply("try again")), took)
            .unwrap(),
    );
    assert_eq!(answer.single("biz_rt"), Some("1234"));
    let said: Value = serde_json::from_slice(&unbase64(payload(&answer)["data"].as_str().unwrap())).unwrap();
    assert_eq!(
        said["toast"],
        json!({ "type": "warning", "content": "try again" })
    );
    assert_eq!(
        payload(&decoded(&session.answer(slip, None, took).unwrap())),
        json!({ "code": 500 })
    );
}

#[test]
fn a_message_becomes_a_command_whose_answer_says_nothing_and_one_that_was_not_stored_fails() {
    let mut session = session();
    let message = press(|event| {
        let header = event["header"].clone();
        *event = crate::fixture::message("/gatepost pending");
        event["header"] = header;
        event["header"]["event_type"] = json!("im.message.receive_v1");
        event["event"]["sender"]["tenant_key"] = event["header"]["tenant_key"].clone();
    });
    let mut steps = play(&mut session, &[message]);
    let Some(Step::Command(command, slip)) = steps.pop() else {
        panic!("a command")
    };
    assert_eq!(command.get().words, "pending");
    let answer = |stored| Answer {
        reply: Reply {
            refused: false,
            field: gatepost_channel::Field::Answer,
            tone: ReplyTone::Info,
            text: Inert::new("a secret answer"),
            card: None,
        },
        stored,
    };
    let took = Duration::from_millis(12);
    let taken = decoded(&session.answer(slip.clone(), Some(answer(true)), took).unwrap());
    assert_eq!(
        (payload(&taken), taken.single("biz_rt")),
        (json!({ "code": 200 }), Some("12"))
    );
    for failed in [Some(answer(false)), None] {
        let failed = decoded(&session.answer(slip.clone(), failed, took).unwrap());
        assert_eq!(
            payload(&failed),
            json!({ "code": 500 }),
            "the platform sends it again"
        );
    }
}

#[test]
fn what_is_not_ours_is_refused_and_shown_as_failed() {
    for (reason, frame) in [
        (
            "app_id_mismatch",
            press(|event| event["header"]["app_id"] = json!("cli_another")),
        ),
        (
            "token_mismatch",
            press(|event| event["header"]["token"] = json!("another")),
        ),
        ("wrong_pipeline", press(|event| event["schema"] = json!("1.0"))),
        (
            "payload_not_json",
            Frame {
                payload: Some(b"{".to_vec()),
                ..press(|_| {})
            },
        ),
    ] {
        let steps = play(&mut session(), &[frame]);
        let [Step::Refused(refusal, Some(answer))] = &steps[..] else {
            panic!("{steps:?}")
        };
        assert_eq!(refusal.reason, reason);
        assert_eq!(payload(&decoded(answer)), json!({ "code": 500 }));
    }
}

#[test]
fn other_events_are_taken_without_content() {
    let event = press(|event| event["header"]["event_type"] = json!("im.message.receive_v1"));
    let steps = play(&mut session(), &[event]);
    assert_eq!(payload(&written(&steps[0])), json!({ "code": 200 }));
}

proptest! {
    #[test]
    fn no_bytes_break_a_session(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in any::<prop::sample::Index>()) {
        let mut session = session();
        let now = Instant::now();
        let _ = session.read(websocket::Frame::Binary(bytes.clone().into()), now);
        let mut bent = press(|_| {}).encode_to_vec();
        let place = at.index(bent.len());
        bent.splice(place..place, bytes);
        let _ = session.read(websocket::Frame::Binary(bent.into()), now);
    }
}
