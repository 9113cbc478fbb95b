//! The real program, killed in the middle of every single change of a job that it makes on the way: what stood before the
//! change stands, what had an effect has it once. Nobody chose these places; the number of the change is all that differs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::fake_model::Turn;
use crate::support::mortal::{Mortal, Paid};
use crate::support::rows::Trap;
use crate::support::world::{SOON, Storage};

on_every_store!(every_change_can_be_the_last);

const LEAD: &str = "\
name: lead
pieces: [helper]
initial_movement: lead
movements:
  - name: lead
    instruction: LEAD.
    allowed_tools: [look, slack__pay, slack__refund]
";
const HELPER: &str = "\
name: helper
initial_movement: help
movements:
  - name: help
    instruction: HELP.
    allowed_tools: [slack__pay, slack__refund]
";

/// A run and the one death that waits for it.
struct Doomed {
    run: Mortal,
    trap: Option<Trap>,
    job: String,
    /// Whom somebody is answering at this moment: requests, and jobs with an unknown outcome.
    answering: BTreeSet<String>,
}

impl Doomed {
    async fn meet(storage: Storage, change: u32, scripts: &[(&str, Vec<Turn>)]) -> Self {
        let tools = [
            ("look", "/look", ""),
            ("slack__pay", "/pay", ""),
            ("slack__refund", "/refund", ""),
        ];
        let pieces = [("lead.yaml", LEAD), ("helper.yaml", HELPER)];
        let run = Mortal::start(storage, &pieces, &tools).await;
        for (mark, turns) in scripts {
            run.model.script(mark, turns.clone());
        }
        let trap = Some(Trap::at(change, &run.rows).await);
        let job = run.submit("lead").await;
        Self {
            run,
            trap,
            job,
            answering: BTreeSet::new(),
        }
    }

    /// Approves what is asked and says of unknown calls what the endpoints saw, until the job completed; the jobs that there were
    /// are given, and whether the death came.
    async fn live(&mut self) -> (Vec<Value>, bool) {
        let lived = tokio::time::timeout(SOON * 2, async {
            let mut died = false;
            loop {
                if let Some(trap) = &mut self.trap
                    && trap.has_sprung().await
                {
                    died = true;
                    self.run.program.kill_9().await;
                    self.trap.take().unwrap().clear().await;
                    self.run.rows.lapse().await;
                    self.run.program.restart().await;
                    self.answering.clear();
                }
                let jobs = self.jobs().await;
                if jobs[0]["status"] == "completed" {
                    return (jobs, died);
                }
                for job in &jobs {
                    self.help(job).await;
                }
                tokio::time::sleep(std::time::Duration::from_millis(25)).await;
            }
        });
        let lived = lived.await;
        let (jobs, died) = lived.expect("a job that completes");
        if let Some(trap) = self.trap.take() {
            self.run.program.kill_9().await;
            trap.clear().await;
            self.run.program.restart().await;
        }
        (jobs, died)
    }

    /// The job and its sub-tasks.
    async fn jobs(&self) -> Vec<Value> {
        let mut jobs = vec![self.run.job(&self.job).await];
        for id in jobs[0]["subtask_ids"].as_array().unwrap().clone() {
            jobs.push(self.run.job(id.as_str().unwrap()).await);
        }
        jobs
    }

    /// Nobody waits for an answer here: the server may be in the trap with it.
    async fn help(&mut self, job: &Value) {
        let id = job["id"].as_str().unwrap();
        let answer = |path: String, body: Value| {
            let dana = self.run.world.api("dana-cli");
            tokio::spawn(async move { dana.try_post(&path, &body).await });
        };
        if job["wait_reason"] == "tool_approval" {
            for request in job["confirmation_ids"].as_array().unwrap() {
                let request = request.as_str().unwrap();
                let pending = self.run.world.request(request).await["status"] == "pending";
                if pending && self.answering.insert(request.to_owned()) {
                    let path = format!("/api/confirmations/{request}/respond");
                    answer(path, json!({"decision": "approve"}));
                }
            }
        }
        if job["wait_reason"] == "outcome_unknown" && self.answering.insert(id.to_owned()) {
            let mut calls = job["activity"]["calls"].as_array().unwrap().iter();
            let unsure = calls.find(|call| call["state"] == "unsure").unwrap();
            let path = match unsure["tool"].as_str().unwrap() {
                "look" => "/look",
                "slack__pay" => "/pay",
                _ => "/refund",
            };
            let did = if self.run.tool.calls(path).is_empty() {
                "not_done"
            } else {
                "done"
            };
            let body = json!({"answer": did, "question_id": job["question_id"]});
            answer(format!("/api/jobs/{id}/answer"), body);
        }
    }
}

