//! What opens for one person: a form for words, and everything there is to see with the answers below it. From there a request is
//! answered like from its card, also one that the card had to cut; whoever may not decide sees nothing.

use serde_json::{Value, json};

use crate::support::fake_slack::{CHANNEL, Message, View};
use crate::support::fault::Fault;
use crate::support::people::{DANA, NOOR, OLGA, STRANGER_FEISHU, STRANGER_SLACK};
use crate::support::world::{Storage, World};

on_every_store!(
    a_needed_reason_opens_a_form_and_counts_from_there,
    a_reason_that_nobody_asks_for_can_be_given,
    a_plain_reject_still_decides_at_once,
    a_cut_card_is_approved_from_the_full_view,
    who_may_not_decide_sees_nothing,
    a_modal_shows_how_the_request_stands,
    a_modal_that_cannot_be_opened_is_told,
    what_is_too_long_for_a_modal_is_shown_elsewhere,
    feishu_sends_everything_to_one_person,
    feishu_answers_from_a_private_chat_are_of_that_person_alone,
    a_changed_request_takes_the_answers_from_the_private_page,
    feishu_says_where_else_it_can_be_seen,
);

/// Arguments that no card shows whole.
pub(super) fn long_args() -> Value {
    let lines: Vec<_> = (0..900)
        .map(|n| format!("step {n}: copy <shard> & verify 支払い"))
        .collect();
    json!({"amount": 60_000, "payee": "ACME GmbH", "steps": lines})
}

/// The modal that was opened last for this person, once there are so many.
pub(super) async fn modal(world: &World, count: usize, user: &str) -> View {
    world
        .until("a modal", async || {
            let views = world.slack.views();
            (views.len() == count)
                .then(|| views.into_iter().rfind(|view| view.user == user))
                .flatten()
        })
        .await
}

pub(super) async fn press(world: &World, card: &Message, action_id: &str, user: &str) {
    let pressed = world.slack.click(card, action_id, user);
    let answered = pressed.post(&world.callback("ops-slack")).await;
    assert_eq!(
        (answered.status, answered.body.as_str()),
        (200, ""),
        "acknowledged with nothing"
    );
}

pub(super) async fn told(world: &World, words: &str) {
    world
        .until(&format!("the private word {words:?}"), async || {
            let told = world.slack.ephemerals();
            format!("{told:?}").contains(words).then_some(())
        })
        .await;
}

pub(super) async fn send(world: &World, view: &View, choice: Option<&str>, words: &str) -> Value {
    let sent = world.slack.answer_view(view, choice, words);
    let answered = sent.post(&world.callback("ops-slack")).await;
    assert_eq!(answered.status, 200);
    serde_json::from_str(&answered.body).unwrap_or_default()
}

async fn a_needed_reason_opens_a_form_and_counts_from_there(storage: Storage) {
    let world = World::start(storage).await;
    for (number, (decision, status)) in [("reject", "rejected"), ("approve", "approved")]
        .into_iter()
        .enumerate()
    {
        let id = world.ask_for("reasoned__pay", json!({"amount": number})).await;
        let (card, _) = world.cards(&id).await;
        press(&world, &card, decision, DANA.slack).await;
        let form = modal(&world, number + 1, DANA.slack).await;
        assert!(form.visible_text().contains(&id) && form.choices().is_empty());
        let seen = world.request(&id).await;
        assert_eq!(
            (&seen["status"], &seen["votes"]),
            (&json!("pending"), &json!([])),
            "the press only opens the form"
        );

        // Blanks and punctuation are no reason: the modal stays open and says so.
        let refused = send(&world, &form, None, " … ").await;
        assert_eq!(refused["response_action"], "errors", "{refused}");
        assert!(
            refused["errors"]["why"]
                .as_str()
                .unwrap()
                .contains("asks for a reason")
        );
        assert_eq!(world.request(&id).await["status"], "pending");

        let closed = send(&world, &form, None, "  checked with legal <!channel>\n").await;
        assert_eq!(closed, Value::Null, "the modal closes");
        let seen = world.request(&id).await;
        assert_eq!(seen["status"], status, "{seen}");
        assert_eq!(seen["votes"][0]["reason"], "checked with legal <!channel>");
        assert_eq!(seen["votes"][0]["channel"], "ops-slack");
        world
            .both_settled(&id, "checked with legal", "checked with legal")
            .await;
    }
    let refused = world.audit("callback.refused").await;
    assert_eq!(
        refused.len(),
        2,
        "asking for words is no refusal, sending none is: {refused:?}"
    );
    world.verify().await;
}

