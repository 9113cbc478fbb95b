//! A job that begins two sub-tasks and waits for both, killed on the way: each child is gated and pays once, also after a
//! restart (RH-405), and the parent is woken exactly once, whatever became of the children.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use crate::support::fake_model::Turn;
use crate::support::fault::{Door, Fault};
use crate::support::mortal::{Mortal, Paid};
use crate::support::world::{SOON, Storage};

on_every_store!(
    killed_while_the_children_are_parked,
    killed_before_the_end_of_the_last_child_is_on_record,
    killed_after_the_parent_was_woken,
    killed_between_a_child_that_was_cancelled_and_one_that_failed,
    killed_after_the_family_was_cancelled,
);

const LEAD: &str = "\
name: lead
pieces: [helper]
initial_movement: lead
movements:
  - name: lead
    instruction: LEAD.
    allowed_tools: [slack__pay, slack__refund]
";
const HELPER: &str = "\
name: helper
initial_movement: help
movements:
  - name: help
    instruction: HELP.
    allowed_tools: [slack__pay, slack__refund]
";

/// A family at rest: the parent waits for two children, each of which waits for a person.
struct Family {
    run: Mortal,
    parent: String,
    children: [String; 2],
    requests: [String; 2],
}

fn pay_args() -> Value {
    json!({"amount": 60_000, "bill": "one"})
}

fn refund_args() -> Value {
    json!({"amount": 7, "bill": "two"})
}

async fn family(storage: Storage, second_ends: bool) -> Family {
    let tools = [("slack__pay", "/pay", ""), ("slack__refund", "/refund", "")];
    let pieces = [("lead.yaml", LEAD), ("helper.yaml", HELPER)];
    let run = Mortal::start(storage, &pieces, &tools).await;
    let spawn = |input: &str| {
        let args = json!({"piece": "helper", "input": input});
        ("spawn_subtask".to_owned(), args)
    };
    let complete = |result: &str| Turn::call("complete", json!({"status": "success", "result": result}));
    let lead = vec![
        Turn::Calls(vec![spawn("BILL-ONE"), spawn("BILL-TWO")]),
        Turn::call("wait_subtasks", json!({})),
        complete("all done"),
    ];
    let first = vec![Turn::call("slack__pay", pay_args()), complete("paid one")];
    let mut second = vec![Turn::call("slack__refund", refund_args())];
    // Without a further turn the model refuses to answer, and the child fails.
    second.extend(second_ends.then(|| complete("paid two")));
    run.model.script("BILL-ONE", first);
    run.model.script("BILL-TWO", second);
    run.model.script("LEAD", lead);
    let parent = run.submit("lead").await;
    let waiting = run
        .until_job(&parent, "waiting for its children", |job| {
            job["status"] == "waiting_subtasks"
        })
        .await;
    let ids = waiting["subtask_ids"].as_array().unwrap();
    let children = [0, 1].map(|at: usize| ids[at].as_str().unwrap().to_owned());
    assert_eq!(ids.len(), 2);
    let requests = [
        run.parked_on(&children[0], 1).await.remove(0),
        run.parked_on(&children[1], 1).await.remove(0),
    ];
    for request in &requests {
        run.until_posted(request).await;
    }
    assert!(run.tool.calls("/pay").is_empty() && run.tool.calls("/refund").is_empty());
    Family {
        run,
        parent,
        children,
        requests,
    }
}

impl Family {
    /// The parent is at its end, was woken once, and was told of both children in order: status and result of each.
    async fn assert_woken_once(&self, told: [(&str, &str); 2], questions: RangeInclusive<usize>) {
        let run = &self.run;
        let ended = run.until_ended(&self.parent, "completed").await;
        assert_eq!(ended["result"], "all done");
        assert_eq!(ended["subtask_ids"].as_array().unwrap().len(), 2);
        for kind in ["job.parked", "job.resumed", "job.completed"] {
            assert_eq!(run.events(kind, &self.parent).await, 1, "{kind}");
        }
        let (results, asked) = run.assert_whole("LEAD");
        assert!(questions.contains(&asked), "questions of the parent: {asked}");
        let heard: Value = serde_json::from_str(&results[2]).unwrap();
        for (at, (status, result)) in told.into_iter().enumerate() {
            assert_eq!(heard[at]["job"], self.children[at], "{heard}");
            assert_eq!(heard[at]["status"], status, "{heard}");
            assert!(heard[at]["result"].as_str().unwrap().contains(result), "{heard}");
        }
        run.world.verify().await;
    }

