//! A card of several like requests after it was posted: deleted, refused by its channel, decided by more than one person, with an
//! approval that only arms, with everything of one request shown to one person, with lines below it. What happens to the message
//! happens to each of its requests; what is said or shown names the one that it is about.

use std::time::Duration;

use serde_json::json;

use super::batch::{ROW, settled, shared, statuses, votes};
use super::forms::{modal, send};
use crate::support::fake_feishu;
use crate::support::fake_slack;
use crate::support::people::{DANA, NOOR};
use crate::support::world::{Plan, Storage, World, secret_of};

on_every_store!(
    a_deleted_message_comes_back_with_all_of_its_requests,
    an_archived_channel_gives_each_request_away,
    a_press_for_all_arms_each_and_says_what_completes_it,
    each_request_shows_its_own_votes,
    stages_follow_for_all_at_once,
    everything_of_one_request_is_answered_for_that_one,
    lines_below_the_card_name_their_request,
    requests_of_one_card_say_so_everywhere,
);

/// Rules at the end of the world's list.
const RULES: &str = r#"
    - { name: few, tools: ["few__*"], effect: confirm, channels: [ops-slack], fallback: [finance-feishu], collapse: { window: 1h } }
    - { name: armed, tools: ["armed__*"], effect: confirm, step_up: second_person, collapse: { window: 1h } }
    - { name: two, tools: ["two__*"], effect: confirm, quorum: 2, collapse: { window: 1h } }
    - { name: staged, tools: ["staged__*"], effect: confirm, collapse: { window: 1h },
        stages: [ { name: first, approvers: { operators: [dana] } }, { name: then, approvers: { operators: [noor] } } ] }
    - { name: noted, tools: ["marked__*"], effect: confirm, collapse: { window: 1h }, thread_notes: true,
        escalate: [ { after: 10m, mention: true } ] }
"#;

async fn world(storage: Storage) -> World {
    Plan::on(storage).with(RULES).start().await
}

/// Asks for so many like calls of this tool.
async fn ask(world: &World, tool: &str, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for amount in 0..count {
        ids.push(world.ask_for(tool, json!({"amount": amount})).await);
    }
    ids
}

/// The Slack message that shows all of these, and is not that one.
async fn slack_card(world: &World, ids: &[String], not: &str) -> fake_slack::Message {
    world
        .until("the shared Slack card", async || {
            let mut cards = world.slack.messages(fake_slack::CHANNEL).into_iter();
            cards.find(|card| {
                let text = card.current().visible_text();
                card.ts != not && ids.iter().all(|id| text.contains(id))
            })
        })
        .await
}

/// Presses a button of the Slack message as it stands now.
async fn press(world: &World, card: &fake_slack::Message, button: &str, user: &str) {
    let mut cards = world.slack.messages(fake_slack::CHANNEL).into_iter();
    let card = cards.find(|now| now.ts == card.ts).unwrap();
    let pressed = world.slack.click(&card, button, user);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
}

async fn slack_says(world: &World, card: &fake_slack::Message, words: &str, times: usize) {
    world
        .until(&format!("{words:?} on the card"), async || {
            let mut cards = world.slack.messages(fake_slack::CHANNEL).into_iter();
            let card = cards.find(|now| now.ts == card.ts)?;
            (card.current().visible_text().matches(words).count() == times).then_some(())
        })
        .await;
}

async fn a_deleted_message_comes_back_with_all_of_its_requests(storage: Storage) {
    let world = world(storage).await;
    let mut ids = ask(&world, "few__pay", 2).await;
    let first = slack_card(&world, &ids, "").await;
    for id in &ids {
        world.until_deliveries(id, &["posted"]).await;
    }
    let old = world.slack.click(&first, "approve_all", DANA.slack);
    world.slack.delete(fake_slack::CHANNEL, &first.ts);
    // The third finds out.
    ids.extend(ask(&world, "few__pay", 1).await);
    let second = slack_card(&world, &ids, &first.ts).await;
    for id in &ids {
        world.until_deliveries(id, &["posted"]).await;
    }
    assert_eq!(world.slack.messages(fake_slack::CHANNEL).len(), 1);
    assert_eq!(world.feishu.messages(fake_feishu::CHAT).len(), 0);
    assert_eq!(old.post(&world.callback("ops-slack")).await.status, 200);
    world.until_refused("other_message").await;
    assert_eq!(statuses(&world, &ids).await, ["pending"; 3]);
    press(&world, &second, "approve_all", DANA.slack).await;
    assert_eq!(statuses(&world, &ids).await, ["approved"; 3]);
    for id in &ids {
        world.until_deliveries(id, &["settled"]).await;
    }
    world.verify().await;
}