async fn a_reason_that_nobody_asks_for_can_be_given(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (card, _) = world.cards(&id).await;
    press(&world, &card, "reject_with_reason", DANA.slack).await;
    let form = modal(&world, 1, DANA.slack).await;
    // Somebody closes it and opens it again: nothing changed.
    let closed = world.slack.close_view(&form);
    assert_eq!(closed.post(&world.callback("ops-slack")).await.status, 200);
    assert_eq!(world.request(&id).await["status"], "pending");
    press(&world, &card, "reject_with_reason", DANA.slack).await;
    let form = modal(&world, 2, DANA.slack).await;
    let sent = world
        .slack
        .answer_view(&form, None, "not this supplier")
        .request();
    for _ in 0..2 {
        // An exact repeat gets the first answer.
        let answered = sent.post(&world.callback("ops-slack")).await;
        assert_eq!((answered.status, answered.body.as_str()), (200, ""));
    }
    let seen = world.request(&id).await;
    assert_eq!(seen["status"], "rejected");
    assert_eq!(seen["votes"].as_array().unwrap().len(), 1);
    assert_eq!(seen["votes"][0]["reason"], "not this supplier");
    world.until_refused("replayed").await;
    world.verify().await;
}

async fn a_plain_reject_still_decides_at_once(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (card, _) = world.cards(&id).await;
    press(&world, &card, "reject", DANA.slack).await;
    assert_eq!(world.request(&id).await["status"], "rejected");
    assert!(world.slack.calls("views.open").is_empty());
}

async fn a_cut_card_is_approved_from_the_full_view(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask_for("oa__purchase_pay", long_args()).await;
    let (card, _) = world.cards(&id).await;
    assert_eq!(
        card.current().action_ids(),
        ["reject", "reject_with_reason", "show_everything"],
        "cut, so without Approve"
    );
    press(&world, &card, "show_everything", DANA.slack).await;
    let view = modal(&world, 1, DANA.slack).await;
    let shown = view.literal_text();
    for n in [0, 450, 899] {
        assert!(
            shown.contains(&format!("step {n}: copy <shard> & verify 支払い")),
            "{n}"
        );
    }
    assert_eq!(view.choices(), ["approve", "reject"]);
    let viewed = world.audit("confirmation.viewed").await;
    assert_eq!(viewed.len(), 1);
    assert_eq!(
        (&viewed[0]["actor"], &viewed[0]["channel"]),
        (&json!("operator:dana"), &json!("ops-slack")),
        "{viewed:?}"
    );

    // What the modal was opened with is good for who opened it, and for nobody else.
    let mut stolen = view.clone();
    NOOR.slack.clone_into(&mut stolen.user);
    let refused = send(&world, &stolen, Some("approve"), "").await;
    let said = refused["errors"]["answer"].as_str().unwrap_or_default();
    assert!(said.contains("does not show everything"), "{refused}");
    let forged = world.slack.answer_view(&view, Some("approve"), "").forged();
    assert_eq!(forged.post(&world.callback("ops-slack")).await.status, 401);
    assert_eq!(world.request(&id).await["status"], "pending");

    assert_eq!(
        send(&world, &view, Some("approve"), "read it all").await,
        Value::Null
    );
    let seen = world.request(&id).await;
    assert_eq!(seen["status"], "approved", "{seen}");
    assert_eq!(seen["votes"][0]["reason"], "read it all");
    world.both_settled(&id, "Dana", "Dana").await;
    // The modal is still open somewhere: what it sends comes too late, and is told so.
    let late = send(&world, &view, Some("reject"), "").await;
    assert!(
        late["errors"]["answer"]
            .as_str()
            .unwrap()
            .contains("approved before"),
        "{late}"
    );
    world.verify().await;
}

