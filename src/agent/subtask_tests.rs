//! Sub-tasks: whole families of jobs. Each is gated like any other (RH-405), begins once, and wakes its parent once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use gatepost_channel::Decision;
use serde_json::{Value, json};

use super::fixture::{Ledger, call, calls, complete, gatekeeper, toolbox};
use super::limits::Limits;
use super::model::Reply;
use super::piece::{Piece, Pieces};
use super::runner::Runner;
use super::stage::{Player, Stage};
use crate::clock::SystemClock;
use crate::confirmation::Status;
use crate::confirmation::decide::Surface;
use crate::ids::{JobId, SystemIds};
use crate::job::cancel::Cancelled;
use crate::job::fixture::{Folder, LEASE, dana, org, token};
use crate::job::queue::Queue;
use crate::job::submit::Submit;
use crate::job::worker::Ran;
use crate::job::{JobState, JobStatus, WaitReason};
use crate::lifecycle::Tasks;
use crate::storage::open::{Settings, open};

const LEAD: &str = "\
name: lead
pieces: [helper]
initial_movement: lead
movements:
  - name: lead
    instruction: LEAD.
    allowed_tools: [t_*]
    rules:
      - { condition: helpers are at work, next: WAIT_SUBTASKS }
    default_next: review
  - name: review
    instruction: REVIEW.
";
const HELPER: &str = "\
name: helper
description: Pays one bill
initial_movement: help
movements:
  - name: help
    instruction: HELP.
    allowed_tools: [t_pay, hidden]
";

fn spawn(input: &str) -> super::model::RawCall {
    call("spawn_subtask", &json!({"piece": "helper", "input": input}))
}

fn wait() -> Reply {
    calls(vec![call("wait_subtasks", &json!({}))])
}

fn pay() -> Reply {
    calls(vec![call("t_pay", &json!({"n": 1}))])
}

fn children(stage: &Stage, id: &JobId) -> Vec<JobId> {
    stage.world.job(id).children
}

/// Parent of two helpers that both wait for people, the parent waiting for them.
async fn waiting_family() -> (Stage, JobId, Vec<JobId>) {
    let stage = Stage::new(
        &[LEAD, HELPER],
        vec![
            (
                "LEAD",
                vec![
                    calls(vec![spawn("a"), spawn("b")]),
                    wait(),
                    complete("success", "all done"),
                ],
            ),
            ("HELP", vec![pay(), complete("success", "paid")]),
        ],
    );
    let id = stage.submit("lead");
    stage.work().await;
    let children = children(&stage, &id);
    (stage, id, children)
}

#[tokio::test]
async fn children_are_gated_and_the_parent_wakes_once_with_all_results_in_order() {
    let (stage, id, kids) = waiting_family().await;
    assert_eq!(kids.len(), 2);
    let parent = stage.world.job(&id);
    assert_eq!(parent.state.status(), JobStatus::WaitingSubtasks);
    assert_eq!(
        parent.state.resume_movement(),
        Some("lead"),
        "the tool resumes where it was called"
    );
    for kid in &kids {
        let kid = stage.world.job(kid);
        assert_eq!(kid.state.wait_reason(), Some(WaitReason::ToolApproval));
        assert_eq!(kid.parent.as_ref(), Some(&id));
        assert_eq!(
            (&kid.token, &kid.requester, &kid.persons),
            (&parent.token, &parent.requester, &parent.persons)
        );
        assert_eq!((&kid.agent_id, kid.priority), (&parent.agent_id, parent.priority));
    }
    assert!(stage.ledger.all().is_empty(), "no work went around the gate");
    let second = stage.world.job(&kids[1]).confirmations[0].clone();
    stage.decide(&second, Decision::Approve).await;
    stage.work().await;
    assert_eq!(
        stage.world.job(&id).state.status(),
        JobStatus::WaitingSubtasks,
        "one is open"
    );
    let first = stage.world.job(&kids[0]).confirmations[0].clone();
    stage.decide(&first, Decision::Reject).await;
    stage.work().await;
    assert_eq!(stage.world.job(&id).state.status(), JobStatus::Completed);
    assert_eq!(stage.count("job.resumed", &id), 1);
    let told: Value = serde_json::from_str(&stage.results(&id)[2]).unwrap();
    let order: Vec<_> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|kid| kid["job"].as_str().unwrap())
        .collect();
    assert_eq!(order, [kids[0].as_str(), kids[1].as_str()]);
    assert_eq!(
        told[1],
        json!({"job": kids[1].as_str(), "piece": "helper", "status": "completed", "result": "paid"})
    );
    assert_eq!(stage.ledger.all().len(), 1, "the rejected one did not run");
    assert!(
        stage.results(&kids[0])[0].starts_with("denied (rejected_by_operator)"),
        "a denial reaches the child"
    );
    assert!(stage.world.chain_is_sound());
}

