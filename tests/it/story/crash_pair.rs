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

async fn assert_paid(run: &Mortal, asked: &[String], times: [usize; 2], cards: [usize; 2]) -> Vec<String> {
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
    for (request, cards) in asked.iter().zip(cards) {
        assert_eq!(run.cards(request), cards);
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
    let (held, other) = one_of_two_posts(&run, &asked).await;
    let _second = another(&mut run).await;
    run.press(other, "approve").await;
    assert_eq!(run.cards(held), 0, "its post is somebody's");
    run.program.kill_9().await;
    run.rows.lapse().await;
    run.press(held, "approve").await;
    run.until_ended(&job, "completed").await;
    for request in &asked {
        run.world.until_deliveries(request, &["settled"]).await;
    }
    assert_paid(&run, &asked, [1, 1], [1, 1]).await;
}

/// The request whose post hangs, and the other one, whose card is on record.
async fn one_of_two_posts<'a>(run: &Mortal, asked: &'a [String]) -> (&'a str, &'a str) {
    let sent = |slack: &crate::support::fake_slack::FakeSlack| {
        Some(()).filter(|()| slack.calls("chat.postMessage").len() == 2)
    };
    run.world.slack.wait_for("both posts", SOON, sent).await;
    run.world
        .until("the card of one", async || {
            let first = run.world.request(&asked[0]).await;
            let second = run.world.request(&asked[1]).await;
            match [&first, &second].map(|seen| seen["deliveries"][0]["state"] == "posted") {
                [true, false] => Some((asked[1].as_str(), asked[0].as_str())),
                [false, true] => Some((asked[0].as_str(), asked[1].as_str())),
                _ => None,
            }
        })
        .await
}

/// Slack took the card, and its answer died with the server that waited for it. The other server posts a second card, for it
/// cannot know; whoever presses the first one is heard, and both are settled.
#[tokio::test(flavor = "multi_thread")]
async fn the_card_that_a_killed_server_left_can_be_pressed() {
    let mut run = pair("").await;
    run.world
        .slack
        .fail_next("chat.postMessage", Fault::silence().after_effect());
    let job = run.submit("pay").await;
    let asked = run.parked_on(&job, 2).await;
    let (left, other) = one_of_two_posts(&run, &asked).await;
    let _second = another(&mut run).await;
    run.program.kill_9().await;
    run.rows.lapse().await;
    run.press(other, "approve").await;
    run.press(left, "approve").await;
    run.until_ended(&job, "completed").await;
    for request in &asked {
        run.world.until_deliveries(request, &["settled"]).await;
    }
    let cards = run.world.slack.messages(crate::support::fake_slack::CHANNEL);
    assert!(
        cards.iter().all(|card| card.current().action_ids().is_empty()),
        "{cards:?}"
    );
    let twice = asked.iter().map(|request| 1 + usize::from(request == left));
    let twice: Vec<_> = twice.collect();
    assert_paid(&run, &asked, [1, 1], [twice[0], twice[1]]).await;
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
    assert_paid(&run, &asked, [1, 1], [1, 1]).await;
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
    let told = assert_paid(&run, &asked, [2, 1], [1, 1]).await;
    assert!(
        told.iter().all(|told| told.contains(r#"{"ok":true}"#)),
        "{told:?}"
    );
}
