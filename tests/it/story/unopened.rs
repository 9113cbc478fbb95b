//! What opens for one person late or not at all: a leave that is over, a placeholder while the store is slow, and messages that the
//! platform does not bring. The person hears it, and where else everything can be seen.

use serde_json::{Value, json};

use super::forms::{cut_on_feishu, last_page, long_args, modal, pages, press, send, told};
use crate::support::fake_feishu::Api;
use crate::support::fault::Fault;
use crate::support::people::{DANA, NOOR};
use crate::support::rows::Rows;
use crate::support::world::{Storage, World};

on_every_store!(
    a_leave_that_is_over_opens_nothing,
    whoever_cannot_be_sent_everything_is_told_where_it_is,
    a_page_whose_answer_was_lost_keeps_no_buttons,
    a_page_that_the_platform_will_not_have_edited_keeps_no_buttons,
);

/// Slack's leave to open a modal lives three seconds: a press that comes later is answered in words, with the request as it was.
async fn a_leave_that_is_over_opens_nothing(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (card, _) = world.cards(&id).await;
    let late = world.slack.click(&card, "show_everything", DANA.slack);
    world.advance(std::time::Duration::from_secs(4));
    assert_eq!(late.post(&world.callback("ops-slack")).await.status, 200);
    told(&world, "could not be opened").await;
    told(&world, &format!("gatepost show {id}")).await;
    assert!(world.slack.views().is_empty());
    assert_eq!(world.slack.calls("views.open").len(), 1, "not tried again");
    // A leave that was used opens nothing either.
    let used = world.slack.click(&card, "show_everything", DANA.slack).request();
    used.post(&world.callback("ops-slack")).await;
    modal(&world, 1, DANA.slack).await;
    used.post(&world.callback("ops-slack")).await;
    world.until_refused("replayed").await;
    assert_eq!(world.slack.views().len(), 1);
    assert_eq!(world.request(&id).await["status"], "pending");
}

/// A server that cannot store the ask at once: the store is held by somebody else.
#[tokio::test(flavor = "multi_thread")]
async fn what_takes_longer_is_preceded_by_a_placeholder() {
    let world = World::start(Storage::Sqlite).await;
    let id = world.ask_for("oa__purchase_pay", long_args()).await;
    let (card, _) = world.cards(&id).await;
    let rows = Rows::of(&world);
    let held = rows.hold().await;
    press(&world, &card, "show_everything", DANA.slack).await;
    let view = modal(&world, 1, DANA.slack).await;
    let shown = view.visible_text();
    assert!(shown.contains("One moment"), "{shown}");
    assert!(
        !shown.contains(&id) && view.content["submit"].is_null(),
        "{shown}"
    );
    held.lose().await;
    let view = world
        .until("the filled modal", async || {
            let view = world.slack.views().pop()?;
            (!view.literal_text().is_empty()).then_some(view)
        })
        .await;
    assert!(view.literal_text().contains("step 899: copy"));
    assert_eq!(send(&world, &view, Some("approve"), "").await, Value::Null);
    assert_eq!(world.request(&id).await["status"], "approved");

    // Who closes it before it is filled, or whose modal cannot be changed, is told where else it can be seen.
    let id = world.ask_for("oa__purchase_pay", json!({"amount": 70_000})).await;
    let (card, _) = world.cards(&id).await;
    for (number, closes) in [true, false].into_iter().enumerate() {
        if !closes {
            let broken = Fault::answer(200, &json!({"ok": false, "error": "internal_error"}));
            world.slack.fail_next("views.update", broken);
        }
        let held = rows.hold().await;
        press(&world, &card, "show_everything", DANA.slack).await;
        let view = modal(&world, number + 2, DANA.slack).await;
        if closes {
            world
                .slack
                .close_view(&view)
                .post(&world.callback("ops-slack"))
                .await;
        }
        held.lose().await;
        world
            .until(&format!("notice {number}"), async || {
                (world.slack.ephemerals().len() == number + 1).then_some(())
            })
            .await;
    }
    told(&world, "could not be opened").await;
    told(&world, &format!("gatepost show {id}")).await;
    assert_eq!(world.request(&id).await["status"], "pending");
}

