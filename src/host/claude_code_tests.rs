use serde_json::{Value, json};

use super::*;
use crate::gate::Digest;

/// A sample by the start of its file name.
fn sample(name: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/hosts/claude-code");
    let entry = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(name))
        .unwrap_or_else(|| panic!("no sample {name}"));
    serde_json::from_slice(&std::fs::read(entry).unwrap()).unwrap()
}

fn asks(body: &Value) -> HookCall {
    match ClaudeCode.read(body.to_string().as_bytes()) {
        Ok(HookEvent::Asks(call)) => *call,
        other => panic!("not a question: {other:?}"),
    }
}

/// What is said for the sample's decision with the sample's own reason, as JSON.
fn said(asking: Asking, reason: &Value, allow: bool) -> Value {
    let reason = reason.as_str().unwrap().to_owned();
    let verdict = if allow {
        HookVerdict::Allow {
            reason,
            changed: None,
        }
    } else {
        HookVerdict::Deny { reason }
    };
    serde_json::from_str(&ClaudeCode.speak(asking, &verdict)).unwrap()
}

#[test]
fn an_allow_is_the_golden_answer() {
    for name in ["claude-code-01", "claude-code-06"] {
        let sample = sample(name);
        let golden = &sample["output"]["stdout"];
        let reason = &golden["hookSpecificOutput"]["permissionDecisionReason"];
        assert_eq!(&said(Asking::BeforeTool, reason, true), golden, "{name}");
    }
}

#[test]
fn a_denial_is_the_golden_answer_on_both_ways() {
    for (name, path) in [
        ("claude-code-07", "/output/stdout"),
        ("claude-code-10", "/output/body"),
    ] {
        let sample = sample(name);
        let golden = sample.pointer(path).unwrap();
        let reason = &golden["hookSpecificOutput"]["permissionDecisionReason"];
        assert_eq!(&said(Asking::BeforeTool, reason, false), golden, "{name}");
    }
    let sample = sample("claude-code-12");
    let golden = &sample["output"]["stdout"];
    let reason = &golden["hookSpecificOutput"]["decision"]["message"];
    assert_eq!(&said(Asking::Permission, reason, false), golden);
}

#[test]
fn a_permission_is_granted_without_a_rewrite() {
    let mut golden = sample("claude-code-13")["output"]["stdout"].clone();
    golden["hookSpecificOutput"]["decision"]
        .as_object_mut()
        .unwrap()
        .remove("updatedInput");
    assert_eq!(said(Asking::Permission, &json!("approved"), true), golden);
}

#[test]
fn a_call_is_read_whole() {
    let call = asks(&sample("claude-code-01")["input"]);
    assert_eq!(call.asking, Asking::BeforeTool);
    assert_eq!(call.tool.as_str(), "Bash");
    assert_eq!(
        call.args.canonical(),
        r#"{"command":"kubectl -n prod rollout restart deploy/billing-api","description":"Restart the billing API"}"#
    );
    assert_eq!(call.agent_id, "claude-code");
    assert_eq!(call.session_id, "8f6a1985-9d32-4e6c-b389-03c6cc8ab70b");
    assert_eq!(call.call_id.as_deref(), Some("toolu_01Qm5vB7xkZr2pYw9sNdLtHc"));
    assert_eq!(
        call.metadata.canonical(),
        r#"{"cwd":"/home/dev/billing","event":"PreToolUse","host":"claude-code","permission_mode":"default"}"#
    );
}

