//! Real children in Python, good ones in both dialects and bad ones of every kind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gatepost_channel::UtcMillis;

use super::{Backoff, Keeper, Limits, ProcessHook};
use crate::config::child::ChildConfig;
use crate::config::secret::Secret;
use crate::gatekeeper::Via;
use crate::hook::fixture::{args, call, context, hooks};
use crate::hook::observe::{Observer as _, Wanted};
use crate::hook::registry::Interceptor as _;
use crate::hook::{
    Before, Decision, Event, EventKind, EventScope, HookError, Hooks, Message, ModelRequest, Mount, Point,
    Severity, Source, ToolCall, ToolOutput,
};
use crate::lifecycle::Tasks;

const POINTS: [Point; 5] = [
    Point::BeforeModel,
    Point::AfterModel,
    Point::PreToolUse,
    Point::ApproveTool,
    Point::PostToolUse,
];

/// Long enough for a busy machine, for what is expected to answer.
const PATIENT: Limits = Limits {
    observer: Duration::from_secs(20),
    interceptor: Duration::from_secs(20),
    approval: Duration::from_secs(20),
    grace: Duration::from_millis(200),
};
/// For what is expected not to.
const SHORT: Duration = Duration::from_millis(400);
const NO_PAUSE: Backoff = Backoff {
    first: Duration::ZERO,
    most: Duration::ZERO,
};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn python(script: &str, more: &[&str], env: &[(&str, &str)]) -> ChildConfig {
    let mut words = vec![fixtures().join(script).to_str().unwrap().to_owned()];
    words.extend(more.iter().map(|&word| word.to_owned()));
    ChildConfig {
        program: "python3".to_owned(),
        args: words,
        dir: PathBuf::new(),
        env: env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Secret::verbatim(value)))
            .collect::<BTreeMap<_, _>>(),
    }
}

fn process(child: ChildConfig, limits: Limits, backoff: Backoff) -> ProcessHook {
    let keeper = Keeper::new("review", child, &POINTS, true, limits, backoff, Tasks::new());
    ProcessHook::new(Arc::new(keeper), limits)
}

fn bad(way: &str) -> ProcessHook {
    process(python("hooks/bad_hook.py", &[way], &[]), PATIENT, NO_PAUSE)
}

/// The greeting is given time, the question is not.
async fn impatient(way: &str, more: &[&str]) -> ProcessHook {
    let mut words = vec![way];
    words.extend(more);
    let mut hook = process(python("hooks/bad_hook.py", &words, &[]), PATIENT, NO_PAUSE);
    // An event makes it start.
    hook.observe(&event(), 0).await.unwrap();
    hook.limits.interceptor = SHORT;
    hook
}

fn mounted(hook: &ProcessHook) -> Hooks {
    let mut hooks = hooks();
    let mut mount = Mount::in_process("review", 100, &POINTS);
    mount.source = Source::Program;
    hooks.intercept(mount.clone(), Arc::new(hook.clone())).unwrap();
    hooks.approve(mount, Arc::new(hook.clone())).unwrap();
    hooks
}

fn tool(name: &str, text: &str) -> ToolCall {
    ToolCall {
        tool: name.parse().unwrap(),
        args: args(text),
    }
}

fn event() -> Event {
    Event {
        id: "ev_1".to_owned(),
        kind: EventKind::ToolExecStart,
        at: UtcMillis(1_795_953_600_000),
        severity: Severity::Info,
        scope: Some(EventScope {
            via: Via::Job,
            agent_id: None,
            session_id: "s-1".to_owned(),
            turn: 0,
        }),
        payload: serde_json::Map::new(),
    }
}

struct Log(PathBuf);

impl Log {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gatepost-hook-{}-{name}.log", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn read(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap_or_default()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn runs_a_whole_call(script: &str, log: &Log) {
    let child = python(script, &[], &[("HOOK_LOG", log.0.to_str().unwrap())]);
    let hook = process(child, PATIENT, NO_PAUSE);
    let hooks = mounted(&hook);
    let context = context();
    hook.observe(&event(), 0).await.unwrap();

