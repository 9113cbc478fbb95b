//! Sixteen answers at once, approvals and rejections mixed, over both platforms and the API: one wins, and everything
//! that tells about it tells the same.

use serde_json::{Value, json};

use crate::support::people::{DANA, NOOR, OMAR, RITA};
use crate::support::world::{SOON, Storage, World};

on_every_store!(
    sixteen_answers_have_one_winner,
    two_clicks_of_one_person_count_once
);

async fn sixteen_answers_have_one_winner(storage: Storage) {
    let world = World::start(storage).await;
    let mut won = std::collections::BTreeSet::new();
    for round in 0..6_u64 {
        let id = world.ask(60_000 + round).await;
        let (slack_card, feishu_card) = world.cards(&id).await;
        let waiting = tokio::spawn({
            let (agent, path) = (
                world.api("build-agent"),
                format!("/api/confirmations/{id}?wait=30"),
            );
            async move { agent.get(&path).await }
        });
        // What each would do is fixed before anybody is let go.
        let mut slack_clicks = Vec::new();
        let mut feishu_clicks = Vec::new();
        for (index, person) in [DANA, NOOR, OMAR, RITA].into_iter().enumerate() {
            let turn = (index as u64 + round).is_multiple_of(2);
            let (one, other) = if turn {
                ("approve", "reject")
            } else {
                ("reject", "approve")
            };
            slack_clicks.push(world.slack.click(&slack_card, one, person.slack).request());
            slack_clicks.push(world.slack.click(&slack_card, other, person.slack).request());
            feishu_clicks.push(world.feishu.click(&feishu_card, other, person.feishu).request());
        }
        let mut answers = tokio::task::JoinSet::new();
        for request in slack_clicks {
            let url = world.callback("ops-slack");
            answers.spawn(async move { request.post(&url).await.status });
        }
        for request in feishu_clicks {
            let url = world.callback("finance-feishu");
            answers.spawn(async move { request.post(&url).await.status });
        }
        for (index, token) in ["dana-cli", "noor-cli", "omar-cli", "rita-cli"]
            .into_iter()
            .enumerate()
        {
            let decision = if index % 2 == 0 { "approve" } else { "reject" };
            let (api, path) = (world.api(token), format!("/api/confirmations/{id}/respond"));
            answers.spawn(async move {
                let (status, answer) = api.post(&path, &json!({"decision": decision})).await;
                assert!(
                    status == 200 || status == 409 && answer["code"] == "already_settled",
                    "{status} {answer}"
                );
                200
            });
        }
        assert_eq!(answers.len(), 16);
        assert!(answers.join_all().await.iter().all(|status| *status == 200));

        let (_, waited) = tokio::time::timeout(SOON, waiting).await.unwrap().unwrap();
        agree(&world, &id, &waited).await;
        won.insert(waited["status"].as_str().unwrap().to_owned());
    }
    world.verify().await;
}

/// Stored status, the waiter's answer, both cards, votes and audit say the same.
async fn agree(world: &World, id: &str, waited: &Value) {
    let request = world.request(id).await;
    let status = request["status"].as_str().unwrap();
    assert!(["approved", "rejected"].contains(&status), "{request}");
    assert_eq!(waited["status"], status);
    let votes = request["votes"].as_array().unwrap();
    assert_eq!(votes.len(), 1, "{request}");
    let decision = if status == "approved" { "approve" } else { "reject" };
    assert_eq!(votes[0]["decision"], decision);

    let title = if status == "approved" {
        "Approved"
    } else {
        "Rejected"
    };
    world.both_settled(id, title, title).await;
    let of_request = |event: &&Value| event["confirmation_id"] == *id;
    let settled = world.audit("confirmation.approved,confirmation.rejected").await;
    let settled: Vec<_> = settled.iter().filter(of_request).collect();
    assert_eq!(settled.len(), 1);
    assert_eq!(settled[0]["kind"], format!("confirmation.{status}"));
    let cast = world.audit("vote.cast").await;
    let cast: Vec<_> = cast.iter().filter(of_request).collect();
    assert_eq!(cast.len(), 1);
    assert_eq!(cast[0]["data"]["decision"], decision);

    let args = json!({"tool_name": "oa__purchase_pay", "tool_args": request["tool_args"]});
    let path = format!("/api/confirmations/{id}/consume");
    let (consumed, _) = world.api("build-agent").post(&path, &args).await;
    assert_eq!(consumed, if status == "approved" { 200 } else { 409 });
}

/// RH-301: two presses of one person, a second apart. The first changes the row; the second is told, and nothing else.
async fn two_clicks_of_one_person_count_once(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (card, _) = world.cards(&id).await;
    let first = world.slack.click(&card, "reject", DANA.slack).request();
    let second = world.slack.click(&card, "reject", DANA.slack).request();
    let url = world.callback("ops-slack");
    assert_eq!(first.post(&url).await.status, 200);
    let answered = second.post(&url).await;
    assert_eq!(answered.status, 200);
    assert!(answered.in_time());
    assert_eq!(world.request(&id).await["votes"].as_array().unwrap().len(), 1);
    let refused = world.until_refused("already_settled").await;
    assert_eq!(refused["confirmation_id"], *id);
    let told = world
        .slack
        .wait_for("the private notice", SOON, |slack| slack.ephemerals().pop())
        .await;
    assert_eq!(told.1, DANA.slack);
    assert!(
        told.2["text"].as_str().unwrap().contains("rejected before"),
        "{told:?}"
    );
}
