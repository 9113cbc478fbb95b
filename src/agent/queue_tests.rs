//! Runs under the queue: many parked jobs, panics, stops, a model that is away, a restart on a real database.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use gatepost_channel::Decision;
use serde_json::json;

use super::fixture::{Lab, Ledger, Script, call, calls, complete, gatekeeper, piece, submit, toolbox};
use super::limits::Limits;
use super::model::{Model, ModelError, Question, Reply};
use super::piece::Pieces;
use super::runner::Runner;
use crate::clock::{Clock as _, SystemClock};
use crate::confirmation::decide::Surface;
use crate::ids::{JobId, SystemIds};
use crate::job::fixture::{Folder, LEASE, dana, is_parked, org};
use crate::job::queue::Queue;
use crate::job::worker::{Ran, Reins, Run};
use crate::job::{Job, JobState, JobStatus};
use crate::lifecycle::Tasks;
use crate::storage::open::{Settings, open};

async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what} did not happen");
}

fn queue(lab: &Lab, run: Arc<dyn Run>, workers: usize, tasks: &Tasks) {
    let queue = Queue::new(
        lab.world.store(),
        run,
        workers,
        LEASE,
        &*lab.world.ids,
        tasks.clone(),
    );
    queue.start();
}

#[tokio::test]
async fn a_thousand_parked_jobs_hold_no_worker() {
    let lab = Lab::new(vec![
        calls(vec![call("t_pay", &json!({"n": 1}))]),
        complete("success", ""),
    ]);
    let mut parked = Vec::new();
    for _ in 0..1_000 {
        parked.push(lab.submit().await);
    }
    let tasks = Tasks::new();
    queue(&lab, Arc::clone(&lab.runner) as Arc<dyn Run>, 1, &tasks);
    until("parking", || lab.world.jobs().iter().all(is_parked)).await;
    let fresh = lab.submit().await;
    until("parking of the fresh one", || is_parked(&lab.world.job(&fresh))).await;
    let request = lab.world.job(&fresh).confirmations.remove(0);
    lab.decide(&request, Decision::Approve, None).await;
    until("the end of the fresh one", || {
        lab.world.job(&fresh).state.status() == JobStatus::Completed
    })
    .await;
    assert!(parked.iter().all(|id| is_parked(&lab.world.job(id))));
    tasks.ask_to_stop();
    assert!(tasks.drain(Duration::from_secs(5)).await);
}

/// Panics on jobs of one input, and counts.
struct Panics {
    runner: Arc<Runner>,
    poison: JobId,
}

#[async_trait]
impl Run for Panics {
    async fn run(&self, job: Job, reins: &Reins) -> Ran {
        assert_ne!(job.id, self.poison, "poison");
        self.runner.run(job, reins).await
    }
}

#[tokio::test]
async fn a_panic_ends_its_own_job_only() {
    let lab = Lab::new(vec![complete("success", "fine")]);
    let poison = lab.submit().await;
    let mut healthy = Vec::new();
    for _ in 0..20 {
        healthy.push(lab.submit().await);
    }
    let tasks = Tasks::new();
    let run = Panics {
        runner: Arc::clone(&lab.runner),
        poison: poison.clone(),
    };
    queue(&lab, Arc::new(run), 2, &tasks);
    until("the end of the healthy ones", || {
        healthy
            .iter()
            .all(|id| lab.world.job(id).state.status() == JobStatus::Completed)
    })
    .await;
    // The pauses between its attempts pass.
    until("the end of the poison", || {
        lab.world.clock.advance(Duration::from_secs(1));
        lab.world.job(&poison).state.status() == JobStatus::Error
    })
    .await;
    assert_eq!(
        lab.world.job(&poison).state,
        JobState::Error {
            error: "the run panicked".to_owned()
        }
    );
    tasks.ask_to_stop();
    assert!(tasks.drain(Duration::from_secs(5)).await);
}

/// Never answers.
struct Silent;

