//! Health, and the advice that comes with it.

use gatepost_channel::Channel as _;
use serde_json::json;

use crate::fake::{Answer, Fake, coded, ok, refusal};

#[tokio::test]
async fn health_says_what_to_do() {
    let bot = |status: u8| {
        coded(
            200,
            &json!({"code": 0, "msg": "ok", "bot": {"activate_status": status}}),
        )
    };
    let group = || ok(&json!({"name": "Approvals", "chat_status": "normal"}));
    for (answers, healthy, word) in [
        (vec![bot(2), ok(&json!({"is_in_chat": true}))], true, "fine"),
        (
            vec![bot(2), ok(&json!({"is_in_chat": false}))],
            false,
            "add the bot",
        ),
        (vec![bot(2), refusal(404, 404), group()], true, "fine"),
        (
            vec![bot(2), refusal(404, 404), refusal(400, 230_002)],
            false,
            "add the bot",
        ),
        (
            vec![bot(2), refusal(400, 99_991_672), refusal(400, 99_991_672)],
            true,
            "cannot be told",
        ),
        (
            vec![refusal(404, 0), refusal(404, 0), refusal(404, 0)],
            true,
            "token is fine",
        ),
        (vec![bot(3)], false, "publish"),
        (vec![refusal(200, 1_000_040_351)], false, "larksuite"),
        (vec![Answer::Drop], false, "temporary"),
    ] {
        let fake = Fake::start(answers).await;
        let health = fake.channel().check().await;
        assert_eq!(health.healthy, healthy, "{}", health.detail);
        assert!(health.detail.contains(word), "{}", health.detail);
    }
    let fake = Fake::start([]).await.tokens([refusal(200, 10_014)]);
    let health = fake.channel().check().await;
    assert!(
        !health.healthy && health.detail.contains("app_secret"),
        "{}",
        health.detail
    );
}