    async fn assert_paid(&self, times: [usize; 2]) {
        let [pay, refund] = [&self.requests[0], &self.requests[1]];
        let pay = Paid {
            path: "/pay",
            request: pay,
            args: pay_args(),
            times: times[0],
        };
        let refund = Paid {
            path: "/refund",
            request: refund,
            args: refund_args(),
            times: times[1],
        };
        self.run.assert_paid(&[pay, refund]).await;
    }

    async fn press(&self, child: usize, button: &str) {
        self.run.press(&self.requests[child], button).await;
    }

    async fn cancel(&self, job: &str) {
        let path = format!("/api/jobs/{job}/cancel");
        let (status, answer) = self.run.world.api("build-agent").post(&path, &json!({})).await;
        assert_eq!(status, 200, "{answer}");
    }
}

async fn killed_while_the_children_are_parked(storage: Storage) {
    let mut family = family(storage, true).await;
    family.run.die().await;
    for child in &family.children {
        assert_eq!(family.run.job(child).await["status"], "waiting_human");
    }
    family.press(1, "approve").await;
    family.run.until_ended(&family.children[1], "completed").await;
    family.run.die().await;
    let parent = family.run.job(&family.parent).await;
    assert_eq!(parent["status"], "waiting_subtasks", "one is open");
    family.press(0, "approve").await;
    family
        .assert_woken_once([("completed", "paid one"), ("completed", "paid two")], 3..=3)
        .await;
    family.assert_paid([1, 1]).await;
}

/// The last child said that it is done, and nothing of it was written: neither its end nor that it woke its parent.
async fn killed_before_the_end_of_the_last_child_is_on_record(storage: Storage) {
    let mut family = family(storage, true).await;
    family.press(0, "approve").await;
    family.run.until_ended(&family.children[0], "completed").await;
    let (door, asked) = (Door::closed(), family.run.model.requests().len());
    family.run.model.fail_next(Fault::held(&door));
    family.press(1, "approve").await;
    family.run.model.wait_for_requests(asked + 1, SOON).await;
    let mut held = family.run.rows.hold().await;
    door.open();
    held.until_wanted().await;
    family.run.program.kill_9().await;
    held.lose().await;
    family.run.rows.lapse().await;
    family.run.program.restart().await;
    family
        .assert_woken_once([("completed", "paid one"), ("completed", "paid two")], 3..=3)
        .await;
    family.assert_paid([1, 1]).await;
    for child in &family.children {
        assert_eq!(family.run.events("job.completed", child).await, 1);
    }
}

async fn killed_after_the_parent_was_woken(storage: Storage) {
    let mut family = family(storage, true).await;
    family.press(0, "approve").await;
    family.run.until_ended(&family.children[0], "completed").await;
    let asked = family.run.model.requests().len();
    // The next question is the child's, the one after it the parent's.
    family.run.model.fail_next(Fault::late(std::time::Duration::ZERO));
    family.run.model.fail_next(Fault::held(&Door::closed()));
    family.press(1, "approve").await;
    family.run.model.wait_for_requests(asked + 2, SOON).await;
    family.run.die().await;
    family
        .assert_woken_once([("completed", "paid one"), ("completed", "paid two")], 4..=4)
        .await;
    family.assert_paid([1, 1]).await;
}

async fn killed_between_a_child_that_was_cancelled_and_one_that_failed(storage: Storage) {
    let mut family = family(storage, false).await;
    family.cancel(&family.children[0]).await;
    family.run.die().await;
    let parent = family.run.job(&family.parent).await;
    assert_eq!(parent["status"], "waiting_subtasks", "one is open");
    let withdrawn = family.run.world.request(&family.requests[0]).await;
    assert_eq!(withdrawn["status"], "cancelled");
    family.press(1, "approve").await;
    family.run.until_ended(&family.children[1], "error").await;
    // The parent may have been asking already; a question that was cut off is asked again.
    family.run.die().await;
    family
        .assert_woken_once([("cancelled", ""), ("error", "")], 3..=4)
        .await;
    family.assert_paid([0, 1]).await;
}

async fn killed_after_the_family_was_cancelled(storage: Storage) {
    let mut family = family(storage, true).await;
    family.cancel(&family.parent).await;
    family.run.die().await;
    for job in family.children.iter().chain([&family.parent]) {
        assert_eq!(family.run.job(job).await["status"], "cancelled");
        assert_eq!(family.run.events("job.cancelled", job).await, 1);
        assert_eq!(family.run.events("job.resumed", job).await, 0);
    }
    for request in &family.requests {
        let states = ["settled"];
        family.run.world.until_deliveries(request, &states).await;
        assert_eq!(family.run.world.request(request).await["status"], "cancelled");
    }
    family.assert_paid([0, 0]).await;
    family.run.world.verify().await;
}
