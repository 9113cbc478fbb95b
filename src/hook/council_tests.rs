use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::sync::mpsc;

use super::fixture::{Say, Scripted, args, hooks};
use super::observe::{Observer, Wanted};
use super::registry::Answer;
use super::{
    Chamber, Event, EventKind, HookContext, HookError, HookResult, Hooks, Interceptor, Mount, Point,
    ToolCall, ToolOutput,
};
use crate::confirmation::OutcomeStatus;
use crate::gate::json::ReadLimits;
use crate::gate::policy::{Effect, Voices};
use crate::gate::{DenyReason, Json};
use crate::gatekeeper::council::{Council as _, Counsel, News, Via, What};
use crate::gatekeeper::{Caller, Question};
use crate::ids::{Org, TokenName};
use crate::lifecycle::Tasks;

fn caller() -> Caller {
    Caller {
        token: TokenName::from("build-agent"),
        org: Org::from("acme"),
        owner: None,
    }
}

fn question(via: Via) -> Question {
    let metadata = br#"{"org_id": "mallory", "surface": "job", "branch": "main"}"#;
    Question {
        via,
        tool: "files_delete".parse().unwrap(),
        args: args(r#"{"path":"a"}"#),
        agent_id: Some("builder".to_owned()),
        session_id: Some("s-1".to_owned()),
        tool_call_id: Some("c-1".to_owned()),
        requester: Some("dana".to_owned()),
        metadata: Some(Json::read(metadata, ReadLimits::bytes(1_000)).unwrap()),
        job: None,
        lineage: Vec::new(),
        voices: Voices::default(),
        carries_edits: false,
        join_twin: false,
    }
}

fn scripted(name: &str, say: Say) -> Arc<Scripted> {
    Arc::new(Scripted {
        name: name.to_owned(),
        say,
        seen: Arc::new(Mutex::default()),
    })
}

fn chamber(hooks: Hooks) -> Chamber {
    Chamber::open(Arc::new(hooks), &Tasks::new())
}

/// What one interceptor's answer comes to.
async fn heard(say: Say) -> Counsel {
    let mut hooks = hooks();
    hooks
        .intercept(
            Mount::in_process("guard", 1, &[Point::PreToolUse]),
            scripted("guard", say),
        )
        .unwrap();
    chamber(hooks).hear(&caller(), &question(Via::Api)).await
}

#[tokio::test]
async fn a_hook_makes_a_call_from_outside_stricter_and_never_another_one() {
    assert_eq!(heard(Say::Silent).await, Counsel::Judge(None));
    assert_eq!(heard(Say::Continue).await, Counsel::Judge(None));
    assert_eq!(heard(Say::Ask).await, Counsel::Judge(Some(Effect::Confirm)));
    for (say, why) in [
        (Say::Deny, "guard says so"),
        (Say::AbortTurn, "guard says so"),
        (Say::HardAbort, "guard says so"),
        (
            Say::Modify(r#"{"path":"secret"}"#),
            "a hook wants other arguments: `guard`",
        ),
        (
            Say::Respond("secret"),
            "a hook answers in place of the tool: `guard`",
        ),
        (Say::Fail, "the hook `guard` failed: broken"),
        (Say::Panic, "the hook `guard` failed: it panicked"),
    ] {
        let Counsel::Deny { hook, why: said } = heard(say.clone()).await else {
            panic!("{say:?} lets the call through");
        };
        assert_eq!(hook, "guard");
        assert!(said.starts_with(why), "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
    // A change that changes nothing is none.
    assert_eq!(heard(Say::Modify(r#"{"path":"a"}"#)).await, Counsel::Judge(None));
}

#[tokio::test]
async fn approvers_and_the_gate_for_everything_hold_outside_too() {
    let mut denying = hooks();
    denying
        .approve(Mount::in_process("no", 1, &[]), scripted("no", Say::Deny))
        .unwrap();
    let heard = chamber(denying).hear(&caller(), &question(Via::Host)).await;
    assert!(matches!(heard, Counsel::Deny { hook, .. } if hook == "no"));
    let mut all = hooks();
    all.confirm_all(&[Via::Host]);
    let all = chamber(all);
    let (host, api) = (question(Via::Host), question(Via::Api));
    assert_eq!(
        all.hear(&caller(), &host).await,
        Counsel::Judge(Some(Effect::Confirm))
    );
    assert_eq!(all.hear(&caller(), &api).await, Counsel::Judge(None));
}

#[tokio::test]
async fn a_hook_of_one_surface_is_not_asked_on_another() {
    let mut hooks = hooks();
    let mut mount = Mount::in_process("hosts-only", 1, &[Point::PreToolUse]);
    mount.surfaces = vec![Via::Host];
    hooks.intercept(mount, scripted("hosts-only", Say::Deny)).unwrap();
    let chamber = chamber(hooks);
    for (via, denies) in [(Via::Api, false), (Via::Host, true)] {
        let heard = chamber.hear(&caller(), &question(via)).await;
        assert_eq!(matches!(heard, Counsel::Deny { .. }), denies, "{via:?}");
    }
}

/// Sends on what it is shown.
struct Witness {
    calls: mpsc::UnboundedSender<(HookContext, ToolCall, ToolOutput)>,
    events: mpsc::UnboundedSender<Event>,
}

#[async_trait]
impl Interceptor for Witness {
    async fn pre_tool_use(&self, context: &HookContext, call: &ToolCall) -> Answer<ToolCall> {
        let shown = (context.clone(), call.clone(), ToolOutput::default());
        self.calls.send(shown).unwrap();
        Ok(HookResult::silent())
    }

    async fn post_tool_use(
        &self,
        context: &HookContext,
        call: &ToolCall,
        output: &ToolOutput,
    ) -> Answer<ToolOutput> {
        self.calls
            .send((context.clone(), call.clone(), output.clone()))
            .unwrap();
        Ok(HookResult::silent())
    }
}

#[async_trait]
impl Observer for Witness {
    async fn observe(&self, event: &Event, _: u64) -> Result<(), HookError> {
        self.events.send(event.clone()).unwrap();
        Ok(())
    }
}

#[tokio::test]
async fn what_a_caller_asserts_does_not_stand_for_what_is_known() {
    let (calls, mut shown) = mpsc::unbounded_channel();
    let (events, _) = mpsc::unbounded_channel();
    let mut hooks = hooks();
    let mount = Mount::in_process("witness", 1, &[Point::PreToolUse]);
    hooks
        .intercept(mount, Arc::new(Witness { calls, events }))
        .unwrap();
    chamber(hooks).hear(&caller(), &question(Via::Api)).await;
    let (context, call, _) = shown.recv().await.unwrap();
    assert_eq!(context.metadata["org_id"], "acme");
    assert_eq!(context.metadata["surface"], "api");
    assert_eq!(context.metadata["branch"], "main");
    assert_eq!(context.tool_call_id.as_deref(), Some("c-1"));
    assert_eq!(context.session_id, "s-1");
    assert_eq!(call.args.canonical(), r#"{"path":"a"}"#);
}

#[tokio::test]
async fn results_are_shown_behind_the_answer_and_every_step_is_told() {
    let (calls, mut shown) = mpsc::unbounded_channel();
    let (events, mut told) = mpsc::unbounded_channel();
    let witness = Arc::new(Witness { calls, events });
    let mut hooks = hooks();
    let mut mount = Mount::in_process("witness", 1, &[Point::PostToolUse]);
    mount.surfaces = vec![Via::Api];
    hooks.intercept(mount.clone(), Arc::clone(&witness) as _).unwrap();
    hooks.observe(&mount, Wanted::All, witness);
    let chamber = chamber(hooks);
    let (caller, api, host) = (caller(), question(Via::Api), question(Via::Host));
    let ended = |question, status, output| {
        let args = &api.args;
        News::of_question(&caller, question, What::Ended { args, status, output })
    };
    chamber.tell(News::of_question(&caller, &host, What::Begun));
    chamber.tell(ended(&host, OutcomeStatus::Succeeded, "not looked at"));
    chamber.tell(News::of_question(
        &caller,
        &api,
        What::Denied(DenyReason::DeniedByRule),
    ));
    chamber.tell(ended(&api, OutcomeStatus::Failed, "no such file"));
    let (context, call, output) = shown.recv().await.unwrap();
    assert_eq!(context.via, Via::Api);
    assert_eq!(call.tool.as_str(), "files_delete");
    assert_eq!((output.text.as_str(), output.is_error), ("no such file", true));
    let skipped = told.recv().await.unwrap();
    assert_eq!(skipped.kind, EventKind::ToolExecSkipped);
    assert_eq!(skipped.payload["Reason"], "denied_by_rule");
    let end = told.recv().await.unwrap();
    assert_eq!(end.kind, EventKind::ToolExecEnd);
    assert_eq!(end.payload["IsError"], true);
    assert_eq!(end.scope.unwrap().session_id, "s-1");
    let text = serde_json::to_string(&end.payload).unwrap();
    assert!(!text.contains("no such file"), "sizes and names only: {text}");
}
