//! Cards under a platform that fails: rate limits, errors, lost answers, a token that ends in between. Every request ends
//! with its card settled, and no lost answer makes a second decision.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::fake_feishu::{self, Api as FeishuCall};
use crate::support::fake_slack;
use crate::support::fault::{Door, Fault};
use crate::support::people::{DANA, NOOR};
use crate::support::world::{SOON, Storage, World};

on_every_store!(
    a_rate_limit_is_waited_for_as_told,
    a_server_error_is_tried_again,
    a_lost_answer_leaves_two_cards_of_one_request_at_most,
    a_click_before_the_posts_answer_counts,
    a_decision_during_the_post_settles_the_card_after_it,
    feishu_never_posts_twice,
    a_token_that_ends_is_renewed_once,
    forty_cards_keep_the_pace_and_the_other_group_does_not_wait,
    a_cancelled_request_settles_its_cards,
    what_a_rule_hides_stands_nowhere,
);

/// Decides over the API.
async fn respond(world: &World, token: &str, id: &str, decision: &str) -> (u16, Value) {
    let path = format!("/api/confirmations/{id}/respond");
    world.api(token).post(&path, &json!({"decision": decision})).await
}

/// RH-603.
async fn a_rate_limit_is_waited_for_as_told(storage: Storage) {
    let world = World::start(storage).await;
    let limited =
        Fault::answer(429, &json!({"ok": false, "error": "ratelimited"})).header("retry-after", "30");
    world.slack.fail_next("chat.postMessage", limited);
    let feishu_limited = json!({"code": 230_020, "msg": "This operation triggers the frequency limit."});
    world
        .feishu
        .fail_next(FeishuCall::Send, Fault::answer(400, &feishu_limited));
    let id = world.ask(60_000).await;
    world.feishu_card(&id).await;
    world
        .until("Slack's refusal on record", async || {
            let request = world.request(&id).await;
            let mut deliveries = request["deliveries"].as_array()?.iter();
            let slack = deliveries.find(|delivery| delivery["channel"] == "ops-slack")?;
            slack["error"].is_string().then_some(())
        })
        .await;
    world.advance(Duration::from_secs(25));
    world.until_deliveries(&id, &["posted", "queued"]).await;
    assert_eq!(
        world.slack.calls("chat.postMessage").len(),
        1,
        "not before Slack allows it"
    );
    world.advance(Duration::from_secs(6));
    world.slack_card(&id).await;
    world.until_deliveries(&id, &["posted", "posted"]).await;
    assert_eq!(world.slack.calls("chat.postMessage").len(), 2);
    assert!(
        world.audit("delivery.failed").await.is_empty(),
        "a pause is no failure"
    );
}

async fn a_server_error_is_tried_again(storage: Storage) {
    let world = World::start(storage).await;
    for fault in [
        Fault::text(500, "oops"),
        Fault::text(502, "<html>bad gateway</html>").header("content-type", "text/html"),
        Fault::answer(200, &json!({"ok": false, "error": "internal_error"})),
    ] {
        world.slack.fail_next("chat.update", fault.clone());
        world.feishu.fail_next(FeishuCall::Patch, fault);
    }
    let id = world.ask(60_000).await;
    world.cards(&id).await;
    respond(&world, "dana-cli", &id, "approve").await;
    for _ in 0..4 {
        world.advance(Duration::from_mins(1));
    }
    world
        .until("both cards settled", async || {
            world.advance(Duration::from_secs(1));
            let request = world.request(&id).await;
            (crate::support::world::delivery_states(&request) == ["settled", "settled"]).then_some(())
        })
        .await;
    world.both_settled(&id, "Approved", "Approved").await;
    assert_eq!(world.slack.messages(fake_slack::CHANNEL).len(), 1);
}