async fn an_archived_channel_gives_each_request_away(storage: Storage) {
    let world = world(storage).await;
    let mut ids = ask(&world, "few__pay", 2).await;
    slack_card(&world, &ids, "").await;
    for id in &ids {
        world.until_deliveries(id, &["posted"]).await;
    }
    world.slack.archive(fake_slack::CHANNEL);
    ids.extend(ask(&world, "few__pay", 1).await);
    for id in &ids {
        // Each is asked on the next channel of its chain, on a card that its buttons belong to.
        let card = world.feishu_card(id).await;
        world
            .until("the server knows where it stands", async || {
                let seen = world.request(id).await;
                let mut cards = seen["deliveries"].as_array()?.iter();
                let on_feishu = cards.find(|card| card["channel"] == "finance-feishu")?;
                (on_feishu["state"] == "posted").then_some(())
            })
            .await;
        let clicked = world.feishu.click(&card, "approve", NOOR.feishu);
        clicked.post(&world.callback("finance-feishu")).await;
        assert_eq!(world.request(id).await["status"], "approved");
    }
    assert_eq!(world.audit("delivery.rerouted").await.len(), 3);
    assert!(!world.audit("delivery.failed").await.is_empty());
    world.verify().await;
}

async fn a_press_for_all_arms_each_and_says_what_completes_it(storage: Storage) {
    let world = world(storage).await;
    let ids = ask(&world, "armed__pay", 2).await;
    let (slack, feishu) = shared(&world, &ids).await;
    press(&world, &slack, "approve_all", DANA.slack).await;
    assert_eq!(statuses(&world, &ids).await, ["pending"; 2]);
    for id in &ids {
        let seen = world.request(id).await;
        assert_eq!(seen["armed"][0]["operator"], "dana", "{seen}");
        assert_eq!(seen["votes"], json!([]));
    }
    world
        .until("the private word", async || {
            let told = format!("{:?}", world.slack.ephemerals());
            told.contains("somebody else who may approve has to press Approve too")
                .then_some(())
        })
        .await;
    // The same person completes nothing; another one completes each.
    press(&world, &slack, "approve_all", DANA.slack).await;
    assert_eq!(statuses(&world, &ids).await, ["pending"; 2]);
    press(&world, &slack, "approve_all", NOOR.slack).await;
    assert_eq!(statuses(&world, &ids).await, ["approved"; 2]);
    for id in &ids {
        let seen = world.request(id).await;
        assert_eq!(
            (&seen["votes"][0]["operator"], &seen["votes"][0]["confirmed_by"]),
            (&json!("dana"), &json!("noor")),
            "{seen}"
        );
    }
    settled(&world, &slack, &feishu).await;
    world.verify().await;
}

