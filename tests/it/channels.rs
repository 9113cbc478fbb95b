//! The real adapters on the fake platforms: what they lay out is accepted at the first try, whatever an agent wrote, and
//! what the platform sends back is read.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use gatepost_channel::{
    Actions, Asks, ButtonToken, Card, Channel, Click, Decision, Fact, HttpAnswer, Inert, Means, MessageRef,
    Opened, PostKey, Posted, RawRequest, Refusal, Reply, ReplyTone, Secret, Tone, UtcMillis, Verified, Words,
};
use gatepost_feishu::{CallbackSecrets, FeishuApp, FeishuAppConfig, FeishuChannel, FeishuConfig, Mode};
use gatepost_slack::{SlackChannel, SlackConfig};
use serde_json::json;

use crate::support::fake_feishu::{self, Api, FakeFeishu, Person};
use crate::support::fake_slack::{self, FakeSlack, User};
use crate::support::loopback::{self, Server};
use crate::support::platform_request::PlatformRequest;

const TOKEN: [u8; 16] = [0xa5; 16];

fn words() -> Words {
    Words {
        approve: "Approve".to_owned(),
        reject: "Reject".to_owned(),
        show_everything: "Show everything".to_owned(),
        arguments: "Arguments".to_owned(),
        cut: "{shown} of {total} characters are shown".to_owned(),
        approve_in_full_view: "Approve it where everything can be seen.".to_owned(),
        reason: "Reason".to_owned(),
        reject_with_reason: "Reject with a reason".to_owned(),
        open_console: "Open in the console".to_owned(),
    }
}

fn pending(arguments: &str) -> Card {
    Card {
        request_id: "cr_01hzy3v7k9".to_owned(),
        tone: Tone::Pending,
        risk: None,
        title: "Approval needed".to_owned(),
        preview: "Approval needed: cr_01hzy3v7k9".to_owned(),
        tool: Inert::new(arguments),
        facts: vec![
            Fact {
                label: "Agent".to_owned(),
                value: Inert::new(arguments),
            },
            Fact {
                label: "Until".to_owned(),
                value: Inert::new("2026-11-29 12:02 UTC"),
            },
        ],
        arguments: Inert::new(arguments).into(),
        actions: Actions::Decide {
            token: ButtonToken::new(TOKEN),
            revision: 2,
            approve_when_cut: false,
            full_view: Some("https://gate.example.com/console/requests/cr_01hzy3v7k9".to_owned()),
            asks: Asks::default(),
        },
        words: words(),
        set: None,
    }
}

fn settled(arguments: &str) -> Card {
    Card {
        tone: Tone::Approved,
        title: "Approved".to_owned(),
        actions: Actions::None,
        ..pending(arguments)
    }
}

/// What agents write by accident or in order to deceive.
fn hostile() -> Vec<String> {
    let table = "| id | amount |\n|---|---|\n| 1 | 10.00 |\n\n";
    vec![
        String::new(),
        "{\"amount\": 5}".to_owned(),
        "<at id=all></at> <!channel> <@U024BE7LH> @here".to_owned(),
        "`; [Approve](https://evil.example) ![x](img) *b* :white_check_mark: \u{202e}oot".to_owned(),
        table.repeat(9),
        "step: copy && verify\n".repeat(600),
        "\"\\\n".repeat(4000),
        "批".repeat(20_000),
        "👩‍👩‍👧‍👦".repeat(4_000),
        "\u{7f}\u{0}\u{85}\u{2028}".repeat(2_000),
    ]
}

fn verified(
    channel: &dyn Channel,
    request: &PlatformRequest,
    now: UtcMillis,
) -> Result<Verified<Click>, Refusal> {
    let headers = request
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), value.clone().into_bytes()))
        .collect();
    let raw = RawRequest {
        headers,
        body: request.body.clone(),
    };
    match Verified::check(channel.webhook().expect("a webhook"), &raw, now)?.open() {
        Opened::Click(click) => Ok(*click),
        Opened::Command(command) => panic!("no click: {command:?}"),
        Opened::Ask(ask) => panic!("no click: {ask:?}"),
        Opened::Answered { answer, ignored } => panic!("no click: {answer:?} {ignored:?}"),
    }
}

