use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use gatepost_channel::Decision as Vote;
use serde_json::json;

use super::HookSets;
use crate::agent::Pieces;
use crate::agent::fixture::{Lab, call, calls, complete, piece, toolbox};
use crate::agent::limits::Limits;
use crate::agent::memory::Entry;
use crate::agent::model::{Model, Reply};
use crate::agent::runner::Runner;
use crate::agent::tool::Carried;
use crate::config::hook::HookDefaults;
use crate::gate::Arguments;
use crate::gate::json::ReadLimits;
use crate::hook::registry::Answer;
use crate::hook::{
    Around, Decision, HookContext, HookError, HookResult, Hooks, Interceptor, ModelReply, ModelRequest,
    Mount, Next, Outside, Point, Ran, SessionContext, ToolCall, ToolOutput,
};
use crate::ids::JobId;
use crate::job::{JobStatus, WaitReason};

/// A lab whose runs meet these hooks.
fn hooked(replies: Vec<Reply>, mount: impl FnOnce(&mut Hooks)) -> Lab {
    let mut lab = Lab::new(replies);
    let outside = Outside::none(Arc::clone(lab.gatekeeper.ids()));
    let mut hooks = Hooks::new(HookDefaults::default(), &outside);
    mount(&mut hooks);
    let runner = Runner::new(
        lab.gatekeeper.clone(),
        Arc::clone(&lab.model) as Arc<dyn Model>,
        toolbox(&lab.ledger),
        Arc::new(Pieces::new([piece()])),
        Limits::default(),
    );
    lab.runner =
        Arc::new(runner.with_hooks(HookSets::new(Arc::new(hooks), std::collections::BTreeMap::new())));
    lab
}

/// A hook that answers by one function for each point that a test is about.
#[derive(Default)]
struct Fixed {
    start: Option<&'static str>,
    system: Option<&'static str>,
    args: Option<&'static str>,
    before: Option<Decision<ToolCall>>,
    after: Option<Decision<ToolOutput>>,
}

#[async_trait]
impl Interceptor for Fixed {
    async fn session_start(&self, _: &HookContext) -> Answer<SessionContext> {
        Ok(self.start.map_or_else(HookResult::silent, |text| {
            Decision::Modify(SessionContext(vec![text.to_owned()])).into()
        }))
    }

    async fn before_model(&self, _: &HookContext, request: &ModelRequest) -> Answer<ModelRequest> {
        Ok(self.system.map_or_else(HookResult::silent, |text| {
            let mut request = request.clone();
            request.messages.push(crate::hook::Message::User(text.to_owned()));
            Decision::Modify(request).into()
        }))
    }

    async fn pre_tool_use(&self, context: &HookContext, call: &ToolCall) -> Answer<ToolCall> {
        assert!(context.metadata.contains_key("requires_confirmation"));
        assert!(context.tool_call_id.is_some() && context.job.is_some());
        Ok(match (self.args, self.before.clone()) {
            (Some(text), _) => {
                let args = Arguments::read(text.as_bytes(), ReadLimits::bytes(1000)).unwrap();
                Decision::Modify(call.with_args(args)).into()
            }
            (None, before) => before.unwrap_or(Decision::Silent).into(),
        })
    }

    async fn post_tool_use(&self, _: &HookContext, _: &ToolCall, _: &ToolOutput) -> Answer<ToolOutput> {
        Ok(self.after.clone().unwrap_or(Decision::Silent).into())
    }
}

fn fixed(fixed: Fixed) -> impl FnOnce(&mut Hooks) {
    move |hooks| {
        hooks
            .intercept(Mount::in_process("fixed", 1, &Point::ALL), Arc::new(fixed))
            .unwrap();
    }
}

fn one(tool: &str) -> Vec<Reply> {
    vec![
        calls(vec![call(tool, &json!({"n": 1}))]),
        complete("success", "done"),
    ]
}

