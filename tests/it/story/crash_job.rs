//! A job whose model asks in one reply for a free call and for two that need people, killed at every step on the way: each
//! endpoint is called once with what was approved, the conversation is whole, and what nobody can know waits for a person.

use serde_json::{Value, json};

use crate::support::fake_model::Turn;
use crate::support::fault::{Door, Fault};
use crate::support::mortal::{Mortal, Paid};
use crate::support::world::{SOON, Storage};

on_every_store!(
    killed_before_the_first_reply,
    killed_while_the_free_call_runs,
    killed_while_cards_are_posted,
    killed_while_parked,
    killed_after_the_first_approval,
    killed_after_the_second_approval,
    killed_while_the_first_call_runs_and_it_was_made,
    killed_while_the_first_call_runs_and_it_was_not_made,
    killed_before_the_first_result_is_on_record,
    killed_while_the_second_call_runs_and_it_was_made,
    killed_while_the_second_call_runs_and_it_was_not_made,
    killed_before_the_last_reply,
    killed_before_the_end_is_on_record,
    killed_after_the_end,
    killed_again_and_again,
    an_idempotent_call_is_made_again_under_its_key,
    one_is_approved_and_one_rejected,
    one_is_approved_and_one_expires,
);

const PIECE: &str = "\
name: pay
initial_movement: pay
movements:
  - name: pay
    instruction: PAYMENTS.
    allowed_tools: [look, oa__purchase_pay, slack__refund]
";

