//! A person changes the arguments when they approve: everybody who approves approves the changed call, on whatever platform, and
//! whoever asked (a client, Claude Code, a job) runs just that, once, and hears what was changed. It survives a restart.

use serde_json::{Value, json};

use super::rewrite;
use crate::support::fake_model::{FakeModel, Turn};
use crate::support::fake_tool::FakeTool;
use crate::support::people::{DANA, NOOR};
use crate::support::world::{Plan, SOON, Storage, World};

on_every_store!(
    both_platforms_vote_on_the_edited_call_and_the_client_runs_it,
    claude_code_runs_the_edited_call_and_hears_what_was_changed,
    a_job_pays_what_the_person_wrote,
    who_asked_without_taking_edits_is_offered_none,
);

const RULES: &str = r#"    - { name: edited-never, tools: ["edited__*"], when: "has(args.amount) && args.amount > 100000", effect: deny, reason: Too much }
    - { name: edited-pairs, tools: [edited__pair], effect: confirm, quorum: 2, accepts_edits: [/amount] }
    - { name: edited, tools: ["edited__*"], effect: confirm, redact: [/card], accepts_edits: true }
"#;

/// Asks as a client that takes edits.
async fn ask(world: &World, tool: &str, args: &Value) -> String {
    let body = json!({"tool_name": tool, "tool_args": args, "accepts_edits": true});
    let (status, answer) = world.api("build-agent").post("/api/confirmations", &body).await;
    assert_eq!((status, &answer["verdict"]), (200, &json!("pending")), "{answer}");
    answer["confirmation_id"].as_str().unwrap().to_owned()
}

async fn edit(world: &World, id: &str, who: &str, args: &Value) -> (u16, Value) {
    let body = json!({"decision": "approve", "edited_args": args});
    world
        .api(who)
        .post(&format!("/api/confirmations/{id}/respond"), &body)
        .await
}

