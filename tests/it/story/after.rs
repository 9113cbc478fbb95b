//! After posting: nobody answers and others are asked, channels fail and the next one of the chain asks, somebody is only told,
//! and what came of it is said below the card.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::fake_feishu;
use crate::support::fake_slack;
use crate::support::fault::Fault;
use crate::support::people::{DANA, NOOR, RITA};
use crate::support::program::Program;
use crate::support::rows::Rows;
use crate::support::world::{Plan, Storage, World};

on_every_store!(
    nobody_answers_and_others_are_asked,
    a_step_survives_a_kill_and_is_taken_once,
    a_refusing_channel_gives_its_card_away_and_turns_red,
    no_surface_is_left,
    a_deleted_card_is_posted_anew,
    who_is_told_cannot_press,
    the_requester_hears_of_it_in_the_thread,
    nothing_more_is_said_by_itself,
);

const MINUTE: Duration = Duration::from_mins(1);

/// Rules at the end of the world's list.
const RULES: &str = r#"
    - { name: slow, tools: ["slow__*"], effect: confirm, channels: [finance-feishu], approvers: { operators: [dana] },
        escalate: [ { after: 10m, mention: true }, { after: 30m, channels: [ops-slack], approvers: { operators: [noor] } } ] }
    - { name: soon, tools: ["soon__*"], effect: confirm, channels: [ops-slack], escalate: [ { after: 1s, mention: true } ] }
    - { name: chain, tools: ["chain__*"], effect: confirm, channels: [ops-slack], fallback: [legal-slack, finance-feishu] }
    - { name: lost, tools: ["lost__*"], effect: confirm, channels: [ops-slack], quorum: 2 }
    - { name: told, tools: ["told__*"], effect: confirm, channels: [finance-feishu], notify: { channels: [ops-slack] } }
    - { name: noted, tools: ["noted__*"], effect: confirm, thread_notes: true }
"#;

async fn world(storage: Storage) -> World {
    Plan::on(storage).with(RULES).start().await
}

/// The answers below a Slack message.
fn slack_answers(world: &World, under: &str) -> Vec<fake_slack::Message> {
    let messages = world.slack.messages(fake_slack::CHANNEL).into_iter();
    messages
        .filter(|message| message.thread_ts.as_deref() == Some(under))
        .collect()
}

/// The answers below a Feishu message.
fn feishu_answers(world: &World, under: &str) -> Vec<fake_feishu::Message> {
    let messages = world.feishu.messages(fake_feishu::CHAT).into_iter();
    messages
        .filter(|message| message.parent_id.as_deref() == Some(under))
        .collect()
}

async fn respond(world: &World, token: &str, id: &str, decision: &str) -> (u16, Value) {
    let path = format!("/api/confirmations/{id}/respond");
    world.api(token).post(&path, &json!({"decision": decision})).await
}

