//! Many like requests of one agent in one card: asked one after the other or all at once, answered one by one or all together,
//! on both platforms.

use serde_json::{Value, json};

use crate::support::fake_feishu;
use crate::support::fake_slack;
use crate::support::fault::Fault;
use crate::support::people::{DANA, NOOR, OLGA};
use crate::support::world::{Storage, World, delivery_states};

on_every_store!(
    like_requests_share_a_card_and_each_has_its_choice,
    all_at_once_on_slack_is_one_event_each,
    all_at_once_on_feishu_answers_with_the_settled_card,
    a_press_on_a_card_that_grew_since_decides_nothing,
    one_that_may_not_count_is_told_and_stops_none_of_the_others,
    what_is_refused_together_is_asked_one_by_one,
    a_storm_of_like_calls_comes_to_few_cards,
);

/// The buttons of a Slack card of one request.
const ALONE: [&str; 4] = ["approve", "reject", "reject_with_reason", "show_everything"];

/// Those of one request on a card of several.
pub(super) const ROW: [&str; 3] = ["approve", "reject", "show_everything"];

/// Asks as `build-agent` for so many like calls, one after the other.
pub(super) async fn ask(world: &World, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for amount in 0..count {
        ids.push(world.ask_for("many__pay", json!({"amount": amount})).await);
    }
    ids
}

/// The one message of each platform that shows all of these, once the server knows of it.
pub(super) async fn shared(world: &World, ids: &[String]) -> (fake_slack::Message, fake_feishu::Message) {
    let slack = world
        .until("the shared Slack card", async || {
            let mut cards = world.slack.messages(fake_slack::CHANNEL).into_iter();
            cards.find(|card| {
                let text = card.current().visible_text();
                ids.iter().all(|id| text.contains(id))
            })
        })
        .await;
    let feishu = world
        .until("the shared Feishu card", async || {
            let mut cards = world.feishu.messages(fake_feishu::CHAT).into_iter();
            cards.find(|card| ids.iter().all(|id| card.visible_text().contains(id)))
        })
        .await;
    for id in ids {
        world
            .until("the server knows where it stands", async || {
                let seen = world.request(id).await;
                let states = delivery_states(&seen);
                states.iter().all(|state| *state != "queued").then_some(())
            })
            .await;
    }
    (slack, feishu)
}

pub(super) async fn statuses(world: &World, ids: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for id in ids {
        let seen = world.request(id).await;
        found.push(seen["status"].as_str().unwrap_or_default().to_owned());
    }
    found
}

/// Waits until no button is left on either card.
pub(super) async fn settled(world: &World, slack: &fake_slack::Message, feishu: &fake_feishu::Message) {
    world
        .until("both cards without buttons", async || {
            let on_slack = world.slack.messages(fake_slack::CHANNEL).into_iter();
            let on_feishu = world.feishu.messages(fake_feishu::CHAT).into_iter();
            let slack = on_slack.into_iter().find(|card| card.ts == slack.ts)?;
            let feishu = on_feishu.into_iter().find(|card| card.id == feishu.id)?;
            (slack.current().action_ids().is_empty() && feishu.decisions().is_empty()).then_some(())
        })
        .await;
}

/// The votes as the log has them: each with its request and the name of the set that was answered at once.
pub(super) async fn votes(world: &World) -> Vec<(Value, Value)> {
    let events = world.audit("vote.cast").await.into_iter();
    events
        .map(|event| (event["confirmation_id"].clone(), event["data"]["set"].clone()))
        .collect()
}

