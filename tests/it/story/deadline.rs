//! The end of waiting: a click at the deadline does not count and one a millisecond before does; a card that reached
//! nobody ends otherwise than one that nobody answered; what was told to the agent is what is stored.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::fake_feishu::Api as FeishuCall;
use crate::support::fake_slack;
use crate::support::fault::Fault;
use crate::support::people::{DANA, NOOR};
use crate::support::world::{Plan, SOON, Storage, World};

on_every_store!(
    nobody_decided_in_time,
    every_channel_refuses_for_good,
    one_channel_refuses_and_the_other_goes_on,
    a_card_that_is_refused_for_its_content_falls_back,
    the_card_reached_nobody_until_the_end,
);

const TWO_HOURS: Duration = Duration::from_hours(2);
const MILLISECOND: Duration = Duration::from_millis(1);

/// RH-302: at the deadline to the millisecond.
#[tokio::test(flavor = "multi_thread")]
async fn a_click_at_the_deadline_is_late_and_one_before_counts() {
    let world = Plan::on(Storage::Sqlite).standing().start().await;
    let in_time = world.ask(60_000).await;
    let (card, _) = world.cards(&in_time).await;
    world.advance_to(&world.request(&in_time).await["expires_at"], MILLISECOND);
    let pressed = world.slack.click(&card, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    assert_eq!(world.request(&in_time).await["status"], "approved");

    let late = world.ask(70_000).await;
    let over_the_api = world.ask(80_000).await;
    let (_, late_card) = world.cards(&late).await;
    world.advance_to(&world.request(&late).await["expires_at"], Duration::ZERO);
    let pressed = world.feishu.click_revision(&late_card, 0, "approve", NOOR.feishu);
    let told = pressed.post(&world.callback("finance-feishu")).await;
    assert_eq!(
        told.toast.unwrap().unwrap().content,
        "Too late: the request has expired. Nothing was approved."
    );
    world.advance_to(&world.request(&over_the_api).await["expires_at"], Duration::ZERO);
    let path = format!("/api/confirmations/{over_the_api}/respond");
    let (status, answer) = world
        .api("dana-cli")
        .post(&path, &json!({"decision": "approve"}))
        .await;
    assert_eq!((status, &answer["code"]), (409, &json!("already_settled")));
    assert_eq!(answer["confirmation_status"], "expired");
    for id in [&late, &over_the_api] {
        let request = world.request(id).await;
        assert_eq!(request["status"], "expired");
        assert_eq!(request["decided_at"], request["expires_at"]);
        assert!(request["votes"].as_array().unwrap().is_empty());
        let told: Vec<_> = world
            .audit("")
            .await
            .into_iter()
            .filter(|event| event["confirmation_id"] == **id)
            .map(|event| event["kind"].as_str().unwrap().to_owned())
            .collect();
        assert!(
            !told
                .iter()
                .any(|kind| kind.contains("approved") || kind == "vote.cast"),
            "{told:?}"
        );
    }
    world.both_settled(&late, "Expired", "Expired").await;
    world.verify().await;
}

async fn nobody_decided_in_time(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    world.cards(&id).await;
    let waiting = tokio::spawn({
        let (agent, path) = (
            world.api("build-agent"),
            format!("/api/confirmations/{id}?wait=30"),
        );
        async move { agent.get(&path).await }
    });
    world.advance(TWO_HOURS);
    let (_, seen) = tokio::time::timeout(SOON, waiting).await.unwrap().unwrap();
    assert_eq!(seen["status"], "expired", "the sweeper ends the wait");
    world.both_settled(&id, "Expired", "Expired").await;
    let request = world.request(&id).await;
    assert_eq!(
        (&request["status"], &request["decided_at"]),
        (&seen["status"], &seen["decided_at"])
    );
    assert!(request["decided_at"].as_str() <= request["expires_at"].as_str());
    let call =
        json!({"tool_name": "oa__purchase_pay", "tool_args": {"amount": 60_000, "payee": "ACME GmbH"}});
    let path = format!("/api/confirmations/{id}/consume");
    let (status, answer) = world.api("build-agent").post(&path, &call).await;
    assert_eq!((status, &answer["code"]), (409, &json!("not_approved")));
}

/// RH-304: permanent refusals end the request at once, and not at its deadline.
async fn every_channel_refuses_for_good(storage: Storage) {
    let world = World::start(storage).await;
    world.slack.archive(fake_slack::CHANNEL);
    world.feishu.remove_bot(crate::support::fake_feishu::CHAT);
    let call = json!({"tool_name": "oa__purchase_pay", "tool_args": {"amount": 60_000}, "wait": 30});
    let asking = world.api("build-agent");
    let (status, denied) = asking.post("/api/confirmations", &call).await;
    assert_eq!(status, 200);
    assert_eq!(
        (&denied["verdict"], &denied["reason_code"]),
        (&json!("deny"), &json!("undeliverable"))
    );
    assert_eq!(denied["status"], "undeliverable");
    let id = denied["confirmation_id"].as_str().unwrap();
    world.until_deliveries(id, &["failed", "failed"]).await;
    let request = world.request(id).await;
    assert!(request["deliveries"][0]["error"].is_string(), "{request}");
    let failed = world.audit("delivery.failed").await;
    assert_eq!(failed.len(), 2);
    assert_eq!(world.audit("confirmation.undeliverable").await.len(), 1);
}

async fn one_channel_refuses_and_the_other_goes_on(storage: Storage) {
    let world = World::start(storage).await;
    world.slack.remove_bot(fake_slack::CHANNEL);
    let id = world.ask(60_000).await;
    let card = world.feishu_card(&id).await;
    world.until_deliveries(&id, &["posted", "failed"]).await;
    let failed = world.audit("delivery.failed").await;
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["channel"], "ops-slack");
    let pressed = world.feishu.click(&card, "approve", DANA.feishu);
    pressed.post(&world.callback("finance-feishu")).await;
    assert_eq!(world.request(&id).await["status"], "approved");
    world.until_deliveries(&id, &["settled", "failed"]).await;
}

