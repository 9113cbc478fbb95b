//! Who may answer what a job waits for, and with which words.

use gatepost_channel::Decision;

use super::answer::Answered;
use super::cancel::By;
use super::fixture::{World, dana, token};
use super::job_tests::{answer, begin, park, park_for, remembered};
use super::park::{Park, Parked};
use super::{Hold, JobState, WaitReason};

#[test]
fn only_who_may_approve_a_call_sends_it_again() {
    use crate::ids::OperatorId;
    /// Who answers what, whether they stand behind the call, and what comes of it.
    type Case = (&'static str, &'static str, bool, Option<Answered>);
    let table: [Case; 5] = [
        ("dana", "not_done", false, None),
        ("dana", "not_done", true, Some(Answered::NotADecider)),
        ("nobody", "not_done", false, Some(Answered::NotADecider)),
        ("dana", "done", true, None),
        ("nobody", "done", false, None),
    ];
    for (who, text, behind, refused) in table {
        let world = World::new();
        let id = world.submit("go");
        let hold = Hold::on(&world.claim_one());
        let request = world.ask(&id, "a");
        world.decide(&request, Decision::Approve);
        assert!(world.run(&begin(&world, &hold, &request)).is_ok());
        if behind {
            world.tamper_request(&request, |row| row.asked.persons = vec![dana()]);
        }
        let parking = Park {
            remembered: remembered(
                &format!("{{\"parked\":1}} {request}"),
                std::slice::from_ref(&request),
            ),
            ..park_for(&hold, WaitReason::OutcomeUnknown)
        };
        assert_eq!(world.run(&parking), Ok(Parked::Waiting));
        let before = world.job(&id);
        let by = By::Operator(OperatorId(who.to_owned()));
        let mut answering = answer(&world, &id, by, text);
        let answered = world.run(&answering);
        if let Some(refused) = refused {
            assert_eq!(answered, refused, "{who} {text}");
            assert_eq!(world.job(&id), before);
        } else {
            assert!(matches!(answered, Answered::Done(_)), "{who} {text}");
        }
        // Requests that were not looked at permit nothing.
        world.tamper(&id, |job| *job = before.clone());
        answering.confirmations.clear();
        if text == "not_done" {
            assert_eq!(world.run(&answering), Answered::NotADecider);
        }
    }
}

#[test]
fn who_may_answer_what() {
    use WaitReason::{BrowserLogin, OutcomeUnknown, ToolApproval, UserInput};
    let agent = || By::Token(token());
    let operator = || By::Operator(dana());
    let table: [(WaitReason, By, &str, Option<Answered>); 12] = [
        (UserInput, agent(), "blue", None),
        (UserInput, operator(), " blue ", None),
        (UserInput, operator(), "  ", Some(Answered::NotAnAnswer)),
        (BrowserLogin, operator(), "in", None),
        (BrowserLogin, agent(), "in", Some(Answered::NotAllowed)),
        (OutcomeUnknown, operator(), "done", None),
        (OutcomeUnknown, operator(), "not_done", None),
        (OutcomeUnknown, operator(), "maybe", Some(Answered::NotAnAnswer)),
        (OutcomeUnknown, agent(), "done", Some(Answered::NotAllowed)),
        (ToolApproval, operator(), "yes", Some(Answered::DecidedByRequest)),
        (ToolApproval, agent(), "yes", Some(Answered::DecidedByRequest)),
        (
            UserInput,
            By::Token(crate::ids::TokenName("other".to_owned())),
            "blue",
            Some(Answered::NotFound),
        ),
    ];
    for (reason, by, text, refused) in table {
        let world = World::new();
        let id = world.submit("go");
        let hold = Hold::on(&world.claim_one());
        let request = world.ask(&id, "a");
        let parking = if reason == ToolApproval {
            park(&hold, &[request])
        } else {
            park_for(&hold, reason)
        };
        assert_eq!(world.run(&parking), Ok(Parked::Waiting));
        let before = world.job(&id);
        let answering = answer(&world, &id, by, text);
        let answered = world.run(&answering);
        if let Some(refused) = refused {
            assert_eq!(answered, refused, "{reason:?} {text}");
            assert_eq!(world.job(&id), before);
            continue;
        }
        assert!(matches!(answered, Answered::Done(_)), "{reason:?} {text}");
        assert_eq!(world.job(&id).state, JobState::Queued);
        let heard = world.job(&id).memory;
        assert!(
            heard.starts_with("heard ") || heard.starts_with("done "),
            "{heard}"
        );
        assert_eq!(world.run(&answering), Answered::NotWaiting, "a second answer");
        assert_eq!(world.job(&id).memory, heard);
    }
}
