//! Inputs that broke similar systems, from the question to the settled card on both platforms: what is accepted stands on
//! a card at the first try, is kept letter for letter, and takes no effect there.

use serde_json::{Value, json};

use crate::support::fake_feishu::{self, Api as FeishuCall};
use crate::support::fake_slack;
use crate::support::fault::Fault;
use crate::support::world::{Storage, World};

on_every_store!(
    arguments_that_broke_others_reach_both_cards,
    arguments_with_two_meanings_reach_nobody,
    names_take_no_effect_on_a_card,
    a_cursor_that_is_none_is_refused,
    every_answer_to_a_full_platform_ends_in_one_card,
    refusals_for_good_end_the_request_and_others_do_not,
);

macro_rules! fixture {
    ($path:literal) => {
        include_bytes!(concat!("../../fixtures/bugs/", $path)).as_slice()
    };
}

fn question(args: &[u8]) -> Vec<u8> {
    let head = br#"{"tool_name":"t__run","tool_args":"#.as_slice();
    [head, args, b"}"].concat()
}

/// RH-201, RH-202, RH-203, RH-204, RH-205, RH-206, RH-504.
async fn arguments_that_broke_others_reach_both_cards(storage: Storage) {
    let world = World::start(storage).await;
    world.slack.limit_rate(false);
    world.feishu.limit_rate(false);
    let agent = world.api("build-agent");
    let cases = [
        ("RH-201 literal", fixture!("RH-201/args_literal_backslash.json")),
        ("RH-202", fixture!("RH-202/args.json")),
        ("RH-203", fixture!("RH-203/trigger_message.json")),
        ("RH-204", fixture!("RH-204/args.json")),
        ("RH-205", fixture!("RH-205/args.json")),
        ("RH-206 cjk 0", fixture!("RH-206/args_cjk_0.json")),
        ("RH-206 cjk 1", fixture!("RH-206/args_cjk_1.json")),
        ("RH-206 cjk 2", fixture!("RH-206/args_cjk_2.json")),
        ("RH-206 cjk 3", fixture!("RH-206/args_cjk_3.json")),
        ("RH-206 emoji", fixture!("RH-206/args_emoji.json")),
        ("RH-206 combining", fixture!("RH-206/args_combining.json")),
        ("RH-504", fixture!("RH-504/args.json")),
    ];
    for (number, (case, args)) in cases.into_iter().enumerate() {
        let (status, text) = agent.post_text("/api/confirmations", question(args)).await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (status, &answer["verdict"]),
            (200, &json!("pending")),
            "{case}: {answer}"
        );
        let id = answer["confirmation_id"].as_str().unwrap();
        let (slack_card, feishu_card) = world.cards(id).await;
        assert_eq!(
            world.slack.calls("chat.postMessage").len(),
            number + 1,
            "{case}: at the first try"
        );
        assert_eq!(
            world.feishu.calls(FeishuCall::Send).len(),
            number + 1,
            "{case}: at the first try"
        );
        let (_, own) = agent.get(&format!("/api/confirmations/{id}")).await;
        let asked: Value = serde_json::from_slice(args).unwrap();
        assert_eq!(own["tool_args"], asked, "{case}");

        // RH-203: a button carries a short reference and nothing of the call.
        let value = slack_card.current().button("reject").unwrap().1["value"].clone();
        let value = value.as_str().unwrap();
        assert!(value.len() <= 64 && !value.contains("canary"), "{case}: {value}");
        // RH-205: no mention, link or image of the arguments is one on the card.
        takes_no_effect(&slack_card);
        takes_no_effect_on_feishu(feishu_card.current());
        // What a card cannot show, nobody approves on it.
        let cut = slack_card.current().visible_text().contains("characters shown");
        let approvable = slack_card.current().action_ids().contains(&"approve".to_owned());
        assert_eq!(approvable, !cut, "{case}");

        // RH-202: the edit after the decision fits too.
        let path = format!("/api/confirmations/{id}/respond");
        let answer = json!({"decision": "reject", "reason": "x".repeat(1_200)});
        assert_eq!(world.api("dana-cli").post(&path, &answer).await.0, 200, "{case}");
        world.both_settled(id, "Rejected", "Rejected").await;
        assert_eq!(
            world.slack.calls("chat.update").len(),
            number + 1,
            "{case}: at the first try"
        );
        assert_eq!(
            world.feishu.calls(FeishuCall::Patch).len(),
            number + 1,
            "{case}: at the first try"
        );
    }
    let (status, _) = world.api("audit").get_text("/api/audit/export").await;
    assert_eq!(status, 200);
    world.verify().await;
}

