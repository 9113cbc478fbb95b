//! The fake Slack.

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::{Inbox, PATIENCE};
use crate::support::clock::Clock;
use crate::support::fake_slack::{APP, BOT_TOKEN, CHANNEL, FakeSlack, SIGNING_SECRET, Standing, TEAM, User};
use crate::support::fault::{Door, Fault};
use crate::support::loopback;

const NOON: i64 = 1_795_953_600;
const PERSON: &str = "U024BE7LH";

async fn workspace() -> FakeSlack {
    let slack = FakeSlack::with_clock(Clock::standing_at(NOON)).await;
    slack.add_user(User::new(PERSON, "dana@example.com"));
    slack
}

async fn call(slack: &FakeSlack, method: &str, args: &Value) -> Value {
    let request = loopback::client()
        .post(format!("{}/{method}", slack.base_url))
        .bearer_auth(BOT_TOKEN);
    request.json(args).send().await.unwrap().json().await.unwrap()
}

async fn post_blocks(slack: &FakeSlack, blocks: Value) -> Value {
    call(
        slack,
        "chat.postMessage",
        &json!({"channel": CHANNEL, "text": "fallback", "blocks": blocks}),
    )
    .await
}

fn button(action_id: &str, value: &str) -> Value {
    json!({
        "type": "button", "action_id": action_id, "value": value,
        "text": {"type": "plain_text", "text": "Approve 批准 / now", "emoji": false},
    })
}

fn card(value: &str) -> Value {
    json!([
        {"type": "header", "text": {"type": "plain_text", "text": "Payment"}},
        {"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [
            {"type": "text", "text": "amount: 5"},
        ]}]},
        {"type": "actions", "block_id": "decide", "elements": [button("approve", value), button("reject", value)]},
    ])
}

#[tokio::test]
async fn tokens_and_scopes_are_checked() {
    let slack = workspace().await;
    let url = format!("{}/auth.test", slack.base_url);
    let bare: Value = loopback::client()
        .post(&url)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(bare["error"], "not_authed");
    let form = loopback::client().post(&url).form(&[("token", "xoxb-other")]);
    let wrong: Value = form.send().await.unwrap().json().await.unwrap();
    assert_eq!(wrong["error"], "invalid_auth");
    assert_eq!(call(&slack, "auth.test", &json!({})).await["team_id"], TEAM);

    slack.revoke_scope("users:read.email");
    let missing = call(
        &slack,
        "users.lookupByEmail",
        &json!({"email": "dana@example.com"}),
    )
    .await;
    assert_eq!(
        (&missing["error"], &missing["needed"]),
        (&json!("missing_scope"), &json!("users:read.email"))
    );
    slack.refuse_token("account_inactive");
    assert_eq!(
        call(&slack, "auth.test", &json!({})).await["error"],
        "account_inactive"
    );
}

#[tokio::test]
async fn people_and_channels_are_found() {
    let slack = workspace().await;
    let mut gone = User::new("U0GONE", "gone@example.com");
    gone.standing = Standing::Deactivated;
    slack.add_user(gone);
    let found = call(
        &slack,
        "users.lookupByEmail",
        &json!({"email": "DANA@example.com"}),
    )
    .await;
    assert_eq!(found["user"]["id"], PERSON);
    assert_eq!(
        call(&slack, "users.info", &json!({"user": "U0GONE"})).await["user"]["deleted"],
        true
    );
    assert_eq!(
        call(
            &slack,
            "users.lookupByEmail",
            &json!({"email": "gone@example.com"})
        )
        .await["error"],
        "users_not_found"
    );
    slack.add_channel("C2");
    slack.remove_member("C2", PERSON);
    assert_eq!(
        call(&slack, "conversations.members", &json!({"channel": "C2"})).await["members"],
        json!(["U0GATEBOT", "U0GONE"])
    );
    assert_eq!(
        call(&slack, "conversations.info", &json!({"channel": "C2"})).await["channel"]["is_member"],
        true
    );
    let ephemeral = json!({"channel": "C2", "user": PERSON, "text": "no"});
    assert_eq!(
        call(&slack, "chat.postEphemeral", &ephemeral).await["error"],
        "user_not_in_channel"
    );
    let ephemeral = json!({"channel": CHANNEL, "user": PERSON, "text": "no"});
    assert_eq!(call(&slack, "chat.postEphemeral", &ephemeral).await["ok"], true);
    assert_eq!(slack.ephemerals()[0].1, PERSON);
}

