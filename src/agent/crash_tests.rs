//! No crash changes what runs: a script is played to its end while the process dies again and again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;

use gatepost_channel::Decision;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::fixture::{Lab, call, calls, complete, operator};
use super::limits::Limits;
use super::memory::CallState;
use super::model::Reply;
use crate::ids::{JobId, PermitId};
use crate::job::fixture::LEASE;
use crate::job::worker::{Reins, Run as _};
use crate::job::{JobState, WaitReason};
use crate::lifecycle::Tasks;

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// The kinds of calls that the property makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Free,
    FreeAgain,
    Pay,
    PayAgain,
    Vanish,
    Bad,
}

impl Made {
    const fn tool(self) -> &'static str {
        match self {
            Self::Free => "t_free",
            Self::FreeAgain => "t_free_again",
            Self::Pay => "t_pay",
            Self::PayAgain => "t_pay_again",
            Self::Vanish => "t_vanish",
            Self::Bad => "no_such_tool",
        }
    }

    const fn is_gated(self) -> bool {
        matches!(self, Self::Pay | Self::PayAgain | Self::Vanish)
    }

    const fn is_idempotent(self) -> bool {
        matches!(self, Self::FreeAgain | Self::PayAgain)
    }
}

fn made() -> impl Strategy<Value = Made> {
    prop::sample::select(vec![
        Made::Free,
        Made::FreeAgain,
        Made::Pay,
        Made::Pay,
        Made::PayAgain,
        Made::Vanish,
        Made::Bad,
    ])
}

/// Plays a script to its end while the process dies again and again, each time after so many more writes.
async fn survive(turns: &[Vec<Made>], rejected: &BTreeSet<u64>, crashes: &[u64], order: u64) {
    let mut replies: Vec<Reply> = turns
        .iter()
        .enumerate()
        .map(|(turn, made)| {
            calls(
                made.iter()
                    .enumerate()
                    .map(|(at, made)| call(made.tool(), &json!({"n": turn * 100 + at})))
                    .collect(),
            )
        })
        .collect();
    replies.push(complete("success", "survived"));
    let lab = Lab::build(replies, Limits::default(), true);
    let id = lab.submit().await;
    let mut crashes = crashes.iter().copied();
    for round in 0_u64..500 {
        let job = lab.world.job(&id);
        match &job.state {
            JobState::Queued | JobState::Running(_) => {
                if matches!(job.state, JobState::Running(_)) {
                    lab.world.clock.advance(LEASE);
                    lab.world.tamper(&id, |job| job.attempts = 0);
                }
                let job = lab.world.claim_one();
                lab.world.fail_after(crashes.next());
                // Whatever it says: the process is gone, and only what was committed is left.
                let _ = lab.runner.run(job, &Reins::new(Tasks::new())).await;
                lab.world.fail_after(None);
            }
            JobState::WaitingHuman {
                reason: WaitReason::ToolApproval,
                ..
            } => {
                let mut pending = lab.pending();
                assert!(!pending.is_empty(), "parked on nothing");
                let at = usize::try_from((order + round) % pending.len() as u64).unwrap();
                let request = pending.swap_remove(at);
                let args = lab.world.request(&request).asked.args;
                let decision = if rejected.contains(&number(&args)) {
                    Decision::Reject
                } else {
                    Decision::Approve
                };
                lab.decide(&request, decision, None).await;
            }
            JobState::WaitingHuman {
                reason: WaitReason::OutcomeUnknown,
                ..
            } => {
                let memory = lab.memory(&id);
                let permit = memory
                    .calls()
                    .iter()
                    .find_map(|call| match &call.state {
                        CallState::Unsure { permit, .. } => Some(permit.clone()),
                        _ => None,
                    })
                    .expect("a call is unsure");
                let happened = lab.ledger.all().iter().any(|run| run.permit == permit);
                let said = if happened { "done" } else { "not_done" };
                lab.answer(operator(), &id, said).await;
            }
            _ => break,
        }
    }
    check_survival(&lab, &id, turns, rejected);
}

fn number(args: &str) -> u64 {
    serde_json::from_str::<Value>(args).unwrap()["n"]
        .as_u64()
        .unwrap()
}

/// Every call has one result in its place, and ran as often as it may.
fn check_survival(lab: &Lab, id: &JobId, turns: &[Vec<Made>], rejected: &BTreeSet<u64>) {
    assert_eq!(
        lab.world.job(id).state,
        JobState::Completed {
            result: "survived".to_owned()
        }
    );
    let mut by_call: HashMap<u64, Vec<PermitId>> = HashMap::new();
    for run in lab.ledger.all() {
        by_call.entry(number(&run.args)).or_default().push(run.permit);
    }
    let past = lab.past(id);
    let made: Vec<(u64, Made)> = turns
        .iter()
        .enumerate()
        .flat_map(|(turn, made)| {
            made.iter()
                .enumerate()
                .map(move |(at, made)| ((turn * 100 + at) as u64, *made))
        })
        .collect();
    assert_eq!(past.len(), made.len() + 1, "every call has exactly one result");
    for ((n, made), past) in made.iter().zip(&past) {
        assert_eq!(past.tool, made.tool(), "in order");
        assert!(!past.result.is_empty());
        let runs = by_call.get(n).map(Vec::as_slice).unwrap_or_default();
        let permits: BTreeSet<&PermitId> = runs.iter().collect();
        assert!(permits.len() <= 1, "one permit a call");
        if *made == Made::Bad || (made.is_gated() && rejected.contains(n)) {
            assert_eq!(runs.len(), 0, "{made:?} {n} must not run");
        } else if made.is_idempotent() {
            assert!(!runs.is_empty());
        } else {
            assert_eq!(runs.len(), 1, "{made:?} {n} runs once");
        }
    }
    let requests = lab.world.requests();
    let gated = made.iter().filter(|(_, made)| made.is_gated()).count();
    assert_eq!(requests.len(), gated, "each gated call is asked about once");
    let consumed: BTreeMap<_, _> = requests
        .iter()
        .filter_map(|row| {
            row.state
                .consumed()
                .map(|(permit, _)| (permit.clone(), row.id.clone()))
        })
        .collect();
    for (n, made) in &made {
        if made.is_gated() {
            for permit in by_call.get(n).into_iter().flatten() {
                assert!(
                    consumed.contains_key(permit),
                    "nothing gated runs without a consumed permit"
                );
            }
        }
    }
    assert!(
        requests.iter().all(|row| row.ledger.resumed_at.is_some()),
        "every decision was taken"
    );
    assert!(lab.world.chain_is_sound());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn no_crash_changes_what_runs(
        turns in prop::collection::vec(prop::collection::vec(made(), 1..5), 1..4),
        rejected in prop::collection::btree_set((0..4_u64, 0..5_u64).prop_map(|(turn, at)| turn * 100 + at), 0..5),
        crashes in prop::collection::vec(0..9_u64, 0..40),
        order in any::<u16>(),
    ) {
        block_on(survive(&turns, &rejected, &crashes, u64::from(order)));
    }
}

#[test]
fn a_crash_at_each_write_of_one_turn_changes_nothing() {
    let turn = vec![vec![Made::Free, Made::Pay, Made::Pay, Made::PayAgain]];
    for at in 0..14 {
        block_on(survive(&turn, &BTreeSet::from([2]), &[at, at], 0));
    }
}
