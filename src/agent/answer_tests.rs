//! Answers meet the question that was shown or none: repeated, late and misdirected ones change nothing.

use std::collections::BTreeMap;

use gatepost_channel::Decision;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::crash_tests::block_on;
use super::fixture::{Lab, call, calls, complete, operator};
use super::model::Reply;
use crate::ids::JobId;
use crate::job::answer::Answered;
use crate::job::cancel::By;
use crate::job::fixture::token;
use crate::job::{JobStatus, WaitReason};

/// A job of one turn whose calls were all approved, standing where the first of them lost its answer.
async fn lost(tools: &[&str]) -> (Lab, JobId) {
    let made = tools
        .iter()
        .enumerate()
        .map(|(n, tool)| call(tool, &json!({ "n": n })))
        .collect();
    let lab = Lab::new(vec![calls(made), complete("success", "over")]);
    let id = lab.submit().await;
    lab.work().await;
    for request in lab.pending() {
        lab.decide(&request, Decision::Approve, None).await;
    }
    lab.work().await;
    (lab, id)
}

fn open_question(lab: &Lab, id: &JobId) -> Option<String> {
    let job = lab.world.job(id);
    job.state.wait_reason()?;
    lab.desk.question(&job).map(|question| question.id)
}

/// The finding: an answer, sent twice, was the answer to the second unknown call of the turn too.
#[tokio::test]
async fn a_repeated_answer_sends_no_other_call_again() {
    let (lab, id) = lost(&["t_vanish", "t_vanish"]).await;
    let first = open_question(&lab, &id).unwrap();
    assert!(matches!(
        lab.answer_to(None, operator(), &id, "done").await,
        Answered::Done(_)
    ));
    lab.work().await;
    let second = open_question(&lab, &id).unwrap();
    assert_ne!(first, second);
    let again = lab.answer_to(None, operator(), &id, "not_done").await;
    assert_eq!(again, Answered::Ambiguous);
    let late = lab.answer_to(Some(&first), operator(), &id, "done").await;
    assert_eq!(late, Answered::Closed);
    assert_eq!(
        open_question(&lab, &id).as_ref(),
        Some(&second),
        "it is asked still"
    );
    // `done` has no effect outside: it is taken for the open question.
    lab.answer_to(None, operator(), &id, "done").await;
    lab.work().await;
    assert_eq!(lab.world.job(&id).state.status(), JobStatus::Completed);
    assert_eq!(lab.ledger.all().len(), 2, "each was sent once");
}

/// A call that was lost, sent again and lost again asks a new question, whatever its permit.
#[tokio::test]
async fn an_answer_to_an_earlier_loss_of_the_same_call_is_late() {
    let (lab, id) = lost(&["t_lost"]).await;
    let first = open_question(&lab, &id).unwrap();
    lab.answer_to(Some(&first), operator(), &id, "not_done").await;
    lab.work().await;
    assert_eq!(lab.ledger.all().len(), 2);
    let late = lab.answer_to(Some(&first), operator(), &id, "not_done").await;
    assert_eq!(late, Answered::Closed);
    lab.work().await;
    assert_eq!(lab.ledger.all().len(), 2, "not sent a third time");
}

#[tokio::test]
async fn a_question_says_what_each_answer_does_and_the_answer_is_on_record() {
    let (lab, id) = lost(&["t_lost"]).await;
    let question = lab.desk.question(&lab.world.job(&id)).unwrap();
    let permit = lab.ledger.all().remove(0).permit;
    for part in [
        permit.as_str(),
        "t_lost",
        "not sent again",
        "sent again under the same permit",
        "may approve",
    ] {
        assert!(question.text.contains(part), "{part}: {}", question.text);
    }
    lab.answer(operator(), &id, "not_done").await;
    let event = lab
        .world
        .events()
        .into_iter()
        .find(|event| event.kind == "job.answered")
        .unwrap();
    let data: Value = serde_json::from_str(&event.data).unwrap();
    assert_eq!(data["question_id"], question.id);
    assert_eq!(data["outcome"], "not_done");
    assert_eq!(event.confirmation, question.request);
    assert_eq!(event.actor, "operator:dana");
}

