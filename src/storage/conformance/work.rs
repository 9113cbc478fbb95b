//! Jobs and the outbox: parking, waking, claims, leases and fences.

use std::collections::BTreeSet;

use super::*;
use crate::delivery::OutboxItem;
use crate::ids::{OutboxId, WorkerId};
use crate::job::{JobStatus, Lease, WaitReason};
use crate::storage::{Touches, Transaction, Workspace};

const LEASE: Duration = Duration::from_mins(1);

/// Puts a job into the store as it is.
pub(super) struct Submit(pub(super) Job);

impl Transaction for Submit {
    type Answer = JobId;
    const NAME: &'static str = "test.submit";

    fn touches(&self, touches: &mut Touches) {
        touches.orgs.insert(self.0.org.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> JobId {
        workspace.insert_job(self.0.clone());
        self.0.id.clone()
    }
}

/// Parks a job on a request, unless it is settled already.
struct Park {
    job: JobId,
    request: ConfirmationId,
}

impl Transaction for Park {
    type Answer = bool;
    const NAME: &'static str = "test.park";

    fn touches(&self, touches: &mut Touches) {
        touches.jobs.insert(self.job.clone());
        touches.confirmations.insert(self.request.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> bool {
        let pending = workspace
            .confirmation(&self.request)
            .is_some_and(|row| row.state.decided_at().is_none());
        if pending {
            workspace.change_job(&self.job, |job| {
                job.state = JobState::WaitingHuman {
                    reason: WaitReason::ToolApproval,
                    resume_movement: "go on".to_owned(),
                };
                job.waiting_on = vec![self.request.as_str().to_owned()];
                job.children = vec![self.job.clone()];
            });
        }
        pending
    }
}

/// Claims jobs for a while.
struct ClaimJobs {
    worker: WorkerId,
    limit: usize,
}

impl Transaction for ClaimJobs {
    type Answer = Vec<Job>;
    const NAME: &'static str = "test.claim_jobs";

    fn touches(&self, touches: &mut Touches) {
        touches.runnable_jobs += self.limit;
    }

    fn apply(&self, workspace: &mut Workspace) -> Vec<Job> {
        let now = workspace.now();
        let mut claimed = Vec::new();
        for id in workspace.runnable_jobs().to_vec() {
            let free = workspace.job(&id).is_some_and(|job| match &job.state {
                JobState::Queued => job.run_at <= now,
                JobState::Running(lease) => lease.until <= now,
                _ => false,
            });
            if !free || claimed.len() == self.limit {
                continue;
            }
            workspace.change_job(&id, |job| {
                job.fence += 1;
                job.attempts += 1;
                job.state = JobState::Running(Lease {
                    worker: self.worker.clone(),
                    until: now.plus(LEASE),
                    fence: job.fence,
                });
            });
            claimed.extend(workspace.job(&id).cloned());
        }
        claimed
    }
}

/// Ends a job, if the fence still holds.
struct Finish {
    job: JobId,
    fence: i64,
}

impl Transaction for Finish {
    type Answer = bool;
    const NAME: &'static str = "test.finish";

    fn touches(&self, touches: &mut Touches) {
        touches.jobs.insert(self.job.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> bool {
        let held = workspace
            .job(&self.job)
            .is_some_and(|job| job.fence == self.fence && job.state.status() == JobStatus::Running);
        if held {
            workspace.change_job(&self.job, |job| {
                job.state = JobState::Completed {
                    result: "done".to_owned(),
                };
            });
        }
        held
    }
}

/// Lists parked jobs that should not be.
struct Stranded;

impl Transaction for Stranded {
    type Answer = Vec<(JobId, bool)>;
    const NAME: &'static str = "test.stranded";

    fn touches(&self, touches: &mut Touches) {
        touches.stranded_jobs = 10;
    }

    fn apply(&self, workspace: &mut Workspace) -> Self::Answer {
        let stranded = workspace.stranded_jobs().to_vec();
        let brought = |job: &Job| {
            job.waiting_on.iter().all(|waited| {
                ConfirmationId::parse(waited).is_ok_and(|id| workspace.confirmation(&id).is_some())
            })
        };
        stranded
            .into_iter()
            .map(|id| {
                let whole = workspace.job(&id).is_some_and(brought);
                (id, whole)
            })
            .collect()
    }
}

/// Claims outbox rows for a while.
struct ClaimOutbox {
    worker: WorkerId,
    limit: usize,
}

impl Transaction for ClaimOutbox {
    type Answer = Vec<OutboxItem>;
    const NAME: &'static str = "test.claim_outbox";

    fn touches(&self, touches: &mut Touches) {
        touches.due_outbox += self.limit;
    }

    fn apply(&self, workspace: &mut Workspace) -> Vec<OutboxItem> {
        let now = workspace.now();
        let mut claimed = Vec::new();
        for id in workspace.due_outbox().to_vec() {
            let Some(item) = workspace.outbox(&id).cloned() else {
                continue;
            };
            let free = item.lease.as_ref().is_none_or(|(_, until)| *until <= now);
            if !free || claimed.len() == self.limit {
                continue;
            }
            assert!(
                item.confirmation
                    .as_ref()
                    .is_some_and(|id| workspace.confirmation(id).is_some()),
                "it comes with its request"
            );
            let item = OutboxItem {
                lease: Some((self.worker.clone(), now.plus(LEASE))),
                fence: item.fence + 1,
                ..item
            };
            workspace.put_outbox(item.clone());
            claimed.push(item);
        }
        claimed
    }
}

/// Records that a row was sent: it is done, unless something newer is wanted.
struct Sent(OutboxItem);

impl Transaction for Sent {
    type Answer = bool;
    const NAME: &'static str = "test.sent";

    fn touches(&self, touches: &mut Touches) {
        touches.outbox.insert(self.0.id.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> bool {
        let Some(item) = workspace.outbox(&self.0.id).cloned() else {
            return false;
        };
        if item.fence == self.0.fence {
            workspace.remove_outbox(&item.id);
            return true;
        }
        workspace.put_outbox(OutboxItem { lease: None, ..item });
        false
    }
}

impl Place {
    pub(super) async fn submitted(&self, job: Job) -> JobId {
        self.store.run(Submit(job)).await.expect("submitted")
    }

    fn worker(&self) -> WorkerId {
        WorkerId::fresh(&*self.ids)
    }
}

async fn parked(place: &Place) -> (JobId, ConfirmationId) {
    let job = place.submitted(place.new_job(JobState::Queued)).await;
    let ask = Ask {
        job: Some(job.clone()),
        ..Ask::default()
    };
    let request = place.fresh(&ask).await.confirmation.id;
    let park = Park {
        job: job.clone(),
        request: request.clone(),
    };
    assert!(place.store.run(park).await.expect("park"));
    (job, request)
}

pub(super) async fn a_decision_wakes_the_parked_job(place: &Place) {
    let (job, request) = parked(place).await;
    let before = place.job(&job).await;
    assert_eq!(before.state.status(), JobStatus::WaitingHuman);
    assert_eq!(before.state.wait_reason(), Some(WaitReason::ToolApproval));
    let mut watch = place.store.wakes().job(&job);
    let queue = place.store.wakes().queue();
    place.approve(&request, "dana").await;
    watch.changed().await;
    queue.await;
    let after = place.job(&job).await;
    assert_eq!(
        (after.state.clone(), after.movement.as_str()),
        (JobState::Queued, "go on")
    );
    assert_eq!(after.version, before.version + 1);
    let stored = place.dossier(&request).await.confirmation;
    assert_eq!(stored.ledger.woken_at, stored.state.decided_at());
    let kinds = place.kinds(&request).await;
    assert_eq!(
        kinds,
        ["confirmation.created", "vote.cast", "confirmation.approved"]
    );
}

pub(super) async fn a_decision_that_comes_first_is_not_lost(place: &Place) {
    for _ in 0..8 {
        let job = place.submitted(place.new_job(JobState::Queued)).await;
        let ask = Ask {
            job: Some(job.clone()),
            ..Ask::default()
        };
        let request = place.fresh(&ask).await.confirmation.id;
        let park = Park {
            job: job.clone(),
            request: request.clone(),
        };
        let (parked, decided) = tokio::join!(place.store.run(park), place.approve(&request, "dana"));
        parked.expect("park");
        assert!(decided.dossier.is_some());
        assert_eq!(
            place.job(&job).await.state,
            JobState::Queued,
            "whoever came first"
        );
    }
}

/// Eight workers, spread over the stores, claim until nothing comes any more.
pub(super) async fn claimed_by(place: &Place, stores: &[Store]) -> Vec<Job> {
    let workers = (0..8).map(|n| {
        let (store, worker) = (stores[n % stores.len()].clone(), place.worker());
        async move {
            let (mut mine, mut misses) = (Vec::new(), 0);
            while misses < 8 {
                let claim = ClaimJobs {
                    worker: worker.clone(),
                    limit: 2,
                };
                let claimed = store.run(claim).await.expect("claim");
                misses += usize::from(claimed.is_empty());
                mine.extend(claimed);
            }
            mine
        }
    });
    side_by_side(workers).await.into_iter().flatten().collect()
}

pub(super) async fn two_workers_never_claim_the_same_job(place: &Place) {
    let mut all = BTreeSet::new();
    for _ in 0..24 {
        all.insert(place.submitted(place.new_job(JobState::Queued)).await);
    }
    let claimed = claimed_by(place, std::slice::from_ref(&place.store)).await;
    let distinct: BTreeSet<JobId> = claimed.iter().map(|job| job.id.clone()).collect();
    assert_eq!(claimed.len(), distinct.len(), "no job was claimed twice");
    assert_eq!(distinct, all, "and every one was claimed");
}

pub(super) async fn a_lease_that_ran_out_is_claimed_again_and_the_old_holder_is_fenced(place: &Place) {
    let job = place.submitted(place.new_job(JobState::Queued)).await;
    let claim = || ClaimJobs {
        worker: place.worker(),
        limit: 4,
    };
    let first = place.store.run(claim()).await.expect("claim").remove(0);
    assert!(
        place.store.run(claim()).await.expect("claim").is_empty(),
        "the lease holds"
    );
    place.advance(LEASE).await;
    let second = place.store.run(claim()).await.expect("claim").remove(0);
    assert_eq!((second.fence, second.attempts), (2, 2));
    let finish = |fence| Finish {
        job: job.clone(),
        fence,
    };
    assert!(
        !place.store.run(finish(first.fence)).await.expect("run"),
        "too late"
    );
    assert!(place.store.run(finish(second.fence)).await.expect("run"));
    assert_eq!(place.job(&job).await.state.status(), JobStatus::Completed);
}

pub(super) async fn parked_jobs_are_not_claimed_and_stranded_ones_are_found(place: &Place) {
    let (job, request) = parked(place).await;
    assert_eq!(place.job(&job).await.children, std::slice::from_ref(&job), "kept");
    place
        .submitted(Job {
            run_at: UtcMillis(i64::MAX),
            ..place.new_job(JobState::Queued)
        })
        .await;
    place.advance(LEASE * 100).await;
    let claim = ClaimJobs {
        worker: place.worker(),
        limit: 4,
    };
    assert!(place.store.run(claim).await.expect("claim").is_empty());
    assert!(
        place.store.run(Stranded).await.expect("run").is_empty(),
        "it waits rightly"
    );
    // A wake-up that was lost, as no code path of ours can lose it.
    place
        .by_the_back_door("UPDATE confirmation SET status = 'rejected', decided_at = created_at")
        .await
        .expect("decided");
    assert_eq!(
        place.store.run(Stranded).await.expect("run"),
        [(job.clone(), true)]
    );
    let parent = place
        .submitted(Job {
            waiting_on: vec![job.as_str().to_owned()],
            ..place.new_job(JobState::WaitingSubtasks {
                resume_movement: "go on".to_owned(),
            })
        })
        .await;
    assert_eq!(
        place.store.run(Stranded).await.expect("run").len(),
        1,
        "the sub-task did not end"
    );
    place
        .by_the_back_door(&format!(
            "UPDATE job SET status = 'cancelled', wait_reason = NULL, resume_movement = NULL WHERE id = '{job}'"
        ))
        .await
        .expect("ended");
    let stranded = place.store.run(Stranded).await.expect("run");
    assert_eq!(stranded.iter().map(|(id, _)| id).collect::<Vec<_>>(), [&parent]);
    assert_eq!(place.dossier(&request).await.confirmation.asked.job, Some(job));
}

pub(super) async fn an_outbox_row_is_claimed_once_and_a_newer_wish_outlives_the_sender(place: &Place) {
    let dossier = place
        .fresh(&Ask {
            cards: 2,
            ..Ask::default()
        })
        .await;
    let id = &dossier.confirmation.id;
    assert!(place.store.read().next_outbox().await.expect("read").is_some());
    let claim = || ClaimOutbox {
        worker: place.worker(),
        limit: 1,
    };
    let racers = (0..4).map(|_| {
        let (store, claim) = (place.store.clone(), claim());
        async move { store.run(claim).await.expect("claim") }
    });
    let claimed: Vec<_> = side_by_side(racers).await.into_iter().flatten().collect();
    let distinct: BTreeSet<&OutboxId> = claimed.iter().map(|item| &item.id).collect();
    assert_eq!((claimed.len(), distinct.len()), (2, 2));
    // A decision while both are under way.
    place.approve(id, "dana").await;
    assert!(
        !place.store.run(Sent(claimed[0].clone())).await.expect("sent"),
        "something newer is wanted"
    );
    let again = place.store.run(claim()).await.expect("claim").remove(0);
    assert_eq!(again.id, claimed[0].id);
    assert!(place.store.run(Sent(again)).await.expect("sent"));
    place.advance(LEASE).await;
    let other = place.store.run(claim()).await.expect("claim").remove(0);
    assert_eq!(other.id, claimed[1].id, "its lease ran out");
    assert!(place.store.run(Sent(other)).await.expect("sent"));
    assert_eq!(place.store.read().next_outbox().await.expect("read"), None);
}

/// Touches outbox rows and looks at a request of theirs.
struct LookThrough {
    rows: Vec<OutboxId>,
    request: ConfirmationId,
}

impl Transaction for LookThrough {
    type Answer = Option<Dossier>;
    const NAME: &'static str = "test.look_through";

    fn touches(&self, touches: &mut Touches) {
        touches.outbox.extend(self.rows.iter().cloned());
    }

    fn apply(&self, workspace: &mut Workspace) -> Option<Dossier> {
        workspace.dossier(&self.request)
    }
}

pub(super) async fn a_request_reached_through_two_cards_is_read_once_and_whole(place: &Place) {
    let dossier = place
        .fresh(&Ask {
            cards: 2,
            quorum: 2,
            ..Ask::default()
        })
        .await;
    let id = &dossier.confirmation.id;
    place.approve(id, "dana").await;
    let look = LookThrough {
        rows: dossier
            .deliveries
            .iter()
            .map(|card| OutboxId::of_card(&card.id))
            .collect(),
        request: id.clone(),
    };
    let seen = place.store.run(look).await.expect("look").expect("the request");
    assert_eq!(seen, place.dossier(id).await);
    assert_eq!((seen.votes.len(), seen.deliveries.len()), (1, 2));
}