async fn nobody_answers_and_others_are_asked(storage: Storage) {
    let world = world(storage).await;
    let id = world.ask_for("slow__pay", json!({"amount": 1})).await;
    let card = world.feishu_card(&id).await;
    world.until_deliveries(&id, &["posted"]).await;
    let request = world.request(&id).await;
    assert_eq!(request["escalation"][1]["taken"], false, "{request}");
    assert_eq!(
        request["escalation"][1]["approvers"],
        json!({"operators": ["noor"]})
    );
    assert_eq!(respond(&world, "noor-cli", &id, "approve").await.0, 403);

    world.advance(10 * MINUTE);
    let reminder = world
        .until("a reminder", async || feishu_answers(&world, &card.id).pop())
        .await;
    let spelled = reminder.current().to_string();
    assert!(
        spelled.contains(&format!("<at id={}></at>", DANA.feishu)),
        "{spelled}"
    );
    assert!(
        !spelled.contains(NOOR.feishu),
        "who may not answer yet is left in peace: {spelled}"
    );
    assert!(spelled.contains("Still waiting"), "{spelled}");
    assert_eq!(respond(&world, "noor-cli", &id, "approve").await.0, 403);

    world.advance(20 * MINUTE);
    let second = world.slack_card(&id).await;
    world.until_deliveries(&id, &["posted", "posted"]).await;
    assert!(second.current().visible_text().contains("Escalated at"));
    let pressed = world.slack.click(&second, "approve", NOOR.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    let request = world.request(&id).await;
    assert_eq!(
        (&request["status"], &request["votes"][0]["operator"]),
        (&json!("approved"), &json!("noor"))
    );
    let call = json!({"tool_name": "slow__pay", "tool_args": {"amount": 1}});
    let path = format!("/api/confirmations/{id}/consume");
    let (status, permit) = world.api("build-agent").post(&path, &call).await;
    assert_eq!(status, 200, "whom the step let in, stands behind it: {permit}");
    world.both_settled(&id, "Noor Haddad", "Noor Haddad").await;
    world.advance(60 * MINUTE);
    assert_eq!(feishu_answers(&world, &card.id).len(), 1);
    assert_eq!(world.audit("confirmation.reminded").await.len(), 1);
    let escalated = world.audit("confirmation.escalated").await;
    assert_eq!(escalated.len(), 1);
    assert_eq!(
        (
            &escalated[0]["data"]["channels"],
            &escalated[0]["data"]["operators"]
        ),
        (&json!(["ops-slack"]), &json!(["noor"]))
    );
    world.verify().await;
}

async fn a_step_survives_a_kill_and_is_taken_once(storage: Storage) {
    let world = Plan::on(storage).with(RULES).without_server().await;
    let mut program = Program::start(world.place.clone(), &world.config, &[]).await;
    let rows = Rows::of(&world);
    let id = world.ask_for("soon__pay", json!({})).await;
    let card = world.slack_card(&id).await;
    world.until_deliveries(&id, &["posted"]).await;
    program.kill_9().await;
    rows.lapse().await;
    program.restart().await;
    let reminder = world
        .until("the reminder", async || slack_answers(&world, &card.ts).pop())
        .await;
    let mut mentioned = reminder.current().mentions();
    mentioned.sort();
    let mut finance = ["U024BE7LH", "U061F7AUR", "U0OMAR001", "U0RITA001"];
    finance.sort_unstable();
    assert_eq!(mentioned, finance);
    program.kill_9().await;
    rows.lapse().await;
    program.restart().await;
    assert_eq!(respond(&world, "dana-cli", &id, "reject").await.0, 200);
    world.until_deliveries(&id, &["settled"]).await;
    assert_eq!(slack_answers(&world, &card.ts).len(), 1);
    assert_eq!(world.audit("confirmation.reminded").await.len(), 1);
    world.verify().await;
}

async fn health(world: &World, name: &str) -> Value {
    let (status, channels) = world.api("admin").get("/api/channels").await;
    assert_eq!(status, 200, "{channels}");
    let mut items = channels["items"].as_array().unwrap().iter();
    items.find(|channel| channel["name"] == name).cloned().unwrap()
}

async fn a_refusing_channel_gives_its_card_away_and_turns_red(storage: Storage) {
    let world = world(storage).await;
    let revoked = json!({"ok": false, "error": "token_revoked"});
    world
        .slack
        .fail_next("chat.postMessage", Fault::answer(200, &revoked));
    let absent = json!({"ok": false, "error": "channel_not_found"});
    world
        .slack
        .fail_next("chat.postMessage", Fault::answer(200, &absent));
    let id = world.ask_for("chain__pay", json!({})).await;
    let card = world.feishu_card(&id).await;
    // In order of channel: finance-feishu, legal-slack, ops-slack.
    world.until_deliveries(&id, &["posted", "failed", "failed"]).await;
    let red = health(&world, "ops-slack").await;
    assert_eq!(red["healthy"], false, "{red}");
    assert!(red["detail"].as_str().unwrap().contains("token_revoked"), "{red}");
    assert_eq!(health(&world, "finance-feishu").await["healthy"], true);
    let rerouted = world.audit("delivery.rerouted").await;
    let ways: Vec<_> = rerouted
        .iter()
        .map(|event| (&event["data"]["instead_of"], &event["channel"]))
        .collect();
    assert_eq!(
        ways,
        [
            (&json!("ops-slack"), &json!("legal-slack")),
            (&json!("legal-slack"), &json!("finance-feishu"))
        ]
    );
    let pressed = world.feishu.click(&card, "approve", DANA.feishu);
    pressed.post(&world.callback("finance-feishu")).await;
    assert_eq!(world.request(&id).await["status"], "approved");
    // A card that stands again is the proof that the channel works again.
    let next = world.ask_for("chain__pay", json!({"n": 2})).await;
    world.slack_card(&next).await;
    world.until_deliveries(&next, &["posted"]).await;
    assert_eq!(health(&world, "ops-slack").await["healthy"], true);
    world.verify().await;
}

async fn no_surface_is_left(storage: Storage) {
    let world = world(storage).await;
    world.slack.archive(fake_slack::CHANNEL);
    world.slack.archive(crate::support::world::LEGAL_CHANNEL);
    world.feishu.remove_bot(fake_feishu::CHAT);
    let call = json!({"tool_name": "chain__pay", "tool_args": {}, "wait": 30});
    let (_, denied) = world.api("build-agent").post("/api/confirmations", &call).await;
    assert_eq!(
        (&denied["verdict"], &denied["reason_code"]),
        (&json!("deny"), &json!("undeliverable"))
    );
    let id = denied["confirmation_id"].as_str().unwrap();
    world.until_deliveries(id, &["failed", "failed", "failed"]).await;
    // A host that waits for its hook hears it at once too.
    let hook = json!({
        "session_id": "s1", "hook_event_name": "PreToolUse", "tool_name": "chain__pay", "tool_input": {"n": 2},
        "tool_use_id": "toolu_1", "cwd": "/", "transcript_path": "/t", "permission_mode": "default",
    });
    let (status, said) = world
        .api("build-agent")
        .post("/api/hooks/claude-code", &hook)
        .await;
    assert_eq!(status, 200);
    assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "deny", "{said}");
    assert_eq!(world.audit("confirmation.undeliverable").await.len(), 2);
}

