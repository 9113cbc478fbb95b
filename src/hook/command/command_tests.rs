//! Real children of `sh`, with the inputs of RH-401 to RH-408.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::CommandHook;
use crate::config::child::ChildConfig;
use crate::config::hook::OnFailure;
use crate::config::secret::Secret;
use crate::hook::fixture::{args, call, context, hooks};
use crate::hook::registry::{Approver as _, Interceptor as _};
use crate::hook::{
    Before, Decision, HookError, HookResult, Mount, Point, SessionContext, ToolCall, ToolOutput,
};

const LIMIT: Duration = Duration::from_secs(20);
const GRACE: Duration = Duration::from_millis(200);

fn command(words: &[&str]) -> ChildConfig {
    ChildConfig {
        program: words[0].to_owned(),
        args: words[1..].iter().map(|&word| word.to_owned()).collect(),
        dir: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bugs"),
        env: BTreeMap::new(),
    }
}

fn hook(words: &[&str]) -> CommandHook {
    CommandHook::new(command(words), LIMIT, GRACE)
}

/// A command that answers with this text.
fn saying(text: &str) -> CommandHook {
    hook(&["printf", "%s", text])
}

async fn pre(hook: &CommandHook) -> Result<HookResult<ToolCall>, HookError> {
    hook.pre_tool_use(&context(), &call(r#"{"path":"/srv"}"#)).await
}

fn decided(answer: &str) -> String {
    format!(r#"{{"hookSpecificOutput":{{"hookEventName":"PreToolUse",{answer}}}}}"#)
}

/// RH-401: late, killed, missing.
#[tokio::test]
async fn a_hook_that_does_not_answer_denies_with_name_and_cause() {
    let cases = [
        (vec!["sh", "RH-401/hook_sleep_deny.sh"], "timed out after 300 ms"),
        (vec!["sh", "RH-401/hook_crash.sh"], "signal 11"),
        (vec!["./no_such_file.sh"], "not found"),
        (vec!["sh", "no_such_file.sh"], "hook `guard`"),
    ];
    for (words, cause) in cases {
        for (on_failure, denies) in [(OnFailure::Deny, true), (OnFailure::Continue, false)] {
            let limit = if cause.starts_with("timed") {
                Duration::from_millis(300)
            } else {
                LIMIT
            };
            let hook = CommandHook::new(command(&words), limit, GRACE);
            let mut hooks = hooks();
            let mut mount = Mount::in_process("guard", 1, &[Point::PreToolUse]);
            mount.on_failure = on_failure;
            mount.limit = Some(LIMIT * 3);
            hooks.intercept(mount, Arc::new(hook)).unwrap();
            match hooks.pre_tool_use(&context(), call("{}")).await {
                Before::Deny { hook, why } => {
                    assert_eq!(hook, "guard");
                    // A shell that does not find its script ends with 2 or 127, as shells differ: a refusal either way.
                    assert!(why.contains(cause) || words[1..] == ["no_such_file.sh"], "{why}");
                    assert!(denies || words[1..] == ["no_such_file.sh"], "{words:?}");
                }
                Before::Judge(_) => assert!(!denies, "{words:?}"),
                Before::Halt(halt) => panic!("{halt:?}"),
            }
        }
    }
}

/// RH-402: an answer with anything around it is none, and the error shows how it begins.
#[tokio::test]
async fn noise_around_the_answer_denies() {
    let begins = [
        ("hook_banner.sh", "Welcome back, shell ready"),
        ("hook_trailing_log.sh", "hookSpecificOutput"),
        ("hook_two_docs.sh", r#"{"type":"notice""#),
    ];
    for (script, begin) in begins {
        let mut child = command(&["bash", &format!("RH-402/{script}")]);
        let error = pre(&CommandHook::new(child.clone(), LIMIT, GRACE))
            .await
            .unwrap_err();
        assert!(
            matches!(&error, HookError::Unreadable(why) if why.contains(begin)),
            "{script}: {error}"
        );
        // Only what the entry lists is in the environment; this entry asks for trouble.
        let bash_env = child.dir.join("RH-402/bash_env.sh");
        child.env.insert(
            "BASH_ENV".to_owned(),
            Secret::verbatim(bash_env.to_str().unwrap()),
        );
        let error = pre(&CommandHook::new(child, LIMIT, GRACE)).await.unwrap_err();
        assert!(
            matches!(&error, HookError::Unreadable(why) if why.contains("noise from")),
            "{script}: {error}"
        );
    }
}

/// RH-403: events of every size to hooks that do not read them.
#[tokio::test]
async fn a_hook_that_does_not_read_is_heard_all_the_same() {
    for size in [1_000, 65_536, 65_537, 2_000_000] {
        let big = call(&format!(r#"{{"content":"{}"}}"#, "A".repeat(size)));
        for (script, allows) in [
            ("hook_noread_deny.sh", false),
            ("hook_noread_exit2.sh", false),
            ("hook_close_stdin.sh", true),
        ] {
            let answer = hook(&["sh", &format!("RH-403/{script}")])
                .pre_tool_use(&context(), &big)
                .await;
            assert_eq!(answer.unwrap().allow(), allows, "{script} {size}");
        }
    }
}

/// RH-404: a family, and one that ignores TERM.
#[tokio::test]
async fn a_time_out_refuses_within_the_limit_and_the_grace() {
    for words in [
        ["sh", "RH-404/hook_tree.sh"],
        ["python3", "RH-404/hook_ignores_term.py"],
    ] {
        let limit = Duration::from_millis(400);
        let began = Instant::now();
        let error = pre(&CommandHook::new(command(&words), limit, GRACE))
            .await
            .unwrap_err();
        assert_eq!(error, HookError::TimedOut(limit));
        assert!(began.elapsed() < Duration::from_secs(5), "{words:?}");
    }
}

/// RH-408: 200 MB without an end of line.
#[tokio::test]
async fn a_flood_is_cut_and_the_call_refused() {
    let error = pre(&hook(&["sh", "RH-408/hook_stdout_flood.sh"]))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, HookError::Ended(why) if why.contains("more than it may")),
        "{error}"
    );
}

#[tokio::test]
async fn exit_codes_mean_what_hosts_take_them_for() {
    let silent = pre(&hook(&["true"])).await.unwrap();
    assert_eq!(silent.decision, Decision::Silent);
    let refused = pre(&hook(&["sh", "-c", "echo frozen >&2; exit 2"]))
        .await
        .unwrap();
    assert_eq!((refused.allow(), refused.error()), (false, Some("frozen")));
    assert!(matches!(
        pre(&hook(&["sh", "-c", "exit 1"])).await,
        Err(HookError::Ended(_))
    ));
    // It failed after it refused: the refusal stands, also for a hook that may fail.
    let script = format!(
        "printf '%s' '{}'; exit 1",
        decided(r#""permissionDecision":"deny""#)
    );
    assert!(!pre(&hook(&["sh", "-c", &script])).await.unwrap().allow());
    let script = format!(
        "printf '%s' '{}'; exit 1",
        decided(r#""permissionDecision":"allow""#)
    );
    assert!(pre(&hook(&["sh", "-c", &script])).await.is_err());
}

#[tokio::test]
async fn answers_are_read_in_claude_codes_shapes() {
    let changed = call(r#"{"path":"/srv"}"#).with_args(args(r#"{"path":"/tmp"}"#));
    let why = |text: &str| Some(text.to_owned());
    let table: Vec<(String, Decision<ToolCall>)> = vec![
        ("{}".into(), Decision::Silent),
        (decided(r#""permissionDecision":"allow""#), Decision::Continue),
        (decided(r#""permissionDecision":"ask","permissionDecisionReason":"big""#), Decision::Ask { reason: why("big"), changed: None }),
        (decided(r#""permissionDecision":"defer""#), Decision::Ask { reason: None, changed: None }),
        (decided(r#""permissionDecision":"deny","permissionDecisionReason":"no""#), Decision::Deny { reason: why("no") }),
        (decided(r#""permissionDecision":"allow","updatedInput":{"path":"/tmp"}"#), Decision::Modify(changed.clone())),
        (decided(r#""updatedInput":{"path":"/tmp"}"#), Decision::Modify(changed.clone())),
        (decided(r#""permissionDecision":"ask","updatedInput":{"path":"/tmp"}"#), Decision::Ask { reason: None, changed: Some(changed) }),
        (r#"{"decision":"block","reason":"no"}"#.into(), Decision::Deny { reason: why("no") }),
        (r#"{"decision":"approve"}"#.into(), Decision::Continue),
        (r#"{"continue":false,"stopReason":"enough"}"#.into(), Decision::AbortTurn { reason: why("enough") }),
        (r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}"#.into(), Decision::Deny { reason: why("no") }),
    ];
    for (text, expected) in table {
        assert_eq!(pre(&saying(&text)).await.unwrap().decision, expected, "{text}");
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_a_failure() {
    for text in [
        r#"{"decision":"deny","reason":"no"}"#.to_owned(),
        r#"{"permissionDecision":"allow"}"#.to_owned(),
        r#"{"hookSpecificOutput":{"permissionDecision":"allow"}}"#.to_owned(),
        r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","permissionDecision":"allow"}}"#.to_owned(),
        decided(r#""permissionDecision":"Allow""#),
        decided(r#""permissionDecision":true"#),
        decided(r#""permissionDecision":"allow","updatedInput":"{}""#),
        decided(r#""permissionDecision":"allow","permissionDecision":"deny""#),
        decided(r#""permissionDecision":"allow","surprise":1"#),
        r#"{"continue":"false"}"#.to_owned(),
        "[]".to_owned(),
        "allow".to_owned(),
        format!("{}{}", decided(r#""permissionDecision":"allow""#), "{}"),
    ] {
        assert!(pre(&saying(&text)).await.is_err(), "{text}");
    }
}

#[tokio::test]
async fn the_input_is_the_event_of_the_host() {
    let script = r#"
import json, sys
event = json.loads(sys.stdin.readline())
assert sys.stdin.read() == ""
assert event["hook_event_name"] == "PreToolUse", event
assert event["tool_name"] == "files_delete" and event["tool_input"] == {"path": "/srv"}
assert event["tool_use_id"] == "t0003c000" and event["session_id"] == "s-1"
"#;
    assert_eq!(
        pre(&hook(&["python3", "-c", script])).await.unwrap().decision,
        Decision::Silent
    );
}

#[tokio::test]
async fn an_approver_agrees_or_not_and_changes_nothing() {
    let answered = |decision: &str| {
        saying(&format!(
            r#"{{"hookSpecificOutput":{{"hookEventName":"PermissionRequest","decision":{decision}}}}}"#
        ))
    };
    let call = call("{}");
    let context = context();
    let yes = answered(r#"{"behavior":"allow"}"#);
    assert!(yes.approve_tool(&context, &call).await.unwrap().allow());
    let no = answered(r#"{"behavior":"deny","message":"frozen","interrupt":false}"#);
    assert_eq!(
        no.approve_tool(&context, &call).await.unwrap().error(),
        Some("frozen")
    );
    for decision in [
        r#"{"behavior":"allow","updatedInput":{}}"#,
        r#"{"behavior":"ask"}"#,
        "{}",
        r#""allow""#,
    ] {
        assert!(
            answered(decision).approve_tool(&context, &call).await.is_err(),
            "{decision}"
        );
    }
}

#[tokio::test]
async fn a_session_gets_context_and_a_result_gets_remarks() {
    let start =
        saying(r#"{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"be careful"}}"#);
    let added = start.session_start(&context()).await.unwrap().decision;
    assert_eq!(
        added,
        Decision::Modify(SessionContext(vec!["be careful".to_owned()]))
    );
    let output = ToolOutput::done("42 rows");
    let after = async |text: &str| {
        let answer = saying(text)
            .post_tool_use(&context(), &call("{}"), &output)
            .await
            .unwrap();
        answer.modified_result().map(|output| output.text.clone())
    };
    let objected = after(r#"{"decision":"block","reason":"too many"}"#)
        .await
        .unwrap();
    assert!(objected.starts_with("42 rows\n") && objected.ends_with("too many"));
    let replaced = r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedMCPToolOutput":{"content":[{"type":"text","text":"n rows"}]}}}"#;
    assert_eq!(after(replaced).await.as_deref(), Some("n rows"));
    assert_eq!(after("{}").await, None);
}

#[test]
fn the_fixtures_are_where_the_tests_look() {
    assert!(
        command(&["x"])
            .dir
            .join(PathBuf::from("RH-404/hook_tree.sh"))
            .is_file()
    );
}