async fn run(lab: &Lab) -> JobId {
    let id = lab.submit().await;
    lab.work().await;
    id
}

fn status(lab: &Lab, id: &JobId) -> JobStatus {
    lab.world.job(id).state.status()
}

#[tokio::test]
async fn a_session_begins_with_what_hooks_add_and_the_model_sees_it_once() {
    let hook = Fixed {
        start: Some("today is Monday"),
        system: Some("be brief"),
        ..Fixed::default()
    };
    let lab = hooked(one("t_free"), fixed(hook));
    let id = run(&lab).await;
    assert_eq!(status(&lab, &id), JobStatus::Completed);
    let count = |history: &[Entry], text: &str| {
        history
            .iter()
            .filter(|entry| matches!(entry, Entry::User(said) if said == text))
            .count()
    };
    let seen = lab.model.seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 2);
    for history in &seen {
        assert_eq!(
            (count(history, "today is Monday"), count(history, "be brief")),
            (1, 1)
        );
    }
    assert!(matches!(seen[0].last(), Some(Entry::User(said)) if said == "be brief"));
}

#[tokio::test]
async fn what_is_asked_about_and_sent_is_the_call_as_hooks_rewrote_it() {
    for tool in ["t_free", "t_pay"] {
        let hook = Fixed {
            args: Some(r#"{"n":7}"#),
            ..Fixed::default()
        };
        let lab = hooked(one(tool), fixed(hook));
        let id = run(&lab).await;
        if tool == "t_pay" {
            let request = lab.world.requests().remove(0);
            assert_eq!(request.asked.args, r#"{"n":7}"#);
            lab.decide(&request.id, Vote::Approve, None).await;
            lab.work().await;
        }
        assert_eq!(status(&lab, &id), JobStatus::Completed);
        assert_eq!(lab.ledger.all().len(), 1);
        assert_eq!(lab.ledger.all()[0].args, r#"{"n":7}"#);
        assert_eq!(lab.past(&id)[0].args, r#"{"n":7}"#);
    }
}

/// A call that a person rejected is not asked about again just because the model repeats what a hook rewrites.
#[tokio::test]
async fn a_rejection_holds_for_what_hooks_make_of_a_call() {
    let hook = Fixed {
        args: Some(r#"{"n":7}"#),
        ..Fixed::default()
    };
    let again = calls(vec![call("t_pay", &json!({"n": 2}))]);
    let lab = hooked(
        vec![one("t_pay").remove(0), again, complete("success", "done")],
        fixed(hook),
    );
    let id = run(&lab).await;
    let request = lab.pending().remove(0);
    lab.decide(&request, Vote::Reject, None).await;
    lab.work().await;
    assert_eq!(status(&lab, &id), JobStatus::Completed);
    assert_eq!(lab.world.requests().len(), 1);
    assert!(lab.ledger.all().is_empty());
}

#[tokio::test]
async fn a_denied_call_never_runs_and_nobody_is_asked() {
    for tool in ["t_free", "t_pay"] {
        let lab = hooked(
            one(tool),
            fixed(Fixed {
                before: Some(Decision::Deny {
                    reason: Some("frozen".to_owned()),
                }),
                ..Fixed::default()
            }),
        );
        let id = run(&lab).await;
        assert_eq!(status(&lab, &id), JobStatus::Completed);
        assert!(lab.ledger.all().is_empty() && lab.world.requests().is_empty());
        assert!(lab.results(&id)[0].starts_with("denied (denied_by_rule): frozen"));
        assert!(lab.kinds().await.iter().any(|kind| kind == "call.denied"));
    }
}

#[tokio::test]
async fn a_hook_can_ask_for_a_person_where_no_rule_does() {
    let lab = hooked(
        one("t_free"),
        fixed(Fixed {
            before: Some(Decision::Ask {
                reason: None,
                changed: None,
            }),
            ..Fixed::default()
        }),
    );
    let id = run(&lab).await;
    assert_eq!(
        lab.world.job(&id).state.wait_reason(),
        Some(WaitReason::ToolApproval)
    );
    assert!(lab.ledger.all().is_empty());
    lab.decide(&lab.pending()[0], Vote::Approve, None).await;
    lab.work().await;
    assert_eq!(lab.ledger.all().len(), 1);
}

/// RH-405, variant "tool run by a hook's respond action": a response answers for an ungated tool and does not go around a person.
#[tokio::test]
async fn a_response_answers_for_ungated_tools_only() {
    let respond = || Fixed {
        before: Some(Decision::Respond(ToolOutput::done("from the hook"))),
        ..Fixed::default()
    };
    let lab = hooked(one("t_free"), fixed(respond()));
    let id = run(&lab).await;
    assert_eq!(status(&lab, &id), JobStatus::Completed);
    assert!(lab.ledger.all().is_empty());
    assert_eq!(lab.results(&id)[0], "from the hook");

    let lab = hooked(one("t_pay"), fixed(respond()));
    let id = run(&lab).await;
    assert_eq!(
        lab.world.job(&id).state.wait_reason(),
        Some(WaitReason::ToolApproval)
    );
    lab.decide(&lab.pending()[0], Vote::Approve, None).await;
    lab.work().await;
    assert_eq!(lab.ledger.all().len(), 1, "the approved call itself runs");
    assert!(lab.results(&id)[0].starts_with("t_pay did"));
}

/// An evaluation asks nobody. Where a hook stands in for the tool, the tool itself must not be called for that.
#[tokio::test]
async fn in_an_evaluation_a_response_keeps_the_call_from_being_sent() {
    let respond = Fixed {
        before: Some(Decision::Respond(ToolOutput::done("from the hook"))),
        ..Fixed::default()
    };
    let mut lab = Lab::new(one("t_pay"));
    let mut hooks = Hooks::new(
        HookDefaults::default(),
        &Outside::none(Arc::clone(lab.gatekeeper.ids())),
    );
    fixed(respond)(&mut hooks);
    let runner = Runner::new(
        lab.gatekeeper.clone(),
        Arc::clone(&lab.model) as Arc<dyn Model>,
        toolbox(&lab.ledger),
        Arc::new(Pieces::new([piece()])),
        Limits::default(),
    );
    lab.runner = Arc::new(
        runner
            .with_hooks(HookSets::new(Arc::new(hooks), std::collections::BTreeMap::new()))
            .with_evaluations([crate::job::fixture::token()].into()),
    );
    let id = run(&lab).await;
    assert_eq!(status(&lab, &id), JobStatus::Completed);
    assert!(lab.ledger.all().is_empty(), "nothing was paid");
    assert_eq!(lab.results(&id)[0], "from the hook");
    assert!(lab.world.requests().is_empty());
    let kinds = lab.kinds().await;
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "gate.bypassed").count(),
        1,
        "{kinds:?}"
    );
}

#[tokio::test]
async fn a_result_may_be_rewritten_and_a_run_ended_after_it() {
    let hook = Fixed {
        after: Some(Decision::Modify(ToolOutput::done("rewritten"))),
        ..Fixed::default()
    };
    let lab = hooked(one("t_free"), fixed(hook));
    let id = run(&lab).await;
    assert_eq!(lab.results(&id)[0], "rewritten");

    let lab = hooked(
        one("t_free"),
        fixed(Fixed {
            after: Some(Decision::HardAbort { reason: None }),
            ..Fixed::default()
        }),
    );
    let id = run(&lab).await;
    assert_eq!(status(&lab, &id), JobStatus::Error);
    assert_eq!(lab.ledger.all().len(), 1);
    assert!(
        lab.kinds().await.iter().any(|kind| kind == "tool.executed"),
        "what ran is on record"
    );
}

#[tokio::test]
async fn an_aborted_turn_ends_the_run_before_the_call() {
    let lab = hooked(
        one("t_pay"),
        fixed(Fixed {
            before: Some(Decision::AbortTurn { reason: None }),
            ..Fixed::default()
        }),
    );
    let id = run(&lab).await;
    assert_eq!(status(&lab, &id), JobStatus::Aborted);
    assert!(lab.ledger.all().is_empty() && lab.world.requests().is_empty());
}

/// What a test's wrapper does with the call.
enum Wrap {
    Count,
    Rewrite,
    Fail,
    BreakOff,
}

struct Wrapper(Wrap, Arc<AtomicUsize>, Arc<Mutex<Vec<&'static str>>>);

#[async_trait]
impl Around for Wrapper {
    async fn around_model<'n>(
        &self,
        _: &HookContext,
        request: ModelRequest,
        next: Next<'n, ModelRequest, ModelReply>,
    ) -> Result<Ran<'n, ModelReply>, HookError> {
        self.2.lock().unwrap().push("model");
        next.run(request).await
    }

    async fn around_tool<'n>(
        &self,
        _: &HookContext,
        call: ToolCall,
        next: Next<'n, ToolCall, ToolOutput>,
    ) -> Result<Ran<'n, ToolOutput>, HookError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        match self.0 {
            Wrap::Fail => Err(HookError::Other("no".to_owned())),
            Wrap::Count => next.run(call).await,
            Wrap::Rewrite => next.run(call.with_args(Arguments::none())).await,
            Wrap::BreakOff => tokio::select! {
                biased;
                ran = next.run(call) => ran,
                () = std::future::ready(()) => Err(HookError::Other("no patience".to_owned())),
            },
        }
    }
}

