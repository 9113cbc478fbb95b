//! People change the arguments inside the platforms: in a Slack modal, and in the private message of a Feishu bot. What comes of it is
//! what the API and the console make of an edit: judged by rule, hidden values and policy, voted on by everybody, run once.

use serde_json::{Value, json};

use crate::support::authenticator::code_at;
use crate::support::fake_feishu;
use crate::support::fake_slack::{Message, View};
use crate::support::people::{DANA, NOOR, OLGA};
use crate::support::world::{Plan, Storage, World};

on_every_store!(
    slack_changes_arguments_in_the_modal,
    what_is_left_as_it_is_is_approved_as_it_is,
    a_rejection_counts_whatever_stands_in_the_field,
    everybody_votes_on_what_was_changed_in_a_chat,
    feishu_changes_arguments_in_a_message_to_one_person,
    what_does_not_fit_a_field_is_changed_elsewhere,
    what_is_changed_in_a_chat_is_what_the_code_completes,
);

const RULES: &str = r#"    - { name: edited-never, tools: ["edited__*"], when: "has(args.amount) && args.amount > 100000", effect: deny, reason: Too much }
    - { name: edited-pairs, tools: [edited__pair], effect: confirm, quorum: 2, accepts_edits: [/amount] }
    - { name: edited-reasoned, tools: [edited__reasoned], effect: confirm, require_reason: approve, accepts_edits: true }
    - { name: edited-coded, tools: [edited__coded], effect: confirm, step_up: code, accepts_edits: true }
    - { name: edited, tools: ["edited__*"], effect: confirm, redact: [/card], accepts_edits: true, grants: { scopes: [1h], arguments: any } }
"#;

/// Asks as a client that takes edits.
async fn ask(world: &World, tool: &str, args: &Value) -> String {
    let body = json!({"tool_name": tool, "tool_args": args, "accepts_edits": true});
    let (status, answer) = world.api("build-agent").post("/api/confirmations", &body).await;
    assert_eq!((status, &answer["verdict"]), (200, &json!("pending")), "{answer}");
    answer["confirmation_id"].as_str().unwrap().to_owned()
}

/// What the client may run, as it asks with the call that it proposed.
async fn consume(world: &World, id: &str, tool: &str, proposed: &Value) -> Value {
    let call = json!({"tool_name": tool, "tool_args": proposed});
    let path = format!("/api/confirmations/{id}/consume");
    let (status, granted) = world.api("build-agent").post(&path, &call).await;
    assert_eq!(status, 200, "{granted}");
    granted
}

/// The modal that opens for this person.
pub(super) async fn opened(world: &World, card: &Message, user: &str) -> View {
    let before = world.slack.views().len();
    let pressed = world.slack.click(card, "show_everything", user);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    world
        .until("a modal", async || {
            let views = world.slack.views();
            (views.len() > before)
                .then(|| views.into_iter().next_back())
                .flatten()
        })
        .await
}

/// What stands in the field for the arguments.
pub(super) fn field(view: &View) -> Option<String> {
    let blocks = view.content["blocks"].as_array()?;
    let field = blocks.iter().find(|block| block["block_id"] == "args")?;
    field["element"]["initial_value"].as_str().map(str::to_owned)
}

/// The answer to what is sent from the modal; null where it closes.
pub(super) async fn send(world: &World, view: &View, choice: &str, edited: Option<&str>) -> Value {
    let sent = world.slack.fill_in(view, Some(choice), "", edited);
    let answered = sent.post(&world.callback("ops-slack")).await;
    assert_eq!(answered.status, 200);
    serde_json::from_str(&answered.body).unwrap_or_default()
}

