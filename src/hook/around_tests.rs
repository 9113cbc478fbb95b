use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use super::around::NotRun;
use super::fixture::{args, call, context, hooks};
use super::{
    Around, HookContext, HookError, Hooks, ModelReply, ModelRequest, Mount, Next, Ran, ToolCall, ToolOutput,
};
use crate::config::hook::OnFailure;

/// How long a wrapper may take for itself.
const LIMIT: Duration = Duration::from_millis(20);

/// What a scripted wrapper does.
#[derive(Clone, Copy)]
enum Does {
    Wrap,
    FailBefore,
    FailAfter,
    PanicAfter,
    HangBefore,
    HangAfter,
    Rewrite,
}

struct Wrapper {
    name: &'static str,
    does: Does,
    seen: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Around for Wrapper {
    async fn around_tool<'n>(
        &self,
        _: &HookContext,
        call: ToolCall,
        next: Next<'n, ToolCall, ToolOutput>,
    ) -> Result<Ran<'n, ToolOutput>, HookError> {
        let note = |what: &str| self.seen.lock().unwrap().push(format!("{} {what}", self.name));
        note("before");
        match self.does {
            Does::FailBefore => return Err(HookError::Other("no".to_owned())),
            Does::HangBefore => std::future::pending().await,
            _ => {}
        }
        let call = match self.does {
            Does::Rewrite => call.with_args(args(r#"{"path":"/etc"}"#)),
            _ => call,
        };
        let ran = next.run(call).await?;
        note("after");
        match self.does {
            Does::FailAfter => return Err(HookError::Other("too late".to_owned())),
            Does::PanicAfter => panic!("too late"),
            Does::HangAfter => std::future::pending().await,
            _ => {}
        }
        Ok(ran.map(|output| output.with_text(format!("{}({})", self.name, output.text))))
    }
}

fn wrapped(wrappers: &[(&'static str, Does, OnFailure)]) -> (Hooks, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let mut hooks = hooks();
    for (priority, (name, does, on_failure)) in (0..).zip(wrappers) {
        let mut mount = Mount::in_process(name, priority, &[]);
        mount.on_failure = *on_failure;
        mount.limit = Some(LIMIT);
        let wrapper = Wrapper {
            name,
            does: *does,
            seen: Arc::clone(&seen),
        };
        hooks.wrap(mount, Arc::new(wrapper)).unwrap();
    }
    (hooks, seen)
}

/// Calls the tool inside; the second part counts how often it ran.
async fn run(hooks: &Hooks) -> (Result<ToolOutput, NotRun>, usize) {
    let ran = AtomicUsize::new(0);
    let context = context();
    let output = hooks
        .around_tool(&context, call(r#"{"path":"/srv"}"#), |call| {
            ran.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move { Ok(ToolOutput::done(call.args.canonical())) })
        })
        .await;
    (output, ran.load(Ordering::SeqCst))
}

#[tokio::test]
async fn they_nest_in_list_order_and_the_first_is_outermost() {
    let (hooks, seen) = wrapped(&[
        ("a", Does::Wrap, OnFailure::Deny),
        ("b", Does::Wrap, OnFailure::Deny),
    ]);
    let (output, ran) = run(&hooks).await;
    assert_eq!(output.unwrap().text, r#"a(b({"path":"/srv"}))"#);
    assert_eq!(ran, 1);
    assert_eq!(
        *seen.lock().unwrap(),
        ["a before", "b before", "b after", "a after"]
    );
}

#[tokio::test]
async fn without_hooks_the_tool_runs_once() {
    let (output, ran) = run(&hooks()).await;
    assert_eq!((output.unwrap().text.as_str(), ran), (r#"{"path":"/srv"}"#, 1));
}

/// Whatever a wrapper does, the tool runs at most once, and never when a wrapper that must not fail failed before it.
#[tokio::test]
async fn the_tool_runs_exactly_once_or_the_hook_denied_it() {
    use Does::{FailAfter, FailBefore, HangAfter, HangBefore, PanicAfter, Wrap};
    for does in [Wrap, FailBefore, FailAfter, PanicAfter, HangBefore, HangAfter] {
        for inner in [Wrap, FailBefore, FailAfter] {
            for on_failure in [OnFailure::Deny, OnFailure::Continue] {
                let (hooks, _) = wrapped(&[("outer", does, on_failure), ("inner", inner, on_failure)]);
                let (output, ran) = run(&hooks).await;
                let before = |does| matches!(does, FailBefore | HangBefore);
                let refused = on_failure == OnFailure::Deny && (before(does) || before(inner));
                assert_eq!(ran, usize::from(!refused));
                match output {
                    Ok(_) => assert!(!refused),
                    Err(NotRun::Hook(failed)) => {
                        let culprit = if before(does) { "outer" } else { "inner" };
                        assert!(refused && failed.hook == culprit, "{failed:?}");
                    }
                    Err(NotRun::Inner(error)) => panic!("the tool itself did not fail: {error}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn what_ran_keeps_its_answer_when_a_hook_fails_afterwards() {
    let (hooks, _) = wrapped(&[
        ("a", Does::FailAfter, OnFailure::Deny),
        ("b", Does::Wrap, OnFailure::Deny),
    ]);
    assert_eq!(run(&hooks).await.0.unwrap().text, r#"b({"path":"/srv"})"#);
}

#[tokio::test]
async fn the_time_of_the_tool_is_not_the_hooks() {
    let (hooks, _) = wrapped(&[("a", Does::Wrap, OnFailure::Deny)]);
    let context = context();
    let output = hooks
        .around_tool(&context, call("{}"), |_| {
            Box::pin(async {
                tokio::time::sleep(LIMIT * 5).await;
                Ok(ToolOutput::done("slow"))
            })
        })
        .await;
    assert_eq!(output.unwrap().text, "a(slow)");
}

/// The innermost handler sees what the hooks made of the call, so that it can refuse it.
#[tokio::test]
async fn the_innermost_handler_sees_a_rewritten_call_and_may_refuse_it() {
    let (hooks, _) = wrapped(&[("a", Does::Rewrite, OnFailure::Continue)]);
    let context = context();
    let approved = call(r#"{"path":"/srv"}"#);
    let expected = approved.clone();
    let output = hooks
        .around_tool(&context, approved, |call| {
            Box::pin(async move {
                if call == expected {
                    Ok(ToolOutput::done("ran"))
                } else {
                    Err(HookError::Rule("args_changed"))
                }
            })
        })
        .await;
    assert_eq!(output, Err(NotRun::Inner(HookError::Rule("args_changed"))));
}

#[tokio::test]
async fn the_model_is_wrapped_by_the_same_rules() {
    let (hooks, _) = wrapped(&[("a", Does::Wrap, OnFailure::Deny)]);
    let context = context();
    let request = ModelRequest {
        system: "s".to_owned(),
        messages: Vec::new(),
        tools: Vec::new(),
    };
    let reply = hooks
        .around_model(&context, request, |request| {
            Box::pin(async move {
                Ok(ModelReply {
                    text: Some(request.system),
                    ..ModelReply::default()
                })
            })
        })
        .await;
    assert_eq!(reply.unwrap().text.as_deref(), Some("s"));
}
