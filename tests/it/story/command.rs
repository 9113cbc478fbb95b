//! Words in the chat: people ask what waits for them and answer without pressing anything, over real HTTP, and see the answer alone.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::fake_feishu::{self, Message, say};
use crate::support::people::{DANA, NOOR, OLGA, RITA, STRANGER_SLACK};
use crate::support::world::{SOON, Storage, World};

on_every_store!(
    a_slash_command_is_answered_to_the_person_and_decides,
    what_may_not_count_is_said_in_the_same_words,
    what_is_no_command_of_a_person_does_nothing,
    a_message_to_the_bot_decides_once_however_often_it_comes,
    in_a_group_only_the_mentioned_bot_obeys_and_answers_in_private,
);

/// Says a slash command and gives what the person is shown, as one text.
async fn slash(world: &World, user: &str, words: &str) -> String {
    let answered = world
        .slack
        .slash_command("/gatepost", words, user)
        .post(&world.callback("ops-slack"))
        .await;
    assert_eq!(answered.status, 200, "{words}");
    assert!(answered.in_time());
    let answer = answered.json();
    assert_eq!(answer["response_type"], "ephemeral", "{answer}");
    texts(&answer["blocks"]).join("\n")
}

/// Every text of blocks, in order.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(fields) => match fields.get("text") {
            Some(Value::String(text)) => vec![text.clone()],
            _ => fields.values().flat_map(texts).collect(),
        },
        _ => Vec::new(),
    }
}

/// The code of the call in a line of the list.
fn code_in(said: &str, id: &str) -> String {
    let line = said
        .lines()
        .find(|line| line.contains(id))
        .expect("a line of the request");
    line.split(" · ").next().expect("a code").to_owned()
}

async fn a_slash_command_is_answered_to_the_person_and_decides(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let other = world.ask(70_000).await;
    world.cards(&id).await;
    world.cards(&other).await;
    let pending = slash(&world, DANA.slack, "pending").await;
    assert!(pending.contains(&id) && pending.contains(&other), "{pending}");
    let code = code_in(&pending, &id);

    let shown = slash(&world, DANA.slack, &format!("show {code}")).await;
    assert!(
        shown.contains("60000") && shown.contains(&format!("/gatepost approve {code}")),
        "{shown}"
    );

    let command = world
        .slack
        .slash_command("/gatepost", &format!("approve {code} checked"), DANA.slack)
        .request();
    let first = command.post(&world.callback("ops-slack")).await;
    assert!(
        first.body.contains("Approved. The call may run now."),
        "{}",
        first.body
    );
    let again = command.post(&world.callback("ops-slack")).await;
    assert_eq!(again.body, first.body, "a repeat gets the first answer");
    let request = world.request(&id).await;
    assert_eq!(request["status"], "approved");
    assert_eq!(
        (
            &request["votes"][0]["operator"],
            &request["votes"][0]["channel"],
            &request["votes"][0]["reason"]
        ),
        (&json!("dana"), &json!("ops-slack"), &json!("checked"))
    );
    assert_eq!(request["votes"].as_array().unwrap().len(), 1);
    assert_eq!(world.audit("vote.cast").await[0]["data"]["surface"], "command");
    assert_eq!(world.until_refused("replayed").await["channel"], "ops-slack");
    world.both_settled(&id, "Approved", "Approved").await;

    let rejected = slash(
        &world,
        NOOR.slack,
        &format!("reject {} wrong account", &other[..20]),
    )
    .await;
    assert!(
        rejected.starts_with("Rejected. The call will not run."),
        "{rejected}"
    );
    assert_eq!(world.request(&other).await["votes"][0]["reason"], "wrong account");
    world.both_settled(&other, "Rejected", "wrong account").await;
    let late = slash(&world, DANA.slack, &format!("approve {other}")).await;
    assert!(late.starts_with("This request was rejected before."), "{late}");
    assert_eq!(
        slash(&world, DANA.slack, "pending").await,
        "Nothing waits for you."
    );
    assert!(
        world.slack.ephemerals().is_empty(),
        "everything was said in the answers"
    );
    world.verify().await;
}