fn stands_at(posted: Posted) -> MessageRef {
    match posted {
        Posted::At(place) => place,
        other => panic!("not posted: {other:?}"),
    }
}

/// The adapter on this fake.
pub(crate) fn slack_channel(slack: &FakeSlack) -> SlackChannel {
    let config = SlackConfig {
        name: "ops-slack".to_owned(),
        base_url: slack.base_url.clone(),
        bot_token: Secret::new(fake_slack::BOT_TOKEN).unwrap(),
        mode: gatepost_slack::Mode::Webhook {
            signing_secrets: vec![Secret::new(fake_slack::SIGNING_SECRET).unwrap()],
        },
        channel: fake_slack::CHANNEL.to_owned(),
        app_id: Some(fake_slack::APP.to_owned()),
        teams: vec![fake_slack::TEAM.to_owned()],
    };
    let means = Means {
        http: loopback::client(),
        now: Arc::new(|| UtcMillis(0)),
        chance: Arc::new(|bytes| bytes.fill(0)),
    };
    SlackChannel::new(&config, loopback::client(), &means).unwrap()
}

#[tokio::test]
async fn slack_accepts_every_card_and_its_clicks_are_read() {
    let slack = FakeSlack::start().await;
    slack.limit_rate(false);
    slack.add_user(User::new("U024BE7LH", "dana@example.com"));
    let channel = slack_channel(&slack);
    let health = channel.check().await;
    assert!(health.healthy, "{}", health.detail);

    for (index, arguments) in hostile().iter().enumerate() {
        let card = pending(arguments);
        let at = stands_at(channel.post(&card, &PostKey(format!("d{index}"))).await);
        assert_eq!(
            slack.calls("chat.postMessage").len(),
            index + 1,
            "accepted at the first try: {index}"
        );
        let message = slack.messages(&at.chat).pop().unwrap();
        assert_eq!(message.ts, at.message);
        let can_approve = message.current().action_ids().contains(&"approve".to_owned());
        assert_eq!(
            can_approve,
            channel.shows_all(&card),
            "Approve stands exactly where all is shown: {index}"
        );

        let press = slack.click(&message, "reject", "U024BE7LH");
        let now = UtcMillis(slack.clock().now_ms());
        let click = verified(&channel, &press.request(), now).unwrap();
        let click = click.get();
        assert_eq!(
            (click.decision, &click.message, &click.chat),
            (Decision::Reject, &at.message, &at.chat)
        );
        let button = click.button.expect("a value of ours");
        assert_eq!((button.token.as_bytes(), button.revision), (&TOKEN, 2));
        let again = slack.click(&message, "reject", "U024BE7LH").request();
        assert_ne!(
            verified(&channel, &again, now).unwrap().get().replay_key,
            click.replay_key
        );
        assert!(verified(&channel, &press.clone().forged().request(), now).is_err());
        assert!(verified(&channel, &press.aged(Duration::from_secs(301)).request(), now).is_err());

        channel.edit(&at, &settled(arguments)).await.unwrap();
        assert_eq!(
            slack.calls("chat.update").len(),
            index + 1,
            "edited at the first try: {index}"
        );
        assert!(
            slack
                .messages(&at.chat)
                .pop()
                .unwrap()
                .current()
                .action_ids()
                .is_empty()
        );
    }
    let notice = channel.private_notice().expect("Slack has private notices");
    notice
        .tell(
            "U024BE7LH",
            fake_slack::CHANNEL,
            &Inert::new("You may not decide this."),
        )
        .await
        .unwrap();
    assert_eq!(slack.ephemerals().len(), 1);
}

/// The adapter on this fake.
pub(crate) fn feishu_channel(feishu: &FakeFeishu) -> FeishuChannel {
    let app = FeishuAppConfig {
        base_url: feishu.base_url.clone(),
        app_id: fake_feishu::APP.to_owned(),
        app_secret: Secret::new(fake_feishu::APP_SECRET).unwrap(),
    };
    let secret = |text: &str| Some(Secret::new(text).unwrap());
    let secrets = CallbackSecrets::new(
        secret(fake_feishu::ENCRYPT_KEY),
        secret(fake_feishu::VERIFICATION_TOKEN),
    )
    .unwrap();
    let config = FeishuConfig {
        name: "finance-feishu".to_owned(),
        chat_id: fake_feishu::CHAT.to_owned(),
        tenants: vec![fake_feishu::TENANT.to_owned()],
        mode: Mode::Webhook(secrets),
    };
    let clock = feishu.clock().clone();
    let app = FeishuApp::new(
        loopback::client(),
        Arc::new(move || UtcMillis(clock.now_ms())),
        app,
    )
    .unwrap();
    FeishuChannel::new(app, config).unwrap()
}

