//! Jobs through the gate: a run parks on a call that needs a person, holds no worker while it waits, and goes on with
//! exactly the call that the person saw; killed at any moment, it pays once.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::fake_model::{FakeModel, Turn};
use crate::support::fake_slack;
use crate::support::fake_tool::FakeTool;
use crate::support::fault::{Door, Fault};
use crate::support::people::{DANA, NOOR};
use crate::support::program::Program;
use crate::support::world::{Plan, SOON, Storage, World};

on_every_store!(
    a_parked_job_pays_exactly_what_was_approved,
    a_rejected_job_hears_who_and_why_and_pays_nothing,
    killed_before_the_click_it_pays_once,
    killed_while_the_tool_runs_it_asks_a_person,
);

const PIECE: &str = "name: pay
description: Pays
initial_movement: pay
max_movements: 3
movements:
  - name: pay
    instruction: Pay what the user says.
    allowed_tools: [oa__purchase_pay, desk__pay, look]
";

/// The model, the endpoint, and a plan of a world that uses both with this many workers.
async fn plan(storage: Storage, workers: u32) -> (FakeModel, FakeTool, Plan) {
    let (model, tool) = (FakeModel::start().await, FakeTool::start().await);
    let entry = |name: &str, path: &str| {
        format!(
            "    - {{ name: {name}, description: Pays, parameters: {{ type: object, properties: {{ amount: {{ type: number }} }} }}, \
             http: {{ method: POST, url: \"{}\" }} }}\n",
            tool.url(path)
        )
    };
    let tools = [
        entry("oa__purchase_pay", "/pay"),
        entry("desk__pay", "/desk"),
        entry("look", "/look"),
    ];
    let sections = format!(
        "    - {{ name: look, tools: [look], effect: allow }}\njob: {{ workers: {workers}, lease: 5s }}\nagent:\n  \
         model: {{ base_url: \"{}\", model: any, api_key: model-key-0123456789 }}\n  pieces: ./pieces\n  tools:\n{}",
        model.base_url,
        tools.concat(),
    );
    let plan = Plan::on(storage).file("pieces/pay.yaml", PIECE).with(&sections);
    (model, tool, plan)
}

/// A turn whose arguments are exactly this text.
fn exact_call(name: &str, arguments: &str) -> Turn {
    Turn::Raw(json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "any",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": null,
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}],
        }}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }))
}

fn complete(status: &str) -> Turn {
    Turn::call("complete", json!({"status": status, "result": "that is all"}))
}

