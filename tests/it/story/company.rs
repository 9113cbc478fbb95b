//! People around a decision whom only the platforms know: the substitute of somebody in a group, who is told after break-glass, whom
//! a reminder mentions, and who sees all of the arguments.

use std::time::Duration;

use serde_json::json;

use super::people::{
    Both, GROUPS, MARA, STALE, TINA, TOM, approved_by, consume, on_feishu, on_slack, plan, populate,
    told_on_slack,
};
use crate::support::fake_feishu::{Message, Person};
use crate::support::fake_slack::{CHANNEL, Standing, User};
use crate::support::fault::Fault;
use crate::support::people::{DANA, OLGA};
use crate::support::world::{Storage, World};

on_every_store!(
    a_substitute_holds_the_group_roles_of_who_is_away,
    after_break_glass_members_of_groups_hear_it_too,
    a_reminder_mentions_people_whom_the_platform_knows,
    who_decides_by_a_group_sees_all_of_the_arguments,
    one_press_for_all_asks_about_everybody_who_answered_any,
);

/// Away all the time, with Olga in his place; what he may do, he may by being in the group.
const ABEL: Both = Both("U0ABEL001", "ou_abe104", "abel@example.com");

const RULES: &str = r#"
    - { name: group-glass, tools: ["gglass__*"], effect: confirm, quorum: 2, approvers: { roles: [treasury], operators: [mara] },
        break_glass: { approvers: { operators: [olga] } } }
    - { name: group-slow, tools: ["gslow__*"], effect: confirm, approvers: { roles: [treasury], operators: [mara] },
        escalate: [{ after: 10m, remind: true, mention: true }] }
    - { name: group-many, tools: ["gmany__*"], effect: confirm, approvers: { roles: [treasury] }, quorum: 2, collapse: { window: 1h, most: 4 } }
"#;

async fn start(storage: Storage) -> World {
    let abel = "{ id: abel, name: Abel Away, email: abel@example.com, orgs: [acme], \
                away: [{ from: \"2000-01-01T00:00:00Z\", until: \"2100-01-01T00:00:00Z\", substitute: olga }] }";
    let world = plan(storage, RULES).operator(abel).start().await;
    populate(&world);
    world.slack.add_user(User::new(ABEL.0, ABEL.2));
    world.feishu.add_person(Person::new(ABEL.1, ABEL.2));
    world
}

async fn a_substitute_holds_the_group_roles_of_who_is_away(storage: Storage) {
    let world = start(storage).await;
    let args = json!({"amount": 1});
    let id = world.ask_for("treasury__pay", args.clone()).await;
    let (slack, feishu) = world.cards(&id).await;
    // Abel is in no group, so Olga has nothing to stand in for.
    assert!(
        on_feishu(&world, &feishu, OLGA.feishu)
            .await
            .contains("may not decide")
    );
    world.slack.set_user_group(GROUPS.0, &[ABEL.0]);
    world.advance(STALE);
    // Whether he is in it cannot be found out.
    world
        .slack
        .fail_next("usergroups.users.list", Fault::text(500, "upstream"));
    on_slack(&world, &slack, OLGA.slack).await;
    told_on_slack(&world, OLGA.slack, "please try again").await;
    world.advance(Duration::from_secs(2));
    on_feishu(&world, &feishu, OLGA.feishu).await;
    approved_by(&world, &id, "olga").await;
    assert_eq!(world.request(&id).await["votes"][0]["acting_for"], "abel");
    world
        .both_settled(&id, "Olga Out for Abel Away", "Olga Out for Abel Away")
        .await;
    assert_eq!(consume(&world, &id, "treasury__pay", &args).await.0, 200);

    // Approved over the API in the same way; by the time the call would run, Abel is in no group any more.
    let other = world.ask_for("treasury__pay", json!({"amount": 2})).await;
    let path = format!("/api/confirmations/{other}/respond");
    let (status, answer) = world
        .api("olga-cli")
        .post(&path, &json!({"decision": "approve"}))
        .await;
    assert_eq!((status, &answer["status"]), (200, &json!("approved")), "{answer}");
    assert_eq!(answer["votes"][0]["acting_for"], "abel");
    world.slack.set_user_group(GROUPS.0, &[]);
    world.advance(Duration::from_secs(61));
    let (status, answer) = consume(&world, &other, "treasury__pay", &json!({"amount": 2})).await;
    assert_eq!(
        (status, &answer["code"]),
        (409, &json!("not_authorised")),
        "{answer}"
    );
    world.verify().await;
}

