//! Evaluation runs ask nobody, each bypassed call is on record, and what is denied stays denied. Scheduled runs wait, and are
//! gated like any other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use gatepost_channel::Decision;
use serde_json::{Value, json};

use super::fixture::{Lab, call, calls, complete, piece, toolbox};
use super::limits::Limits;
use super::model::{Model, Reply};
use super::piece::Pieces;
use super::runner::Runner;
use crate::audit::Sealed;
use crate::clock::Clock as _;
use crate::confirmation::Status;
use crate::ids::{JobId, TokenName};
use crate::job::cancel::{By, Cancel, Cancelled};
use crate::job::family::Family;
use crate::job::fixture::{dana, org, token};
use crate::job::submit::Submit;
use crate::job::view::JobView;
use crate::job::{JobStatus, WaitReason};

/// A lab in which jobs of these tokens are evaluations.
fn evaluating(replies: Vec<Reply>, tokens: &[&str]) -> Lab {
    let mut lab = Lab::new(replies);
    let runner = Runner::new(
        lab.gatekeeper.clone(),
        Arc::clone(&lab.model) as Arc<dyn Model>,
        toolbox(&lab.ledger),
        Arc::new(Pieces::new([piece()])),
        Limits::default(),
    );
    let tokens: BTreeSet<TokenName> = tokens.iter().map(|name| TokenName((*name).to_owned())).collect();
    lab.runner = Arc::new(runner.with_evaluations(tokens));
    lab
}

fn bypassed(lab: &Lab) -> Vec<Sealed> {
    let events = lab.world.events().into_iter();
    events.filter(|event| event.kind == "gate.bypassed").collect()
}

#[tokio::test]
async fn an_evaluation_runs_gated_calls_and_each_is_on_record() {
    let script = vec![
        calls(vec![
            call("t_pay", &json!({"n": 1})),
            call("t_free", &json!({"n": 2})),
            call("t_pay", &json!({"n": 3})),
        ]),
        calls(vec![call(
            "request_tool",
            &json!({"tool": "hidden", "reason": "to see"}),
        )]),
        calls(vec![call("hidden", &json!({}))]),
        complete("success", "seen"),
    ];
    let lab = evaluating(script, &["build-agent"]);
    let id = lab.submit().await;
    lab.work().await;
    assert_eq!(lab.world.job(&id).state.status(), JobStatus::Completed);
    assert!(lab.world.requests().is_empty(), "nobody was asked");
    assert_eq!(lab.ledger.all().len(), 4);
    let events = bypassed(&lab);
    let told: Vec<(String, String)> = events
        .iter()
        .map(|event| {
            let data: Value = serde_json::from_str(&event.data).unwrap();
            let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
            (text("tool_name"), text("permit"))
        })
        .collect();
    let tools: Vec<&str> = told.iter().map(|(tool, _)| tool.as_str()).collect();
    assert_eq!(
        tools,
        ["t_pay", "t_pay", "request_tool"],
        "not the call that needed nobody"
    );
    for event in &events {
        assert_eq!(event.actor, "token:build-agent");
        assert_eq!(event.job.as_ref(), Some(&id));
    }
    let permits: BTreeSet<String> = lab
        .ledger
        .all()
        .iter()
        .map(|run| run.permit.to_string())
        .collect();
    assert!(
        permits.contains(&told[0].1) && permits.contains(&told[1].1),
        "the event names the permit"
    );
    assert!(lab.world.chain_is_sound());
}

#[tokio::test]
async fn an_evaluation_lifts_no_denial() {
    let script = vec![
        calls(vec![call("t_free", &json!({"never": true}))]),
        complete("aborted", ""),
    ];
    let lab = evaluating(script, &["build-agent"]);
    let id = lab.submit().await;
    lab.work().await;
    assert!(lab.ledger.all().is_empty() && bypassed(&lab).is_empty());
    assert!(lab.results(&id)[0].starts_with("denied (denied_by_rule): never ever"));
}