async fn what_may_not_count_is_said_in_the_same_words(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (status, own) = world
        .api("rita-agent")
        .post(
            "/api/confirmations",
            &json!({"tool_name": "oa__purchase_pay", "tool_args": {"amount": 61_000}}),
        )
        .await;
    assert_eq!(status, 200, "{own}");
    let own = own["confirmation_id"].as_str().unwrap().to_owned();
    let sure = world.ask_for("reasoned__wipe", json!({"disk": "/dev/sda"})).await;
    for (user, words, begins, reason) in [
        (
            STRANGER_SLACK,
            format!("approve {id}"),
            "You are not set up as an operator",
            "unknown_operator",
        ),
        (
            OLGA.slack,
            format!("approve {id}"),
            "You may not decide this request.",
            "not_authorised",
        ),
        (
            OLGA.slack,
            format!("show {id}"),
            "You may not decide this request.",
            "not_authorised",
        ),
        (
            RITA.slack,
            format!("approve {own}"),
            "You stand behind this call yourself",
            "self_approval",
        ),
        (
            DANA.slack,
            format!("approve {sure} why not"),
            "This rule asks once more",
            "not_confirmed",
        ),
    ] {
        let said = slash(&world, user, &words).await;
        assert!(said.starts_with(begins), "{words}: {said}");
        assert_eq!(world.until_refused(reason).await["data"]["surface"], "command");
    }
    let olga = slash(&world, OLGA.slack, "pending").await;
    assert_eq!(olga, "Nothing waits for you.");
    let dana = slash(&world, DANA.slack, "pending").await;
    let code = code_in(&dana, &sure);
    let unreasoned = slash(&world, DANA.slack, &format!("approve {sure} {code}")).await;
    assert!(
        unreasoned.starts_with("This rule asks for a reason."),
        "{unreasoned}"
    );
    assert!(world.audit("vote.cast").await.is_empty());
    let settled = slash(
        &world,
        DANA.slack,
        &format!("approve {sure} {code} disk is empty"),
    )
    .await;
    assert!(settled.starts_with("Approved."), "{settled}");
    for (pending, foreign) in [(&id, "T0EVIL"), (&own, "T0OTHER")] {
        let command = world
            .slack
            .slash_command("/gatepost", &format!("approve {pending}"), DANA.slack)
            .edit(|document| document["team_id"] = json!(foreign));
        let answered = command.post(&world.callback("ops-slack")).await;
        assert!(
            answered
                .body
                .contains("People of your workspace may not decide here."),
            "{}",
            answered.body
        );
    }
    for pending in [&id, &own] {
        assert_eq!(world.request(pending).await["status"], "pending");
    }
    world.verify().await;
}

async fn what_is_no_command_of_a_person_does_nothing(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let slack = || {
        world
            .slack
            .slash_command("/gatepost", &format!("approve {id}"), DANA.slack)
    };
    let url = world.callback("ops-slack");
    for (number, forged) in [
        slack().forged().request(),
        slack().aged(Duration::from_mins(6)).request(),
        {
            let mut smuggled = slack().request();
            smuggled.headers.retain(|(name, _)| !name.starts_with("X-Slack"));
            smuggled.body = [b"ssl_check=1&", &smuggled.body[..]].concat();
            smuggled
        },
    ]
    .iter()
    .enumerate()
    {
        let answered = forged.post(&url).await;
        assert_eq!((answered.status, answered.body.as_str()), (401, ""), "{number}");
    }
    let feishu = || world.feishu.write(DANA.feishu, &format!("approve {id}"));
    let url = world.callback("finance-feishu");
    assert_eq!(feishu().unsigned().post(&url).await.status, 401);
    let other_app = feishu().edit(|event| event["header"]["app_id"] = json!("cli_0000000000000000"));
    assert_eq!(other_app.post(&url).await.status, 401);
    for silent in [
        feishu().edit(|event| event["event"]["sender"]["sender_type"] = json!("app")),
        feishu().edit(|event| event["event"]["message"]["message_type"] = json!("image")),
        feishu().edit(|event| event["header"]["event_type"] = json!("im.message.reaction.created_v1")),
    ] {
        let answered = silent.post(&url).await;
        assert_eq!((answered.status, answered.body.as_str()), (200, "{}"));
    }
    // Another app's command at this address, and one from nowhere.
    let foreign = slack()
        .for_app("A0SOMEBODY")
        .post(&world.callback("ops-slack"))
        .await;
    assert!(
        foreign.body.contains("This chat is not set up for approvals."),
        "{}",
        foreign.body
    );
    world.until_refused("other_app").await;
    assert_eq!(world.request(&id).await["status"], "pending");
    assert!(world.audit("vote.cast").await.is_empty());
    assert!(private(&world, DANA.feishu).is_empty());
    world.verify().await;
}

/// What the bot wrote to the person alone.
pub(super) fn private(world: &World, open_id: &str) -> Vec<Message> {
    let chat = format!("oc_p2p_{open_id}");
    let mut messages = world.feishu.messages(&chat);
    messages.retain(|message| message.msg_type == "interactive");
    messages
}

/// The answer in the person's conversation with the bot that holds these words.
async fn answered(world: &World, open_id: &str, words: &str) -> String {
    world
        .until(&format!("{words:?} for {open_id}"), async || {
            let texts = private(world, open_id)
                .into_iter()
                .map(|message| message.visible_text());
            texts.into_iter().find(|text| text.contains(words))
        })
        .await
}