async fn who_may_not_decide_sees_nothing(storage: Storage) {
    let world = World::start(storage).await;
    let args = json!({"note": "canary-in-arguments"});
    let id = world.ask_for("pair__pay", args).await;
    let (card, _) = world.cards(&id).await;
    for (number, (user, reason, words)) in [
        (OLGA.slack, "not_authorised", "may not decide"),
        (STRANGER_SLACK, "unknown_operator", "not set up as an operator"),
    ]
    .into_iter()
    .enumerate()
    {
        press(&world, &card, "show_everything", user).await;
        let view = modal(&world, number + 1, user).await;
        let shown = view.visible_text();
        assert!(shown.contains(words), "{shown}");
        assert!(!shown.contains("canary") && !shown.contains(&id), "{shown}");
        assert!(view.content["submit"].is_null() && view.content["private_metadata"].is_null());
        world.until_refused(reason).await;
    }
    let foreign = world
        .slack
        .click(&card, "show_everything", DANA.slack)
        .by_team("T0EVIL");
    foreign.post(&world.callback("ops-slack")).await;
    world.until_refused("foreign_tenant").await;
    assert!(world.audit("confirmation.viewed").await.is_empty());

    // Nor is a form opened for whoever may not answer: the press is told what it always was.
    let reasoned = world.ask_for("reasoned__pay", json!({"amount": 7})).await;
    let (card, _) = world.cards(&reasoned).await;
    let views = world.slack.views().len();
    press(&world, &card, "reject", OLGA.slack).await;
    told(&world, "may not decide").await;
    assert_eq!(world.slack.views().len(), views);
}

async fn a_modal_shows_how_the_request_stands(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (card, _) = world.cards(&id).await;
    let (show, why) = (
        world.slack.click(&card, "show_everything", DANA.slack),
        world.slack.click(&card, "reject_with_reason", NOOR.slack),
    );
    let (status, _) = world
        .api("omar-cli")
        .post(
            &format!("/api/confirmations/{id}/respond"),
            &json!({"decision": "reject", "reason": "no"}),
        )
        .await;
    assert_eq!(status, 200);
    show.post(&world.callback("ops-slack")).await;
    let view = modal(&world, 1, DANA.slack).await;
    assert!(view.visible_text().contains("Rejected") && view.visible_text().contains("ACME GmbH"));
    assert!(view.content["submit"].is_null() && view.choices().is_empty());
    why.post(&world.callback("ops-slack")).await;
    let view = modal(&world, 2, NOOR.slack).await;
    assert!(view.visible_text().contains("Rejected") && view.content["submit"].is_null());
}

async fn a_modal_that_cannot_be_opened_is_told(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask_for("reasoned__pay", json!({"amount": 1})).await;
    let (card, _) = world.cards(&id).await;
    let (in_time, ever) = ("Please press the button again", "pressing again will not help");
    let answers = [
        (json!({"ok": false, "error": "expired_trigger_id"}), in_time),
        (json!({"ok": false, "error": "unknown_method"}), ever),
        (
            json!({"ok": false, "error": "invalid_arguments",
                "response_metadata": {"messages": ["[ERROR] invalid trigger_id"]}}),
            in_time,
        ),
        // A platform that answers yes and does nothing.
        (json!({"ok": true}), ever),
    ];
    for (number, (answer, words)) in answers.into_iter().enumerate() {
        world.slack.fail_next("views.open", Fault::answer(200, &answer));
        let action = if number % 2 == 0 {
            "show_everything"
        } else {
            "reject"
        };
        press(&world, &card, action, DANA.slack).await;
        world
            .until(&format!("notice {number}"), async || {
                (world.slack.ephemerals().len() == number + 1).then_some(())
            })
            .await;
        let last = world.slack.ephemerals().pop();
        assert!(format!("{last:?}").contains(words), "{last:?}");
    }
    let told = world.slack.ephemerals();
    let all = format!("{told:?}");
    assert_eq!(
        all.matches("could not be opened").count(),
        told.len() * 2,
        "text and block each: {all}"
    );
    assert!(
        all.contains(&format!("gatepost show {id}")),
        "it says what else can be done: {all}"
    );
    assert!(
        told.iter()
            .all(|(channel, user, _)| channel == CHANNEL && user == DANA.slack)
    );
    assert!(world.slack.views().is_empty());
    assert_eq!(world.request(&id).await["status"], "pending");
}

async fn what_is_too_long_for_a_modal_is_shown_elsewhere(storage: Storage) {
    let world = World::start(storage).await;
    let args = json!({"amount": 60_000, "text": "long line of text. ".repeat(20_000)});
    let id = world.ask_for("oa__purchase_pay", args).await;
    let (card, _) = world.cards(&id).await;
    press(&world, &card, "show_everything", DANA.slack).await;
    let view = modal(&world, 1, DANA.slack).await;
    let shown = view.visible_text();
    assert!(
        shown.contains("too long") && shown.contains(&format!("gatepost show {id}")),
        "{shown}"
    );
    assert!(view.content["submit"].is_null() && !shown.contains("long line of text"));
}

