//! Hooks in a whole server: a process hook of the configuration rewrites what people are asked about, a command hook of the
//! piece denies, and neither goes around the person.

use serde_json::{Value, json};

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

/// Looks at calls from outside: guards a path, wants other arguments for a note, asks for a person for a mail, and writes down
/// what it is told.
const OUTSIDE: &str = r#"
import json, sys
def told(text):
    with open("told.log", "a") as log:
        log.write(text + "\n")
for line in sys.stdin:
    message = json.loads(line)
    params = message["params"]
    method = message["method"]
    if method == "hook.hello":
        result = {"name": "outside", "protocol_version": 1}
    elif method == "hook.event":
        told(params["type"] + " " + str(params["data"]["surface"]))
        result = {}
    elif method == "hook.after_tool":
        told("after " + params["name"] + " " + params["result"]["for_llm"])
        result = {"decision": {"action": "modify"}, "result": {"for_llm": "changed"}}
    elif params["name"] in ("guarded__write", "Write"):
        told("before " + params["name"] + " " + params["metadata"]["surface"])
        result = {"decision": {"action": "deny_tool", "reason": "that path is frozen"}}
    elif params["name"] in ("note__write", "Edit"):
        result = {"decision": {"action": "modify"}, "args": {"text": "other"}}
    else:
        result = {"decision": {"action": "continue"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}), flush=True)
"#;
/// Asks for a person.
const MAIL: &str = r#"printf '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"mail leaves the house"}}'"#;

/// What the hook writes down, among other things.
const TOLD: [&str; 18] = [
    "before guarded__write api",
    "before Write host",
    "tool_exec_skipped api",
    "tool_exec_skipped host",
    "approval_asked api",
    "gateway_start None",
    "channel_lifecycle_initialized None",
    "channel_lifecycle_started None",
    "channel_webhook_registered None",
    "gateway_ready None",
    "channel_message_outbound_queued None",
    "channel_message_outbound_sent None",
    "approval_decided api",
    "tool_exec_start api",
    "tool_exec_end api",
    "tool_exec_end host",
    "after mail__send sent",
    "after Read 12 bytes",
];

#[tokio::test(flavor = "multi_thread")]
async fn calls_from_outside_meet_the_same_hooks() {
    let sections = "hooks:\n  defaults: { interceptor_timeout_ms: 15000, observer_timeout_ms: 15000 }\n  processes:\n    \
         outside: { command: [python3, outside.py], surfaces: [api, host], observe: ['*'], intercept: [before_tool, after_tool] }\n  \
         commands:\n    - { event: pre_tool_use, tools: ['mail__*'], surfaces: [api], command: [sh, mail.sh] }\n";
    let mut world = Plan::on(Storage::Sqlite)
        .file("outside.py", OUTSIDE)
        .file("mail.sh", MAIL)
        .with(sections)
        .start()
        .await;
    let agent = world.api("build-agent");
    let ask = async |tool: &str| {
        let call = json!({"tool_name": tool, "tool_args": {"text": "hello"}, "session_id": "s1"});
        agent.post("/api/confirmations", &call).await.1
    };
    let denied = ask("guarded__write").await;
    assert_eq!(
        (denied["verdict"].as_str(), denied["reason_code"].as_str()),
        (Some("deny"), Some("denied_by_rule"))
    );
    assert!(
        denied["reason"]
            .as_str()
            .unwrap()
            .starts_with("that path is frozen"),
        "{denied}"
    );
    let changed = ask("note__write").await;
    assert_eq!(changed["verdict"], "deny");
    assert!(
        changed["reason"]
            .as_str()
            .unwrap()
            .starts_with("a hook wants other arguments: `outside`"),
        "{changed}"
    );

    // A host is told the same in its own words.
    let hook = async |event: &str, tool: &str, more: &Value| {
        let mut body = json!({"session_id": "h1", "hook_event_name": event, "tool_name": tool,
            "tool_input": {"text": "hello"}, "tool_use_id": format!("use-{tool}")});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        agent.post("/api/hooks/claude-code?hold=0", &body).await.1
    };
    for (tool, why) in [
        ("Write", "that path is frozen"),
        ("Edit", "a hook wants other arguments: `outside`"),
    ] {
        let said = &hook("PreToolUse", tool, &json!({})).await["hookSpecificOutput"];
        assert_eq!(said["permissionDecision"], "deny");
        let reason = said["permissionDecisionReason"].as_str().unwrap();
        assert!(reason.contains(why), "{reason}");
    }
    let ran = json!({"tool_response": "12 bytes"});
    assert_eq!(hook("PostToolUse", "Read", &ran).await, json!({}));

    // A person is asked where a hook wants one, over the API only; what came of the call is shown to the hooks.
    let asked = ask("mail__send").await;
    assert_eq!(asked["verdict"], "pending", "{asked}");
    let id = asked["confirmation_id"].as_str().unwrap().to_owned();
    let path = format!("/api/confirmations/{id}");
    let dana = world.api("dana-cli");
    let approve = json!({"decision": "approve"});
    assert_eq!(dana.post(&format!("{path}/respond"), &approve).await.0, 200);
    let call = json!({"tool_name": "mail__send", "tool_args": {"text": "hello"}});
    assert_eq!(agent.post(&format!("{path}/consume"), &call).await.0, 200);
    let outcome = json!({"status": "succeeded", "detail": "sent"});
    assert_eq!(agent.post(&format!("{path}/outcome"), &outcome).await.0, 200);

    let log = world.place.file("told.log");
    world
        .until("everything to be told", async || {
            let told = std::fs::read_to_string(&log).unwrap_or_default();
            TOLD.iter()
                .all(|line| told.lines().any(|other| other == *line))
                .then_some(())
        })
        .await;
    let said = world.audit("hook.answered").await;
    assert!(
        said.iter()
            .any(|event| event["data"]["hook"] == "outside" && event["data"]["answer"] == "deny_tool"),
        "{said:?}"
    );
    world.verify().await;
    world.stop().await;
    let told = std::fs::read_to_string(&log).unwrap();
    for line in ["gateway_shutdown None", "channel_lifecycle_stopped None"] {
        assert!(told.lines().any(|other| other == line), "{line}: {told}");
    }
}