/// Answers each click with a toast and the settled card, as the callback route will.
async fn answer(State(channel): State<Arc<FeishuChannel>>, headers: HeaderMap, body: Bytes) -> Response {
    let headers = headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
        .collect();
    let raw = RawRequest {
        headers,
        body: body.to_vec(),
    };
    let webhook = channel.webhook().expect("a webhook");
    let now = crate::support::clock::Clock::running().now_ms();
    let answer = match Verified::check(webhook, &raw, UtcMillis(now)).map(Verified::open) {
        Ok(Opened::Click(click)) => {
            let text = Inert::new("approved by Dana");
            webhook.answer(
                click.get(),
                &Reply {
                    refused: false,
                    field: gatepost_channel::Field::Answer,
                    tone: ReplyTone::Success,
                    text,
                    card: Some(settled("x")),
                },
            )
        }
        Ok(Opened::Command(command)) => panic!("no click: {command:?}"),
        Ok(Opened::Ask(ask)) => panic!("nobody asks here: {ask:?}"),
        Ok(Opened::Answered { answer, .. }) => answer,
        Err(_) => HttpAnswer {
            status: 401,
            content_type: None,
            body: Vec::new(),
        },
    };
    let mut response = Response::builder().status(answer.status);
    if let Some(kind) = answer.content_type {
        response = response.header("content-type", kind);
    }
    response.body(Body::from(answer.body)).unwrap()
}

#[tokio::test]
async fn feishu_accepts_every_card_and_shows_every_answer() {
    let feishu = FakeFeishu::start().await;
    feishu.limit_rate(false);
    feishu.add_person(Person::new("ou_7d8a6e", "dana@example.com"));
    let channel = Arc::new(feishu_channel(&feishu));
    let health = channel.check().await;
    assert!(health.healthy, "{}", health.detail);
    let router = Router::new()
        .route("/", post(answer))
        .with_state(Arc::clone(&channel));
    let callback = Server::start(router).await;

    for (index, arguments) in hostile().iter().enumerate() {
        let card = pending(arguments);
        let at = stands_at(channel.post(&card, &PostKey(format!("d{index}"))).await);
        assert_eq!(
            feishu.calls(Api::Send).len(),
            index + 1,
            "accepted at the first try: {index}"
        );
        let message = feishu.messages(&at.chat).pop().unwrap();
        assert_eq!(message.id, at.message);
        let can_approve = message.decisions().contains(&"approve".to_owned());
        assert_eq!(
            can_approve,
            channel.shows_all(&card),
            "Approve stands exactly where all is shown: {index}"
        );

        let press = feishu.click(&message, "reject", "ou_7d8a6e");
        let now = UtcMillis(feishu.clock().now_ms());
        let click = verified(&*channel, &press.request(), now).unwrap();
        let click = click.get();
        assert_eq!(
            (click.decision, &click.message, &click.chat),
            (Decision::Reject, &at.message, &at.chat)
        );
        assert_eq!(click.button.map(|button| button.revision), Some(2));
        let clicked = press.post(&callback.url("/")).await;
        assert!(
            clicked.card_replaced && clicked.toast.is_ok_and(|toast| toast.is_some()),
            "{index}"
        );
        let refused = feishu.click_revision(&message, 0, "reject", "ou_7d8a6e").forged();
        assert_eq!(refused.post(&callback.url("/")).await.answered.status, 401);

        channel.edit(&at, &settled(arguments)).await.unwrap();
        assert_eq!(
            feishu.calls(Api::Patch).len(),
            index + 1,
            "edited at the first try: {index}"
        );
        assert!(feishu.messages(&at.chat).pop().unwrap().decisions().is_empty());
    }
    let shaken = feishu.url_verification("c-1").post(&callback.url("/")).await;
    assert_eq!((shaken.status, shaken.json()), (200, json!({"challenge": "c-1"})));
}
