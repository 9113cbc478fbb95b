//! Approving with edited arguments over HTTP: what is taken, what is refused and why, and what the client is told to run.

use serde_json::{Value, json};

use crate::http::fixture::{Bench, Heard};

/// A call of `edits__pay` by a client that takes edits.
async fn ask(bench: &Bench, args: &Value) -> String {
    let body = json!({ "tool_name": "edits__pay", "tool_args": args, "session_id": "s", "tool_call_id": "c", "accepts_edits": true });
    let heard = bench.post("/api/confirmations", "agent", body).await.json();
    assert_eq!(heard["verdict"], "pending", "{heard}");
    heard["confirmation_id"].as_str().expect("a request").to_owned()
}

async fn approve(bench: &Bench, id: &str, who: &str, more: &Value) -> Heard {
    let mut body = json!({ "decision": "approve" });
    for (name, value) in more.as_object().expect("members") {
        body[name] = value.clone();
    }
    bench
        .post(&format!("/api/confirmations/{id}/respond"), who, body)
        .await
}

async fn consume(bench: &Bench, id: &str, args: &Value) -> Heard {
    let body = json!({ "tool_name": "edits__pay", "tool_args": args });
    bench
        .post(&format!("/api/confirmations/{id}/consume"), "agent", body)
        .await
}

#[tokio::test]
async fn the_client_runs_what_a_person_made_of_its_call() {
    let bench = Bench::new().await;
    let proposed = json!({ "amount": 60000, "card": { "number": "4111" }, "payee": "x" });
    let id = ask(&bench, &proposed).await;
    let shown = bench
        .get(&format!("/api/confirmations/{id}"), "dana")
        .await
        .json();
    assert_eq!(
        (&shown["edits_accepted"], &shown["edit"]),
        (&json!(["/amount", "/card"]), &Value::Null)
    );
    // As it is shown, one value changed: what is hidden goes back in.
    let mut edited = shown["tool_args"].clone();
    edited["amount"] = json!(40000.5);
    let answered = approve(&bench, &id, "dana", &json!({ "edited_args": edited })).await;
    let answered = answered.json();
    assert_eq!(answered["status"], "approved", "{answered}");
    assert_eq!(answered["tool_args"]["amount"], 60000, "what was proposed stays");
    let edit = &answered["edit"];
    assert_eq!(
        (&edit["number"], &edit["by"], &edit["tool_args"]["amount"]),
        (&json!(1), &json!("dana"), &json!(40000.5))
    );
    assert_eq!(edit["changes"], "- /amount: 60000\n+ /amount: 40000.5");
    assert!(!answered.to_string().contains("4111"), "hidden is hidden");
    assert_eq!(answered["votes"][0]["edit"], 1);

    let again = json!({ "tool_name": "edits__pay", "tool_args": proposed, "session_id": "s", "tool_call_id": "c", "accepts_edits": true });
    let again = bench.post("/api/confirmations", "agent", again).await.json();
    assert_eq!(
        (&again["verdict"], &again["edited"], &again["confirmation_id"]),
        (&json!("allow"), &json!(true), &json!(id))
    );

    let runs = json!({ "amount": 40000.5, "card": { "number": "4111" }, "payee": "x" });
    let other = json!({ "amount": 1, "card": { "number": "4111" }, "payee": "x" });
    assert_eq!(consume(&bench, &id, &other).await.code(), "args_changed");
    let granted = consume(&bench, &id, &proposed).await.json();
    assert_eq!((&granted["tool_args"], &granted["edited"]), (&runs, &json!(true)));
    assert_eq!(granted["args_digest"], edit["args_digest"]);
    assert_eq!(
        granted["changes"],
        "DANA Doe changed /amount from 60000 to 40000.5"
    );
    for args in [&proposed, &runs] {
        assert_eq!(consume(&bench, &id, args).await.code(), "already_consumed");
    }
    let event = bench.get("/api/audit?kind=confirmation.edited", "auditor").await;
    let event = event.json()["items"][0].clone();
    assert_eq!(
        (&event["actor"], &event["data"]["edit"]),
        (&json!("operator:dana"), &json!(1))
    );
    assert!(
        event.to_string().contains("40000.5") && !event.to_string().contains("4111"),
        "{event}"
    );
}