const BOSS: &str = r#"
name: boss
initial_movement: lead
movements:
  - name: lead
    instruction: Let somebody pay.
    allowed_tools: [oa__purchase_pay, desk__pay]
hooks:
  commands:
    - { event: pre_tool_use, tools: ["oa__*"], command: [sh, freeze.sh] }
"#;
const CLERK: &str = r#"
name: clerk
initial_movement: pay
movements:
  - name: pay
    instruction: Pay what you are told.
    allowed_tools: [oa__purchase_pay, desk__pay]
hooks:
  commands:
    - { event: pre_tool_use, tools: ["desk__*"], command: [sh, freeze.sh] }
"#;

/// RH-405: a delegate meets the hooks for every agent, those of its own piece and the gate, and none of the piece above it.
#[tokio::test(flavor = "multi_thread")]
async fn a_delegate_meets_general_hooks_its_own_and_the_gate() {
    let (model, tool) = (FakeModel::start().await, FakeTool::start().await);
    let entry = |name: &str, path: &str| {
        format!(
            "    - {{ name: {name}, description: Pays, parameters: {{ type: object }}, http: {{ method: POST, url: \"{}\" }} }}\n",
            tool.url(path)
        )
    };
    let sections = format!(
        "job: {{ workers: 1, lease: 5s }}\nhooks:\n  defaults: {{ interceptor_timeout_ms: 15000 }}\n  processes:\n    \
         review: {{ command: [python3, review.py], surfaces: [job], intercept: [before_tool] }}\nagent:\n  \
         model: {{ base_url: \"{}\", model: any, api_key: model-key-0123456789 }}\n  pieces: ./pieces\n  tools:\n{}{}",
        model.base_url,
        entry("oa__purchase_pay", "/pay"),
        entry("desk__pay", "/desk"),
    );
    let world = Plan::on(Storage::Sqlite)
        .file("pieces/boss.yaml", BOSS)
        .file("pieces/clerk.yaml", CLERK)
        .file("pieces/freeze.sh", FREEZE)
        .file("review.py", REVIEW)
        .with(&sections)
        .start()
        .await;
    model.script(
        "Let somebody pay",
        vec![
            Turn::call("spawn_subtask", json!({"piece": "clerk", "input": "pay"})),
            Turn::call("wait_subtasks", json!({})),
            Turn::call("complete", json!({"status": "success", "result": "all paid"})),
        ],
    );
    model.script(
        "Pay what you are told",
        vec![
            Turn::call("desk__pay", json!({"amount": 1})),
            Turn::call("oa__purchase_pay", json!({"amount": 90000})),
            Turn::call("complete", json!({"status": "success", "result": "paid"})),
        ],
    );
    let agent = world.api("build-agent");
    let order = json!({"piece": "boss", "input": "see to it"});
    let (status, job) = agent.post("/api/jobs", &order).await;
    assert_eq!(status, 201, "{job}");
    let request = world
        .until("the delegate to park", async || {
            let (_, jobs) = agent.get("/api/jobs?status=waiting_human").await;
            Some(jobs["items"][0]["confirmation_ids"][0].as_str()?.to_owned())
        })
        .await;
    // The general hook capped it, the hook of the piece above did not freeze it, and a person decides.
    assert_eq!(
        world.request(&request).await["tool_args"],
        json!({"amount": 70000})
    );
    let boss = format!("/api/jobs/{}", job["id"].as_str().unwrap());
    assert_eq!(agent.get(&boss).await.1["status"], "waiting_subtasks");
    let path = format!("/api/confirmations/{request}/respond");
    let approve = json!({"decision": "approve"});
    assert_eq!(world.api("dana-cli").post(&path, &approve).await.0, 200);
    assert_eq!(
        tool.wait_for_calls("/pay", 1, SOON).await[0].text,
        r#"{"amount":70000}"#
    );
    world
        .until("both to end", async || {
            (agent.get(&boss).await.1["status"] == "completed").then_some(())
        })
        .await;
    // The delegate's own hook froze the desk.
    assert!(tool.calls("/desk").is_empty());
    world.verify().await;
}
