//! Pieces with several movements, and what each sentinel leads to.

use gatepost_channel::Decision;
use serde_json::json;

use super::fixture::{call, calls, complete, operator};
use super::limits::Limits;
use super::sentinel::{LeadsTo, Sentinel};
use super::stage::Stage;
use crate::job::answer::Answered;
use crate::job::cancel::By;
use crate::job::fixture::token;
use crate::job::{JobState, JobStatus, WaitReason};

const TWO: &str = "\
name: two
initial_movement: plan
max_movements: 4
movements:
  - name: plan
    persona: You plan.
    instruction: PLAN it.
    allowed_tools: [t_free]
    rules:
      - { condition: the plan stands, next: act }
      - { condition: helpers are at work, next: WAIT_SUBTASKS }
    default_next: act
  - name: act
    persona: You act.
    instruction: ACT on it.
    allowed_tools: [t_pay]
    rules:
      - { condition: the plan was bad, next: plan }
    max_revisits: 1
";
const CHAT: &str = "\
name: chat
initial_movement: talk
movements:
  - name: talk
    instruction: TALK.
    allowed_tools: [t_free]
    rules: []
";

fn transition(next: &str) -> super::model::Reply {
    calls(vec![call("transition", &json!({"next": next, "reason": "so"}))])
}