#[test]
fn an_mcp_tool_keeps_its_name_and_says_its_server() {
    let call = asks(&sample("claude-code-06")["input"]);
    assert_eq!(call.tool.as_str(), "mcp__deploy__rollout");
    let metadata = call.metadata.canonical();
    assert!(
        metadata.contains(r#""mcp_server":"deploy","mcp_source":"project""#),
        "{metadata}"
    );
}

#[test]
fn a_subagent_is_another_agent_of_the_same_session() {
    let call = asks(&sample("claude-code-07")["input"]);
    assert_eq!(call.agent_id, "claude-code/general-purpose");
    assert_eq!(
        call.session_id,
        asks(&sample("claude-code-01")["input"]).session_id
    );
    assert!(
        call.metadata
            .canonical()
            .contains(r#""subagent_id":"a57109a1fb118055d""#)
    );
}

#[test]
fn a_permission_request_has_no_call_id() {
    let call = asks(&sample("claude-code-12")["input"]);
    assert_eq!((call.asking, call.call_id), (Asking::Permission, None));
}

#[test]
fn numbers_are_digested_as_they_were_written() {
    let body = br#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"pay",
        "tool_input":{"amount":123456789012345678901234567890.25}}"#;
    let Ok(HookEvent::Asks(call)) = ClaudeCode.read(body) else {
        panic!("not a question")
    };
    assert_eq!(
        call.args.canonical(),
        r#"{"amount":123456789012345678901234567890.25}"#
    );
    let near = Arguments::read(
        br#"{"amount":123456789012345678901234567890.5}"#,
        ReadLimits::bytes(99),
    )
    .unwrap();
    assert_ne!(Digest::of(&call.tool, &call.args), Digest::of(&call.tool, &near));
}

#[test]
fn what_could_be_read_in_two_ways_is_refused_and_still_gets_a_denial_in_form() {
    let start = r#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash""#;
    let bodies = [
        String::new(),
        "null".to_owned(),
        "[]".to_owned(),
        start.to_owned(),
        format!("{start}}}"),
        format!("{start},\"tool_input\":[]}}"),
        format!("{start},\"tool_input\":null}}"),
        format!("{start},\"tool_input\":{{\"a\":1,\"a\":2}}}}"),
        format!("{start},\"tool_input\":{{\"a\":\"\\ud800\"}}}}"),
        format!("{start},\"tool_input\":{{}}}} {{}}"),
        format!("{start},\"tool_input\":{{}},\"tool_name\":\"Read\"}}"),
        format!("{start},\"tool_input\":{{}},\"tool_use_id\":7}}"),
        format!("{start},\"tool_input\":{{}},\"tool_use_id\":\"\"}}"),
        format!("{start},\"tool_input\":{{}},\"agent_id\":\"a\\u0000\"}}"),
        format!("{start},\"tool_input\":{}{}}}", "[".repeat(300), "]".repeat(300)),
        r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}"#.to_owned(),
        r#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"","tool_input":{}}"#.to_owned(),
        r#"{"session_id":"s","tool_name":"Bash","tool_input":{}}"#.to_owned(),
        r#"{"hook_event_name":"PreToolUse2","session_id":"s","tool_name":"Bash","tool_input":{}}"#.to_owned(),
    ];
    for body in bodies {
        assert!(ClaudeCode.read(body.as_bytes()).is_err(), "{body}");
        assert_eq!(
            ClaudeCode.asking(body.as_bytes()),
            Some(Asking::BeforeTool),
            "{body}"
        );
    }
}

#[test]
fn a_broken_permission_request_is_still_denied_as_one() {
    let body = br#"{"hook_event_name":"PermissionRequest","tool_input":{"a":1,"a":2}}"#;
    assert!(ClaudeCode.read(body).is_err());
    assert_eq!(ClaudeCode.asking(body), Some(Asking::Permission));
}

#[test]
fn other_events_ask_nothing() {
    for event in OBSERVED {
        let body = json!({"hook_event_name": event, "session_id": "s"}).to_string();
        assert!(
            matches!(ClaudeCode.read(body.as_bytes()), Ok(HookEvent::Observed)),
            "{event}"
        );
        assert_eq!(ClaudeCode.asking(body.as_bytes()), None, "{event}");
    }
    assert_eq!(ClaudeCode.silence(), "{}");
}

