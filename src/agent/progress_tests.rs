//! What those who watch are told of a run, and what they are not.

use gatepost_channel::Decision;
use serde_json::{Value, json};

use super::fixture::{Lab, call, calls, complete};
use super::model::{Reply, Usage};
use super::stage::Stage;
use crate::ids::JobId;
use crate::job::progress::Feed;

fn told(feed: &Feed, id: &JobId) -> Vec<Value> {
    let told = feed.after(id, 0).into_iter();
    told.map(|told| serde_json::to_value(&told.progress).unwrap())
        .collect()
}

#[tokio::test]
async fn a_run_tells_what_goes_on_without_arguments_and_results() {
    let pay = Reply {
        usage: Usage {
            input_tokens: 120,
            cached_tokens: 20,
            output_tokens: 7,
            cost_micros: 0,
        },
        ..calls(vec![call("t_pay", &json!({"payee": "canary-4711"}))])
    };
    let lab = Lab::new(vec![pay, complete("success", "canary-4712")]);
    let id = lab.submit().await;
    lab.work().await;
    lab.decide(&lab.pending()[0], Decision::Approve, None).await;
    lab.work().await;
    let told = told(lab.runner.feed(), &id);
    let answered = |input: u64, cached: u64, output: u64| {
        json!({
            "type": "model_answered", "calls": 1,
            "input_tokens": input, "cached_tokens": cached, "output_tokens": output,
        })
    };
    assert_eq!(
        told,
        [
            json!({"type": "turn_started", "turn": 0}),
            answered(120, 20, 7),
            json!({"type": "parked", "reason": "tool_approval"}),
            json!({"type": "resumed"}),
            json!({"type": "tool_started", "call": "t0000c000", "tool": "t_pay"}),
            json!({"type": "tool_finished", "call": "t0000c000", "tool": "t_pay", "status": "succeeded"}),
            json!({"type": "turn_started", "turn": 1}),
            answered(0, 0, 0),
            json!({"type": "ended", "status": "completed"}),
        ]
    );
    assert!(!Value::from(told).to_string().contains("canary"));
}

#[tokio::test]
async fn a_lost_answer_and_another_movement_are_told() {
    let lab = Lab::new(vec![
        calls(vec![call("t_lost", &json!({}))]),
        complete("success", ""),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    lab.decide(&lab.pending()[0], Decision::Approve, None).await;
    lab.work().await;
    let told_of_it = told(lab.runner.feed(), &id);
    let [.., finished, parked] = &told_of_it[..] else {
        panic!("{told_of_it:?}")
    };
    assert_eq!(finished["status"], "unknown");
    assert_eq!(*parked, json!({"type": "parked", "reason": "outcome_unknown"}));

    let piece = "
name: two
initial_movement: first
movements:
  - { name: first, instruction: Begin., default_next: second }
  - { name: second, instruction: Finish. }
";
    let stage = Stage::new(
        &[piece],
        vec![
            ("Begin.", vec![calls(vec![call("transition", &json!({}))])]),
            ("Finish.", vec![complete("success", "")]),
        ],
    );
    let id = stage.submit("two");
    stage.work().await;
    let moved = json!({"type": "movement_changed", "from": "first", "to": "second"});
    let told = told(stage.feed(), &id);
    assert!(told.contains(&moved), "{told:?}");
}