async fn each_request_shows_its_own_votes(storage: Storage) {
    let world = world(storage).await;
    let ids = ask(&world, "two__pay", 2).await;
    let (slack, feishu) = shared(&world, &ids).await;
    let pressed = world.slack.click_nth(&slack, 1, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    slack_says(&world, &slack, "1 of 2", 1).await;
    slack_says(&world, &slack, "0 of 2", 1).await;
    press(&world, &slack, "approve_all", NOOR.slack).await;
    assert_eq!(statuses(&world, &ids).await, ["pending", "approved"]);
    let last = world.slack.messages(fake_slack::CHANNEL).remove(0);
    // For the one that is left, Noor's vote stands; only Dana's is missing.
    world
        .until("one row left", async || {
            let card = world.slack.messages(fake_slack::CHANNEL).remove(0);
            (card.current().action_ids() == ROW).then_some(())
        })
        .await;
    press(&world, &last, "approve", DANA.slack).await;
    assert_eq!(statuses(&world, &ids).await, ["approved"; 2]);
    settled(&world, &slack, &feishu).await;
    assert_eq!(votes(&world).await.len(), 4);
    world.verify().await;
}

async fn stages_follow_for_all_at_once(storage: Storage) {
    let world = world(storage).await;
    let ids = ask(&world, "staged__pay", 2).await;
    let (slack, feishu) = shared(&world, &ids).await;
    let early = slack.history.len() - 1;
    press(&world, &slack, "approve_all", DANA.slack).await;
    assert_eq!(statuses(&world, &ids).await, ["pending"; 2]);
    slack_says(&world, &slack, "2 of 2: then", 1).await;
    // What was on the screen in the first stage is no answer in the second.
    let stale = world
        .slack
        .click_revision(&slack, early, "approve_all", NOOR.slack);
    assert_eq!(stale.post(&world.callback("ops-slack")).await.status, 200);
    world.until_refused("outdated_card").await;
    assert_eq!(statuses(&world, &ids).await, ["pending"; 2]);
    press(&world, &slack, "approve_all", NOOR.slack).await;
    assert_eq!(statuses(&world, &ids).await, ["approved"; 2]);
    settled(&world, &slack, &feishu).await;
    assert_eq!(votes(&world).await.len(), 4);
}

async fn everything_of_one_request_is_answered_for_that_one(storage: Storage) {
    let world = world(storage).await;
    let ids = ask(&world, "few__pay", 3).await;
    let slack = slack_card(&world, &ids, "").await;
    for id in &ids {
        world.until_deliveries(id, &["posted"]).await;
    }
    let pressed = world.slack.click_nth(&slack, 1, "show_everything", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    let view = modal(&world, 1, DANA.slack).await;
    assert!(view.visible_text().contains(&ids[1]) && !view.visible_text().contains(&ids[0]));
    assert_eq!(
        send(&world, &view, Some("reject"), "not this one").await,
        json!(null)
    );
    assert_eq!(statuses(&world, &ids).await, ["pending", "rejected", "pending"]);
    assert_eq!(world.request(&ids[1]).await["votes"][0]["reason"], "not this one");
    slack_says(&world, &slack, "not this one", 1).await;
    let card = world.slack.messages(fake_slack::CHANNEL).remove(0);
    let left = [&ROW.repeat(2)[..], &["approve_all", "reject_all"]].concat();
    assert_eq!(card.current().action_ids(), left);
}

async fn lines_below_the_card_name_their_request(storage: Storage) {
    let world = world(storage).await;
    let ids = ask(&world, "marked__pay", 2).await;
    let (slack, feishu) = shared(&world, &ids).await;
    let below_slack = async |words: &str, id: &str| {
        let what = format!("{words:?} about {id} below the Slack card");
        world
            .until(&what, async || {
                world.advance(Duration::from_secs(1));
                let mut lines = world.slack.messages(fake_slack::CHANNEL).into_iter();
                lines.find(|line| {
                    // What stands in the text of the message is a preview, and not what people read below the card.
                    let blocks = line.current().blocks.to_string();
                    let below = line.thread_ts.as_deref() == Some(slack.ts.as_str());
                    below && blocks.contains(words) && blocks.contains(id)
                })
            })
            .await
    };
    world.advance(Duration::from_mins(10));
    for id in &ids {
        below_slack("Still waiting", id).await;
    }
    let lines = world.slack.messages(fake_slack::CHANNEL);
    let reminders = lines
        .iter()
        .filter(|line| line.current().visible_text().contains("Still waiting"));
    assert_eq!(reminders.count(), 1, "one line names both");
    let pressed = world.slack.click_nth(&slack, 1, "reject", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    below_slack("Rejected", &ids[1]).await;
    world
        .until("the note below the Feishu card", async || {
            world.advance(Duration::from_secs(1));
            let mut lines = world.feishu.messages(fake_feishu::CHAT).into_iter();
            lines.find(|line| {
                let body = line.current()["body"].to_string();
                let below = line.parent_id.as_deref() == Some(feishu.id.as_str());
                below && body.contains("Rejected") && body.contains(&ids[1])
            })
        })
        .await;
}

async fn requests_of_one_card_say_so_everywhere(storage: Storage) {
    let world = world(storage).await;
    let ids = ask(&world, "few__pay", 2).await;
    let alone = world.ask(60_000).await;
    for id in &ids {
        assert_eq!(world.request(id).await["set"], ids[0]);
    }
    assert!(world.request(&alone).await["set"].is_null());
    let (status, page) = world.api("audit").get("/api/confirmations?status=pending").await;
    assert_eq!(status, 200);
    let sets: Vec<_> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["set"])
        .collect();
    assert_eq!(
        sets,
        [&json!(null), &json!(ids[0]), &json!(ids[0])],
        "newest first"
    );

    let client = crate::support::loopback::client();
    let login = client
        .post(world.place.url("/console/login"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("token={}", secret_of("dana-cli")));
    let login = login.send().await.unwrap();
    let cookie = login.headers()["set-cookie"].to_str().unwrap().to_owned();
    let look = async |path: &str| {
        let page = client.get(world.place.url(path));
        let page = page.header("cookie", cookie.split(';').next().unwrap());
        page.send().await.unwrap().text().await.unwrap()
    };
    let inbox = look("/console/").await;
    let rows: Vec<_> = inbox.split("<li class=\"card\">").skip(1).collect();
    let marked: Vec<_> = rows
        .iter()
        .map(|row| row.contains("<dt>Set</dt><dd>1 "))
        .collect();
    assert_eq!(marked, [false, true, true], "{inbox}");
    let page = look(&format!("/console/requests/{}", ids[1])).await;
    let first = format!("<code>{}</code></a></dd></div>", ids[0]);
    assert!(page.contains(&first), "{page}");
}
