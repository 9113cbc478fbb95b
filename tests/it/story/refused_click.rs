//! Clicks that must not count: forged, stale, replayed, of another channel, organisation, workspace or person, altered or
//! outdated. Nothing changes, the answer is the documented one, and an audit event says which it was.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::fake_feishu;
use crate::support::fake_slack;
use crate::support::people::{BOB, DANA, NOOR, OLGA, STRANGER_FEISHU, STRANGER_SLACK};
use crate::support::platform_request::PlatformRequest;
use crate::support::world::{LEGAL_CHANNEL, SOON, Storage, UMBRELLA_CHANNEL, World};

on_every_store!(
    what_is_not_authentic_gets_an_empty_401,
    what_may_not_count_is_told_in_private,
    feishu_tells_it_in_the_answer,
    a_replay_changes_nothing_even_after_a_restart,
    a_flood_is_summed,
    an_outdated_card_is_shown_anew,
);

/// Nothing was decided and the chain holds.
async fn untouched(world: &World, id: &str) {
    let request = world.request(id).await;
    assert_eq!(request["status"], "pending", "{request}");
    assert!(request["votes"].as_array().unwrap().is_empty());
    assert!(world.audit("vote.cast").await.is_empty());
    world.verify().await;
}

async fn refused_with_nothing(world: &World, request: &PlatformRequest, channel: &str, status: u16) {
    let answered = request.post(&world.callback(channel)).await;
    assert_eq!((answered.status, answered.body.as_str()), (status, ""));
}

async fn what_is_not_authentic_gets_an_empty_401(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (slack_card, feishu_card) = world.cards(&id).await;
    let slack = || world.slack.click(&slack_card, "approve", DANA.slack);
    let feishu = || world.feishu.click(&feishu_card, "approve", DANA.feishu);
    let six_minutes = Duration::from_mins(6);

    let mut count = 0;
    let slack_requests = [
        slack().forged().request(),
        slack().aged(six_minutes).request(),
        slack().aged(Duration::from_hours(24 * 365)).request(),
        without(&slack().request(), "X-Slack-Signature"),
        without(&slack().request(), "X-Slack-Request-Timestamp"),
        with(&slack().request(), "X-Slack-Signature", "v0=é"),
        with(
            &slack().request(),
            "X-Slack-Request-Timestamp",
            "99999999999999999999",
        ),
        altered(&slack().request()),
    ];
    for (index, request) in slack_requests.iter().enumerate() {
        let answered = request.post(&world.callback("ops-slack")).await;
        assert_eq!((answered.status, answered.body.as_str()), (401, ""), "{index}");
        count += 1;
    }
    let feishu_requests = [
        feishu().forged().request(),
        feishu().with_foreign_key().request(),
        feishu().unsigned().request(),
        feishu().in_clear().request(),
        feishu().aged(six_minutes).request(),
        feishu().for_app("cli_0000000000000000").request(),
        feishu()
            .edit(|document| document["header"]["token"] = json!("vt-wrong"))
            .request(),
        without(&feishu().request(), "X-Lark-Signature"),
        with(&feishu().request(), "X-Lark-Request-Timestamp", "-1"),
        altered(&feishu().request()),
    ];
    for (index, request) in feishu_requests.iter().enumerate() {
        let answered = request.post(&world.callback("finance-feishu")).await;
        assert!(
            [400, 401].contains(&answered.status) && answered.body.is_empty(),
            "{index}: {answered:?}"
        );
        count += 1;
    }
    // A platform's request at the address of another channel: of another platform, of another app, of none at all.
    refused_with_nothing(&world, &slack().request(), "umbrella-slack", 401).await;
    refused_with_nothing(&world, &feishu().request(), "ops-slack", 401).await;
    refused_with_nothing(&world, &slack().request(), "desk", 401).await;
    let nowhere = slack().post(&world.callback("no-such-channel")).await;
    assert_eq!(nowhere.status, 404);

    untouched(&world, &id).await;
    let refused = world
        .until("every refusal in the log", async || {
            let refused = world.audit("callback.refused").await;
            (refused.len() > count).then_some(refused)
        })
        .await;
    assert!(
        refused.iter().all(|event| event["data"]["reason"].is_string()),
        "{refused:?}"
    );
    let of = |channel: &str| refused.iter().filter(|event| event["channel"] == channel).count();
    assert_eq!((of("ops-slack"), of("finance-feishu")), (9, 10));
    assert!(world.slack.ephemerals().is_empty(), "a forger is told nothing");
}

fn without(request: &PlatformRequest, header: &str) -> PlatformRequest {
    let mut request = request.clone();
    request.headers.retain(|(name, _)| name != header);
    request
}

fn with(request: &PlatformRequest, header: &str, value: &str) -> PlatformRequest {
    let mut request = without(request, header);
    request.headers.push((header.to_owned(), value.to_owned()));
    request
}