#[tokio::test]
async fn a_transition_leads_where_the_rules_say() {
    let stage = Stage::new(
        &[TWO],
        vec![
            (
                "PLAN",
                vec![
                    transition("COMPLETE"),
                    transition("plan"),
                    calls(vec![call("t_pay", &json!({"n": 1}))]),
                    transition("act"),
                ],
            ),
            (
                "ACT",
                vec![
                    calls(vec![call("t_free", &json!({"n": 2}))]),
                    calls(vec![call("t_pay", &json!({"n": 3}))]),
                    complete("success", "done"),
                ],
            ),
        ],
    );
    let id = stage.submit("two");
    stage.work().await;
    let job = stage.world.job(&id);
    assert_eq!(job.movement, "act", "it parks in the second movement");
    assert_eq!(job.state.resume_movement(), Some("act"));
    stage.decide(&stage.pending()[0], Decision::Approve).await;
    stage.work().await;
    assert_eq!(stage.world.job(&id).state.status(), JobStatus::Completed);
    let results = stage.results(&id);
    assert!(
        results[0].starts_with("error: `next` must be one of: act, WAIT_SUBTASKS"),
        "{}",
        results[0]
    );
    assert!(
        results[1].starts_with("error: `next`"),
        "not to itself: {}",
        results[1]
    );
    assert!(
        results[2].starts_with("error: there is no tool `t_pay` here"),
        "{}",
        results[2]
    );
    assert!(results[3].contains("You are now in the movement `act`"));
    assert!(
        results[4].starts_with("error: there is no tool `t_free` here"),
        "{}",
        results[4]
    );
    let ran: Vec<String> = stage.ledger.all().into_iter().map(|run| run.args).collect();
    assert_eq!(ran, [r#"{"n":3}"#]);

    let seen = stage.seen();
    let (plan, act) = (&seen[0], &seen[4]);
    assert_eq!(
        plan.offer("transition").unwrap()["properties"]["next"]["enum"],
        json!(["act", "WAIT_SUBTASKS"])
    );
    assert_eq!(
        act.offer("transition").unwrap()["properties"]["next"]["enum"],
        json!(["plan"])
    );
    assert!(plan.system.contains("You plan.") && plan.system.contains("PLAN it."));
    assert!(act.system.contains("You act.") && !act.system.contains("PLAN it."));
    assert!(plan.offer("t_free").is_some() && plan.offer("t_pay").is_none());
    assert!(act.offer("t_pay").is_some() && act.offer("t_free").is_none());
    assert_eq!(act.history.len(), 5, "what was said stays known");
}

#[tokio::test]
async fn a_piece_without_rules_has_no_transition_and_works() {
    let stage = Stage::new(
        &[CHAT],
        vec![("TALK", vec![transition("talk"), complete("success", "hi")])],
    );
    let id = stage.submit("chat");
    stage.work().await;
    assert_eq!(stage.world.job(&id).state.status(), JobStatus::Completed);
    assert!(stage.seen()[0].offer("transition").is_none());
    assert!(stage.results(&id)[0].starts_with("error: there is no tool `transition`"));
}

#[tokio::test]
async fn the_default_follows_when_no_rule_does() {
    let away = calls(vec![call("transition", &json!({}))]);
    let stage = Stage::new(
        &[TWO],
        vec![("PLAN", vec![away]), ("ACT", vec![complete("success", "")])],
    );
    let id = stage.submit("two");
    stage.work().await;
    assert_eq!(stage.world.job(&id).movement, "act");
    assert_eq!(stage.world.job(&id).state.status(), JobStatus::Completed);
}

#[tokio::test]
async fn going_round_in_circles_ends() {
    let script = || {
        vec![
            ("PLAN", vec![transition("act")]),
            ("ACT", vec![transition("plan")]),
        ]
    };
    let aborted = |stage: &Stage, id| match stage.world.job(id).state {
        JobState::Aborted { result } => result,
        state => panic!("{state:?}"),
    };
    let stage = Stage::new(&[TWO], script());
    let id = stage.submit("two");
    stage.work().await;
    let result = aborted(&stage, &id);
    assert!(result.starts_with("max_movements"), "{result}");
    assert_eq!(stage.seen().len(), 4, "four movements were gone through");

    let long = TWO.replacen("max_movements: 4", "max_movements: 900", 1);
    let stage = Stage::new(&[&long], script());
    let id = stage.submit("two");
    stage.work().await;
    let result = aborted(&stage, &id);
    assert!(result.starts_with("max_revisits: the movement `act`"), "{result}");
}

#[tokio::test]
async fn an_operator_logs_in_and_their_word_is_the_result() {
    let login = |url: &str| {
        calls(vec![call(
            "browser_login",
            &json!({"url": url, "reason": "the bank asks"}),
        )])
    };
    let stage = Stage::new(
        &[CHAT],
        vec![(
            "TALK",
            vec![
                login("javascript:alert(1)"),
                login("https://user:pw@bank.example/"),
                login("https://bank.example/login"),
                complete("success", "in"),
            ],
        )],
    );
    let id = stage.submit("chat");
    stage.work().await;
    let job = stage.world.job(&id);
    assert_eq!(job.state.wait_reason(), Some(WaitReason::BrowserLogin));
    assert_eq!(job.state.resume_movement(), Some("talk"));
    let question = stage.desk.question(&job).unwrap().text;
    assert!(question.contains("https://bank.example/login") && question.contains("the bank asks"));
    let by_itself = stage.answer(By::Token(token()), &id, "done").await;
    assert_eq!(by_itself, Answered::NotAllowed);
    let answered = stage.answer(operator(), &id, "logged in").await;
    assert!(matches!(answered, Answered::Done(_)));
    stage.work().await;
    let results = stage.results(&id);
    assert!(results[0].starts_with("error: `url`") && results[1].starts_with("error: `url`"));
    assert_eq!(results[2], "logged in");
    assert_eq!(stage.world.job(&id).state.status(), JobStatus::Completed);
}

fn request(tool: &str) -> super::model::Reply {
    calls(vec![call(
        "request_tool",
        &json!({"tool": tool, "reason": "to pay"}),
    )])
}

#[tokio::test]
async fn a_tool_that_was_granted_is_there_and_still_gated() {
    let stage = Stage::new(
        &[CHAT],
        vec![(
            "TALK",
            vec![
                request("t_free"),
                request("nowhere"),
                request("t_pay"),
                calls(vec![call("t_pay", &json!({"n": 1}))]),
                complete("success", "paid"),
            ],
        )],
    );
    let id = stage.submit("chat");
    stage.work().await;
    let job = stage.world.job(&id);
    assert_eq!(job.state.wait_reason(), Some(WaitReason::ToolRequest));
    let [asked] = &stage.pending()[..] else {
        panic!("one request")
    };
    let row = stage.world.request(asked);
    assert_eq!(row.asked.tool.as_str(), "request_tool");
    assert_eq!(row.asked.args, r#"{"reason":"to pay","tool":"t_pay"}"#);
    assert!(
        row.terms.decision.edits.is_some() && !row.takes_edits(),
        "that tool is given or not, never another"
    );
    assert_eq!(job.confirmations, std::slice::from_ref(asked));
    assert_eq!(
        stage.answer(operator(), &id, "yes").await,
        Answered::DecidedByRequest
    );
    assert!(stage.seen().last().unwrap().offer("t_pay").is_none());
    // Somebody rewrites what the run remembers: what people saw is what is granted.
    stage.world.tamper(&id, |job| {
        job.memory = job
            .memory
            .replace(r#"\"tool\":\"t_pay\""#, r#"\"tool\":\"hidden\""#);
    });
    stage.decide(asked, Decision::Approve).await;
    stage.work().await;
    let job = stage.world.job(&id);
    assert_eq!(
        job.state.wait_reason(),
        Some(WaitReason::ToolApproval),
        "the tool itself needs a person"
    );
    assert!(stage.seen().last().unwrap().offer("t_pay").is_some());
    assert!(stage.seen().last().unwrap().offer("hidden").is_none());
    stage.decide(&stage.pending()[0], Decision::Approve).await;
    stage.work().await;
    assert_eq!(stage.ledger.all().len(), 1);
    let results = stage.results(&id);
    assert!(results[0].contains("yours already") && results[1].contains("no tool `nowhere`"));
    assert!(results[2].starts_with("granted: `t_pay`"));
    assert_eq!(stage.world.job(&id).state.status(), JobStatus::Completed);
    assert!(stage.world.request(asked).ledger.executed_at.is_some());
}

#[tokio::test]
async fn a_tool_that_was_refused_is_not_asked_for_again() {
    let stage = Stage::new(
        &[CHAT],
        vec![(
            "TALK",
            vec![request("t_pay"), request("t_pay"), complete("aborted", "no")],
        )],
    );
    let id = stage.submit("chat");
    stage.work().await;
    stage.decide(&stage.pending()[0], Decision::Reject).await;
    stage.work().await;
    assert_eq!(stage.world.requests().len(), 1, "no second card");
    let results = stage.results(&id);
    assert!(results[0].starts_with("denied (rejected_by_operator)"));
    assert!(results[1].contains("rejected exactly this call before"));
    assert_eq!(stage.world.job(&id).state.status(), JobStatus::Aborted);
    assert!(stage.seen().last().unwrap().offer("t_pay").is_none());
}

#[tokio::test]
async fn no_crash_while_a_tool_is_granted_grants_it_twice() {
    for writes in 0..12 {
        let stage = Stage::new(
            &[CHAT],
            vec![("TALK", vec![request("t_pay"), complete("success", "")])],
        );
        let id = stage.submit("chat");
        for round in 0..20 {
            for request in stage.pending() {
                stage.decide(&request, Decision::Approve).await;
            }
            let claimed = stage.world.claim(1).jobs;
            if claimed.is_empty() && stage.world.job(&id).state.status().is_final() {
                break;
            }
            for job in claimed {
                let _ = stage.run_one(job, Some(writes % 4 + round)).await;
            }
            stage.revive();
        }
        assert_eq!(
            stage.world.job(&id).state.status(),
            JobStatus::Completed,
            "{writes}"
        );
        assert_eq!(stage.world.requests().len(), 1);
        assert!(stage.results(&id)[0].starts_with("granted"));
    }
}

#[tokio::test]
async fn asking_the_user_too_often_aborts() {
    let limits = Limits {
        questions: 1,
        ..Limits::default()
    };
    let stage = Stage::with(
        &[CHAT],
        vec![("TALK", vec![complete("needs_user_input", "Well?")])],
        limits,
    );
    let id = stage.submit("chat");
    stage.work().await;
    assert_eq!(
        stage.world.job(&id).state.wait_reason(),
        Some(WaitReason::UserInput)
    );
    stage.answer(By::Token(token()), &id, "so").await;
    stage.work().await;
    let JobState::Aborted { result } = stage.world.job(&id).state else {
        panic!("aborted")
    };
    assert!(result.starts_with("ask_limit"), "{result}");
}

#[tokio::test]
async fn a_movement_that_is_gone_is_an_error() {
    let stage = Stage::new(&[TWO], vec![("PLAN", vec![transition("act")])]);
    let id = stage.submit("two");
    stage.world.tamper(&id, |job| job.movement = "gone".to_owned());
    stage.work().await;
    let JobState::Error { error } = stage.world.job(&id).state else {
        panic!("an error")
    };
    assert!(error.contains("no movement `gone`"), "{error}");
}

#[test]
fn the_catalogue_of_sentinels() {
    let people = LeadsTo::People;
    let table = [
        ("COMPLETE", LeadsTo::End),
        ("ABORT", LeadsTo::End),
        ("ASK", people(WaitReason::UserInput)),
        ("WAIT_SUBTASKS", LeadsTo::Subtasks),
        ("WAITING_HUMAN_APPROVAL", people(WaitReason::ToolApproval)),
        ("WAITING_HUMAN_BROWSER", people(WaitReason::BrowserLogin)),
        ("WAITING_HUMAN_TOOL_REQUEST", people(WaitReason::ToolRequest)),
        ("WAITING_HUMAN_OUTCOME", people(WaitReason::OutcomeUnknown)),
    ];
    for ((word, leads_to), sentinel) in table.into_iter().zip(Sentinel::ALL) {
        assert_eq!((sentinel.as_str(), sentinel.leads_to()), (word, leads_to));
        assert_eq!(sentinel.may_stand_in_a_rule(), word == "WAIT_SUBTASKS");
        assert!(Sentinel::is_reserved(word));
        if let LeadsTo::People(reason) = leads_to {
            assert_eq!(
                Sentinel::asking(reason),
                sentinel,
                "park and sentinel name each other"
            );
        }
    }
}
