use std::sync::Arc;
use std::time::Duration;

use gatepost_channel::UtcMillis;
use serde_json::{Map, Value, json};

use crate::clock::ManualClock;
use crate::config::hook::{Builtin, BuiltinHook, HookSurface, HooksConfig};
use crate::gate::policy::Effect;
use crate::gatekeeper::Via;
use crate::hook::build::{BuildError, Outside, build};
use crate::hook::fixture::{args, call, context};
use crate::hook::{Before, HookContext, Hooks, Point, Recorder, ToolCall, ToolOutput};
use crate::ids::{Org, SeededIds};
use crate::lifecycle::Tasks;

fn outside() -> (Outside, ManualClock) {
    let clock = ManualClock::at(UtcMillis(1_795_953_600_000));
    let outside = Outside {
        recorder: Recorder::forgetful(Arc::new(SeededIds::default())),
        clock: Arc::new(clock.clone()),
        counts: Arc::default(),
        tasks: Tasks::new(),
    };
    (outside, clock)
}

fn block(builtin: Builtin, config: Value) -> HooksConfig {
    let Value::Object(config) = config else {
        panic!("settings are an object");
    };
    let mut block = HooksConfig::default();
    block.builtins.insert(
        builtin,
        BuiltinHook {
            enabled: true,
            priority: None,
            surfaces: HookSurface::ALL.to_vec(),
            config,
        },
    );
    block
}

fn built(builtin: Builtin, config: Value) -> Hooks {
    build(&[&block(builtin, config)], &outside().0).unwrap()
}

async fn result(hooks: &Hooks, text: &str) -> String {
    let (output, halt) = hooks
        .post_tool_use(&context(), &call("{}"), ToolOutput::done(text))
        .await;
    assert_eq!(halt, None);
    output.text
}

fn is_denied(before: &Before) -> bool {
    matches!(before, Before::Deny { .. })
}

#[tokio::test]
async fn long_results_are_cut_on_a_character_and_say_so() {
    let hooks = build(&[&HooksConfig::default()], &outside().0).unwrap();
    assert_eq!(result(&hooks, &"字".repeat(8_000)).await, "字".repeat(8_000));
    let cut = result(&hooks, &"字".repeat(8_001)).await;
    assert!(cut.chars().count() <= 8_000);
    assert!(cut.ends_with("of 8001 characters]"), "{}", &cut[cut.len() - 60..]);
    let short = built(Builtin::ResultTruncate, json!({"limit": 100}));
    assert!(result(&short, &"é".repeat(101)).await.chars().count() <= 100);
}

#[tokio::test]
async fn a_read_only_organisation_reads_only() {
    let hooks = built(
        Builtin::ReadOnlyGuard,
        json!({"reading": ["*_read", "*_list"], "orgs": ["acme"]}),
    );
    let tool = |name: &str| ToolCall {
        tool: name.parse().unwrap(),
        args: args("{}"),
    };
    assert!(is_denied(
        &hooks.pre_tool_use(&context(), tool("files_delete")).await
    ));
    assert!(!is_denied(
        &hooks.pre_tool_use(&context(), tool("files_read")).await
    ));
    let elsewhere = HookContext {
        org: Org::from("other"),
        ..context()
    };
    assert!(!is_denied(
        &hooks.pre_tool_use(&elsewhere, tool("files_delete")).await
    ));
    let nothing = built(Builtin::ReadOnlyGuard, json!({}));
    assert!(
        is_denied(&nothing.pre_tool_use(&context(), tool("files_read")).await),
        "named by nobody, nothing reads"
    );
}