/// The post took effect and its answer was lost: at most two cards stand, both lead to the same row, both settle.
async fn a_lost_answer_leaves_two_cards_of_one_request_at_most(storage: Storage) {
    let world = World::start(storage).await;
    world
        .slack
        .fail_next("chat.postMessage", Fault::cut().after_effect());
    let id = world.ask_for("slack__deploy", json!({"to": "production"})).await;
    world
        .slack
        .wait_for("the card of the lost answer", SOON, |slack| {
            slack.messages(fake_slack::CHANNEL).pop()
        })
        .await;
    world
        .until("a card that is known", async || {
            world.advance(Duration::from_secs(1));
            let request = world.request(&id).await;
            (request["deliveries"][0]["state"] == "posted").then_some(())
        })
        .await;
    let cards = world.slack.messages(fake_slack::CHANNEL);
    assert!(cards.len() <= 2, "{} cards", cards.len());
    for card in &cards {
        assert!(card.current().visible_text().contains(&id));
    }
    // The older one is the one whose answer was lost; a press on it counts like one on the other.
    let pressed = world.slack.click(&cards[0], "reject", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    assert_eq!(world.request(&id).await["status"], "rejected");
    world
        .slack
        .wait_for("every card settled", SOON, |slack| {
            let mut cards = slack.messages(fake_slack::CHANNEL).into_iter();
            cards
                .all(|card| card.current().action_ids().is_empty())
                .then_some(())
        })
        .await;
    world.until_deliveries(&id, &["settled"]).await;
    assert_eq!(world.request(&id).await["votes"].as_array().unwrap().len(), 1);
}

/// Somebody is faster than the platform's answer to the post.
async fn a_click_before_the_posts_answer_counts(storage: Storage) {
    let world = World::start(storage).await;
    // The fake posts only when its door opens, so the effect comes first and its answer is lost afterwards.
    world
        .slack
        .fail_next("chat.postMessage", Fault::silence().after_effect());
    let id = world.ask_for("slack__deploy", json!({})).await;
    let card = world.slack_card(&id).await;
    let pressed = world.slack.click(&card, "approve", DANA.slack);
    let answered = pressed.post(&world.callback("ops-slack")).await;
    assert!(answered.in_time() && answered.status == 200);
    assert_eq!(world.request(&id).await["status"], "approved");
    // A press on a message that is not the card does not count even then.
    let other = world.ask_for("slack__deploy", json!({"n": 2})).await;
    let other_card = world.slack_card(&other).await;
    world.until_deliveries(&other, &["posted"]).await;
    let moved = world
        .slack
        .click(&other_card, "approve", DANA.slack)
        .on_message(&card.ts);
    moved.post(&world.callback("ops-slack")).await;
    world.until_refused("other_message").await;
    assert_eq!(world.request(&other).await["status"], "pending");
}

async fn a_decision_during_the_post_settles_the_card_after_it(storage: Storage) {
    let world = World::start(storage).await;
    let door = Door::closed();
    world.slack.fail_next("chat.postMessage", Fault::held(&door));
    world.feishu.fail_next(FeishuCall::Send, Fault::held(&door));
    let id = world.ask(60_000).await;
    world
        .slack
        .wait_for("the post", SOON, |slack| {
            (!slack.calls("chat.postMessage").is_empty()).then_some(())
        })
        .await;
    world
        .feishu
        .wait_for("the post", SOON, |feishu| {
            (!feishu.calls(FeishuCall::Send).is_empty()).then_some(())
        })
        .await;
    let (status, _) = respond(&world, "noor-cli", &id, "reject").await;
    assert_eq!(status, 200);
    door.open();
    world.both_settled(&id, "Noor Haddad", "Noor Haddad").await;
    assert_eq!(world.slack.messages(fake_slack::CHANNEL).len(), 1);
    assert_eq!(world.feishu.messages(fake_feishu::CHAT).len(), 1);
}

/// Feishu deduplicates posts by the key that they carry: a lost answer leaves one card.
async fn feishu_never_posts_twice(storage: Storage) {
    let world = World::start(storage).await;
    world
        .feishu
        .fail_next(FeishuCall::Send, Fault::cut().after_effect());
    let id = world.ask(60_000).await;
    world
        .until("a card that is known", async || {
            world.advance(Duration::from_secs(1));
            let request = world.request(&id).await;
            (crate::support::world::delivery_states(&request) == ["posted", "posted"]).then_some(())
        })
        .await;
    assert!(world.feishu.calls(FeishuCall::Send).len() >= 2);
    assert_eq!(world.feishu.messages(fake_feishu::CHAT).len(), 1);
    let (_, card) = world.cards(&id).await;
    let pressed = world.feishu.click(&card, "approve", NOOR.feishu);
    pressed.post(&world.callback("finance-feishu")).await;
    world.both_settled(&id, "Approved", "Approved").await;
}

/// RH-602: the platform says it inside an answer; the card is posted once.
async fn a_token_that_ends_is_renewed_once(storage: Storage) {
    let world = World::start(storage).await;
    let first = world.ask(60_000).await;
    world.cards(&first).await;
    let tokens = world.feishu.calls(FeishuCall::Token).len();
    world.feishu.expire_tokens();
    let second = world.ask(70_000).await;
    world.cards(&second).await;
    assert_eq!(world.feishu.messages(fake_feishu::CHAT).len(), 2);
    assert_eq!(world.feishu.calls(FeishuCall::Token).len(), tokens + 1);
    // In the middle of an edit.
    world.feishu.expire_tokens();
    respond(&world, "dana-cli", &second, "approve").await;
    world.both_settled(&second, "Approved", "Approved").await;
    assert_eq!(world.feishu.calls(FeishuCall::Token).len(), tokens + 2);
}

/// RH-603: forty at once. Slack takes one a second (five after a rest) and refuses more; none is refused, and the Feishu
/// group, which is faster, is not held up by it.
async fn forty_cards_keep_the_pace_and_the_other_group_does_not_wait(storage: Storage) {
    let world = World::start(storage).await;
    let mut ids = Vec::new();
    for n in 0..40 {
        ids.push(world.ask(60_000 + n).await);
    }
    world
        .feishu
        .wait_for("forty cards in the group", Duration::from_secs(25), |feishu| {
            (feishu.messages(fake_feishu::CHAT).len() == 40).then_some(())
        })
        .await;
    let in_slack = world.slack.messages(fake_slack::CHANNEL).len();
    assert!(in_slack < 40, "Slack's pace is slower: {in_slack}");
    // Until here time was left to itself, so the platforms' own count holds.
    assert_eq!(
        world.feishu.calls(FeishuCall::Send).len(),
        40,
        "Feishu refused none for their number"
    );
    let asked_of_slack = world.slack.calls("chat.postMessage").len();
    assert!(
        asked_of_slack <= world.slack.messages(fake_slack::CHANNEL).len() + 1,
        "nor did Slack"
    );
    // A click is answered at once meanwhile.
    let card = world.feishu_card(&ids[39]).await;
    let pressed = world.feishu.click(&card, "approve", DANA.feishu);
    let clicked = pressed.post(&world.callback("finance-feishu")).await;
    assert!(
        clicked.answered.took < Duration::from_secs(1),
        "{:?}",
        clicked.answered.took
    );
    world
        .until(
            "forty cards in Slack, but for the one that was decided",
            async || {
                world.advance(Duration::from_secs(1));
                (world.slack.messages(fake_slack::CHANNEL).len() >= 39).then_some(())
            },
        )
        .await;
}

async fn a_cancelled_request_settles_its_cards(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (slack_card, _) = world.cards(&id).await;
    let path = format!("/api/confirmations/{id}/cancel");
    let (status, cancelled) = world.api("build-agent").post(&path, &json!({})).await;
    assert_eq!((status, &cancelled["status"]), (200, &json!("cancelled")));
    world.both_settled(&id, "Withdrawn", "Withdrawn").await;
    let late = world.slack.click_revision(&slack_card, 0, "approve", DANA.slack);
    assert_eq!(late.post(&world.callback("ops-slack")).await.status, 200);
    world.until_refused("already_settled").await;
    assert_eq!(world.request(&id).await["status"], "cancelled");
}

/// Redacted arguments stand on no card, in no list and in no event; whoever asked and may decide can see them, on record.
async fn what_a_rule_hides_stands_nowhere(storage: Storage) {
    let world = World::start(storage).await;
    let hidden = "4111-1111-CANARY-1111";
    let args = json!({"amount": 9, "card": {"number": hidden, "holder": "R. Roe"}});
    let id = world.ask_for("card__charge", args.clone()).await;
    let (slack_card, feishu_card) = world.cards(&id).await;
    respond(&world, "dana-cli", &id, "approve").await;
    world.both_settled(&id, "Approved", "Approved").await;
    let (_, list) = world.api("dana-cli").get_text("/api/confirmations").await;
    let (_, export) = world.api("audit").get_text("/api/audit/export").await;
    let (_, shown) = world
        .api("audit")
        .get_text(&format!("/api/confirmations/{id}"))
        .await;
    let slack_cards: Vec<_> = world.slack.messages(fake_slack::CHANNEL);
    let feishu_cards: Vec<_> = world.feishu.messages(fake_feishu::CHAT);
    for (place, text) in [
        ("the Slack card", format!("{slack_card:?} {slack_cards:?}")),
        ("the Feishu card", format!("{feishu_card:?} {feishu_cards:?}")),
        ("the list", list),
        ("the export", export),
        ("the request", shown),
    ] {
        assert!(!text.contains(hidden), "{place} shows it: {text}");
        assert!(text.contains("card__charge"), "{place} shows the call: {text}");
    }
    let path = format!("/api/confirmations/{id}");
    let (_, own) = world.api("build-agent").get(&path).await;
    assert_eq!(own["tool_args"], args);
    let (status, full) = world.api("dana-cli").get(&format!("{path}?full=true")).await;
    assert_eq!((status, &full["tool_args"]), (200, &args));
    assert_eq!(world.audit("args.viewed").await.len(), 1);
    for (token, status) in [("audit", 403), ("olga-cli", 403), ("second-agent", 404)] {
        let (answered, text) = world.api(token).get_text(&format!("{path}?full=true")).await;
        assert!(answered == status && !text.contains(hidden), "{token}: {text}");
    }
    // A pointer that meets anything but a scalar would hide less than it seems to: denied.
    let odd = json!({"tool_name": "card__charge", "tool_args": {"card": {"number": ["4111"]}}});
    let (_, denied) = world.api("build-agent").post("/api/confirmations", &odd).await;
    assert_eq!(denied["verdict"], "deny", "{denied}");
}
