//! By what right somebody answers: a press that only arms, somebody in an absent person's place, one person past everybody. Each
//! over the cards of the platforms and the API, with its words on the cards and its events.

use std::time::Duration;

use serde_json::{Value, json};

use super::command::private;
use crate::support::authenticator::code_at;
use crate::support::fake_feishu::Message;
use crate::support::people::{DANA, NOOR, OLGA};
use crate::support::world::{Storage, World};

on_every_store!(
    a_press_arms_and_the_code_completes_it,
    an_armed_press_lapses_and_a_second_person_confirms,
    a_substitute_answers_in_the_absent_persons_place,
    the_glass_is_broken_loudly_and_once,
);

async fn respond(world: &World, token: &str, id: &str, body: &Value) -> (u16, Value) {
    let path = format!("/api/confirmations/{id}/respond");
    world.api(token).post(&path, body).await
}

async fn consumed(world: &World, id: &str, tool: &str, args: &Value) -> u16 {
    let path = format!("/api/confirmations/{id}/consume");
    let call = json!({"tool_name": tool, "tool_args": args});
    world.api("build-agent").post(&path, &call).await.0
}

async fn card_says(world: &World, id: &str, words: &str) {
    world
        .until(words, async || {
            let card = world.slack_card(id).await;
            card.current().visible_text().contains(words).then_some(())
        })
        .await;
}