async fn slack_changes_arguments_in_the_modal(storage: Storage) {
    let world = Plan::on(storage).with(RULES).start().await;
    let proposed = json!({"amount": 60_000, "card": "4111-canary", "note": "R&amp;D && more <x> 🚀 ✅"});
    let id = ask(&world, "edited__pay", &proposed).await;
    let (card, _) = world.cards(&id).await;
    let view = opened(&world, &card, DANA.slack).await;
    let given = field(&view).expect("a field");
    assert!(!view.content.to_string().contains("4111-canary"), "{given}");
    let with = |from: &str, to: &str| {
        assert!(given.contains(from), "{given}");
        given.replace(from, to)
    };
    for (edited, words) in [
        (String::new(), "not what the tool takes"),
        (with("60000", "60000,"), "not what the tool takes"),
        (
            with("{", "{\"amount\": 1, \"amount\": 2,"),
            "not what the tool takes",
        ),
        (with("60000", "100001"), "A rule denies"),
        (
            with("hidden: string, 11 characters", "4112"),
            "hides cannot be changed",
        ),
    ] {
        let refused = send(&world, &view, "approve", Some(&edited)).await;
        assert_eq!(refused["response_action"], "errors", "{refused}");
        let said = refused["errors"]["args"].as_str().unwrap_or_default();
        assert!(said.contains(words), "{edited}: {refused}");
        assert!(!said.contains("canary") && !said.contains("4112"), "{said}");
    }
    // Nobody else's field is theirs, and changed arguments are for one call.
    let mut stolen = view.clone();
    NOOR.slack.clone_into(&mut stolen.user);
    let refused = send(&world, &stolen, "approve", Some(&with("60000", "4"))).await;
    assert_eq!(refused["response_action"], "errors", "{refused}");
    assert!(refused.to_string().contains("open it yourself"), "{refused}");
    OLGA.slack.clone_into(&mut stolen.user);
    let refused = send(&world, &stolen, "approve", Some(&with("60000", "100001"))).await;
    let said = refused["errors"].to_string();
    assert!(
        said.contains("may not decide") && !said.contains("rule denies"),
        "who may not answer hears nothing of rules: {said}"
    );
    let refused = send(&world, &view, "approve:1h", Some(&with("60000", "4"))).await;
    assert!(
        refused["errors"]["answer"]
            .as_str()
            .is_some_and(|said| said.contains("does not offer")),
        "{refused}"
    );
    let seen = world.request(&id).await;
    assert_eq!(
        (&seen["status"], &seen["votes"], &seen["edit"]),
        (&json!("pending"), &json!([]), &Value::Null),
        "{seen}"
    );

    let closed = send(&world, &view, "approve", Some(&with("60000", "4000.5"))).await;
    assert_eq!(closed, Value::Null, "the modal closes");
    let seen = world.request(&id).await;
    assert_eq!(
        (&seen["status"], &seen["edit"]["tool_args"]["amount"]),
        (&json!("approved"), &json!(4_000.5)),
        "{seen}"
    );
    assert_eq!(seen["votes"][0]["channel"], "ops-slack");
    world
        .both_settled(&id, "+ /amount: 4000.5", "+ /amount: 4000.5")
        .await;
    let shown = world.slack_card(&id).await.current().visible_text();
    assert!(
        shown.contains("Changed by") && shown.contains("Dana Kim"),
        "{shown}"
    );
    let granted = consume(&world, &id, "edited__pay", &proposed).await;
    assert_eq!(
        granted["tool_args"],
        json!({"amount": 4_000.5, "card": "4111-canary", "note": "R&amp;D && more <x> 🚀 ✅"}),
        "what nobody touched is as it was, hidden or not"
    );
    assert_eq!(world.audit("confirmation.edited").await.len(), 1);
    let viewed = world.audit("").await;
    assert!(!format!("{viewed:?}").contains("4111-canary"));
    world.verify().await;
}