/// One byte of the body differs from what was signed.
fn altered(request: &PlatformRequest) -> PlatformRequest {
    let mut request = request.clone();
    let at = request.body.len() / 2;
    request.body[at] = if request.body[at] == b'A' { b'B' } else { b'A' };
    request
}

async fn what_may_not_count_is_told_in_private(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (card, _) = world.cards(&id).await;
    let legal = world.ask_for("legal__sign", json!({"page": 1})).await;
    let legal_card = world.slack.wait_for_message(LEGAL_CHANNEL, |_| true, SOON).await;
    world.until_deliveries(&legal, &["posted"]).await;
    let press = |user: &str| world.slack.click(&card, "approve", user);
    let value = card.current().button("approve").unwrap().1["value"]
        .as_str()
        .unwrap()
        .to_owned();
    let legal_value = legal_card.current().button("approve").unwrap().1["value"]
        .as_str()
        .unwrap()
        .to_owned();
    // The same length and alphabet, another token: every value begins with "g1." and the token's first digit.
    let digit = if value[3..].starts_with('0') { "1" } else { "0" };
    let turned = format!("{}{digit}{}", &value[..3], &value[4..]);

    let cases = [
        ("unknown_operator", press(STRANGER_SLACK)),
        ("unknown_operator", press(BOB.slack)),
        ("not_authorised", press(OLGA.slack)),
        ("foreign_tenant", press(DANA.slack).by_team("T0EVIL")),
        ("other_message", press(DANA.slack).on_message("1700000000.000001")),
        ("other_channel", press(DANA.slack).with_value(&legal_value)),
        ("other_channel", press(DANA.slack).in_channel(LEGAL_CHANNEL)),
        ("unknown_card", press(DANA.slack).with_value(&turned)),
        ("unknown_card", press(DANA.slack).with_value(&id)),
        ("unknown_card", press(DANA.slack).with_value("")),
        ("unknown_chat", press(DANA.slack).in_channel("C0ELSEWHERE")),
        ("other_app", press(DANA.slack).for_app("A0SOMEBODY")),
    ];
    for (number, (reason, click)) in cases.into_iter().enumerate() {
        let answered = click.post(&world.callback("ops-slack")).await;
        assert_eq!(
            (answered.status, answered.body.as_str()),
            (200, ""),
            "{number} {reason}"
        );
        let event: Value = world
            .until(&format!("{number} {reason} in the log"), async || {
                let mut refused = world.audit("callback.refused").await;
                (refused.len() == number + 1).then(|| refused.pop()).flatten()
            })
            .await;
        assert_eq!(event["data"]["reason"], reason, "{number} {event}");
    }
    untouched(&world, &id).await;
    assert_eq!(world.request(&legal).await["status"], "pending");
    world
        .slack
        .wait_for("a private notice to the outsider", SOON, |slack| {
            let mut told = slack.ephemerals().into_iter();
            told.find(|(channel, user, _)| channel == fake_slack::CHANNEL && user == OLGA.slack)
        })
        .await;

    // Authentic for the second organisation's app, with a button of the first: its own log names the refusal, and
    // nothing of the request.
    let foreign = world.slack.click(&card, "approve", BOB.slack).forged();
    let foreign = foreign.for_app("A0UMBRELLA").in_channel(UMBRELLA_CHANNEL);
    let answered = foreign.post(&world.callback("umbrella-slack")).await;
    assert_eq!((answered.status, answered.body.as_str()), (200, ""));
    let (_, page) = world
        .api("umbrella-audit")
        .get("/api/audit?kind=callback.refused")
        .await;
    assert_eq!(page["items"][0]["data"]["reason"], "other_channel", "{page}");
    assert!(page["items"][0]["confirmation_id"].is_null());
    untouched(&world, &id).await;

    // The button still works for who may press it.
    assert_eq!(
        press(DANA.slack).post(&world.callback("ops-slack")).await.status,
        200
    );
    assert_eq!(world.request(&id).await["status"], "approved");
}

async fn feishu_tells_it_in_the_answer(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (_, card) = world.cards(&id).await;
    let press = |person: &str| world.feishu.click(&card, "approve", person);
    let nonsense = json!({"decision": "approve", "id": id});
    let cases = [
        ("unknown_operator", press(STRANGER_FEISHU)),
        ("unknown_operator", press(BOB.feishu)),
        ("not_authorised", press(OLGA.feishu)),
        ("foreign_tenant", press(DANA.feishu).by_tenant("tk_evil")),
        ("other_message", press(DANA.feishu).on_message("om_other")),
        ("unknown_card", press(DANA.feishu).with_value(&nonsense)),
        ("unknown_chat", press(DANA.feishu).in_chat("oc_elsewhere")),
    ];
    for (number, (reason, click)) in cases.into_iter().enumerate() {
        let clicked = click.post(&world.callback("finance-feishu")).await;
        assert_eq!(clicked.answered.status, 200, "{reason}");
        let toast = clicked.toast.expect("a usable answer").expect("a toast");
        assert_ne!(toast.kind, "success", "{reason}: {toast:?}");
        let event: Value = world
            .until(&format!("{reason} in the log"), async || {
                let mut refused = world.audit("callback.refused").await;
                (refused.len() == number + 1).then(|| refused.pop()).flatten()
            })
            .await;
        assert_eq!(event["data"]["reason"], reason, "{event}");
    }
    untouched(&world, &id).await;
}

