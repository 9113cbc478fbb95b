//! The real program, killed while like requests share a card: every request stays on a card, where the platform promises it on one
//! only, and a press for all of them counts once.

use serde_json::json;

use super::batch::{ask, settled, shared, statuses, votes};
use crate::support::fake_feishu;
use crate::support::fake_slack;
use crate::support::fault::Fault;
use crate::support::people::{DANA, NOOR};
use crate::support::program::Program;
use crate::support::rows::Rows;
use crate::support::world::{Plan, Storage, World};

on_every_store!(
    killed_while_the_shared_card_is_posted,
    killed_while_the_card_grows_and_when_all_were_approved,
);

async fn program(storage: Storage) -> (World, Program, Rows) {
    let world = Plan::on(storage).without_server().await;
    let program = Program::start(world.place.clone(), &world.config, &[]).await;
    let rows = Rows::of(&world);
    (world, program, rows)
}

/// The second joins while the post of the first is neither known to stand nor due again.
async fn killed_while_the_shared_card_is_posted(storage: Storage) {
    let (world, mut program, rows) = program(storage).await;
    let lost = || Fault::silence().after_effect();
    world.slack.fail_next("chat.postMessage", lost());
    world.feishu.fail_next(fake_feishu::Api::Send, lost());
    let mut ids = ask(&world, 1).await;
    let unheard = world.slack_card(&ids[0]).await;
    world.feishu_card(&ids[0]).await;
    program.kill_9().await;
    program.restart().await;
    ids.push(world.ask_for("many__pay", json!({"amount": 7})).await);
    assert_eq!(world.request(&ids[1]).await["set"], ids[0]);
    program.kill_9().await;
    rows.lapse().await;
    program.restart().await;

    let (slack, feishu) = shared(&world, &ids).await;
    assert_eq!(
        world.feishu.messages(fake_feishu::CHAT).len(),
        1,
        "Feishu promises one message for one key"
    );
    // Slack promises nothing of the kind: what was never heard of shows the one request that was there, and the new one both.
    assert_eq!(world.slack.messages(fake_slack::CHANNEL).len(), 2);
    assert_ne!(slack.ts, unheard.ts);
    let clicked = world.feishu.click_nth(&feishu, 2, "approve", NOOR.feishu);
    let clicked = clicked.post(&world.callback("finance-feishu")).await;
    assert!(clicked.card_replaced, "{:?}", clicked.toast);
    assert_eq!(statuses(&world, &ids).await, ["approved"; 2]);
    settled(&world, &slack, &feishu).await;
    assert_eq!(votes(&world).await.len(), 2);
    world.verify().await;
}

async fn killed_while_the_card_grows_and_when_all_were_approved(storage: Storage) {
    let (world, mut program, rows) = program(storage).await;
    let mut ids = ask(&world, 2).await;
    shared(&world, &ids).await;
    // One edit is lost on its way, the other one's answer on its way back.
    world.slack.fail_next("chat.update", Fault::silence());
    world
        .feishu
        .fail_next(fake_feishu::Api::Patch, Fault::silence().after_effect());
    let (before, grown) = (
        world.slack.calls("chat.update").len(),
        world.feishu.calls(fake_feishu::Api::Patch).len(),
    );
    ids.push(world.ask_for("many__pay", json!({"amount": 7})).await);
    world
        .until("both edits on their way", async || {
            let slack = world.slack.calls("chat.update").len() > before;
            (slack && world.feishu.calls(fake_feishu::Api::Patch).len() > grown).then_some(())
        })
        .await;
    program.kill_9().await;
    rows.lapse().await;
    program.restart().await;
    let (slack, feishu) = shared(&world, &ids).await;
    let press = world.slack.click(&slack, "approve_all", DANA.slack).request();
    assert_eq!(press.post(&world.callback("ops-slack")).await.status, 200);
    program.kill_9().await;
    rows.lapse().await;
    program.restart().await;
    assert_eq!(
        statuses(&world, &ids).await,
        ["approved"; 3],
        "acknowledged, so it stands"
    );
    settled(&world, &slack, &feishu).await;
    assert_eq!(press.post(&world.callback("ops-slack")).await.status, 200);
    world.until_refused("replayed").await;
    assert_eq!(votes(&world).await.len(), 3, "one each");
    assert_eq!(world.slack.messages(fake_slack::CHANNEL).len(), 1);
    assert_eq!(world.feishu.messages(fake_feishu::CHAT).len(), 1);
    world.verify().await;
}