#[async_trait]
impl Model for Silent {
    async fn ask(&self, _: Question<'_>) -> Result<Reply, ModelError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_stop_hands_jobs_back_uncounted() {
    let lab = Lab::new(Vec::new());
    let id = lab.submit().await;
    let tasks = Tasks::new();
    let runner = Runner::new(
        lab.gatekeeper.clone(),
        Arc::new(Silent),
        toolbox(&lab.ledger),
        Arc::new(Pieces::new([piece()])),
        Limits::default(),
    );
    queue(&lab, Arc::new(runner), 4, &tasks);
    until("the claim", || {
        lab.world.job(&id).state.status() == JobStatus::Running
    })
    .await;
    tasks.ask_to_stop();
    assert!(tasks.drain(Duration::from_secs(5)).await);
    let job = lab.world.job(&id);
    assert_eq!((job.state, job.attempts), (JobState::Queued, 0));
}

#[tokio::test]
async fn an_unavailable_model_is_an_error_in_the_end() {
    let lab = Lab::new(Vec::new());
    let id = lab.submit().await;
    let tasks = Tasks::new();
    queue(&lab, Arc::clone(&lab.runner) as Arc<dyn Run>, 1, &tasks);
    until("the error", || {
        lab.world.clock.advance(Duration::from_secs(1));
        lab.world.job(&id).state.status() == JobStatus::Error
    })
    .await;
    assert_eq!(lab.model.asked.load(Ordering::SeqCst), 3);
    tasks.ask_to_stop();
    assert!(tasks.drain(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn a_run_parks_and_resumes_on_sqlite_across_a_restart() {
    let folder = Folder::new();
    let url = format!("sqlite://{}", folder.0.join("jobs.db").display());
    let ledger = Ledger::default();
    let replies = vec![
        calls(vec![
            call("t_free", &json!({"n": 1})),
            call("t_pay", &json!({"n": 2})),
        ]),
        complete("success", "paid"),
    ];
    let mut job = None;
    for round in 0..2 {
        let (tasks, store_tasks) = (Tasks::new(), Tasks::new());
        let store = open(&Settings::new(&url, Arc::new(SystemClock)), &store_tasks)
            .await
            .unwrap();
        let (gatekeeper, _scribe) = gatekeeper(store.clone(), Arc::new(SystemIds));
        let pieces = Arc::new(Pieces::new([piece()]));
        let model = Script {
            replies: replies.clone(),
            vary: false,
            asked: AtomicU32::new(0),
            seen: Mutex::default(),
        };
        let runner = Runner::new(
            gatekeeper.clone(),
            Arc::new(model),
            toolbox(&ledger),
            Arc::clone(&pieces),
            Limits::default(),
        );
        let id = match &job {
            Some(id) => JobId::clone(id),
            None => submit(&store, &SystemIds).await,
        };
        let queue = Queue::new(
            store.clone(),
            Arc::new(runner),
            1,
            LEASE,
            &SystemIds,
            tasks.clone(),
        );
        queue.start();
        let wanted = if round == 0 {
            JobStatus::WaitingHuman
        } else {
            JobStatus::Completed
        };
        let mut watch = store.wakes().job(&id);
        let reached = tokio::time::timeout(Duration::from_secs(20), async {
            loop {
                let row = store.read().job(&id).await.unwrap().unwrap();
                if row.state.status() == wanted {
                    return row;
                }
                if round == 1 && row.state.status() == JobStatus::WaitingHuman {
                    let request = &row.confirmations[0];
                    let decided = gatekeeper
                        .respond(&dana(), &org(), request, Decision::Approve, None, Surface::Api)
                        .await
                        .unwrap();
                    assert!(decided.dossier.is_some());
                }
                let _ = tokio::time::timeout(Duration::from_millis(200), watch.changed()).await;
            }
        })
        .await
        .unwrap();
        assert_eq!(ledger.all().len(), 1 + round);
        if round == 1 {
            assert_eq!(
                reached.state,
                JobState::Completed {
                    result: "paid".to_owned()
                }
            );
            assert!(SystemClock.now() >= reached.created_at);
        }
        job = Some(id);
        tasks.ask_to_stop();
        assert!(tasks.drain(Duration::from_secs(5)).await);
        store_tasks.ask_to_stop();
        assert!(store_tasks.drain(Duration::from_secs(5)).await);
    }
}

/// Cannot go on so many times, since something outside does not answer; then its runner goes on.
struct Patient {
    runner: Arc<Runner>,
    left: AtomicU32,
    runs: AtomicU32,
}

#[async_trait]
impl Run for Patient {
    async fn run(&self, job: Job, reins: &Reins) -> Ran {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let waits = |left: u32| left.checked_sub(1);
        match self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, waits) {
            Ok(_) => Ran::Later,
            Err(_) => self.runner.run(job, reins).await,
        }
    }
}

#[tokio::test]
async fn a_run_that_goes_on_later_waits_a_while_and_costs_no_attempt() {
    let lab = Lab::new(vec![complete("success", "fine")]);
    let id = lab.submit().await;
    // More often than a run may fail.
    let times = 2 * crate::job::claim::MAX_ATTEMPTS;
    let tasks = Tasks::new();
    let run = Arc::new(Patient {
        runner: Arc::clone(&lab.runner),
        left: AtomicU32::new(times),
        runs: AtomicU32::new(0),
    });
    queue(&lab, Arc::clone(&run) as Arc<dyn Run>, 1, &tasks);
    for ran in 1..=times {
        until("a run that waits", || {
            let queued = lab.world.job(&id).state.is_queued();
            queued && run.runs.load(Ordering::SeqCst) == ran
        })
        .await;
        let job = lab.world.job(&id);
        assert_eq!(job.attempts, 0, "the attempt does not count");
        let pause = job.run_at.since(lab.world.clock.now());
        assert!(
            pause > Duration::ZERO && pause <= Duration::from_mins(1),
            "{pause:?}"
        );
        assert!(lab.world.claim(1).jobs.is_empty(), "nobody takes it before that");
        lab.world.clock.advance(pause);
    }
    until("the end", || {
        lab.world.job(&id).state.status() == JobStatus::Completed
    })
    .await;
    assert_eq!(run.runs.load(Ordering::SeqCst), times + 1);
    assert!(
        !lab.kinds().await.contains(&"job.retried".to_owned()),
        "nothing failed"
    );
    tasks.ask_to_stop();
    assert!(tasks.drain(Duration::from_secs(5)).await);
}
