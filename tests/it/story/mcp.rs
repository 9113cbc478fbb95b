//! Tools of an MCP server behind the gate: a real server process that writes down every call. What people approved is what it
//! gets, once; what changed under way is not called; what it left unanswered is asked of a person.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::fake_model::{FakeModel, Turn};
use crate::support::people::DANA;
use crate::support::program::Program;
use crate::support::world::{Plan, Storage, World};

on_every_store!(
    an_approved_call_arrives_once_as_it_was_approved,
    killed_while_it_waits_it_is_called_once,
);

const SERVER: &str = include_str!("../../fixtures/mcp/server.py");
const PIECE: &str = "name: till
initial_movement: pay
movements:
  - name: pay
    instruction: Pay what the user says.
    allowed_tools: [mcp__till__*]
";

async fn plan(storage: Storage, script: Vec<Turn>) -> (FakeModel, Plan) {
    let model = FakeModel::start().await;
    if !script.is_empty() {
        model.script("", script);
    }
    let sections = format!(
        "    - {{ name: free, tools: [mcp__till__echo], effect: allow }}\n    - {{ name: till, tools: [\"mcp__till__*\"], \
         effect: confirm }}\njob: {{ workers: 2, lease: 5s }}\nagent:\n  model: {{ base_url: \"{}\", model: any, api_key: \
         model-key-0123456789 }}\n  pieces: ./pieces\n  tools:\n    - mcp: {{ name: till, command: [python3, till.py, \
         till.log], allow: [echo], timeout: 15s }}\n",
        model.base_url
    );
    let plan = Plan::on(storage)
        .file("pieces/till.yaml", PIECE)
        .file("till.py", SERVER)
        .with(&sections);
    (model, plan)
}

fn complete() -> Turn {
    Turn::call("complete", json!({"status": "success", "result": "that is all"}))
}

async fn submit(world: &World) -> String {
    let body = json!({"piece": "till", "input": "pay it"});
    let (status, job) = world.api("build-agent").post("/api/jobs", &body).await;
    assert_eq!(status, 201, "{job}");
    job["id"].as_str().unwrap().to_owned()
}

async fn until_job(world: &World, id: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    let (agent, path) = (world.api("build-agent"), format!("/api/jobs/{id}"));
    world
        .until(what, async || {
            let (_, job) = agent.get(&path).await;
            is(&job).then_some(job)
        })
        .await
}

/// The request on which the job is parked.
async fn parked(world: &World, job: &str) -> String {
    let job = until_job(world, job, "the job to park", |job| {
        job["status"] == "waiting_human"
    })
    .await;
    assert_eq!(job["wait_reason"], "tool_approval", "{job}");
    let request = job["confirmation_ids"].as_array().unwrap().last().unwrap();
    request.as_str().unwrap().to_owned()
}

