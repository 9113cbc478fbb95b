//! Operations of an OpenAPI document as tools: reading needs nobody, writing parks until a person decided and arrives once
//! exactly, and arguments that could not be sent reach neither a person nor the API.

use serde_json::{Value, json};

use crate::support::fake_model::{FakeModel, Turn};
use crate::support::fake_tool::FakeTool;
use crate::support::people::DANA;
use crate::support::world::{Plan, SOON, Storage, World};

on_every_store!(
    a_read_runs_at_once_and_a_write_waits_for_a_person,
    arguments_that_cannot_be_sent_reach_nobody,
);

const DOCUMENT: &str = include_str!("../../../examples/openapi/shop.yaml");
const PIECE: &str = "name: shop
description: Keeps the shop
initial_movement: work
max_movements: 3
movements:
  - name: work
    instruction: Do what the user says.
    allowed_tools: [oa__*]
";

/// Policy allows every call of the connector, so that it is the tools' own voice that asks for a person.
async fn world(storage: Storage) -> (FakeModel, FakeTool, World) {
    let (model, tool) = (FakeModel::start().await, FakeTool::start().await);
    let sections = format!(
        "    - {{ name: connector, tools: [\"oa__*\"], effect: allow }}\njob: {{ workers: 2, lease: 5s }}\nagent:\n  \
         model: {{ base_url: \"{}\", model: any, api_key: model-key-0123456789 }}\n  pieces: ./pieces\n  tools:\n    \
         - openapi: {{ name: oa, document: shop.yaml, base_url: \"{}\", exclude: [addPhoto] }}\n",
        model.base_url,
        tool.url("/v1"),
    );
    let plan = Plan::on(storage)
        .file("pieces/shop.yaml", PIECE)
        .file("shop.yaml", DOCUMENT)
        .with(&sections);
    (model, tool, plan.start().await)
}

async fn submitted(world: &World) -> String {
    let body = json!({"piece": "shop", "input": "pay what is open"});
    let (status, job) = world.api("build-agent").post("/api/jobs", &body).await;
    assert_eq!(status, 201, "{job}");
    job["id"].as_str().unwrap().to_owned()
}

async fn until_job(world: &World, id: &str, status: &str) -> Value {
    let agent = world.api("build-agent");
    let path = format!("/api/jobs/{id}");
    world
        .until(&format!("job {status}"), async || {
            let (_, job) = agent.get(&path).await;
            (job["status"] == status).then_some(job)
        })
        .await
}

fn complete() -> Turn {
    Turn::call("complete", json!({"status": "success", "result": "done"}))
}

async fn a_read_runs_at_once_and_a_write_waits_for_a_person(storage: Storage) {
    let (model, tool, world) = world(storage).await;
    let listed = json!({"status": ["open", "paid"], "limit": 5, "X-Request-Source": "the agent"});
    let paid = json!({"orderId": "2026/11 #7", "amount": 120.5, "currency": "EUR"});
    model.script(
        "",
        vec![
            Turn::call("oa__listOrders", listed),
            Turn::call("oa__payOrder", paid),
            complete(),
        ],
    );
    let job = submitted(&world).await;
    let reads = tool.wait_for_calls("/v1/orders", 1, SOON).await;
    assert_eq!(
        (
            reads[0].method.as_str(),
            reads[0].query.as_str(),
            reads[0].text.as_str()
        ),
        ("GET", "status%5B%5D=open&status%5B%5D=paid&limit=5", "")
    );
    let parked = until_job(&world, &job, "waiting_human").await;
    let requests = parked["confirmation_ids"].as_array().unwrap();
    assert_eq!(requests.len(), 1, "nobody was asked about the read");
    let request = requests[0].as_str().unwrap().to_owned();
    let path = "/v1/orders/2026%2F11%20%237/payments";
    assert!(tool.calls(path).is_empty(), "nothing before the click");

    let card = world.slack_card(&request).await;
    let pressed = world.slack.click(&card, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    let calls = tool.wait_for_calls(path, 1, SOON).await;
    until_job(&world, &job, "completed").await;
    assert_eq!(tool.calls(path).len(), 1);
    assert_eq!(calls[0].method, "POST");
    assert_eq!(calls[0].text, r#"{"amount":120.5,"currency":"EUR"}"#);
    let consumed = world.audit("permit.consumed").await;
    assert_eq!(
        consumed[0]["data"]["permit"].as_str(),
        calls[0].idempotency_key.as_deref()
    );
}

async fn arguments_that_cannot_be_sent_reach_nobody(storage: Storage) {
    let (model, tool, world) = world(storage).await;
    model.script(
        "",
        vec![
            Turn::call("oa__payOrder", json!({"orderId": "../../admin", "amount": 1})),
            Turn::call("oa__payOrder", json!({"orderId": "", "amount": 1})),
            Turn::call("oa__payOrder", json!({"orderId": "7", "amount": 0})),
            Turn::call(
                "oa__payOrder",
                json!({"orderId": "7", "amount": 1, "admin": true}),
            ),
            Turn::call("oa__listOrders", json!({"X-Request-Source": "a\r\nX-Admin: 1"})),
            complete(),
        ],
    );
    let job = submitted(&world).await;
    let ended = until_job(&world, &job, "completed").await;
    assert_eq!(ended["confirmation_ids"], json!([]));
    let asked = model.requests().last().unwrap().to_string();
    for why in [
        "`/orderId` cannot be a part of the address",
        "`/amount` is outside the range",
        "`/admin` is not allowed",
        "`/X-Request-Source` cannot be sent in a header",
    ] {
        assert!(asked.contains(why), "{why}");
    }
    assert!(tool.calls("/v1/orders").is_empty());
}
