//! Compaction never parts a call from its result and never loses a call that people are asked about (RH-705).

use gatepost_channel::Decision;
use proptest::prelude::*;
use serde_json::json;

use super::compact::{compact, estimate};
use super::fixture::{call, calls, complete};
use super::limits::Limits;
use super::memory::{Entry, Past};
use super::stage::Stage;
use crate::job::JobStatus;

fn entry(kind: u8, size: usize) -> Entry {
    let text = "é".repeat(size / 2);
    if kind == 0 {
        return Entry::User(text);
    }
    let call = |at: usize| Past {
        id: format!("t0000c00{at}"),
        tool: format!("tool_{at}"),
        args: "{}".to_owned(),
        result: text.clone(),
    };
    Entry::Model {
        text: None,
        calls: (0..usize::from(kind)).map(call).collect(),
    }
}

proptest! {
    #[test]
    fn whatever_was_said_fits_afterwards(
        sizes in prop::collection::vec((0..4_u8, 0..20_000_usize), 1..40),
        budget in 4_000..20_000_usize,
    ) {
        let before: Vec<Entry> = std::iter::once(Entry::User("go".to_owned()))
            .chain(sizes.into_iter().map(|(kind, size)| entry(kind, size)))
            .collect();
        let mut after = before.clone();
        let changed = compact(&mut after, budget);
        prop_assert_eq!(changed, estimate(&before) > budget);
        prop_assert!(estimate(&after) <= budget, "{} of {}", estimate(&after), budget);
        prop_assert_eq!(&after[0], &before[0]);
        let shape = |entry: &Entry| match entry {
            Entry::User(_) => 0,
            Entry::Model { calls, .. } => calls.len(),
        };
        prop_assert_eq!(after.last().map(shape), before.last().map(shape), "the newest exchange stays whole");
        prop_assert!(after.len() <= before.len().max(3));
    }
}

#[test]
fn a_note_says_what_was_there_and_does_not_pile_up() {
    let mut history = vec![Entry::User("go".to_owned())];
    for _ in 0..200 {
        history.push(entry(2, 4_000));
        compact(&mut history, 5_000);
    }
    let notes: Vec<&String> = history
        .iter()
        .filter_map(|entry| match entry {
            Entry::User(text) if text.starts_with("[An older part") => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(notes.len(), 1, "one note");
    assert!(
        notes[0].contains("tool_0 (") && notes[0].len() < 2_500,
        "{}",
        notes[0]
    );
}

const PIECE: &str = "\
name: long
initial_movement: go
movements:
  - name: go
    instruction: GO.
    allowed_tools: [t_*]
";

#[tokio::test]
async fn a_batch_with_an_open_approval_outlives_compaction() {
    let filler = |n: usize| calls(vec![call("t_free", &json!({"fill": "x".repeat(900), "n": n}))]);
    let mut script: Vec<_> = (0..6).map(filler).collect();
    script.push(calls(vec![
        call("t_free", &json!({"n": 100})),
        call("t_pay", &json!({"n": 101})),
    ]));
    script.push(complete("success", "done"));
    let limits = Limits {
        // The seventh reply finds the budget used up.
        context: 2_500,
        max_iterations: 20,
        ..Limits::default()
    };
    let stage = Stage::with(&[PIECE], vec![("GO", script)], limits);
    let id = stage.submit("long");
    for _ in 0..10 {
        stage.work().await;
        for request in stage.pending() {
            stage.decide(&request, Decision::Approve).await;
        }
    }
    let memory = stage.memory(&id);
    assert!(memory.compactions > 0);
    for seen in stage.seen() {
        for entry in &seen.history {
            if let Entry::Model { calls, .. } = entry {
                assert!(
                    calls.iter().all(|call| !call.result.is_empty()),
                    "each call with its result"
                );
            }
        }
        assert!(estimate(&seen.history) <= 2_500);
    }
    assert!(matches!(
        stage.world.job(&id).state.status(),
        JobStatus::Completed | JobStatus::Aborted
    ));
}
