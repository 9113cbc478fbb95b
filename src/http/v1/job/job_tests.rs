//! Jobs over HTTP, over a real store, with a desk that knows one piece.

use serde_json::{Value, json};

use super::Desk;
use crate::http::fixture::Bench;
use crate::ids::JobId;
use crate::job::Job;
use crate::job::answer::{Hear, NotHeard, Question};
use crate::job::progress::{Feed, Progress};
use crate::job::view::Activity;

/// A desk with one piece, and a feed that tests fill.
pub struct OnePiece(Feed);

impl OnePiece {
    /// With this feed.
    pub const fn with(feed: Feed) -> Self {
        Self(feed)
    }
}

impl Desk for OnePiece {
    fn entrance(&self, piece: &str) -> Option<String> {
        (piece == "pay-invoice").then(|| "start".to_owned())
    }

    fn hear(&self) -> Hear {
        |_, _, _| Err(NotHeard::NoQuestion)
    }

    fn question(&self, _: &Job) -> Option<Question> {
        None
    }

    fn feed(&self) -> Option<&Feed> {
        Some(&self.0)
    }

    fn activity(&self, _: &Job) -> Option<Activity> {
        None
    }
}

async fn submit(bench: &Bench) -> Value {
    let body = json!({ "piece": "pay-invoice", "input": "Pay 4711", "requester": "mira" });
    let heard = bench.post("/api/jobs", "agent", body).await;
    assert_eq!(heard.status, 201, "{}", heard.text);
    heard.json()
}

#[tokio::test]
async fn a_priority_is_a_whole_number_within_bounds() {
    let bench = Bench::new().await;
    let ask = |priority: Value| json!({ "piece": "pay-invoice", "input": "x", "priority": priority });
    for bad in [json!(101), json!(-101), json!(1.5), json!("1"), json!(true)] {
        let heard = bench.post("/api/jobs", "agent", ask(bad)).await;
        assert_eq!(heard.status, 400, "{}", heard.text);
    }
    let heard = bench.post("/api/jobs", "agent", ask(json!(-100))).await;
    assert_eq!(heard.status, 201, "{}", heard.text);
}

#[tokio::test]
async fn a_job_may_be_submitted_for_later_and_is_not_lost_there() {
    let bench = Bench::new().await;
    let ask = |at: Value| json!({ "piece": "pay-invoice", "input": "x", "run_at": at });
    for bad in [
        json!("tomorrow"),
        json!("2026-02-31T12:00:00Z"),
        json!("2026-02-01"),
        json!("2027-02-02T12:00:00Z"),
        json!(5),
        json!(""),
    ] {
        let heard = bench.post("/api/jobs", "agent", ask(bad)).await;
        assert_eq!(heard.code(), "invalid_request", "{}", heard.text);
    }
    let heard = bench
        .post("/api/jobs", "agent", ask(json!("2026-02-01T14:00:00+02:00")))
        .await;
    assert_eq!(heard.status, 201, "{}", heard.text);
    let job = heard.json();
    assert_eq!(job["run_at"], "2026-02-01T12:00:00.000Z");
    let path = format!("/api/jobs/{}", job["id"].as_str().unwrap());
    assert_eq!(bench.get(&path, "dana").await.json()["run_at"], job["run_at"]);
    let heard = bench.send("POST", &format!("{path}/cancel"), "agent", "").await;
    assert_eq!(heard.json()["status"], "cancelled");
    let past = bench
        .post("/api/jobs", "agent", ask(json!("2020-01-01T00:00:00Z")))
        .await;
    assert_eq!(past.json()["run_at"], Value::Null, "at once");
}