#[tokio::test]
async fn a_channel_that_cannot_be_reached_says_so() {
    let slack = workspace().await;
    let post = |channel: &'static str| json!({"channel": channel, "text": "x"});
    assert_eq!(
        call(&slack, "chat.postMessage", &post("C9")).await["error"],
        "channel_not_found"
    );
    assert_eq!(
        call(&slack, "chat.postMessage", &json!({"channel": CHANNEL})).await["error"],
        "no_text"
    );
    slack.archive(CHANNEL);
    assert_eq!(
        call(&slack, "chat.postMessage", &post(CHANNEL)).await["error"],
        "is_archived"
    );
    slack.remove_bot(CHANNEL);
    assert_eq!(
        call(&slack, "chat.postMessage", &post(CHANNEL)).await["error"],
        "not_in_channel"
    );
    assert_eq!(
        slack.calls("chat.postMessage").len(),
        4,
        "refused calls are recorded too"
    );
}

#[tokio::test]
async fn blocks_beyond_a_limit_are_refused_with_their_place() {
    let slack = workspace().await;
    slack.limit_rate(false);
    let section = |text: &str| json!({"type": "section", "text": {"type": "plain_text", "text": text}});
    let actions = |element: Value| json!([{"type": "actions", "elements": [element]}]);
    let mut long_label = button("a", "v");
    long_label["text"]["text"] = json!("x".repeat(76));
    let cases = [
        (
            json!([section(&"x".repeat(3001))]),
            "less than 3001 characters [json-pointer:/blocks/0/text/text]",
        ),
        (json!([section("")]), "more than 0 characters"),
        (
            json!([{"type": "header", "text": {"type": "plain_text", "text": "x".repeat(151)}}]),
            "less than 151",
        ),
        (
            actions(long_label),
            "less than 76 characters [json-pointer:/blocks/0/elements/0/text/text]",
        ),
        (actions(button("a", &"v".repeat(2001))), "less than 2001"),
        (actions(button(&"a".repeat(256), "v")), "less than 256"),
        (
            json!([{"type": "divider", "block_id": "b"}, {"type": "divider", "block_id": "b"}]),
            "must be unique",
        ),
        (
            json!(vec![json!({"type": "divider"}); 51]),
            "no more than 50 items",
        ),
        (
            json!([{"type": "divider", "colour": "red"}]),
            "invalid additional property: colour",
        ),
        (json!([{"type": "blink"}]), "unsupported type: blink"),
        (json!({"type": "divider"}), "must be an array"),
    ];
    for (blocks, expected) in cases {
        let answer = post_blocks(&slack, blocks).await;
        assert_eq!(answer["error"], "invalid_blocks", "{expected}");
        let messages = answer["response_metadata"]["messages"].to_string();
        assert!(
            messages.contains(expected) && messages.contains("[ERROR]"),
            "{messages} lacks {expected}"
        );
    }
    let many = json!(vec![section(&"x".repeat(2900)); 4]);
    assert_eq!(post_blocks(&slack, many).await["error"], "msg_blocks_too_long");
    let long = json!({"channel": CHANNEL, "text": "x".repeat(40_001)});
    assert_eq!(
        call(&slack, "chat.postMessage", &long).await["error"],
        "msg_too_long"
    );
    assert!(slack.messages(CHANNEL).is_empty());
}

#[tokio::test]
async fn a_message_keeps_its_history() {
    let slack = workspace().await;
    let ts = post_blocks(&slack, card("token-1")).await["ts"].clone();
    let update = |blocks: Value| json!({"channel": CHANNEL, "ts": ts, "text": "done", "blocks": blocks});
    let plain = json!([{"type": "section", "text": {"type": "plain_text", "text": "done"}}]);
    assert_eq!(
        call(&slack, "chat.update", &update(plain)).await["error"],
        "block_mismatch"
    );
    let mut settled = card("token-1");
    settled.as_array_mut().unwrap().pop();
    assert_eq!(call(&slack, "chat.update", &update(settled)).await["ok"], true);
    let message = slack
        .wait_for_message(CHANNEL, |message| message.history.len() == 2, PATIENCE)
        .await;
    assert_eq!(message.history[0].action_ids(), ["approve", "reject"]);
    assert!(message.current().action_ids().is_empty());
    assert!(message.current().visible_text().contains("amount: 5"));
    assert_eq!(message.current().metadata, Value::Null);
    let reply = json!({"channel": CHANNEL, "text": "in a thread", "thread_ts": ts});
    call(&slack, "chat.postMessage", &reply).await;
    let replied = |slack: &FakeSlack| {
        slack
            .messages(CHANNEL)
            .into_iter()
            .find(|other| other.thread_ts.is_some())
    };
    assert_eq!(
        slack
            .wait_for("a reply", PATIENCE, replied)
            .await
            .thread_ts
            .as_deref(),
        ts.as_str()
    );
    slack.delete_message(CHANNEL, ts.as_str().unwrap());
    assert_eq!(
        call(&slack, "chat.update", &update(card("token-1"))).await["error"],
        "message_not_found"
    );
}