#[tokio::test]
async fn calls_of_a_connector_are_bounded_for_user_and_token() {
    let (outside, clock) = outside();
    let block = block(
        Builtin::ConnectorRateLimit,
        json!({"limit": 2, "token_limit": 3, "window_s": 60}),
    );
    let hooks = build(&[&block], &outside).unwrap();
    let ask = async |user: &str, tool: &str| {
        let context = HookContext {
            user_id: Some(user.to_owned()),
            ..context()
        };
        let call = ToolCall {
            tool: tool.parse().unwrap(),
            args: args("{}"),
        };
        !is_denied(&hooks.pre_tool_use(&context, call).await)
    };
    assert!(ask("dana", "oa__pay").await && ask("dana", "oa__list").await);
    assert!(!ask("dana", "oa__pay").await, "the third of dana");
    assert!(ask("dana", "mcp__files__read").await, "another connector");
    assert!(ask("eve", "oa__pay").await);
    assert!(!ask("a new name", "oa__pay").await, "the fourth of the token");
    assert!(ask("dana", "disk_usage").await, "no connector");
    clock.advance(Duration::from_mins(1));
    assert!(ask("dana", "oa__pay").await, "the window moved on");
}

/// Two agents under one general block share its counts.
#[tokio::test]
async fn a_general_limit_holds_across_agents() {
    let (outside, _) = outside();
    let general = block(Builtin::ConnectorRateLimit, json!({"limit": 1}));
    let (one, other) = (
        build(&[&general], &outside).unwrap(),
        build(&[&general, &HooksConfig::default()], &outside).unwrap(),
    );
    let call = || ToolCall {
        tool: "oa__pay".parse().unwrap(),
        args: args("{}"),
    };
    assert!(!is_denied(&one.pre_tool_use(&context(), call()).await));
    assert!(is_denied(&other.pre_tool_use(&context(), call()).await));
}

#[tokio::test]
async fn the_gate_can_be_made_stricter_and_cannot_be_skipped() {
    let hooks = built(
        Builtin::ConfirmationGate,
        json!({"require_confirmation_for_all": true}),
    );
    let Before::Judge(judged) = hooks.pre_tool_use(&context(), call("{}")).await else {
        panic!("nobody denied");
    };
    assert_eq!(judged.voice, Some(Effect::Confirm));
}

#[test]
fn a_piece_adds_and_lifts_nothing() {
    let general = block(Builtin::ReadOnlyGuard, json!({"reading": []}));
    let mut piece = block(Builtin::ReadOnlyGuard, json!({"reading": ["*"]}));
    if let Some(guard) = piece.builtins.get_mut(&Builtin::ReadOnlyGuard) {
        guard.enabled = false;
    }
    let hooks = build(&[&general, &piece], &outside().0).unwrap();
    assert_eq!(hooks.asked_at(Via::Job, Point::PreToolUse), ["read_only_guard"]);
    assert_eq!(hooks.asked_at(Via::Job, Point::PostToolUse), ["result_truncate"]);
}

#[test]
fn settings_that_make_no_sense_are_start_up_errors() {
    for (builtin, config) in [
        (Builtin::ResultTruncate, json!({"limit": 3})),
        (Builtin::ResultTruncate, json!({"limit": "8000"})),
        (Builtin::ResultTruncate, json!({"limits": 8000})),
        (Builtin::ReadOnlyGuard, json!({"reading": "*"})),
        (Builtin::ReadOnlyGuard, json!({"reading": ["["]})),
        (Builtin::ConnectorRateLimit, json!({"limit": 0})),
        (Builtin::ConfirmationGate, json!({"disabled": true})),
        (Builtin::AuditLog, json!({"tools": [1]})),
    ] {
        let refused = build(&[&block(builtin, config.clone())], &outside().0);
        assert!(matches!(refused, Err(BuildError::Setting { .. })), "{config}");
    }
}

#[test]
fn the_default_is_a_short_list() {
    let hooks = build(&[&HooksConfig::default()], &outside().0).unwrap();
    assert_eq!(hooks.asked_at(Via::Job, Point::PreToolUse), Vec::<&str>::new());
    assert_eq!(hooks.asked_at(Via::Job, Point::PostToolUse), ["result_truncate"]);
    let _: Map<String, Value> = context().metadata;
}