#[tokio::test]
async fn a_submitted_job_has_its_documented_shape() {
    let bench = Bench::new().await;
    let job = submit(&bench).await;
    let id = job["id"].as_str().unwrap();
    assert_eq!(
        job,
        json!({
            "id": id, "piece": "pay-invoice", "status": "queued", "wait_reason": null, "movement": "start",
            "resume_movement": null, "confirmation_ids": [], "parent_id": null, "subtask_ids": [], "result": null, "error": null,
            "created_at": "2026-01-31T12:00:00.000Z", "updated_at": "2026-01-31T12:00:00.000Z",
        })
    );
    let path = format!("/api/jobs/{id}");
    for token in ["agent", "dana", "auditor"] {
        assert_eq!(bench.get(&path, token).await.json(), job, "{token}");
        let list = bench.get("/api/jobs?status=queued", token).await.json();
        assert_eq!(list["items"], json!([job]), "{token}");
    }
    for token in ["other", "stranger", "gus"] {
        assert_eq!(bench.get(&path, token).await.code(), "not_found", "{token}");
        assert_eq!(
            bench.get(&format!("{path}/events"), token).await.code(),
            "not_found"
        );
        assert_eq!(bench.get("/api/jobs", token).await.json()["items"], json!([]));
        let heard = bench.post(&format!("{path}/cancel"), token, json!({})).await;
        assert_eq!(heard.code(), "not_found", "{token}");
        let heard = bench
            .post(&format!("{path}/answer"), token, json!({ "answer": "x" }))
            .await;
        assert_eq!(heard.code(), "not_found", "{token}");
    }
}

#[tokio::test]
async fn what_cannot_be_submitted_is_named() {
    let bench = Bench::new().await;
    for (body, code) in [
        (json!({ "piece": "other", "input": "x" }), "unknown_piece"),
        (json!({ "piece": "pay-invoice" }), "invalid_request"),
        (json!({ "piece": "pay-invoice", "input": 7 }), "invalid_request"),
        (
            json!({ "piece": "pay-invoice", "input": "x", "parent_id": "job_1" }),
            "invalid_request",
        ),
    ] {
        assert_eq!(bench.post("/api/jobs", "agent", body).await.code(), code);
    }
}

#[tokio::test]
async fn a_piece_that_a_token_does_not_list_is_forbidden_whether_it_is_there_or_not() {
    let bench = Bench::new().await;
    for (piece, status, code) in [
        ("pay-invoice", 403, "piece_not_permitted"),
        ("no-such-piece", 403, "piece_not_permitted"),
        ("other", 422, "unknown_piece"),
    ] {
        let heard = bench
            .post("/api/jobs", "other", json!({ "piece": piece, "input": "x" }))
            .await;
        assert_eq!(
            (heard.status.as_u16(), heard.code().as_str()),
            (status, code),
            "{piece}"
        );
    }
}

#[tokio::test]
async fn a_job_that_does_not_wait_takes_no_answer_and_is_cancelled_once() {
    let bench = Bench::new().await;
    let job = submit(&bench).await;
    let path = format!("/api/jobs/{}", job["id"].as_str().unwrap());
    let answer = json!({ "answer": "done" });
    for token in ["agent", "dana"] {
        let heard = bench.post(&format!("{path}/answer"), token, answer.clone()).await;
        assert_eq!(heard.code(), "not_awaiting_answer");
    }
    for _ in 0..2 {
        let heard = bench.send("POST", &format!("{path}/cancel"), "dana", "").await;
        assert_eq!(heard.json()["status"], "cancelled");
    }
}

#[tokio::test]
async fn the_stream_tells_every_change_until_the_end() {
    let bench = Bench::new().await;
    let job = submit(&bench).await;
    let path = format!("/api/jobs/{}", job["id"].as_str().unwrap());
    let events = format!("{path}/events");
    let listening = bench.get(&events, "agent");
    let cancelling = async {
        tokio::task::yield_now().await;
        bench.send("POST", &format!("{path}/cancel"), "agent", "").await
    };
    let (heard, _) = tokio::join!(listening, cancelling);
    assert_eq!(heard.headers["content-type"], "text/event-stream");
    let told: Vec<_> = heard
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .collect();
    let last: Value = serde_json::from_str(told.last().expect("an event")).unwrap();
    assert_eq!(last["status"], "cancelled");
    assert!(heard.text.contains("event: job"));
}