#[tokio::test]
async fn a_form_is_read_like_json() {
    let slack = workspace().await;
    let url = format!("{}/chat.postMessage", slack.base_url);
    let blocks = card("v").to_string();
    let form = [
        ("token", BOT_TOKEN),
        ("channel", CHANNEL),
        ("text", "t"),
        ("blocks", &blocks),
    ];
    let answer: Value = loopback::client()
        .post(url)
        .form(&form)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(answer["ok"], true);
    let sent = &slack.calls("chat.postMessage")[0];
    assert!(sent.content_type.starts_with("application/x-www-form-urlencoded"));
    assert_eq!(sent.args["blocks"][2]["block_id"], "decide");
}

#[tokio::test]
async fn more_than_one_message_a_second_has_to_wait() {
    let slack = workspace().await;
    let post = || async {
        let request = loopback::client().post(format!("{}/chat.postMessage", slack.base_url));
        let request = request
            .bearer_auth(BOT_TOKEN)
            .json(&json!({"channel": CHANNEL, "text": "x"}));
        request.send().await.unwrap()
    };
    for _ in 0..5 {
        assert_eq!(post().await.status(), 200);
    }
    let refused = post().await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "1");
    slack.clock().advance(Duration::from_secs(1));
    assert_eq!(post().await.status(), 200);
}

