//! Two approvals are two persons, however often and wherever they click; a rejection ends it unless the rule wants more.

use serde_json::json;

use crate::support::people::{DANA, NOOR, RITA};
use crate::support::world::{Storage, World};

on_every_store!(
    two_persons_and_not_two_clicks,
    one_rejection_ends_a_quorum,
    a_deny_threshold_takes_as_many,
    who_stands_behind_the_call_does_not_count,
);

/// RH-305.
async fn two_persons_and_not_two_clicks(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask_for("pair__open_vault", json!({"door": 7})).await;
    let (slack_card, feishu_card) = world.cards(&id).await;
    let (slack_url, feishu_url) = (world.callback("ops-slack"), world.callback("finance-feishu"));

    let first = world.slack.click(&slack_card, "approve", DANA.slack);
    assert_eq!(first.post(&slack_url).await.status, 200);
    let again = world.slack.click(&slack_card, "approve", DANA.slack);
    assert_eq!(again.post(&slack_url).await.status, 200);
    let elsewhere = world.feishu.click(&feishu_card, "approve", DANA.feishu);
    let told = elsewhere.post(&feishu_url).await;
    assert_eq!(
        told.toast.unwrap().unwrap().content,
        "You have answered before. Your first answer stands."
    );
    let changed_mind = json!({"decision": "reject"});
    let path = format!("/api/confirmations/{id}/respond");
    let (status, answer) = world.api("dana-cli").post(&path, &changed_mind).await;
    assert_eq!((status, &answer["code"]), (409, &json!("already_voted")));

    let request = world.request(&id).await;
    assert_eq!(request["status"], "pending");
    assert_eq!(request["votes"].as_array().unwrap().len(), 1);
    // The vote shows on both cards, and the buttons of both still count: a vote does not outdate them.
    world
        .slack
        .wait_for("one of two on the card", crate::support::world::SOON, |slack| {
            let card = slack.messages(&slack_card.channel).pop()?;
            card.current().visible_text().contains("1 of 2").then_some(())
        })
        .await;
    let second = world
        .feishu
        .click_revision(&feishu_card, 0, "approve", NOOR.feishu);
    let answer = second.post(&feishu_url).await;
    assert_eq!(
        answer.toast.unwrap().unwrap().content,
        "Approved. The call may run now."
    );
    world.both_settled(&id, "Approved", "Approved").await;
    let request = world.request(&id).await;
    assert_eq!(request["status"], "approved");
    assert_eq!(request["votes"].as_array().unwrap().len(), 2);
    assert_eq!(world.audit("confirmation.approved").await.len(), 1);
}

async fn one_rejection_ends_a_quorum(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask_for("pair__open_vault", json!({})).await;
    let path = format!("/api/confirmations/{id}/respond");
    let (_, counted) = world
        .api("dana-cli")
        .post(&path, &json!({"decision": "approve"}))
        .await;
    assert_eq!(counted["status"], "pending");
    let (_, ended) = world
        .api("noor-cli")
        .post(&path, &json!({"decision": "reject"}))
        .await;
    assert_eq!(ended["status"], "rejected");
    let (status, late) = world
        .api("omar-cli")
        .post(&path, &json!({"decision": "approve"}))
        .await;
    assert_eq!((status, &late["code"]), (409, &json!("already_settled")));
}

async fn a_deny_threshold_takes_as_many(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask_for("board__sell", json!({})).await;
    let path = format!("/api/confirmations/{id}/respond");
    let mut stands = Vec::new();
    for (token, decision) in [
        ("dana-cli", "reject"),
        ("noor-cli", "approve"),
        ("omar-cli", "reject"),
    ] {
        let (status, answer) = world.api(token).post(&path, &json!({"decision": decision})).await;
        assert_eq!(status, 200, "{answer}");
        stands.push(answer["status"].as_str().unwrap().to_owned());
    }
    assert_eq!(stands, ["pending", "pending", "rejected"]);
}

/// RH-305: the requester's approval is refused on every surface; their rejection counts.
async fn who_stands_behind_the_call_does_not_count(storage: Storage) {
    let world = World::start(storage).await;
    // Named on Slack, clicking on Feishu; named by e-mail; and not named at all, but the owner of the token.
    for (agent, requester) in [
        ("build-agent", json!(RITA.slack)),
        ("build-agent", json!("RITA@example.com")),
        ("build-agent", json!("rita")),
        ("rita-agent", json!(null)),
        ("rita-agent", json!("dana")),
    ] {
        let call =
            json!({"tool_name": "oa__purchase_pay", "tool_args": {"amount": 90_000}, "requester": requester});
        let (status, asked) = world.api(agent).post("/api/confirmations", &call).await;
        assert_eq!(status, 200, "{asked}");
        let id = asked["confirmation_id"].as_str().unwrap();
        let (slack_card, feishu_card) = world.cards(id).await;
        let own = world.feishu.click(&feishu_card, "approve", RITA.feishu);
        let told = own.post(&world.callback("finance-feishu")).await;
        assert_eq!(
            told.toast.unwrap().unwrap().content,
            "You stand behind this call yourself, so somebody else has to approve it.",
            "{agent} {requester}"
        );
        let own = world.slack.click(&slack_card, "approve", RITA.slack);
        assert_eq!(own.post(&world.callback("ops-slack")).await.status, 200);
        let path = format!("/api/confirmations/{id}/respond");
        let (status, answer) = world
            .api("rita-cli")
            .post(&path, &json!({"decision": "approve"}))
            .await;
        assert_eq!((status, &answer["code"]), (403, &json!("not_authorised")));
        assert_eq!(answer["refusal"], "self_approval");
        assert_eq!(world.request(id).await["status"], "pending");
        let (_, rejected) = world
            .api("rita-cli")
            .post(&path, &json!({"decision": "reject"}))
            .await;
        assert_eq!(rejected["status"], "rejected");
        world.slack.limit_rate(false);
        world.feishu.limit_rate(false);
    }
}