async fn what_is_left_as_it_is_is_approved_as_it_is(storage: Storage) {
    let world = Plan::on(storage).with(RULES).start().await;
    // Laid out otherwise it is still the same; so is what Slack makes of emoji and entities.
    for (number, edited) in [None, Some(()), None].into_iter().enumerate() {
        let proposed = json!({"amount": number, "card": "4111", "note": "🚀 &amp; ✅"});
        let id = ask(&world, "edited__pay", &proposed).await;
        let (card, _) = world.cards(&id).await;
        let view = opened(&world, &card, DANA.slack).await;
        let compact = edited.map(|()| field(&view).unwrap().replace("\n  ", " ") + "\n\n");
        let choice = if number == 2 { "approve:1h" } else { "approve" };
        let closed = send(&world, &view, choice, compact.as_deref()).await;
        assert_eq!(closed, Value::Null, "{number}");
        let seen = world.request(&id).await;
        assert_eq!(
            (&seen["status"], &seen["edit"]),
            (&json!("approved"), &Value::Null),
            "{seen}"
        );
        let granted = consume(&world, &id, "edited__pay", &proposed).await;
        assert_eq!(granted["tool_args"], proposed);
    }
    assert!(world.audit("confirmation.edited").await.is_empty());
    world.verify().await;
}

async fn a_rejection_counts_whatever_stands_in_the_field(storage: Storage) {
    let world = Plan::on(storage).with(RULES).start().await;
    let id = ask(&world, "edited__pay", &json!({"amount": 1})).await;
    let (card, _) = world.cards(&id).await;
    let view = opened(&world, &card, DANA.slack).await;
    let closed = send(&world, &view, "reject", Some("half a thought")).await;
    assert_eq!(closed, Value::Null);
    let seen = world.request(&id).await;
    assert_eq!(
        (&seen["status"], &seen["edit"]),
        (&json!("rejected"), &Value::Null)
    );
}

async fn everybody_votes_on_what_was_changed_in_a_chat(storage: Storage) {
    let mut world = Plan::on(storage).with(RULES).start().await;
    let proposed = json!({"amount": 60_000, "payee": "ACME GmbH"});
    let id = ask(&world, "edited__pair", &proposed).await;
    let (card, _) = world.cards(&id).await;
    let before = opened(&world, &card, NOOR.slack).await;
    let view = opened(&world, &card, DANA.slack).await;
    let given = field(&view).unwrap();
    let other = given.replace("ACME GmbH", "Bolt Ltd");
    let refused = send(&world, &view, "approve", Some(&other)).await;
    assert!(
        refused["errors"]["args"]
            .as_str()
            .is_some_and(|said| said.contains("this part of the arguments")),
        "{refused}"
    );
    let closed = send(&world, &view, "approve", Some(&given.replace("60000", "7"))).await;
    assert_eq!(closed, Value::Null);
    let seen = world.request(&id).await;
    assert_eq!(
        (
            &seen["status"],
            &seen["edit"]["number"],
            &seen["votes"][0]["edit"]
        ),
        (&json!("pending"), &json!(1), &json!(1)),
        "{seen}"
    );
    world.restart().await;
    // What Noor was shown is not what stands: her open modal answers nothing.
    let late = send(&world, &before, "approve", None).await;
    assert!(late["errors"].to_string().contains("changed since"), "{late}");
    assert_eq!(world.request(&id).await["status"], "pending");
    let card = world
        .until("the edited card", async || {
            let card = world.slack_card(&id).await;
            card.current()
                .visible_text()
                .contains("+ /amount: 7")
                .then_some(card)
        })
        .await;
    let view = opened(&world, &card, NOOR.slack).await;
    assert!(
        view.literal_text().contains("- /amount: 60000"),
        "{}",
        view.literal_text()
    );
    assert!(field(&view).unwrap().contains("\"amount\": 7"));
    assert_eq!(send(&world, &view, "approve", None).await, Value::Null);
    let seen = world.request(&id).await;
    assert_eq!(seen["status"], "approved", "{seen}");
    assert_eq!(seen["edit"]["number"], 1, "left alone, it is no second edit");
    let granted = consume(&world, &id, "edited__pair", &proposed).await;
    assert_eq!(granted["tool_args"], json!({"amount": 7, "payee": "ACME GmbH"}));
    world.verify().await;
}