/// Everything that the bot sent to this person, once it is all there.
pub(super) async fn pages(
    world: &World,
    open_id: &str,
    count: usize,
) -> Vec<crate::support::fake_feishu::Message> {
    world
        .until(&format!("{count} messages to {open_id}"), async || {
            let sent = world.feishu.messages_to(open_id);
            (sent.len() == count).then_some(sent)
        })
        .await
}

/// A request that the Feishu card cannot show whole, and that card.
pub(super) async fn cut_on_feishu(world: &World) -> (String, crate::support::fake_feishu::Message) {
    let id = world.ask_for("oa__purchase_pay", long_args()).await;
    let (_, card) = world.cards(&id).await;
    assert_eq!(card.decisions(), ["reject"], "cut, so without Approve");
    (id, card)
}

/// Waits until the last of the messages to this person is known to the server, so that it may be answered.
pub(super) async fn last_page(world: &World, open_id: &str) -> crate::support::fake_feishu::Message {
    let pages = world
        .until("the page with the answers", async || {
            let sent = world.feishu.messages_to(open_id);
            sent.last()
                .is_some_and(|last| !last.decisions().is_empty())
                .then_some(sent)
        })
        .await;
    pages.into_iter().next_back().unwrap()
}

async fn feishu_sends_everything_to_one_person(storage: Storage) {
    let world = World::start(storage).await;
    let (id, card) = cut_on_feishu(&world).await;
    let clicked = world
        .feishu
        .click_show(&card, NOOR.feishu)
        .post(&world.callback("finance-feishu"))
        .await;
    let toast = clicked.toast.unwrap().unwrap();
    assert_eq!(toast.kind, "info");
    assert!(
        toast.content.contains("to you alone") && toast.content.contains(&format!("gatepost show {id}")),
        "{toast:?}"
    );
    assert!(!clicked.card_replaced, "the group's card stays as it is");
    let last = last_page(&world, NOOR.feishu).await;
    let sent = world.feishu.messages_to(NOOR.feishu);
    let all: String = sent.iter().map(|message| message.visible_text() + "\n").collect();
    for n in [0, 450, 899] {
        assert!(
            all.contains(&format!("step {n}: copy <shard> & verify 支払い")),
            "{n}"
        );
    }
    assert!(
        sent.len() >= 3
            && sent[..sent.len() - 1]
                .iter()
                .all(|page| page.decisions().is_empty())
    );
    assert_eq!(last.decisions(), ["approve", "reject"]);
    assert_eq!(
        world.feishu.messages(&card.chat_id).len(),
        1,
        "the group sees none of it"
    );
    let viewed = world.audit("confirmation.viewed").await;
    assert_eq!((viewed.len(), &viewed[0]["actor"]), (1, &json!("operator:noor")));

    // The same press again, byte for byte, sends nothing again.
    let clicked = answered(&world, &last, "approve", NOOR.feishu).await;
    assert_eq!(clicked.toast.unwrap().unwrap().kind, "success");
    let seen = world.request(&id).await;
    assert_eq!(seen["status"], "approved", "{seen}");
    assert_eq!(seen["votes"][0]["channel"], "finance-feishu");
    world.both_settled(&id, "Noor", "Noor").await;
    world
        .until("the private page without buttons", async || {
            let sent = world.feishu.messages_to(NOOR.feishu);
            sent.iter().all(|page| page.decisions().is_empty()).then_some(())
        })
        .await;
    world.verify().await;
}

/// Presses until the server knows the page: a press that comes before the record of the post is refused.
async fn answered(
    world: &World,
    page: &crate::support::fake_feishu::Message,
    decision: &str,
    open_id: &str,
) -> crate::support::fake_feishu::Clicked {
    world
        .until("the page is known", async || {
            let clicked = world.feishu.click(page, decision, open_id);
            let clicked = clicked.post(&world.callback("finance-feishu")).await;
            let toast = clicked.toast.clone().unwrap().unwrap();
            (!toast.content.contains("not the card of the request")).then_some(clicked)
        })
        .await
}