/// Where the program is killed. At the calls that are held the operator's answer stands beside.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    FirstAsked,
    LookCalled,
    CardsSent,
    Parked,
    FirstApproved,
    SecondApproved,
    FirstCalled(&'static str),
    FirstAnswered,
    SecondCalled(&'static str),
    LastAsked,
    LastAnswered,
    Ended,
}

fn pay_args() -> Value {
    json!({"amount": 60_000.1, "payee": "ACME GmbH"})
}

fn refund_args() -> Value {
    json!({"amount": 7, "of": "A-17"})
}

async fn mortal(storage: Storage, of_pay: &'static str) -> Mortal {
    let tools = [
        ("look", "/look", ""),
        ("oa__purchase_pay", "/pay", of_pay),
        ("slack__refund", "/refund", ""),
    ];
    let run = Mortal::start(storage, &[("pay.yaml", PIECE)], &tools).await;
    let calls = [
        ("look", json!({"at": "A-17"})),
        ("oa__purchase_pay", pay_args()),
        ("slack__refund", refund_args()),
    ];
    let calls = calls.map(|(name, args)| (name.to_owned(), args)).to_vec();
    let complete = Turn::call("complete", json!({"status": "success", "result": "paid"}));
    run.model.script("PAYMENTS", vec![Turn::Calls(calls), complete]);
    run
}

/// The whole story with one death; gives what the model was told last.
async fn lives(storage: Storage, step: Step) -> Vec<String> {
    let mut run = mortal(storage, "").await;
    let door = Door::closed();
    match step {
        Step::FirstAsked => run.model.fail_next(Fault::held(&door)),
        Step::LookCalled => run.tool.fail_next("/look", Fault::held(&door)),
        Step::CardsSent => run.world.slack.fail_next("chat.postMessage", Fault::held(&door)),
        _ => {}
    }
    let job = run.submit("pay").await;
    match step {
        Step::FirstAsked => {
            run.model.wait_for_requests(1, SOON).await;
            run.die().await;
        }
        Step::LookCalled => {
            run.tool.wait_for_calls("/look", 1, SOON).await;
            run.die().await;
            run.say_of_unknown(&job, "done").await;
        }
        Step::CardsSent => {
            let sent = |slack: &crate::support::fake_slack::FakeSlack| slack.calls("chat.postMessage").pop();
            run.world.slack.wait_for("a card", SOON, sent).await;
            run.die().await;
        }
        _ => {}
    }
    let asked = run.parked_on(&job, 2).await;
    let [pay, refund] = [&asked[0], &asked[1]];
    for request in [pay, refund] {
        run.until_posted(request).await;
    }
    match step {
        Step::Parked => run.die().await,
        Step::FirstCalled(_) | Step::FirstAnswered => run.tool.fail_next("/pay", Fault::held(&door)),
        Step::SecondCalled(_) => run.tool.fail_next("/refund", Fault::held(&door)),
        Step::LastAsked | Step::LastAnswered => run.model.fail_next(Fault::held(&door)),
        _ => {}
    }
    run.press(pay, "approve").await;
    if step == Step::FirstApproved {
        run.die().await;
        assert_eq!(run.job(&job).await["status"], "waiting_human", "one is open");
        assert!(run.tool.calls("/pay").is_empty());
    }
    run.press(refund, "approve").await;
    die_late(&mut run, step, &job, &door).await;
    run.until_completed_with_help(&job, &[("/pay", pay), ("/refund", refund)])
        .await;
    if step == Step::Ended {
        run.die().await;
        run.until_ended(&job, "completed").await;
    }

    let again = |path: Step| 1 + usize::from(step == path);
    run.assert_paid(&[
        Paid {
            path: "/pay",
            request: pay,
            args: pay_args(),
            times: again(Step::FirstCalled("not_done")),
        },
        Paid {
            path: "/refund",
            request: refund,
            args: refund_args(),
            times: again(Step::SecondCalled("not_done")),
        },
    ])
    .await;
    assert_eq!(
        run.tool.calls("/look").len(),
        1,
        "what is on record is not repeated"
    );
    let (told, questions) = run.assert_whole("PAYMENTS");
    let unheard = [Step::FirstAsked, Step::LastAsked, Step::LastAnswered].contains(&step);
    assert_eq!(questions, 2 + usize::from(unheard));
    for (kind, count) in [
        ("job.completed", 1),
        ("job.resumed", 1 + run.events("job.answered", &job).await),
        ("tool.executed", 3),
        ("confirmation.created", 2),
        ("confirmation.approved", 2),
    ] {
        assert_eq!(run.events(kind, &job).await, count, "{kind}");
    }
    for request in [pay, refund] {
        // A post whose answer died with the program is made again.
        let most = 1 + usize::from(step == Step::CardsSent);
        assert!((1..=most).contains(&run.cards(request)), "{request}");
        assert_eq!(run.world.request(request).await["outcome"]["status"], "succeeded");
    }
    assert_eq!(run.job(&job).await["result"], "paid");
    run.world.verify().await;
    told
}

/// The deaths after both approvals.
async fn die_late(run: &mut Mortal, step: Step, job: &str, door: &Door) {
    match step {
        Step::SecondApproved => run.die().await,
        Step::FirstCalled(answer) => {
            run.tool.wait_for_calls("/pay", 1, SOON).await;
            run.die().await;
            run.say_of_unknown(job, answer).await;
        }
        Step::SecondCalled(answer) => {
            run.tool.wait_for_calls("/refund", 1, SOON).await;
            run.die().await;
            run.say_of_unknown(job, answer).await;
        }
        Step::FirstAnswered => {
            run.tool.wait_for_calls("/pay", 1, SOON).await;
            let held = run.rows.hold().await;
            door.open();
            // The program knows the answer, and can not write it down.
            let carried_out = "a call was carried out";
            run.world
                .until("the answer", async || {
                    (run.program.output().matches(carried_out).count() == 2).then_some(())
                })
                .await;
            run.program.kill_9().await;
            held.lose().await;
            run.rows.lapse().await;
            run.program.restart().await;
            run.say_of_unknown(job, "done").await;
        }
        Step::LastAsked => {
            run.model.wait_for_requests(2, SOON).await;
            run.die().await;
        }
        Step::LastAnswered => {
            run.model.wait_for_requests(2, SOON).await;
            let mut held = run.rows.hold().await;
            door.open();
            held.until_wanted().await;
            run.program.kill_9().await;
            held.lose().await;
            run.rows.lapse().await;
            run.program.restart().await;
        }
        _ => {}
    }
}

async fn killed_before_the_first_reply(storage: Storage) {
    lives(storage, Step::FirstAsked).await;
}

async fn killed_while_the_free_call_runs(storage: Storage) {
    let told = lives(storage, Step::LookCalled).await;
    assert!(told[0].contains("as an operator found out"), "{told:?}");
}

async fn killed_while_cards_are_posted(storage: Storage) {
    lives(storage, Step::CardsSent).await;
}

async fn killed_while_parked(storage: Storage) {
    let told = lives(storage, Step::Parked).await;
    assert!(
        told.iter().all(|told| told.contains(r#"{"ok":true}"#)),
        "{told:?}"
    );
}

async fn killed_after_the_first_approval(storage: Storage) {
    lives(storage, Step::FirstApproved).await;
}

async fn killed_after_the_second_approval(storage: Storage) {
    lives(storage, Step::SecondApproved).await;
}

async fn killed_while_the_first_call_runs_and_it_was_made(storage: Storage) {
    let told = lives(storage, Step::FirstCalled("done")).await;
    assert!(told[1].contains("as an operator found out"), "{told:?}");
    assert!(told[2].contains(r#"{"ok":true}"#), "{told:?}");
}

async fn killed_while_the_first_call_runs_and_it_was_not_made(storage: Storage) {
    let told = lives(storage, Step::FirstCalled("not_done")).await;
    assert!(told[1].contains(r#"{"ok":true}"#), "{told:?}");
}

async fn killed_before_the_first_result_is_on_record(storage: Storage) {
    let told = lives(storage, Step::FirstAnswered).await;
    assert!(told[1].contains("as an operator found out"), "{told:?}");
}

async fn killed_while_the_second_call_runs_and_it_was_made(storage: Storage) {
    let told = lives(storage, Step::SecondCalled("done")).await;
    assert!(told[1].contains(r#"{"ok":true}"#), "{told:?}");
    assert!(told[2].contains("as an operator found out"), "{told:?}");
}

async fn killed_while_the_second_call_runs_and_it_was_not_made(storage: Storage) {
    lives(storage, Step::SecondCalled("not_done")).await;
}

async fn killed_before_the_last_reply(storage: Storage) {
    lives(storage, Step::LastAsked).await;
}

async fn killed_before_the_end_is_on_record(storage: Storage) {
    lives(storage, Step::LastAnswered).await;
}

async fn killed_after_the_end(storage: Storage) {
    lives(storage, Step::Ended).await;
}

/// Three deaths of one job, each at another step.
async fn killed_again_and_again(storage: Storage) {
    let mut run = mortal(storage, "").await;
    let door = Door::closed();
    run.model.fail_next(Fault::held(&door));
    let job = run.submit("pay").await;
    run.model.wait_for_requests(1, SOON).await;
    run.die().await;
    let asked = run.parked_on(&job, 2).await;
    run.press(&asked[1], "approve").await;
    run.tool.fail_next("/pay", Fault::held(&door));
    run.press(&asked[0], "approve").await;
    run.tool.wait_for_calls("/pay", 1, SOON).await;
    run.die().await;
    run.tool.fail_next("/refund", Fault::held(&door));
    run.say_of_unknown(&job, "done").await;
    run.tool.wait_for_calls("/refund", 1, SOON).await;
    run.die().await;
    run.say_of_unknown(&job, "done").await;
    run.until_ended(&job, "completed").await;
    paid(&run, [&asked[0], &asked[1]], [1, 1]).await;
}

async fn paid(run: &Mortal, [pay, refund]: [&str; 2], times: [usize; 2]) -> Vec<String> {
    run.assert_paid(&[
        Paid {
            path: "/pay",
            request: pay,
            args: pay_args(),
            times: times[0],
        },
        Paid {
            path: "/refund",
            request: refund,
            args: refund_args(),
            times: times[1],
        },
    ])
    .await;
    run.world.verify().await;
    run.assert_whole("PAYMENTS").0
}

async fn an_idempotent_call_is_made_again_under_its_key(storage: Storage) {
    let mut run = mortal(storage, "idempotent: true,").await;
    let job = run.submit("pay").await;
    let asked = run.parked_on(&job, 2).await;
    run.tool.fail_next("/pay", Fault::held(&Door::closed()));
    run.press(&asked[0], "approve").await;
    run.press(&asked[1], "approve").await;
    run.tool.wait_for_calls("/pay", 1, SOON).await;
    run.die().await;
    run.until_ended(&job, "completed").await;
    let told = paid(&run, [&asked[0], &asked[1]], [2, 1]).await;
    assert!(told[1].contains(r#"{"ok":true}"#), "{told:?}");
}

async fn one_is_approved_and_one_rejected(storage: Storage) {
    let mut run = mortal(storage, "").await;
    let job = run.submit("pay").await;
    let asked = run.parked_on(&job, 2).await;
    run.press(&asked[0], "reject").await;
    run.die().await;
    run.tool.fail_next("/refund", Fault::held(&Door::closed()));
    run.press(&asked[1], "approve").await;
    run.tool.wait_for_calls("/refund", 1, SOON).await;
    run.die().await;
    run.say_of_unknown(&job, "not_done").await;
    run.until_ended(&job, "completed").await;
    let told = paid(&run, [&asked[0], &asked[1]], [0, 2]).await;
    assert!(
        told[1].starts_with("denied (rejected_by_operator)") && told[1].contains("Dana Kim"),
        "{told:?}"
    );
    assert!(told[2].contains(r#"{"ok":true}"#), "{told:?}");
}

/// The deadline of the one passes while nobody is there to see it.
async fn one_is_approved_and_one_expires(storage: Storage) {
    let mut run = mortal(storage, "").await;
    let job = run.submit("pay").await;
    let asked = run.parked_on(&job, 2).await;
    run.press(&asked[0], "approve").await;
    run.program.kill_9().await;
    run.rows.outlive(&asked[1]).await;
    run.program.restart().await;
    run.until_ended(&job, "completed").await;
    let told = paid(&run, [&asked[0], &asked[1]], [1, 0]).await;
    assert!(told[1].contains(r#"{"ok":true}"#), "{told:?}");
    assert!(told[2].starts_with("denied (expired)"), "{told:?}");
    assert_eq!(run.world.request(&asked[1]).await["status"], "expired");
}
