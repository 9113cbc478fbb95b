//! The queue: takes jobs that may run, as many as there are free workers, at once after a commit and at the latest with the
//! slow poll. A parked job is none of its business.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tracing::warn;

use super::claim::{Agent, Claim, Claimed, Spent};
use super::give_up::GiveUp;
use super::reconcile::Reconcile;
use super::worker::{Run, work};
use crate::ids::{Ids, JobId, WorkerId};
use crate::lifecycle::Tasks;
use crate::storage::Store;

/// The slow poll behind the wake-ups.
const POLL: Duration = Duration::from_secs(1);
/// How often stranded jobs are looked for.
const RECONCILE: Duration = Duration::from_secs(3);
/// At most so many of them in one transaction.
const RECONCILE_BATCH: usize = 100;

/// The workers of one process.
pub struct Queue {
    store: Store,
    run: Arc<dyn Run>,
    worker: WorkerId,
    lease: Duration,
    slots: Arc<Semaphore>,
    holding: Mutex<BTreeMap<JobId, Agent>>,
    per_agent: Option<usize>,
    /// A job of an agent at its limit may have been passed over: something ended.
    ended: Notify,
    tasks: Tasks,
}

impl Queue {
    /// `workers` jobs run at the same time, each under a lease of this length.
    pub fn new(
        store: Store,
        run: Arc<dyn Run>,
        workers: usize,
        lease: Duration,
        ids: &dyn Ids,
        tasks: Tasks,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            run,
            worker: WorkerId::fresh(ids),
            lease,
            slots: Arc::new(Semaphore::new(workers.clamp(1, 1024))),
            holding: Mutex::default(),
            per_agent: None,
            ended: Notify::new(),
            tasks,
        })
    }

    /// The same queue, not started yet, with at most so many jobs of one agent at the same time.
    #[must_use]
    pub fn with_per_agent(self: Arc<Self>, most: Option<usize>) -> Arc<Self> {
        match Arc::try_unwrap(self) {
            Ok(queue) => Arc::new(Self {
                per_agent: most,
                ..queue
            }),
            Err(started) => started,
        }
    }

    /// Starts the tasks: the queue itself and the reconciler.
    pub fn start(self: &Arc<Self>) {
        let queue = Arc::clone(self);
        self.tasks.spawn(async move { queue.serve().await });
        let (store, tasks) = (self.store.clone(), self.tasks.clone());
        self.tasks.spawn(async move { reconcile(store, tasks).await });
    }

    /// Claims and runs until the server stops. Jobs under way finish their step and are handed back.
    async fn serve(self: &Arc<Self>) {
        loop {
            let woken = self.store.wakes().queue();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if self.tasks.is_stopping() {
                return;
            }
            let free = self.slots.available_permits();
            if free == 0 {
                tokio::select! {
                    freed = self.slots.acquire() => drop(freed),
                    () = self.tasks.stopping() => return,
                }
                continue;
            }
            let claim = Claim {
                worker: self.worker.clone(),
                lease: self.lease,
                limit: free,
                holding: self.holding().clone(),
                per_agent: self.per_agent,
            };
            let more = match self.store.run(claim).await {
                Ok(Claimed { jobs, spent }) => {
                    let more = jobs.len() == free || !spent.is_empty();
                    for job in jobs {
                        self.begin(job);
                    }
                    self.give_up(spent).await;
                    more
                }
                Err(error) => {
                    warn!(%error, "the queue could not be read");
                    false
                }
            };
            if !more {
                tokio::select! {
                    () = woken => {}
                    () = self.ended.notified(), if self.per_agent.is_some() => {}
                    () = tokio::time::sleep(POLL) => {}
                    () = self.tasks.stopping() => return,
                }
            }
        }
    }

    fn begin(self: &Arc<Self>, job: super::Job) {
        // Only this task takes slots, so what was free when it claimed is free still.
        let slot = Arc::clone(&self.slots).try_acquire_owned();
        let queue = Arc::clone(self);
        let id = job.id.clone();
        self.holding().insert(id.clone(), Agent::of(&job));
        self.tasks.spawn(async move {
            work(&queue.store, &*queue.run, queue.lease, queue.tasks.clone(), job).await;
            queue.holding().remove(&id);
            drop(slot);
            queue.ended.notify_one();
        });
    }

    async fn give_up(&self, spent: Vec<Spent>) {
        for job in spent {
            warn!(job = %job.id, "a job was tried often enough without progress and is given up");
            metrics::counter!("gatepost_jobs_given_up_total").increment(1);
            if let Err(error) = self.store.run(GiveUp(job)).await {
                warn!(%error, "a job could not be given up");
                tokio::time::sleep(POLL).await;
            }
        }
    }

    fn holding(&self) -> MutexGuard<'_, BTreeMap<JobId, Agent>> {
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks for jobs that are parked on nothing, until the server stops.
async fn reconcile(store: Store, tasks: Tasks) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(RECONCILE) => {}
            () = tasks.stopping() => return,
        }
        match store
            .run(Reconcile {
                limit: RECONCILE_BATCH,
            })
            .await
        {
            Ok(0) => {}
            Ok(count) => {
                warn!(count, "stranded jobs were put back into the queue");
                metrics::counter!("gatepost_jobs_redriven_total").increment(count as u64);
            }
            Err(error) => warn!(%error, "stranded jobs could not be looked for"),
        }
    }
}