async fn feishu_answers_from_a_private_chat_are_of_that_person_alone(storage: Storage) {
    let world = World::start(storage).await;
    let (id, card) = cut_on_feishu(&world).await;
    world
        .feishu
        .click_show(&card, NOOR.feishu)
        .post(&world.callback("finance-feishu"))
        .await;
    let last = last_page(&world, NOOR.feishu).await;
    let url = world.callback("finance-feishu");
    // Of somebody else, who may decide as well; with another proof; from the group, where the card is cut.
    let stolen = world.feishu.click(&last, "approve", DANA.feishu).post(&url).await;
    assert_ne!(stolen.toast.unwrap().unwrap().kind, "success");
    let button = last.current().to_string();
    let at = button.find("s1.").expect("a proof");
    let proof = &button[at..at + 35];
    let turned = proof.replace(&proof[3..5], if &proof[3..5] == "00" { "11" } else { "00" });
    let value = |seen: &str, card: &crate::support::fake_feishu::Message| {
        let text = card.current().to_string();
        let at = text.find("g1.").expect("a button");
        let end = at + text[at..].find('"').expect("its end");
        json!({"decision": "approve", "b": text[at..end], "seen": seen})
    };
    let odd = world
        .feishu
        .click(&last, "approve", NOOR.feishu)
        .with_value(&value(&turned, &last));
    assert_ne!(odd.post(&url).await.toast.unwrap().unwrap().kind, "success");
    let plain = world
        .feishu
        .click(&card, "reject", NOOR.feishu)
        .with_value(&value("", &card));
    let refused = plain.post(&url).await.toast.unwrap().unwrap();
    assert!(
        refused.content.contains("does not show everything"),
        "{refused:?}"
    );
    // Another message of the same chat is none of the request's.
    let elsewhere = world
        .feishu
        .click(&last, "approve", NOOR.feishu)
        .on_message("om_other");
    let refused = elsewhere.post(&url).await.toast.unwrap().unwrap();
    assert!(refused.content.contains("not the card"), "{refused:?}");
    let seen = world.request(&id).await;
    assert_eq!(
        (&seen["status"], &seen["votes"]),
        (&json!("pending"), &json!([])),
        "{seen}"
    );
    // Whoever may not decide is told so, and is sent nothing.
    for user in [OLGA.feishu, STRANGER_FEISHU] {
        let refused = world
            .feishu
            .click_show(&card, user)
            .post(&url)
            .await
            .toast
            .unwrap()
            .unwrap();
        assert_eq!(refused.kind, "error", "{refused:?}");
        assert!(world.feishu.messages_to(user).is_empty());
    }
    world.verify().await;
}

async fn a_changed_request_takes_the_answers_from_the_private_page(storage: Storage) {
    let world = World::start(storage).await;
    let (id, card) = cut_on_feishu(&world).await;
    world
        .feishu
        .click_show(&card, NOOR.feishu)
        .post(&world.callback("finance-feishu"))
        .await;
    let last = last_page(&world, NOOR.feishu).await;
    let (status, _) = world
        .api("build-agent")
        .post(&format!("/api/confirmations/{id}/cancel"), &json!({}))
        .await;
    assert_eq!(status, 200);
    let url = world.callback("finance-feishu");
    let late = world.feishu.click_revision(&last, 0, "approve", NOOR.feishu);
    let late = late.post(&url).await.toast.unwrap().unwrap();
    assert!(
        late.content.contains("withdrawn") || late.content.contains("not the card"),
        "{late:?}"
    );
    world
        .until("the private page without buttons", async || {
            let sent = world.feishu.messages_to(NOOR.feishu);
            sent.iter().all(|page| page.decisions().is_empty()).then_some(())
        })
        .await;
}

async fn feishu_says_where_else_it_can_be_seen(storage: Storage) {
    let world = World::start(storage).await;
    let args = json!({"amount": 60_000, "text": "long line of text. ".repeat(30_000)});
    let id = world.ask_for("oa__purchase_pay", args).await;
    let (_, card) = world.cards(&id).await;
    let clicked = world
        .feishu
        .click_show(&card, NOOR.feishu)
        .post(&world.callback("finance-feishu"))
        .await;
    let toast = clicked.toast.unwrap().unwrap();
    assert!(
        toast.content.contains("too long") && toast.content.contains(&format!("gatepost show {id}")),
        "{toast:?}"
    );
    assert!(world.feishu.messages_to(NOOR.feishu).is_empty());
}