#[tokio::test]
async fn an_edit_is_refused_with_a_code_and_a_reason_and_changes_nothing() {
    let bench = Bench::new().await;
    let id = ask(
        &bench,
        &json!({ "amount": 10, "card": { "number": "4111" }, "payee": "x" }),
    )
    .await;
    for (edited, why, word) in [
        (
            json!({ "amount": 10, "card": { "number": "4111" }, "payee": "y" }),
            "edit_out_of_scope",
            "does not let",
        ),
        (
            json!({ "amount": 9, "card": { "number": "4112" }, "payee": "x" }),
            "edit_of_hidden",
            "hides",
        ),
        (json!({ "amount": 9, "payee": "x" }), "edit_of_hidden", "hides"),
        (
            json!({ "amount": 200_000, "card": { "number": "4111" }, "payee": "x" }),
            "edit_denied_by_rule",
            "edits-never",
        ),
        (
            json!({ "amount": 70_000, "card": { "number": "4111" }, "payee": "x" }),
            "edit_needs_others",
            "edits-big",
        ),
    ] {
        let heard = approve(&bench, &id, "dana", &json!({ "edited_args": edited })).await;
        assert_eq!(
            (heard.status.as_u16(), heard.code().as_str()),
            (422, "edit_refused"),
            "{edited}"
        );
        let json = heard.json();
        assert_eq!(json["reason_code"], why);
        assert!(
            json["detail"]
                .as_str()
                .is_some_and(|detail| detail.contains(word)),
            "{json}"
        );
        assert!(!heard.text.contains("4111") && !heard.text.contains("4112"));
    }
    for bad in [
        r#"{"decision":"approve","edited_args":{"amount":1,"amount":2}}"#,
        r#"{"decision":"approve","edited_args":[1]}"#,
        r#"{"decision":"approve","edited_args":"{}"}"#,
        r#"{"decision":"reject","reason":"no","edited_args":{"amount":1}}"#,
        r#"{"decision":"approve","edit":-1}"#,
    ] {
        let heard = bench
            .send("POST", &format!("/api/confirmations/{id}/respond"), "dana", bad)
            .await;
        assert_eq!(heard.status, 400, "{bad}");
    }
    // Who may not approve hears that, and nothing of the edit.
    let secret = json!({ "edited_args": { "amount": 9, "card": { "number": "4112" }, "payee": "x" } });
    assert_eq!(
        approve(&bench, &id, "ines", &secret).await.json()["refusal"],
        "not_authorised"
    );
    assert_eq!(approve(&bench, &id, "gus", &secret).await.code(), "not_found");
    let shown = bench
        .get(&format!("/api/confirmations/{id}"), "dana")
        .await
        .json();
    assert_eq!(
        (&shown["status"], &shown["votes"], &shown["edit"]),
        (&json!("pending"), &json!([]), &Value::Null)
    );
    let events = bench.get("/api/audit?kind=vote.refused", "auditor").await.json();
    assert_eq!(events["items"].as_array().map(Vec::len), Some(6));
}

#[tokio::test]
async fn nobody_is_offered_an_edit_that_would_not_arrive() {
    let bench = Bench::new().await;
    let edited = json!({ "edited_args": { "amount": 1 } });
    for (tool, accepts, why) in [
        ("edits__pay", false, "edit_not_carried"),
        ("pay", true, "edit_not_offered"),
    ] {
        let body = json!({ "tool_name": tool, "tool_args": { "amount": 5 }, "accepts_edits": accepts });
        let id = bench.post("/api/confirmations", "agent", body).await.json()["confirmation_id"].clone();
        let id = id.as_str().expect("an id");
        let shown = bench
            .get(&format!("/api/confirmations/{id}"), "dana")
            .await
            .json();
        assert_eq!(shown["edits_accepted"], false);
        let heard = approve(&bench, id, "dana", &edited).await;
        assert_eq!(
            (heard.status.as_u16(), heard.code().as_str()),
            (409, "edit_not_accepted")
        );
        assert_eq!(heard.json()["reason_code"], why);
        assert_eq!(
            approve(&bench, id, "dana", &json!({})).await.json()["status"],
            "approved"
        );
    }
    let body = json!({ "tool_name": "pay", "tool_args": {}, "accepts_edits": "yes" });
    assert_eq!(bench.post("/api/confirmations", "agent", body).await.status, 400);
}