async fn after_break_glass_members_of_groups_hear_it_too(storage: Storage) {
    let world = start(storage).await;
    // On Slack a guest is in the group: nobody was passed over there.
    let guest = Both("U0GUEST01", "ou_9e5705", "guest@example.com");
    world
        .slack
        .add_user(User::new(guest.0, guest.2).standing(Standing::Guest));
    world.slack.set_user_group(GROUPS.0, &[TINA.0, guest.0]);
    world.feishu.set_group(GROUPS.1, &[TOM.1]);
    let id = world.ask_for("gglass__pay", json!({"amount": 1})).await;
    world.cards(&id).await;
    let path = format!("/api/confirmations/{id}/respond");
    let alone = json!({"decision": "approve", "break_glass": true, "reason": "plant stands still"});
    let (status, answer) = world.api("olga-cli").post(&path, &alone).await;
    assert_eq!((status, &answer["status"]), (200, &json!("approved")), "{answer}");
    // Each once, on the first channel of the rule where the platform knows them: the rule names Feishu before Slack.
    for person in [MARA.1, TOM.1] {
        world
            .until("a word to everybody passed over", async || {
                let told = world.feishu.messages_to(person);
                let mut texts = told.iter().map(Message::visible_text);
                texts.find(|text| text.contains("plant stands still"))
            })
            .await;
    }
    told_on_slack(&world, TINA.0, "plant stands still").await;
    let told = world.slack.ephemerals();
    assert!(
        told.iter().all(|(_, to, _)| to == TINA.0),
        "nobody twice, no guest, and not who did it: {told:?}"
    );
    // No address of anybody stands where the whole group reads it.
    world
        .both_settled(&id, "Mara Lind, tina, tom", "Mara Lind, tina, tom")
        .await;
    let (slack, feishu) = (world.slack_card(&id).await, world.feishu_card(&id).await);
    for shown in [slack.current().visible_text(), feishu.visible_text()] {
        assert!(!shown.contains("@example.com"), "{shown}");
    }
    let broken = world.audit("confirmation.break_glass").await;
    assert_eq!(
        broken[0]["data"]["passed_over"],
        json!(["mara", TINA.2, TOM.2]),
        "{broken:?}"
    );
    world.verify().await;
}

async fn a_reminder_mentions_people_whom_the_platform_knows(storage: Storage) {
    let world = start(storage).await;
    world.slack.set_user_group(GROUPS.0, &[TINA.0]);
    world.feishu.set_group(GROUPS.1, &[TOM.1, TINA.1]);
    world
        .feishu
        .change_person(TINA.1, |person| person.in_range = false);
    let id = world.ask_for("gslow__pay", json!({"amount": 1})).await;
    let (slack, feishu) = world.cards(&id).await;
    world.advance(Duration::from_mins(10));
    let mut mentioned = world
        .until("the reminder on Slack", async || {
            let messages = world.slack.messages(&slack.channel).into_iter();
            let mut below = messages.filter(|message| message.thread_ts.as_deref() == Some(&*slack.ts));
            below.next().map(|message| message.current().mentions())
        })
        .await;
    mentioned.sort();
    assert_eq!(mentioned, [MARA.0, TINA.0]);
    let reminder = world
        .until("the reminder on Feishu", async || {
            let messages = world.feishu.messages(&feishu.chat_id).into_iter();
            let mut below = messages.filter(|message| message.parent_id.as_deref() == Some(&*feishu.id));
            below.next().map(|message| message.current().to_string())
        })
        .await;
    for (person, expected) in [
        (MARA.1, true),
        (TOM.1, true),
        (TINA.1, false),
        (DANA.feishu, false),
    ] {
        let mention = format!("<at id={person}></at>");
        assert_eq!(reminder.contains(&mention), expected, "{person}: {reminder}");
    }
    world.verify().await;
}

async fn who_decides_by_a_group_sees_all_of_the_arguments(storage: Storage) {
    let world = start(storage).await;
    let args = json!({"iban": "DE02120300000000202051", "amount": 1});
    let id = world.ask_for("treasury__pay", args.clone()).await;
    let path = format!("/api/confirmations/{id}?full=true");
    let (status, answer) = world.api("olga-cli").get(&path).await;
    assert_eq!(
        (status, &answer["refusal"]),
        (403, &json!("not_a_decider")),
        "{answer}"
    );
    world.slack.set_user_group(GROUPS.0, &[OLGA.slack]);
    world.advance(STALE);
    // While nobody knows whether she is in it, nothing is shown.
    world
        .slack
        .fail_next("usergroups.users.list", Fault::text(500, "upstream"));
    assert_eq!(world.api("olga-cli").get(&path).await.0, 403);
    assert!(world.audit("args.viewed").await.is_empty());
    world.advance(Duration::from_secs(2));
    let (status, answer) = world.api("olga-cli").get(&path).await;
    assert_eq!((status, &answer["tool_args"]), (200, &args), "{answer}");
    assert_eq!(world.audit("args.viewed").await.len(), 1);
    let (status, answer) = world
        .api("olga-cli")
        .post(
            &format!("/api/confirmations/{id}/respond"),
            &json!({"decision": "approve"}),
        )
        .await;
    assert_eq!((status, &answer["status"]), (200, &json!("approved")), "{answer}");
    world.verify().await;
}

async fn one_press_for_all_asks_about_everybody_who_answered_any(storage: Storage) {
    let world = start(storage).await;
    let mut ids = Vec::new();
    for amount in 0..2 {
        ids.push(world.ask_for("gmany__pay", json!({"amount": amount})).await);
    }
    let card = world
        .until("the shared card", async || {
            let mut cards = world.slack.messages(CHANNEL).into_iter();
            cards.find(|card| ids.iter().all(|id| card.current().visible_text().contains(id)))
        })
        .await;
    // She answers the second request alone, and is in no configuration.
    let words = format!("approve {}", ids[1]);
    let said = world.slack.slash_command("/gatepost", &words, TINA.0);
    assert_eq!(said.post(&world.callback("ops-slack")).await.status, 200);
    world
        .until("her vote", async || {
            let votes = world.request(&ids[1]).await["votes"].as_array().map(Vec::len);
            (votes == Some(1)).then_some(())
        })
        .await;
    world.advance(STALE);
    let all = world.slack.click(&card, "approve_all", TOM.0);
    assert_eq!(all.post(&world.callback("ops-slack")).await.status, 200);
    let first = world.request(&ids[0]).await;
    assert_eq!(first["status"], "pending", "one of two: {first}");
    assert_eq!(world.request(&ids[1]).await["status"], "approved");
    world.verify().await;
}
