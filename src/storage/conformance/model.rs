//! Random interleavings of operations end in the same state as a model that fits on a page.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::*;
use crate::confirmation::Status;
use crate::confirmation::expire::Expire;

#[derive(Debug, Clone)]
enum Operation {
    Create { quorum: u32 },
    Vote { on: usize, person: usize, approve: bool },
    Cancel { on: usize },
    Consume { on: usize },
    Wait { seconds: u64 },
    Sweep,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        2 => (1_u32..3).prop_map(|quorum| Operation::Create { quorum }),
        6 => (0_usize..4, 0_usize..4, prop::bool::weighted(0.8))
            .prop_map(|(on, person, approve)| Operation::Vote { on, person, approve }),
        1 => (0_usize..4).prop_map(|on| Operation::Cancel { on }),
        3 => (0_usize..4).prop_map(|on| Operation::Consume { on }),
        1 => (20_u64..80).prop_map(|seconds| Operation::Wait { seconds }),
        1 => Just(Operation::Sweep),
    ]
}

/// What a request must look like.
#[derive(Debug, Clone)]
struct Modelled {
    id: ConfirmationId,
    quorum: usize,
    deadline: u64,
    approvals: BTreeSet<usize>,
    rejections: BTreeSet<usize>,
    status: Status,
    consumed: bool,
}

impl Modelled {
    fn expire(&mut self, now: u64) {
        if self.status == Status::Pending && now >= self.deadline {
            self.status = Status::Undeliverable;
        }
    }

    fn vote(&mut self, person: usize, approve: bool, now: u64) {
        self.expire(now);
        let voted = self.approvals.contains(&person) || self.rejections.contains(&person);
        if self.status != Status::Pending || voted {
            return;
        }
        if approve {
            self.approvals.insert(person);
            if self.approvals.len() >= self.quorum {
                self.status = Status::Approved;
            }
        } else {
            self.rejections.insert(person);
            self.status = Status::Rejected;
        }
    }
}

pub(super) async fn random_interleavings_end_like_the_model(place: &Place) {
    let mut runner = TestRunner::default();
    for _ in 0..12 {
        let operations = prop::collection::vec(operation(), 1..40)
            .new_tree(&mut runner)
            .expect("operations")
            .current();
        play(place, &operations).await;
    }
    place.verify().await;
}

/// Plays the operations in groups: within a group they are queued at once, so they share batches; their order stays.
async fn play(place: &Place, operations: &[Operation]) {
    let mut model: Vec<Modelled> = Vec::new();
    let mut now = 0;
    for group in operations.chunks(5) {
        let mut running: Vec<std::pin::Pin<Box<dyn Future<Output = ()> + '_>>> = Vec::new();
        for operation in group {
            match operation {
                Operation::Create { quorum } => {
                    futures_util::future::join_all(running.drain(..)).await;
                    let ask = Ask {
                        quorum: *quorum,
                        ..Ask::default()
                    };
                    model.push(Modelled {
                        id: place.fresh(&ask).await.confirmation.id,
                        quorum: *quorum as usize,
                        deadline: now + 120,
                        approvals: BTreeSet::new(),
                        rejections: BTreeSet::new(),
                        status: Status::Pending,
                        consumed: false,
                    });
                }
                Operation::Wait { seconds } => {
                    futures_util::future::join_all(running.drain(..)).await;
                    now += seconds;
                    place.advance(Duration::from_secs(*seconds)).await;
                }
                Operation::Sweep => {
                    for request in &mut model {
                        request.expire(now);
                    }
                    running.push(Box::pin(async {
                        place.store.run(Expire { limit: 100 }).await.expect("sweep");
                    }));
                }
                Operation::Vote { on, person, approve } => {
                    let Some(request) = model.get_mut(*on) else {
                        continue;
                    };
                    request.vote(*person, *approve, now);
                    let decision = if *approve {
                        Decision::Approve
                    } else {
                        Decision::Reject
                    };
                    let vote = decide(&request.id, &format!("p{person}"), decision);
                    running.push(Box::pin(async {
                        place.store.run(vote).await.expect("vote");
                    }));
                }
                Operation::Cancel { on } => {
                    let Some(request) = model.get_mut(*on) else {
                        continue;
                    };
                    request.expire(now);
                    if request.status == Status::Pending {
                        request.status = Status::Cancelled;
                    }
                    let withdraw = cancel(&request.id);
                    running.push(Box::pin(async {
                        place.store.run(withdraw).await.expect("cancel");
                    }));
                }
                Operation::Consume { on } => {
                    let Some(request) = model.get_mut(*on) else {
                        continue;
                    };
                    request.consumed |= request.status == Status::Approved;
                    let take = consume(place, &request.id, Ask::default().digest());
                    running.push(Box::pin(async {
                        let _ = place.store.run(take).await.expect("consume");
                    }));
                }
            }
        }
        futures_util::future::join_all(running).await;
    }
    for request in &model {
        let stored = place.dossier(&request.id).await;
        let (status, consumed) = (
            stored.confirmation.state.status(),
            stored.confirmation.state.consumed().is_some(),
        );
        assert_eq!(
            (status, consumed),
            (request.status, request.consumed),
            "{operations:#?}"
        );
        assert_eq!(
            stored.votes.len(),
            request.approvals.len() + request.rejections.len(),
            "{operations:#?}"
        );
    }
}