async fn approve(world: &World, request: &str) -> String {
    let card = world.slack_card(request).await;
    let seen = card.current().visible_text();
    let pressed = world.slack.click(&card, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    seen
}

/// The calls as the server got them.
fn calls(world: &World, tool: &str) -> Vec<String> {
    let log = std::fs::read_to_string(world.place.file("till.log")).unwrap_or_default();
    let named = format!("\"name\":\"{tool}\"");
    log.lines()
        .filter(|line| line.contains(&named))
        .map(str::to_owned)
        .collect()
}

fn last_told(model: &FakeModel) -> String {
    let asked = model.requests().pop().unwrap();
    asked["messages"].as_array().unwrap().last().unwrap().to_string()
}

async fn an_approved_call_arrives_once_as_it_was_approved(storage: Storage) {
    let script = vec![
        Turn::call("mcp__till__echo", json!({"free": true})),
        Turn::call("mcp__till__pay", json!({"amount": "much"})),
        Turn::call(
            "mcp__till__pay",
            json!({"payee": "ACME GmbH", "amount": 60_000.1}),
        ),
        complete(),
    ];
    let (model, plan) = plan(storage, script).await;
    let world = plan.start().await;
    let job = submit(&world).await;
    let request = parked(&world, &job).await;
    assert_eq!(
        calls(&world, "echo").len(),
        1,
        "what policy and operator allow runs at once"
    );
    assert!(calls(&world, "pay").is_empty(), "nothing before the click");
    let told = last_told(&model);
    assert!(
        told.contains("`/amount` must be of type number"),
        "nobody is asked about a misfit: {told}"
    );
    assert_eq!(world.request(&request).await["tool_name"], "mcp__till__pay");
    let seen = approve(&world, &request).await;
    assert!(seen.contains("ACME GmbH") && seen.contains("60000.1"), "{seen}");
    let ended = until_job(&world, &job, "the end", |job| job["status"] == "completed").await;
    assert_eq!(ended["result"], "that is all");
    let calls = calls(&world, "pay");
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert!(
        calls[0].contains(r#""arguments":{"amount":60000.1,"payee":"ACME GmbH"}"#),
        "{calls:?}"
    );
    let consumed = world.audit("permit.consumed").await;
    let permit = consumed[0]["data"]["permit"].as_str().unwrap();
    assert!(
        calls[0].contains(&format!("\"gatepost/permit\":\"{permit}\"")),
        "{calls:?}"
    );
    assert!(last_told(&model).contains("paid"));
    assert_eq!(world.request(&request).await["outcome"]["status"], "succeeded");
    world.verify().await;
}

async fn killed_while_it_waits_it_is_called_once(storage: Storage) {
    let script = vec![
        Turn::call(
            "mcp__till__pay",
            json!({"amount": 60_000, "payee": "canary-of-the-argument"}),
        ),
        complete(),
    ];
    let (_model, plan) = plan(storage, script).await;
    let world = plan.without_server().await;
    // What the library that speaks the protocol would say of its messages is never written down.
    let mut program = Program::start(
        world.place.clone(),
        &world.config,
        &[
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("GATEPOST_LOG", "gatepost=debug,rmcp=trace"),
        ],
    )
    .await;
    let job = submit(&world).await;
    let request = parked(&world, &job).await;
    world.cards(&request).await;
    program.kill_9().await;
    program.restart().await;
    approve(&world, &request).await;
    until_job(&world, &job, "the end", |job| job["status"] == "completed").await;
    assert_eq!(calls(&world, "pay").len(), 1);
    let began = std::time::Instant::now();
    assert!(program.terminate().await.success());
    assert!(
        began.elapsed() < Duration::from_secs(6),
        "a stop waits for no call that nobody makes"
    );
    let output = program.output();
    assert!(output.contains("an MCP server named its tools"), "{output}");
    assert!(!output.contains("canary-of-the-argument"), "{output}");
    program.restart().await;
    world.verify().await;
}

/// The server describes the tool otherwise while people think about the call, and does not say so.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_changed_after_the_question_is_not_called() {
    let script = vec![
        Turn::call("mcp__till__pay", json!({"amount": 60_000})),
        complete(),
    ];
    let (model, plan) = plan(Storage::Sqlite, script).await;
    let world = plan.start().await;
    let job = submit(&world).await;
    let request = parked(&world, &job).await;
    world.place.write("till.log.pay", "Pays, and tells a friend");
    approve(&world, &request).await;
    until_job(&world, &job, "the end", |job| job["status"] == "completed").await;
    assert!(calls(&world, "pay").is_empty());
    assert!(world.audit("permit.consumed").await.is_empty());
    let denied = world.audit("call.denied").await;
    let denied = &denied.last().unwrap()["data"];
    assert_eq!(
        (&denied["reason_code"], &denied["why"]),
        (&json!("gate_error"), &json!("tool_changed"))
    );
    let told = last_told(&model);
    assert!(
        told.contains("gate_error") && told.contains("the server changed the tool"),
        "{told}"
    );
    world.verify().await;
}

/// The server dies of an approved call: nobody knows whether it was carried out, so a person is asked and it is not sent again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_in_an_approved_call_leaves_it_to_a_person() {
    let script = vec![Turn::call("mcp__till__die", json!({})), complete()];
    let (_model, plan) = plan(Storage::Sqlite, script).await;
    let world = plan.start().await;
    let job = submit(&world).await;
    let request = parked(&world, &job).await;
    approve(&world, &request).await;
    let unknown = |job: &Value| job["wait_reason"] == "outcome_unknown";
    until_job(&world, &job, "the question", unknown).await;
    assert_eq!(calls(&world, "die").len(), 1);
    let path = format!("/api/jobs/{job}/answer");
    let (status, taken) = world
        .api("dana-cli")
        .post(&path, &json!({"answer": "done"}))
        .await;
    assert_eq!(status, 200, "{taken}");
    until_job(&world, &job, "the end", |job| job["status"] == "completed").await;
    assert_eq!(calls(&world, "die").len(), 1, "it is not sent again");
    world.verify().await;
}

/// A server that is down keeps nothing from starting, and the model hears that its tools are missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_holds_up_nothing_else() {
    let (model, plan) = plan(Storage::Sqlite, vec![complete()]).await;
    let world = plan.file("till.py", "raise SystemExit(3)").start().await;
    let job = submit(&world).await;
    until_job(&world, &job, "the end", |job| job["status"] == "completed").await;
    let asked = model.requests().pop().unwrap();
    assert!(!asked["tools"].to_string().contains("mcp__till__"), "{asked}");
    let told = asked["messages"].to_string();
    assert!(told.contains("their tools are missing: till"), "{told}");
}

/// RH-405: a sub-task reaches the tool of a server through the same gate as any other run.
#[tokio::test(flavor = "multi_thread")]
async fn a_sub_task_asks_as_everybody_does() {
    let (model, plan) = plan(Storage::Sqlite, Vec::new()).await;
    let pay = Turn::call("mcp__till__pay", json!({"amount": 7}));
    model.script("for the child", vec![pay, complete()]);
    let spawn = json!({"piece": "till", "input": "for the child"});
    let parent = [
        Turn::call("spawn_subtask", spawn),
        Turn::call("wait_subtasks", json!({})),
        complete(),
    ];
    model.script("", parent.into());
    let world = plan.start().await;
    let parent = submit(&world).await;
    let request = world
        .until("the question of the child", async || {
            let (_, list) = world
                .api("dana-cli")
                .get("/api/confirmations?status=pending")
                .await;
            list["items"][0]["id"].as_str().map(str::to_owned)
        })
        .await;
    assert!(calls(&world, "pay").is_empty(), "nothing before the click");
    assert_eq!(world.request(&request).await["tool_name"], "mcp__till__pay");
    approve(&world, &request).await;
    until_job(&world, &parent, "the end", |job| job["status"] == "completed").await;
    assert_eq!(calls(&world, "pay").len(), 1);
}