async fn a_deleted_card_is_posted_anew(storage: Storage) {
    let world = world(storage).await;
    let id = world.ask_for("lost__pay", json!({})).await;
    let first = world.slack_card(&id).await;
    world.until_deliveries(&id, &["posted"]).await;
    let old = world.slack.click(&first, "approve", NOOR.slack);
    world.slack.delete(fake_slack::CHANNEL, &first.ts);
    assert_eq!(respond(&world, "dana-cli", &id, "approve").await.0, 200);
    let second = world
        .until("the card again", async || {
            world.advance(Duration::from_secs(1));
            let mut cards = world.slack.messages(fake_slack::CHANNEL).into_iter();
            cards.find(|card| card.ts != first.ts && card.current().visible_text().contains(&id))
        })
        .await;
    assert!(
        second.current().visible_text().contains("1 of 2"),
        "it shows the votes so far"
    );
    world.until_deliveries(&id, &["posted"]).await;
    // A press on what is no longer there changes nothing and is told so.
    assert_eq!(old.post(&world.callback("ops-slack")).await.status, 200);
    world.until_refused("other_message").await;
    assert_eq!(world.request(&id).await["status"], "pending");
    let pressed = world.slack.click(&second, "approve", NOOR.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    assert_eq!(world.request(&id).await["status"], "approved");
    world.until_deliveries(&id, &["settled"]).await;
    assert_eq!(world.slack.messages(fake_slack::CHANNEL).len(), 1);
}

async fn who_is_told_cannot_press(storage: Storage) {
    let world = world(storage).await;
    let id = world.ask_for("told__pay", json!({"amount": 7})).await;
    let (told, card) = world.cards(&id).await;
    assert!(
        told.current().action_ids().is_empty(),
        "{:?}",
        told.current().action_ids()
    );
    assert!(told.current().visible_text().contains("told__pay"));
    let request = world.request(&id).await;
    let mut deliveries = request["deliveries"].as_array().unwrap().iter();
    let on_slack = deliveries
        .find(|delivery| delivery["channel"] == "ops-slack")
        .unwrap();
    assert_eq!(on_slack["told"], true);
    let pressed = world.feishu.click(&card, "approve", DANA.feishu);
    pressed.post(&world.callback("finance-feishu")).await;
    world.both_settled(&id, "Dana Kim", "Dana Kim").await;
}

async fn the_requester_hears_of_it_in_the_thread(storage: Storage) {
    let world = world(storage).await;
    let call = json!({"tool_name": "noted__pay", "tool_args": {"amount": 3}});
    let agent = world.api("rita-agent");
    let (_, asked) = agent.post("/api/confirmations", &call).await;
    let id = asked["confirmation_id"].as_str().unwrap().to_owned();
    let (slack_card, feishu_card) = world.cards(&id).await;
    let pressed = world.slack.click(&slack_card, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    let note = world
        .until("the note in Slack", async || {
            world.advance(Duration::from_secs(1));
            slack_answers(&world, &slack_card.ts).pop()
        })
        .await;
    assert_eq!(
        note.current().mentions(),
        [RITA.slack],
        "who asked, and not who decided"
    );
    let text = note.current().visible_text();
    assert!(
        text.contains("Dana Kim (by card in ops-slack)") && text.contains("Approved"),
        "{text}"
    );
    let note = world
        .until("the note in Feishu", async || {
            world.advance(Duration::from_secs(1));
            feishu_answers(&world, &feishu_card.id).pop()
        })
        .await;
    assert!(
        note.current()
            .to_string()
            .contains(&format!("<at id={}></at>", RITA.feishu))
    );
    let (status, _) = agent
        .post(&format!("/api/confirmations/{id}/consume"), &call)
        .await;
    assert_eq!(status, 200);
    let ended = json!({"status": "failed", "detail": "<!channel> out of paper"});
    agent
        .post(&format!("/api/confirmations/{id}/outcome"), &ended)
        .await;
    world
        .until("how the call ended", async || {
            world.advance(Duration::from_secs(1));
            let answers = slack_answers(&world, &slack_card.ts);
            (answers.len() == 2).then_some(answers)
        })
        .await
        .iter()
        .for_each(|answer| assert!(!answer.current().visible_text().contains("paper")));
}

/// Where no rule asks for it, a request leaves its card and nothing else.
async fn nothing_more_is_said_by_itself(storage: Storage) {
    let world = world(storage).await;
    let id = world.ask(60_000).await;
    let (card, _) = world.cards(&id).await;
    let pressed = world.slack.click(&card, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    let call =
        json!({"tool_name": "oa__purchase_pay", "tool_args": {"amount": 60_000, "payee": "ACME GmbH"}});
    let agent = world.api("build-agent");
    let (status, _) = agent
        .post(&format!("/api/confirmations/{id}/consume"), &call)
        .await;
    assert_eq!(status, 200);
    world.advance(Duration::from_secs(5));
    agent
        .post(
            &format!("/api/confirmations/{id}/outcome"),
            &json!({"status": "succeeded"}),
        )
        .await;
    world.both_settled(&id, "succeeded", "succeeded").await;
    world.advance(3 * 60 * MINUTE);
    assert_eq!(world.slack.calls("chat.postMessage").len(), 1);
    assert_eq!(world.feishu.calls(fake_feishu::Api::Send).len(), 1);
    assert_eq!(world.feishu.calls(fake_feishu::Api::Reply).len(), 0);
}