#[tokio::test]
async fn under_a_quorum_everybody_approves_the_same_arguments() {
    let bench = Bench::new().await;
    // Over 50,000 the rule asks for two.
    let id = ask(&bench, &json!({ "amount": 60000 })).await;
    assert_eq!(
        approve(&bench, &id, "dana", &json!({})).await.json()["status"],
        "pending"
    );
    let edited = approve(&bench, &id, "mira", &json!({ "edited_args": { "amount": 4000 } }))
        .await
        .json();
    assert_eq!(
        (&edited["status"], &edited["edit"]["number"]),
        (&json!("pending"), &json!(1))
    );
    let heard = approve(&bench, &id, "dana", &json!({})).await;
    assert_eq!(
        (heard.status.as_u16(), heard.code().as_str()),
        (409, "edit_unseen")
    );
    assert_eq!(heard.json()["edit"], 1);
    assert_eq!(
        approve(&bench, &id, "dana", &json!({ "edit": 1 })).await.json()["status"],
        "approved"
    );
    let granted = consume(&bench, &id, &json!({ "amount": 60000 })).await.json();
    assert_eq!(granted["tool_args"], json!({ "amount": 4000 }));
}

/// The host that asked hears of the edit in its own words: the whole input, and what was changed.
#[tokio::test]
async fn a_host_runs_what_a_person_made_of_its_call() {
    let bench = Bench::new().await;
    for (event, id) in [("PreToolUse", "toolu_1"), ("PermissionRequest", "toolu_2")] {
        let body = json!({
            "hook_event_name": event, "session_id": format!("s-{event}"), "tool_use_id": id, "tool_name": "edits__pay",
            "tool_input": { "amount": 12, "payee": event },
        });
        let heard = bench
            .post("/api/hooks/claude-code?hold=0", "agent", body.clone())
            .await;
        let request = heard.headers["gatepost-pending"]
            .to_str()
            .expect("an id")
            .to_owned();
        let edited = json!({ "edited_args": { "amount": 12_345_678_901_234_567_u64, "payee": event } });
        let heard = approve(&bench, &request, "dana", &edited).await;
        assert_eq!(
            heard.json()["reason_code"],
            "edit_denied_by_rule",
            "policy judges what a host runs, too"
        );
        let edited = json!({ "edited_args": { "amount": 7.25, "payee": event } });
        assert_eq!(
            approve(&bench, &request, "dana", &edited).await.json()["status"],
            "approved"
        );
        let heard = bench
            .post("/api/hooks/claude-code?hold=0", "agent", body.clone())
            .await
            .json();
        let output = &heard["hookSpecificOutput"];
        let input = json!({ "amount": 7.25, "payee": event });
        if event == "PreToolUse" {
            assert_eq!(
                (&output["permissionDecision"], &output["updatedInput"]),
                (&json!("allow"), &input)
            );
            let reason = output["permissionDecisionReason"].as_str().expect("a reason");
            assert!(
                reason.contains("approved with changed arguments by DANA Doe"),
                "{reason}"
            );
            let told = output["additionalContext"].as_str().expect("what changed");
            assert!(
                told.contains("DANA Doe changed /amount from 12 to 7.25"),
                "{told}"
            );
        } else {
            assert_eq!(
                output["decision"],
                json!({ "behavior": "allow", "updatedInput": input })
            );
        }
        // Once, like any other.
        let heard = bench
            .post("/api/hooks/claude-code?hold=0", "agent", body)
            .await
            .text;
        assert!(heard.contains("already_consumed"), "{heard}");
    }
}