    let Before::Judge(judged) = hooks
        .pre_tool_use(&context, tool("pay", r#"{"amount":5.0}"#))
        .await
    else {
        panic!("a small payment is agreed to");
    };
    assert_eq!(judged.call.args.canonical(), r#"{"amount":5,"dry_run":true}"#);
    let denied = hooks
        .pre_tool_use(&context, tool("pay", r#"{"amount":500}"#))
        .await;
    assert!(matches!(denied, Before::Deny { why, .. } if why == "too much"));
    let denied = hooks.pre_tool_use(&context, tool("shell_run", "{}")).await;
    assert!(matches!(denied, Before::Deny { why, .. } if why == "no shells"));
    let Before::Judge(judged) = hooks.pre_tool_use(&context, tool("plugin", "{}")).await else {
        panic!("the plugin answers");
    };
    assert_eq!(judged.response, Some(ToolOutput::done("from the hook")));
    let (output, halt) = hooks
        .post_tool_use(&context, &tool("pay", "{}"), ToolOutput::done("paid"))
        .await;
    assert_eq!((output.text.as_str(), halt), ("PAID", None));
    hook.keeper.stop().await;
}

#[tokio::test]
async fn a_hook_in_the_dialect_of_the_page_runs_a_whole_call() {
    let log = Log::new("page");
    runs_a_whole_call("hooks/page_hook.py", &log).await;
    let said = log.read();
    assert!(
        said.starts_with("hello 1 observe,llm,tool,approve\nevent tool_exec_start\nbefore pay\n"),
        "{said}"
    );
}

#[tokio::test]
async fn a_hook_in_the_dialect_of_the_code_runs_a_whole_call() {
    let log = Log::new("code");
    runs_a_whole_call("hooks/code_hook.py", &log).await;
    let said = log.read();
    assert!(said.contains("hook.before_tool pay s-1\n"), "{said}");
    assert!(said.contains("event agent.tool.exec_start\n"), "{said}");
}

#[tokio::test]
async fn a_hook_rewrites_a_question_to_the_model() {
    let log = Log::new("model");
    let child = python(
        "hooks/code_hook.py",
        &[],
        &[("HOOK_LOG", log.0.to_str().unwrap())],
    );
    let request = ModelRequest {
        system: "be long".to_owned(),
        messages: vec![Message::User("pay 5".to_owned())],
        tools: Vec::new(),
    };
    let changed = mounted(&process(child, PATIENT, NO_PAUSE))
        .before_model(&context(), request.clone())
        .await
        .unwrap();
    assert_eq!(
        (changed.system.as_str(), changed.messages),
        ("be brief", request.messages)
    );
}

#[tokio::test]
async fn what_behaves_well_is_listened_to() {
    for way in ["good", "pieces", "first_wrong"] {
        let answer = bad(way).pre_tool_use(&context(), &call("{}")).await;
        assert_eq!(answer.unwrap().decision, Decision::Continue, "{way}");
    }
}

/// RH-402, RH-408 and their like: whatever a hook says that is no answer, the call is denied and the hook started afresh.
#[tokio::test]
async fn what_is_no_answer_denies() {
    type Case = (&'static str, fn(&HookError) -> bool);
    let cases: [Case; 9] = [
        (
            "banner",
            |error| matches!(error, HookError::Unreadable(why) if why.contains("Welcome") && !why.contains("canary")),
        ),
        (
            "dead",
            |error| matches!(error, HookError::Ended(why) if why.contains("exit code 3")),
        ),
        ("version", |error| matches!(error, HookError::Unreadable(_))),
        (
            "noise",
            |error| matches!(error, HookError::Unreadable(why) if why.contains("debug: working")),
        ),
        ("partial", |error| matches!(error, HookError::Ended(_))),
        (
            "oversize",
            |error| matches!(error, HookError::Unreadable(why) if why.contains("longer")),
        ),
        (
            "endless",
            |error| matches!(error, HookError::Unreadable(why) if why.contains("longer")),
        ),
        (
            "dies",
            |error| matches!(error, HookError::Ended(why) if why.contains("signal 9")),
        ),
        (
            "stderr",
            |error| matches!(error, HookError::Ended(why) if why.contains("exit code 4") && why.contains("token=") && !why.contains("canary")),
        ),
    ];
    for (way, is_right) in cases {
        let hook = bad(way);
        let error = hook.pre_tool_use(&context(), &call("{}")).await.unwrap_err();
        assert!(is_right(&error), "{way}: {error:?}");
        let verdict = mounted(&hook).pre_tool_use(&context(), call("{}")).await;
        assert!(
            matches!(&verdict, Before::Deny { hook, why } if hook == "review" && why.contains("`review`")),
            "{way}: {verdict:?}"
        );
    }
}

/// RH-404, RH-407: silence, a foreign id, an input that is not read. Each ends at its limit, and its process with it.
#[tokio::test]
async fn what_does_not_answer_is_late_and_ended() {
    let big = call(&format!(r#"{{"content":"{}"}}"#, "A".repeat(500_000)));
    for way in ["silent", "wrong_id", "ignores_term", "closes"] {
        let hook = impatient(way, &[]).await;
        let began = Instant::now();
        let error = hook.pre_tool_use(&context(), &big).await.unwrap_err();
        assert_eq!(error, HookError::TimedOut(SHORT), "{way}");
        assert!(began.elapsed() < Duration::from_secs(5), "{way}");
    }
}

#[tokio::test]
async fn a_time_out_ends_the_family_of_the_hook() {
    let marker = format!("5{:06}", std::process::id());
    let hook = impatient("tree", &[&marker]).await;
    let error = hook.pre_tool_use(&context(), &call("{}")).await.unwrap_err();
    assert_eq!(error, HookError::TimedOut(SHORT));
    assert_eq!(living(&marker), 0);
}

#[tokio::test]
async fn a_hook_that_says_nothing_to_the_greeting_is_ended() {
    let mut limits = PATIENT;
    limits.interceptor = SHORT;
    let hook = process(python("hooks/bad_hook.py", &["mute"], &[]), limits, NO_PAUSE);
    let error = hook.pre_tool_use(&context(), &call("{}")).await.unwrap_err();
    assert_eq!(error, HookError::TimedOut(SHORT));
}

#[tokio::test]
async fn a_hook_that_died_between_two_questions_is_started_again() {
    let hook = bad("once");
    for _ in 0..3 {
        let answer = hook.pre_tool_use(&context(), &call("{}")).await;
        // It may be noticed only while the question is asked.
        assert!(matches!(answer, Ok(_) | Err(HookError::Ended(_))), "{answer:?}");
    }
    assert!(
        hook.pre_tool_use(&context(), &call("{}")).await.is_ok()
            || hook.pre_tool_use(&context(), &call("{}")).await.is_ok()
    );
}

#[tokio::test]
async fn failures_in_a_row_are_followed_by_a_pause_and_a_denial_at_once() {
    let pause = Backoff {
        first: Duration::from_mins(10),
        most: Duration::from_hours(1),
    };
    let hook = process(python("hooks/bad_hook.py", &["dies"], &[]), PATIENT, pause);
    for _ in 0..2 {
        let error = hook.pre_tool_use(&context(), &call("{}")).await.unwrap_err();
        assert!(matches!(error, HookError::Ended(_)), "{error:?}");
    }
    let error = hook.pre_tool_use(&context(), &call("{}")).await.unwrap_err();
    assert!(matches!(error, HookError::BackingOff(_)), "{error:?}");
}

#[tokio::test]
async fn an_error_in_good_form_denies_and_leaves_the_process_alone() {
    let hook = bad("error");
    for _ in 0..2 {
        let error = hook.pre_tool_use(&context(), &call("{}")).await.unwrap_err();
        assert_eq!(error, HookError::Answered("no".to_owned()));
    }
}

/// RH-408: 300 kB of log text before each of 20 answers.
#[tokio::test]
async fn a_talkative_hook_answers_all_the_same() {
    let hook = process(
        python("bugs/RH-408/hook_stderr_flood.py", &[], &[]),
        PATIENT,
        NO_PAUSE,
    );
    for _ in 0..20 {
        let answer = hook.pre_tool_use(&context(), &call("{}")).await;
        assert_eq!(answer.unwrap().decision, Decision::Continue);
    }
}

#[tokio::test]
async fn whoever_stops_waiting_leaves_a_hook_that_is_fresh_for_the_next() {
    let hook = impatient("silent", &[]).await;
    let context = context();
    let call = call("{}");
    {
        let asking = hook.pre_tool_use(&context, &call);
        assert!(
            tokio::time::timeout(Duration::from_millis(50), asking)
                .await
                .is_err()
        );
    }
    let error = hook.pre_tool_use(&context, &call).await.unwrap_err();
    assert_eq!(
        error,
        HookError::TimedOut(SHORT),
        "it is asked anew, not told something old"
    );
}

#[tokio::test]
async fn observers_that_are_programs_are_told_through_the_registry() {
    let log = Log::new("observe");
    let child = python(
        "hooks/page_hook.py",
        &[],
        &[("HOOK_LOG", log.0.to_str().unwrap())],
    );
    let hook = process(child, PATIENT, NO_PAUSE);
    let mut hooks = hooks();
    hooks.observe(&Mount::in_process("review", 1, &[]), Wanted::All, Arc::new(hook));
    hooks.tell(event());
    let began = Instant::now();
    while !log.read().contains("event tool_exec_start") {
        assert!(began.elapsed() < Duration::from_secs(20), "the event arrives");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn living(marker: &str) -> usize {
    let mut left = 0;
    for _ in 0..200 {
        left = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
            .filter(|line| line.starts_with(b"sleep\0") && String::from_utf8_lossy(line).contains(marker))
            .count();
        if left == 0 {
            return 0;
        }
        std::thread::yield_now();
    }
    left
}