async fn like_requests_share_a_card_and_each_has_its_choice(storage: Storage) {
    let world = World::start(storage).await;
    let ids = ask(&world, 3).await;
    let (slack, feishu) = shared(&world, &ids).await;
    assert_eq!(world.slack.messages(fake_slack::CHANNEL).len(), 1);
    assert_eq!(world.feishu.messages(fake_feishu::CHAT).len(), 1);
    let rows = ROW.repeat(3);
    let all = [&rows[..], &["approve_all", "reject_all"]].concat();
    assert_eq!(slack.current().action_ids(), all);
    assert_eq!(feishu.decisions(), ["approve", "reject"].repeat(4));

    let pressed = world.slack.click_nth(&slack, 1, "reject", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    assert_eq!(statuses(&world, &ids).await, ["pending", "rejected", "pending"]);
    let clicked = world.feishu.click_nth(&feishu, 0, "approve", NOOR.feishu);
    let clicked = clicked.post(&world.callback("finance-feishu")).await;
    assert!(
        clicked.card_replaced,
        "the answer carries the whole card: {:?}",
        clicked.toast
    );
    assert_eq!(statuses(&world, &ids).await, ["approved", "rejected", "pending"]);
    world
        .until("one row left on Slack", async || {
            let card = world.slack.messages(fake_slack::CHANNEL).remove(0);
            (card.current().action_ids() == ROW).then_some(())
        })
        .await;
    let last = world.slack.messages(fake_slack::CHANNEL).remove(0);
    let pressed = world.slack.click(&last, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    assert_eq!(statuses(&world, &ids).await, ["approved", "rejected", "approved"]);
    settled(&world, &slack, &feishu).await;
    assert_eq!(votes(&world).await.len(), 3);
    for id in &ids {
        world.until_deliveries(id, &["settled", "settled"]).await;
    }
    world.verify().await;
}

async fn all_at_once_on_slack_is_one_event_each(storage: Storage) {
    let world = World::start(storage).await;
    let ids = ask(&world, 3).await;
    let (slack, feishu) = shared(&world, &ids).await;
    let pressed = world.slack.click(&slack, "approve_all", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    assert_eq!(statuses(&world, &ids).await, ["approved"; 3]);
    let cast = votes(&world).await;
    let of: Vec<_> = cast
        .iter()
        .map(|(id, _)| id.as_str().unwrap().to_owned())
        .collect();
    assert_eq!(of, ids, "one event each");
    let set = cast[0].1.as_str().expect("the set stands in the event");
    assert!(set.len() == 24 && cast.iter().all(|(_, other)| other == set));
    // An exact repeat changes nothing.
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    world.until_refused("replayed").await;
    assert_eq!(votes(&world).await.len(), 3);
    settled(&world, &slack, &feishu).await;
    world.verify().await;
}

async fn all_at_once_on_feishu_answers_with_the_settled_card(storage: Storage) {
    let world = World::start(storage).await;
    let ids = ask(&world, 2).await;
    let (slack, feishu) = shared(&world, &ids).await;
    let clicked = world.feishu.click_nth(&feishu, 2, "reject", NOOR.feishu);
    let clicked = clicked.post(&world.callback("finance-feishu")).await;
    let toast = clicked.toast.unwrap().unwrap();
    assert!(
        clicked.card_replaced && toast.content.contains("2 answered"),
        "{toast:?}"
    );
    assert_eq!(statuses(&world, &ids).await, ["rejected"; 2]);
    settled(&world, &slack, &feishu).await;
}

async fn a_press_on_a_card_that_grew_since_decides_nothing(storage: Storage) {
    let world = World::start(storage).await;
    let mut ids = ask(&world, 2).await;
    let (slack, _) = shared(&world, &ids).await;
    let old = slack.history.len() - 1;
    ids.push(world.ask_for("many__pay", json!({"amount": 99})).await);
    let (slack, feishu) = shared(&world, &ids).await;
    let pressed = world.slack.click_revision(&slack, old, "approve_all", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    world.until_refused("outdated_card").await;
    assert_eq!(statuses(&world, &ids).await, ["pending"; 3]);
    // A single row of the old card is what it was.
    let pressed = world.slack.click_revision(&slack, old, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    assert_eq!(statuses(&world, &ids).await, ["approved", "pending", "pending"]);
    // A fourth is the last that the card takes.
    let fourth = world.ask_for("many__pay", json!({"amount": 4})).await;
    let fifth = world.ask_for("many__pay", json!({"amount": 5})).await;
    ids.push(fourth);
    shared(&world, &ids[..]).await;
    let alone = world.feishu_card(&fifth).await;
    assert_ne!(alone.id, feishu.id);
}

async fn one_that_may_not_count_is_told_and_stops_none_of_the_others(storage: Storage) {
    let world = World::start(storage).await;
    let ids = ask(&world, 3).await;
    let (slack, feishu) = shared(&world, &ids).await;
    let (status, _) = world
        .api("noor-cli")
        .post(
            &format!("/api/confirmations/{}/respond", ids[1]),
            &json!({"decision": "reject"}),
        )
        .await;
    assert_eq!(status, 200);
    let pressed = world
        .slack
        .click_revision(&slack, slack.history.len() - 1, "approve_all", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    assert_eq!(statuses(&world, &ids).await, ["approved", "rejected", "approved"]);
    world
        .until("the private word", async || {
            let told = format!("{:?}", world.slack.ephemerals());
            (told.contains("2 answered") && told.contains(&ids[1])).then_some(())
        })
        .await;
    settled(&world, &slack, &feishu).await;

    // Somebody who may not decide decides none of them, and reads why once.
    let ids = ask(&world, 2).await;
    let (_, feishu) = shared(&world, &ids).await;
    let clicked = world.feishu.click_nth(&feishu, 2, "approve", OLGA.feishu);
    let clicked = clicked.post(&world.callback("finance-feishu")).await;
    let toast = clicked.toast.unwrap().unwrap();
    assert!(toast.content.contains("may not decide"), "{toast:?}");
    assert_eq!(statuses(&world, &ids).await, ["pending"; 2]);
    world.verify().await;
}

async fn what_is_refused_together_is_asked_one_by_one(storage: Storage) {
    let world = World::start(storage).await;
    let mut ids = ask(&world, 1).await;
    let first = world.slack_card(&ids[0]).await;
    world.until_deliveries(&ids[0], &["posted", "posted"]).await;
    let refused = json!({"ok": false, "error": "invalid_blocks"});
    world.slack.fail_next("chat.update", Fault::answer(200, &refused));
    ids.push(world.ask_for("many__pay", json!({"amount": 7})).await);
    let second = world.slack_card(&ids[1]).await;
    assert_ne!(second.ts, first.ts, "a card of its own");
    assert_eq!(second.current().action_ids(), ALONE);
    for id in &ids {
        world.until_deliveries(id, &["posted", "posted"]).await;
    }
    let pressed = world.slack.click(&second, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    assert_eq!(statuses(&world, &ids).await, ["pending", "approved"]);
    world
        .until("the first card shows its request alone", async || {
            let card = world.slack.messages(fake_slack::CHANNEL).remove(0);
            (card.current().action_ids() == ALONE).then_some(())
        })
        .await;
}

async fn a_storm_of_like_calls_comes_to_few_cards(storage: Storage) {
    let world = World::start(storage).await;
    let calls = (0..8).map(|amount| world.ask_for("many__pay", json!({"amount": amount})));
    let ids = futures_util::future::join_all(calls).await;
    for id in &ids {
        world.until_deliveries(id, &["posted", "posted"]).await;
    }
    assert_eq!(world.slack.messages(fake_slack::CHANNEL).len(), 2, "four in each");
    assert_eq!(world.feishu.messages(fake_feishu::CHAT).len(), 2);
    for card in world.slack.messages(fake_slack::CHANNEL) {
        let pressed = world.slack.click(&card, "approve_all", DANA.slack);
        assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    }
    assert_eq!(statuses(&world, &ids).await, ["approved"; 8]);
    world.verify().await;
}