#[test]
fn a_call_that_ran_is_reported_under_its_id() {
    for (event, status) in [
        ("PostToolUse", OutcomeStatus::Succeeded),
        ("PostToolUseFailure", OutcomeStatus::Failed),
    ] {
        let body = json!({"hook_event_name": event, "session_id": "s", "tool_use_id": "t"}).to_string();
        let Ok(HookEvent::Ran(report)) = ClaudeCode.read(body.as_bytes()) else {
            panic!("no report: {event}")
        };
        assert_eq!(
            (report.session_id.as_str(), report.call_id.as_str(), report.status),
            ("s", "t", status)
        );
    }
}

#[test]
fn only_our_own_answers_are_understood() {
    for (asking, answer) in [
        (
            Asking::BeforeTool,
            sample("claude-code-04")["output"]["stdout"].clone(),
        ),
        (
            Asking::Permission,
            sample("claude-code-01")["output"]["stdout"].clone(),
        ),
        (
            Asking::BeforeTool,
            sample("claude-code-12")["output"]["stdout"].clone(),
        ),
        (Asking::BeforeTool, json!({"permissionDecision": "allow"})),
        (
            Asking::BeforeTool,
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
            "permissionDecisionReason": "", "updatedInput": {}}}),
        ),
    ] {
        assert_eq!(
            ClaudeCode.hear(asking, answer.to_string().as_bytes()),
            None,
            "{answer}"
        );
    }
}

#[test]
fn a_call_may_nest_as_deep_as_anywhere_else() {
    for (levels, fits) in [(127, true), (128, true), (129, false), (5_000, false)] {
        let args = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        let body = format!(
            r#"{{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{args}}}"#
        );
        assert_eq!(ClaudeCode.read(body.as_bytes()).is_ok(), fits, "{levels}");
    }
}

#[test]
fn an_edit_is_the_golden_answer_and_is_heard_exactly() {
    let sample = sample("claude-code-13");
    let golden = &sample["output"]["stdout"];
    let input = golden
        .pointer("/hookSpecificOutput/decision/updatedInput")
        .unwrap();
    let changed = |text: &str| Changed {
        args: Arguments::try_from(Json::read(text.as_bytes(), ReadLimits::bytes(10_000)).unwrap()).unwrap(),
        told: "Dana changed /command".to_owned(),
    };
    let allow = |changed| HookVerdict::Allow {
        reason: "approved by Dana".to_owned(),
        changed: Some(changed),
    };
    let spoken = ClaudeCode.speak(Asking::Permission, &allow(changed(&input.to_string())));
    assert_eq!(&serde_json::from_str::<Value>(&spoken).unwrap(), golden);
    let Some(HookVerdict::Allow {
        changed: Some(heard), ..
    }) = ClaudeCode.hear(Asking::Permission, spoken.as_bytes())
    else {
        panic!("not understood")
    };
    assert_eq!(heard.args.json().canonical(), input.to_string());

    // Numbers beyond what a double holds arrive as they are.
    let exact = changed(r#"{"n":12345678901234567890.125,"t":"\u0000"}"#);
    let spoken = ClaudeCode.speak(Asking::BeforeTool, &allow(exact.clone()));
    assert!(
        spoken.contains(r#""updatedInput":{"n":12345678901234567890.125,"t":"\u0000"}"#),
        "{spoken}"
    );
    assert_eq!(
        ClaudeCode.hear(Asking::BeforeTool, spoken.as_bytes()),
        Some(allow(exact))
    );
    for odd in [
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"x","updatedInput":[1]}}"#,
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"x","updatedInput":{"a":1,"a":2}}}"#,
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"x","additionalContext":"y"}}"#,
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"x","updatedInput":{}}}"#,
    ] {
        assert_eq!(ClaudeCode.hear(Asking::BeforeTool, odd.as_bytes()), None, "{odd}");
    }
}
