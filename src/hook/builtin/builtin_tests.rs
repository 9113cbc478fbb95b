use std::sync::Arc;
use std::time::Duration;

use gatepost_channel::UtcMillis;
use serde_json::{Map, Value, json};

use crate::clock::ManualClock;
use crate::config::hook::{Builtin, BuiltinHook, HookSurface, HooksConfig};
use crate::gate::policy::Effect;
use crate::gatekeeper::People;
use crate::gatekeeper::Via;
use crate::gatekeeper::meter::Meter;
use crate::gatekeeper::people::Person;
use crate::hook::build::{BuildError, Outside, build};
use crate::hook::fixture::{args, call, context};
use crate::hook::{Before, HookContext, Hooks, Point, Recorder, ToolCall, ToolOutput};
use crate::ids::{JobId, Org, SeededIds, TokenName};
use crate::job::fixture::Folder;
use crate::lifecycle::Tasks;
use crate::storage::{Settings, open};

fn outside() -> (Outside, ManualClock) {
    let clock = ManualClock::at(UtcMillis(1_795_953_600_000));
    let outside = Outside {
        recorder: Recorder::forgetful(Arc::new(SeededIds::default())),
        clock: Arc::new(clock.clone()),
        meter: Meter::none(),
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

/// Hooks that count in a store of their own, which knows dana, eve and noor; `owner` runs the token.
struct Counting {
    folder: Folder,
    clock: ManualClock,
    owner: Option<&'static str>,
}

impl Counting {
    fn new(owner: Option<&'static str>) -> Self {
        let clock = ManualClock::at(UtcMillis(1_795_953_600_000));
        let folder = Folder::new();
        Self { folder, clock, owner }
    }

    /// As after a start: with what lies in the file, and nothing else.
    async fn outside(&self) -> Outside {
        let tasks = Tasks::new();
        let url = format!("sqlite://{}/tally.db", self.folder.0.display());
        let store = open(&Settings::new(&url, Arc::new(self.clock.clone())), &tasks).await;
        let people = Arc::new(People::new(["dana", "eve", "noor"].map(|id| Person {
            id: id.into(),
            orgs: vec![Org::from("acme")],
            email: None,
            identities: Vec::new(),
        })));
        let owner = self
            .owner
            .map(|owner| (TokenName::from("build-agent"), owner.into()));
        Outside {
            meter: Meter::new(store.unwrap(), people, owner.into_iter().collect()),
            tasks,
            ..outside().0
        }
    }
}

async fn stopped(outside: Outside) {
    outside.tasks.ask_to_stop();
    assert!(outside.tasks.drain(Duration::from_secs(20)).await);
}

/// Whether a call of this tool for this user runs.
async fn runs(hooks: &Hooks, user: &str, tool: &str) -> bool {
    let context = HookContext {
        user_id: Some(user.to_owned()),
        ..context()
    };
    let call = ToolCall {
        tool: tool.parse().unwrap(),
        args: args("{}"),
    };
    !is_denied(&hooks.pre_tool_use(&context, call).await)
}

#[tokio::test]
async fn calls_of_a_connector_are_bounded_for_user_and_token() {
    let counting = Counting::new(None);
    let outside = counting.outside().await;
    let block = block(
        Builtin::ConnectorRateLimit,
        json!({"limit": 2, "token_limit": 3, "window_s": 60}),
    );
    let hooks = build(&[&block], &outside).unwrap();
    let ask = async |user: &str, tool: &str| runs(&hooks, user, tool).await;
    assert!(ask("dana", "oa__pay").await && ask("Dana", "oa__list").await);
    assert!(!ask("dana", "oa__pay").await, "the third of dana");
    assert!(ask("dana", "mcp__files__read").await, "another connector");
    assert!(ask("eve", "oa__pay").await);
    assert!(!ask("a new name", "oa__pay").await, "the fourth of the token");
    assert!(ask("dana", "disk_usage").await, "no connector");
    counting.clock.advance(Duration::from_mins(1));
    assert!(ask("dana", "oa__pay").await, "the window moved on");
    stopped(outside).await;
}

#[tokio::test]
async fn the_user_is_the_known_requester_else_the_owner_else_the_token() {
    let limited = block(
        Builtin::ConnectorRateLimit,
        json!({"limit": 1, "token_limit": 100}),
    );
    let outside = Counting::new(None).outside().await;
    let hooks = build(&[&limited], &outside).unwrap();
    assert!(runs(&hooks, "somebody", "oa__pay").await);
    assert!(
        !runs(&hooks, "somebody else", "oa__pay").await,
        "unknown names are one user"
    );
    assert!(runs(&hooks, "noor", "oa__pay").await);
    stopped(outside).await;
    let outside = Counting::new(Some("dana")).outside().await;
    let hooks = build(&[&limited], &outside).unwrap();
    assert!(runs(&hooks, "somebody", "oa__pay").await);
    assert!(
        !runs(&hooks, "noor", "oa__pay").await,
        "a name opens no budget beside the owner's"
    );
    stopped(outside).await;
    let per_tool = block(Builtin::ConnectorRateLimit, json!({"limit": 1, "per": "tool"}));
    let outside = Counting::new(None).outside().await;
    let hooks = build(&[&per_tool], &outside).unwrap();
    assert!(runs(&hooks, "dana", "oa__pay").await && runs(&hooks, "dana", "oa__list").await);
    assert!(!runs(&hooks, "dana", "oa__pay").await);
    stopped(outside).await;
}

/// Agents under one general block share its counts, a piece has its own beside it, and a restart forgets neither.
#[tokio::test]
async fn a_general_limit_holds_across_agents_and_restarts() {
    let counting = Counting::new(None);
    let general = block(Builtin::ConnectorRateLimit, json!({"limit": 2}));
    let own = block(Builtin::ConnectorRateLimit, json!({"limit": 1}));
    let outside = counting.outside().await;
    let (one, other) = (
        build(&[&general], &outside).unwrap(),
        build(&[&general, &HooksConfig::default()], &outside).unwrap(),
    );
    assert!(runs(&one, "dana", "oa__pay").await && runs(&other, "dana", "oa__pay").await);
    assert!(!runs(&other, "dana", "oa__pay").await);
    stopped(outside).await;
    let outside = counting.outside().await;
    let again = build(&[&general], &outside).unwrap();
    assert!(!runs(&again, "dana", "oa__pay").await, "after a restart");
    let piece = build(&[&HooksConfig::default(), &own], &outside).unwrap();
    let of_piece = async |piece_name: &str| {
        let mut context = HookContext {
            job: Some(JobId::fresh(&SeededIds::default())),
            ..context()
        };
        context.metadata.insert("piece".to_owned(), piece_name.into());
        let call = ToolCall {
            tool: "oa__pay".parse().unwrap(),
            args: args("{}"),
        };
        !is_denied(&piece.pre_tool_use(&context, call).await)
    };
    assert!(of_piece("night").await && of_piece("day").await);
    assert!(!of_piece("night").await);
    stopped(outside).await;
}

#[tokio::test]
async fn a_store_that_cannot_count_denies() {
    let hooks = built(Builtin::ConnectorRateLimit, json!({}));
    let Before::Deny { why, .. } = hooks
        .pre_tool_use(
            &context(),
            ToolCall {
                tool: "oa__pay".parse().unwrap(),
                args: args("{}"),
            },
        )
        .await
    else {
        panic!("not denied")
    };
    assert!(why.contains("cannot count"), "{why}");
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
        (Builtin::ConnectorRateLimit, json!({"per": "person"})),
        (Builtin::ConnectorRateLimit, json!({"window_s": 99_999_999})),
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