/// The platform refuses what is sent to one person: they hear where else everything can be seen, by a message that holds nothing to object
/// to, or where they cannot be written to at all, by a line below the card that holds nothing of it.
async fn whoever_cannot_be_sent_everything_is_told_where_it_is(storage: Storage) {
    let world = World::start(storage).await;
    let (id, card) = cut_on_feishu(&world).await;
    let show = async |user: &str| {
        let shown = world.feishu.click_show(&card, user);
        shown.post(&world.callback("finance-feishu")).await
    };
    let audited = json!({"code": 230_028, "msg": "The messages do NOT pass the audit."});
    world.feishu.fail_next(Api::Send, Fault::answer(400, &audited));
    show(NOOR.feishu).await;
    let sent = pages(&world, NOOR.feishu, 1).await;
    let told = sent[0].visible_text();
    assert!(
        told.contains("could not be sent to you") && told.contains(&format!("gatepost show {id}")),
        "{told}"
    );
    assert!(
        sent[0].decisions().is_empty() && !told.contains("step 0"),
        "{told}"
    );

    let outside = json!({"code": 230_013, "msg": "Bot has NO availability to this user."});
    for _ in 0..2 {
        world.feishu.fail_next(Api::Send, Fault::answer(400, &outside));
    }
    show(DANA.feishu).await;
    let below = world
        .until("a line below the card", async || {
            let mut said = world.feishu.messages(&card.chat_id).into_iter();
            said.find(|message| message.parent_id.as_deref() == Some(card.id.as_str()))
        })
        .await;
    let aloud = below.visible_text();
    assert!(
        aloud.contains("I cannot write to you") && !aloud.contains(&id) && !aloud.contains("step"),
        "{aloud}"
    );
    assert!(world.feishu.messages_to(DANA.feishu).is_empty());
    let failed = world.audit("view.failed").await;
    assert_eq!(failed.len(), 2, "{failed:?}");
    // The request is none the worse for it.
    let clicked = world.feishu.click(&card, "reject", NOOR.feishu);
    assert!(
        clicked
            .post(&world.callback("finance-feishu"))
            .await
            .card_replaced
    );
    assert_eq!(world.request(&id).await["status"], "rejected");
    world.verify().await;
}

/// Somebody decides, and no message to this person can be answered any more.
async fn decided_without_buttons(world: &World, id: &str, user: &str) {
    let path = format!("/api/confirmations/{id}/respond");
    let reject = json!({"decision": "reject", "reason": "no"});
    let (status, answer) = world.api("dana-cli").post(&path, &reject).await;
    assert_eq!((status, &answer["status"]), (200, &json!("rejected")), "{answer}");
    world
        .until("the private page without buttons", async || {
            let sent = world.feishu.messages_to(user);
            sent.iter().all(|page| page.decisions().is_empty()).then_some(())
        })
        .await;
}

/// The page with the answers reaches the person, its place does not reach us, and the request ends before the next try: where it
/// stands is found out all the same, and its buttons go.
async fn a_page_whose_answer_was_lost_keeps_no_buttons(storage: Storage) {
    let world = World::start(storage).await;
    let (id, card) = cut_on_feishu(&world).await;
    // As many messages as the same view took before; the last one's answer is lost.
    let shown = world.feishu.click_show(&card, DANA.feishu);
    shown.post(&world.callback("finance-feishu")).await;
    last_page(&world, DANA.feishu).await;
    let count = world.feishu.messages_to(DANA.feishu).len();
    let shown = world.feishu.click_show(&card, NOOR.feishu);
    shown.post(&world.callback("finance-feishu")).await;
    pages(&world, NOOR.feishu, count - 1).await;
    world.feishu.fail_next(Api::Send, Fault::cut().after_effect());
    last_page(&world, NOOR.feishu).await;
    decided_without_buttons(&world, &id, NOOR.feishu).await;
    assert_eq!(
        world.feishu.messages_to(NOOR.feishu).len(),
        count,
        "nothing came twice"
    );
    world.verify().await;
}

/// The platform does not take what the page says once the request is over.
async fn a_page_that_the_platform_will_not_have_edited_keeps_no_buttons(storage: Storage) {
    let world = World::start(storage).await;
    let (id, card) = cut_on_feishu(&world).await;
    let shown = world.feishu.click_show(&card, NOOR.feishu);
    shown.post(&world.callback("finance-feishu")).await;
    last_page(&world, NOOR.feishu).await;
    let audited = json!({"code": 230_028, "msg": "The messages do NOT pass the audit."});
    // Group card, its plainer form, and the page; the page's barest form passes.
    for _ in 0..3 {
        world.feishu.fail_next(Api::Patch, Fault::answer(400, &audited));
    }
    decided_without_buttons(&world, &id, NOOR.feishu).await;
    let last = world
        .feishu
        .messages_to(NOOR.feishu)
        .pop()
        .unwrap()
        .visible_text();
    assert!(last.contains(&id) && !last.contains("oa__purchase_pay"), "{last}");
    world.verify().await;
}
