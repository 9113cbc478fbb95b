//! A job outlives its token in the store; what it was approved to do does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use gatepost_channel::Decision;
use serde_json::json;

use super::fixture::{Lab, call, calls, complete, piece, toolbox};
use super::limits::Limits;
use super::model::Model;
use super::piece::Pieces;
use super::runner::Runner;
use crate::confirmation::{Permit, State, Status};
use crate::ids::{Org, TokenName};
use crate::job::{JobState, JobStatus};

const WHY: &str = "the configuration has no agent's token `build-agent` of this organisation any more";

/// The lab after a restart with these tokens.
fn restarted(lab: &mut Lab, tokens: &[(&str, &str)]) {
    let runner = Runner::new(
        lab.gatekeeper.clone(),
        Arc::clone(&lab.model) as Arc<dyn Model>,
        toolbox(&lab.ledger),
        Arc::new(Pieces::new([piece()])),
        Limits::default(),
    );
    let tokens: BTreeMap<TokenName, Org> = tokens
        .iter()
        .map(|(name, org)| (TokenName::from(*name), Org::from(*org)))
        .collect();
    lab.runner = Arc::new(runner.with_tokens(tokens));
}

fn paying() -> Lab {
    Lab::new(vec![
        calls(vec![call("t_pay", &json!({"n": 1}))]),
        complete("success", "paid"),
    ])
}

#[tokio::test]
async fn an_approval_is_not_used_by_a_job_whose_token_is_gone_or_is_another_organisations() {
    let org = crate::job::fixture::org();
    for (tokens, runs) in [
        (&[("build-agent", org.as_str())][..], true),
        (&[("other-agent", org.as_str())][..], false),
        (&[("build-agent", "elsewhere")][..], false),
        (&[][..], false),
    ] {
        let mut lab = paying();
        let id = lab.submit().await;
        lab.work().await;
        let request = lab.pending().remove(0);
        lab.decide(&request, Decision::Approve, None).await;
        restarted(&mut lab, tokens);
        lab.work().await;
        let job = lab.world.job(&id);
        assert_eq!(lab.ledger.all().len(), usize::from(runs), "{tokens:?}");
        if runs {
            assert_eq!(job.state.status(), JobStatus::Completed);
            continue;
        }
        assert_eq!(
            job.state,
            JobState::Error {
                error: WHY.to_owned()
            }
        );
        let row = lab.world.request(&request);
        assert!(
            matches!(
                row.state,
                State::Approved {
                    permit: Permit::Open,
                    ..
                }
            ),
            "{:?}",
            row.state
        );
        assert_eq!(
            lab.kinds().await.last().map(String::as_str),
            Some("job.failed"),
            "it is on record"
        );
        assert!(lab.world.chain_is_sound());
    }
}

#[tokio::test]
async fn a_queued_job_of_a_token_that_is_gone_asks_neither_model_nor_people() {
    let mut lab = paying();
    let id = lab.submit().await;
    restarted(&mut lab, &[]);
    lab.work().await;
    assert_eq!(
        lab.world.job(&id).state,
        JobState::Error {
            error: WHY.to_owned()
        }
    );
    assert!(lab.model.seen.lock().unwrap().is_empty() && lab.world.requests().is_empty());
}

#[tokio::test]
async fn what_a_job_without_token_still_asks_people_is_withdrawn_once_it_is_claimed() {
    let mut lab = Lab::new(vec![calls(vec![
        call("t_pay", &json!({"n": 1})),
        call("t_pay", &json!({"n": 2})),
    ])]);
    let id = lab.submit().await;
    lab.work().await;
    let pending = lab.pending();
    assert_eq!(pending.len(), 2);
    for request in &pending {
        lab.decide(request, Decision::Reject, Some("no")).await;
    }
    restarted(&mut lab, &[]);
    lab.work().await;
    assert_eq!(lab.world.job(&id).state.status(), JobStatus::Error);
    assert!(lab.pending().is_empty());
    assert!(
        lab.world
            .requests()
            .iter()
            .all(|row| row.state.status() == Status::Rejected)
    );
}
