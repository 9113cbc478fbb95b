//! A rejection on Feishu: the clicker sees toast and card in the answer, the agent a denial that names who and why.

use serde_json::json;

use crate::support::people::{DANA, NOOR};
use crate::support::world::{SOON, Storage, World};

on_every_store!(
    the_answer_carries_toast_and_card,
    the_agent_hears_who_and_why,
    an_edit_that_no_longer_lands_undoes_nothing,
);

async fn the_answer_carries_toast_and_card(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (_, card) = world.cards(&id).await;
    let waiting = tokio::spawn({
        let (agent, path) = (
            world.api("build-agent"),
            format!("/api/confirmations/{id}?wait=30"),
        );
        async move { agent.get(&path).await }
    });

    let pressed = world.feishu.click(&card, "reject", NOOR.feishu);
    let clicked = pressed.post(&world.callback("finance-feishu")).await;
    assert_eq!(clicked.answered.status, 200);
    let toast = clicked.toast.expect("a usable answer").expect("a toast");
    assert_eq!(toast.content, "Rejected. The call will not run.");
    assert!(clicked.card_replaced, "the answer carries the settled card");

    let (status, seen) = tokio::time::timeout(SOON, waiting).await.unwrap().unwrap();
    assert_eq!((status, &seen["status"]), (200, &json!("rejected")));
    world.both_settled(&id, "Noor Haddad", "Noor Haddad").await;

    let call =
        json!({"tool_name": "oa__purchase_pay", "tool_args": {"amount": 60_000, "payee": "ACME GmbH"}});
    let path = format!("/api/confirmations/{id}/consume");
    let (status, answer) = world.api("build-agent").post(&path, &call).await;
    assert_eq!(
        (status, &answer["code"]),
        (409, &json!("not_approved")),
        "{answer}"
    );
    assert!(world.audit("permit.consumed").await.is_empty());
    world.verify().await;
}

async fn the_agent_hears_who_and_why(storage: Storage) {
    let world = World::start(storage).await;
    let call = json!({
        "tool_name": "oa__purchase_pay", "tool_args": {"amount": 70_000}, "session_id": "s1", "tool_call_id": "c1",
    });
    let (_, asked) = world.api("build-agent").post("/api/confirmations", &call).await;
    let id = asked["confirmation_id"].as_str().unwrap().to_owned();
    // What is decided before a card stands needs none.
    world.cards(&id).await;
    let answer = json!({"decision": "reject", "reason": "wrong supplier"});
    let path = format!("/api/confirmations/{id}/respond");
    let (status, _) = world.api("dana-cli").post(&path, &answer).await;
    assert_eq!(status, 200);

    let mut waiting = call.clone();
    waiting["wait"] = json!(30);
    let (status, denied) = world
        .api("build-agent")
        .post("/api/confirmations", &waiting)
        .await;
    assert_eq!(status, 200);
    assert_eq!(denied["verdict"], "deny");
    assert_eq!(denied["reason_code"], "rejected_by_operator");
    let reason = denied["reason"].as_str().unwrap();
    assert!(
        reason.contains("Dana Kim") && reason.contains("wrong supplier"),
        "{reason}"
    );
    world.both_settled(&id, "wrong supplier", "wrong supplier").await;
}

/// RH-304: the message was deleted before the edit; the decision stands all the same.
async fn an_edit_that_no_longer_lands_undoes_nothing(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (slack_card, feishu_card) = world.cards(&id).await;
    world.slack.delete_message(&slack_card.channel, &slack_card.ts);
    world.feishu.recall(&feishu_card.id);
    let path = format!("/api/confirmations/{id}/respond");
    let (status, _) = world
        .api("dana-cli")
        .post(&path, &json!({"decision": "approve"}))
        .await;
    assert_eq!(status, 200);
    world.until_deliveries(&id, &["settled", "settled"]).await;
    let request = world.request(&id).await;
    assert_eq!(request["status"], "approved");
    assert_eq!(request["votes"][0]["operator"], DANA.id);
    assert_eq!(world.audit("delivery.failed").await.len(), 2);
}
