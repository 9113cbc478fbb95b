//! RH-604: whatever goes wrong, no secret and no argument stands in the log of the real program, not even at the loudest
//! level.

use serde_json::json;

use crate::support::fake_feishu::{self, Api as FeishuCall};
use crate::support::fake_slack;
use crate::support::fault::Fault;
use crate::support::people::DANA;
use crate::support::program::Program;
use crate::support::world::{Plan, Storage, secret_of};

const ARGUMENT: &str = "canary-argument-5512";

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_and_no_argument_is_logged() {
    let world = Plan::on(Storage::Sqlite).without_server().await;
    let program = Program::start(world.place.clone(), &world.config, &[("GATEPOST_LOG", "trace")]).await;
    // What a platform answers repeats what it was sent.
    let echo = json!({"ok": false, "error": fake_slack::BOT_TOKEN, "args": ARGUMENT});
    for fault in [
        Fault::answer(401, &echo),
        Fault::cut(),
        Fault::text(500, fake_slack::BOT_TOKEN),
        Fault::answer(200, &echo),
    ] {
        world.slack.fail_next("chat.postMessage", fault);
    }
    let echo = json!({"code": 99_991_663, "msg": format!("{} {ARGUMENT}", fake_feishu::APP_SECRET)});
    world
        .feishu
        .fail_next(FeishuCall::Token, Fault::answer(400, &echo));
    world
        .feishu
        .fail_next(FeishuCall::Send, Fault::answer(400, &echo));
    for n in 0..4 {
        let args = json!({"n": n, "text": ARGUMENT, "card": {"number": ARGUMENT}});
        world.ask_for("card__charge", args).await;
    }
    let id = world.ask_for("t__x", json!({"text": ARGUMENT})).await;
    let card = world.slack_card(&id).await;
    let press = world.slack.click(&card, "approve", DANA.slack);
    press.clone().forged().post(&world.callback("ops-slack")).await;
    press.post(&world.callback("ops-slack")).await;
    let feishu_card = world.feishu_card(&id).await;
    let click = world
        .feishu
        .click_revision(&feishu_card, 0, "approve", DANA.feishu);
    click.post(&world.callback("finance-feishu")).await;
    // Requests that are refused, with secrets where they do not belong.
    let agent = world.api("build-agent");
    agent
        .post_text("/api/confirmations", format!("{{\"tool_name\":\"{ARGUMENT}"))
        .await;
    agent
        .get(&format!("/api/audit?token={}", secret_of("audit")))
        .await;
    world.place.api("canary-wrong-token-0123").get("/api/audit").await;
    world
        .api("build-agent")
        .post(
            "/api/confirmations/cr_0/consume",
            &json!({"tool_name": ARGUMENT, "tool_args": {}}),
        )
        .await;
    // The platform goes away altogether.
    let (slack, feishu) = (world.slack.base_url.clone(), world.feishu.base_url.clone());
    let api = world.api("audit");
    let (_, metrics) = world.place.api("").get_text("/metrics").await;
    let (_, health) = world.api("admin").get_text("/api/channels").await;
    let (_, events) = api.get_text("/api/audit?limit=1000").await;
    let mut program = program;
    assert!(program.terminate().await.success());
    let log = program.output();
    assert!(log.contains("a callback was refused"), "the log is there: {log}");

    let secrets = [
        fake_slack::BOT_TOKEN,
        fake_slack::SIGNING_SECRET,
        fake_feishu::APP_SECRET,
        fake_feishu::ENCRYPT_KEY,
        fake_feishu::VERIFICATION_TOKEN,
        "canary-wrong-token-0123",
        "xoxb-umbrella-token",
        "not-the-signing-secret",
        "/secret",
        "Bearer ",
        ARGUMENT,
    ];
    for secret in secrets
        .map(str::to_owned)
        .into_iter()
        .chain(["build-agent", "audit", "dana-cli"].map(secret_of))
    {
        let line = log.lines().find(|line| line.contains(&secret));
        assert_eq!(line, None, "{secret} stands in the log");
        assert!(
            !metrics.contains(&secret) && !health.contains(&secret),
            "{secret} stands in metrics or health"
        );
        if secret != ARGUMENT {
            assert!(!events.contains(&secret), "{secret} stands in the audit log");
        }
    }
    assert!(!slack.is_empty() && !feishu.is_empty());
}