async fn a_message_to_the_bot_decides_once_however_often_it_comes(storage: Storage) {
    let mut world = World::start(storage).await;
    let id = world.ask(60_000).await;
    world.cards(&id).await;
    let url = world.callback("finance-feishu");
    let say = async |words: &str| {
        let answered = world.feishu.write(DANA.feishu, words).post(&url).await;
        assert_eq!((answered.status, answered.body.as_str()), (200, "{}"), "{words}");
    };
    say("/gatepost pending").await;
    let code = code_in(&answered(&world, DANA.feishu, &id).await, &id);
    say(&format!("show {code}")).await;
    let shown = answered(&world, DANA.feishu, "60000").await;
    assert!(shown.contains(&format!("/gatepost approve {code}")), "{shown}");
    say("shw").await;
    answered(&world, DANA.feishu, "I do not understand that.").await;

    let approve = world
        .feishu
        .write(DANA.feishu, &format!("approve {code} checked"));
    assert_eq!(approve.post(&url).await.status, 200);
    answered(&world, DANA.feishu, "Approved. The call may run now.").await;
    // The platform brings it again, as a new delivery of the same message, also to a server that was started anew.
    let again = approve.edit(|event| event["header"]["event_id"] = json!("another-delivery"));
    assert_eq!(again.post(&url).await.status, 200);
    world.restart().await;
    assert_eq!(again.post(&world.callback("finance-feishu")).await.status, 200);
    let request = world.request(&id).await;
    assert_eq!(
        (&request["status"], request["votes"].as_array().unwrap().len()),
        (&json!("approved"), 1)
    );
    assert_eq!(request["votes"][0]["reason"], "checked");
    world.both_settled(&id, "Approved", "Approved").await;
    world
        .until("no answer waits", async || {
            let texts: Vec<_> = private(&world, DANA.feishu)
                .iter()
                .map(Message::visible_text)
                .collect();
            let approved = texts.iter().filter(|text| text.contains("The call may run now."));
            (approved.count() == 1 && texts.len() == 4).then_some(())
        })
        .await;
    assert!(
        private(&world, DANA.feishu)
            .iter()
            .all(|message| message.decisions().is_empty()),
        "nothing can be pressed on an answer"
    );

    // Hours late, words decide nothing and say so.
    let late = world.ask(62_000).await;
    let words = world
        .feishu
        .write(NOOR.feishu, &format!("approve {late}"))
        .edit(|event| {
            let then = (world.clock.now_ms() - 6 * 3_600_000).to_string();
            event["event"]["message"]["create_time"] = json!(then);
        });
    assert_eq!(words.post(&world.callback("finance-feishu")).await.status, 200);
    answered(&world, NOOR.feishu, "reached me too late").await;
    assert_eq!(world.request(&late).await["status"], "pending");
    world.verify().await;
}

async fn in_a_group_only_the_mentioned_bot_obeys_and_answers_in_private(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    world.cards(&id).await;
    let url = world.callback("finance-feishu");
    let group = fake_feishu::CHAT;
    let before = world.feishu.messages(group).len();
    let approve = format!("@_user_1 approve {id}");
    for (chat, words, mentioned) in [
        (group, format!("/gatepost approve {id}"), &[][..]),
        (group, approve.clone(), &[NOOR.feishu]),
        ("oc_elsewhere", approve.clone(), &[say::BOT]),
    ] {
        let said = world.feishu.write_in_group(DANA.feishu, chat, &words, mentioned);
        let answered = said.post(&url).await;
        assert_eq!(
            (answered.status, answered.body.as_str()),
            (200, "{}"),
            "{chat} {words}"
        );
    }
    answered(&world, DANA.feishu, "This chat is not set up for approvals.").await;
    assert_eq!(world.request(&id).await["status"], "pending");

    // Noor may be written to, a stranger outside the app's availability may not.
    let pending = world
        .feishu
        .write_in_group(NOOR.feishu, group, "@_user_1 pending", &[say::BOT]);
    assert_eq!(pending.post(&url).await.status, 200);
    answered(&world, NOOR.feishu, &id).await;
    let stranger = world
        .feishu
        .write_in_group("ou_outside", group, "@_user_1 pending", &[say::BOT]);
    assert_eq!(stranger.post(&url).await.status, 200);
    let aloud = world
        .feishu
        .wait_for_message(group, |message| message.parent_id.is_some(), SOON)
        .await
        .visible_text();
    assert!(
        aloud.contains("I cannot write to you") && !aloud.contains(&id),
        "{aloud}"
    );

    let said = world
        .feishu
        .write_in_group(DANA.feishu, group, &approve, &[say::BOT]);
    assert_eq!(said.post(&url).await.status, 200);
    answered(&world, DANA.feishu, "Approved. The call may run now.").await;
    assert_eq!(world.request(&id).await["votes"][0]["channel"], "finance-feishu");
    let answers = world.feishu.messages(group).into_iter().skip(before);
    let own = answers
        .filter(|message| message.msg_type == "interactive")
        .count();
    assert_eq!(own, 1, "the group saw one answer: that there is none for it");
    // A workspace's other channel is no place where Dana's words are read along, so Slack answers there as well.
    let elsewhere = world.ask(63_000).await;
    let command = world
        .slack
        .slash_command("/gatepost", &format!("reject {elsewhere} no"), DANA.slack)
        .edit(|document| document["channel_id"] = json!("C0ELSEWHERE"));
    let said = command.post(&world.callback("ops-slack")).await;
    assert!(said.body.contains("Rejected."), "{}", said.body);
    world.verify().await;
}