/// Presses "show everything" on the group's card, and gives the message with the answers.
async fn last_page(world: &World, card: &fake_feishu::Message, open_id: &str) -> fake_feishu::Message {
    let pressed = world.feishu.click_show(card, open_id);
    let clicked = pressed.post(&world.callback("finance-feishu")).await;
    assert_eq!(clicked.toast.unwrap().unwrap().kind, "info");
    world
        .until("the page with the answers", async || {
            let last = world.feishu.messages_to(open_id).pop()?;
            (!last.decisions().is_empty()).then_some(last)
        })
        .await
}

/// Sends what stands in the field, until the server knows the page.
async fn approve_edited(
    world: &World,
    page: &fake_feishu::Message,
    open_id: &str,
    typed: &[(&str, &str)],
) -> fake_feishu::Toast {
    world
        .until("the page is known", async || {
            let press = world.feishu.click_edited(page, open_id);
            let press = typed
                .iter()
                .fold(press, |press, (field, text)| press.with_input(field, text));
            assert!(press.is_sent(), "the client sends it");
            let clicked = press.post(&world.callback("finance-feishu")).await;
            let toast = clicked.toast.unwrap().unwrap();
            (!toast.content.contains("not the card of the request")).then_some(toast)
        })
        .await
}

async fn feishu_changes_arguments_in_a_message_to_one_person(storage: Storage) {
    let world = Plan::on(storage).with(RULES).start().await;
    let proposed = json!({"amount": 60_000, "card": "4111-canary", "note": "一 <at id=all></at> 🚀"});
    let id = ask(&world, "edited__pay", &proposed).await;
    let (_, card) = world.cards(&id).await;
    assert!(
        card.visible_text().contains("what Show everything opens"),
        "the card says where: {}",
        card.visible_text()
    );
    let page = last_page(&world, &card, NOOR.feishu).await;
    let text = page.current().to_string();
    assert!(!text.contains("4111-canary"), "{text}");
    let edit = |amount: &str| {
        format!("{{\"amount\": {amount}, \"card\": \"‹hidden: string, 11 characters›\", \"note\": \"二\"}}")
    };
    for (typed, words) in [
        ("{\"amount\": ", "not what the tool takes"),
        (edit("100001").as_str(), "A rule denies"),
        ("{\"amount\": 1}", "hides cannot be changed"),
    ] {
        let toast = approve_edited(&world, &page, NOOR.feishu, &[("arguments", typed)]).await;
        assert_eq!(toast.kind, "warning", "{toast:?}");
        assert!(toast.content.contains(words), "{toast:?}");
    }
    let stolen = world
        .feishu
        .click_edited(&page, DANA.feishu)
        .with_input("arguments", &edit("4"));
    let told = stolen.post(&world.callback("finance-feishu")).await;
    assert_ne!(told.toast.unwrap().unwrap().kind, "success");
    // A client that leaves the form out approves nothing.
    let bare = world.feishu.click_edited(&page, NOOR.feishu).edit(|document| {
        document["event"]["action"]
            .as_object_mut()
            .unwrap()
            .remove("form_value");
    });
    let told = bare.post(&world.callback("finance-feishu")).await;
    assert_eq!(told.toast.unwrap().unwrap().kind, "error");
    assert_eq!(world.request(&id).await["votes"], json!([]));

    let toast = approve_edited(&world, &page, NOOR.feishu, &[("arguments", &edit("4000.5"))]).await;
    assert_eq!(toast.kind, "success", "{toast:?}");
    let seen = world.request(&id).await;
    assert_eq!(seen["status"], "approved", "{seen}");
    assert_eq!(seen["votes"][0]["channel"], "finance-feishu");
    world
        .both_settled(&id, "+ /amount: 4000.5", "+ /amount: 4000.5")
        .await;
    let granted = consume(&world, &id, "edited__pay", &proposed).await;
    assert_eq!(
        granted["tool_args"],
        json!({"amount": 4_000.5, "card": "4111-canary", "note": "二"})
    );
    world
        .until("the private page without buttons", async || {
            let page = world.feishu.messages_to(NOOR.feishu).pop()?;
            page.decisions().is_empty().then_some(())
        })
        .await;

    // Left alone, it is an approval of what was asked; the form holds the reason that the rule wants.
    let proposed = json!({"amount": 2, "note": "🚀"});
    let id = ask(&world, "edited__reasoned", &proposed).await;
    let (_, card) = world.cards(&id).await;
    let page = last_page(&world, &card, DANA.feishu).await;
    assert!(
        !world.feishu.click_edited(&page, DANA.feishu).is_sent(),
        "not without a reason"
    );
    let toast = approve_edited(
        &world,
        &page,
        DANA.feishu,
        &[("reason_to_edit", "as agreed on Friday")],
    )
    .await;
    assert_eq!(toast.kind, "success", "{toast:?}");
    let seen = world.request(&id).await;
    assert_eq!(
        (&seen["status"], &seen["edit"], &seen["votes"][0]["reason"]),
        (&json!("approved"), &Value::Null, &json!("as agreed on Friday")),
        "{seen}"
    );
    world.verify().await;
}

