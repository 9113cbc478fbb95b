//! A grant under a rule that reads the agent's own word, where everything else allows the call.

use super::fixture::Lab;
use crate::confirmation::Status;
use crate::confirmation::consume::NotGranted;
use crate::confirmation::decide::{Ruling, Surface};
use crate::gate::json::ReadLimits;
use crate::gate::policy::Voices;
use crate::gate::{Arguments, Digest};
use crate::gatekeeper::{Answer, Caller, Question, Saying, Via};
use crate::ids::ConfirmationId;
use crate::job::fixture::{dana, org, token};
use gatepost_channel::Decision;

fn caller() -> Caller {
    Caller {
        token: token(),
        org: org(),
        owner: None,
    }
}

fn lending(call: &str) -> Question {
    Question {
        via: Via::Api,
        tool: "t_lend".parse().unwrap(),
        args: Arguments::read(b"{}", ReadLimits::bytes(10)).unwrap(),
        agent_id: None,
        session_id: None,
        tool_call_id: Some(call.to_owned()),
        requester: Some("olga".to_owned()),
        metadata: None,
        job: None,
        lineage: Vec::new(),
        voices: Voices::default(),
        carries_edits: false,
        join_twin: false,
    }
}

/// Asks; the request, where it stands, and the digest.
async fn ask(lab: &Lab, call: &str) -> (ConfirmationId, Status, Digest) {
    match lab.gatekeeper.ask(&caller(), lending(call)).await.unwrap() {
        Answer::Asked(dossier) => {
            let row = dossier.confirmation;
            (row.id, row.state.status(), row.asked.digest)
        }
        other => panic!("nobody is asked: {other:?}"),
    }
}

#[tokio::test]
async fn what_a_grant_approves_can_be_consumed_though_only_the_agents_word_asks_for_a_person() {
    let lab = Lab::new(Vec::new());
    let (first, status, _) = ask(&lab, "one").await;
    assert_eq!(status, Status::Pending);
    let saying = Saying {
        grant: Some("1h"),
        ..Saying::plain(Decision::Approve)
    };
    let ruled = lab
        .gatekeeper
        .answer(&dana(), &org(), &first, saying, Surface::Api)
        .await
        .unwrap();
    assert_eq!(ruled.decided.ruling, Ruling::Settled);

    let (second, status, digest) = ask(&lab, "two").await;
    assert_eq!(status, Status::Approved);
    let caller = caller();
    let consume = || lab.gatekeeper.consume(Via::Api, &caller, &second, digest);
    assert!(consume().await.unwrap().is_ok());
    assert_eq!(consume().await.unwrap(), Err(NotGranted::AlreadyConsumed));
}