/// The events of a stream: name, id and data.
fn events(text: &str) -> Vec<(String, String, Value)> {
    let member = |event: &str, name: &str| {
        let line = event
            .lines()
            .find_map(|line| line.strip_prefix(name).map(str::trim));
        line.unwrap_or_default().to_owned()
    };
    text.split("\n\n")
        .filter(|event| event.contains("data:"))
        .map(|event| {
            let data = serde_json::from_str(&member(event, "data:")).unwrap();
            (member(event, "event:"), member(event, "id:"), data)
        })
        .collect()
}

#[tokio::test]
async fn the_stream_tells_what_goes_on_and_goes_on_where_a_listener_was() {
    let bench = Bench::new().await;
    let job = submit(&bench).await;
    let id = JobId::parse(job["id"].as_str().unwrap()).unwrap();
    let path = format!("/api/jobs/{id}/events");
    bench.feed.tell(&id, Progress::Resumed);
    let telling = async {
        while !bench.feed.is_heard(&id) {
            tokio::task::yield_now().await;
        }
        bench.feed.tell(&id, Progress::TurnStarted { turn: 0 });
        let call = || ("t0000c000".to_owned(), "oa__pay".to_owned());
        let (started, tool) = call();
        bench
            .feed
            .tell(&id, Progress::ToolStarted { call: started, tool });
        bench
            .send("POST", &format!("/api/jobs/{id}/cancel"), "agent", "")
            .await
    };
    let (heard, _) = tokio::join!(bench.get(&path, "agent"), telling);
    let told = events(&heard.text);
    let names: Vec<&str> = told.iter().map(|(name, _, _)| name.as_str()).collect();
    assert_eq!(names.first(), Some(&"job"), "first as it stands");
    assert!(!names.contains(&"resumed"), "what was before is in the snapshot");
    assert_eq!(names[names.len() - 2..], ["ended", "job"], "{names:?}");
    let ended = &told[told.len() - 2].2;
    assert_eq!(*ended, json!({"type": "ended", "status": "cancelled"}));
    for (name, _, data) in told.iter().filter(|(name, _, _)| name != "job") {
        assert_eq!(data["type"], name.as_str());
    }
    let tool = told.iter().find(|(name, _, _)| name == "tool_started").unwrap();
    assert_eq!(
        tool.2,
        json!({"type": "tool_started", "call": "t0000c000", "tool": "oa__pay"})
    );

    // Who heard as far as the start of the turn hears the rest and how the job stands, and nothing twice.
    let (_, start, _) = told.iter().find(|(name, _, _)| name == "turn_started").unwrap();
    let heard = bench.get_after(&path, "agent", start).await;
    let names: Vec<String> = events(&heard.text).into_iter().map(|(name, _, _)| name).collect();
    assert_eq!(names, ["tool_started", "ended", "job"]);
    // Who heard all of it hears nothing more, and ids that are none of ours lose nobody the snapshot.
    let (_, last, _) = told.last().unwrap();
    assert_eq!(events(&bench.get_after(&path, "agent", last).await.text), []);
    for odd in ["", "x", "7.2.3.4", "99999999999999999999", "-1", "0.deadbeef.7"] {
        let heard = bench.get_after(&path, "agent", odd).await;
        let names: Vec<String> = events(&heard.text).into_iter().map(|(name, _, _)| name).collect();
        assert_eq!(names, ["ended", "job"], "{odd}");
    }
    // An id as it was before there was progress.
    let version = last.split('.').next().unwrap();
    assert_eq!(events(&bench.get_after(&path, "agent", version).await.text), []);
}

#[tokio::test]
async fn streams_are_bounded_like_all_waits() {
    let bench = Bench::new().await;
    let job = submit(&bench).await;
    let path = format!("/api/jobs/{}/events", job["id"].as_str().unwrap());
    let waits: Vec<_> = ["agent", "other", "dana", "auditor"]
        .into_iter()
        .flat_map(|token| std::iter::from_fn(|| bench.api.crowd().may_wait(&token.into()).ok()))
        .collect();
    assert_eq!(bench.get(&path, "agent").await.code(), "overloaded");
    assert_eq!(bench.get(&path, "other").await.code(), "not_found");
    drop(waits);
}