async fn what_does_not_fit_a_field_is_changed_elsewhere(storage: Storage) {
    let world = Plan::on(storage).with(RULES).start().await;
    let proposed = json!({"amount": 1, "note": "n".repeat(3_000)});
    let id = ask(&world, "edited__pay", &proposed).await;
    let (slack, feishu) = world.cards(&id).await;
    let view = opened(&world, &slack, DANA.slack).await;
    assert_eq!(field(&view), None);
    let elsewhere = format!("gatepost show {id}");
    let shown = view.visible_text();
    assert!(
        shown.contains("too long for a field here") && shown.contains(&elsewhere),
        "{shown}"
    );
    let page = last_page(&world, &feishu, NOOR.feishu).await;
    let shown = page.visible_text();
    assert!(
        shown.contains("too long for a field here") && shown.contains(&elsewhere),
        "{shown}"
    );
    assert_eq!(
        page.decisions(),
        ["approve", "approve", "reject"],
        "this call, calls like it, none"
    );
    assert_eq!(send(&world, &view, "approve", None).await, Value::Null);
    let seen = world.request(&id).await;
    assert_eq!(
        (&seen["status"], &seen["edit"]),
        (&json!("approved"), &Value::Null)
    );
}

/// A press in a chat only arms where a code is asked for: the changed arguments are armed with it, and nothing else can be completed.
async fn what_is_changed_in_a_chat_is_what_the_code_completes(storage: Storage) {
    let world = Plan::on(storage).with(RULES).start().await;
    let proposed = json!({"amount": 60_000, "payee": "Evil Ltd"});
    let id = ask(&world, "edited__coded", &proposed).await;
    let (card, _) = world.cards(&id).await;
    let view = opened(&world, &card, DANA.slack).await;
    let edited = field(&view).expect("a field").replace("60000", "1");
    send(&world, &view, "approve", Some(&edited)).await;
    let seen = world.request(&id).await;
    assert_eq!(
        (
            &seen["status"],
            &seen["edit"]["number"],
            &seen["armed"][0]["operator"]
        ),
        (&json!("pending"), &json!(1), &json!("dana")),
        "{seen}"
    );
    world
        .until("the card with what was changed", async || {
            let card = world.slack_card(&id).await;
            let shown = card.current().visible_text();
            shown.contains("waiting for the one-time code").then_some(())
        })
        .await;
    let path = format!("/api/confirmations/{id}/respond");
    let code = code_at(world.clock.now_ms());
    let approve = |edit: Option<u32>| json!({"decision": "approve", "code": code, "edit": edit});
    let dana = world.api("dana-cli");
    let (status, refused) = dana.post(&path, &approve(None)).await;
    assert_eq!(
        (status, &refused["code"]),
        (409, &json!("edit_unseen")),
        "{refused}"
    );
    let (status, answer) = dana.post(&path, &approve(Some(1))).await;
    assert_eq!((status, &answer["status"]), (200, &json!("approved")), "{answer}");
    let granted = consume(&world, &id, "edited__coded", &proposed).await;
    assert_eq!(granted["tool_args"], json!({"amount": 1, "payee": "Evil Ltd"}));
    world.verify().await;
}