fn pay_args() -> Value {
    json!({"amount": 60_000})
}

fn refund_args() -> Value {
    json!({"amount": 7})
}

fn complete(result: &str) -> Turn {
    Turn::call("complete", json!({"status": "success", "result": result}))
}

/// Each endpoint was called once, with what was approved, and all that is kept says so.
async fn assert_once(run: &Mortal, jobs: &[Value]) {
    let requests = run.world.audit("confirmation.created").await;
    let mut asked = Vec::new();
    for event in &requests {
        let id = event["confirmation_id"].as_str().unwrap();
        asked.push((id, run.world.request(id).await));
    }
    assert_eq!(asked.len(), 2, "each call was asked about once: {requests:?}");
    let of = |tool: &str| {
        let (id, _) = asked
            .iter()
            .find(|(_, request)| request["tool_name"] == tool)
            .unwrap();
        *id
    };
    run.assert_paid(&[
        Paid {
            path: "/pay",
            request: of("slack__pay"),
            args: pay_args(),
            times: 1,
        },
        Paid {
            path: "/refund",
            request: of("slack__refund"),
            args: refund_args(),
            times: 1,
        },
    ])
    .await;
    for job in jobs {
        let id = job["id"].as_str().unwrap();
        assert_eq!(job["status"], "completed", "{job}");
        assert_eq!(run.events("job.completed", id).await, 1);
        let waits = run.events("job.parked", id).await;
        assert_eq!(
            run.events("job.resumed", id).await,
            waits,
            "as often as it was parked"
        );
    }
    run.world.verify().await;
}

/// Lives with a death at each change until there is no such change any more; in four strands, for there are two cores or more.
async fn at_every_change(storage: Storage, least: u32, story: impl AsyncFn(Storage, u32) -> bool) {
    let strand = async |first: u32| {
        let mut change = first;
        while Box::pin(story(storage, change)).await {
            change += 4;
        }
        change
    };
    let ends = futures_util::future::join4(strand(1), strand(2), strand(3), strand(4)).await;
    let reached = [ends.0, ends.1, ends.2, ends.3].into_iter().min().unwrap() - 1;
    assert!(reached >= least, "only {reached} changes");
}

async fn every_change_can_be_the_last(storage: Storage) {
    at_every_change(storage, 12, async |storage, change| {
        let calls = vec![
            ("look".to_owned(), json!({})),
            ("slack__pay".to_owned(), pay_args()),
            ("slack__refund".to_owned(), refund_args()),
        ];
        let scripts = [("LEAD", vec![Turn::Calls(calls), complete("paid")])];
        let mut doomed = Doomed::meet(storage, change, &scripts).await;
        let (jobs, died) = doomed.live().await;
        let run = &doomed.run;
        assert_once(run, &jobs).await;
        assert_eq!(run.tool.calls("/look").len(), 1);
        let (_, questions) = run.assert_whole("LEAD");
        assert!(questions <= 2 + usize::from(died), "{questions} questions");
        died
    })
    .await;
}

/// On one store: what a change means is the same code on both, and `crash_family` plays on both.
#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_a_family_can_be_the_last() {
    at_every_change(Storage::Sqlite, 20, async |storage, change| {
        let spawn = |input: &str| {
            let args = json!({"piece": "helper", "input": input});
            ("spawn_subtask".to_owned(), args)
        };
        let lead = vec![
            Turn::Calls(vec![spawn("BILL-ONE"), spawn("BILL-TWO")]),
            Turn::call("wait_subtasks", json!({})),
            complete("all done"),
        ];
        let first = vec![Turn::call("slack__pay", pay_args()), complete("one")];
        let second = vec![Turn::call("slack__refund", refund_args()), complete("two")];
        let scripts = [("BILL-ONE", first), ("BILL-TWO", second), ("LEAD", lead)];
        let mut doomed = Doomed::meet(storage, change, &scripts).await;
        let (jobs, died) = doomed.live().await;
        assert_eq!(jobs.len(), 3, "two children");
        assert_once(&doomed.run, &jobs).await;
        let (results, _) = doomed.run.assert_whole("LEAD");
        let told: Value = serde_json::from_str(&results[2]).unwrap();
        let told: Vec<_> = told.as_array().unwrap().iter().collect();
        assert_eq!(
            told.iter().map(|child| &child["result"]).collect::<Vec<_>>(),
            ["one", "two"]
        );
        died
    })
    .await;
}
