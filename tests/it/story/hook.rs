//! Hooks in a whole server: a process hook of the configuration rewrites what people are asked about, a command hook of the
//! piece denies, and neither goes around the person.

use serde_json::json;

use crate::support::fake_model::{FakeModel, Turn};
use crate::support::fake_tool::FakeTool;
use crate::support::people::DANA;
use crate::support::world::{Plan, SOON, Storage};

const PIECE: &str = r#"
name: pay
initial_movement: pay
movements:
  - name: pay
    instruction: Pay what the user says.
    allowed_tools: [oa__purchase_pay, desk__pay]
hooks:
  commands:
    - { event: pre_tool_use, tools: ["desk__*"], command: [sh, freeze.sh] }
    - { event: session_start, command: [sh, context.sh] }
"#;

const FREEZE: &str = "echo the desk is frozen >&2; exit 2\n";
const CONTEXT: &str =
    r#"printf '{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"Month end."}}'"#;

/// Caps what is paid, and shouts results.
const REVIEW: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    params = message["params"]
    if message["method"] == "hook.hello":
        result = {"name": "review", "protocol_version": 1}
    elif message["method"] == "hook.before_tool":
        result = {"args": dict(params["args"], amount=min(params["args"]["amount"], 70000))}
    elif message["method"] == "hook.approve_tool":
        result = {"allow": True}
    else:
        result = {"decision": {"action": "modify"}, "result": {"for_llm": "reviewed: " + params["result"]["for_llm"]}}
    print(json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}), flush=True)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn hooks_deny_and_rewrite_and_the_person_sees_the_last_word() {
    let (model, tool) = (FakeModel::start().await, FakeTool::start().await);
    let entry = |name: &str, path: &str| {
        format!(
            "    - {{ name: {name}, description: Pays, parameters: {{ type: object }}, http: {{ method: POST, url: \"{}\" }} }}\n",
            tool.url(path)
        )
    };
    let sections = format!(
        "job: {{ workers: 1, lease: 5s }}\nhooks:\n  defaults: {{ interceptor_timeout_ms: 15000 }}\n  processes:\n    \
         review: {{ command: [python3, review.py], intercept: [before_tool, approve_tool, after_tool] }}\nagent:\n  \
         model: {{ base_url: \"{}\", model: any, api_key: model-key-0123456789 }}\n  pieces: ./pieces\n  tools:\n{}{}",
        model.base_url,
        entry("oa__purchase_pay", "/pay"),
        entry("desk__pay", "/desk"),
    );
    let world = Plan::on(Storage::Sqlite)
        .file("pieces/pay.yaml", PIECE)
        .file("pieces/freeze.sh", FREEZE)
        .file("pieces/context.sh", CONTEXT)
        .file("review.py", REVIEW)
        .with(&sections)
        .start()
        .await;
    model.script(
        "",
        vec![
            Turn::call("desk__pay", json!({"amount": 1})),
            Turn::call("oa__purchase_pay", json!({"amount": 90000})),
            Turn::call("complete", json!({"status": "success", "result": "that is all"})),
        ],
    );
    let agent = world.api("build-agent");
    let (status, job) = agent
        .post("/api/jobs", &json!({"piece": "pay", "input": "pay it"}))
        .await;
    assert_eq!(status, 201, "{job}");
    let path = format!("/api/jobs/{}", job["id"].as_str().unwrap());
    let request = world
        .until("the job to park", async || {
            let (_, job) = agent.get(&path).await;
            (job["status"] == "waiting_human")
                .then(|| job["confirmation_ids"][0].as_str().unwrap().to_owned())
        })
        .await;
    assert_eq!(
        world.request(&request).await["tool_args"],
        json!({"amount": 70000})
    );
    let (card, _) = world.cards(&request).await;
    assert!(card.current().visible_text().contains("70000"));
    let pressed = world.slack.click(&card, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    let calls = tool.wait_for_calls("/pay", 1, SOON).await;
    assert_eq!(calls[0].text, r#"{"amount":70000}"#);
    world
        .until("the job to end", async || {
            (agent.get(&path).await.1["status"] == "completed").then_some(())
        })
        .await;
    assert!(tool.calls("/desk").is_empty());
    let told = model.requests().last().unwrap().to_string();
    for word in ["Month end.", "the desk is frozen", "reviewed: "] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let answers: Vec<String> = world
        .audit("hook.answered")
        .await
        .iter()
        .map(|event| {
            format!(
                "{} {}",
                event["data"]["hook"].as_str().unwrap(),
                event["data"]["answer"].as_str().unwrap()
            )
        })
        .collect();
    for answer in ["sh#0 deny_tool", "review modify", "review continue"] {
        assert!(answers.iter().any(|said| said == answer), "{answer}: {answers:?}");
    }
    world.verify().await;
}
