//! The real program, killed at the moments that hurt: nothing that was acknowledged is lost, and nothing happens twice.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::fake_slack;
use crate::support::fault::Door;
use crate::support::fault::Fault;
use crate::support::people::DANA;
use crate::support::program::{Place, Program};
use crate::support::world::{Plan, SOON, Storage, World};

on_every_store!(
    killed_between_card_and_click,
    killed_between_click_and_edit,
    killed_while_the_outbox_sends,
    a_graceful_stop_loses_nothing_acknowledged,
);

const CALL: &str = r#"{"tool_name":"slack__pay","tool_args":{"amount":60000.10}}"#;

/// The fakes of a world, and the real program in the place of the server.
async fn program(storage: Storage) -> (World, Program) {
    let world = Plan::on(storage).without_server().await;
    let program = Program::start(world.place.clone(), &world.config, &[("GATEPOST_LOG", "debug")]).await;
    (world, program)
}

async fn consume(world: &World, id: &str) -> (u16, Value) {
    let path = format!("/api/confirmations/{id}/consume");
    let (status, text) = world.api("build-agent").post_text(&path, CALL).await;
    (status, serde_json::from_str(&text).unwrap())
}

async fn ask(world: &World) -> String {
    let (status, text) = world
        .api("build-agent")
        .post_text("/api/confirmations", CALL)
        .await;
    assert_eq!(status, 200, "{text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    answer["confirmation_id"].as_str().unwrap().to_owned()
}

async fn approve(world: &World, card: &fake_slack::Message) {
    let pressed = world.slack.click(card, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
}

async fn settled_and_paid_once(world: &World, id: &str) {
    assert_eq!(world.request(id).await["status"], "approved");
    world.until_deliveries(id, &["settled"]).await;
    let cards = world.slack.messages(fake_slack::CHANNEL);
    assert!(
        cards.iter().all(|card| card.current().action_ids().is_empty()),
        "{cards:?}"
    );
    let both = futures_util::future::join(consume(world, id), consume(world, id)).await;
    let mut statuses = [both.0.0, both.1.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{both:?}");
    world.verify().await;
}

async fn killed_between_card_and_click(storage: Storage) {
    let (world, mut program) = program(storage).await;
    let id = ask(&world).await;
    let card = world.slack_card(&id).await;
    world.until_deliveries(&id, &["posted"]).await;
    program.kill_9().await;
    program.restart().await;
    approve(&world, &card).await;
    settled_and_paid_once(&world, &id).await;
    assert_eq!(world.slack.messages(fake_slack::CHANNEL).len(), 1);
}

/// The click was acknowledged, so it stands; the edit that follows it is made after the restart.
async fn killed_between_click_and_edit(storage: Storage) {
    let (world, mut program) = program(storage).await;
    let id = ask(&world).await;
    let card = world.slack_card(&id).await;
    world.until_deliveries(&id, &["posted"]).await;
    approve(&world, &card).await;
    program.kill_9().await;
    program.restart().await;
    settled_and_paid_once(&world, &id).await;
    let replayed = world.slack.messages(fake_slack::CHANNEL);
    assert_eq!(replayed.len(), 1);
}

/// Killed after the platform took the card and before its answer: a press on that card counts after the restart.
async fn killed_while_the_outbox_sends(storage: Storage) {
    let (world, mut program) = program(storage).await;
    world
        .slack
        .fail_next("chat.postMessage", Fault::silence().after_effect());
    let id = ask(&world).await;
    let card = world.slack_card(&id).await;
    program.kill_9().await;
    program.restart().await;
    assert_eq!(world.request(&id).await["status"], "pending");
    approve(&world, &card).await;
    settled_and_paid_once(&world, &id).await;
    assert_eq!(
        world.slack.messages(fake_slack::CHANNEL).len(),
        1,
        "what was decided is not posted again"
    );
}

async fn a_graceful_stop_loses_nothing_acknowledged(storage: Storage) {
    let (world, mut program) = program(storage).await;
    world.slack.limit_rate(false);
    world.feishu.limit_rate(false);
    let agent = world.api("build-agent");
    let (first, mut asking) = (ask(&world).await, tokio::task::JoinSet::new());
    let held = Door::closed();
    world
        .feishu
        .fail_next(crate::support::fake_feishu::Api::Send, Fault::held(&held));
    for n in 0..60 {
        let (agent, call) = (agent.clone(), json!({"tool_name": "t__x", "tool_args": {"n": n}}));
        asking.spawn(async move { agent.try_post("/api/confirmations", &call).await });
    }
    // The signal comes while they ask.
    let early = asking.join_next().await.unwrap().unwrap();
    held.open();
    let (status, rest) = futures_util::future::join(program.terminate(), asking.join_all()).await;
    assert!(status.success(), "{status:?}: {}", program.output());
    let acknowledged: Vec<_> = rest
        .into_iter()
        .chain([early])
        .flatten()
        .filter(|(status, _)| *status == 200)
        .map(|(_, answer)| answer["confirmation_id"].as_str().unwrap().to_owned())
        .collect();
    assert!(!acknowledged.is_empty());
    program.restart().await;
    for id in acknowledged.iter().chain([&first]) {
        assert_eq!(world.request(id).await["status"], "pending");
    }
    world.verify().await;
}

/// Two servers on one database: one is killed, the other takes the click, wakes the waiter and settles the card.
#[tokio::test(flavor = "multi_thread")]
async fn beside_a_killed_server_the_other_finishes() {
    let (world, mut first) = program(Storage::Postgres).await;
    let other = Place::new();
    std::fs::copy(world.place.file("gatepost.key"), other.file("gatepost.key")).unwrap();
    let config = world.config.replace(&world.place.listen(), &other.listen());
    let second = Program::start(other.clone(), &config, &[]).await;
    let id = ask(&world).await;
    let card = world.slack_card(&id).await;
    world.until_deliveries(&id, &["posted"]).await;

    let waiting = tokio::spawn({
        let api = second.api(&crate::support::world::secret_of("build-agent"));
        let path = format!("/api/confirmations/{id}?wait=30");
        async move { api.get(&path).await }
    });
    first.kill_9().await;
    let pressed = world.slack.click(&card, "approve", DANA.slack);
    let answered = pressed.post(&other.callback_url("ops-slack")).await;
    assert_eq!(answered.status, 200);
    let (_, seen) = tokio::time::timeout(SOON, waiting).await.unwrap().unwrap();
    assert_eq!(seen["status"], "approved");
    world
        .slack
        .wait_for("the settled card", SOON, |slack| {
            let mut cards = slack.messages(fake_slack::CHANNEL).into_iter();
            cards
                .all(|card| card.current().action_ids().is_empty())
                .then_some(())
        })
        .await;
    // The first comes back; what one decided the other knows, and a permit is consumed once between them.
    first.restart().await;
    let there = second.api(&crate::support::world::secret_of("build-agent"));
    let path = format!("/api/confirmations/{id}/consume");
    let both = futures_util::future::join(consume(&world, &id), there.post_text(&path, CALL)).await;
    let mut statuses = [both.0.0, both.1.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{both:?}");
}

/// A decision on one server ends a wait on the other at once, and a replay is one on both.
#[tokio::test(flavor = "multi_thread")]
async fn two_servers_decide_as_one() {
    let (world, _first) = program(Storage::Postgres).await;
    let other = Place::new();
    std::fs::copy(world.place.file("gatepost.key"), other.file("gatepost.key")).unwrap();
    let config = world.config.replace(&world.place.listen(), &other.listen());
    let second = Program::start(other.clone(), &config, &[]).await;
    let id = ask(&world).await;
    let card = world.slack_card(&id).await;
    world.until_deliveries(&id, &["posted"]).await;
    let waiting = tokio::spawn({
        let api = second.api(&crate::support::world::secret_of("build-agent"));
        let path = format!("/api/confirmations/{id}?wait=30");
        async move {
            let begun = std::time::Instant::now();
            (api.get(&path).await, begun.elapsed())
        }
    });
    let press = world.slack.click(&card, "reject", DANA.slack).request();
    assert_eq!(press.post(&world.callback("ops-slack")).await.status, 200);
    let ((_, seen), took) = tokio::time::timeout(SOON, waiting).await.unwrap().unwrap();
    assert_eq!(seen["status"], "rejected");
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(press.post(&other.callback_url("ops-slack")).await.status, 200);
    world.until_refused("replayed").await;
    assert_eq!(
        world.slack.messages(fake_slack::CHANNEL).len(),
        1,
        "one of the two posted"
    );
}
