//! What observers are told of runs, and whose hooks a sub-task meets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use gatepost_channel::Decision as Vote;
use serde_json::json;
use tokio::sync::mpsc;

use super::fixture::{call, calls, complete};
use super::limits::Limits;
use super::model::Reply;
use super::runner::HookSets;
use super::stage::Stage;
use crate::config::hook::HookDefaults;
use crate::hook::observe::{Observer, Wanted};
use crate::hook::registry::Answer;
use crate::hook::{
    Decision, Event, HookContext, HookError, Hooks, Interceptor, Mount, Outside, Point, ToolCall,
};
use crate::ids::JobId;
use crate::job::JobStatus;

const LEAD: &str = "\
name: lead
initial_movement: lead
movements:
  - name: lead
    instruction: LEAD.
    allowed_tools: [t_*]
";
const HELPER: &str = "\
name: helper
initial_movement: help
movements:
  - name: help
    instruction: HELP.
    allowed_tools: [t_*]
";

struct Witness(mpsc::UnboundedSender<Event>);

#[async_trait]
impl Observer for Witness {
    async fn observe(&self, event: &Event, _: u64) -> Result<(), HookError> {
        self.0.send(event.clone()).unwrap();
        Ok(())
    }
}

/// Denies one tool, and writes down of which job it was asked.
struct Guard {
    tool: &'static str,
    asked: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Interceptor for Guard {
    async fn pre_tool_use(&self, context: &HookContext, call: &ToolCall) -> Answer<ToolCall> {
        let piece = context.metadata["piece"].as_str().unwrap().to_owned();
        self.asked
            .lock()
            .unwrap()
            .push(format!("{piece} {}", call.tool.as_str()));
        Ok(if call.tool.as_str() == self.tool {
            Decision::Deny {
                reason: Some("guarded".to_owned()),
            }
        } else {
            Decision::Silent
        }
        .into())
    }
}

fn none(stage: &Stage) -> Hooks {
    let outside = Outside::none(Arc::clone(stage.gatekeeper.ids()));
    Hooks::new(HookDefaults::default(), &outside)
}

/// Waits for the events of a whole family: everything up to the end of the lead's last turn.
async fn told(events: &mut mpsc::UnboundedReceiver<Event>, turns: usize) -> Vec<(String, String)> {
    let mut told = Vec::new();
    let mut ended = 0;
    while ended < turns {
        let event = events.recv().await.unwrap();
        let kind = event.kind.older_name();
        ended += usize::from(kind == "turn_end");
        told.push((event.scope.unwrap().session_id, kind));
    }
    told
}

fn of<'a>(told: &'a [(String, String)], job: &JobId) -> Vec<&'a str> {
    told.iter()
        .filter(|(of, kind)| of == job.as_str() && !kind.starts_with("llm_"))
        .map(|(_, kind)| kind.as_str())
        .collect()
}

fn spawn() -> super::model::RawCall {
    call("spawn_subtask", &json!({"piece": "helper", "input": "a"}))
}

fn one(tool: &str) -> Reply {
    calls(vec![call(tool, &json!({"n": 1}))])
}

fn family() -> Stage {
    let lead = vec![
        calls(vec![spawn()]),
        calls(vec![call("wait_subtasks", &json!({}))]),
        complete("success", "all done"),
    ];
    let help = vec![one("t_free"), one("t_pay"), complete("success", "paid")];
    Stage::with(
        &[LEAD, HELPER],
        vec![("LEAD", lead), ("HELP", help)],
        Limits::default(),
    )
}

#[tokio::test]
async fn observers_are_told_what_a_family_of_runs_does() {
    let stage = family();
    let (sender, mut events) = mpsc::unbounded_channel();
    let mut hooks = none(&stage);
    let mount = Mount::in_process("witness", 1, &[]);
    hooks.observe(&mount, Wanted::All, Arc::new(Witness(sender)));
    let stage = stage.with_hooks(HookSets::new(Arc::new(hooks), BTreeMap::new()));
    let id = stage.submit("lead");
    stage.work().await;
    let child = stage.world.job(&id).children[0].clone();
    stage.decide(&stage.pending()[0], Vote::Approve).await;
    stage.work().await;
    assert_eq!(stage.world.job(&id).state.status(), JobStatus::Completed);
    let told = told(&mut events, 4).await;
    assert_eq!(
        of(&told, &id),
        [
            "turn_start",
            "subturn_spawn",
            "run_parked",
            "turn_end",
            "turn_start",
            "run_resumed",
            "subturn_result_delivered",
            "turn_end",
        ]
    );
    assert_eq!(
        of(&told, &child),
        [
            "turn_start",
            "tool_exec_start",
            "tool_exec_end",
            "approval_asked",
            "run_parked",
            "turn_end",
            "turn_start",
            "run_resumed",
            "approval_decided",
            "tool_exec_start",
            "tool_exec_end",
            "subturn_end",
            "turn_end",
        ]
    );
    let asked = told.iter().filter(|(_, kind)| kind == "llm_request").count();
    assert_eq!(asked, 6);
}

