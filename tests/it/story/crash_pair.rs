//! Two servers on one PostgreSQL database. The one that began something is killed in the middle of it; the other, which left
//! it alone for as long as it was somebody's, finishes it once.

use serde_json::json;

use crate::support::fake_model::Turn;
use crate::support::fault::{Door, Fault};
use crate::support::mortal::{Mortal, Paid};
use crate::support::program::{Place, Program};
use crate::support::world::{SOON, Storage};

const PIECE: &str = "\
name: pay
initial_movement: pay
movements:
  - name: pay
    instruction: PAYMENTS.
    allowed_tools: [slack__pay, slack__refund]
";

async fn pair(of_pay: &'static str) -> Mortal {
    let tools = [("slack__pay", "/pay", of_pay), ("slack__refund", "/refund", "")];
    let run = Mortal::start(Storage::Postgres, &[("pay.yaml", PIECE)], &tools).await;
    let calls = vec![
        ("slack__pay".to_owned(), json!({"amount": 60_000})),
        ("slack__refund".to_owned(), json!({"amount": 7})),
    ];
    let complete = Turn::call("complete", json!({"status": "success", "result": "paid"}));
    run.model.script("PAYMENTS", vec![Turn::Calls(calls), complete]);
    run
}

/// Starts a second server beside the first; from now on the story talks to it.
async fn another(run: &mut Mortal) -> Program {
    let other = Place::new();
    std::fs::copy(run.world.place.file("gatepost.key"), other.file("gatepost.key")).unwrap();
    other.write("pieces/pay.yaml", PIECE);
    let config = run
        .world
        .config
        .replace(&run.world.place.listen(), &other.listen());
    let second = Program::start(other.clone(), &config, &[]).await;
    run.world.place = other;
    second
}

async fn assert_paid(run: &Mortal, asked: &[String], times: [usize; 2]) -> Vec<String> {
    let paid = |path, at: usize, args| Paid {
        path,
        request: &asked[at],
        args,
        times: times[at],
    };
    run.assert_paid(&[
        paid("/pay", 0, json!({"amount": 60_000})),
        paid("/refund", 1, json!({"amount": 7})),
    ])
    .await;
    run.world.verify().await;
    for request in asked {
        assert_eq!(run.cards(request), 1, "one of the two posted");
    }
    run.assert_whole("PAYMENTS").0
}

#[tokio::test(flavor = "multi_thread")]
async fn one_is_killed_while_it_posts_a_card() {
    let mut run = pair("").await;
    run.world
        .slack
        .fail_next("chat.postMessage", Fault::held(&Door::closed()));
    let job = run.submit("pay").await;
    let asked = run.parked_on(&job, 2).await;
    let sent = |slack: &crate::support::fake_slack::FakeSlack| {
        Some(slack.calls("chat.postMessage")).filter(|calls| calls.len() == 2)
    };
    run.world.slack.wait_for("both posts", SOON, sent).await;
    let _second = another(&mut run).await;
    run.program.kill_9().await;
    assert_eq!(
        asked.iter().map(|request| run.cards(request)).sum::<usize>(),
        1,
        "the other post was somebody's"
    );
    run.rows.lapse().await;
    for request in &asked {
        run.press(request, "approve").await;
    }
    run.until_ended(&job, "completed").await;
    for request in &asked {
        run.world.until_deliveries(request, &["settled"]).await;
    }
    assert_paid(&run, &asked, [1, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_is_killed_while_a_call_runs() {
    let mut run = pair("").await;
    let job = run.submit("pay").await;
    let asked = run.parked_on(&job, 2).await;
    run.tool.fail_next("/pay", Fault::held(&Door::closed()));
    for request in &asked {
        run.press(request, "approve").await;
    }
    run.tool.wait_for_calls("/pay", 1, SOON).await;
    let _second = another(&mut run).await;
    // Beside the job whose lease lives, another one is carried on.
    let own = run.submit("pay").await;
    run.parked_on(&own, 2).await;
    assert_eq!(run.job(&job).await["status"], "running");
    run.program.kill_9().await;
    run.rows.lapse().await;
    run.say_of_unknown(&job, "done").await;
    run.until_ended(&job, "completed").await;
    assert_paid(&run, &asked, [1, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_is_killed_while_an_idempotent_call_runs() {
    let mut run = pair("idempotent: true,").await;
    let job = run.submit("pay").await;
    let asked = run.parked_on(&job, 2).await;
    run.tool.fail_next("/pay", Fault::held(&Door::closed()));
    for request in &asked {
        run.press(request, "approve").await;
    }
    run.tool.wait_for_calls("/pay", 1, SOON).await;
    let _second = another(&mut run).await;
    run.program.kill_9().await;
    run.rows.lapse().await;
    run.until_ended(&job, "completed").await;
    let told = assert_paid(&run, &asked, [2, 1]).await;
    assert!(
        told.iter().all(|told| told.contains(r#"{"ok":true}"#)),
        "{told:?}"
    );
}
