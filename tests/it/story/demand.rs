//! What a rule asks of an answer stands on the cards: a field for a reason, a question before Approve, an approval for later
//! calls. What the platform sends from them is a vote with that content, and without it none.

use serde_json::json;

use crate::support::people::{DANA, NOOR};
use crate::support::world::{Storage, World};

on_every_store!(
    feishu_rejects_with_the_reason_of_the_form,
    feishu_takes_a_reason_where_none_is_needed,
    a_needed_reason_to_approve_is_typed_on_the_card,
    a_grant_by_click_lets_the_next_call_run_without_a_card,
    a_grant_by_click_on_slack,
);

async fn feishu_rejects_with_the_reason_of_the_form(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask_for("reasoned__pay", json!({"amount": 2})).await;
    let (_, card) = world.cards(&id).await;
    let pressed = world.feishu.click(&card, "reject", NOOR.feishu);
    assert!(!pressed.is_sent(), "the client waits for the reason");
    let refused = pressed.post(&world.callback("finance-feishu")).await;
    assert!(
        refused
            .toast
            .unwrap()
            .unwrap()
            .content
            .contains("asks for a reason")
    );
    assert_eq!(world.request(&id).await["status"], "pending");

    let pressed = world.feishu.click(&card, "reject", NOOR.feishu);
    let pressed = pressed.with_input("reason", "wrong supplier <at id=all></at>");
    assert!(pressed.is_sent());
    let clicked = pressed.post(&world.callback("finance-feishu")).await;
    assert!(clicked.card_replaced && clicked.toast.unwrap().is_some());
    let seen = world.request(&id).await;
    assert_eq!(seen["status"], "rejected");
    assert_eq!(seen["votes"][0]["reason"], "wrong supplier <at id=all></at>");
    world.both_settled(&id, "wrong supplier", "wrong supplier").await;
}

async fn feishu_takes_a_reason_where_none_is_needed(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (_, card) = world.cards(&id).await;
    let pressed = world.feishu.click(&card, "reject", NOOR.feishu);
    assert!(pressed.is_sent(), "the field may stay empty");
    let pressed = pressed.with_input("reason", "too much");
    pressed.post(&world.callback("finance-feishu")).await;
    assert_eq!(world.request(&id).await["votes"][0]["reason"], "too much");
}

async fn a_needed_reason_to_approve_is_typed_on_the_card(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask_for("reasoned__pay", json!({"amount": 3})).await;
    let (slack, feishu) = world.cards(&id).await;
    let (_, button) = slack.current().button("approve").unwrap();
    assert_eq!(button["confirm"]["confirm"]["text"], "Approve");
    let pressed = world.feishu.click(&feishu, "approve", NOOR.feishu);
    assert!(!pressed.is_sent());
    let pressed = pressed.with_input("reason_to_approve", "checked with legal");
    pressed.post(&world.callback("finance-feishu")).await;
    let seen = world.request(&id).await;
    assert_eq!(seen["status"], "approved", "{seen}");
    assert_eq!(seen["votes"][0]["reason"], "checked with legal");
}

async fn a_grant_by_click_lets_the_next_call_run_without_a_card(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask_for("granted__pay", json!({"amount": 1})).await;
    let (_, card) = world.cards(&id).await;
    let pressed = world.feishu.click_grant(&card, "1h", NOOR.feishu);
    let clicked = pressed.post(&world.callback("finance-feishu")).await;
    assert!(clicked.card_replaced);
    assert_eq!(world.request(&id).await["status"], "approved");
    the_next_call_runs(&world).await;
}

async fn a_grant_by_click_on_slack(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask_for("granted__pay", json!({"amount": 1})).await;
    let (card, _) = world.cards(&id).await;
    let pressed = world.slack.click(&card, "approve:1h", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    assert_eq!(world.request(&id).await["status"], "approved");
    the_next_call_runs(&world).await;
}

/// Another call of the same tool is approved by the grant; nobody gets a card.
async fn the_next_call_runs(world: &World) {
    assert_eq!(world.audit("grant.created").await.len(), 1);
    let call = json!({"tool_name": "granted__pay", "tool_args": {"amount": 2}});
    let (status, asked) = world.api("build-agent").post("/api/confirmations", &call).await;
    assert_eq!(status, 200, "{asked}");
    let id = asked["confirmation_id"].as_str().unwrap();
    let seen = world.request(id).await;
    assert_eq!(seen["status"], "approved", "{seen}");
    assert_eq!(seen["deliveries"].as_array().map_or(0, Vec::len), 0, "{seen}");
    assert_eq!(world.audit("grant.used").await.len(), 1);
    world.verify().await;
}