#[tokio::test]
async fn a_refusal_an_answer_and_a_shortened_conversation_are_told() {
    let long = json!({"n": "x".repeat(2_000)});
    let script = vec![
        calls(vec![call("t_free", &long)]),
        one("t_pay"),
        complete("needs_user_input", "which one?"),
        complete("success", "done"),
    ];
    let limits = Limits {
        context: 400,
        ..Limits::default()
    };
    let stage = Stage::with(&[LEAD], vec![("LEAD", script)], limits);
    let (sender, mut events) = mpsc::unbounded_channel();
    let mut hooks = none(&stage);
    let mount = Mount::in_process("witness", 1, &[]);
    hooks.observe(&mount, Wanted::All, Arc::new(Witness(sender)));
    let stage = stage.with_hooks(HookSets::new(Arc::new(hooks), BTreeMap::new()));
    let id = stage.submit("lead");
    stage.work().await;
    stage.decide(&stage.pending()[0], Vote::Reject).await;
    stage.work().await;
    let by = crate::job::cancel::By::Token(crate::job::fixture::token());
    stage.answer(by, &id, "the first").await;
    stage.work().await;
    let told = told(&mut events, 3).await;
    let told = of(&told, &id);
    for kind in [
        "context_compress",
        "tool_exec_skipped",
        "approval_decided",
        "steering_injected",
    ] {
        assert!(told.contains(&kind), "{kind}: {told:?}");
    }
    assert_eq!(told.iter().filter(|kind| **kind == "run_parked").count(), 2);
}

#[tokio::test]
async fn an_orphan_is_told() {
    let stage = family();
    let (sender, mut events) = mpsc::unbounded_channel();
    let mut hooks = none(&stage);
    let mount = Mount::in_process("witness", 1, &[]);
    let wanted = Wanted::Only([crate::hook::EventKind::SubturnOrphan].into());
    hooks.observe(&mount, wanted, Arc::new(Witness(sender)));
    let stage = stage.with_hooks(HookSets::new(Arc::new(hooks), BTreeMap::new()));
    let id = stage.submit("lead");
    stage.work().await;
    let child = stage.world.job(&id).children[0].clone();
    stage.decide(&stage.pending()[0], Vote::Approve).await;
    stage.world.tamper(&id, |job| {
        job.state = crate::job::JobState::Error {
            error: "gone".to_owned(),
        };
    });
    stage.work().await;
    let event = events.recv().await.unwrap();
    assert_eq!(event.payload["Parent"], id.as_str());
    assert_eq!(event.scope.unwrap().session_id, child.as_str());
}

/// RH-405: delegating is no way around a hook, and a hook of the delegating piece is none of the delegate's.
#[tokio::test]
async fn a_sub_task_meets_the_hooks_of_its_own_piece_and_the_gate() {
    let stage = family();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let guarded = |tools: &[&'static str]| {
        let mut hooks = none(&stage);
        for tool in tools {
            let guard = Guard {
                tool,
                asked: Arc::clone(&asked),
            };
            hooks
                .intercept(Mount::in_process(tool, 1, &[Point::PreToolUse]), Arc::new(guard))
                .unwrap();
        }
        hooks
    };
    let own = BTreeMap::from([
        ("lead".to_owned(), guarded(&["t_pay"])),
        ("helper".to_owned(), guarded(&["t_free"])),
    ]);
    let sets = HookSets::new(Arc::new(guarded(&[])), own);
    let stage = stage.with_hooks(sets);
    let id = stage.submit("lead");
    stage.work().await;
    let child = stage.world.job(&id).children[0].clone();
    assert_eq!(*asked.lock().unwrap(), ["helper t_free", "helper t_pay"]);
    assert!(stage.results(&child)[0].contains("guarded"));
    assert!(stage.ledger.all().is_empty());
    // Its own hook has nothing against the payment; the gate has.
    assert_eq!(stage.pending().len(), 1);
    assert_eq!(stage.world.job(&child).state.status(), JobStatus::WaitingHuman);
    assert_eq!(stage.world.job(&id).state.status(), JobStatus::WaitingSubtasks);
}