/// RH-104.
async fn a_replay_changes_nothing_even_after_a_restart(storage: Storage) {
    let mut world = World::start(storage).await;
    let id = world.ask_for("pair__open_vault", json!({})).await;
    let (slack_card, feishu_card) = world.cards(&id).await;
    let slack_press = world.slack.click(&slack_card, "approve", DANA.slack).request();
    let feishu_press = world.feishu.click(&feishu_card, "reject", OLGA.feishu).request();
    let (slack_url, feishu_url) = (world.callback("ops-slack"), world.callback("finance-feishu"));
    assert_eq!(slack_press.post(&slack_url).await.status, 200);
    let first = feishu_press.post(&feishu_url).await;

    assert_eq!(slack_press.post(&slack_url).await.status, 200);
    assert_eq!(
        feishu_press.post(&feishu_url).await.json()["toast"],
        first.json()["toast"]
    );
    world.restart().await;
    assert_eq!(slack_press.post(&slack_url).await.status, 200);
    assert_eq!(
        feishu_press.post(&feishu_url).await.json()["toast"],
        first.json()["toast"]
    );

    let request = world.request(&id).await;
    assert_eq!(request["status"], "pending");
    assert_eq!(request["votes"].as_array().unwrap().len(), 1);
    let refused = world.audit("callback.refused").await;
    let replayed = refused
        .iter()
        .filter(|event| event["data"]["reason"] == "replayed");
    assert_eq!(replayed.count(), 4, "{refused:?}");
    assert_eq!(world.audit("vote.cast").await.len(), 1);

    // The same press, signed anew an hour later, is still the same press.
    world.advance(Duration::from_hours(1));
    let again = world.slack.click(&slack_card, "approve", NOOR.slack);
    let answered = again.post(&slack_url).await;
    assert_eq!(answered.status, 200);
    assert_eq!(
        world.request(&id).await["status"],
        "approved",
        "another press is not a replay"
    );
}

/// Seven hundred forged callbacks within a minute leave six hundred events and one sum.
async fn a_flood_is_summed(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (card, _) = world.cards(&id).await;
    let forged = world.slack.click(&card, "approve", DANA.slack).forged().request();
    let url = world.callback("ops-slack");
    for _ in 0..7 {
        let posts = futures_util::future::join_all((0..100).map(|_| forged.post(&url))).await;
        assert!(posts.iter().all(|answered| answered.status == 401));
    }
    world.advance(Duration::from_secs(61));
    assert_eq!(forged.post(&url).await.status, 401);
    let events = world
        .until("the sum", async || {
            let (_, text) = world
                .api("audit")
                .get_text("/api/audit/export?kind=callback.refused")
                .await;
            let events: Vec<Value> = text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            (events.len() >= 602).then_some(events)
        })
        .await;
    assert_eq!(events.len(), 602);
    let sums: Vec<_> = events
        .iter()
        .filter(|event| event["data"]["reason"] == "flood")
        .collect();
    assert_eq!(sums.len(), 1);
    assert_eq!(sums[0]["data"]["count"], 100);
    untouched(&world, &id).await;
}

/// A press on what a card showed before: the clicker is told, sees the new card, and no vote is cast.
async fn an_outdated_card_is_shown_anew(storage: Storage) {
    let world = World::start(storage).await;
    let id = world.ask(60_000).await;
    let (slack_card, feishu_card) = world.cards(&id).await;
    let path = format!("/api/confirmations/{id}/respond");
    world
        .api("dana-cli")
        .post(&path, &json!({"decision": "reject", "reason": "no"}))
        .await;
    // A client that has not caught up still has the buttons.
    let late = world
        .feishu
        .click_revision(&feishu_card, 0, "approve", NOOR.feishu);
    let clicked = late.post(&world.callback("finance-feishu")).await;
    assert_eq!(
        clicked.toast.unwrap().unwrap().content,
        "This request was rejected before. Nothing was changed."
    );
    assert!(clicked.card_replaced);
    let late = world.slack.click_revision(&slack_card, 0, "approve", NOOR.slack);
    assert_eq!(late.post(&world.callback("ops-slack")).await.status, 200);
    world.both_settled(&id, "Rejected", "Rejected").await;
    let message = world.feishu.messages(fake_feishu::CHAT).pop().unwrap();
    assert!(message.decisions().is_empty());
    assert_eq!(world.request(&id).await["votes"].as_array().unwrap().len(), 1);
}
