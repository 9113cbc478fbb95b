//! The scripted model and the counting tool.

use serde_json::{Value, json};

use super::PATIENCE;
use crate::support::fake_model::{FakeModel, Turn};
use crate::support::fake_tool::FakeTool;
use crate::support::fault::Fault;
use crate::support::loopback;

async fn ask(model: &FakeModel, messages: Value) -> (u16, Value) {
    let url = format!("{}/chat/completions", model.base_url);
    let body = json!({"model": "any", "messages": messages});
    let answer = loopback::client().post(url).json(&body).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn the_turn_is_counted_from_the_request() {
    let model = FakeModel::start().await;
    let two = vec![
        ("pay".to_owned(), json!({"amount": 1})),
        ("pay".to_owned(), json!({"amount": 2})),
    ];
    model.script(
        "invoice",
        vec![
            Turn::Calls(two),
            Turn::text("paid"),
            Turn::Raw(json!({"choices": []})),
        ],
    );
    model.script("", vec![Turn::call("noop", json!({}))]);
    let user = json!({"role": "user", "content": "pay the invoice"});
    let (_, first) = ask(&model, json!([user])).await;
    let mut said = first["choices"][0]["message"].clone();
    assert_eq!(said["tool_calls"][1]["function"]["arguments"], "{\"amount\":2}");
    assert_eq!(first["choices"][0]["finish_reason"], "tool_calls");
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "ok"});
    let (a, b) = (result("call_0_0"), result("call_0_1"));
    let (_, second) = ask(&model, json!([user, said, b, a])).await;
    assert_eq!(second["choices"][0]["message"]["content"], "paid");
    let (_, other) = ask(&model, json!([{"role": "user", "content": "something else"}])).await;
    assert_eq!(
        other["choices"][0]["message"]["tool_calls"][0]["function"]["name"],
        "noop"
    );

    for (history, expected) in [
        (json!([user, a]), "does not follow its tool call"),
        (json!([user, said, a]), "has no result"),
        (json!([user, said, a, user, b]), "has no result before it"),
        (json!([user, said, a, b, said, a, b]), "duplicate tool call id"),
        (json!([]), "at least one message"),
    ] {
        let (status, refusal) = ask(&model, history).await;
        let text = refusal["error"]["message"].as_str().unwrap();
        assert!(
            status == 400 && text.contains(expected),
            "{text} lacks {expected}"
        );
    }
    said["tool_calls"][0]["function"]["arguments"] = json!("{\"amount\":");
    assert_eq!(ask(&model, json!([user, said, a, b])).await.0, 400);
    model.fail_next(Fault::text(500, "busy"));
    let url = format!("{}/chat/completions", model.base_url);
    assert_eq!(
        loopback::client()
            .post(url)
            .json(&json!({}))
            .send()
            .await
            .unwrap()
            .status(),
        500
    );
    assert_eq!(
        model.wait_for_requests(10, PATIENCE).await.len(),
        model.requests().len()
    );
}

#[tokio::test]
async fn a_tool_counts_even_what_it_does_not_answer() {
    let tool = FakeTool::start().await;
    tool.answer("/refund", 422, json!({"error": "closed"}));
    tool.fail_next("/pay", Fault::cut().after_effect());
    let pay = || {
        let request = loopback::client()
            .post(tool.url("/pay"))
            .header("idempotency-key", "permit-1");
        request.json(&json!({"amount": 5})).send()
    };
    let lost = match pay().await {
        Ok(answer) => answer.bytes().await.is_err(),
        Err(_) => true,
    };
    assert!(lost);
    let calls = tool.wait_for_calls("/pay", 1, PATIENCE).await;
    assert_eq!((calls.len(), calls[0].method.as_str()), (1, "POST"));
    assert_eq!(
        (
            calls[0].body["amount"].clone(),
            calls[0].idempotency_key.as_deref()
        ),
        (json!(5), Some("permit-1"))
    );
    assert_eq!(
        pay().await.unwrap().json::<Value>().await.unwrap(),
        json!({"ok": true})
    );
    assert_eq!(tool.calls("/pay").len(), 2);
    assert_eq!(
        loopback::client()
            .get(tool.url("/refund"))
            .send()
            .await
            .unwrap()
            .status(),
        422
    );
}