#[tokio::test]
async fn around_hooks_wrap_and_can_neither_repeat_nor_change_an_approved_call() {
    for (wrap, runs) in [(Wrap::Count, 1), (Wrap::Rewrite, 0), (Wrap::Fail, 0)] {
        let (count, seen) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<Vec<_>>>::default());
        let wrapper = Wrapper(wrap, Arc::clone(&count), Arc::clone(&seen));
        let lab = hooked(one("t_pay"), |hooks| {
            hooks
                .wrap(Mount::in_process("wrap", 1, &[]), Arc::new(wrapper))
                .unwrap();
        });
        let id = run(&lab).await;
        lab.decide(&lab.pending()[0], Vote::Approve, None).await;
        lab.work().await;
        assert_eq!(status(&lab, &id), JobStatus::Completed);
        assert_eq!((count.load(Ordering::SeqCst), lab.ledger.all().len()), (1, runs));
        assert_eq!(
            seen.lock().unwrap().len(),
            2,
            "each question to the model is wrapped"
        );
        assert_eq!(lab.results(&id)[0].starts_with("error: "), runs == 0);
    }
}

#[tokio::test]
async fn a_call_that_a_hook_breaks_off_has_an_unknown_end() {
    let wrapper = Wrapper(Wrap::BreakOff, Arc::default(), Arc::default());
    let lab = hooked(one("t_pay"), |hooks| {
        hooks
            .wrap(Mount::in_process("wrap", 1, &[]), Arc::new(wrapper))
            .unwrap();
    });
    lab.submit().await;
    let job = lab.world.claim_one();
    let Ok(session) = super::Session::open(&lab.runner, job) else {
        panic!("a session");
    };
    let tool = || "t_pay".parse().unwrap();
    let sent = session
        .carry_out_through_hooks("t0", tool(), Arguments::none(), std::future::pending())
        .await;
    assert!(matches!(sent, (Carried::Unknown(_), None)), "{sent:?}");
    let quick = std::future::ready(Carried::Done("done".to_owned()));
    let sent = session
        .carry_out_through_hooks("t0", tool(), Arguments::none(), quick)
        .await;
    assert!(matches!(sent, (Carried::Done(_), Some(_))), "{sent:?}");
}