#[tokio::test]
async fn faults_are_met_in_order() {
    let slack = workspace().await;
    let post = || {
        let request = loopback::client().post(format!("{}/chat.postMessage", slack.base_url));
        let request = request
            .bearer_auth(BOT_TOKEN)
            .json(&json!({"channel": CHANNEL, "text": "x"}));
        request.timeout(Duration::from_millis(300)).send()
    };
    let limited =
        Fault::answer(429, &json!({"ok": false, "error": "ratelimited"})).header("retry-after", "2");
    slack.fail_next("chat.postMessage", limited);
    slack.fail_next("chat.postMessage", Fault::text(503, "upstream"));
    slack.fail_next("chat.postMessage", Fault::silence());
    slack.fail_next("chat.postMessage", Fault::cut().after_effect());
    assert_eq!(post().await.unwrap().headers()["retry-after"], "2");
    assert_eq!(post().await.unwrap().status(), 503);
    assert!(post().await.unwrap_err().is_timeout());
    assert!(slack.messages(CHANNEL).is_empty());
    let cut = match post().await {
        Ok(answer) => answer.bytes().await.is_err(),
        Err(error) => !error.is_timeout(),
    };
    assert!(cut, "the connection broke");
    assert_eq!(
        slack.messages(CHANNEL).len(),
        1,
        "the post took effect although its answer was lost"
    );

    let door = Door::closed();
    slack.fail_next("chat.postMessage", Fault::held(&door));
    slack.fail_next("chat.postMessage", Fault::late(Duration::from_millis(1)));
    let (held, ()) = tokio::join!(post(), async { door.open() });
    assert_eq!(held.unwrap().status(), 200);
    assert_eq!(post().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_click_is_signed_over_what_the_message_shows() {
    let slack = workspace().await;
    let inbox = Inbox::answering("").await;
    post_blocks(&slack, card("opaque/token")).await;
    let message = slack.messages(CHANNEL).remove(0);
    let click = slack.click(&message, "approve", PERSON);
    let answered = click.post(&inbox.url()).await;
    assert_eq!((answered.status, answered.in_time()), (200, true));

    let body = inbox.body(0);
    assert!(
        body.starts_with("payload=%7B") && body.contains('+') && body.contains("%5C%2F"),
        "{body}"
    );
    assert!(body.contains("%5Cu6279"), "JSON is sent in ASCII");
    let expected = |timestamp: &str, body: &str| {
        let mut mac = Hmac::<Sha256>::new_from_slice(SIGNING_SECRET.as_bytes()).unwrap();
        mac.update(format!("v0:{timestamp}:{body}").as_bytes());
        format!("v0={}", hex::encode(mac.finalize().into_bytes()))
    };
    assert_eq!(
        inbox.header(0, "x-slack-signature"),
        expected(&NOON.to_string(), &body)
    );
    let (_, payload) = form_urlencoded::parse(body.as_bytes()).next().unwrap();
    let payload: Value = serde_json::from_str(&payload).unwrap();
    assert_eq!(payload["actions"][0]["value"], "opaque/token");
    assert_eq!(payload["actions"][0]["block_id"], "decide");
    assert_eq!(payload["api_app_id"], APP);
    assert_eq!(payload["container"]["message_ts"], json!(message.ts));

    let request = click.request();
    request.post(&inbox.url()).await;
    request.post(&inbox.url()).await;
    assert_eq!(inbox.body(1), inbox.body(2), "a replay is exact");
    click.clone().forged().post(&inbox.url()).await;
    assert_ne!(
        inbox.header(3, "x-slack-signature"),
        expected(&NOON.to_string(), &inbox.body(3))
    );
    click
        .clone()
        .aged(Duration::from_secs(301))
        .post(&inbox.url())
        .await;
    assert_eq!(
        inbox.header(4, "x-slack-request-timestamp"),
        (NOON - 301).to_string()
    );
    let other = click
        .by_team("T9")
        .for_app("A9")
        .in_channel("C9")
        .on_message("1.2")
        .with_value("other");
    other.post(&inbox.url()).await;
    for changed in ["T9", "A9", "C9", "1.2", "other"] {
        assert!(inbox.body(5).contains(changed), "{changed}");
    }
}

#[tokio::test]
#[should_panic(expected = "no button approve")]
async fn nobody_presses_a_button_that_is_gone() {
    let slack = workspace().await;
    let ts = post_blocks(&slack, card("old")).await["ts"].clone();
    let stale = slack.messages(CHANNEL).remove(0);
    let mut settled = card("old");
    settled.as_array_mut().unwrap().pop();
    call(
        &slack,
        "chat.update",
        &json!({"channel": CHANNEL, "ts": ts, "text": "x", "blocks": settled}),
    )
    .await;
    // A client that has not caught up can still press the old button …
    let _old = slack.click_revision(&stale, 0, "approve", PERSON).request();
    // … one that has cannot.
    let _new = slack.click(&stale, "approve", PERSON);
}

#[tokio::test]
async fn a_modal_opens_once_and_soon_and_is_submitted() {
    let slack = workspace().await;
    let inbox = Inbox::answering("").await;
    post_blocks(&slack, card("v")).await;
    let message = slack.messages(CHANNEL).remove(0);
    let trigger = |click: &crate::support::fake_slack::Signed| {
        let body = String::from_utf8(click.request().body).unwrap();
        let (_, payload) = form_urlencoded::parse(body.as_bytes()).next().unwrap();
        serde_json::from_str::<Value>(&payload).unwrap()["trigger_id"].clone()
    };
    let view = json!({
        "type": "modal", "callback_id": "reason", "title": {"type": "plain_text", "text": "Reject"},
        "submit": {"type": "plain_text", "text": "Send"},
        "blocks": [{"type": "input", "block_id": "why", "label": {"type": "plain_text", "text": "Why"},
            "element": {"type": "plain_text_input", "action_id": "text"}}],
    });
    let first = trigger(&slack.click(&message, "reject", PERSON));
    let open = |trigger: &Value| json!({"trigger_id": trigger, "view": view});
    assert_eq!(
        call(&slack, "views.open", &open(&json!("1.2.x"))).await["error"],
        "invalid_trigger_id"
    );
    assert_eq!(call(&slack, "views.open", &open(&first)).await["ok"], true);
    assert_eq!(
        call(&slack, "views.open", &open(&first)).await["error"],
        "exchanged_trigger_id"
    );
    let late = trigger(&slack.click(&message, "reject", PERSON));
    slack.clock().advance(Duration::from_secs(4));
    assert_eq!(
        call(&slack, "views.open", &open(&late)).await["error"],
        "expired_trigger_id"
    );

    let third = trigger(&slack.click(&message, "reject", PERSON));
    let mut full = open(&third);
    full["view"]["blocks"][0]["element"]["initial_value"] = json!("x".repeat(3_001));
    assert_eq!(call(&slack, "views.open", &full).await["error"], "invalid_blocks");
    full["view"]["blocks"][0]["element"]["initial_value"] = json!("R&amp;D 🚀 <x>");
    assert_eq!(call(&slack, "views.open", &full).await["ok"], true);
    let given = slack.views().pop().unwrap();
    slack.fill_in(&given, None, "", None).post(&inbox.url()).await;
    let body = inbox.body(0);
    let (_, sent) = form_urlencoded::parse(body.as_bytes()).next().unwrap();
    assert!(
        sent.contains("R&D :rocket: <x>"),
        "what nobody touches comes back as Slack gives it: {sent}"
    );

    let opened = slack.views().remove(0);
    let values = json!({"why": {"text": {"type": "plain_text_input", "value": "too much"}}});
    slack.submit_view(&opened, &values).post(&inbox.url()).await;
    assert!(inbox.body(1).contains("view_submission") && inbox.body(1).contains(&opened.id));
    slack
        .slash_command("/gatepost", "pending", PERSON)
        .post(&inbox.url())
        .await;
    let fields: Vec<_> = form_urlencoded::parse(inbox.body(2).as_bytes())
        .into_owned()
        .collect();
    assert!(fields.contains(&("command".to_owned(), "/gatepost".to_owned())));
}

/// A page, what a group holds, and what an app without a scope is told.
#[tokio::test]
async fn groups_are_listed_and_members_come_in_pages() {
    let slack = workspace().await;
    slack.add_user(User::new("U0SECOND1", "second@example.com"));
    let page = |cursor: Value| {
        let slack = &slack;
        async move {
            let args = json!({"channel": CHANNEL, "limit": 2, "cursor": cursor});
            call(slack, "conversations.members", &args).await
        }
    };
    let first = page(json!("")).await;
    assert_eq!(first["members"].as_array().map(Vec::len), Some(2));
    let next = first["response_metadata"]["next_cursor"].clone();
    let last = page(next).await;
    assert_eq!(
        (&last["members"], &last["response_metadata"]["next_cursor"]),
        (&json!(["U0SECOND1"]), &json!(""))
    );
    assert_eq!(page(json!("nonsense")).await["error"], "invalid_cursor");
    let many = json!({"channel": CHANNEL, "limit": 1000});
    assert_eq!(
        call(&slack, "conversations.members", &many).await["error"],
        "invalid_limit"
    );

    slack.set_user_group("S0614TZR7", &[PERSON]);
    let group = json!({"usergroup": "S0614TZR7"});
    assert_eq!(
        call(&slack, "usergroups.users.list", &group).await["users"],
        json!([PERSON])
    );
    let listed = call(&slack, "usergroups.list", &json!({"include_users": true})).await;
    assert_eq!(listed["usergroups"][0]["users"], json!([PERSON]));
    slack.disable_user_group("S0614TZR7");
    assert_eq!(
        call(&slack, "usergroups.users.list", &group).await["error"],
        "no_such_subteam"
    );
    slack.downgrade();
    assert_eq!(
        call(&slack, "usergroups.users.list", &group).await["error"],
        "plan_upgrade_required"
    );
    slack.revoke_scope("usergroups:read");
    let missing = call(&slack, "usergroups.users.list", &group).await;
    assert_eq!(
        (&missing["error"], &missing["needed"]),
        (&json!("missing_scope"), &json!("usergroups:read"))
    );
    for _ in 0..19 {
        slack.grant_scope("usergroups:read");
        call(&slack, "usergroups.list", &json!({})).await;
    }
    let busy = call(&slack, "usergroups.list", &json!({})).await;
    assert_eq!(busy["error"], "ratelimited", "twenty a minute");
}

#[tokio::test]
async fn an_account_is_what_the_workspace_says() {
    let slack = workspace().await;
    for (standing, key) in [
        (Standing::Bot, "is_bot"),
        (Standing::Guest, "is_restricted"),
        (Standing::GuestOfOneChannel, "is_ultra_restricted"),
        (Standing::Stranger, "is_stranger"),
        (Standing::Invited, "is_invited_user"),
        (Standing::Deactivated, "deleted"),
    ] {
        slack.change_user(PERSON, |user| user.standing = standing);
        let found = call(&slack, "users.info", &json!({"user": PERSON})).await;
        assert_eq!(found["user"][key], true, "{found}");
    }
    slack.change_user(PERSON, |user| user.standing = Standing::OfAnotherTeam);
    slack.revoke_scope("users:read.email");
    let found = call(&slack, "users.info", &json!({"user": PERSON})).await;
    assert_ne!(found["user"]["team_id"], TEAM);
    assert!(found["user"]["profile"]["email"].is_null(), "{found}");
}