/// RH-204: the platform refuses what stands on the card; a plainer one follows and can be decided.
async fn a_card_that_is_refused_for_its_content_falls_back(storage: Storage) {
    let world = World::start(storage).await;
    let slack_refusal = json!({"ok": false, "error": "invalid_blocks", "errors": ["no"]});
    world
        .slack
        .fail_next("chat.postMessage", Fault::answer(200, &slack_refusal));
    let feishu_refusal = json!({
        "code": 230_099,
        "msg": "Failed to create card content, ext=ErrCode: 11310; ErrMsg: card table number over limit; ErrorValue: table; ",
    });
    world
        .feishu
        .fail_next(FeishuCall::Send, Fault::answer(400, &feishu_refusal));
    let id = world.ask(60_000).await;
    let (slack_card, feishu_card) = world.cards(&id).await;
    assert_eq!(world.slack.calls("chat.postMessage").len(), 2);
    assert_eq!(world.feishu.calls(FeishuCall::Send).len(), 2);
    // What the plainer card cannot show, nobody approves on it.
    assert_eq!(feishu_card.decisions(), ["reject"]);
    let slack_buttons = slack_card.current().action_ids();
    assert!(
        slack_buttons.contains(&"reject".to_owned()) && !slack_buttons.contains(&"approve".to_owned()),
        "{slack_buttons:?}"
    );
    let pressed = world.slack.click(&slack_card, "reject", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    assert_eq!(world.request(&id).await["status"], "rejected");
    world.both_settled(&id, "Rejected", "Rejected").await;
}

/// No channel took the card until the deadline: undeliverable, not expired.
async fn the_card_reached_nobody_until_the_end(storage: Storage) {
    let world = World::start(storage).await;
    for _ in 0..50 {
        let limited = Fault::answer(429, &json!({"ok": false, "error": "ratelimited"}));
        world
            .slack
            .fail_next("chat.postMessage", limited.header("retry-after", "5"));
        let limited = json!({"code": 230_020, "msg": "This operation triggers the frequency limit."});
        world
            .feishu
            .fail_next(FeishuCall::Send, Fault::answer(400, &limited));
    }
    let id = world.ask(60_000).await;
    world
        .until("both refusals on record", async || {
            let request = world.request(&id).await;
            let mut deliveries = request["deliveries"].as_array()?.iter();
            deliveries
                .all(|delivery| delivery["error"].is_string())
                .then_some(())
        })
        .await;
    world.advance(TWO_HOURS);
    let request: Value = world
        .until("the end", async || {
            let request = world.request(&id).await;
            (request["status"] != "pending").then_some(request)
        })
        .await;
    assert_eq!(request["status"], "undeliverable", "{request}");
    assert!(request["decided_at"].as_str() <= request["expires_at"].as_str());
}
