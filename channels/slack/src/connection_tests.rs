//! Socket Mode against a fake Slack on loopback. Time moves only where a test moves it.

use std::sync::atomic::Ordering;

use futures_util::SinkExt as _;

use gatepost_channel::{Channel as _, ConnectionState, RawRequest};
use serde_json::json;

use crate::fake_socket::{APP, APP_TOKEN, Link, World, pass, still, with_slack};

async fn pair(world: &mut World) -> (Link, Link) {
    (world.greeted(1).await, world.greeted(2).await)
}

fn refuses(code: &str) -> (u16, serde_json::Value) {
    (200, json!({ "ok": false, "error": code }))
}

#[tokio::test(start_paused = true)]
async fn two_connections_are_held_and_the_token_travels_in_the_header_alone() {
    let _still = still();
    with_slack(vec![], async |mut world| {
        assert!(world.channel.webhook().is_none(), "there is no callback route");
        let request = RawRequest {
            headers: vec![],
            body: vec![],
        };
        assert!(
            gatepost_channel::Verifier::verify(&world.channel, &request, gatepost_channel::UtcMillis(0))
                .is_err()
        );
        let (_first, _second) = pair(&mut world).await;
        let status = world.status();
        assert_eq!((status.connected, status.wanted, status.strangers), (2, 2, 0));
        assert!(status.healthy() && status.last_inbound.is_some() && status.trouble.is_none());
        let asked = world.asked.lock().unwrap().clone();
        assert_eq!(asked.len(), 2);
        for head in asked {
            let line = head.lines().next().unwrap();
            assert_eq!(line, "POST /api/apps.connections.open HTTP/1.1");
            let holding: Vec<_> = head.lines().filter(|line| line.contains(APP_TOKEN)).collect();
            assert_eq!(holding, [format!("authorization: Bearer {APP_TOKEN}")]);
        }
        for told in [format!("{status:?}"), status.detail()] {
            assert!(!told.contains("canary"), "{told}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_press_is_acknowledged_once_it_is_stored_and_the_reader_never_waits_for_it() {
    let _still = still();
    with_slack(vec![], async |mut world| {
        let mut link = world.greeted(1).await;
        world.desk.shut();
        link.press(1).await;
        link.send(&json!({ "type": "events_api", "envelope_id": "e-1", "payload": {} }))
            .await;
        assert_eq!(
            link.acknowledged().await,
            "e-1",
            "an event overtakes a press that is being stored"
        );
        assert_eq!(world.desk.taken(), 0);
        world.desk.open();
        assert_eq!(link.acknowledged().await, "press-1");
        assert_eq!(world.desk.taken(), 1);
        let click = world.desk.clicks.lock().unwrap()[0].clone();
        assert_eq!(click.app.as_deref(), Some(APP));
        assert_eq!(
            (click.chat.as_str(), click.user.ids[0].as_str()),
            ("C0APPROVE1", "U0AAAA1111")
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_press_that_was_not_stored_in_time_or_at_all_is_not_acknowledged() {
    let _still = still();
    with_slack(vec![], async |mut world| {
        let mut link = world.greeted(1).await;
        world.desk.stores.store(false, Ordering::SeqCst);
        link.press(1).await;
        link.send(&json!({ "type": "events_api", "envelope_id": "e-1" }))
            .await;
        assert_eq!(
            link.acknowledged().await,
            "e-1",
            "nothing stored, no acknowledgement"
        );
        world.until(|world| world.desk.taken() == 1).await;
        world.desk.stores.store(true, Ordering::SeqCst);
        world.desk.shut();
        link.press(2).await;
        link.send(&json!({ "type": "events_api", "envelope_id": "e-2" }))
            .await;
        assert_eq!(link.acknowledged().await, "e-2");
        pass(3).await;
        world.desk.open();
        link.press(3).await;
        assert_eq!(
            link.acknowledged().await,
            "press-3",
            "after three seconds an acknowledgement comes too late"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_of_no_use_is_acknowledged_and_what_is_not_ours_is_refused() {
    let _still = still();
    with_slack(vec![], async |mut world| {
        let mut link = world.greeted(1).await;
        let mut foreign = crate::fixture::press();
        foreign["api_app_id"] = json!("A0OTHER0001");
        let mut nameless = crate::fixture::press();
        nameless.as_object_mut().unwrap().remove("api_app_id");
        for payload in [foreign, nameless] {
            link.send(&json!({ "type": "interactive", "envelope_id": "not-ours", "payload": payload }))
                .await;
        }
        link.send(&json!({ "type": "interactive", "envelope_id": "no-payload" }))
            .await;
        link.0
            .send_all(&mut futures_util::stream::iter(
                [
                    tokio_tungstenite::tungstenite::Message::binary(b"\x00\x01".as_slice()),
                    tokio_tungstenite::tungstenite::Message::text("{"),
                    tokio_tungstenite::tungstenite::Message::text("[]"),
                    tokio_tungstenite::tungstenite::Message::text("{\"type\":\"events_api\"}"),
                ]
                .map(Ok),
            ))
            .await
            .unwrap();
        for (kind, id) in [("slash_commands", "s-1"), ("something_new", "n-1")] {
            link.send(&json!({ "type": kind, "envelope_id": id, "payload": { "api_app_id": APP } }))
                .await;
            assert_eq!(link.acknowledged().await, id);
        }
        assert_eq!(world.desk.taken(), 0);
        let refused = world.desk.refused.lock().unwrap().clone();
        assert_eq!(
            refused,
            ["app_id_mismatch", "app_id_mismatch", "payload_not_json"]
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_renewed_without_a_gap() {
    let _still = still();
    for reason in ["warning", "refresh_requested", "a_new_reason"] {
        with_slack(vec![], async |mut world| {
            let (mut old, _second) = pair(&mut world).await;
            pass(12).await;
            old.disconnect(reason).await;
            let mut fresh = world.link().await;
            // The old one serves until the new one greeted, and some time on.
            old.press(1).await;
            assert_eq!(old.acknowledged().await, "press-1");
            fresh.greet(APP, 3).await;
            fresh.press(2).await;
            assert_eq!(fresh.acknowledged().await, "press-2");
            let status = world.status();
            assert_eq!(
                (status.connected, status.reconnects, status.strangers),
                (2, 1, 0),
                "{reason}"
            );
            old.press(3).await;
            assert_eq!(old.acknowledged().await, "press-3");
            pass(16).await;
            assert_eq!(old.next().await, None, "then it is closed by us");
            assert_eq!(world.opened(), 3);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn switched_off_or_refused_for_good_stops_with_red_health() {
    let _still = still();
    with_slack(vec![], async |mut world| {
        let (mut first, _second) = pair(&mut world).await;
        first.disconnect("link_disabled").await;
        assert_eq!(first.next().await, None);
        pass(120).await;
        assert_eq!(world.opened(), 2, "nobody hammers");
        let status = world.status();
        assert!(
            matches!(&status.state, ConnectionState::Stopped { why } if why.starts_with("link_disabled"))
        );
        assert!(!status.healthy());
        assert!(!world.channel.check().await.healthy);
    })
    .await;
    for code in [
        "invalid_auth",
        "missing_scope",
        "team_disabled",
        "not_allowed_token_type",
    ] {
        with_slack(vec![refuses(code)], async |world| {
            pass(120).await;
            assert_eq!(world.opened(), 1, "{code}");
            let status = world.status();
            assert!(
                matches!(&status.state, ConnectionState::Stopped { why } if why.starts_with(code)),
                "{status:?}"
            );
        })
        .await;
    }
    with_slack(vec![], async |mut world| {
        world.link().await.greet("A0OTHER0001", 1).await;
        pass(60).await;
        assert_eq!(world.opened(), 1);
        assert!(
            matches!(world.status().state, ConnectionState::Stopped { .. }),
            "the token of another app"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn waits_are_honoured_and_grow() {
    let _still = still();
    with_slack(
        vec![(429, json!({ "ok": false, "error": "ratelimited" }))],
        async |mut world| {
            world.until(|world| world.status().trouble.is_some()).await;
            pass(6).await;
            assert_eq!(world.opened(), 1, "Retry-After is seven seconds");
            pass(1).await;
            let (mut first, second) = pair(&mut world).await;
            first.disconnect("too_many_websockets").await;
            assert_eq!(first.next().await, None);
            pass(29).await;
            assert_eq!(world.opened(), 3, "the dead ones must be forgotten first");
            assert!(world.status().detail().contains("too_many_websockets"));
            pass(1).await;
            let _third = world.greeted(2).await;
            drop(second);
            let _fourth = world.greeted(2).await;
            assert_eq!(world.status().trouble, None);
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_platform_is_survived() {
    let _still = still();
    with_slack(vec![], async |mut world| {
        let (first, second) = pair(&mut world).await;
        world.script([
            (503, json!("upstream")),
            refuses("internal_error"),
            refuses("a_new_code"),
        ]);
        drop((first, second));
        let mut again = world.greeted(1).await;
        let _other = world.greeted(2).await;
        again.press(1).await;
        assert_eq!(again.acknowledged().await, "press-1");
        assert_eq!(world.status().reconnects, 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_half_open_connection_is_given_up_and_replaced() {
    let _still = still();
    with_slack(vec![], async |mut world| {
        let silent = world.greeted(1).await;
        let mut talking = world.greeted(2).await;
        for _ in 0..6 {
            pass(5).await;
            // The other end reads and so answers the pings; the silent one is not read at all.
            talking
                .send(&json!({ "type": "events_api", "envelope_id": "e" }))
                .await;
            assert_eq!(talking.acknowledged().await, "e");
        }
        let mut fresh = world.greeted(3).await;
        assert_eq!(world.status().connected, 2);
        assert_eq!(
            world.status().strangers,
            1,
            "the platform still counts the dead one, and feeds it"
        );
        assert!(
            world
                .channel
                .connection()
                .unwrap()
                .status()
                .detail()
                .contains("swallow clicks")
        );
        fresh.press(1).await;
        assert_eq!(fresh.acknowledged().await, "press-1");
        drop(silent);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_never_greeted_is_replaced() {
    let _still = still();
    with_slack(vec![], async |mut world| {
        let mut mute = world.link().await;
        mute.press(1).await;
        world
            .until(|world| !world.desk.refused.lock().unwrap().is_empty())
            .await;
        pass(10).await;
        assert_eq!(mute.next().await, None);
        let _next = world.greeted(1).await;
        assert_eq!(world.desk.taken(), 0);
        assert_eq!(*world.desk.refused.lock().unwrap(), ["before_greeting"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_loses_no_press_that_was_taken_and_repeats_reach_the_intake() {
    let _still = still();
    with_slack(vec![], async |mut world| {
        let mut link = world.greeted(1).await;
        world.desk.shut();
        link.press(1).await;
        link.send(&json!({ "type": "events_api", "envelope_id": "e" }))
            .await;
        assert_eq!(link.acknowledged().await, "e");
        drop(link);
        let mut second = world.greeted(1).await;
        world.desk.open();
        second.press(1).await;
        second.press(1).await;
        assert_eq!(second.acknowledged().await, "press-1");
        assert_eq!(second.acknowledged().await, "press-1");
        world.until(|world| world.desk.taken() == 3).await;
        let clicks = world.desk.clicks.lock().unwrap().clone();
        assert!(
            clicks
                .iter()
                .all(|click| click.replay_key == clicks[0].replay_key),
            "for the replay memory to tell"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_finishes_what_was_taken_and_says_goodbye() {
    let _still = still();
    with_slack(vec![], async |mut world| {
        let (mut first, mut second) = pair(&mut world).await;
        world.desk.shut();
        first.press(1).await;
        first
            .send(&json!({ "type": "events_api", "envelope_id": "e" }))
            .await;
        assert_eq!(first.acknowledged().await, "e");
        world.ask_to_stop();
        assert_eq!(second.next().await, None);
        world.desk.open();
        assert_eq!(first.acknowledged().await, "press-1");
        assert_eq!(first.next().await, None);
        assert_eq!(world.opened(), 2, "nothing is opened on the way out");
    })
    .await;
}

#[tokio::test]
async fn ten_thousand_presses_are_taken_and_acknowledged() {
    const EACH: usize = 5_000;
    with_slack(vec![], async |mut world| {
        let (first, second) = pair(&mut world).await;
        let play = async |mut link: Link, from: usize| {
            let mut acknowledged = std::collections::BTreeSet::new();
            for start in (from..from + EACH).step_by(250) {
                for number in start..start + 250 {
                    link.press(number).await;
                }
                for _ in 0..250 {
                    acknowledged.insert(link.acknowledged().await);
                }
            }
            assert_eq!(acknowledged.len(), EACH);
        };
        tokio::join!(play(first, 0), play(second, EACH));
        let keys: std::collections::BTreeSet<_> = world
            .desk
            .clicks
            .lock()
            .unwrap()
            .iter()
            .map(|click| click.replay_key.clone())
            .collect();
        assert_eq!((world.desk.taken(), keys.len()), (2 * EACH, 2 * EACH));
    })
    .await;
}
