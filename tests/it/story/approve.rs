//! A call above the limit is asked in both groups at once; an approval in one settles both; the permit is good once, for
//! exactly that call.

use serde_json::{Value, json};

use crate::support::fake_slack;
use crate::support::people::DANA;
use crate::support::world::{SOON, Storage, World};

on_every_store!(
    one_click_settles_both_groups_and_permits_once,
    a_changed_call_is_refused_and_the_permit_stays,
    amounts_keep_every_digit,
    a_call_below_the_limit_asks_nobody,
    a_token_call_is_bound_to_who_asked,
);

const ARGS: &str = r#"{"payee":"ACME GmbH","amount":60000.10}"#;
const CANONICAL: &str = r#"{"amount":60000.1,"payee":"ACME GmbH"}"#;

async fn ask(world: &World, args: &str) -> Value {
    let body = format!(r#"{{"tool_name":"oa__purchase_pay","tool_args":{args}}}"#);
    let (status, answer) = world
        .api("build-agent")
        .post_text("/api/confirmations", body)
        .await;
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str(&answer).unwrap()
}

async fn consume(world: &World, agent: &str, id: &str, args: &str) -> (u16, String) {
    let body = format!(r#"{{"tool_name":"oa__purchase_pay","tool_args":{args}}}"#);
    let path = format!("/api/confirmations/{id}/consume");
    world.api(agent).post_text(&path, body).await
}

async fn approved(world: &World, args: &str) -> String {
    let id = ask(world, args).await["confirmation_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let (card, _) = world.cards(&id).await;
    let pressed = world.slack.click(&card, "approve", DANA.slack);
    let answered = pressed.post(&world.callback("ops-slack")).await;
    assert_eq!((answered.status, answered.body.as_str()), (200, ""));
    assert_eq!(world.request(&id).await["status"], "approved");
    id
}

async fn one_click_settles_both_groups_and_permits_once(storage: Storage) {
    let world = World::start(storage).await;
    let asked = ask(&world, ARGS).await;
    assert_eq!(asked["verdict"], "pending");
    assert_eq!(asked["rule"], "big-payments");
    let id = asked["confirmation_id"].as_str().unwrap().to_owned();

    let (slack_card, feishu_card) = world.cards(&id).await;
    for text in [slack_card.current().visible_text(), feishu_card.visible_text()] {
        assert!(
            text.contains("60000.1") && text.contains("oa__purchase_pay"),
            "the card shows the call: {text}"
        );
    }
    let agent = world.api("build-agent");
    let waiting = tokio::spawn({
        let path = format!("/api/confirmations/{id}?wait=30");
        async move { agent.get(&path).await }
    });

    let pressed = world.slack.click(&slack_card, "approve", DANA.slack);
    let answered = pressed.post(&world.callback("ops-slack")).await;
    assert_eq!((answered.status, answered.body.as_str()), (200, ""));
    assert!(answered.in_time());

    let (status, seen) = tokio::time::timeout(SOON, waiting).await.unwrap().unwrap();
    assert_eq!((status, &seen["status"]), (200, &json!("approved")));
    assert_eq!(seen["votes"][0]["operator"], "dana");
    assert_eq!(seen["votes"][0]["channel"], "ops-slack");
    world.both_settled(&id, "Dana Kim", "Dana Kim").await;
    assert_eq!(
        world.slack.messages(fake_slack::CHANNEL).len(),
        1,
        "the card is edited, not posted again"
    );
    assert!(
        world.slack.ephemerals().is_empty(),
        "nobody is told what the card shows"
    );

    let (status, granted) = consume(&world, "build-agent", &id, ARGS).await;
    assert_eq!(status, 200, "{granted}");
    assert!(
        granted.contains(CANONICAL),
        "exactly the stored arguments: {granted}"
    );
    let (status, again) = consume(&world, "build-agent", &id, ARGS).await;
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!((status, &again["code"]), (409, &json!("already_consumed")));
    let asked_again = ask(&world, ARGS).await;
    assert_ne!(
        asked_again["confirmation_id"].as_str(),
        Some(id.as_str()),
        "without a call id every question is its own"
    );

    let report = json!({"status": "succeeded", "detail": "paid"});
    let path = format!("/api/confirmations/{id}/outcome");
    let (status, reported) = world.api("build-agent").post(&path, &report).await;
    assert_eq!(
        (status, &reported["outcome"]["status"]),
        (200, &json!("succeeded"))
    );

    let kinds: Vec<_> = world
        .audit("")
        .await
        .iter()
        .filter(|event| event["confirmation_id"] == *id)
        .map(|event| event["kind"].as_str().unwrap().to_owned())
        .collect();
    for (kind, count) in [
        ("confirmation.created", 1),
        ("vote.cast", 1),
        ("confirmation.approved", 1),
        ("permit.consumed", 1),
        ("permit.refused", 1),
    ] {
        assert_eq!(
            kinds.iter().filter(|seen| *seen == kind).count(),
            count,
            "{kinds:?}"
        );
    }
    world.verify().await;
}

async fn a_changed_call_is_refused_and_the_permit_stays(storage: Storage) {
    let world = World::start(storage).await;
    let id = approved(&world, ARGS).await;
    for changed in [
        r#"{"payee":"ACME GmbH","amount":60000.11}"#,
        r#"{"payee":"ACME GmbH ","amount":60000.10}"#,
        r#"{"payee":"ACME GmbH","amount":"60000.10"}"#,
        r#"{"payee":"ACME GmbH","amount":60000.10,"x":null}"#,
        r#"{"payee":"ACME GmbH"}"#,
    ] {
        let (status, answer) = consume(&world, "build-agent", &id, changed).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(
            (status, &answer["code"]),
            (409, &json!("args_changed")),
            "{changed}"
        );
    }
    let other_tool =
        json!({"tool_name": "oa__purchase_pay2", "tool_args": {"payee": "ACME GmbH", "amount": 60000.1}});
    let path = format!("/api/confirmations/{id}/consume");
    let (status, answer) = world.api("build-agent").post(&path, &other_tool).await;
    assert_eq!((status, &answer["code"]), (409, &json!("args_changed")));

    // Another spelling of the same value is the same call.
    let (status, answer) = consume(
        &world,
        "build-agent",
        &id,
        r#"{ "amount": 6.00001e4, "payee": "\u0041CME GmbH" }"#,
    )
    .await;
    assert_eq!(status, 200, "{answer}");
    let refused = world.audit("permit.refused").await;
    assert_eq!(refused.len(), 6);
    assert!(
        refused
            .iter()
            .all(|event| event["data"]["reason"] == "args_changed")
    );
}

async fn amounts_keep_every_digit(storage: Storage) {
    let world = World::start(storage).await;
    // A double holds none of these; rounding one would approve another call than the one that runs.
    for amount in [
        "60000.100000000000000001",
        "9007199254740993",
        "123456789012345678901234567890.05",
    ] {
        let args = format!(r#"{{"amount":{amount}}}"#);
        let id = approved(&world, &args).await;
        let (status, granted) = consume(&world, "build-agent", &id, &args).await;
        assert_eq!(status, 200, "{granted}");
        assert!(granted.contains(&format!(r#""tool_args":{args}"#)), "{granted}");
        let card = world.slack_card(&id).await;
        assert!(
            card.history[0].visible_text().contains(amount),
            "the card shows {amount}"
        );
    }
}

async fn a_call_below_the_limit_asks_nobody(storage: Storage) {
    let world = World::start(storage).await;
    let asked = ask(&world, r#"{"amount":49999.99}"#).await;
    assert_eq!(asked["verdict"], "allow");
    assert_eq!(asked["rule"], "small-payments");
    assert!(asked["confirmation_id"].is_null());
    let denied = json!({"tool_name": "never__delete", "tool_args": {}});
    let (status, answer) = world.api("build-agent").post("/api/confirmations", &denied).await;
    assert_eq!(
        (status, &answer["verdict"], &answer["reason_code"]),
        (200, &json!("deny"), &json!("denied_by_rule"))
    );
    world
        .until("both verdicts in the log", async || {
            let events = world.audit("call.allowed,call.denied").await;
            (events.len() == 2).then_some(())
        })
        .await;
    assert!(world.slack.messages(fake_slack::CHANNEL).is_empty());
    // An amount that is no number cannot be compared: the allow rule does not hold, a person is asked.
    let odd = ask(&world, r#"{"amount":"1"}"#).await;
    assert_eq!(odd["verdict"], "pending");
}

async fn a_token_call_is_bound_to_who_asked(storage: Storage) {
    let world = World::start(storage).await;
    let id = approved(&world, ARGS).await;
    for other in ["second-agent", "umbrella-agent"] {
        let (status, answer) = consume(&world, other, &id, ARGS).await;
        assert_eq!(status, 404, "{other}: {answer}");
    }
    for not_an_agent in ["dana-cli", "audit", "admin"] {
        let (status, answer) = consume(&world, not_an_agent, &id, ARGS).await;
        assert_eq!(status, 403, "{not_an_agent}: {answer}");
    }
    assert!(world.request(&id).await["consumed_at"].is_null());
    let (status, _) = consume(&world, "build-agent", &id, ARGS).await;
    assert_eq!(status, 200);
}