#[tokio::test]
async fn jobs_of_other_tokens_are_gated_as_ever() {
    let script = vec![
        calls(vec![call("t_pay", &json!({"n": 1}))]),
        complete("success", ""),
    ];
    let lab = evaluating(script, &["another"]);
    let id = lab.submit().await;
    lab.work().await;
    assert_eq!(
        lab.world.job(&id).state.wait_reason(),
        Some(WaitReason::ToolApproval)
    );
    assert!(bypassed(&lab).is_empty() && lab.ledger.all().is_empty());
}

fn scheduled(lab: &Lab, after: Duration) -> JobId {
    let submit = Submit {
        run_at: Some(lab.world.clock.now().plus(after)),
        ..submit_now(lab)
    };
    lab.world.run(&submit).id
}

#[tokio::test]
async fn a_scheduled_run_waits_for_its_time_and_is_gated_like_any_other() {
    let script = vec![
        calls(vec![call("t_pay", &json!({"n": 1}))]),
        complete("success", ""),
    ];
    let lab = Lab::new(script);
    let id = scheduled(&lab, Duration::from_hours(1));
    lab.work().await;
    let job = lab.world.job(&id);
    assert_eq!(job.state.status(), JobStatus::Queued);
    let shown = JobView::from(&job);
    assert_eq!(
        shown.run_at,
        Some(crate::clock::rfc3339(
            job.created_at.plus(Duration::from_hours(1))
        ))
    );
    lab.world.clock.advance(Duration::from_mins(59));
    lab.work().await;
    assert_eq!(lab.world.job(&id).state.status(), JobStatus::Queued);
    lab.world.clock.advance(Duration::from_mins(1));
    lab.work().await;
    assert_eq!(
        lab.world.job(&id).state.wait_reason(),
        Some(WaitReason::ToolApproval)
    );
    assert_eq!(JobView::from(&lab.world.job(&id)).run_at, None);
    let request = lab.pending().remove(0);
    assert_eq!(lab.world.request(&request).state.status(), Status::Pending);
    lab.decide(&request, Decision::Approve, None).await;
    lab.work().await;
    assert_eq!(lab.world.job(&id).state.status(), JobStatus::Completed);
    assert_eq!(lab.ledger.all().len(), 1);
}

#[tokio::test]
async fn a_scheduled_run_can_be_cancelled_and_a_past_time_means_at_once() {
    let lab = Lab::new(vec![complete("success", "")]);
    let id = scheduled(&lab, Duration::from_hours(1));
    let cancelled = lab.world.run(&Cancel {
        job: id.clone(),
        org: org(),
        by: By::Operator(dana()),
        confirmations: Vec::new(),
        parent: None,
        family: Family::default(),
    });
    assert!(matches!(cancelled, Cancelled::Done(_)));
    lab.world.clock.advance(Duration::from_hours(2));
    lab.work().await;
    assert_eq!(lab.world.job(&id).state.status(), JobStatus::Cancelled);
    assert!(lab.model.seen.lock().unwrap().is_empty());

    let past = lab.world.clock.now();
    lab.world.clock.advance(Duration::from_hours(1));
    let job = lab.world.run(&Submit {
        run_at: Some(past),
        ..submit_now(&lab)
    });
    assert_eq!(job.run_at, lab.world.clock.now());
    assert_eq!(JobView::from(&job).run_at, None);
}

fn submit_now(lab: &Lab) -> Submit {
    Submit {
        id: JobId::fresh(&*lab.world.ids),
        org: org(),
        token: token(),
        piece: "pay".to_owned(),
        movement: "start".to_owned(),
        input: "pay".to_owned(),
        shown_input: None,
        agent_id: None,
        session_id: None,
        requester: None,
        persons: Vec::new(),
        parent: None,
        priority: 0,
        run_at: None,
    }
}