#[tokio::test]
async fn a_child_that_is_cancelled_or_fails_ends_the_wait_too() {
    let (stage, id, kids) = waiting_family().await;
    assert!(matches!(stage.cancel(&kids[0]).await, Cancelled::Done(_)));
    stage.world.tamper(&kids[1], |job| {
        job.state = JobState::Queued;
        job.piece = "gone".to_owned();
    });
    stage.work().await;
    assert_eq!(stage.world.job(&id).state.status(), JobStatus::Completed);
    let told: Value = serde_json::from_str(&stage.results(&id)[2]).unwrap();
    assert_eq!(
        (&told[0]["status"], &told[1]["status"]),
        (&json!("cancelled"), &json!("error"))
    );
    assert_eq!(stage.count("job.resumed", &id), 1);
}

#[tokio::test]
async fn cancelling_the_parent_cancels_all_below() {
    let (stage, id, kids) = waiting_family().await;
    assert!(matches!(stage.cancel(&id).await, Cancelled::Done(_)));
    for job in kids.iter().chain([&id]) {
        assert_eq!(stage.world.job(job).state, JobState::Cancelled);
        assert_eq!(stage.count("job.cancelled", job), 1);
    }
    assert!(stage.pending().is_empty());
    assert!(
        stage
            .world
            .requests()
            .iter()
            .all(|row| row.state.status() == Status::Cancelled)
    );
    stage.work().await;
    assert!(stage.ledger.all().is_empty());
    assert!(stage.world.chain_is_sound());
}

#[tokio::test]
async fn whoever_cancels_must_know_the_whole_family() {
    let (stage, id, _) = waiting_family().await;
    let job = stage.world.job(&id);
    let unaware = crate::job::cancel::Cancel {
        job: id.clone(),
        org: job.org.clone(),
        by: super::fixture::operator(),
        confirmations: job.confirmations,
        parent: None,
        family: crate::job::family::Family::default(),
    };
    assert_eq!(stage.world.run(&unaware), Cancelled::Moved);
    assert_eq!(stage.world.job(&id).state.status(), JobStatus::WaitingSubtasks);
}

#[tokio::test]
async fn an_orphan_ends_when_it_is_taken() {
    let (stage, id, kids) = waiting_family().await;
    // The parent ended and nobody knew of its children.
    stage.world.tamper(&id, |job| job.state = JobState::Cancelled);
    for request in stage.pending() {
        stage.decide(&request, Decision::Approve).await;
    }
    stage.work().await;
    assert!(
        kids.iter()
            .all(|kid| stage.world.job(kid).state == JobState::Cancelled)
    );
    assert!(stage.ledger.all().is_empty());
}

#[tokio::test]
async fn a_rule_waits_and_goes_on_in_the_default_movement() {
    let by_rule = calls(vec![call("transition", &json!({"next": "WAIT_SUBTASKS"}))]);
    let stage = Stage::new(
        &[LEAD, HELPER],
        vec![
            ("LEAD", vec![calls(vec![spawn("a")]), by_rule]),
            ("HELP", vec![pay(), complete("success", "paid")]),
            ("REVIEW", vec![complete("success", "reviewed")]),
        ],
    );
    let id = stage.submit("lead");
    stage.work().await;
    let job = stage.world.job(&id);
    assert_eq!(job.state.status(), JobStatus::WaitingSubtasks);
    assert_eq!(job.state.resume_movement(), Some("review"));
    stage.decide(&stage.pending()[0], Decision::Approve).await;
    stage.work().await;
    let job = stage.world.job(&id);
    assert_eq!(
        (job.movement.as_str(), job.state.status()),
        ("review", JobStatus::Completed)
    );
    let told = &stage.results(&id)[1];
    assert!(
        told.contains("\"result\":\"paid\"") && told.contains("You are now in the movement `review`"),
        "{told}"
    );
}