#[tokio::test]
async fn words_are_bound_to_their_question_too() {
    let ask = |text: &str| complete("needs_user_input", text);
    let lab = Lab::new(vec![
        ask("Which bill?"),
        ask("Delete the rest?"),
        complete("success", ""),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    let first = open_question(&lab, &id).unwrap();
    let own = || By::Token(token());
    lab.answer_to(Some(&first), own(), &id, "yes").await;
    lab.work().await;
    let again = lab.answer_to(Some(&first), own(), &id, "yes").await;
    assert_eq!(again, Answered::Closed);
    assert_eq!(
        lab.world.job(&id).state.wait_reason(),
        Some(WaitReason::UserInput)
    );
    assert_eq!(lab.results(&id), ["yes"]);
}

/// What is sent: whether it says that the call was carried out, and which of the questions so far it names, the newest first.
type Sent = (bool, Option<usize>);

async fn only_the_open_question_is_answered(tools: &[&str], sent: &[Sent]) -> Result<(), TestCaseError> {
    let (lab, id) = lost(tools).await;
    let mut shown: Vec<String> = open_question(&lab, &id).into_iter().collect();
    let mut resent = BTreeMap::<String, usize>::new();
    let mut taken = 0;
    for (done, named) in sent {
        let open = open_question(&lab, &id);
        let named = named.map(|back| shown.iter().rev().nth(back).cloned().unwrap_or_default());
        let counts = match (&open, &named) {
            (None, _) => false,
            (Some(open), Some(named)) => open == named,
            (Some(_), None) => *done || taken == 0,
        };
        let permit = lab.memory(&id).question().map(|question| question.text);
        let word = if *done { "done" } else { "not_done" };
        let answered = lab.answer_to(named.as_deref(), operator(), &id, word).await;
        prop_assert_eq!(
            matches!(answered, Answered::Done(_)),
            counts,
            "{:?} to {:?}: {:?}",
            named,
            open,
            answered
        );
        if counts {
            taken += 1;
            if !done {
                *resent.entry(permit.unwrap_or_default()).or_default() += 1;
            }
        }
        lab.work().await;
        let now = open_question(&lab, &id);
        prop_assert_eq!(
            now == open,
            !counts,
            "an answer that does not count moves nothing"
        );
        shown.extend(now.filter(|now| !shown.contains(now)));
    }
    let mut runs = BTreeMap::<String, usize>::new();
    for run in lab.ledger.all() {
        *runs.entry(run.permit.to_string()).or_default() += 1;
    }
    for (permit, count) in runs {
        let again: usize = resent
            .iter()
            .filter(|(question, _)| question.contains(&permit))
            .map(|(_, count)| count)
            .sum();
        prop_assert_eq!(
            count,
            1 + again,
            "sent again once for each `not_done` to its own question"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn no_repeated_or_late_answer_counts(
        tools in prop::collection::vec(prop::sample::select(vec!["t_vanish", "t_lost", "t_pay"]), 1..4),
        sent in prop::collection::vec((any::<bool>(), prop::option::of(0..4_usize)), 1..10),
    ) {
        block_on(only_the_open_question_is_answered(&tools, &sent))?;
    }
}

/// Where a reply of the model holds nothing that loses an answer, nobody can answer anything.
#[tokio::test]
async fn there_is_no_question_without_a_loss() {
    let reply: Reply = calls(vec![call("t_free", &json!({}))]);
    let lab = Lab::new(vec![reply, complete("success", "")]);
    let id = lab.submit().await;
    lab.work().await;
    assert_eq!(
        lab.answer_to(None, operator(), &id, "done").await,
        Answered::NotWaiting
    );
}
