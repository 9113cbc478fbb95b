//! Whole runs with a scripted model and scripted tools on a store in memory: who runs what, how often, and what the model is
//! told.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gatepost_channel::Decision;
use serde_json::{Value, json};

use super::fixture::{Lab, call, calls, complete, operator, words};
use super::limits::Limits;
use super::memory::Entry;
use super::model::{RawCall, Reply};
use crate::confirmation::OutcomeStatus;
use crate::confirmation::expire::Expire;
use crate::job::answer::Answered;
use crate::job::cancel::{By, Cancel, Cancelled};
use crate::job::family::Family;
use crate::job::fixture::{is_parked, org, token};
use crate::job::worker::{Ran, Reins, Run as _};
use crate::job::{Job, JobState, JobStatus, WaitReason};
use crate::lifecycle::Tasks;

#[tokio::test]
async fn an_approved_call_runs_once_in_its_stored_form() {
    let lab = Lab::new(vec![
        calls(vec![call("t_pay", &json!({"payee": "x", "amount": 1.0}))]),
        complete("success", "paid"),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    let job = lab.world.job(&id);
    assert_eq!(job.state.wait_reason(), Some(WaitReason::ToolApproval));
    assert_eq!(job.state.resume_movement(), Some("start"));
    let [request] = &lab.pending()[..] else {
        panic!("one card")
    };
    assert_eq!(job.confirmations, std::slice::from_ref(request));
    assert!(lab.ledger.all().is_empty());

    lab.decide(request, Decision::Approve, None).await;
    lab.work().await;
    let [run] = &lab.ledger.all()[..] else {
        panic!("one execution")
    };
    assert_eq!(run.args, r#"{"amount":1,"payee":"x"}"#, "canonical");
    let row = lab.world.request(request);
    assert_eq!(row.asked.session_id.as_deref(), Some("s-1"));
    let call_id = format!("{id}:t0000c000");
    assert_eq!(
        row.asked.tool_call_id.as_deref(),
        Some(&*call_id),
        "jobs of one session do not clash"
    );
    assert_eq!(row.state.consumed().map(|(permit, _)| permit), Some(&run.permit));
    assert!(row.ledger.resumed_at.is_some() && row.ledger.executed_at.is_some());
    assert_eq!(
        lab.world.job(&id).state,
        JobState::Completed {
            result: "paid".to_owned()
        }
    );
    assert_eq!(
        lab.results(&id),
        [format!("t_pay did {}", run.args), "accepted".to_owned()]
    );
    assert_eq!(
        lab.kinds().await,
        [
            "job.submitted",
            "confirmation.created",
            "job.parked",
            "vote.cast",
            "confirmation.approved",
            "job.resumed",
            "permit.consumed",
            "tool.executed",
            "job.completed"
        ]
    );
    assert!(lab.world.chain_is_sound());
}

#[tokio::test]
async fn a_denial_says_who_and_why_and_the_same_call_is_not_asked_again() {
    let pay = || calls(vec![call("t_pay", &json!({"to": "board", "body": "Q2"}))]);
    let other_order = calls(vec![RawCall {
        arguments: Some(r#"{ "body":"Q2",  "to":"board" }"#.to_owned()),
        ..call("t_pay", &json!({}))
    }]);
    let near = calls(vec![call("t_pay", &json!({"to": "board", "body": "Q2 "}))]);
    let lab = Lab::new(vec![pay(), pay(), other_order, near, complete("aborted", "no")]);
    let id = lab.submit().await;
    lab.work().await;
    let first = lab.pending().remove(0);
    lab.decide(&first, Decision::Reject, Some("too early")).await;
    lab.work().await;

    let results = lab.memory(&id);
    let told: Vec<String> = results
        .history
        .iter()
        .filter_map(|entry| match entry {
            Entry::Model { calls, .. } => calls.first().map(|call| call.result.clone()),
            Entry::User(_) => None,
        })
        .collect();
    assert_eq!(told.len(), 3, "three of the same");
    assert!(
        told[0].contains("rejected_by_operator") && told[0].contains("Dana Kim: too early"),
        "{}",
        told[0]
    );
    assert!(told[0].contains("That answer is final"));
    assert!(
        told[1..]
            .iter()
            .all(|told| told.contains("rejected exactly this call before"))
    );
    assert!(
        lab.world.request(&first).ledger.resumed_at.is_some(),
        "the denial was taken"
    );
    // What differs in a blank is another call, and asked about.
    assert_eq!(lab.world.requests().len(), 2);
    let second = lab.pending().remove(0);
    lab.decide(&second, Decision::Reject, None).await;
    lab.work().await;
    assert_eq!(lab.world.job(&id).state.status(), JobStatus::Aborted);
    assert!(lab.ledger.all().is_empty());
    let kinds = lab.kinds().await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "call.denied").count(), 2);
    assert_eq!(
        kinds
            .iter()
            .filter(|kind| *kind == "confirmation.created")
            .count(),
        2
    );
}

#[tokio::test]
async fn several_calls_wait_together_and_end_in_order() {
    let lab = Lab::new(vec![
        calls(vec![
            call("t_pay", &json!({"n": 0})),
            call("t_free", &json!({"n": 1})),
            call("t_pay", &json!({"n": 2})),
            call("t_pay", &json!({"n": 3})),
            call("t_free", &json!({"never": true})),
        ]),
        complete("success", "done"),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    assert_eq!(lab.ledger.all().len(), 1, "what needs nobody ran at once");
    let pending = lab.pending();
    assert_eq!(pending.len(), 3);
    lab.decide(&pending[2], Decision::Approve, None).await;
    lab.decide(&pending[1], Decision::Reject, None).await;
    lab.work().await;
    assert!(is_parked(&lab.world.job(&id)), "one is open");
    assert_eq!(lab.ledger.all().len(), 1);
    lab.decide(&pending[0], Decision::Approve, None).await;
    lab.work().await;
    let results = lab.results(&id);
    assert_eq!(results[0], r#"t_pay did {"n":0}"#);
    assert_eq!(results[1], r#"t_free did {"n":1}"#);
    assert!(results[2].starts_with("denied (rejected_by_operator)"));
    assert_eq!(results[3], r#"t_pay did {"n":3}"#);
    assert!(
        results[4].starts_with("denied (denied_by_rule): never ever"),
        "{}",
        results[4]
    );
    assert_eq!(lab.ledger.all().len(), 3);
    assert_eq!(lab.model.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn nobody_answering_is_a_denial_that_resumes_the_job() {
    let lab = Lab::new(vec![
        calls(vec![call("t_pay", &json!({"n": 0}))]),
        complete("aborted", "late"),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    lab.world.clock.advance(Duration::from_hours(24));
    lab.world.run(&Expire { limit: 10 });
    lab.work().await;
    let result = lab.results(&id).remove(0);
    assert!(
        result.starts_with("denied (expired)") || result.starts_with("denied (undeliverable)"),
        "{result}"
    );
    assert!(lab.ledger.all().is_empty());
}

#[tokio::test]
async fn the_user_is_asked_and_the_answer_is_the_result_of_the_question() {
    let lab = Lab::new(vec![
        complete("needs_user_input", "Which colour?"),
        complete("success", "blue it is"),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    let job = lab.world.job(&id);
    assert_eq!(job.state.wait_reason(), Some(WaitReason::UserInput));
    assert_eq!(lab.desk.question(&job).unwrap().text, "Which colour?");
    let own = By::Token(token());
    let answered = lab.answer(own.clone(), &id, "blue").await;
    assert!(matches!(answered, Answered::Done(_)));
    lab.work().await;
    assert_eq!(lab.results(&id), ["blue", "accepted"]);
    let again = lab.answer(own.clone(), &id, "red").await;
    assert_eq!(again, Answered::NotWaiting);
}

#[tokio::test]
async fn arguments_have_one_meaning_or_none() {
    let spellings: [(Option<&str>, Option<&str>); 15] = [
        (None, Some("{}")),
        (Some(""), Some("{}")),
        (Some(" \n"), Some("{}")),
        (Some("{}"), Some("{}")),
        (Some(r#"{"b":1,"a":2}"#), Some(r#"{"a":2,"b":1}"#)),
        (Some("null"), None),
        (Some("[]"), None),
        (Some("7"), None),
        (Some(r#""{\"a\":1}""#), None),
        (Some("```json\n{}\n```"), None),
        (Some("{'a':1}"), None),
        (Some("{} ok"), None),
        (Some(r#"{"a":1,"a":2}"#), None),
        (Some(r#"{"a":"\ud800"}"#), None),
        (Some(r#"{"a":"#), None),
    ];
    for (spelling, meaning) in spellings {
        for tool in ["t_free", "t_pay"] {
            let raw = RawCall {
                arguments: spelling.map(str::to_owned),
                ..call(tool, &json!({}))
            };
            let lab = Lab::new(vec![calls(vec![raw]), complete("success", "")]);
            let id = lab.submit().await;
            lab.work().await;
            let asked = lab.pending();
            match (meaning, tool) {
                (Some(args), "t_free") => assert_eq!(lab.ledger.all()[0].args, args),
                (Some(args), _) => assert_eq!(lab.world.request(&asked[0]).asked.args, args),
                (None, _) => {
                    assert!(asked.is_empty() && lab.ledger.all().is_empty(), "{spelling:?}");
                    assert!(lab.results(&id)[0].starts_with("error: "), "{spelling:?}");
                    assert_eq!(lab.past(&id)[0].args, "{}", "the history stays valid");
                }
            }
        }
    }
}

#[tokio::test]
async fn nobody_is_asked_about_arguments_that_the_tool_could_not_take() {
    let lab = Lab::new(vec![
        calls(vec![
            call("t_pay", &json!({"amount": "much"})),
            call("t_free", &json!({"amount": []})),
        ]),
        calls(vec![call("t_pay", &json!({"amount": 5}))]),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    let asked = lab.pending();
    assert_eq!(asked.len(), 1, "the mended call only");
    assert_eq!(lab.world.request(&asked[0]).asked.args, r#"{"amount":5}"#);
    assert!(lab.ledger.all().is_empty());
    for told in &lab.results(&id)[..2] {
        assert!(
            told.starts_with("error: `/amount` must be of type number, not "),
            "{told}"
        );
        assert!(!told.contains("much"), "{told}");
    }
}

#[tokio::test]
async fn what_cannot_be_told_for_certain_is_never_a_call() {
    let cut = Reply {
        complete: false,
        ..calls(vec![call("t_pay", &json!({"whole": true}))])
    };
    let nameless = RawCall {
        name: None,
        ..call("t_pay", &json!({}))
    };
    let strange = RawCall {
        name: Some("t_pay\u{202e}".to_owned()),
        ..call("t_pay", &json!({}))
    };
    let twin = |n: u32| RawCall {
        id: Some("same".to_owned()),
        ..call("t_pay", &json!({"n": n}))
    };
    let lab = Lab::new(vec![
        cut,
        calls(vec![nameless, strange]),
        calls(vec![twin(1), twin(2)]),
        calls(vec![call("hidden", &json!({})), call("nowhere", &json!({}))]),
        calls(vec![
            call("complete", &json!({"status": "success", "result": "x"})),
            call("t_free", &json!({"ran": 1})),
        ]),
        complete("perhaps", "x"),
        calls((0..33).map(|n| call("t_pay", &json!({"n": n}))).collect()),
        complete("success", "the end"),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    assert_eq!(
        lab.world.job(&id).state,
        JobState::Completed {
            result: "the end".to_owned()
        }
    );
    assert!(lab.world.requests().is_empty(), "nobody was asked");
    assert_eq!(lab.ledger.all().len(), 1);
    let results = lab.results(&id);
    assert_eq!(results.len(), 2 + 2 + 2 + 2 + 1 + 1);
    let errors = results
        .iter()
        .filter(|result| result.starts_with("error: "))
        .count();
    assert_eq!(errors, results.len() - 2, "{results:#?}");
}

#[tokio::test]
async fn a_missing_id_is_no_reason_to_refuse() {
    let anonymous = |n: u32| RawCall {
        id: None,
        ..call("t_free", &json!({"n": n}))
    };
    let lab = Lab::new(vec![
        calls(vec![anonymous(1), anonymous(2)]),
        complete("success", ""),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    assert_eq!(lab.ledger.all().len(), 2);
    let ids: BTreeSet<String> = lab.past(&id).into_iter().map(|past| past.id).collect();
    assert_eq!(ids.len(), 3);
    assert!(
        ids.iter()
            .all(|id| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()))
    );
}

#[tokio::test]
async fn every_loop_ends() {
    let limits = Limits {
        max_iterations: 6,
        cards: 2,
        questions: 2,
        ..Limits::default()
    };
    let lab = Lab::with(vec![words("Let me think.")], limits);
    let id = lab.submit().await;
    lab.work().await;
    let JobState::Aborted { result } = lab.world.job(&id).state else {
        panic!("aborted")
    };
    assert!(result.starts_with("text_only_limit"), "{result}");
    assert_eq!(lab.model.asked.load(Ordering::SeqCst), 3);

    let lab = Lab::with(vec![calls(vec![call("t_free", &json!({}))])], limits);
    let id = lab.submit().await;
    lab.work().await;
    let JobState::Aborted { result } = lab.world.job(&id).state else {
        panic!("aborted")
    };
    assert!(result.starts_with("max_iterations"), "{result}");
    assert_eq!(lab.model.asked.load(Ordering::SeqCst), 6);

    let cards: Vec<Reply> = (0..5)
        .map(|n| calls(vec![call("t_pay", &json!({"n": n}))]))
        .collect();
    let lab = Lab::with(cards, limits);
    let id = lab.submit().await;
    for _ in 0..2 {
        lab.work().await;
        let request = lab.pending().remove(0);
        lab.decide(&request, Decision::Reject, None).await;
    }
    lab.work().await;
    assert_eq!(lab.world.requests().len(), 2, "no third card");
    assert_eq!(lab.world.job(&id).state.status(), JobStatus::Aborted);
    assert!(lab.kinds().await.contains(&"call.denied".to_owned()));

    let lab = Lab::with(vec![complete("needs_user_input", "What now?")], limits);
    let id = lab.submit().await;
    for _ in 0..2 {
        lab.work().await;
        lab.answer(operator(), &id, "hm").await;
    }
    lab.work().await;
    let JobState::Aborted { result } = lab.world.job(&id).state else {
        panic!("aborted")
    };
    assert!(result.starts_with("ask_limit"), "{result}");
}

#[tokio::test]
async fn a_call_without_an_answer_waits_for_an_operator() {
    for (said, sends) in [("done", 1), ("not_done", 2)] {
        let lab = Lab::new(vec![
            calls(vec![call("t_vanish", &json!({"n": 1}))]),
            complete("success", ""),
        ]);
        let id = lab.submit().await;
        lab.work().await;
        lab.decide(&lab.pending()[0], Decision::Approve, None).await;
        lab.work().await;
        assert_eq!(
            lab.world.job(&id).state.wait_reason(),
            Some(WaitReason::OutcomeUnknown)
        );
        assert_eq!(lab.ledger.all().len(), 1);
        let own = By::Token(token());
        let by_itself = lab.answer(own.clone(), &id, said).await;
        assert_eq!(by_itself, Answered::NotAllowed);
        let answered = lab.answer(operator(), &id, said).await;
        assert!(matches!(answered, Answered::Done(_)));
        lab.work().await;
        let runs = lab.ledger.all();
        assert_eq!(runs.len(), sends);
        assert!(runs.iter().all(|run| run.permit == runs[0].permit), "one permit");
        let outcome = lab.world.requests()[0].ledger.outcome.clone().unwrap();
        assert_eq!(outcome.status, OutcomeStatus::Succeeded);
        assert_eq!(
            lab.results(&id)[0].contains("as an operator found out"),
            said == "done"
        );
        assert_eq!(lab.world.job(&id).state.status(), JobStatus::Completed);
    }
}

#[tokio::test]
async fn an_idempotent_call_without_an_answer_is_sent_again_under_its_permit() {
    let lab = Lab::new(vec![
        calls(vec![call("t_vanish_again", &json!({"n": 1}))]),
        complete("success", ""),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    lab.decide(&lab.pending()[0], Decision::Approve, None).await;
    lab.work().await;
    let runs = lab.ledger.all();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0], runs[1]);
    assert_eq!(lab.world.job(&id).state.status(), JobStatus::Completed);
}

#[tokio::test]
async fn a_rule_that_denies_by_now_stops_an_approved_call() {
    let lab = Lab::new(vec![
        calls(vec![call("t_pay", &json!({"n": 1}))]),
        complete("aborted", ""),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    let request = lab.pending().remove(0);
    lab.decide(&request, Decision::Approve, None).await;
    // Long after the permit lapsed.
    lab.world.clock.advance(Duration::from_hours(2));
    lab.work().await;
    assert!(lab.results(&id)[0].starts_with("denied (permit_expired)"));
    assert!(lab.ledger.all().is_empty());
    assert!(lab.world.request(&request).ledger.resumed_at.is_some());
}

#[tokio::test]
async fn the_stored_arguments_are_what_is_sent_and_a_changed_row_is_not() {
    let lab = Lab::new(vec![
        calls(vec![call("t_pay", &json!({"n": 1}))]),
        complete("aborted", ""),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    lab.decide(&lab.pending()[0], Decision::Approve, None).await;
    // Somebody rewrites what the model remembers: it is not what runs.
    lab.world.tamper(&id, |job| {
        job.memory = job.memory.replace(r#"{\"n\":1}"#, r#"{\"n\":9}"#);
    });
    lab.work().await;
    assert_eq!(lab.ledger.all()[0].args, r#"{"n":1}"#);

    let lab = Lab::new(vec![
        calls(vec![call("t_pay", &json!({"n": 1}))]),
        complete("aborted", ""),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    let request = lab.pending().remove(0);
    lab.decide(&request, Decision::Approve, None).await;
    lab.world
        .tamper_request(&request, |row| row.asked.args = r#"{"n":9}"#.to_owned());
    lab.work().await;
    assert!(lab.ledger.all().is_empty());
    assert!(lab.results(&id)[0].starts_with("denied (args_changed)"));
}

#[tokio::test]
async fn a_run_that_lost_its_job_writes_nothing_and_withdraws_what_it_asked() {
    let lab = Lab::new(vec![
        calls(vec![call("t_pay", &json!({"n": 1}))]),
        complete("success", ""),
    ]);
    let id = lab.submit().await;
    let job = lab.world.claim_one();
    let cancelled = lab.world.run(&Cancel {
        job: id.clone(),
        org: org(),
        by: operator(),
        confirmations: Vec::new(),
        parent: None,
        family: Family::default(),
    });
    assert!(matches!(cancelled, Cancelled::Done(_)));
    let ran = lab.runner.run(job, &Reins::new(Tasks::new())).await;
    assert_eq!(ran, Ran::Lost);
    assert!(lab.pending().is_empty());
    assert_eq!(lab.world.job(&id).state, JobState::Cancelled);
    assert!(lab.ledger.all().is_empty());
}

#[tokio::test]
async fn a_job_that_cannot_be_run_ends_with_an_error() {
    for spoil in [
        (|job: &mut Job| job.piece = "gone".to_owned()) as fn(&mut Job),
        |job| job.movement = "gone".to_owned(),
        |job| job.memory = "{\"version\":99}".to_owned(),
        |job| job.memory = "not json".to_owned(),
    ] {
        let lab = Lab::new(vec![complete("success", "")]);
        let id = lab.submit().await;
        lab.world.tamper(&id, spoil);
        lab.work().await;
        assert_eq!(lab.world.job(&id).state.status(), JobStatus::Error);
    }
}

/// A call that policy allowed and that got no answer is neither a success nor a failure, and the model is told so.
#[tokio::test]
async fn an_allowed_call_without_an_answer_is_on_record_as_unknown() {
    let lab = Lab::new(vec![
        calls(vec![call("t_free_lost", &json!({"n": 1}))]),
        complete("success", ""),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    assert_eq!(lab.ledger.all().len(), 1, "it is not sent again by itself");
    assert_eq!(lab.results(&id)[0], "error: gone");
    let events = lab.world.events();
    let event = events.iter().find(|event| event.kind == "tool.executed").unwrap();
    let data: Value = serde_json::from_str(&event.data).unwrap();
    assert_eq!(data["status"], "unknown");
}
