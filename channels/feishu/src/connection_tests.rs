//! The long connection against a fake platform on loopback. Time moves only where a test moves it.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gatepost_channel::{Connection as _, ConnectionState};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::fake_socket::{Link, SECRET, World, config, pass, still, with_platform};

async fn pair(world: &mut World) -> (Link, Link) {
    (world.link().await, world.link().await)
}

fn refuses(code: i64) -> (u16, Value) {
    (200, json!({ "code": code, "msg": "no" }))
}

fn said(answer: &Value) -> Value {
    assert_eq!(answer["code"], 200, "{answer}");
    serde_json::from_slice(&STANDARD.decode(answer["data"].as_str().unwrap()).unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn two_connections_are_held_each_with_an_address_of_its_own() {
    let _still = still();
    with_platform(vec![], vec![], async |mut world| {
        let (_first, _second) = pair(&mut world).await;
        let status = world.connection.status();
        assert_eq!((status.connected, status.wanted), (2, 2));
        let asked = world.asked();
        assert_eq!(asked.len(), 2);
        for request in asked {
            assert!(
                request.starts_with("POST /callback/ws/endpoint HTTP/1.1\r\n"),
                "{request}"
            );
            assert!(request.contains("\r\nlocale: zh\r\n"), "{request}");
            let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
            assert_eq!(body, json!({ "AppID": crate::fixture::APP, "AppSecret": SECRET }));
        }
        let tickets: BTreeSet<_> = world.tickets().into_iter().collect();
        assert_eq!(tickets.len(), 2, "{tickets:?}");
        for told in [
            format!("{status:?}"),
            status.detail(),
            format!("{:?}", world.connection),
        ] {
            assert!(!told.contains("canary"), "{told}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_press_in_parts_is_answered_with_what_was_stored_and_reading_goes_on_meanwhile() {
    let _still = still();
    with_platform(vec![], vec![], async |mut world| {
        let mut link = world.link().await;
        world.desk.gate.forget_permits(Semaphore::MAX_PERMITS);
        link.press(1, 3).await;
        link.press(2, 1).await;
        pass(2).await;
        world.desk.gate.add_permits(2);
        let mut answers = vec![link.answer().await, link.answer().await];
        answers.sort_by(|a, b| a.0.cmp(&b.0));
        for (number, (message, answer)) in (1..).zip(answers) {
            assert_eq!(message, format!("m-{number}"));
            assert_eq!(said(&answer)["toast"]["content"], format!("counted ev-{number}"));
        }
        world.desk.gate.forget_permits(Semaphore::MAX_PERMITS);
        link.press(3, 1).await;
        pass(4).await;
        assert_eq!(
            link.answer().await,
            ("m-3".into(), json!({ "code": 500 })),
            "too late is a failure, not silence"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn repeats_reach_the_intake_and_foreign_events_do_not() {
    let _still = still();
    with_platform(vec![], vec![], async |mut world| {
        let (mut first, mut second) = pair(&mut world).await;
        first.press(1, 1).await;
        second.press(1, 2).await;
        assert_eq!(first.answer().await, second.answer().await);
        let clicks = world.desk.clicks.lock().unwrap().clone();
        assert_eq!(
            (clicks.len(), &clicks[0]),
            (2, &clicks[1]),
            "for the replay memory to tell"
        );
        first.0.close(None).await.unwrap();
        assert!(world.desk.refused.lock().unwrap().is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn codes_for_good_stop_and_others_are_tried_again() {
    let _still = still();
    for code in [403, 1_000_040_344, 1_000_040_350, 1_000_040_351] {
        with_platform(vec![refuses(code)], vec![], async |world| {
            world
                .until(|world| {
                    !matches!(
                        world.connection.status().state,
                        ConnectionState::Running | ConnectionState::Idle
                    )
                })
                .await;
            pass(400).await;
            assert_eq!(world.opened(), 1, "{code}");
            let detail = world.connection.status().detail();
            assert!(
                detail.contains(&code.to_string()) && !world.connection.status().healthy(),
                "{detail}"
            );
        })
        .await;
    }
    let unclear = (502, json!("upstream"));
    with_platform(
        vec![refuses(1), refuses(1_000_040_343), unclear],
        vec![],
        async |mut world| {
            let _link = world.link().await;
            assert_eq!(
                world.opened(),
                4,
                "before the platform said how to wait, our own waits hold"
            );
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_handshake_is_told_by_its_headers() {
    let _still = still();
    let refused = |status: u16, more: &str| {
        format!(
            "HTTP/1.1 {status} -\r\nHandshake-Status: {status}\r\nHandshake-Msg: no\r\n{more}content-length: 0\r\nconnection: close\r\n\r\n"
        )
    };
    for (handshake, stops) in [
        (refused(403, ""), true),
        (refused(514, "Handshake-Autherrcode: 1000040350\r\n"), true),
        (refused(514, "Handshake-Autherrcode: 1000040360\r\n"), false),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
            false,
        ),
        (
            "HTTP/1.1 101 -\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: x\r\n\r\n"
                .to_owned(),
            false,
        ),
    ] {
        with_platform(vec![], vec![handshake.clone()], async |mut world| {
            world
                .until(|world| {
                    let status = world.connection.status();
                    status.trouble.is_some()
                        || status.state != ConnectionState::Running && status.state != ConnectionState::Idle
                })
                .await;
            let stopped = matches!(world.connection.status().state, ConnectionState::Stopped { .. });
            assert_eq!(stopped, stops, "{handshake}");
            pass(89).await;
            assert_eq!(
                world.opened(),
                1,
                "the platform's ReconnectInterval is 90 s: {handshake} {:?}",
                world.connection.status()
            );
            if !stops {
                pass(2).await;
                let _link = world.link().await;
            }
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn pings_keep_the_rhythm_that_the_platform_asks_for() {
    let _still = still();
    with_platform(vec![], vec![], async |mut world| {
        let mut first = world.mute_link().await;
        first.pinged(Some(&config(10))).await;
        let mut second = world.mute_link().await;
        second.pinged(Some(&config(10))).await;
        // Its answer shows that the pong before it was read.
        first.press(1, 1).await;
        first.answer().await;
        second.press(2, 1).await;
        second.answer().await;
        for _ in 0..20 {
            pass(10).await;
            first.pinged(None).await;
            second.pinged(None).await;
        }
        assert_eq!((world.opened(), world.connection.status().connected), (2, 2));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_half_open_connection_is_given_up_when_no_pong_comes() {
    let _still = still();
    with_platform(vec![], vec![], async |mut world| {
        let _silent = world.mute_link().await;
        let mut second = world.link().await;
        pass(22).await;
        let mut third = world.link().await;
        assert_eq!(world.connection.status().reconnects, 1);
        assert_eq!(world.connection.status().trouble, None, "all stand again");
        for (number, link) in [&mut second, &mut third].into_iter().enumerate() {
            link.press(number, 1).await;
            said(&link.answer().await.1);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_on_which_only_events_come_is_given_up_too() {
    let _still = still();
    with_platform(vec![], vec![], async |mut world| {
        let mut link = world.mute_link().await;
        assert!(link.next().await.is_some(), "a ping");
        let _second = world.link().await;
        for number in 0..5 {
            link.press(number, 1).await;
            said(&link.answer().await.1);
            pass(3).await;
        }
        pass(6).await;
        assert_eq!(link.next().await, None, "it may feed us, but it does not hear us");
        let _third = world.link().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_platform_is_survived_and_no_press_that_was_taken_is_lost() {
    let _still = still();
    with_platform(vec![], vec![], async |mut world| {
        let (mut first, second) = pair(&mut world).await;
        pass(12).await;
        world.desk.gate.forget_permits(Semaphore::MAX_PERMITS);
        first.press(1, 1).await;
        first.press(2, 1).await;
        first.0.close(None).await.unwrap();
        drop((first, second));
        let mut again = world.link().await;
        let _other = world.link().await;
        world.desk.gate.add_permits(10);
        again.press(3, 2).await;
        said(&again.answer().await.1);
        world
            .until(|world| world.desk.clicks.lock().unwrap().len() == 3)
            .await;
        assert_eq!(world.connection.status().reconnects, 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_first_try_after_a_loss_is_spread_and_further_ones_keep_the_interval() {
    let _still = still();
    with_platform(vec![], vec![], async |mut world| {
        let (first, second) = pair(&mut world).await;
        pass(12).await;
        world.script([refuses(1)]);
        drop((first, second));
        world.until(|world| world.opened() == 3).await;
        pass(88).await;
        assert_eq!(world.opened(), 3);
        pass(3).await;
        let (_third, _fourth) = pair(&mut world).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_finishes_what_was_taken_and_says_goodbye() {
    let _still = still();
    with_platform(vec![], vec![], async |mut world| {
        let (mut first, mut second) = pair(&mut world).await;
        first.press(1, 1).await;
        said(&first.answer().await.1);
        world.desk.gate.forget_permits(Semaphore::MAX_PERMITS);
        first.press(2, 1).await;
        pass(1).await;
        world.ask_to_stop();
        assert_eq!(second.next().await, None);
        world.desk.gate.add_permits(1);
        assert_eq!(first.answer().await.0, "m-2");
        assert_eq!(first.next().await, None);
        assert_eq!(world.opened(), 2);
    })
    .await;
}

#[tokio::test]
async fn ten_thousand_presses_are_taken_and_answered() {
    const EACH: usize = 5_000;
    with_platform(vec![], vec![], async |mut world| {
        let (first, second) = pair(&mut world).await;
        let play = async |mut link: Link, from: usize| {
            let mut answered = BTreeSet::new();
            for start in (from..from + EACH).step_by(250) {
                for number in start..start + 250 {
                    link.press(number, 1 + number % 3).await;
                }
                for _ in 0..250 {
                    let (message, answer) = link.answer().await;
                    assert_eq!(answer["code"], 200);
                    answered.insert(message);
                }
            }
            assert_eq!(answered.len(), EACH);
        };
        tokio::join!(play(first, 0), play(second, EACH));
        let keys: BTreeSet<_> = world
            .desk
            .clicks
            .lock()
            .unwrap()
            .iter()
            .map(|click| click.replay_key.clone())
            .collect();
        assert_eq!(keys.len(), 2 * EACH);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_message_over_the_connection_is_a_command_and_its_answer_goes_another_way() {
    let _still = still();
    with_platform(vec![], vec![], async |mut world| {
        let mut link = world.link().await;
        link.event(1, 2, &crate::fixture::message("/gatepost pending"))
            .await;
        let taken = link.next().await.unwrap();
        let payload: serde_json::Value = serde_json::from_slice(taken.payload.as_ref().unwrap()).unwrap();
        assert_eq!(payload, json!({ "code": 200 }), "nothing of the answer is in it");
        link.event(2, 1, &crate::fixture::message("fail")).await;
        let failed = link.next().await.unwrap();
        let payload: serde_json::Value = serde_json::from_slice(failed.payload.as_ref().unwrap()).unwrap();
        assert_eq!(payload, json!({ "code": 500 }), "so that it comes again");
        let heard = world.desk.commands.lock().unwrap().clone();
        let words: Vec<_> = heard.iter().map(|command| command.words.as_str()).collect();
        assert_eq!(words, ["pending", "fail"]);
        assert_eq!(heard[0].replay_key, heard[1].replay_key);
        assert!(world.desk.clicks.lock().unwrap().is_empty());
    })
    .await;
}