async fn a_press_arms_and_the_code_completes_it(storage: Storage) {
    let world = World::start(storage).await;
    let args = json!({"amount": 1});
    let id = world.ask_for("coded__pay", args.clone()).await;
    let (slack, feishu) = world.cards(&id).await;
    let pressed = world.slack.click(&slack, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    let seen = world.request(&id).await;
    assert_eq!(
        (&seen["status"], seen["votes"].as_array().map(Vec::len)),
        (&json!("pending"), Some(0))
    );
    assert_eq!(seen["armed"][0]["operator"], "dana");
    card_says(&world, &id, "Dana Kim, waiting for the one-time code").await;
    world
        .until("the private word", async || {
            let told = format!("{:?}", world.slack.ephemerals());
            told.contains("gatepost approve ID --code").then_some(())
        })
        .await;
    // Somebody without a code hears what to do; another press arms nothing more.
    let pressed = world
        .feishu
        .click(&feishu, "approve", crate::support::people::OMAR.feishu);
    let told = pressed.post(&world.callback("finance-feishu")).await;
    assert!(
        told.toast
            .unwrap()
            .unwrap()
            .content
            .contains("none is set up for you")
    );

    let approve = |code: Option<&str>| json!({"decision": "approve", "code": code});
    let (status, answer) = respond(&world, "dana-cli", &id, &approve(None)).await;
    assert_eq!((status, &answer["code"]), (422, &json!("code_required")));
    let (status, answer) = respond(&world, "dana-cli", &id, &approve(Some("000000"))).await;
    assert_eq!((status, &answer["refusal"]), (403, &json!("wrong_code")));
    let code = code_at(world.clock.now_ms());
    let (status, answer) = respond(&world, "dana-cli", &id, &approve(Some(&code))).await;
    assert_eq!((status, &answer["status"]), (200, &json!("approved")), "{answer}");
    assert_eq!(answer["votes"][0]["code"], true);
    world.both_settled(&id, "Dana Kim", "Dana Kim").await;
    assert_eq!(consumed(&world, &id, "coded__pay", &args).await, 200);

    // The same code is good for nothing else, and to reject takes none.
    let other = world.ask_for("coded__pay", json!({"amount": 2})).await;
    let (status, answer) = respond(&world, "dana-cli", &other, &approve(Some(&code))).await;
    assert_eq!((status, &answer["refusal"]), (403, &json!("wrong_code")));
    let (slack, _) = world.cards(&other).await;
    let pressed = world.slack.click(&slack, "reject", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    assert_eq!(world.request(&other).await["status"], "rejected");
    assert_eq!(world.audit("vote.armed").await.len(), 1);
    world.verify().await;
}

async fn an_armed_press_lapses_and_a_second_person_confirms(storage: Storage) {
    let mut world = World::start(storage).await;
    let args = json!({"amount": 1});
    let id = world.ask_for("seconded__pay", args.clone()).await;
    let (slack, feishu) = world.cards(&id).await;
    let (slack_url, feishu_url) = (world.callback("ops-slack"), world.callback("finance-feishu"));
    let press = world.slack.click(&slack, "approve", DANA.slack);
    assert_eq!(press.post(&slack_url).await.status, 200);
    card_says(&world, &id, "Dana Kim, waiting for a second person").await;
    world.advance(Duration::from_mins(5));
    world.restart().await;
    // What was armed has lapsed: this press arms anew, and only a third one completes that.
    let press = world.feishu.click(&feishu, "approve", NOOR.feishu);
    let told = press.post(&feishu_url).await;
    assert!(told.toast.unwrap().unwrap().content.contains("somebody else"));
    assert_eq!(world.request(&id).await["armed"][0]["operator"], "noor");
    assert_eq!(world.audit("vote.lapsed").await.len(), 1);
    let press = world.slack.click(&slack, "approve", DANA.slack);
    assert_eq!(press.post(&slack_url).await.status, 200);
    let seen = world.request(&id).await;
    assert_eq!(seen["status"], "approved", "{seen}");
    assert_eq!(
        (&seen["votes"][0]["operator"], &seen["votes"][0]["confirmed_by"]),
        (&json!("noor"), &json!("dana"))
    );
    world
        .both_settled(
            &id,
            "Noor Haddad, confirmed by Dana Kim",
            "Noor Haddad, confirmed by Dana Kim",
        )
        .await;
    assert_eq!(consumed(&world, &id, "seconded__pay", &args).await, 200);
    world.verify().await;
}

async fn a_substitute_answers_in_the_absent_persons_place(storage: Storage) {
    let world = World::start(storage).await;
    let args = json!({"door": 1});
    let id = world.ask_for("vault__open", args.clone()).await;
    let (slack, feishu) = world.cards(&id).await;
    let refused = world.feishu.click(&feishu, "approve", DANA.feishu);
    let told = refused.post(&world.callback("finance-feishu")).await;
    assert!(told.toast.unwrap().unwrap().content.contains("may not decide"));
    let press = world.slack.click(&slack, "approve", OLGA.slack);
    assert_eq!(press.post(&world.callback("ops-slack")).await.status, 200);
    let seen = world.request(&id).await;
    assert_eq!(seen["status"], "approved", "{seen}");
    assert_eq!(
        (&seen["votes"][0]["operator"], &seen["votes"][0]["acting_for"]),
        (&json!("olga"), &json!("vera"))
    );
    world
        .both_settled(&id, "Olga Out for Vera Vault", "Olga Out for Vera Vault")
        .await;
    assert_eq!(consumed(&world, &id, "vault__open", &args).await, 200);
    let cast = world.audit("vote.cast").await;
    assert_eq!(cast[0]["data"]["acting_for"], "vera");
    world.verify().await;
}

async fn the_glass_is_broken_loudly_and_once(storage: Storage) {
    let world = World::start(storage).await;
    let args = json!({"amount": 1});
    let id = world.ask_for("glass__pay", args.clone()).await;
    world.cards(&id).await;
    let alone = |reason: &str| json!({"decision": "approve", "break_glass": true, "reason": reason});
    let (status, answer) = respond(&world, "olga-cli", &id, &alone("")).await;
    assert_eq!((status, &answer["code"]), (422, &json!("reason_required")));
    let (status, answer) = respond(&world, "dana-cli", &id, &alone("because")).await;
    assert_eq!((status, &answer["code"]), (403, &json!("not_authorised")));
    let (status, answer) = respond(&world, "olga-cli", &id, &alone("plant stands still")).await;
    assert_eq!((status, &answer["status"]), (200, &json!("approved")), "{answer}");
    assert_eq!(answer["break_glass"]["operator"], "olga");
    world.both_settled(&id, "BREAK-GLASS", "BREAK-GLASS").await;
    card_says(&world, &id, "plant stands still").await;
    // Everybody who was passed over hears it, where the platform can tell one person something.
    for person in [DANA, NOOR] {
        world
            .until("a word to everybody passed over", async || {
                let told = private(&world, person.feishu);
                let mut texts = told.iter().map(Message::visible_text);
                texts.find(|text| text.contains("plant stands still"))
            })
            .await;
    }
    let events = world.audit("confirmation.break_glass").await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["actor"], "operator:olga");
    let (_, listed) = world
        .api("audit")
        .get("/api/confirmations?break_glass=true")
        .await;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["items"][0]["id"], id);
    assert_eq!(consumed(&world, &id, "glass__pay", &args).await, 200);

    let next = world.ask_for("glass__pay", json!({"amount": 2})).await;
    let (status, answer) = respond(&world, "olga-cli", &next, &alone("again")).await;
    assert_eq!((status, &answer["code"]), (409, &json!("break_glass_used_up")));
    let other = world.ask_for("pair__open", json!({})).await;
    let (status, answer) = respond(&world, "olga-cli", &other, &alone("here too")).await;
    assert_eq!(
        (status, &answer["code"]),
        (409, &json!("break_glass_not_offered"))
    );
    let (_, listed) = world
        .api("audit")
        .get("/api/confirmations?break_glass=true")
        .await;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
    world.verify().await;
}