/// RH-201, RH-207: refused before anything is written; the literal characters of an escape are no escape.
async fn arguments_with_two_meanings_reach_nobody(storage: Storage) {
    let world = World::start(storage).await;
    for (case, args) in [
        (
            "RH-201 lone surrogate",
            fixture!("RH-201/args_lone_surrogate.json"),
        ),
        ("RH-201 raw control", fixture!("RH-201/args_raw_control.bin")),
        ("RH-207 129", fixture!("RH-207/args_depth_129.json")),
        ("RH-207 200", fixture!("RH-207/args_object_depth_200.json")),
        ("RH-207 5000", fixture!("RH-207/args_depth_5000.json")),
    ] {
        let (status, text) = world
            .api("build-agent")
            .post_text("/api/confirmations", question(args))
            .await;
        assert_eq!(status, 400, "{case}: {text}");
    }
    // NUL is kept exactly or refused, on both stores alike; it is never let through unasked.
    let nul = question(fixture!("RH-201/args_nul_escape.json"));
    let (status, text) = world
        .api("build-agent")
        .post_text("/api/confirmations", nul)
        .await;
    assert!(status == 400 || text.contains("\"pending\""), "{status} {text}");
    let created = world.audit("confirmation.created").await.len();
    assert_eq!(created, usize::from(status == 200));
}

/// RH-205: tool and agent names are shown as text, or refused as names.
async fn names_take_no_effect_on_a_card(storage: Storage) {
    let world = World::start(storage).await;
    let names: Value = serde_json::from_slice(fixture!("RH-205/tool_name.json")).unwrap();
    for (tool, requester) in [
        (names["name"].as_str().unwrap(), "ines"),
        ("files_delete", "<@U0AAAA1111>\n:white_check_mark: *Approved*"),
    ] {
        let ask = json!({
            "tool_name": tool, "tool_args": {}, "agent_id": names["agent_display_name"], "requester": requester,
        });
        let (status, answer) = world.api("build-agent").post("/api/confirmations", &ask).await;
        assert_eq!(status, 200, "{answer}");
        let (card, _) = world.cards(answer["confirmation_id"].as_str().unwrap()).await;
        takes_no_effect(&card);
        assert!(card.current().visible_text().contains(tool));
    }
}

/// Of Slack's places only markup text and the fallback text are read as markup, and only some elements of rich text do
/// something by themselves.
fn takes_no_effect(card: &fake_slack::Message) {
    let now = card.current();
    let mut places = vec![now.text.clone()];
    let mut look = vec![&now.blocks];
    while let Some(value) = look.pop() {
        if value["type"] == "mrkdwn" {
            places.push(value["text"].as_str().unwrap_or_default().to_owned());
        }
        let acts = [
            "link",
            "user",
            "usergroup",
            "channel",
            "broadcast",
            "emoji",
            "image",
            "date",
        ];
        assert!(!acts.iter().any(|kind| value["type"] == *kind), "{value} acts");
        look.extend(value.as_array().into_iter().flatten());
        look.extend(value.as_object().into_iter().flat_map(|fields| fields.values()));
    }
    for place in places {
        for live in ["<!", "<@", "<#", "<http"] {
            assert!(!place.contains(live), "{live} in {place}");
        }
    }
}

/// Of a Feishu card only Markdown is read as markup.
fn takes_no_effect_on_feishu(card: &Value) {
    let mut look = vec![card];
    while let Some(value) = look.pop() {
        if ["markdown", "lark_md"].iter().any(|tag| value["tag"] == *tag) {
            let text = value["content"].as_str().unwrap_or_default();
            for live in ["<at", "<font", "<a ", "](http", "![", "<text_tag"] {
                assert!(!text.contains(live), "{live} in {text}");
            }
        }
        assert!(value["tag"] != "img", "{value}");
        look.extend(value.as_array().into_iter().flatten());
        look.extend(value.as_object().into_iter().flat_map(|fields| fields.values()));
    }
}