#[tokio::test]
async fn completing_waits_for_what_was_begun() {
    let stage = Stage::new(
        &[LEAD, HELPER],
        vec![
            ("LEAD", vec![calls(vec![spawn("a")]), complete("success", "sent")]),
            ("HELP", vec![pay(), complete("success", "paid")]),
        ],
    );
    let id = stage.submit("lead");
    stage.work().await;
    assert_eq!(stage.world.job(&id).state.status(), JobStatus::WaitingSubtasks);
    stage.decide(&stage.pending()[0], Decision::Approve).await;
    stage.work().await;
    let end = JobState::Completed {
        result: "sent".to_owned(),
    };
    assert_eq!(stage.world.job(&id).state, end);
    assert_eq!(stage.ledger.all().len(), 1);
}

#[tokio::test]
async fn a_child_has_at_most_the_tools_above_it() {
    let (stage, _, kids) = waiting_family().await;
    let seen = stage.seen();
    let help = seen.iter().find(|seen| seen.system.contains("HELP")).unwrap();
    assert!(help.offer("t_pay").is_some());
    assert!(
        help.offer("hidden").is_none(),
        "its piece allows it, its parent's does not"
    );
    let could_ask = &help.offer("request_tool").unwrap()["properties"]["tool"]["enum"];
    assert!(
        !could_ask.as_array().unwrap().contains(&json!("hidden")),
        "nor may it ask for it"
    );
    assert_eq!(stage.memory(&kids[0]).depth, 1);
}

#[tokio::test]
async fn only_listed_pieces_and_only_so_many() {
    let stranger = call("spawn_subtask", &json!({"piece": "lead", "input": "again"}));
    let limits = Limits {
        subtasks: 2,
        ..Limits::default()
    };
    let stage = Stage::with(
        &[LEAD, HELPER],
        vec![
            (
                "LEAD",
                vec![
                    calls(vec![stranger]),
                    calls(vec![spawn("a"), spawn("b"), spawn("c")]),
                    calls(vec![spawn("d")]),
                    wait(),
                    wait(),
                    complete("success", ""),
                ],
            ),
            ("HELP", vec![complete("success", "")]),
        ],
        limits,
    );
    let id = stage.submit("lead");
    stage.work().await;
    assert_eq!(stage.world.job(&id).state.status(), JobStatus::Completed);
    assert_eq!(children(&stage, &id).len(), 2);
    let results = stage.results(&id);
    assert!(
        results[0].starts_with("error: `piece` must be one of: helper"),
        "{}",
        results[0]
    );
    assert!(
        results[3].starts_with("error: this job may begin no further"),
        "{}",
        results[3]
    );
    assert!(
        results[4].starts_with("error: there is no tool `spawn_subtask`"),
        "{}",
        results[4]
    );
    assert!(
        results[6].starts_with("error: there is no tool `wait_subtasks`"),
        "{}",
        results[6]
    );
}

#[tokio::test]
async fn a_piece_that_spawns_itself_is_bounded() {
    const SELF: &str = "\
name: again
initial_movement: go
movements:
  - name: go
    instruction: GO.
";
    let more = call("spawn_subtask", &json!({"piece": "again", "input": "more"}));
    let stage = Stage::new(
        &[SELF],
        vec![("GO", vec![calls(vec![more]), wait(), complete("success", "up")])],
    );
    let id = stage.submit("again");
    stage.work().await;
    assert_eq!(stage.world.job(&id).state.status(), JobStatus::Completed);
    assert_eq!(stage.world.jobs().len(), 4, "three levels below the first");
}