async fn submit(world: &World, input: &str) -> String {
    let (status, job) = world
        .api("build-agent")
        .post("/api/jobs", &json!({"piece": "pay", "input": input}))
        .await;
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

/// The request on which the job is parked.
async fn parked(world: &World, job: &str) -> String {
    let job = until_job(world, job, "waiting_human").await;
    assert_eq!(job["wait_reason"], "tool_approval", "{job}");
    let request = job["confirmation_ids"].as_array().unwrap().last().unwrap();
    request.as_str().unwrap().to_owned()
}

async fn a_parked_job_pays_exactly_what_was_approved(storage: Storage) {
    let (model, tool, plan) = plan(storage, 2).await;
    let world = plan.start().await;
    let arguments = r#"{"payee":"ACME GmbH","amount":60000.10,"exact":123456789012345678901.05}"#;
    model.script(
        "",
        vec![exact_call("oa__purchase_pay", arguments), complete("success")],
    );
    let job = submit(&world, "pay it").await;
    let request = parked(&world, &job).await;
    let (card, _) = world.cards(&request).await;
    assert!(card.current().visible_text().contains("123456789012345678901.05"));
    assert!(tool.calls("/pay").is_empty(), "nothing before the click");
    assert_eq!(model.requests().len(), 1);

    let begun = std::time::Instant::now();
    let pressed = world.slack.click(&card, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    let calls = tool.wait_for_calls("/pay", 1, SOON).await;
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "within the same second: {:?}",
        begun.elapsed()
    );
    let ended = until_job(&world, &job, "completed").await;
    assert_eq!(ended["result"], "that is all");
    world.both_settled(&request, "Dana Kim", "Dana Kim").await;

    assert_eq!(tool.calls("/pay").len(), 1);
    assert_eq!(
        calls[0].text,
        r#"{"amount":60000.1,"exact":123456789012345678901.05,"payee":"ACME GmbH"}"#
    );
    let consumed = world.audit("permit.consumed").await;
    assert_eq!(consumed.len(), 1);
    assert_eq!(
        consumed[0]["data"]["permit"].as_str(),
        calls[0].idempotency_key.as_deref()
    );
    let shown = world.request(&request).await;
    assert!(
        shown["resumed_at"].is_string() && shown["executed_at"].is_string(),
        "{shown}"
    );
    assert_eq!(shown["outcome"]["status"], "succeeded");
    assert_eq!(
        model.requests().len(),
        2,
        "the model is not asked to remember the call"
    );
    for kind in ["job.parked", "job.resumed", "tool.executed"] {
        assert_eq!(world.audit(kind).await.len(), 1, "{kind}");
    }
    world.verify().await;
}

async fn a_rejected_job_hears_who_and_why_and_pays_nothing(storage: Storage) {
    let (model, tool, plan) = plan(storage, 2).await;
    let world = plan.start().await;
    model.script(
        "",
        vec![
            Turn::call("oa__purchase_pay", json!({"amount": 60_000})),
            complete("aborted"),
        ],
    );
    let job = submit(&world, "pay it").await;
    let request = parked(&world, &job).await;
    let (_, card) = world.cards(&request).await;
    let pressed = world.feishu.click(&card, "reject", NOOR.feishu);
    let clicked = pressed.post(&world.callback("finance-feishu")).await;
    assert!(clicked.toast.unwrap().is_some() && clicked.card_replaced);
    until_job(&world, &job, "aborted").await;
    let heard = model.requests().pop().unwrap();
    let heard = heard["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(heard.contains("Noor Haddad"), "{heard}");
    assert!(tool.calls("/pay").is_empty());
    assert!(world.audit("permit.consumed").await.is_empty());
}

/// One worker and a thousand jobs that wait for people: the next job runs at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_parked_jobs_hold_no_worker() {
    let (model, tool, plan) = plan(Storage::Sqlite, 1).await;
    let world = plan.start().await;
    model.script(
        "quick",
        vec![Turn::call("look", json!({"amount": 1})), complete("success")],
    );
    model.script(
        "",
        vec![
            Turn::call("desk__pay", json!({"amount": 60_000})),
            complete("success"),
        ],
    );
    for _ in 0..20 {
        let submits = (0..50).map(|_| submit(&world, "wait"));
        futures_util::future::join_all(submits).await;
    }
    let waiting = async || {
        let (_, events) = world
            .api("audit")
            .get_text("/api/audit/export?kind=job.parked")
            .await;
        events.lines().count()
    };
    let begun = std::time::Instant::now();
    while waiting().await < 1_000 {
        assert!(
            begun.elapsed() < Duration::from_mins(2),
            "{} parked",
            waiting().await
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let begun = std::time::Instant::now();
    let quick = submit(&world, "quick").await;
    until_job(&world, &quick, "completed").await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(tool.calls("/look").len(), 1);
    assert!(tool.calls("/desk").is_empty());
}

async fn killed_before_the_click_it_pays_once(storage: Storage) {
    let (model, tool, plan) = plan(storage, 2).await;
    let world = plan.without_server().await;
    let mut program = Program::start(world.place.clone(), &world.config, &[]).await;
    model.script(
        "",
        vec![
            Turn::call("oa__purchase_pay", json!({"amount": 60_000})),
            complete("success"),
        ],
    );
    let job = submit(&world, "pay it").await;
    let request = parked(&world, &job).await;
    let (card, _) = world.cards(&request).await;
    program.kill_9().await;
    program.restart().await;
    let pressed = world.slack.click(&card, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    // At once again, between the decision and whatever follows from it.
    program.kill_9().await;
    program.restart().await;
    let job = world
        .until("the end", async || {
            let (_, job) = world.api("build-agent").get(&format!("/api/jobs/{job}")).await;
            let unknown = job["wait_reason"] == "outcome_unknown";
            (job["status"] == "completed" || unknown).then_some(job)
        })
        .await;
    // The second kill may have hit the call itself; then a person is asked, and it is not sent again.
    let calls = tool.calls("/pay").len();
    assert!(
        calls == 1 || job["wait_reason"] == "outcome_unknown" && calls <= 1,
        "{calls} {job}"
    );
    assert_eq!(world.slack.messages(fake_slack::CHANNEL).len(), 1);
    world.verify().await;
}

async fn killed_while_the_tool_runs_it_asks_a_person(storage: Storage) {
    let (model, tool, plan) = plan(storage, 2).await;
    let world = plan.without_server().await;
    let mut program = Program::start(world.place.clone(), &world.config, &[]).await;
    model.script(
        "",
        vec![
            Turn::call("oa__purchase_pay", json!({"amount": 60_000})),
            complete("success"),
        ],
    );
    let job = submit(&world, "pay it").await;
    let request = parked(&world, &job).await;
    let (card, _) = world.cards(&request).await;
    let door = Door::closed();
    tool.fail_next("/pay", Fault::held(&door));
    let pressed = world.slack.click(&card, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    tool.wait_for_calls("/pay", 1, SOON).await;
    program.kill_9().await;
    program.restart().await;
    let waiting = until_job(&world, &job, "waiting_human").await;
    assert_eq!(waiting["wait_reason"], "outcome_unknown", "{waiting}");
    let path = format!("/api/jobs/{job}/answer");
    let answer = json!({"answer": "done"});
    let (status, refused) = world.api("build-agent").post(&path, &answer).await;
    assert!(
        [403, 409].contains(&status),
        "the agent does not say what happened: {status} {refused}"
    );
    let (status, taken) = world.api("dana-cli").post(&path, &answer).await;
    assert_eq!(status, 200, "{taken}");
    until_job(&world, &job, "completed").await;
    assert_eq!(tool.calls("/pay").len(), 1, "it is not sent again");
    door.open();
}