/// RH-506.
async fn a_cursor_that_is_none_is_refused(storage: Storage) {
    let world = World::start(storage).await;
    let cursors: Vec<String> = serde_json::from_slice(fixture!("RH-506/cursors_bad.json")).unwrap();
    for cursor in &cursors {
        let encoded: String = form_urlencoded::byte_serialize(cursor.as_bytes()).collect();
        for list in ["/api/confirmations", "/api/audit"] {
            let (status, answer) = world.api("audit").get(&format!("{list}?cursor={encoded}")).await;
            assert_eq!(
                (status, &answer["code"]),
                (400, &json!("bad_cursor")),
                "{list} {cursor}"
            );
        }
    }
}

/// RH-603: each answer once, then the platform takes the card; however odd the pause, one card stands in the end.
async fn every_answer_to_a_full_platform_ends_in_one_card(storage: Storage) {
    let world = World::start(storage).await;
    world.slack.limit_rate(false);
    let replies: Vec<Value> = serde_json::from_slice(fixture!("RH-603/replies.json")).unwrap();
    for reply in replies.iter().filter(|reply| reply["http"] == 429) {
        let body = reply.get("body").cloned().unwrap_or_else(|| json!({}));
        let mut fault = Fault::answer(429, &body);
        if let Some(after) = reply["headers"]["Retry-After"].as_str() {
            fault = fault.header("retry-after", after);
        }
        world.slack.fail_next("chat.postMessage", fault);
        let before = world.slack.messages(fake_slack::CHANNEL).len();
        let id = world.ask_for("slack__deploy", json!({"reply": reply})).await;
        world
            .until(&format!("the refusal {reply} on record"), async || {
                let request = world.request(&id).await;
                request["deliveries"][0]["error"].is_string().then_some(())
            })
            .await;
        // The longest pause that is believed.
        world.advance(std::time::Duration::from_mins(10));
        world.until_deliveries(&id, &["posted"]).await;
        assert_eq!(world.slack.messages(fake_slack::CHANNEL).len(), before + 1);
    }
}

/// RH-304: each reply of the list, on the platform that gives it.
async fn refusals_for_good_end_the_request_and_others_do_not(storage: Storage) {
    let world = World::start(storage).await;
    world.slack.limit_rate(false);
    let replies: Vec<Value> = serde_json::from_slice(fixture!("RH-304/platform_replies.json")).unwrap();
    for reply in &replies {
        let status = u16::try_from(reply["http"].as_u64().unwrap()).unwrap();
        let fault = || Fault::answer(status, &reply["body"]);
        match reply["on"].as_str().unwrap() {
            "chat.postMessage" => {
                world.slack.fail_next("chat.postMessage", fault());
                let id = world.ask_for("slack__deploy", json!({"reply": reply})).await;
                world
                    .until(&format!("the end after {reply}"), async || {
                        let request = world.request(&id).await;
                        (request["status"] == "undeliverable").then_some(())
                    })
                    .await;
            }
            "im/v1/messages" => {
                world.feishu.fail_next(FeishuCall::Send, fault());
                let id = world.ask(60_000).await;
                // The other group is asked all the same.
                world.until_deliveries(&id, &["failed", "posted"]).await;
                assert_eq!(world.request(&id).await["status"], "pending");
                assert!(world.feishu.messages(fake_feishu::CHAT).is_empty());
            }
            "chat.update" => {
                let id = world.ask_for("slack__deploy", json!({"reply": reply})).await;
                world.until_deliveries(&id, &["posted"]).await;
                world.slack.fail_next("chat.update", fault());
                let path = format!("/api/confirmations/{id}/respond");
                let approve = json!({"decision": "approve"});
                let (_, answer) = world.api("dana-cli").post(&path, &approve).await;
                assert_eq!(answer["status"], "approved");
                world.until_deliveries(&id, &["settled"]).await;
            }
            other => panic!("a reply to {other}"),
        }
    }
}