/// Every job of the family dies after each possible number of writes, again and again: two children begin, each pays once,
/// the parent resumes once.
#[tokio::test]
async fn no_crash_begins_a_child_twice_or_wakes_a_parent_twice() {
    for writes in 1..9 {
        let stage = Stage::new(
            &[LEAD, HELPER],
            vec![
                (
                    "LEAD",
                    vec![
                        calls(vec![spawn("a"), spawn("b")]),
                        wait(),
                        complete("success", "all"),
                    ],
                ),
                ("HELP", vec![pay(), complete("success", "paid")]),
            ],
        );
        let id = stage.submit("lead");
        for round in 0..60 {
            if stage.world.job(&id).state.status().is_final() {
                break;
            }
            for request in stage.pending() {
                stage.decide(&request, Decision::Approve).await;
            }
            for job in stage.world.claim(10).jobs {
                let ran = stage.run_one(job, Some(writes + round % 3)).await;
                assert!(!matches!(ran, Ran::Lost));
            }
            for job in stage.world.jobs() {
                if job.state.wait_reason() == Some(WaitReason::OutcomeUnknown) {
                    let permit = stage.desk.question(&job).unwrap().text;
                    let did = stage
                        .ledger
                        .all()
                        .iter()
                        .any(|run| permit.contains(run.permit.as_str()));
                    let said = if did { "done" } else { "not_done" };
                    stage.answer(super::fixture::operator(), &job.id, said).await;
                }
            }
            stage.revive();
        }
        let parent = stage.world.job(&id);
        assert_eq!(parent.state.status(), JobStatus::Completed, "{writes}");
        assert_eq!(stage.world.jobs().len(), 3, "{writes}: two children");
        assert_eq!(parent.children.len(), 2);
        assert_eq!(stage.ledger.all().len(), 2, "{writes}: each paid once");
        assert!(stage.count("job.resumed", &id) <= 1, "{writes}");
        assert!(stage.world.chain_is_sound());
    }
}

#[tokio::test]
async fn one_worker_carries_a_whole_family_on_sqlite() {
    let folder = Folder::new();
    let url = format!("sqlite://{}", folder.0.join("family.db").display());
    let (tasks, store_tasks) = (Tasks::new(), Tasks::new());
    let settings = Settings::new(&url, Arc::new(SystemClock));
    let store = open(&settings, &store_tasks).await.unwrap();
    let (gatekeeper, _scribe) = gatekeeper(store.clone(), Arc::new(SystemIds));
    let ledger = Ledger::default();
    let tools = BTreeSet::from(["t_pay".to_owned(), "hidden".to_owned()]);
    let pieces = [LEAD, HELPER].map(|text| Piece::parse(text, "piece.yaml", &tools).unwrap());
    let player = Player::new(vec![
        (
            "LEAD",
            vec![
                calls(vec![spawn("a"), spawn("b")]),
                wait(),
                complete("success", "all"),
            ],
        ),
        ("HELP", vec![pay(), complete("success", "paid")]),
    ]);
    let runner = Runner::new(
        gatekeeper.clone(),
        Arc::new(player),
        toolbox(&ledger),
        Arc::new(Pieces::new(pieces)),
        Limits::default(),
    );
    let submit = Submit {
        id: JobId::fresh(&SystemIds),
        org: org(),
        token: token(),
        piece: "lead".to_owned(),
        movement: "lead".to_owned(),
        input: "go".to_owned(),
        shown_input: None,
        agent_id: None,
        session_id: None,
        requester: None,
        persons: Vec::new(),
        parent: None,
        priority: 0,
        run_at: None,
    };
    let id = store.run(submit).await.unwrap().id;
    let queue = Queue::new(
        store.clone(),
        Arc::new(runner),
        1,
        LEASE,
        &SystemIds,
        tasks.clone(),
    );
    queue.start();
    let family = tokio::time::timeout(Duration::from_secs(30), async {
        let mut watch = store.wakes().job(&id);
        loop {
            let job = store.read().job(&id).await.unwrap().unwrap();
            if job.state.status().is_final() {
                return job;
            }
            for child in &job.children {
                let child = store.read().job(child).await.unwrap().unwrap();
                if child.state.wait_reason() == Some(WaitReason::ToolApproval) {
                    let request = &child.confirmations[0];
                    gatekeeper
                        .respond(&dana(), &org(), request, Decision::Approve, None, Surface::Api)
                        .await
                        .unwrap();
                }
            }
            let _ = tokio::time::timeout(Duration::from_millis(100), watch.changed()).await;
        }
    })
    .await
    .unwrap();
    let end = JobState::Completed {
        result: "all".to_owned(),
    };
    assert_eq!(family.state, end);
    assert_eq!(family.children.len(), 2);
    assert_eq!(ledger.all().len(), 2);
    tasks.ask_to_stop();
    assert!(tasks.drain(Duration::from_secs(5)).await);
}