async fn both_platforms_vote_on_the_edited_call_and_the_client_runs_it(storage: Storage) {
    let mut world = Plan::on(storage).with(RULES).start().await;
    let proposed = json!({"amount": 60_000, "payee": "ACME GmbH"});
    let id = ask(&world, "edited__pair", &proposed).await;
    let (slack, feishu) = world.cards(&id).await;
    let pressed = world.slack.click(&slack, "approve", DANA.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    assert_eq!(world.request(&id).await["status"], "pending");
    // Noor changes it: what Dana said was about another call.
    let old = world.feishu.click(&feishu, "approve", DANA.feishu);
    let (status, seen) = edit(
        &world,
        &id,
        "noor-cli",
        &json!({"amount": 4_000.5, "payee": "ACME GmbH"}),
    )
    .await;
    assert_eq!((status, &seen["status"]), (200, &json!("pending")), "{seen}");
    // A press on what stood there before decides nothing.
    let told = old.post(&world.callback("finance-feishu")).await;
    assert!(told.toast.unwrap().unwrap().content.contains("changed since"));
    assert_eq!(world.request(&id).await["status"], "pending");
    world.restart().await;
    let card = world
        .until("the edited Feishu card", async || {
            let card = world.feishu_card(&id).await;
            let text = card.visible_text();
            (text.contains("+ /amount: 4000.5") && text.contains("Noor Haddad")).then_some(card)
        })
        .await;
    world
        .until("the edited Slack card", async || {
            let card = world.slack_card(&id).await;
            card.current()
                .visible_text()
                .contains("- /amount: 60000")
                .then_some(())
        })
        .await;
    let pressed = world.feishu.click(&card, "approve", DANA.feishu);
    assert!(
        pressed
            .post(&world.callback("finance-feishu"))
            .await
            .card_replaced
    );
    let seen = world.request(&id).await;
    assert_eq!(
        (&seen["status"], &seen["tool_args"]),
        (&json!("approved"), &proposed),
        "{seen}"
    );
    world.both_settled(&id, "Dana Kim", "Dana Kim").await;

    let agent = world.api("build-agent");
    let path = format!("/api/confirmations/{id}/consume");
    let call = json!({"tool_name": "edited__pair", "tool_args": proposed});
    let (status, granted) = agent.post(&path, &call).await;
    assert_eq!(status, 200, "{granted}");
    assert_eq!(
        granted["tool_args"],
        json!({"amount": 4_000.5, "payee": "ACME GmbH"})
    );
    assert_eq!(
        (&granted["edited"], &granted["args_digest"]),
        (&json!(true), &seen["edit"]["args_digest"])
    );
    assert!(
        granted["changes"]
            .as_str()
            .unwrap()
            .contains("Noor Haddad changed /amount")
    );
    assert_eq!(agent.post(&path, &call).await.1["code"], "already_consumed");
    let (votes, edits) = (
        world.audit("vote.cast").await,
        world.audit("confirmation.edited").await,
    );
    assert_eq!((votes.len(), edits.len()), (3, 1));
    world.verify().await;
}

async fn claude_code_runs_the_edited_call_and_hears_what_was_changed(storage: Storage) {
    let world = Plan::on(storage).with(RULES).start().await;
    let agent = world.api("build-agent");
    let question = json!({
        "hook_event_name": "PreToolUse", "session_id": "s1", "tool_use_id": "toolu_1", "tool_name": "edited__shell",
        "tool_input": {"command": "kubectl -n prod rollout restart deploy/api", "card": "4111"},
    });
    let (_, told) = agent.post("/api/hooks/claude-code?hold=0", &question).await;
    assert_eq!(told["hookSpecificOutput"]["permissionDecision"], "deny");
    let (_, page) = world.api("audit").get("/api/confirmations?status=pending").await;
    let id = page["items"][0]["id"].as_str().unwrap().to_owned();
    // Who edits sees the card's number hidden, and it comes back as it was.
    let mut args = page["items"][0]["tool_args"].clone();
    assert_ne!(args["card"], "4111");
    args["command"] = json!("kubectl -n staging rollout restart deploy/api");
    let (status, seen) = edit(&world, &id, "dana-cli", &args).await;
    assert_eq!((status, &seen["status"]), (200, &json!("approved")), "{seen}");
    let (_, told) = agent.post("/api/hooks/claude-code?hold=0", &question).await;
    let output = &told["hookSpecificOutput"];
    assert_eq!(
        output["updatedInput"],
        json!({"command": "kubectl -n staging rollout restart deploy/api", "card": "4111"})
    );
    assert_eq!(output["permissionDecision"], "allow");
    let context = output["additionalContext"].as_str().unwrap();
    assert!(
        context.contains("Dana Kim changed /command from") && !context.contains("4111"),
        "{context}"
    );
    let ran = json!({
        "hook_event_name": "PostToolUse", "session_id": "s1", "tool_use_id": "toolu_1", "tool_name": "edited__shell",
        "tool_input": output["updatedInput"], "tool_response": "restarted",
    });
    agent.post("/api/hooks/claude-code", &ran).await;
    assert_eq!(world.request(&id).await["outcome"]["status"], "succeeded");
    let (_, told) = agent.post("/api/hooks/claude-code?hold=0", &question).await;
    assert!(told.to_string().contains("already_consumed"), "{told}");
    world.verify().await;
}

const PIECE: &str = "name: pay
description: Pays
initial_movement: pay
max_movements: 3
movements:
  - name: pay
    instruction: Pay what the user says.
    allowed_tools: [edited__pay]
";

async fn a_job_pays_what_the_person_wrote(storage: Storage) {
    let (model, tool) = (FakeModel::start().await, FakeTool::start().await);
    let sections = format!(
        "{RULES}job: {{ workers: 2, lease: 5s }}\nagent:\n  \
         model: {{ base_url: \"{}\", model: any, api_key: model-key-0123456789 }}\n  pieces: ./pieces\n  tools:\n    \
         - {{ name: edited__pay, description: Pays, parameters: {{ type: object, properties: {{ amount: {{ type: number }} }} }}, \
         http: {{ method: POST, url: \"{}\" }} }}\n",
        model.base_url,
        tool.url("/pay"),
    );
    let mut world = Plan::on(storage)
        .file("pieces/pay.yaml", PIECE)
        .with(&sections)
        .start()
        .await;
    let complete = Turn::call("complete", json!({"status": "success", "result": "paid"}));
    let pay = Turn::call(
        "edited__pay",
        json!({"amount": 60_000, "card": "4111", "to": "x"}),
    );
    model.script("", vec![pay, complete]);
    let submit = json!({"piece": "pay", "input": "pay it"});
    let (status, job) = world.api("build-agent").post("/api/jobs", &submit).await;
    assert_eq!(status, 201, "{job}");
    let path = format!("/api/jobs/{}", job["id"].as_str().unwrap());
    let until = async |world: &World, wanted: &str| {
        let agent = world.api("build-agent");
        world
            .until(&format!("the job {wanted}"), async || {
                let (_, job) = agent.get(&path).await;
                (job["status"] == wanted).then_some(job)
            })
            .await
    };
    let parked = until(&world, "waiting_human").await;
    let id = parked["confirmation_ids"][0].as_str().unwrap().to_owned();
    world.restart().await;
    for (args, why) in [
        (
            json!({"amount": "much", "card": "4111", "to": "x"}),
            "edit_misfit",
        ),
        (
            json!({"amount": 200_000, "card": "4111", "to": "x"}),
            "edit_denied_by_rule",
        ),
        (json!({"amount": 5, "card": "4112", "to": "x"}), "edit_of_hidden"),
    ] {
        let (status, refused) = edit(&world, &id, "dana-cli", &args).await;
        assert_eq!((status, &refused["reason_code"]), (422, &json!(why)), "{refused}");
    }
    // The same from a modal, where it is said at the field what the tool takes instead.
    let (card, _) = world.cards(&id).await;
    let view = rewrite::opened(&world, &card, DANA.slack).await;
    let given = rewrite::field(&view)
        .expect("a field")
        .replace("60000", "\"much\"");
    let refused = rewrite::send(&world, &view, "approve", Some(&given)).await;
    let said = refused["errors"]["args"].as_str().unwrap_or_default();
    assert!(
        said.contains("not what the tool takes") && said.contains("amount") && !said.contains("much"),
        "{refused}"
    );
    assert!(tool.calls("/pay").is_empty());
    let (status, seen) = edit(
        &world,
        &id,
        "dana-cli",
        &json!({"amount": 123.45, "card": "4111", "to": "y"}),
    )
    .await;
    assert_eq!((status, &seen["status"]), (200, &json!("approved")), "{seen}");
    let calls = tool.wait_for_calls("/pay", 1, SOON).await;
    assert_eq!(calls[0].text, r#"{"amount":123.45,"card":"4111","to":"y"}"#);
    until(&world, "completed").await;
    assert_eq!(tool.calls("/pay").len(), 1);
    let heard = model.requests().pop().unwrap();
    let heard = heard["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(
        heard.contains("Dana Kim changed /amount from 60000 to 123.45; /to from"),
        "{heard}"
    );
    let shown = world.request(&id).await;
    assert_eq!(
        (
            &shown["tool_args"]["amount"],
            &shown["edit"]["tool_args"]["amount"]
        ),
        (&json!(60_000), &json!(123.45))
    );
    assert_eq!(shown["outcome"]["status"], "succeeded");
    world.verify().await;
}

async fn who_asked_without_taking_edits_is_offered_none(storage: Storage) {
    let world = Plan::on(storage).with(RULES).start().await;
    let id = world.ask_for("edited__pay", json!({"amount": 1})).await;
    assert_eq!(world.request(&id).await["edits_accepted"], false);
    let (status, refused) = edit(&world, &id, "noor-cli", &json!({"amount": 2})).await;
    assert_eq!(
        (status, &refused["code"]),
        (409, &json!("edit_not_accepted")),
        "{refused}"
    );
    assert_eq!(refused["reason_code"], "edit_not_carried");
    let (card, _) = world.cards(&id).await;
    let pressed = world.slack.click(&card, "approve", NOOR.slack);
    assert_eq!(pressed.post(&world.callback("ops-slack")).await.status, 200);
    assert_eq!(world.request(&id).await["status"], "approved");
}
